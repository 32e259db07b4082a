"""Tables of a run that a program printed as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache

from ackademy import _core
from ackademy.backends.programs import Program
from ackademy.backends.tables import NAMES, Columns, Tables
from ackademy.lazy import pl

Report = Mapping[str, object]

TINY = """\
duration_s = 0.01
[dumbbell]
rtt_ms = 1
bottleneck = { rate_mbps = 1 }
[[flow]]
"""


def report(text: str, program: Program) -> Report:
    """The object that a program printed.

    Raises:
        AckademyError: the program's own, if it is none.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise program.error(f"{program.name} printed what is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise program.error(f"{program.name} printed {text[:40]!r}; expected an object")
    return found


def tables(columns: Report, program: Program) -> Tables:
    """The simulator's tables, by name and column.

    Raises:
        AckademyError: the program's own, if something is missing or of the wrong type.
    """
    frames = {name: _frame(name, columns.get(name), program) for name in NAMES}
    return Tables({name: _columns(frame) for name, frame in frames.items()})


@cache
def _schema() -> Mapping[str, pl.Schema]:
    """Columns and types of the simulator's tables, from the smallest of simulations."""
    found = Tables.from_core(_core.simulate(_core.Scenario.parse(TINY, "tiny"), 1))
    return {name: found.frame(name).schema for name in NAMES}


def _columns(frame: pl.DataFrame) -> Columns:
    return {own.name: own.to_list() if own.dtype == pl.String else own.to_numpy() for own in frame}


def _frame(name: str, table: object, program: Program) -> pl.DataFrame:
    if not isinstance(table, dict):
        raise program.error(f"{program.name} printed {name} = {table!r}; expected dict")
    schema = _schema()[name]
    missing = [column for column in schema if not isinstance(table.get(column), list)]
    if missing:
        raise program.error(f"{program.name} printed no column {missing[0]} in table {name}")
    try:
        frame = pl.DataFrame({column: table[column] for column in schema}, schema=schema)
    except (TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise program.error(f"{program.name} printed a wrong table {name}: {reason}") from error
    return frame.with_columns(pl.col(pl.Float64).fill_null(math.nan))
