"""The sheets of `judge`: schemes on a fixed list of networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackademy.render.numbers import NONE
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, estimated, number, shaded
from ackademy.stats.intervals import Interval
from ackademy.studies.judgement import Verdict


def verdicts(title: str, found: Sequence[Verdict], reference: str) -> Sheet:
    """A line per scheme, every number with its 95 % interval over networks."""
    heads = (
        Head(f"dominates {reference}", "%", "part of the networks"),
        Head(f"dominated by {reference}", "%", "part of the networks"),
        Head("dominated by any", "%", "part of the networks on which another scheme dominates it"),
        Head("median share of fair", "", "throughput over the fair share, at most 1"),
        Head("median share / best other's"),
        Head("median p95 wait", "RTT", "95th percentile of the queueing delay, empty round trips"),
        Head("median wait beyond best", "RTT", "of the others with 0.95 of their fair share"),
        Head("mean loss", "%", "packets that queues dropped over those sent"),
    )
    return Sheet(title, (Head("n"), Head("scheme")), heads, tuple(_line(own) for own in found))


def by_kind(found: Mapping[str, Sequence[Verdict]], reference: str) -> Sheet:
    """A line per class of networks and scheme, without intervals."""
    heads = (
        Head(f"dominates {reference}", "%"),
        Head("dominated by any", "%"),
        Head("median share of fair"),
        Head("median p95 wait", "RTT"),
        Head("mean loss", "%"),
    )
    lines = tuple(
        Line(
            (Part(str(own.networks)), Part(own.scheme)),
            (
                number(100.0 * own.dominates_reference.value),
                number(100.0 * own.dominated.value),
                number(own.share.value),
                number(own.wait.value),
                number(100.0 * own.loss.value),
            ),
            group=kind,
        )
        for kind, rows in found.items()
        for own in rows
    )
    return Sheet("by class", (Head("n"), Head("scheme")), heads, lines, "class")


def dominance(parts: Mapping[str, Mapping[str, float]]) -> Sheet:
    """On what part of the networks a line's scheme dominates a column's."""
    heads = tuple(Head(name, "%") for name in parts)
    lines = tuple(
        Line((Part(ours),), tuple(_part(parts[ours].get(other)) for other in parts))
        for ours in parts
    )
    title = "networks on which the line's scheme dominates the column's"
    return Sheet(title, (Head("scheme"),), heads, lines)


def _line(own: Verdict) -> Line:
    return Line(
        (Part(str(own.networks)), Part(own.scheme)),
        (
            _percent(own.dominates_reference),
            _percent(own.dominated_by_reference),
            _percent(own.dominated),
            estimated(own.share, digits=3),
            estimated(own.share_to_best, digits=3),
            estimated(own.wait, digits=3),
            estimated(own.wait_beyond, digits=3),
            _percent(own.loss),
        ),
    )


def _percent(interval: Interval) -> Cell:
    return estimated(interval, 100.0, digits=3)


def _part(value: float | None) -> Cell:
    if value is None:
        return cell(NONE)
    found = number(100.0 * value)
    return Cell(found.parts, value, shade=shaded(0.5 + 0.5 * value) if value else "")
