"""The report from the simulator to the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy.backends.kernel import DECISION
from ackademy.render.html.forest import Mark, Scale, forest, reach
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.scatter import Point, scatter
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.shapes import colour_keys, legend
from ackademy.render.kernel_notes import kernel_section
from ackademy.render.numbers import (
    NONE,
    counted,
    percent_with_interval,
    significant,
    with_interval,
)
from ackademy.render.report import Item, Only, Report, Section, in_terminal, on_page
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of, number
from ackademy.runner import experiments
from ackademy.runner.measured import Measured
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.studies.gap import study as gap
from ackademy.studies.gap.study import METRICS, Claim, Difference, Gap

FOREST_REACH = (8.0, 60.0)
"""per cent: the axis of differences ends between these"""
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


def report(gaps: Sequence[Gap], folder: Path, command: str = "") -> Report:
    """Both sides of every pair and their difference, claims, and how the kernel's runs went."""
    names = list(dict.fromkeys(one.pair.controller for one in gaps))
    colour = {name: 1 + index % 7 for index, name in enumerate(names)}
    both = [one for one in gaps if one.differences]
    checked, large = gap.claims(gaps), gap.large(gaps)
    kernel_runs = [run for own in gaps for run in own.kernel.kernel_runs]
    notes = kernel_section(kernel_runs)
    return Report(
        kind="From the simulator to the kernel",
        title=" · ".join(names),
        about=_about(gaps),
        facts=_facts(gaps, checked, len(large)),
        sections=[
            Section(
                "differences",
                "How far the kernel is from the simulator",
                f"Kernel less simulator in per cent of the simulator, with the {NOMINAL}.",
                [_forest(both, colour)],
            ),
            Section(
                "scatter",
                "Value against value",
                "A dot is the mean of one scenario under one controller; on the line, both agree. "
                "Axes are logarithmic where the values are far apart.",
                [_scatter(both, colour)],
            ),
            _table_section(gaps, colour),
            *_claims_section(checked),
            *_large_section(large),
            *_series_section(gaps, colour, folder),
            _runs_section(gaps, colour),
            *notes,
        ],
        command=command,
    )


def _table_section(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Section:
    lead = (
        f"Simulator, kernel, difference: means ± half the {NOMINAL} over runs. A star marks a "
        "difference whose interval excludes 0."
    )
    each = [Only(own, ("markdown",)) for m in METRICS if (own := one_metric(gaps, m)).lines]
    items = [on_page(sides(gaps, colour)), in_terminal(sides(gaps, {}, with_runs=True)), *each]
    return Section("table", "Number by number", lead, items)


def _runs_section(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Section:
    lead = (
        "How late packets left the emulator, and what the daemon did, over the runs that "
        "count; a run whose emulator was late is repeated, and left out if it stays late."
    )
    own = runs(gaps, colour)
    more = [Only(POLICY_NOTE, ("markdown",))] if POLICY_HEADS[0] in own.heads else []
    return Section("runs", "The runs on the kernel", lead, [Only(own, ("html", "markdown")), *more])


def _about(gaps: Sequence[Gap]) -> str:
    scenarios = len({one.pair.scenario for one in gaps})
    kernels = sorted({run.release for one in gaps for run in one.kernel.kernel_runs})
    several = "" if scenarios == 1 else "s"
    return f"{scenarios} scenario{several}, kernel {', '.join(kernels) or 'not run'}."


def _facts(gaps: Sequence[Gap], checked: Sequence[Claim], large: int) -> dict[str, str]:
    facts = {
        "runs on the kernel": str(sum(one.kernel.n_runs for one in gaps)),
        f"differences above {100 * gap.LARGE_RATIO:.0f} %": str(large),
    }
    if n_invalid := sum(one.kernel.n_invalid for one in gaps):
        facts["invalid runs, left out"] = str(n_invalid)
    if checked:
        held = sum(claim.verdict == "holds" for claim in checked)
        facts["claims against the kernel's own that hold"] = f"{held} of {len(checked)}"
    return facts


def _forest(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    columns = []
    for metric in METRICS:
        marks = [
            _mark(one, metric, colour[one.pair.controller])
            for one in gaps
            if metric in one.metrics and math.isfinite(one.differences[metric].relative.value)
        ]
        if marks:
            wide = reach([mark.value for mark in marks], *FOREST_REACH)
            columns.append((Scale(metric_of(metric).name, "%", wide), marks))
    return forest(columns)


def _mark(one: Gap, metric: str, colour: int) -> Mark:
    relative = one.differences[metric].relative
    low, high = (
        100.0 * (end if math.isfinite(end) else relative.value)
        for end in (relative.low, relative.high)
    )
    head = head_of(metric)
    values = " → ".join(shown(side, metric) for side in (one.sim, one.kernel))
    tip = f"{one.pair.scenario}, {one.pair.controller}\n{head.label} {values} {head.unit}"
    name, group = one.pair.controller, one.pair.scenario
    return Mark(name, group, colour, 100.0 * relative.value, low, high, tip)


def _scatter(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    panels = []
    for metric in METRICS:
        points = []
        for one in (one for one in gaps if metric in one.metrics):
            sim, kernel = one.sim.value(metric), one.kernel.value(metric)
            if math.isfinite(sim) and math.isfinite(kernel):
                name = f"{one.pair.scenario}, {one.pair.controller}"
                points.append(Point(name, colour[one.pair.controller], sim, kernel))
        if points:
            head = head_of(metric)
            panels.append(scatter(head.label, head.unit, points))
    names = {one.pair.controller: colour[one.pair.controller] for one in gaps}
    keys = legend(colour_keys(names.items()))
    return join((keys, element("div", join(panels), class_="panels")))


def _claims_section(claims: Sequence[Claim]) -> list[Section]:
    if not claims:
        return []
    lead = (
        "Our controller in user space and the kernel's own, both on the same emulated link. "
        "Undecided: the interval of the difference reaches over the bound."
    )
    return [Section("claims", "Beside the kernel's own", lead, [claims_sheet(claims)])]


def _large_section(large: Sequence[tuple[Gap, str, Difference]]) -> list[Section]:
    n_large, limit = len(large), f"{100 * gap.LARGE_RATIO:.0f} %"
    line = Part(f"{n_large} differences above {limit} (yellow)", "warn" if n_large else "good")
    if not large:
        return [Section("large", "", "", [in_terminal(line)])]
    items = [
        element(
            "li",
            element(
                "a",
                f"{one.pair.scenario}, {one.pair.controller}, {metric_of(metric).name}",
                href=f"#{anchor(one, metric)}",
            ),
            f": {relative(difference)}",
        )
        for one, metric, difference in large
    ]
    lead = (
        "Explained, or written down as open, on the page "
        '"From the simulator to the kernel" of the documentation.'
    )
    listed = element("ul", join(items), class_="columns")
    shown: list[Item] = [listed, in_terminal(line), Only(large_sheet(large), ("markdown",))]
    return [Section("large", f"Differences above {limit}", lead, shown)]


def _series_section(gaps: Sequence[Gap], colour: Mapping[str, int], folder: Path) -> list[Section]:
    views: dict[str, list[Strip]] = {}
    for one in gaps:
        for side, what in ((one.sim, "simulator"), (one.kernel, "kernel")):
            if side.drawn is not None:
                strip = Strip(
                    name=one.pair.controller,
                    note=what,
                    colour=colour[one.pair.controller],
                    flows=experiments.read(folder, side.drawn, "flow_series"),
                    links=experiments.read(folder, side.drawn, "link_series"),
                )
                views.setdefault(one.pair.scenario, []).append(strip)
    if not views:
        return []
    body = tabs("time", {scenario: strips(found) for scenario, found in views.items()})
    lead = "The first run of each, on equal axes: the simulator's, then the kernel's."
    return [Section("time", "One run over time", lead, [body])]


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


def claims_sheet(found: Sequence[gap.Claim]) -> Sheet:
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


def large_sheet(found: Sequence[tuple[Gap, str, Difference]]) -> Sheet:
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
