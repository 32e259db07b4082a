"""The tables of `ackademy gap` for a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackademy.backends.kernel import DECISION, KernelRun
from ackademy.render.numbers import NONE, counted, percent_with_interval, significant, with_interval
from ackademy.studies import gap
from ackademy.studies.gap import COLUMNS, Column, Gap

POLICY_HEADS = (
    "decisions of the policy",
    "sample to decision, µs",
    "sample to obeyed, µs",
    "processor time, µs",
    "flows without an answer",
)
POLICY_NOTE = (
    f"Times are {' / '.join(DECISION)}, the largest of the runs. *Sample to decision*: until the "
    "daemon has written the policy's answer. *Sample to obeyed*: of all samples, with or without a "
    "decision, and with the wait for the next acknowledgement. *Processor time*: of a decision."
)


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
    head = ["scenario", "controller", "runs", "late at p99, µs", "decisions", "fallbacks"]
    rows = [
        [
            one.pair.scenario,
            one.pair.controller,
            counted(one.kernel.n_runs, one.n_invalid),
            significant(one.lateness_us, 3),
            str(one.decisions),
            str(one.fallbacks),
        ]
        for one in gaps
    ]
    if any(run.policy_decisions for one in gaps for run in one.kernel_runs):
        head += POLICY_HEADS
        for one, row in zip(gaps, rows, strict=True):
            row += _policy(one)
    table = _table(head, rows)
    return f"{table}\n\n{POLICY_NOTE}" if POLICY_HEADS[0] in head else table


def _policy(one: Gap) -> list[str]:
    """The cells of `POLICY_HEADS`; times are quantiles, each the largest of the runs'."""
    runs = [run for run in one.kernel_runs if run.valid and run.policy_decisions]
    if not runs:
        return [NONE] * len(POLICY_HEADS)
    worst = [
        " / ".join(significant(max(times(run)[q] for run in runs), 3) for q in DECISION)
        for times in (_answered, _applied, _thought)
    ]
    return [
        str(sum(run.policy_decisions for run in runs)),
        *worst,
        str(sum(run.policy_fallbacks for run in runs)),
    ]


def _answered(run: KernelRun) -> Mapping[str, float]:
    return run.policy_answer_us


def _applied(run: KernelRun) -> Mapping[str, float]:
    return run.decision_us


def _thought(run: KernelRun) -> Mapping[str, float]:
    return run.policy_cpu_us


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
