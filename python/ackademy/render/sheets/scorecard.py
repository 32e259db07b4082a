"""The sheets of a scorecard: a line per row, and the checks of one row."""

from __future__ import annotations

import itertools
import math
import string
import textwrap
from collections.abc import Mapping, Sequence

from ackademy.render.numbers import NONE, significant
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, Style, cell, number
from ackademy.stats.intervals import Interval
from ackademy.stats.network_metrics import MEASURES
from ackademy.studies.scorecard.study import CheckResult, Plan, RowResult

STYLES: Mapping[str, Style] = {"pass": "good", "fail": "warn"}
"""of marks"""
DIGITS = 3
NARROW_WIDTH = 18
"""characters of a row's name and of its measure in a narrow table"""


def summary(plan: Plan, found: list[RowResult]) -> Sheet:
    """A line per row with the measure that decided its mark."""
    heads = (
        Head("measure"),
        *(Head(scheme.label) for scheme in plan.schemes),
        *_difference_heads(plan)[:1],
    )
    lines = tuple(_row_line(plan, own) for own in found)
    title = f"{plan.card.title}: {plan.title}"
    return Sheet(title, (Head("row"), Head("mark")), heads, lines)


def narrow(plan: Plan, found: Sequence[RowResult], n_rivals: int) -> list[Sheet]:
    """The summary for a narrow terminal: a sheet per group of rows, such as C1 to C10.

    The measure and the mark are below the row's name, the interval below the difference.

    Args:
        plan: who is tested.
        found: by row.
        n_rivals: the first so many of the rivals have a column.
    """
    schemes = [scheme.label for scheme in plan.schemes[: 1 + n_rivals]]
    heads = (*map(Head, schemes), *_difference_heads(plan)[:1])
    groups = itertools.groupby(found, key=lambda own: own.row.id.rstrip(string.digits))
    return [
        Sheet(
            f"{plan.card.title}: {plan.title}, {_rows_in_words(rows)}",
            (Head("row"),),
            heads,
            tuple(_narrow_line(plan, own, schemes) for own in rows),
        )
        for rows in (list(group) for _, group in groups)
    ]


def _rows_in_words(rows: Sequence[RowResult]) -> str:
    first, last = rows[0].row.id, rows[-1].row.id
    return first if first == last else f"{first} to {last}"


def _narrow_line(plan: Plan, found: RowResult, schemes: Sequence[str]) -> Line:
    name = "\n".join(textwrap.wrap(f"{found.row.id} {found.row.name}", NARROW_WIDTH))
    n_differences = len(_difference_heads(plan)[:1])
    decisive = found.decisive
    if decisive is None:
        empty = tuple(cell(NONE) for _ in range(len(schemes) + n_differences))
        return Line((Part(name),), empty, remark=found.mark.verdict)
    values = tuple(number(decisive.value(scheme), DIGITS) for scheme in schemes)
    words = [own.parts[0].text.split(" ", 1) for own in _differences(plan, decisive)[:1]]
    differences = tuple(Cell(tuple(Part(line) for line in lines)) for lines in words)
    remark = f"{found.mark.verdict}: {unit(decisive)}"
    names = (Part(name, STYLES.get(found.mark.verdict, "")),)
    return Line(names, (*values, *differences), remark=remark)


def checks(plan: Plan, found: RowResult) -> Sheet:
    """A line per check of a row: mean over networks, worst network, differences."""
    heads = (
        *(Head(scheme.label) for scheme in plan.schemes),
        *_difference_heads(plan),
        Head("mark"),
    )
    lines = tuple(
        Line(
            (Part(own.check.words), Part(own.part.name)),
            (
                *(_value(own, scheme.label) for scheme in plan.schemes),
                *_differences(plan, own),
                _mark(own.mark.verdict),
            ),
            note=_note(own),
        )
        for own in found.checks
    )
    return Sheet(found.row.name, (Head("measure"), Head("part")), heads, lines)


def _note(own: CheckResult) -> str:
    count = len(own.values.networks)
    return f"{count} network{'' if count == 1 else 's'} · {own.check.rule.words}"


def networks(plan: Plan, own: CheckResult) -> Sheet:
    """A line per network of a check."""
    lines = tuple(
        Line(
            (Part(name),),
            tuple(
                number(float(own.values.of(scheme.label)[index]), DIGITS) for scheme in plan.schemes
            ),
        )
        for index, name in enumerate(own.values.networks)
    )
    heads = tuple(Head(scheme.label) for scheme in plan.schemes)
    return Sheet(own.check.words, (Head("network"),), heads, lines)


def unit(own: CheckResult) -> str:
    """The measure with its unit."""
    found = MEASURES[own.check.measure].unit
    return f"{own.check.words}, {found}" if found else own.check.words


def interval_words(own: Interval | None) -> str:
    """A difference with the ends of its interval."""
    if own is None or math.isnan(own.value):
        return NONE
    value = _signed(own.value)
    if own.low == own.high:
        return value
    return f"{value} [{_signed(own.low)}, {_signed(own.high)}]"


def _signed(value: float) -> str:
    text = significant(value, 2)
    return f"+{text}" if value > 0.0 else text


def _row_line(plan: Plan, found: RowResult) -> Line:
    verdict = found.mark.verdict
    names = (Part(f"{found.row.id} {found.row.name}"), Part(verdict, STYLES.get(verdict, "")))
    decisive = found.decisive
    if decisive is None:
        empty = tuple(cell(NONE) for _ in (*plan.schemes, *_difference_heads(plan)[:1]))
        return Line(names, (cell(NONE), *empty))
    values = tuple(number(decisive.value(scheme.label), DIGITS) for scheme in plan.schemes)
    return Line(names, (cell(unit(decisive)), *values, *_differences(plan, decisive)[:1]))


def _difference_heads(plan: Plan) -> list[Head]:
    own = plan.scheme.label
    about = "mean paired difference with its 95 % interval"
    return [Head(f"− {rival.label}", about=about) for rival in plan.schemes if rival.label != own]


def _differences(plan: Plan, own: CheckResult) -> list[Cell]:
    others = [rival.label for rival in plan.schemes if rival.label != plan.scheme.label]
    return [cell(interval_words(own.differences.get(rival))) for rival in others]


def _value(own: CheckResult, scheme: str) -> Cell:
    mean, worst = own.value(scheme), own.worst(scheme)
    parts = [Part(significant(mean, DIGITS))]
    if len(own.values.networks) > 1:
        parts.append(Part(f"worst {significant(worst, DIGITS)}", "dim"))
    return Cell(tuple(parts), mean)


def _mark(verdict: str) -> Cell:
    return Cell((Part(verdict, STYLES.get(verdict, "")),))
