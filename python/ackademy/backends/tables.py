"""Results of one run: a table of columns each, with the same columns on every backend.

A data frame is made of a table when it is asked for: Polars takes longer to import than most runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ackademy.errors import AckademyError
from ackademy.installation import add_extra
from ackademy.lazy import pl

if TYPE_CHECKING:
    import pandas

Column = npt.NDArray[np.float64] | npt.NDArray[np.int64] | list[str]
Columns = Mapping[str, Column]
"""of equal length, by name"""
NAMES = ("flows", "connections", "counters", "links", "flow_series", "link_series")
"""of the tables of a run"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Frames:
    """Tables by name, as columns and as data frames."""

    columns: Mapping[str, Columns]
    _made: dict[str, pl.DataFrame] = field(default_factory=dict, init=False)

    def frame(self, name: str) -> pl.DataFrame:
        """A table as a data frame, made once."""
        if name not in self._made:
            self._made[name] = data_frame(self.columns[name])
        return self._made[name]

    def to_pandas(self, name: str = "flows") -> pandas.DataFrame:
        """A table as a data frame of pandas.

        Args:
            name: of the table.

        Raises:
            AckademyError: if there is no such table, or the extra `pandas` is missing.
        """
        if name not in self.columns:
            raise AckademyError(f"to_pandas: {name!r}: allowed: {', '.join(self.columns)}")
        try:
            import pandas
        except ImportError:
            raise AckademyError(f"to_pandas needs pandas: {add_extra('pandas')}") from None
        return pandas.DataFrame(dict(self.columns[name]))

    def height(self, name: str) -> int:
        """Number of rows of a table."""
        return len(next(iter(self.columns[name].values())))

    def floats(self, name: str, column: str) -> npt.NDArray[np.float64]:
        """A column of numbers, shape (height,)."""
        return np.asarray(self.columns[name][column], np.float64)

    @property
    def flows(self) -> pl.DataFrame:
        """One row per flow."""
        return self.frame("flows")

    @property
    def connections(self) -> pl.DataFrame:
        """One row per connection: what its application read, over all its subflows."""
        return self.frame("connections")

    @property
    def links(self) -> pl.DataFrame:
        """One row per link."""
        return self.frame("links")

    @property
    def is_multipath(self) -> bool:
        """Whether a connection has several subflows."""
        return bool((self.floats("connections", "subflows") > 1).any())


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Tables(Frames):
    """Results of one run: totals of flows, connections and links, counters, time series."""

    is_random: bool = True
    """whether the run drew a random number; a kernel and a controller in Python count as random"""

    @classmethod
    def from_core(cls, tables: Mapping[str, Columns]) -> Tables:
        """Tables from the columns that the core returns."""
        is_random = bool(tables["run"]["is_random"][0])
        return cls({name: tables[name] for name in NAMES}, is_random=is_random)

    @property
    def counters(self) -> pl.DataFrame:
        """Counters of the controllers: flow, name, value."""
        return self.frame("counters")

    @property
    def flow_series(self) -> pl.DataFrame:
        """One row per flow and sampling time; empty unless sampling was asked for."""
        return self.frame("flow_series")

    @property
    def link_series(self) -> pl.DataFrame:
        """One row per link and sampling time; empty unless sampling was asked for."""
        return self.frame("link_series")


def frame_text(frame: pl.DataFrame) -> str:
    """A data frame with all its columns and its first and last rows, for a terminal."""
    with _all_columns():
        return repr(frame)


def frame_html(frame: pl.DataFrame) -> str:
    """A data frame with all its columns, for a notebook."""
    with _all_columns():
        return str(frame._repr_html_())


def _all_columns() -> pl.Config:
    return pl.Config(
        tbl_cols=-1,
        tbl_rows=20,
        tbl_width_chars=1000,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
    )


def data_frame(columns: Columns) -> pl.DataFrame:
    """A data frame whose text columns stay text without rows."""
    return pl.DataFrame(
        {
            name: pl.Series(name, values, dtype=pl.String if isinstance(values, list) else None)
            for name, values in columns.items()
        }
    )
