"""The report of a reproduction: claims, plane, differences, table, time series, assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ackademy.backends import entries
from ackademy.lazy import pl
from ackademy.render.html.forest import Mark, Scale, forest, reach
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.series import Strip, strips
from ackademy.render.numbers import NONE, percent, runs_told, significant, with_interval
from ackademy.render.report import Item, Only, Report, Section, in_brief, in_terminal
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell
from ackademy.runner import experiments
from ackademy.stats.intervals import NOMINAL, Interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import TP, D, of_all_flows
from ackademy.studies.reproduce.figures import figures
from ackademy.studies.reproduce.files import Assumption
from ackademy.studies.reproduce.parts import (
    assumptions_section,
    claims_section,
    item_report,
)
from ackademy.studies.reproduce.study import Reproduced, Reproduction, difference_ratio

N_COLOURS = 10
"""of the style sheet, `.s0` to `.s9`; further schemes begin again"""
WIDE_RATIO = 0.5
"""a difference from the published number above which no interval makes it agree"""
SHORT_METRICS = 3
FITTED = " *"
"""after the name of a row that was chosen by the published numbers"""


def report(reproduction: Reproduction) -> Report:
    """What there is something to say in."""
    run = any(measured.n_runs for measured in reproduction.rows)
    numbers = run and bool(reproduction.experiment.metrics)
    drawn = any(measured.drawn for measured in reproduction.rows)
    sections = [
        *claims_section(reproduction.claims, f"the {NOMINAL} of what we observed"),
        *_figures_section(reproduction),
        *([_plane_section(reproduction)] if run else []),
        *_number_sections(reproduction, on_page=numbers),
        *([_time_section(reproduction)] if drawn else []),
        _assumptions(reproduction),
        Section("repeat", "How to repeat it", "", [_repeat(reproduction)]),
    ]
    return item_report(reproduction.experiment, _facts(reproduction), sections)


def _figures_section(reproduction: Reproduction) -> list[Section]:
    drawn = figures(reproduction, colours(reproduction))
    if not drawn:
        return []
    lead = f"Whiskers are {NOMINAL}s of ours; rings are published values."
    return [Section("figures", "Figures", lead, [drawn])]


def _plane_section(reproduction: Reproduction) -> Section:
    lead = (
        "A small dot is one sender of one run; the ellipse holds 95 % of them if they are "
        "normally distributed."
    )
    return Section("plane", "Throughput against delay", lead, [_planes(reproduction)])


def _number_sections(reproduction: Reproduction, *, on_page: bool) -> list[Section]:
    """How far from the published numbers, and every number; a terminal has the means."""
    lead = (
        f"Published, ours ± half the {NOMINAL}, difference. Variances are compared as "
        "standard deviations. Green: the published number is inside our interval and at most "
        f"{100 * WIDE_RATIO:.0f} % away. "
        f"{_inside(reproduction)}{reproduction.experiment.note}"
    )
    item = reproduction.experiment.item
    whole = published(reproduction, colours(reproduction))
    items: list[Item] = [Only(whole, ("html", "markdown") if on_page else ("markdown",))]
    items += [in_brief(by_group(reproduction))]
    items += [in_terminal(short(reproduction)), in_terminal(_short_notes(reproduction))]
    table = Section("table", f"{item}, number by number", lead, items)
    columns = _differences(reproduction)
    if not columns:
        return [table]
    differences = Section(
        anchor="differences",
        title="How far from the published numbers",
        lead=f"Zero is the published value. Bars are {NOMINAL}s of ours.",
        items=[forest(columns)],
    )
    return [differences, table]


def _short_notes(reproduction: Reproduction) -> str:
    """What the table of means leaves out."""
    rows, notes = [own.printed for own in reproduction.rows], []
    if any(row.fitted for row in rows):
        notes.append("*: chosen by the published numbers.")
    for reason in dict.fromkeys(row.missing for row in rows if row.missing):
        absent = ", ".join(" ".join(row.name) for row in rows if row.missing == reason)
        notes.append(f"Not in this table: {absent}: {reason}.")
    notes.append("Intervals, differences, every claim: the report, or --full.")
    return " ".join(notes)


def _time_section(reproduction: Reproduction) -> Section:
    lead = "The run with seed 1. All charts of a view have the same axes."
    return Section("time", "One run over time", lead, [_series(reproduction)])


def _facts(reproduction: Reproduction) -> Mapping[str, str]:
    rows = reproduction.rows
    run = [measured for measured in rows if measured.n_runs]
    facts = {}
    if reproduction.claims:
        holding = sum(checked.verdict == "holds" for checked in reproduction.claims)
        facts["claims that hold"] = f"{holding} of {len(reproduction.claims)}"
    facts["rows of the table run"] = f"{len(run)} of {len(rows)}"
    facts["simulations"] = str(sum(measured.n_runs for measured in run))
    return facts


def _inside(reproduction: Reproduction) -> str:
    """How many published numbers our intervals hold: a sentence for the table."""
    run = [measured for measured in reproduction.rows if measured.n_runs]
    inside = [
        measured.estimates[metric].contains(value)
        for measured in run
        if not measured.printed.fitted
        for metric, value in measured.printed.published.items()
    ]
    if not inside:
        return ""
    left_out = ", fitted rows left out" if any(m.printed.fitted for m in run) else ""
    return f"Our intervals hold {sum(inside)} of {len(inside)} published numbers{left_out}. "


def colours(reproduction: Reproduction) -> dict[str, int]:
    """A colour per scheme, in the order of the table."""
    schemes = dict.fromkeys(measured.printed.scheme for measured in reproduction.rows)
    return {scheme: index % N_COLOURS for index, scheme in enumerate(schemes)}


def _groups(reproduction: Reproduction) -> dict[str, list[Reproduced]]:
    """Rows with runs, by group."""
    groups: dict[str, list[Reproduced]] = {}
    for measured in reproduction.rows:
        if measured.n_runs:
            groups.setdefault(measured.printed.group, []).append(measured)
    return groups


def _planes(reproduction: Reproduction) -> Markup:
    colour = colours(reproduction)
    panels = [
        plane(group, [_cloud(measured, colour[measured.printed.scheme]) for measured in rows])
        for group, rows in _groups(reproduction).items()
    ]
    present = dict.fromkeys(m.printed.scheme for m in reproduction.rows if m.n_runs)
    published = bool(reproduction.experiment.metrics)
    keys = legend([(scheme, colour[scheme]) for scheme in present], published=published)
    return join((keys, element("div", join(panels), class_="panels")))


def _cloud(measured: Reproduced, colour: int) -> Cloud:
    published = measured.printed.published
    printed = (
        (published["delay_mean_ms"], published["throughput_mean_mbps"])
        if {"delay_mean_ms", "throughput_mean_mbps"} <= published.keys()
        else None
    )
    return Cloud(
        name=measured.printed.scheme,
        colour=colour,
        delay_ms=of_all_flows(measured.of_flows, D).ravel(),
        throughput_mbps=of_all_flows(measured.of_flows, TP).ravel(),
        published=printed,
    )


def _differences(reproduction: Reproduction) -> list[tuple[Scale, list[Mark]]]:
    """A column for each of the three metrics that the paper prints; none if it prints others."""
    columns = []
    limits = {"throughput_mean_mbps": (2.0, 100.0), "delay_mean_ms": (5.0, 100.0), "m_e": (0.05, 1)}
    for metric, (floor, ceiling) in limits.items():
        marks = _marks(reproduction, metric)
        if marks:
            unit = "ours − published" if metric == "m_e" else "ours / published − 1, %"
            size = reach([mark.value for mark in marks], floor, ceiling)
            columns.append((Scale(metric_of(metric).label, unit, size), marks))
    return columns


def _marks(reproduction: Reproduction, metric: str) -> list[Mark]:
    colour = colours(reproduction)
    marks = []
    for measured in reproduction.rows:
        printed, ours = measured.printed.published.get(metric), measured.estimates.get(metric)
        if printed is None or ours is None or printed == 0.0 or math.isnan(ours.value):
            continue
        values = np.array([ours.value, ours.low, ours.high])
        shown = values - printed if metric == "m_e" else 100.0 * (values / printed - 1.0)
        tip = (
            f"{' '.join(measured.printed.name)}\npublished {significant(printed)}\n"
            f"ours {with_interval(ours)}\n{difference(metric, printed, ours)}"
        )
        scheme, group = measured.printed.name
        value, low, high = (float(number) for number in shown)
        marks.append(Mark(scheme, group, colour[scheme], value, low, high, tip))
    return marks


def _series(reproduction: Reproduction) -> Markup:
    colour = colours(reproduction)
    views = {}
    for group, rows in _groups(reproduction).items():
        runs = [
            _strip(reproduction, measured, colour[measured.printed.scheme])
            for measured in rows
            if measured.drawn
        ]
        if runs:
            views[group] = strips(runs)
    return tabs("time", views)


def _strip(reproduction: Reproduction, measured: Reproduced, colour: int) -> Strip:
    cell = measured.drawn
    if cell is None:
        raise ValueError("only a row with a time series can be drawn")
    first = measured.of_flows[0]
    note = (
        f"{significant(float(first[:, 0].mean()), 3)} Mb/s, "
        f"{significant(float(first[:, 1].mean()), 3)} ms, "
        f"{first[:, 3].sum():.0f} time-out{'' if first[:, 3].sum() == 1 else 's'}"
    )
    return Strip(
        name=measured.printed.scheme,
        note=note,
        colour=colour,
        flows=_of_row(measured, experiments.read(reproduction.folder, cell, "flow_series")),
        links=experiments.read(reproduction.folder, cell, "link_series"),
    )


def _of_row(measured: Reproduced, series: pl.DataFrame) -> pl.DataFrame:
    """The time series of the row's flows."""
    names = [
        name for name in series["flow"].unique() if entries.fits([measured.printed.flows], name)
    ]
    return series.filter(pl.col("flow").is_in(names))


def _assumptions(reproduction: Reproduction) -> Section:
    run_once = [
        Assumption("derived", f"{' '.join(row.name)} is run once: {row.deterministic}.")
        for row in (measured.printed for measured in reproduction.rows)
        if row.deterministic
    ]
    missing = {m.printed.scheme: m.printed.missing for m in reproduction.rows if m.printed.missing}
    absent = [f"{scheme} is not in this table: {reason}." for scheme, reason in missing.items()]
    more: list[Item] = [Only(line, ("html", "markdown")) for line in absent]
    return assumptions_section((*reproduction.experiment.assumptions, *run_once), more)


def _repeat(reproduction: Reproduction) -> Markup:
    name = reproduction.experiment.name
    command = f"ackademy reproduce {name}"
    cells = f"Each simulation has a folder of Parquet files below runs/{name.partition('/')[0]}."
    return join((element("pre", element("code", command)), element("p", cells)))


def published(result: Reproduction, colours: Mapping[str, int]) -> Sheet:
    """A line per row of the table, three lines per number."""
    experiment = result.experiment
    metrics = [metric_of(metric) for metric in experiment.metrics]
    lines = [
        Line(
            (Part(own.printed.scheme),),
            tuple(_cell(own, metric) for metric in experiment.metrics),
            own.printed.group,
            colours.get(own.printed.scheme),
            note=_note(own),
            remark=own.printed.fitted,
        )
        for own in result.rows
    ]
    title = f"{experiment.item}: {experiment.title} (published, ours, difference)"
    heads = tuple(Head(metric.label, metric.unit, metric.about) for metric in metrics)
    return Sheet(title, (Head("scheme"),), heads, tuple(lines), "group")


def short(result: Reproduction) -> Sheet:
    """A line per row of the table: published and ours, of up to three metrics with claims."""
    experiment = result.experiment
    claimed = {checked.claim.metric for checked in result.claims} | {"m_e"}
    chosen = [name for name in experiment.metrics if name in claimed] or experiment.metrics
    metrics = tuple(chosen[:SHORT_METRICS])
    lines = [
        Line(
            (Part(own.printed.scheme + (FITTED if own.printed.fitted else "")),),
            tuple(_short_cell(own, metric) for metric in metrics),
            own.printed.group,
        )
        for own in result.rows
        if not own.printed.missing
    ]
    heads = tuple(Head(metric_of(name).label, metric_of(name).unit) for name in metrics)
    title = f"{experiment.item}: {experiment.title} (published | ours)"
    return Sheet(title, (Head("scheme"),), heads, tuple(lines), "group")


def by_group(result: Reproduction) -> Sheet:
    """A line per scheme and a column per group, of one metric: M_e if it is in the table."""
    names = result.experiment.metrics
    metric = "m_e" if "m_e" in names else next(iter(names), "throughput_mean_mbps")
    rows = {own.printed.name: own for own in result.rows if not own.printed.fitted}
    groups = list(dict.fromkeys(group for _, group in rows))
    lines = []
    for scheme in dict.fromkeys(scheme for scheme, _ in rows):
        own = [rows.get((scheme, group)) for group in groups]
        cells = tuple(_short_cell(one, metric) if one else cell(NONE) for one in own)
        lines.append(Line((Part(scheme),), cells))
    what = f"{metric_of(metric).label} {metric_of(metric).unit}".rstrip()
    title = f"{result.experiment.item}: {result.experiment.title} ({what}, published | ours)"
    return Sheet(title, (Head("scheme"),), tuple(map(Head, groups)), tuple(lines))


def _short_cell(own: Reproduced, metric: str) -> Cell:
    printed, ours = own.printed.published.get(metric), own.estimates.get(metric)
    was = NONE if printed is None else significant(printed)
    if ours is None:
        return Cell((Part(f"{was} | {NONE}", "was"),))
    is_near = printed is None or agrees(metric, printed, ours)
    shown = f"{was} | {significant(ours.value)}"
    return Cell((Part(shown, "good" if is_near else "apart"),))


def difference(metric: str, printed: float, ours: Interval) -> str:
    """How far ours is from the published number, as text."""
    if metric == "m_e":
        apart = ours.value - printed
        return f"{'+' if apart >= 0 else ''}{significant(apart, 3)}"
    return percent(difference_ratio(metric, printed, ours.value))


def agrees(metric: str, printed: float, ours: Interval) -> bool:
    """Whether ours agrees: an interval that holds half and twice the number shows nothing."""
    apart = abs(difference_ratio(metric, printed, ours.value))
    return ours.contains(printed) and not apart > WIDE_RATIO


def _cell(own: Reproduced, metric: str) -> Cell:
    printed, ours = own.printed.published.get(metric), own.estimates.get(metric)
    was = Part(NONE if printed is None else significant(printed), "was")
    if ours is None:
        return Cell((was,))
    shown = Part(with_interval(ours), "ours")
    if printed is None:
        return Cell((was, shown))
    apart = difference(metric, printed, ours)
    return Cell((was, shown, Part(apart, "good" if agrees(metric, printed, ours) else "apart")))


def _note(own: Reproduced) -> str:
    if own.printed.missing:
        return "not in this table yet"
    return runs_told(own.n_runs, is_fixed=bool(own.printed.deterministic) or own.is_fixed)
