"""The sheet of a paper's table or figure: published, ours, difference."""

from __future__ import annotations

from collections.abc import Mapping

from ackademy.render.numbers import NONE, percent, runs_told, significant, with_interval
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.studies.reproduce import Measured, Reproduction, difference_ratio

WIDE_RATIO = 0.5
"""a difference from the published number above which no interval makes it agree"""
SHORT_METRICS = 3
FITTED = " *"
"""after the name of a row that was chosen by the published numbers"""


def published(result: Reproduction, colours: Mapping[str, int]) -> Sheet:
    """A line per row of the table, three lines per number."""
    experiment = result.experiment
    metrics = [metric_of(metric) for metric in experiment.metrics]
    lines = [
        Line(
            (Part(own.row.scheme),),
            tuple(_cell(own, metric) for metric in experiment.metrics),
            own.row.group,
            colours.get(own.row.scheme),
            note=_note(own),
            remark=own.row.fitted,
        )
        for own in result.rows
    ]
    title = f"{experiment.item}: {experiment.title} (published, ours, difference)"
    heads = tuple(Head(metric.label, metric.unit, metric.about) for metric in metrics)
    return Sheet(title, (Head("scheme"),), heads, tuple(lines), "group")


def short(result: Reproduction) -> Sheet:
    """A line per row of the table: published and ours, of up to three metrics with claims."""
    experiment = result.experiment
    claimed = {checked.claim.metric for checked in result.claims} | {"m_e"}
    chosen = [name for name in experiment.metrics if name in claimed] or experiment.metrics
    metrics = tuple(chosen[:SHORT_METRICS])
    lines = [
        Line(
            (Part(own.row.scheme + (FITTED if own.row.fitted else "")),),
            tuple(_short_cell(own, metric) for metric in metrics),
            own.row.group,
        )
        for own in result.rows
        if not own.row.missing
    ]
    heads = tuple(Head(metric_of(name).label, metric_of(name).unit) for name in metrics)
    title = f"{experiment.item}: {experiment.title} (published | ours)"
    return Sheet(title, (Head("scheme"),), heads, tuple(lines), "group")


def _short_cell(own: Measured, metric: str) -> Cell:
    printed, ours = own.row.published.get(metric), own.estimates.get(metric)
    was = NONE if printed is None else significant(printed)
    if ours is None:
        return Cell((Part(f"{was} | {NONE}", "was"),))
    is_near = printed is None or agrees(metric, printed, ours)
    shown = f"{was} | {significant(ours.value)}"
    return Cell((Part(shown, "good" if is_near else "apart"),))


def difference(metric: str, printed: float, ours: Interval) -> str:
    """How far ours is from the published number, as text."""
    if metric == "m_e":
        apart = ours.value - printed
        return f"{'+' if apart >= 0 else ''}{significant(apart, 3)}"
    return percent(difference_ratio(metric, printed, ours.value))


def agrees(metric: str, printed: float, ours: Interval) -> bool:
    """Whether ours agrees: an interval that holds half and twice the number shows nothing."""
    apart = abs(difference_ratio(metric, printed, ours.value))
    return ours.contains(printed) and not apart > WIDE_RATIO


def _cell(own: Measured, metric: str) -> Cell:
    printed, ours = own.row.published.get(metric), own.estimates.get(metric)
    was = Part(NONE if printed is None else significant(printed), "was")
    if ours is None:
        return Cell((was,))
    shown = Part(with_interval(ours), "ours")
    if printed is None:
        return Cell((was, shown))
    apart = difference(metric, printed, ours)
    return Cell((was, shown, Part(apart, "good" if agrees(metric, printed, ours) else "apart")))


def _note(own: Measured) -> str:
    if own.row.missing:
        return "not in this table yet"
    return runs_told(own.n_runs, is_fixed=bool(own.row.deterministic) or own.is_fixed)
