"""The report from the simulator to the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy.render.html.forest import Mark, Scale, forest, reach
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, repeat_section, tabs
from ackademy.render.html.scatter import Point, scatter
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.shapes import bullets, colour_keys, legend
from ackademy.render.html.sheet import sheet
from ackademy.render.sheet import head_of
from ackademy.render.sheets import gap as sheets
from ackademy.runner import experiments
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.studies import gap
from ackademy.studies.gap import METRICS, Claim, Difference, Gap

FOREST_REACH = (8.0, 60.0)
"""per cent: the axis of differences ends between these"""


def page(gaps: Sequence[Gap], folder: Path, command: str) -> str:
    """The HTML file of `ackademy gap`."""
    names = list(dict.fromkeys(one.pair.controller for one in gaps))
    colour = {name: 1 + index % 7 for index, name in enumerate(names)}
    both = [one for one in gaps if one.differences]
    checked, large = gap.claims(gaps), gap.large(gaps)
    sections = [
        Section(
            "differences",
            "How far the kernel is from the simulator",
            f"Kernel less simulator in per cent of the simulator, with the {NOMINAL}.",
            _forest(both, colour),
        ),
        Section(
            "scatter",
            "Value against value",
            "A dot is the mean of one scenario under one controller; on the line, both agree. "
            "Axes are logarithmic where the values are far apart.",
            _scatter(both, colour),
        ),
        *_claims_section(checked),
        *_large_section(large),
        Section(
            "table",
            "Number by number",
            f"Simulator, kernel, difference: means ± half the {NOMINAL} over runs. A star marks a "
            "difference whose interval excludes 0.",
            sheet(sheets.sides(gaps, colour)),
        ),
        *_series_section(gaps, colour, folder),
        Section(
            "runs",
            "The runs on the kernel",
            "How late packets left the emulator, and what the daemon did, over the runs that "
            "count; a run whose emulator was late is repeated, and left out if it stays late.",
            sheet(sheets.runs(gaps, colour)),
        ),
        *_assumptions_section(gaps),
        repeat_section(command),
    ]
    return document(_head(gaps, names, checked, len(large)), sections)


def _head(gaps: Sequence[Gap], names: Sequence[str], checked: Sequence[Claim], large: int) -> Head:
    scenarios = len({one.pair.scenario for one in gaps})
    kernels = sorted({run.release for one in gaps for run in one.kernel.kernel_runs})
    n_runs = sum(one.kernel.n_runs for one in gaps)
    n_invalid = sum(one.kernel.n_invalid for one in gaps)
    facts = {
        "runs on the kernel": str(n_runs),
        f"differences above {100 * gap.LARGE_RATIO:.0f} %": str(large),
    }
    if n_invalid:
        facts["invalid runs, left out"] = str(n_invalid)
    if checked:
        held = sum(claim.verdict == "holds" for claim in checked)
        facts["claims against the kernel's own that hold"] = f"{held} of {len(checked)}"
    return Head(
        kicker="From the simulator to the kernel",
        title=" · ".join(names),
        about=f"{scenarios} scenario{'' if scenarios == 1 else 's'}, kernel "
        f"{', '.join(kernels) or 'not run'}.",
        cite="",
        facts=facts,
    )


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
    values = " → ".join(sheets.shown(side, metric) for side in (one.sim, one.kernel))
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
    return [Section("claims", "Beside the kernel's own", lead, sheet(sheets.claims(claims)))]


def _large_section(large: Sequence[tuple[Gap, str, Difference]]) -> list[Section]:
    if not large:
        return []
    items = [
        element(
            "li",
            element(
                "a",
                f"{one.pair.scenario}, {one.pair.controller}, {metric_of(metric).name}",
                href=f"#{sheets.anchor(one, metric)}",
            ),
            f": {sheets.relative(difference)}",
        )
        for one, metric, difference in large
    ]
    lead = (
        "Explained, or written down as open, on the page "
        '"From the simulator to the kernel" of the documentation.'
    )
    title = f"Differences above {100 * gap.LARGE_RATIO:.0f} %"
    return [Section("large", title, lead, element("ul", join(items), class_="columns"))]


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
    return [Section("time", "One run over time", lead, body)]


def _assumptions_section(gaps: Sequence[Gap]) -> list[Section]:
    lines = dict.fromkeys(
        line for one in gaps for run in one.kernel.kernel_runs for line in run.assumptions
    )
    if not lines:
        return []
    lead = "Where a run on the kernel is not what the scenario says to the letter."
    return [Section("assumptions", "Assumptions", lead, bullets(lines))]
