"""The report of an adversarial search: what is kept, and how the search went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head as PageHead
from ackademy.render.html.page import Section, document, repeat_section
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import colour_keys, hit, legend
from ackademy.render.html.sheet import sheet
from ackademy.render.numbers import significant
from ackademy.render.sheet import Head, Line, Part, Sheet, cell, number
from ackademy.render.sheets import stress as sheets
from ackademy.stats.scores import SHARE_FLOOR
from ackademy.studies.stress import KEPT, Finding, Study, Tried, in_words

COLOURS = 8


def page(
    study: Study, tried: Sequence[Tried], found: Sequence[Finding], folder: Path, command: str
) -> str:
    """The HTML file.

    Args:
        study: what was searched.
        tried: every network of the search, in order.
        found: what is kept.
        folder: of the scenario files.
        command: what the user typed.
    """
    wanted = f"regret above that of {study.against.name}" if study.against else "regret"
    head = PageHead(
        kicker="Stress",
        title=f"Where {study.scheme.name} does worst",
        about=f"A search over networks for the largest {wanted}. {study.space.about}",
        cite="",
        facts={
            "networks tried": str(len(tried)),
            "scenarios kept": str(len(found)),
            f"largest {wanted}": significant(found[0].tried.value, 3) if found else "none",
        },
    )
    lead = (
        "Regret is −ln fair share + ln RTT over ideal: 0 for an omniscient flow, which sends at "
        f"the link's rate and never waits; a share below {100 * SHARE_FLOOR:g} % is cut. Values "
        "that are not named are plain: each network was simplified as long as "
        f"{100 * KEPT:g} % of the regret stayed. The numbers are of seed 1; the last column has "
        "the mean and the range of seeds 1 to 4."
    )
    sections = [
        Section("worst", "The worst networks", lead, sheet(sheets.findings(study, found, folder))),
        Section(
            "files",
            "Scenario files",
            "A command prints the numbers of its line.",
            _files(study, found, folder),
        ),
        Section(
            "search",
            "How the search went",
            "A dot is a network, in the order in which they were tried; a tip tells what it was.",
            _progress(study, tried, wanted),
        ),
        Section("families", "Kinds of networks", "", _families(tried, wanted)),
        repeat_section(command),
    ]
    return document(head, sections)


def _files(study: Study, found: Sequence[Finding], folder: Path) -> Markup:
    lines = [sheets.command(study, own, folder) for own in found]
    return element("pre", element("code", "\n".join(lines)))


def _progress(study: Study, tried: Sequence[Tried], wanted: str) -> Markup:
    """The value of every network over its number, coloured by kind."""
    if not tried:
        return join(())
    names = list(dict.fromkeys(own.network.family.name for own in tried))
    colours = {name: 1 + index % (COLOURS - 1) for index, name in enumerate(names)}
    values = np.array([own.value for own in tried])
    low, high = min(0.0, float(values.min())), float(values.max())
    frame = Frame(Axis(0.0, len(tried) + 1.0, "network"), Axis(low, 1.05 * max(high, 0.1), wanted))
    content = []
    for index, own in enumerate(tried):
        at = frame.dots(np.array([index + 1.0]), values[index : index + 1])
        name = own.network.family.name
        tip = f"{name}\n{in_words(own.network)}\n{wanted} {significant(own.value, 3)}"
        content.append(element("path", class_=f"run s{colours[name]}", d=at))
        content.append(hit(at, tip))
    drawing = frame.draw(content, label=f"{wanted} by network")
    keys = legend(colour_keys(colours.items()))
    return join((keys, element("figure", drawing, class_="panel")))


def _families(tried: Sequence[Tried], wanted: str) -> Markup:
    """How often each kind was tried, and its median and worst."""
    by_name: dict[str, list[float]] = {}
    for own in tried:
        by_name.setdefault(own.network.family.name, []).append(own.value)
    lines = [
        Line(
            (Part(name),),
            (cell(str(len(own)), len(own)), number(float(np.median(own))), number(max(own))),
        )
        for name, own in sorted(by_name.items(), key=lambda pair: -max(pair[1]))
    ]
    heads = (Head("networks"), Head(f"median {wanted}"), Head(f"largest {wanted}"))
    return sheet(Sheet("", (Head("kind"),), heads, tuple(lines)))
