"""A scorecard as the text of a CSV file: a line per check of a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ackademy.csv_text import csv_text
from ackademy.stats.network_metrics import MEASURES
from ackademy.studies.scorecard.study import CheckResult, Plan, RowResult

HEAD = (
    "row",
    "name",
    "section",
    "word",
    "row_mark",
    "part",
    "measure",
    "unit",
    "networks",
    "seeds",
    "mark",
    "why",
)
OF_RIVAL = ("mean", "worst", "difference", "difference_low", "difference_high")


def text(plan: Plan, found: Sequence[RowResult], repeat: Callable[[str], str]) -> str:
    """One line per check; a row without checks has one line without numbers."""
    rivals = [own.label for own in plan.schemes[1:]]
    own = plan.scheme.label
    head = [*HEAD, f"{own}_mean", f"{own}_worst"]
    head += [f"{rival}_{word}" for rival in rivals for word in OF_RIVAL]
    lines: list[list[object]] = []
    for result in found:
        row = result.row
        names = [row.id, row.name, row.section, row.word, result.mark.verdict]
        if not result.checks:
            empty = [""] * (len(head) - len(HEAD))
            lines.append([*names, "", "", "", 0, 0, "", result.mark.why, *empty, repeat(row.id)])
        for check in result.checks:
            lines.append([*names, *_check(plan, check, rivals), repeat(row.id)])
    return csv_text([*head, "command"], lines)


def _check(plan: Plan, own: CheckResult, rivals: Sequence[str]) -> list[object]:
    scheme = plan.scheme.label
    cells: list[object] = [
        own.part.name,
        own.check.words,
        MEASURES[own.check.measure].unit,
        len(own.values.networks),
        plan.limits.runs,
        own.mark.verdict,
        own.mark.why,
        _number(own.value(scheme)),
        _number(own.worst(scheme)),
    ]
    for rival in rivals:
        difference = own.differences[rival]
        numbers = (own.value(rival), own.worst(rival), difference.value)
        cells += [_number(value) for value in (*numbers, difference.low, difference.high)]
    return cells


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""
