"""How runs in real time went, in lines for a reader."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.backends.kernel import KernelRun
from ackademy.render.html.shapes import bullets
from ackademy.render.report import Section, in_terminal
from ackademy.render.sheet import Part, Style


def kernel_section(runs: Sequence[KernelRun]) -> list[Section]:
    """The section of a report on runs in real time; nothing for those in virtual time."""
    if not runs:
        return []
    style: Style = "dim" if all(run.valid for run in runs) else "bad"
    lines = notes(runs)
    printed = (in_terminal(Part(line, style)) for line in lines)
    return [Section("kernel", "In real time", "", [bullets(lines), *printed])]


def notes(runs: Sequence[KernelRun]) -> list[str]:
    """For the reader of a report: how the runs went, one line each; none without runs."""
    if not runs:
        return []
    late, longest = (max(run.lateness_us[name] for run in runs) for name in ("p99", "max"))
    decided = [run.decision_us["p99"] for run in runs if run.decisions]
    words = [
        f"emulator late by {late:.0f} µs at p99, {longest:.0f} µs at most",
        "scheduler " + " and ".join(sorted({run.scheduler for run in runs})),
    ]
    if any(run.governed for run in runs):
        words += [
            f"{sum(run.decisions for run in runs)} decisions"
            + (f" (p99 {max(decided):.0f} µs)" if decided else ""),
            f"{sum(run.fallbacks for run in runs)} fallbacks",
        ]
    thoughts = sum(run.policy_decisions for run in runs)
    if thoughts:
        median, longest = (
            max(run.policy_cpu_us[name] for run in runs if run.policy_decisions)
            for name in ("p50", "p99")
        )
        words += [
            f"{thoughts} decisions of policies (processor time p50 {median:.0f} µs, "
            f"p99 {longest:.0f} µs)",
            f"{sum(run.policy_fallbacks for run in runs)} flows without an answer of theirs",
        ]
    lines = [f"kernel {runs[0].release}: {'; '.join(words)}"]
    invalid = [run for run in runs if not run.valid]
    if invalid:
        which = "this run is" if len(runs) == 1 else f"{len(invalid)} of {len(runs)} runs are"
        lines.append(f"{which} invalid: {invalid[0].why_invalid}")
    assumptions = dict.fromkeys(line for run in runs for line in run.assumptions)
    return [*lines, *(f"assumed: {line}" for line in assumptions)]
