"""The tables of `ackademy gap` for a document."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy import gap
from ackademy.compare import Column
from ackademy.gap import COLUMNS, Gap
from ackademy.report.numbers import NONE, counted, percent_with_interval, significant, with_interval


def tables(gaps: Sequence[Gap], command: str) -> str:
    """One table per number, then the claims, what is large, and how the kernel's runs went."""
    parts = [f"```sh\n{command}\n```"]
    for column in COLUMNS:
        shown = [one for one in gaps if column.key != "jain" or one.n_flows > 1]
        if shown:
            parts.append(_column(column, shown))
    checked = [
        (
            claim.scenario,
            f"{gap.label_of(claim.column)} of {claim.ours} within {100 * claim.bound:.0f} % of "
            f"{claim.theirs}",
            percent_with_interval(claim.observed),
            claim.verdict,
        )
        for claim in gap.claims(gaps)
    ]
    if checked:
        parts.append("### Ours beside the kernel's own")
        parts.append(_table(("scenario", "claim", "observed", "verdict"), checked))
    large = [
        (
            one.pair.scenario,
            one.pair.controller,
            column.label,
            percent_with_interval(difference.relative),
            "yes" if difference.is_significant else "no",
        )
        for one, column, difference in gap.large(gaps)
    ]
    if large:
        parts.append(f"### Differences above {100 * gap.LARGE_RATIO:.0f} %")
        head = ("scenario", "controller", "number", "difference", "interval excludes 0")
        parts.append(_table(head, large))
    parts += ["### The runs on the kernel", _runs(gaps)]
    return "\n\n".join(parts) + "\n"


def _column(column: Column, gaps: Sequence[Gap]) -> str:
    unit = f", {column.unit}" if column.unit else ""
    rows = []
    for one in gaps:
        sides = (one.sim.estimate(column.key), one.kernel.estimate(column.key))
        difference = one.differences.get(column.key)
        rows.append(
            (
                one.pair.scenario,
                one.pair.controller,
                *(NONE if side is None else with_interval(side) for side in sides),
                NONE if difference is None else _emphasised(difference),
            )
        )
    head = ("scenario", "controller", "simulator", "kernel", "difference")
    return f"### {column.label}{unit}\n\n{_table(head, rows)}"


def _emphasised(difference: gap.Difference) -> str:
    text = percent_with_interval(difference.relative) + (
        " \\*" if difference.is_significant else ""
    )
    return f"**{text}**" if difference.is_large else text


def _runs(gaps: Sequence[Gap]) -> str:
    rows = [
        (
            one.pair.scenario,
            one.pair.controller,
            counted(one.kernel.n_runs, one.n_invalid),
            significant(one.lateness_us, 3),
            str(one.decisions),
            str(one.fallbacks),
        )
        for one in gaps
    ]
    return _table(
        ("scenario", "controller", "runs", "late at p99, µs", "decisions", "fallbacks"), rows
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
