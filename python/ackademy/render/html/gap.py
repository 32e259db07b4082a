"""The report from the simulator to the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy.render.html.forest import Mark, Scale, forest, reach
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, tabs
from ackademy.render.html.scatter import Point, colour_keys, scatter
from ackademy.render.html.series import Strip, strips
from ackademy.render.numbers import NONE, counted, percent_with_interval, significant, with_interval
from ackademy.runner import experiments
from ackademy.studies import gap
from ackademy.studies.gap import COLUMNS, Claim, Column, Difference, Gap

FOREST_REACH = (8.0, 60.0)
"""per cent: the axis of differences ends between these"""
BADGES: Mapping[gap.Verdict, str] = {
    "holds": "holds",
    "does not hold": "fails",
    "undecided": "undecided",
}
RUN_HEADS = (
    "late p50 µs",
    "p99 µs",
    "max µs",
    "scheduler",
    "lost before",
    "decisions",
    "decision p99 µs",
    "fallbacks",
    "refused",
    "repeated",
    "invalid",
)


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
            "Kernel less simulator in per cent of the simulator, with the 95 % interval.",
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
            "Simulator, kernel, difference: means ± half the 95 % interval over runs. A star marks "
            "a difference whose interval excludes 0.",
            _table(gaps, colour),
        ),
        *_series_section(gaps, colour, folder),
        Section(
            "runs",
            "The runs on the kernel",
            "How late packets left the emulator, and what the daemon did, over the runs that "
            "count; a run whose emulator was late is repeated, and left out if it stays late.",
            _runs(gaps, colour),
        ),
        *_assumptions_section(gaps),
        Section("repeat", "How to repeat it", "", element("pre", element("code", command))),
    ]
    return document(_head(gaps, names, checked, len(large)), sections)


def _head(gaps: Sequence[Gap], names: Sequence[str], checked: Sequence[Claim], large: int) -> Head:
    scenarios = len({one.pair.scenario for one in gaps})
    kernels = sorted({run.release for one in gaps for run in one.kernel_runs})
    n_runs = sum(one.kernel.n_runs for one in gaps)
    n_invalid = sum(one.n_invalid for one in gaps)
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
    for column in COLUMNS:
        marks = [
            _mark(one, column, colour[one.pair.controller])
            for one in _shown(gaps, column)
            if math.isfinite(one.differences[column.key].relative.value)
        ]
        if marks:
            wide = reach([mark.value for mark in marks], *FOREST_REACH)
            columns.append((Scale(column.label, "%", wide), marks))
    return forest(columns)


def _mark(one: Gap, column: Column, colour: int) -> Mark:
    relative = one.differences[column.key].relative
    low, high = (
        100.0 * (end if math.isfinite(end) else relative.value)
        for end in (relative.low, relative.high)
    )
    values = (one.sim.estimate(column.key), one.kernel.estimate(column.key))
    sides = " → ".join(NONE if value is None else with_interval(value) for value in values)
    tip = f"{one.pair.scenario}, {one.pair.controller}\n{column.label} {sides} {column.unit}"
    name, group = one.pair.controller, one.pair.scenario
    return Mark(name, group, colour, 100.0 * relative.value, low, high, tip)


def _scatter(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    panels = []
    for column in COLUMNS:
        points = []
        for one in _shown(gaps, column):
            sim, kernel = one.sim.estimate(column.key), one.kernel.estimate(column.key)
            if sim and kernel and math.isfinite(sim.value) and math.isfinite(kernel.value):
                name = f"{one.pair.scenario}, {one.pair.controller}"
                points.append(Point(name, colour[one.pair.controller], sim.value, kernel.value))
        if points:
            panels.append(scatter(column.label, column.unit, points))
    names = {one.pair.controller: colour[one.pair.controller] for one in gaps}
    return join((colour_keys(names), element("div", join(panels), class_="panels")))


def _claims_section(claims: Sequence[Claim]) -> list[Section]:
    if not claims:
        return []
    rows: dict[tuple[str, str, str], list[Markup]] = {}
    for claim in claims:
        badge = element("span", claim.verdict, class_=f"badge {BADGES[claim.verdict]}")
        observed = element("small", percent_with_interval(claim.observed))
        cells = rows.setdefault((claim.scenario, claim.ours, claim.theirs), [])
        cells.append(element("td", badge, observed))
    body = [
        element("tr", element("td", f"{scenario}: {ours} beside {theirs}"), join(cells))
        for (scenario, ours, theirs), cells in rows.items()
    ]
    heads = [
        element("th", f"{gap.label_of(column)} within {100 * bound:.0f} %")
        for column, bound in gap.CLAIMS
    ]
    head = element("thead", element("tr", element("th", ""), join(heads)))
    table = element("table", head, element("tbody", join(body)))
    lead = (
        "Our controller in user space and the kernel's own, both on the same emulated link. "
        "Undecided: the 95 % interval of the difference reaches over the bound."
    )
    return [
        Section("claims", "Beside the kernel's own", lead, element("div", table, class_="scroll"))
    ]


def _large_section(large: Sequence[tuple[Gap, Column, Difference]]) -> list[Section]:
    if not large:
        return []
    items = [
        element(
            "li",
            element(
                "a",
                f"{one.pair.scenario}, {one.pair.controller}, {column.label}",
                href=f"#{_anchor(one, column)}",
            ),
            f": {_relative(difference)}",
        )
        for one, column, difference in large
    ]
    lead = "Explained, or written down as open, in docs/results/sim-to-real.md."
    title = f"Differences above {100 * gap.LARGE_RATIO:.0f} %"
    return [Section("large", title, lead, element("ul", join(items), class_="columns"))]


def _table(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    heads = [
        element("th", column.label, element("small", column.unit), title=column.about)
        for column in COLUMNS
    ]
    body: list[Markup] = []
    scenario = ""
    for one in gaps:
        if one.pair.scenario != scenario:
            scenario = one.pair.scenario
            cell = element("th", scenario, colspan=len(COLUMNS) + 1)
            body.append(element("tr", cell, class_="group"))
        runs = counted(one.kernel.n_runs, one.n_invalid)
        note = f"{one.sim.n_runs} | {runs} runs" if one.pair.sim else f"kernel alone, {runs} runs"
        name = element("td", _name(one, colour), element("small", note))
        body.append(element("tr", name, join([_cell(one, column) for column in COLUMNS])))
    head = element("thead", element("tr", element("th", "controller"), join(heads)))
    return element("div", element("table", head, element("tbody", join(body))), class_="scroll")


def _cell(one: Gap, column: Column) -> Markup:
    if not _shown([one], column):
        return element("td", NONE)
    kernel = one.kernel.estimate(column.key)
    ours = element("b", "invalid" if kernel is None else with_interval(kernel))
    if not one.pair.sim:
        return element("td", ours)
    sim = one.sim.estimate(column.key)
    difference = one.differences.get(column.key)
    large = difference is not None and difference.is_large
    return element(
        "td",
        element("span", NONE if sim is None else with_interval(sim), class_="was"),
        element("br"),
        ours,
        element("small", NONE if difference is None else _relative(difference)),
        id=_anchor(one, column),
        class_="large" if large else None,
    )


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


def _runs(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    rows = []
    for one in gaps:
        runs = [run for run in one.kernel_runs if run.valid]
        late = [max((r.lateness_us[q] for r in runs), default=math.nan) for q in ("p50", "p99")]
        longest = max((run.lateness_us["max"] for run in runs), default=math.nan)
        decided = [run.decision_us["p99"] for run in runs if run.decisions]
        cells = [
            *(significant(value, 3) for value in (*late, longest)),
            " and ".join(sorted({run.scheduler for run in runs})) or NONE,
            str(sum(run.tun_drops for run in runs)),
            str(one.decisions),
            significant(max(decided, default=math.nan), 3),
            str(one.fallbacks),
            str(sum(flow.refused for run in runs for flow in run.governed)),
            str(sum(run.attempts - 1 for run in one.kernel_runs)),
            str(one.n_invalid),
        ]
        name = element("td", _name(one, colour), element("small", one.pair.scenario))
        rows.append(element("tr", name, join([element("td", cell) for cell in cells])))
    head = element("tr", element("th", ""), join([element("th", text) for text in RUN_HEADS]))
    table = element("table", element("thead", head), element("tbody", join(rows)))
    return element("div", table, class_="scroll")


def _assumptions_section(gaps: Sequence[Gap]) -> list[Section]:
    lines = dict.fromkeys(
        line for one in gaps for run in one.kernel_runs for line in run.assumptions
    )
    if not lines:
        return []
    body = element("ul", join([element("li", line) for line in lines]))
    lead = "Where a run on the kernel is not what the scenario says to the letter."
    return [Section("assumptions", "Assumptions", lead, body)]


def _shown(gaps: Sequence[Gap], column: Column) -> list[Gap]:
    """Without the fairness of one flow."""
    return [one for one in gaps if column.key != "jain" or one.n_flows > 1]


def _name(one: Gap, colour: Mapping[str, int]) -> Markup:
    name = one.pair.controller
    return element("span", element("i", class_=f"key s{colour[name]}"), name, class_="name")


def _relative(difference: Difference) -> str:
    return percent_with_interval(difference.relative) + (" *" if difference.is_significant else "")


def _anchor(one: Gap, column: Column) -> str:
    name = one.pair.controller.replace(":", "-")
    return f"{one.pair.scenario}-{name}-{column.key}".replace(" ", "-")
