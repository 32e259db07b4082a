"""A study of learning in the terminal: the published numbers, the learners' beside them, claims."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ackademy.kinds.cubic_beta import MEASURES, BetaFindings, Outcome, estimate, group_of
from ackademy.report.numbers import NONE, significant, with_interval
from ackademy.terminal import assumptions_table, claims_table, headed_table


def tables(findings: BetaFindings) -> Group:
    """One table per rate, then what is claimed and what is assumed."""
    study = findings.study
    parts: list[Table | Text] = [Text(study.about, style="dim")]
    parts += [_rate_table(findings, rate) for rate in study.rates_mbps]
    runs = max((len(outcome.trainings) for outcome in findings.outcomes), default=0)
    note = f"Mean ± half the 95 % interval over {runs} learners, each with a seed of its own."
    parts.append(Text(note, style="dim"))
    if findings.claims:
        parts.append(claims_table(findings.claims))
    parts.append(assumptions_table(study.assumptions))
    return Group(*parts)


def _rate_table(findings: BetaFindings, rate_mbps: float) -> Table:
    """Measures down, learners across: learners are few, measures many."""
    study = findings.study
    outcomes = [outcome for outcome in findings.outcomes if outcome.rate_mbps == rate_mbps]
    printed = study.published.get(group_of(rate_mbps), {})
    title = f"{study.item}: {study.title}, {group_of(rate_mbps)}"
    if len(outcomes) > 3:
        return _many(title, study.columns, outcomes)
    heads = (["published"] if study.published else []) + [o.learner.name for o in outcomes]
    table = headed_table(title, [""], heads)
    for measure in study.columns:
        label = f"{MEASURES[measure].label} {MEASURES[measure].unit}".rstrip()
        cells = [_cell(outcome, measure, printed.get(measure)) for outcome in outcomes]
        if study.published:
            value = printed.get(measure)
            cells.insert(0, Text(NONE if value is None else significant(value), style="dim"))
        table.add_row(label, *cells)
    return table


def _many(title: str, columns: tuple[str, ...], outcomes: list[Outcome]) -> Table:
    """Learners down, measures across."""
    heads = [f"{MEASURES[m].label} {MEASURES[m].unit}".rstrip() for m in columns]
    table = headed_table(title, ["learner"], [])
    for head in heads:
        table.add_column(head, justify="right")
    for outcome in outcomes:
        table.add_row(outcome.learner.name, *(_cell(outcome, measure, None) for measure in columns))
    return table


def _cell(outcome: Outcome, measure: str, printed: float | None) -> Text:
    ours = estimate(outcome, measure)
    if ours is None:
        return Text(NONE, style="dim")
    inside = printed is not None and ours.contains(printed)
    return Text(with_interval(ours), style="green" if inside else "")
