"""The sheets of `ackademy gap`: both sides, differences, claims, how the kernel's runs went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ackademy.backends.kernel import DECISION
from ackademy.render.numbers import (
    NONE,
    counted,
    percent_with_interval,
    significant,
    with_interval,
)
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of, number
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.studies import gap
from ackademy.studies.gap import METRICS, Difference, Gap
from ackademy.studies.measured import Measured

RUN_HEADS = (
    Head("late p50", "µs"),
    Head("late p99", "µs"),
    Head("late max", "µs"),
    Head("scheduler"),
    Head("lost before", about="packets that the emulator's interface dropped"),
    Head("decisions"),
    Head("decision p99", "µs"),
    Head("to CUBIC"),
    Head("refused"),
    Head("repeated"),
)
POLICY_HEADS = (
    Head("decisions of the policy"),
    Head("sample to decision", "µs"),
    Head("sample to obeyed", "µs"),
    Head("processor time", "µs"),
    Head("flows without an answer"),
)
POLICY_NOTE = (
    f"Times are {' / '.join(DECISION)}, the largest of the runs. *Sample to decision*: until the "
    "daemon has written the policy's answer. *Sample to obeyed*: of all samples, with or without a "
    "decision, and with the wait for the next acknowledgement. *Processor time*: of a decision."
)


def sides(gaps: Sequence[Gap], colours: Mapping[str, int], *, with_runs: bool = False) -> Sheet:
    """A line per scenario and controller: simulator, kernel, difference.

    Args:
        gaps: in order.
        colours: by controller.
        with_runs: whether lateness and fallbacks have columns.
    """
    lines = [
        Line(
            (Part(own.pair.controller),),
            (
                *(_sides(own, metric) for metric in METRICS),
                *([number(own.lateness_us), cell(str(own.fallbacks))] if with_runs else []),
            ),
            own.pair.scenario,
            colours.get(own.pair.controller),
            note=_note(own),
            runs="\n".join(_runs(own)) if with_runs else "",
        )
        for own in gaps
    ]
    more = (Head("late", "µs"), Head("to CUBIC")) if with_runs else ()
    title = (
        f"simulator, kernel, difference: mean ± half the {NOMINAL}; * a difference whose interval "
        "excludes 0"
    )
    heads = (*map(head_of, METRICS), *more)
    return Sheet(title, (Head("controller"),), heads, tuple(lines), "scenario")


def one_metric(gaps: Sequence[Gap], metric: str) -> Sheet:
    """A line per scenario and controller: a column per side and one for the difference."""
    lines = [
        Line(
            (Part(own.pair.controller),),
            (
                cell(shown(own.sim, metric)),
                cell(shown(own.kernel, metric)),
                Cell((_apart(own.differences.get(metric)),)),
            ),
            own.pair.scenario,
        )
        for own in gaps
        if metric in own.metrics
    ]
    head = head_of(metric)
    title = f"{head.label}, {head.unit}".rstrip(", ")
    heads = (Head("simulator"), Head("kernel"), Head("difference"))
    return Sheet(title, (Head("controller"),), heads, tuple(lines), "scenario")


def claims(found: Sequence[gap.Claim]) -> Sheet:
    """A line per claim: what was observed, and whether it holds."""
    lines = [
        Line(
            (Part(_claimed(claim)),),
            (
                cell(percent_with_interval(claim.observed)),
                Cell((Part(claim.verdict, "good" if claim.verdict == "holds" else "warn"),)),
            ),
            claim.scenario,
        )
        for claim in found
    ]
    title = "ours beside the kernel's own, both on the kernel"
    heads = (Head("observed"), Head("verdict"))
    return Sheet(title, (Head("claim"),), heads, tuple(lines), "scenario")


def large(found: Sequence[tuple[Gap, str, Difference]]) -> Sheet:
    """The differences that want an explanation."""
    lines = [
        Line(
            (Part(own.pair.controller), Part(metric_of(metric).name)),
            (
                cell(percent_with_interval(apart.relative)),
                cell("yes" if apart.is_significant else "no"),
            ),
            own.pair.scenario,
        )
        for own, metric, apart in found
    ]
    names = (Head("controller"), Head("metric"))
    heads = (Head("difference"), Head("interval excludes 0"))
    return Sheet("", names, heads, tuple(lines), "scenario")


def runs(gaps: Sequence[Gap], colours: Mapping[str, int]) -> Sheet:
    """How the runs on the kernel went; those of policies with what their decisions took."""
    decides = any(run.policy_decisions for own in gaps for run in own.kernel.kernel_runs)
    lines = [
        Line(
            (Part(own.pair.controller),),
            (*_run(own), *(_policy(own) if decides else ())),
            own.pair.scenario,
            colours.get(own.pair.controller),
            runs=counted(own.kernel.n_runs, own.kernel.n_invalid),
        )
        for own in gaps
    ]
    heads = (*RUN_HEADS, *(POLICY_HEADS if decides else ()))
    return Sheet("", (Head("controller"),), heads, tuple(lines), "scenario")


def relative(apart: Difference) -> str:
    """The difference in per cent, with a star where its interval excludes 0."""
    return percent_with_interval(apart.relative) + (" *" if apart.is_significant else "")


def shown(side: Measured, metric: str) -> str:
    """The estimate of one side as text."""
    estimate = side.estimates.get(metric)
    return NONE if estimate is None else with_interval(estimate)


def anchor(own: Gap, metric: str) -> str:
    """Of the cell in `sides`."""
    name = own.pair.controller.replace(":", "-")
    return f"{own.pair.scenario}-{name}-{metric}".replace(" ", "-")


def _sides(own: Gap, metric: str) -> Cell:
    if metric not in own.metrics:
        return Cell((Part(NONE, "dim"),))
    kernel = "invalid" if not own.kernel.n_runs else shown(own.kernel, metric)
    if not own.pair.sim:
        return Cell((Part(NONE, "was"), Part(kernel, "ours")))
    parts = (Part(shown(own.sim, metric), "was"), Part(kernel, "ours"))
    apart = _apart(own.differences.get(metric))
    return Cell((*parts, apart), anchor=anchor(own, metric))


def _apart(apart: Difference | None) -> Part:
    if apart is None:
        return Part(NONE, "dim")
    return Part(relative(apart), "warn" if apart.is_large else "dim")


def _runs(own: Gap) -> list[str]:
    on_kernel = counted(own.kernel.n_runs, own.kernel.n_invalid)
    simulated = counted(own.sim.n_runs, 0, is_fixed=own.sim.is_fixed)
    return [simulated, on_kernel] if own.pair.sim else [on_kernel]


def _note(own: Gap) -> str:
    if own.pair.sim:
        return f"{' | '.join(_runs(own))} runs"
    return f"kernel alone, {_runs(own)[0]} runs"


def _claimed(claim: gap.Claim) -> str:
    bound = f"{100 * claim.bound:.0f} %"
    return f"{metric_of(claim.metric).name} of {claim.ours} within {bound} of {claim.theirs}"


def _run(own: Gap) -> tuple[Cell, ...]:
    valid = own.valid_runs
    late = [max((r.lateness_us[q] for r in valid), default=math.nan) for q in ("p50", "p99", "max")]
    decided = [run.decision_us["p99"] for run in valid if run.decisions]
    return (
        *map(number, late),
        cell(" and ".join(sorted({run.scheduler for run in valid})) or NONE),
        cell(str(sum(run.tun_drops for run in valid))),
        cell(str(own.decisions)),
        number(max(decided, default=math.nan)),
        cell(str(own.fallbacks)),
        cell(str(sum(flow.refused for run in valid for flow in run.governed))),
        cell(str(sum(run.attempts - 1 for run in own.kernel.kernel_runs))),
    )


def _policy(own: Gap) -> tuple[Cell, ...]:
    """The cells of `POLICY_HEADS`; times are quantiles, each the largest of the runs'."""
    found = [run for run in own.valid_runs if run.policy_decisions]
    if not found:
        return (cell(NONE),) * len(POLICY_HEADS)
    return (
        cell(str(sum(run.policy_decisions for run in found))),
        _longest([run.policy_answer_us for run in found]),
        _longest([run.decision_us for run in found]),
        _longest([run.policy_cpu_us for run in found]),
        cell(str(sum(run.policy_fallbacks for run in found))),
    )


def _longest(times: Sequence[Mapping[str, float]]) -> Cell:
    return cell(" / ".join(significant(max(own[q] for own in times), 3) for q in DECISION))
