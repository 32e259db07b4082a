"""The report of a policy where it was trained, or on a scenario, beside other controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ackademy import files
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, repeat_section
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.shapes import terms
from ackademy.render.html.sheet import sheet
from ackademy.render.sheets import evaluation as sheets
from ackademy.stats.intervals import NOMINAL
from ackademy.studies.evaluate import Source
from ackademy.studies.scored import Summary

N_POINTS = 300
"""pairs of points of a learning curve"""


def page(
    source: Source,
    found: Sequence[Summary],
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
    groups = list(dict.fromkeys(own.group for own in found))
    overall = {own.scheme: own for own in found if not own.group}
    facts = {}
    if policy in overall:
        own = overall[policy]
        facts = {
            "runs": str(own.n_runs),
            "mean share of the link": f"{100 * own.estimates['link_share'].value:.0f} %",
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
        f"Means over runs ± half the {NOMINAL}. A heading says what a number is. Gain is the "
        "policy's utility minus the other's, run by run."
    )
    tables = [
        join(
            (
                element("h3", group or "All runs") if len(groups) > 1 else None,
                sheet(sheets.evaluated("", [o for o in found if o.group == group], colours)),
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
        entries = ((element("dt", key), str(value)) for key, value in made.items())
        sections.append(Section("made", "How it was made", "", terms(entries)))
    sections.append(repeat_section(command))
    return document(head, sections)


def _plane(
    title: str, found: Sequence[Summary], group: str, colours: Mapping[str, int]
) -> Markup | None:
    clouds = [
        Cloud(
            own.scheme,
            colours[own.scheme],
            own.per_run("delay_mean_ms"),
            own.per_run("throughput_total_mbps"),
        )
        for own in found
        if own.group == group
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
