"""The report of a policy where it was trained, or on a scenario, beside other controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ackademy import files
from ackademy.render.html.markup import Markup, element, join, stacked
from ackademy.render.html.page import Head, Section, document
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.numbers import with_interval
from ackademy.stats.intervals import Interval
from ackademy.stats.scores import PER_CENT
from ackademy.studies.evaluate import COLUMNS, Result, Source

HEADS: Mapping[str, tuple[str, str]] = {
    "throughput_mbps": ("throughput", "Mb/s"),
    "share": ("share", "%"),
    "delay_ms": ("delay", "ms"),
    "rtt_ratio": ("RTT ratio", ""),
    "loss_ratio": ("loss", "%"),
    "jain": ("Jain", ""),
    "fallbacks": ("fallbacks", ""),
    "utility": ("utility", ""),
}
"""label and unit of each column"""
N_POINTS = 300
"""pairs of points of a learning curve"""


def page(
    source: Source,
    found: Sequence[Result],
    made: Mapping[str, object],
    curve: Path | None,
    command: str,
) -> str:
    """The HTML file.

    Args:
        source: what everybody was tried on.
        found: how it went; the policy is the first of each scenario.
        made: how the policy came about, as its file says.
        curve: its learning curve, a CSV file, if it has one.
        command: what the user typed.
    """
    names = list(dict.fromkeys(own.scheme for own in found))
    colours = {name: 1 + index % 7 for index, name in enumerate(names)}
    policy = names[0] if names else "nothing"
    groups = list(dict.fromkeys(own.scenario for own in found))
    overall = {own.scheme: own for own in found if not own.scenario}
    facts = {}
    if policy in overall:
        own = overall[policy]
        facts = {
            "runs": str(len(own.scores)),
            "mean share of the link": f"{100 * own.estimates['share'].value:.0f} %",
            "mean RTT over the empty one": f"{own.estimates['rtt_ratio'].value:.3f}",
        }
    head = Head(
        kicker="Evaluation",
        title=f"{policy} on {Path(source.origin).stem}",
        about=source.about or f"The frozen policy on {source.origin}.",
        cite="",
        facts=facts,
    )
    lead = (
        "Means over runs with half their 95 % interval. Throughput and share of the narrowest "
        "link are of the scheme's flows together, the RTT ratio is over the "
        "empty path's. Utility is ln share − ln (RTT / empty RTT), 0 at best; gain is the policy's "
        "minus the other's, run by run."
    )
    tables = [
        join(
            (
                element("h3", group or "All runs") if len(groups) > 1 else None,
                _table([own for own in found if own.scenario == group], policy, colours),
            )
        )
        for group in groups
    ]
    panels = [
        panel
        for group in (groups[1:] or groups)
        if (panel := _plane(group or Path(source.origin).stem, found, group, colours)) is not None
    ]
    sections = [Section("results", "Results", lead, join(tables))]
    if panels:
        clouds = element("div", join(panels), class_="panels")
        key = legend(list(colours.items()), published=False)
        sections.append(
            Section("planes", "Throughput against delay", "Every run a dot.", join((key, clouds)))
        )
    if curve is not None and (drawn := _curve(curve)) is not None:
        sections.append(Section("curve", "How it learned", f"From {curve.name}.", drawn))
    if made:
        entries = [
            join((element("dt", key), element("dd", str(value)))) for key, value in made.items()
        ]
        sections.append(
            Section(
                "made", "How it was made", "", element("dl", join(entries), class_="assumptions")
            )
        )
    sections.append(
        Section("repeat", "How to repeat it", "", element("pre", element("code", command)))
    )
    return document(head, sections)


def cell(own: Result, column: str) -> str:
    """A number with its interval, as text."""
    estimate = own.estimates[column]
    scale = 100.0 if column in PER_CENT else 1.0
    return with_interval(
        Interval(scale * estimate.value, scale * estimate.low, scale * estimate.high)
    )


def _table(rows: Sequence[Result], policy: str, colours: Mapping[str, int]) -> Markup:
    heads = [element("th", "controller", data_sort=True)]
    for column in COLUMNS:
        label, unit = HEADS[column]
        small = element("small", unit) if unit else None
        heads.append(element("th", label, small, data_sort=True))
    heads.append(element("th", "gain of", element("small", "the policy"), data_sort=True))
    body = []
    for own in rows:
        dot = element("i", class_=f"key s{colours[own.scheme]}")
        name = element("td", element("span", dot, own.scheme, class_="name"))
        cells = [
            element("td", stacked(cell(own, column)), data_v=f"{own.estimates[column].value:.6g}")
            for column in COLUMNS
        ]
        gain = "–" if own.scheme == policy else with_interval(own.gain)
        body.append(element("tr", name, *cells, element("td", stacked(gain))))
    head = element("thead", element("tr", *heads))
    table = element("table", head, element("tbody", *body), class_="sortable")
    return element("div", table, class_="scroll")


def _plane(
    title: str, found: Sequence[Result], group: str, colours: Mapping[str, int]
) -> Markup | None:
    clouds = [
        Cloud(
            own.scheme, colours[own.scheme], own.values("delay_ms"), own.values("throughput_mbps")
        )
        for own in found
        if own.scenario == group
    ]
    known = [
        own for own in clouds if np.isfinite(own.delay_ms).sum() > 0 and own.throughput_mbps.size
    ]
    return plane(title, known) if known else None


def _curve(path: Path) -> Markup | None:
    """The reward over the first number of a CSV file: what a trainer logs over its decisions."""
    lines = files.read_text(path, files.TABLE_BYTES_MAX).splitlines()
    names = lines[0].split(",") if lines else []
    rows = [line.split(",") for line in lines[1:]]
    try:
        column = names.index("reward")
        values = np.array([[float(row[0]), float(row[column])] for row in rows], np.float64)
    except (ValueError, IndexError):
        return None
    if values.shape[0] < 2 or not np.isfinite(values).any():
        return None
    x, y = values[:, 0], values[:, 1]
    low, high = float(np.nanmin(y)), float(np.nanmax(y))
    room = 0.05 * (high - low) or 1.0
    frame = Frame(
        Axis(float(x.min()), float(x.max()), names[0]), Axis(low - room, high + room, names[column])
    )
    line = element("path", class_="stroke s1", d=frame.line(*thin(x, y, N_POINTS)))
    drawing = frame.draw([line], label=f"{names[column]} over {names[0]}", class_="figure")
    return element("figure", drawing, class_="panel drawn")
