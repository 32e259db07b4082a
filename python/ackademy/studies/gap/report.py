"""The report of the gap between backends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy.backends import Backend, title
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
    """Every column and its difference, claims, and how the runs in real time went."""
    names = list(dict.fromkeys(one.entry.controller for one in gaps))
    colour = {name: 1 + index % 7 for index, name in enumerate(names)}
    both = [one for one in gaps if any(one.differences.values())]
    checked, large = gap.claims(gaps), gap.large(gaps)
    columns = _columns(gaps)
    of_others = " and ".join(map(title, columns[1:]))
    return Report(
        kind=f"From {title(columns[0])} to {of_others}" if columns else "Gap",
        title=" · ".join(names),
        about=_about(gaps),
        facts=_facts(gaps, checked, len(large)),
        sections=[
            Section(
                "differences",
                "How far from the first column",
                f"In per cent of the first column, with the {NOMINAL}.",
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
            *_runs_section(gaps, colour),
            *kernel_section([run for own in gaps for run in own.kernel_runs]),
        ],
        command=command,
    )


def _columns(gaps: Sequence[Gap]) -> list[Backend]:
    """The backends of all entries, in order."""
    most = max((one.columns for one in gaps), key=len, default={})
    return list(dict.fromkeys([*most, *(backend for one in gaps for backend in one.columns)]))


def _table_section(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Section:
    lead = (
        f"Means ± half the {NOMINAL} over runs; below, the difference from the first column. A "
        "star marks one whose interval excludes 0."
    )
    each = [Only(own, ("markdown",)) for m in METRICS if (own := one_metric(gaps, m)).lines]
    own = table(gaps, colour)
    return Section("table", "Number by number", lead, [on_page(own), in_terminal(own), *each])


def _runs_section(gaps: Sequence[Gap], colour: Mapping[str, int]) -> list[Section]:
    lead = (
        "How late packets left the emulator, and what the daemon did, over the runs that "
        "count; a run whose emulator was late is repeated, and left out if it stays late."
    )
    own = runs(gaps, colour)
    if not own.lines:
        return []
    more = [Only(POLICY_NOTE, ("markdown",))] if POLICY_HEADS[0] in own.heads else []
    items = [Only(own, ("html", "markdown")), *more]
    return [Section("runs", "The runs in real time", lead, items)]


def _about(gaps: Sequence[Gap]) -> str:
    scenarios = len({one.entry.scenario for one in gaps})
    kernels = sorted({run.release for one in gaps for run in one.kernel_runs})
    several = "" if scenarios == 1 else "s"
    ran = f", kernel {', '.join(kernels)}" if kernels else ""
    return f"{scenarios} scenario{several}{ran}."


def _facts(gaps: Sequence[Gap], checked: Sequence[Claim], large: int) -> dict[str, str]:
    found = [own for one in gaps for own in one.columns.values()]
    facts = {
        "runs": str(sum(own.n_runs for own in found)),
        f"differences above {100 * gap.LARGE_RATIO:.0f} %": str(large),
    }
    if n_invalid := sum(own.n_invalid for own in found):
        facts["invalid runs, left out"] = str(n_invalid)
    if checked:
        held = sum(claim.verdict == "holds" for claim in checked)
        facts["claims against a backend's own that hold"] = f"{held} of {len(checked)}"
    return facts


def _others(gaps: Sequence[Gap], metric: str) -> list[tuple[Gap, Backend, Difference]]:
    """The differences of a metric that are finite, and the columns they are of."""
    return [
        (one, backend, apart[metric])
        for one in gaps
        for backend, apart in one.differences.items()
        if metric in one.metrics and metric in apart
        if math.isfinite(apart[metric].relative.value)
    ]


def _named(one: Gap, backend: Backend) -> str:
    """The controller, and the backend if there are several beside the first."""
    several = len(one.differences) > 1
    return f"{one.entry.controller}, {title(backend)}" if several else one.entry.controller


def _forest(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    columns = []
    for metric in METRICS:
        marks = [
            _mark(one, backend, metric, colour[one.entry.controller])
            for one, backend, _ in _others(gaps, metric)
        ]
        if marks:
            wide = reach([mark.value for mark in marks], *FOREST_REACH)
            columns.append((Scale(metric_of(metric).name, "%", wide), marks))
    return forest(columns)


def _mark(one: Gap, backend: Backend, metric: str, colour: int) -> Mark:
    relative = one.differences[backend][metric].relative
    low, high = (
        100.0 * (end if math.isfinite(end) else relative.value)
        for end in (relative.low, relative.high)
    )
    head, first = head_of(metric), next(iter(one.columns.values()))
    values = " → ".join(shown(column, metric) for column in (first, one.columns[backend]))
    name, group = _named(one, backend), one.entry.scenario
    tip = f"{group}, {name}\n{head.label} {values} {head.unit}"
    return Mark(name, group, colour, 100.0 * relative.value, low, high, tip)


def _scatter(gaps: Sequence[Gap], colour: Mapping[str, int]) -> Markup:
    panels = []
    columns = _columns(gaps)
    axes = (title(columns[0]), " or ".join(map(title, columns[1:]))) if columns else ("", "")
    for metric in METRICS:
        points = []
        for one, backend, _ in _others(gaps, metric):
            first = next(iter(one.columns.values()))
            name = f"{one.entry.scenario}, {_named(one, backend)}"
            values = first.value(metric), one.columns[backend].value(metric)
            points.append(Point(name, colour[one.entry.controller], *values))
        if points:
            head = head_of(metric)
            panels.append(scatter(head.label, head.unit, axes, points))
    names = {one.entry.controller: colour[one.entry.controller] for one in gaps}
    keys = legend(colour_keys(names.items()))
    return join((keys, element("div", join(panels), class_="panels")))


def _claims_section(claims: Sequence[Claim]) -> list[Section]:
    if not claims:
        return []
    lead = (
        "Our controller and a backend's own, both on that backend. "
        "Undecided: the interval of the difference reaches over the bound."
    )
    return [Section("claims", "Beside a backend's own", lead, [claims_sheet(claims)])]


def _large_section(large: Sequence[tuple[Gap, Backend, str, Difference]]) -> list[Section]:
    n_large, limit = len(large), f"{100 * gap.LARGE_RATIO:.0f} %"
    line = Part(f"{n_large} differences above {limit} (yellow)", "warn" if n_large else "good")
    if not large:
        return [Section("large", "", "", [in_terminal(line)])]
    items = [
        element(
            "li",
            element(
                "a",
                f"{one.entry.scenario}, {_named(one, backend)}, {metric_of(metric).name}",
                href=f"#{anchor(one, backend, metric)}",
            ),
            f": {relative(difference)}",
        )
        for one, backend, metric, difference in large
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
        for backend, own in one.columns.items():
            if own.drawn is not None:
                strip = Strip(
                    name=one.entry.controller,
                    note=title(backend),
                    colour=colour[one.entry.controller],
                    flows=experiments.read(folder, own.drawn, "flow_series"),
                    links=experiments.read(folder, own.drawn, "link_series"),
                )
                views.setdefault(one.entry.scenario, []).append(strip)
    if not views:
        return []
    body = tabs("time", {scenario: strips(found) for scenario, found in views.items()})
    lead = "The first run of each, on equal axes, in the order of the columns."
    return [Section("time", "One run over time", lead, [body])]


def table(gaps: Sequence[Gap], colours: Mapping[str, int]) -> Sheet:
    """A line per scenario, controller and metric; a column per backend."""
    columns = _columns(gaps)
    lines = [
        Line(
            (Part(own.entry.controller), Part(_label(metric))),
            tuple(_cell(own, backend, metric) for backend in columns),
            own.entry.scenario,
            colours.get(own.entry.controller),
            runs=_runs(own) if metric == METRICS[0] else "",
        )
        for own in gaps
        for metric in own.metrics
    ]
    names = (Head("controller"), Head("metric"))
    heads = tuple(Head(title(backend)) for backend in columns)
    about = (
        f"mean ± half the {NOMINAL}; below, the difference from the first column in per cent; * a "
        "difference whose interval excludes 0"
    )
    return Sheet(about, names, heads, tuple(lines), "scenario")


def one_metric(gaps: Sequence[Gap], metric: str) -> Sheet:
    """A line per scenario and controller: a column per backend, and one for each difference."""
    columns = _columns(gaps)
    lines = [
        Line((Part(own.entry.controller),), _in_columns(own, columns, metric), own.entry.scenario)
        for own in gaps
        if metric in own.metrics
    ]
    heads = [Head(title(backend)) for backend in columns[:1]]
    for backend in columns[1:]:
        apart = "difference" if len(columns) == 2 else f"{title(backend)}, difference"
        heads += [Head(title(backend)), Head(apart)]
    return Sheet(_label(metric), (Head("controller"),), tuple(heads), tuple(lines), "scenario")


def _in_columns(own: Gap, columns: Sequence[Backend], metric: str) -> tuple[Cell, ...]:
    cells = []
    for index, backend in enumerate(columns):
        column = own.columns.get(backend)
        cells.append(cell(NONE if column is None else shown(column, metric)))
        if index:
            cells.append(Cell((_apart(own.differences.get(backend, {}).get(metric)),)))
    return tuple(cells)


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
    title = "ours beside a backend's own, both on that backend"
    heads = (Head("observed"), Head("verdict"))
    return Sheet(title, (Head("claim"),), heads, tuple(lines), "scenario")


def large_sheet(found: Sequence[tuple[Gap, Backend, str, Difference]]) -> Sheet:
    """The differences that want an explanation."""
    lines = [
        Line(
            (Part(_named(own, backend)), Part(metric_of(metric).name)),
            (
                cell(percent_with_interval(apart.relative)),
                cell("yes" if apart.is_significant else "no"),
            ),
            own.entry.scenario,
        )
        for own, backend, metric, apart in found
    ]
    names = (Head("controller"), Head("metric"))
    heads = (Head("difference"), Head("interval excludes 0"))
    return Sheet("", names, heads, tuple(lines), "scenario")


def runs(gaps: Sequence[Gap], colours: Mapping[str, int]) -> Sheet:
    """How the runs in real time went; those of policies with what their decisions took."""
    decides = any(run.policy_decisions for own in gaps for run in own.kernel_runs)
    lines = [
        Line(
            (Part(own.entry.controller), Part(title(backend))),
            (*_run(column), *(_policy(column) if decides else ())),
            own.entry.scenario,
            colours.get(own.entry.controller),
            runs=counted(column.n_runs, column.n_invalid),
        )
        for own in gaps
        for backend, column in own.columns.items()
        if column.kernel_runs
    ]
    names = (Head("controller"), Head("backend"))
    heads = (*RUN_HEADS, *(POLICY_HEADS if decides else ()))
    return Sheet("", names, heads, tuple(lines), "scenario")


def relative(apart: Difference) -> str:
    """The difference in per cent, with a star where its interval excludes 0."""
    return percent_with_interval(apart.relative) + (" *" if apart.is_significant else "")


def shown(side: Measured, metric: str) -> str:
    """The estimate of one side as text."""
    estimate = side.estimates.get(metric)
    return NONE if estimate is None else with_interval(estimate)


def anchor(own: Gap, backend: Backend, metric: str) -> str:
    """Of the cell in `table`."""
    name = own.entry.controller.replace(":", "-")
    return f"{own.entry.scenario}-{name}-{backend}-{metric}".replace(" ", "-")


def _label(metric: str) -> str:
    head = head_of(metric)
    return f"{head.label}, {head.unit}".rstrip(", ")


def _cell(own: Gap, backend: Backend, metric: str) -> Cell:
    column = own.columns.get(backend)
    if column is None:
        return Cell((Part(NONE, "dim"),))
    value = "invalid" if column.n_invalid and not column.n_runs else shown(column, metric)
    if backend not in own.differences:
        return Cell((Part(value, "ours"),))
    parts = (Part(value, "ours"), _apart(own.differences[backend].get(metric)))
    return Cell(parts, anchor=anchor(own, backend, metric))


def _apart(apart: Difference | None) -> Part:
    if apart is None:
        return Part(NONE, "dim")
    return Part(relative(apart), "warn" if apart.is_large else "dim")


def _runs(own: Gap) -> str:
    """Of each column, in order."""
    return " | ".join(
        counted(column.n_runs, column.n_invalid, is_fixed=column.is_fixed)
        for column in own.columns.values()
    )


def _claimed(claim: gap.Claim) -> str:
    bound = f"{100 * claim.bound:.0f} %"
    what, where = metric_of(claim.metric).name, title(claim.backend)
    return f"{what} of {claim.ours} within {bound} of {claim.theirs}, {where}"


def _run(own: Measured) -> tuple[Cell, ...]:
    valid = own.valid_runs
    late = [max((r.lateness_us[q] for r in valid), default=math.nan) for q in ("p50", "p99", "max")]
    decided = [run.decision_us["p99"] for run in valid if run.decisions]
    return (
        *map(number, late),
        cell(" and ".join(sorted({run.scheduler for run in valid})) or NONE),
        cell(str(sum(run.tun_drops for run in valid))),
        cell(str(sum(run.decisions for run in valid))),
        number(max(decided, default=math.nan)),
        cell(str(sum(run.fallbacks for run in valid))),
        cell(str(sum(flow.refused for run in valid for flow in run.governed))),
        cell(str(sum(run.attempts - 1 for run in own.kernel_runs))),
    )


def _policy(own: Measured) -> tuple[Cell, ...]:
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
