"""A table before it is drawn: the same for the terminal, HTML and Markdown.

A study makes sheets of its results; `terminal.sheet`, `html.sheet` and `markdown.sheet` draw them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ackademy.render.numbers import NONE, significant, with_interval, without_runs
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of

if TYPE_CHECKING:
    from ackademy.runner.measured import Measured

HEAD_WIDTH = 8
"""characters of a heading's line"""
Style = Literal["", "was", "ours", "good", "apart", "warn", "bad", "dim", "best", "bold"]
"""was: a number to compare with; ours: what is compared; the others: how they compare"""


class Part(NamedTuple):
    """A line of a cell."""

    text: str
    style: Style = ""


class Head(NamedTuple):
    """The heading of a column."""

    label: str
    unit: str = ""
    about: str = ""
    """shown where a pointer rests on it"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number, or several one below the other."""

    parts: tuple[Part, ...]
    value: float | None = None
    """what it is sorted by"""
    tip: str = ""
    shade: str = ""
    """class of the background, as `q0` for the worst to `q10` for the best"""
    anchor: str = ""
    """to link to it"""


@dataclass(frozen=True, slots=True)
class Line:
    """A row."""

    names: tuple[Part, ...]
    cells: tuple[Cell, ...]
    group: str = ""
    """lines of one group follow each other"""
    colour: int | None = None
    """of the mark before the name"""
    note: str = ""
    """below the name, such as how many runs there are"""
    runs: str = ""
    """how many runs, where they have a column"""
    remark: str = ""
    """below the name, in as many lines as it takes"""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table."""

    title: str
    names: tuple[Head, ...]
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    group: str = ""
    """heading of the groups; empty without groups"""

    @property
    def has_runs(self) -> bool:
        """Whether the runs have a column."""
        return any(line.runs for line in self.lines)


def wrapped(label: str) -> list[str]:
    """A heading in lines, so that a column is about as wide as its numbers."""
    return textwrap.wrap(label, HEAD_WIDTH, break_long_words=False) or [""]


def cell(text: str, value: float | None = None) -> Cell:
    """One line of text."""
    return Cell((Part(text),), value)


def estimated(
    interval: Interval | None, factor: float = 1.0, missing: str = NONE, digits: int = 4
) -> Cell:
    """A value with so many significant digits and its interval, in a unit smaller by a factor."""
    if interval is None:
        return cell(missing)
    return cell(with_interval(interval.times(factor), digits), interval.value)


def measured(own: Measured, metric: str) -> Cell:
    """The estimate of a row, or why there is none."""
    digits = metric_of(metric).digits
    missing = without_runs(own.n_invalid)
    return estimated(own.estimates.get(metric), missing=missing, digits=digits)


def head_of(metric: str) -> Head:
    """Label, unit and definition of a metric."""
    found = metric_of(metric)
    return Head(found.name, found.unit, found.about)


def goodness(
    value: float, values: Sequence[float], *, lower_is_better: bool, is_log: bool = False
) -> float:
    """Where a value lies among others: 0 for the worst, 1 for the best; `nan` if all are equal."""
    scale: Callable[[float], float] = (lambda v: math.log(max(v, 1e-3))) if is_log else float
    known = [scale(other) for other in values if not math.isnan(other)]
    if math.isnan(value) or not known or not max(known) > min(known):
        return math.nan
    part = (scale(value) - min(known)) / (max(known) - min(known))
    return 1.0 - part if lower_is_better else part


def shaded(part: float, steps: int = 10) -> str:
    """The class of a background from 0, the worst, to 1, the best; empty for `nan`."""
    return "" if math.isnan(part) else f"q{round(steps * part)}"


def number(value: float, digits: int = 3) -> Cell:
    """A value without an interval."""
    return cell(significant(value, digits), value)
