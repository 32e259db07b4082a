"""The sheets of a scorecard: a line per row, and the checks of one row."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ackademy.render.numbers import NONE, significant
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, Style, cell, number
from ackademy.stats.intervals import Interval
from ackademy.studies.scorecard.measures import MEASURES
from ackademy.studies.scorecard.study import CheckResult, Plan, RowResult

STYLES: Mapping[str, Style] = {"pass": "good", "fail": "warn"}
"""of marks"""
DIGITS = 3


def summary(plan: Plan, found: list[RowResult]) -> Sheet:
    """A line per row with its first measure."""
    heads = (
        Head("measure"),
        *(Head(scheme.label) for scheme in plan.schemes),
        *_difference_heads(plan)[:1],
    )
    lines = tuple(_row_line(plan, own) for own in found)
    title = f"{plan.card.title}: {plan.scheme.label}"
    return Sheet(title, (Head("row"), Head("mark")), heads, lines)


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
    if not found.checks:
        empty = tuple(cell(NONE) for _ in (*plan.schemes, *_difference_heads(plan)[:1]))
        return Line(names, (cell(NONE), *empty))
    first = found.checks[0]
    values = tuple(number(first.value(scheme.label), DIGITS) for scheme in plan.schemes)
    return Line(names, (cell(unit(first)), *values, *_differences(plan, first)[:1]))


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
