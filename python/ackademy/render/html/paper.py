"""The report of a reproduction: claims, plane, differences, table, time series, assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from ackademy.backends import entries
from ackademy.render.html.experiment import assumptions_list, claims_section, reproduction_head
from ackademy.render.html.figures import figures
from ackademy.render.html.forest import Mark, Scale, forest, reach
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Section, document, tabs
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.sheet import sheet
from ackademy.render.numbers import significant, with_interval
from ackademy.render.sheets.reproduction import WIDE_RATIO, difference, published
from ackademy.runner import experiments
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import TP, D, of_all_flows
from ackademy.studies.experiment_files import Assumption
from ackademy.studies.reproduce import Measured, Reproduction

N_COLOURS = 10
"""of the style sheet, `.s0` to `.s9`; further schemes begin again"""


def page(reproduction: Reproduction) -> str:
    """The HTML file of a reproduction."""
    head = reproduction_head(reproduction.experiment, _facts(reproduction))
    return document(head, _sections(reproduction))


def _sections(reproduction: Reproduction) -> list[Section]:
    """What there is something to say in."""
    run = any(measured.n_runs for measured in reproduction.rows)
    numbers = run and bool(reproduction.experiment.metrics)
    drawn = any(measured.drawn for measured in reproduction.rows)
    return [
        *claims_section(reproduction.claims, f"the {NOMINAL} of what we observed"),
        *_figures_section(reproduction),
        *([_plane_section(reproduction)] if run else []),
        *(_number_sections(reproduction) if numbers else []),
        *([_time_section(reproduction)] if drawn else []),
        Section(
            anchor="assumptions",
            title="What this rests on",
            lead="Every choice behind these numbers, and who made it.",
            body=_assumptions(reproduction),
        ),
        Section("repeat", "How to repeat it", "", _repeat(reproduction)),
    ]


def _figures_section(reproduction: Reproduction) -> list[Section]:
    drawn = figures(reproduction, colours(reproduction))
    if not drawn:
        return []
    lead = f"Whiskers are {NOMINAL}s of ours; rings are published values."
    return [Section("figures", "Figures", lead, drawn)]


def _plane_section(reproduction: Reproduction) -> Section:
    lead = (
        "A small dot is one sender of one run; the ellipse holds 95 % of them if they are "
        "normally distributed."
    )
    return Section("plane", "Throughput against delay", lead, _planes(reproduction))


def _number_sections(reproduction: Reproduction) -> list[Section]:
    lead = (
        f"Published, ours ± half the {NOMINAL}, difference. Variances are compared as "
        "standard deviations. Green: the published number is inside our interval and at most "
        f"{100 * WIDE_RATIO:.0f} % away. "
        f"{_inside(reproduction)}{reproduction.experiment.note}"
    )
    item = reproduction.experiment.item
    table = Section(
        "table",
        f"{item}, number by number",
        lead,
        sheet(published(reproduction, colours(reproduction))),
    )
    columns = _differences(reproduction)
    if not columns:
        return [table]
    differences = Section(
        anchor="differences",
        title="How far from the published numbers",
        lead=f"Zero is the published value. Bars are {NOMINAL}s of ours.",
        body=forest(columns),
    )
    return [differences, table]


def _time_section(reproduction: Reproduction) -> Section:
    lead = "The run with seed 1. All charts of a view have the same axes."
    return Section("time", "One run over time", lead, _series(reproduction))


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
        if not measured.row.fitted
        for metric, value in measured.row.published.items()
    ]
    if not inside:
        return ""
    left_out = ", fitted rows left out" if any(m.row.fitted for m in run) else ""
    return f"Our intervals hold {sum(inside)} of {len(inside)} published numbers{left_out}. "


def colours(reproduction: Reproduction) -> dict[str, int]:
    """A colour per scheme, in the order of the table."""
    schemes = dict.fromkeys(measured.row.scheme for measured in reproduction.rows)
    return {scheme: index % N_COLOURS for index, scheme in enumerate(schemes)}


def _groups(reproduction: Reproduction) -> dict[str, list[Measured]]:
    """Rows with runs, by group."""
    groups: dict[str, list[Measured]] = {}
    for measured in reproduction.rows:
        if measured.n_runs:
            groups.setdefault(measured.row.group, []).append(measured)
    return groups


def _planes(reproduction: Reproduction) -> Markup:
    colour = colours(reproduction)
    panels = [
        plane(group, [_cloud(measured, colour[measured.row.scheme]) for measured in rows])
        for group, rows in _groups(reproduction).items()
    ]
    present = dict.fromkeys(m.row.scheme for m in reproduction.rows if m.n_runs)
    published = bool(reproduction.experiment.metrics)
    keys = legend([(scheme, colour[scheme]) for scheme in present], published=published)
    return join((keys, element("div", join(panels), class_="panels")))


def _cloud(measured: Measured, colour: int) -> Cloud:
    published = measured.row.published
    printed = (
        (published["delay_mean_ms"], published["throughput_mean_mbps"])
        if {"delay_mean_ms", "throughput_mean_mbps"} <= published.keys()
        else None
    )
    return Cloud(
        name=measured.row.scheme,
        colour=colour,
        delay_ms=of_all_flows(measured.samples, D).ravel(),
        throughput_mbps=of_all_flows(measured.samples, TP).ravel(),
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
        printed, ours = measured.row.published.get(metric), measured.estimates.get(metric)
        if printed is None or ours is None or printed == 0.0 or math.isnan(ours.value):
            continue
        values = np.array([ours.value, ours.low, ours.high])
        shown = values - printed if metric == "m_e" else 100.0 * (values / printed - 1.0)
        tip = (
            f"{' '.join(measured.row.name)}\npublished {significant(printed)}\n"
            f"ours {with_interval(ours)}\n{difference(metric, printed, ours)}"
        )
        scheme, group = measured.row.name
        value, low, high = (float(number) for number in shown)
        marks.append(Mark(scheme, group, colour[scheme], value, low, high, tip))
    return marks


def _series(reproduction: Reproduction) -> Markup:
    colour = colours(reproduction)
    views = {}
    for group, rows in _groups(reproduction).items():
        runs = [
            _strip(reproduction, measured, colour[measured.row.scheme])
            for measured in rows
            if measured.drawn
        ]
        if runs:
            views[group] = strips(runs)
    return tabs("time", views)


def _strip(reproduction: Reproduction, measured: Measured, colour: int) -> Strip:
    cell = measured.drawn
    if cell is None:
        raise ValueError("only a row with a time series can be drawn")
    first = measured.samples[0]
    note = (
        f"{significant(float(first[:, 0].mean()), 3)} Mb/s, "
        f"{significant(float(first[:, 1].mean()), 3)} ms, "
        f"{first[:, 3].sum():.0f} time-out{'' if first[:, 3].sum() == 1 else 's'}"
    )
    return Strip(
        name=measured.row.scheme,
        note=note,
        colour=colour,
        flows=_of_row(measured, experiments.read(reproduction.folder, cell, "flow_series")),
        links=experiments.read(reproduction.folder, cell, "link_series"),
    )


def _of_row(measured: Measured, series: pl.DataFrame) -> pl.DataFrame:
    """The time series of the row's flows."""
    names = [name for name in series["flow"].unique() if entries.fits([measured.row.flows], name)]
    return series.filter(pl.col("flow").is_in(names))


def _assumptions(reproduction: Reproduction) -> Markup:
    run_once = [
        Assumption("derived", f"{' '.join(row.name)} is run once: {row.deterministic}.")
        for row in (measured.row for measured in reproduction.rows)
        if row.deterministic
    ]
    rests_on = assumptions_list((*reproduction.experiment.assumptions, *run_once))
    missing = {m.row.scheme: m.row.missing for m in reproduction.rows if m.row.missing}
    absent = [
        element("p", f"{scheme} is not in this table yet: {reason}.")
        for scheme, reason in missing.items()
    ]
    return join((rests_on, *absent))


def _repeat(reproduction: Reproduction) -> Markup:
    name = reproduction.experiment.name
    command = f"ackademy reproduce {name}"
    cells = f"Each simulation has a folder of Parquet files below runs/{name.partition('/')[0]}."
    return join((element("pre", element("code", command)), element("p", cells)))
