"""A study of learning in the terminal: the published numbers, the learners' beside them, claims."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackademy.console import Console
from ackademy.papers.knott2023.study import METRICS, BetaFindings, Outcome, estimate, group_of
from ackademy.render.numbers import NONE, significant, with_interval
from ackademy.render.terminal import assumptions_table, claims_table, fitting, headed_table


def tables(findings: BetaFindings, console: Console) -> Group:
    """A table or more per rate, then what is claimed and what is assumed."""
    study = findings.study
    parts: list[RenderableType] = [Text(study.about, style="dim")]
    for rate in study.rates_mbps:
        parts += _rate_tables(findings, rate, console)
    runs = max((len(outcome.trainings) for outcome in findings.outcomes), default=0)
    note = f"Mean ± half the 95 % interval over {runs} learners, each with a seed of its own."
    parts.append(Text(note, style="dim"))
    if findings.claims:
        parts.append(claims_table(findings.claims))
    parts.append(assumptions_table(study.assumptions))
    return Group(*parts)


def _rate_tables(findings: BetaFindings, rate_mbps: float, console: Console) -> list[Table]:
    """Two learners side by side; more of them one below the other."""
    study = findings.study
    outcomes = [outcome for outcome in findings.outcomes if outcome.rate_mbps == rate_mbps]
    title = f"{study.item}: {study.title}, {group_of(rate_mbps)}"
    if len(outcomes) > 2:
        names = {"learner": [outcome.learner.name for outcome in outcomes]}
        numbers = {
            _label(metric): [_cell(outcome, metric, None) for outcome in outcomes]
            for metric in study.columns
        }
        return fitting(title, names, numbers, console)
    return [_side_by_side(title, findings, outcomes, group_of(rate_mbps))]


def _side_by_side(
    title: str, findings: BetaFindings, outcomes: Sequence[Outcome], group: str
) -> Table:
    study = findings.study
    printed = study.published.get(group, {})
    heads = (["published"] if study.published else []) + [o.learner.name for o in outcomes]
    table = headed_table(title, [""], heads)
    for metric in study.columns:
        cells = [_cell(outcome, metric, printed.get(metric)) for outcome in outcomes]
        if study.published:
            value = printed.get(metric)
            cells.insert(0, Text(NONE if value is None else significant(value), style="dim"))
        table.add_row(_label(metric), *cells)
    return table


def _label(metric: str) -> str:
    return f"{METRICS[metric].label} {METRICS[metric].unit}".rstrip()


def _cell(outcome: Outcome, metric: str, printed: float | None) -> Text:
    ours = estimate(outcome, metric)
    if ours is None:
        return Text(NONE, style="dim")
    inside = printed is not None and ours.contains(printed)
    return Text(with_interval(ours), style="green" if inside else "")
