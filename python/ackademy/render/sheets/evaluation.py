"""The sheets of `eval` and `generalise`: a frozen policy beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackademy.render.numbers import NONE
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, estimated, head_of, number
from ackademy.stats.scores import Score
from ackademy.studies.generalise import Worst, in_words
from ackademy.studies.scored import FIELDS, GAIN, WON, Summary

PER_CENT = frozenset({"link_share", "loss", WON})
"""ratios that are shown as per cent"""
SHOWN = ("link_share", "delay_mean_ms", "rtt_ratio", "loss", "utility")
"""metrics of `generalise`, in order"""
FAILING = ("link_share", "rtt_ratio", "loss")
"""metrics of the worst links"""


def factor(metric: str) -> float:
    """Of a metric's value in the unit that it is shown in."""
    return 100.0 if metric in PER_CENT else 1.0


def head(metric: str) -> Head:
    """Label, unit and definition, in per cent where it is shown so."""
    found = head_of(metric)
    return found._replace(unit="%") if metric in PER_CENT else found


def evaluated(title: str, found: Sequence[Summary], colours: Mapping[str, int]) -> Sheet:
    """A line per scheme, every metric with its interval; the policy is the first."""
    return _with_intervals(title, found, (*FIELDS, GAIN), colours)


def overall(found: Sequence[Summary], colours: Mapping[str, int]) -> Sheet:
    """All links: a line per scheme with intervals, and how often the policy wins."""
    return _with_intervals("all links", found, (*SHOWN, GAIN, WON), colours)


def _with_intervals(
    title: str, found: Sequence[Summary], metrics: Sequence[str], colours: Mapping[str, int]
) -> Sheet:
    lines = [
        Line(
            (Part(own.scheme),),
            tuple(_estimated(own, metric, index == 0) for metric in metrics),
            colour=colours.get(own.scheme),
        )
        for index, own in enumerate(found)
    ]
    return Sheet(title, (Head("controller"),), tuple(map(head, metrics)), tuple(lines))


def means(title: str, found: Sequence[Summary], policy: str, *, named: bool = False) -> Sheet:
    """Means alone: a group per range of links, a line per scheme.

    Args:
        title: of the table.
        found: of one axis or of several.
        policy: which has no gain over itself.
        named: whether a range is called by its axis, too.
    """
    metrics = (*SHOWN, GAIN, WON)
    lines = [
        Line(
            (Part(str(own.n_runs)), Part(own.scheme)),
            tuple(_mean(own, metric, own.scheme == policy) for metric in metrics),
            group=own.full_group if named else own.group,
        )
        for own in found
    ]
    names = (Head("n"), Head("controller"))
    return Sheet(title, names, tuple(map(head, metrics)), tuple(lines), "links")


def worst(listed: Sequence[Worst], policy: str, *, commands: bool = False) -> Sheet:
    """The links on which the policy fails, by how it does; with what runs them again."""
    lines = [
        Line(
            (Part(f"{own.file.stem}: {in_words(own.row.link)}"),),
            (
                *_scores(own.row.scores[policy], FAILING),
                *([cell(f"`{own.command}`")] if commands else []),
            ),
            group=own.kind,
        )
        for own in listed
    ]
    heads = (*map(head, FAILING), *([Head("command")] if commands else []))
    return Sheet("worst links", (Head("link"),), heads, tuple(lines), "how")


def everybody(listed: Sequence[Worst]) -> Sheet:
    """Everybody's scores on links of one kind of failure."""
    lines = [
        Line((Part(name),), _scores(score, SHOWN), f"{in_words(own.row.link)} · {own.command}")
        for own in listed
        for name, score in own.row.scores.items()
    ]
    return Sheet("", (Head("controller"),), tuple(map(head, SHOWN)), tuple(lines), "link")


def _scores(score: Score, metrics: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(
        number(factor(metric) * float(getattr(score, FIELDS[metric]))) for metric in metrics
    )


def _estimated(own: Summary, metric: str, is_policy: bool) -> Cell:
    if metric in (GAIN, WON) and is_policy:
        return cell(NONE)
    if metric == WON:
        return _won(own)
    return estimated(own.estimates[metric], factor(metric))


def _mean(own: Summary, metric: str, is_policy: bool) -> Cell:
    if metric in (GAIN, WON) and is_policy:
        return cell(NONE)
    return _won(own) if metric == WON else number(factor(metric) * own.estimates[metric].value)


def _won(own: Summary) -> Cell:
    value = factor(WON) * own.estimates[WON].value
    return cell(f"{value:.0f}", value)
