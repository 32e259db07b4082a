"""The report of a comparison or of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import Metrics, Run
from ackademy.render.html import svg
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, repeat_section, tabs
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.series import drawing as series_drawing
from ackademy.render.html.shapes import bullets
from ackademy.render.html.sheet import sheet
from ackademy.render.kernel_notes import notes
from ackademy.render.numbers import significant
from ackademy.render.sheets import compare as sheets
from ackademy.render.sheets import run as of_run
from ackademy.render.sheets.compare import colours
from ackademy.runner import experiments
from ackademy.stats.completion_times import CompletionTimes, completion_times
from ackademy.stats.formulas import FloatArray
from ackademy.studies.measured import Measured

N_BUCKETS = 300
"""of the points of a distribution"""
ROWS_MAX = 200
"""flows in the table of one run"""


def drawing(found: Sequence[Measured]) -> str:
    """Throughput against delay as an SVG: a panel per scenario, a dot per run."""
    panels = []
    for scenario, rows in _by_scenario(found).items():
        lines = [
            svg.Line(
                own.row.name.scheme,
                own.values["delay_mean_ms"],
                own.values["throughput_mean_mbps"],
            )
            for own in rows
        ]
        known = [values[np.isfinite(values)] for line in lines for values in (line.x, line.y)]
        x, y = (np.concatenate([np.zeros(1), *known[side::2]]) for side in (0, 1))
        across = Axis(0.0, 1.08 * float(x.max()) or 1.0, "delay above the empty path, ms")
        up = Axis(0.0, 1.08 * float(y.max()) or 1.0)
        title = f"{scenario}: throughput, Mb/s"
        panels.append(svg.Panel(title, across, up, lines, height=220, is_dots=True))
    return svg.figure(panels)


def _by_scenario(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    groups: dict[str, list[Measured]] = {}
    for own in found:
        if own.n_runs:
            groups.setdefault(own.row.name.scenario, []).append(own)
    return groups


def page(found: Sequence[Measured], folder: Path, command: str = "") -> str:
    """The HTML file of a comparison; a command is shown as the one that repeats it."""
    colour = colours(found)
    groups = _by_scenario(found)
    runs = max((own.n_runs for own in found), default=0)
    head = Head(
        kicker="Comparison",
        title=" · ".join(colour),
        about=f"{_count(len(groups), 'scenario')}, {_count(runs, 'run')} each.",
        cite="",
        facts={},
    )
    lead = "A small dot is one run, the mean over its flows; the ellipse holds 95 % of the runs."
    numbers = sheets.sheet(found)
    sections = [
        Section("plane", "Throughput against delay", lead, _planes(groups, colour)),
        Section("table", "Number by number", f"{numbers.title.capitalize()}.", sheet(numbers)),
    ]
    if any(own.drawn for own in found):
        sections.append(
            Section(
                "time",
                "One run over time",
                "The run with seed 1. All charts of a view have the same axes.",
                _series(groups, colour, folder),
            )
        )
    sections += kernel_section([run for own in found for run in own.kernel_runs])
    sections += [repeat_section(command)] if command else []
    return document(head, sections)


def run_drawing(run: Run) -> str:
    """One run over time as an SVG."""
    return series_drawing(_strip(run))


def _strip(run: Run) -> Strip:
    names = " · ".join(dict.fromkeys(run.flows["controller"]))
    return Strip(names, run.scenario.name, 1, run.flow_series, run.link_series)


def _headline(run: Run, measured: Metrics) -> dict[str, str]:
    """The numbers above the first section: fairness only among several flows."""
    flows, links = measured.flows, measured.links
    dropped, sent = (
        int(run.flows[f"{what}_packets"].to_numpy().sum()) for what in ("dropped", "sent")
    )
    facts = {
        "throughput, Mb/s": significant(float(flows["throughput_mbps"].fill_nan(0.0).sum())),
        "delay above the empty path, ms": significant(_mean(flows["delay_ms"])),
        "loss, %": significant(100.0 * dropped / max(sent, 1), 3),
    }
    if links.height:
        busiest = float(links["utilisation"].fill_nan(0.0).cast(pl.Float64).to_numpy().max())
        facts["utilisation of the busiest link, %"] = significant(100.0 * busiest, 3)
    if flows.height > 1:
        facts["Jain's index of throughput"] = significant(measured.jain_throughput)
    return facts


def _mean(values: pl.Series) -> float:
    known = values.drop_nans().to_numpy()
    return float(known.mean()) if known.size else float("nan")


def run_page(run: Run, command: str = "") -> str:
    """The HTML file of one run; a command is shown as the one that repeats it."""
    measured = run.metrics()
    names = list(dict.fromkeys(measured.flows["controller"]))
    head = Head(
        kicker="One run",
        title=run.scenario.name,
        about=f"{run.scenario.duration_s:g} s, seed {run.seed}: {', '.join(names)}.",
        cite="",
        facts=_headline(run, measured),
    )
    hidden = measured.flows.height - ROWS_MAX
    more = f"The first {ROWS_MAX}; {hidden} more are in the tables (--parquet)."
    times = completion_times(run, run.scenario.duration_s)
    sections = [
        *([_completion(times)] if times is not None else []),
        Section("time", "Over time", "", strips([_strip(run)])),
        Section(
            "flows",
            "Flows",
            more if hidden > 0 else "",
            sheet(of_run.flows("", run, ROWS_MAX)),
        ),
        *_connections(run),
        Section("links", "Links", "", sheet(of_run.links(run))),
        *kernel_section([run.kernel] if run.kernel else []),
        *([repeat_section(command)] if command else []),
    ]
    return document(head, sections)


def _connections(run: Run) -> list[Section]:
    """The connections, if one of them has several subflows."""
    if not run.is_multipath:
        return []
    lead = (
        "What the application of each connection read, in order. Reinjected bytes were sent by one "
        "subflow in place of another; the reorder peak is the most that waited at the receiver for "
        "an earlier byte of another subflow."
    )
    return [Section("connections", "Connections", lead, sheet(of_run.connections(run, ROWS_MAX)))]


def _completion(times: CompletionTimes) -> Section:
    """Completion times and slowdowns: two cumulative distributions and their quantiles."""
    shown = [(times.fct_ms, "completion time, ms"), (times.slowdown, "slowdown")]
    charts = [_cumulative(own[np.isfinite(own)], label) for own, label in shown]
    lead = (
        "From the start of a transfer to the ACK of its last byte, for which a receiver may wait "
        "(delayed ACKs). The slowdown is that time over what the transfer "
        "would take alone on the empty path: one round trip, and what follows the first packet at "
        "the mean rate of the narrowest link. A flow with several transfers counts with their "
        f"mean. {of_run.unknown_slowdowns(times)}"
    )
    table = sheet(of_run.completions("", times))
    drawn = [chart for chart in charts if chart is not None]
    body = join((element("div", join(drawn), class_="panels"), table))
    return Section("completion", "Flow completion times", lead, body)


def _cumulative(values: FloatArray, label: str) -> Markup | None:
    """The distribution of finite values above 0; nothing without any."""
    if not values.size:
        return None
    x = np.sort(values)
    y = np.arange(1, x.size + 1) / x.size
    across = Axis(float(x[0]), float(max(x[-1], 1.001 * x[0])), label, is_log=True)
    frame = Frame(across, Axis(0.0, 1.0, "part of the transfers", n_ticks=5))
    line = element("path", class_="line l0", d=frame.line(*thin(x, y, N_BUCKETS)))
    return element("article", frame.draw([line], label=f"Distribution of {label}"), class_="s0")


def kernel_section(runs: Sequence[KernelRun]) -> list[Section]:
    """How runs on the kernel went; nothing for those of the simulator."""
    if not runs:
        return []
    return [Section("kernel", "On the kernel", "", bullets(notes(runs)))]


def _planes(groups: dict[str, list[Measured]], colour: dict[str, int]) -> Markup:
    panels = []
    for scenario, rows in groups.items():
        clouds = [
            Cloud(
                name,
                colour[name],
                own.values["delay_mean_ms"],
                own.values["throughput_mean_mbps"],
            )
            for own in rows
            for name in [own.row.name.scheme]
        ]
        panels.append(plane(scenario, clouds))
    keys = legend(list(colour.items()), published=False)
    return join((keys, element("div", join(panels), class_="panels")))


def _series(groups: dict[str, list[Measured]], colour: dict[str, int], folder: Path) -> Markup:
    views = {}
    for scenario, rows in groups.items():
        drawn = [
            Strip(
                name=own.row.name.scheme,
                note="",
                colour=colour[own.row.name.scheme],
                flows=experiments.read(folder, own.drawn, "flow_series"),
                links=experiments.read(folder, own.drawn, "link_series"),
            )
            for own in rows
            if own.drawn
        ]
        if drawn:
            views[scenario] = strips(drawn)
    return tabs("time", views)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
