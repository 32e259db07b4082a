"""The report of an adversarial search: what is kept, and how the search went."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ackademy.files import file_name
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import colour_keys, hit, legend
from ackademy.render.numbers import NONE, significant
from ackademy.render.report import Only, Report, Section, on_page
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of, number
from ackademy.stats.scores import SHARE_FLOOR
from ackademy.studies.stress.search import GAP, KEPT, METRICS, Finding, Study, Tried, in_words

COLOURS = 8
PER_CENT = ("fair_share", "loss")


def report(
    study: Study, tried: Sequence[Tried], found: Sequence[Finding], folder: Path, command: str = ""
) -> Report:
    """The report of a search.

    Args:
        study: what was searched.
        tried: every network of the search, in order.
        found: what is kept.
        folder: of the scenario files.
        command: what the user typed.
    """
    wanted = f"regret above that of {study.against.label}" if study.against else "regret"
    lead = (
        "Regret is −ln fair share + ln RTT over ideal: 0 for an omniscient flow, which sends at "
        f"the link's rate and never waits; a share below {100 * SHARE_FLOOR:g} % is cut. Values "
        "that are not named are plain: each network was simplified as long as "
        f"{100 * KEPT:g} % of the regret stayed. The numbers are of seed 1; the last column has "
        "the mean and the range of seeds 1 to 4."
    )
    whole = findings(study, found, folder, commands=True)
    return Report(
        kind="Stress",
        title=f"Where {study.scheme.label} does worst",
        about=f"A search over networks for the largest {wanted}. {study.space.about}",
        facts={
            "networks tried": str(len(tried)),
            "scenarios kept": str(len(found)),
            f"largest {wanted}": significant(found[0].tried.value, 3) if found else "none",
        },
        sections=[
            Section(
                "worst",
                "The worst networks",
                lead,
                [
                    Only(findings(study, found, folder), ("html", "terminal")),
                    Only(whole, ("markdown",)),
                ],
            ),
            Section(
                "files",
                "Scenario files",
                "A command prints the numbers of its line.",
                [_files(study, found, folder)],
            ),
            Section(
                "search",
                "How the search went",
                "A dot is a network, in the order in which they were tried; a tooltip "
                "describes it.",
                [_progress(study, tried, wanted)],
            ),
            Section("families", "Kinds of networks", "", [on_page(_families(tried, wanted))]),
        ],
        command=command,
    )


def _files(study: Study, found: Sequence[Finding], folder: Path) -> Markup:
    lines = [command(study, own, folder) for own in found]
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


def _families(tried: Sequence[Tried], wanted: str) -> Sheet:
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
    return Sheet("", (Head("kind"),), heads, tuple(lines))


def findings(
    study: Study, found: Sequence[Finding], folder: Path, *, commands: bool = False
) -> Sheet:
    """A line per kept network, the worst first.

    Args:
        study: what was searched.
        found: in order.
        folder: of the scenario files.
        commands: whether the command that repeats a line stands in it.
    """
    title = f"where {study.scheme.label} does worst"
    if study.against:
        title = f"where {study.scheme.label} does worse than {study.against.label}"
    lines = [
        Line(
            (Part(own.name), Part(in_words(own.tried.network))),
            (*_numbers(study, own), *([cell(f"`{command(study, own, folder)}`")] * commands)),
        )
        for own in found
    ]
    heads = [_head(key) for key in (*([GAP] * bool(study.against)), *METRICS)]
    heads.append(Head("four seeds", "", "mean and range of the first number over seeds 1 to 4"))
    heads += [Head("command")] * commands
    names = (Head("scenario"), Head("what is not plain"))
    return Sheet(title, names, tuple(heads), tuple(lines))


def kept_file(own: Finding, folder: Path) -> Path:
    """The scenario file of a finding."""
    return folder / f"{file_name(own.name)}.toml"


def command(study: Study, own: Finding, folder: Path) -> str:
    """What prints the same numbers."""
    return shlex.join(["ackademy", "run", str(kept_file(own, folder))])


def about(study: Study, own: Finding, file: Path) -> str:
    """The first lines of a kept file."""
    name, tried = study.scheme.label, own.tried
    ratio = tried.own.rtt_over_ideal
    at = (
        "without a round-trip sample"
        if math.isnan(ratio)
        else f"at {ratio:.2f} times the ideal RTT"
    )
    lines = [
        f"{name} has a regret of {tried.own.regret:.2f} here: "
        f"{100 * tried.own.fair_share:.1f} % of its fair share {at}.",
    ]
    if study.against and tried.other:
        lines.append(f"{study.against.label} has one of {tried.other.regret:.2f}.")
    lines.append(f"Not plain: {in_words(tried.network)}.")
    lines.append(f"Same numbers: {shlex.join(['ackademy', 'run', str(file)])}")
    return "".join(f"# {' '.join(line.splitlines())}\n" for line in lines)


def described(study: Study, own: Finding, folder: Path) -> dict[str, object]:
    """A finding for programs."""
    network = own.tried.network
    pairs = zip(network.family.dimensions, network.settings, strict=True)
    return {
        "scenario": own.name,
        "file": str(kept_file(own, folder)),
        "command": command(study, own, folder),
        "family": network.family.name,
        "set": {dimension.path: value for dimension, value in pairs if value is not None},
        "value": own.tried.value,
        "value_by_seed": list(own.tried.values),
        "value_before": own.found.value,
    }


def _numbers(study: Study, own: Finding) -> list[Cell]:
    shown = [number(own.tried.values[0])] if study.against else []
    for key, field in METRICS.items():
        value = float(getattr(own.tried.own, field))
        shown.append(number(100.0 * value if key in PER_CENT else value))
    low, high = min(own.tried.values), max(own.tried.values)
    mean = Part(f"{own.tried.value:.2f}")
    return [*shown, Cell((mean, Part(f"{low:.2f} – {high:.2f}", "dim")), own.tried.value)]


def _head(metric: str) -> Head:
    found = head_of(metric)
    return found._replace(unit="%") if metric in PER_CENT else found


def worst(found: Sequence[tuple[str, Sequence[Finding]]], budget: int) -> Sheet:
    """The worst network that a search found for each scheme, the smallest regret there first.

    Args:
        found: by scheme, its findings, the worst first; none where no network has any regret.
        budget: networks that the search ran for each.
    """
    heads = (
        Head("regret", "nats", "−ln share + ln(RTT over ideal), mean over four seeds"),
        head_of("fair_share"),
        head_of("rtt_over_ideal"),
        Head("loss"),
        Head("family"),
        Head("network", about="what differs from the family's plain network"),
        Head("kept", about="networks that are kept as scenario files"),
    )
    ordered = sorted(found, key=lambda own: own[1][0].tried.value if own[1] else 0.0)
    lines = tuple(_line(name, findings) for name, findings in ordered)
    title = f"worst case of {budget} searched networks each"
    return Sheet(title, (Head("scheme"),), heads, lines)


def _line(name: str, findings: Sequence[Finding]) -> Line:
    if not findings:
        return Line((Part(name),), (number(0.0), *(cell(NONE) for _ in range(5)), cell("0", 0.0)))
    tried = findings[0].tried
    return Line(
        (Part(name),),
        (
            number(tried.value),
            number(tried.own.fair_share),
            number(tried.own.rtt_over_ideal),
            number(tried.own.loss_ratio),
            cell(tried.network.family.name),
            cell(in_words(tried.network)),
            cell(str(len(findings)), len(findings)),
        ),
    )
