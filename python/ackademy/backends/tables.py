"""Results of one run: a data frame per table, with the same columns on every backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt
import polars as pl

Column = npt.NDArray[np.float64] | npt.NDArray[np.int64] | list[str]


@dataclass(frozen=True, slots=True)
class Tables:
    """Results of one run, one data frame per table."""

    flows: pl.DataFrame
    """one row per flow: totals over the run"""
    connections: pl.DataFrame
    """one row per connection: what its application read, over all its subflows"""
    counters: pl.DataFrame
    """counters of the controllers: flow, name, value"""
    links: pl.DataFrame
    """one row per link: totals over the run"""
    flow_series: pl.DataFrame
    """one row per flow and sampling time; empty unless sampling was asked for"""
    link_series: pl.DataFrame
    """one row per link and sampling time; empty unless sampling was asked for"""
    is_random: bool = field(default=True, kw_only=True)
    """whether the run drew a random number; a kernel and a controller in Python count as random"""

    @classmethod
    def from_core(cls, tables: Mapping[str, Mapping[str, Column]]) -> Tables:
        """Tables from the columns that the core returns."""
        is_random = bool(tables["run"]["is_random"][0])
        return cls(**{name: _frame(tables[name]) for name in NAMES}, is_random=is_random)


NAMES = tuple(own.name for own in fields(Tables) if own.name != "is_random")
"""of the data frames"""


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


def _frame(columns: Mapping[str, Column]) -> pl.DataFrame:
    """A data frame whose text columns stay text without rows."""
    return pl.DataFrame(
        {
            name: pl.Series(name, values, dtype=pl.String if isinstance(values, list) else None)
            for name, values in columns.items()
        }
    )
