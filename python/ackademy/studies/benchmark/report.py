"""Pages of the benchmark: of one entry, and of a table of entries."""

from __future__ import annotations

import csv as csv_module
import io
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import colour_keys, hit, legend, panel
from ackademy.render.numbers import significant, with_interval
from ackademy.render.report import Item, Only, Report, Section, in_terminal
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, goodness, shaded
from ackademy.stats.intervals import Interval
from ackademy.studies.benchmark.entries import VERSION, classes
from ackademy.studies.benchmark.study import (
    BESIDE,
    NUMBERS,
    Number,
    Result,
)

COLOURS = 7
REFERENCE = "cubic"
BRIEF = ("wins", "use", "wait", "jain", "share_cubic", "share_bbr3", "harm", "short")
"""what a terminal has of a table"""
PLANES: Mapping[str, tuple[str, str, str]] = {
    "alone": ("wait", "use", "part of the link that is used"),
    "beside CUBIC": ("beside_wait", "share_cubic", "part of what both flows get"),
    "beside BBRv3": ("beside_wait", "share_bbr3", "part of what both flows get"),
    "dual queue": ("l4s_wait", "l4s_share", "part of what both flows get"),
}
"""by panel: numbers to the right and upwards, and how the axis upwards is called"""
WAIT_FLOOR = 0.01
"""round trips below which a wait is drawn there: the axis is logarithmic"""
BY_KEY: Mapping[str, Number] = {number.key: number for number in NUMBERS}
ABOUT = (
    "The networks follow from the entry: their seed is SHA-256 over the benchmark's version and "
    "the digest of what decides. A changed entry meets other networks, so an entry cannot have "
    "been tuned to those that it meets. The others run on the same networks with the same seeds."
)
HEADLINE = (
    "Means and medians over networks, each with its 95 % interval. “Dominated” and “power wins” "
    "depend on who else is in the table."
)
PLANES_LEAD = "Medians over networks, with their 95 % intervals."
DIFFERENCES = (
    "Mean over networks of the entry's value minus the other's on the same network, with its 95 % "
    "interval. Green: better, red: worse, where the interval excludes 0."
)


def of_entry(found: Result, command: str) -> Report:
    """The page of an entry."""
    wins = found.estimate(NUMBERS[0])
    shown = [(name, found, name) for name in found.schemes]
    return Report(
        kind="Benchmark",
        title=found.title,
        about=ABOUT,
        facts={
            "networks": str(len(found.networks)),
            "of the networks without others: power wins": f"{100 * wins.value:.0f} %",
            "digest of the entry": found.digest[:12],
            "version of the benchmark": VERSION,
        },
        sections=[
            Section("headline", "Headline", HEADLINE, [_brief(found), _whole(_headline(found))]),
            Section("differences", "Minus each other", DIFFERENCES, [_whole(_differences(found))]),
            Section("planes", "Share against wait", PLANES_LEAD, [_planes(shown)]),
            Section("kinds", "By kind of networks", "Means, without intervals.", _kinds(found)),
        ],
        command=command,
    )


def of_table(results: Sequence[Result], command: str) -> Report:
    """The page of several entries."""
    lead = (
        "Every entry met networks of its own. So entries compare through CUBIC: each number is the "
        "entry's minus CUBIC's on the same networks, a mean with its 95 % interval."
    )
    shown = [(own.title, own, own.name) for own in results]
    return Report(
        kind="Benchmark",
        title=f"{len(results)} entries",
        about=ABOUT,
        sections=[
            Section(
                "entries",
                "Entries",
                HEADLINE,
                [_whole(_entries(results, fronts(results))), _short(results)],
            ),
            Section("planes", "Share against wait", PLANES_LEAD, [_planes(shown)]),
            Section("paired", "Minus CUBIC", lead, [_whole(_paired(results))]),
            Section("what", "What the numbers are", "", [_whole(_definitions())]),
        ],
        command=command,
    )


def fronts(results: Sequence[Result]) -> dict[str, set[int]]:
    """Places of the entries on the two Pareto fronts, by the heading of their marks."""
    return {"front, alone": _front(results, _alone), "front, beside": _front(results, _beside)}


def csv_lines(results: Sequence[Result]) -> str:
    """One line per entry: its numbers, and their differences from CUBIC's."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    keys = [number.key for number in NUMBERS]
    head = [own for key in keys for own in (key, f"{key}_low", f"{key}_high", f"{key}_minus_cubic")]
    writer.writerow(["entry", "digest", "benchmark", "marks", "networks", *head])
    for own in results:
        cells: list[str] = []
        for number in NUMBERS:
            value = own.estimate(number)
            apart = own.difference(number, REFERENCE)
            numbers = (value.value, value.low, value.high, apart.value)
            cells += ["" if np.isnan(one) else f"{one:.6g}" for one in numbers]
        marks = " ".join(own.marks)
        writer.writerow([own.name, own.digest, VERSION, marks, len(own.networks), *cells])
    return out.getvalue()


def _whole(own: Sheet) -> Only:
    """What is too wide for a terminal."""
    return Only(own, ("html", "markdown"))


def _brief(found: Result) -> Only:
    """The headline for a terminal: the entry with intervals, the others without."""
    first, *others = found.schemes
    lines = []
    for number in NUMBERS:
        own = found.estimate(number, first).times(number.factor)
        cells = [Cell((Part(with_interval(own, 3)),))]
        for name in others:
            value = number.factor * found.estimate(number, name).value
            cells.append(Cell((Part(significant(value, 3)),)))
        lines.append(_line(number, cells))
    heads = tuple(Head(name) for name in found.schemes)
    return in_terminal(Sheet(found.title, (Head("number"),), heads, tuple(lines), "panel"))


def _headline(found: Result) -> Sheet:
    schemes = found.schemes
    lines = []
    for number in NUMBERS:
        values = [found.estimate(number, name) for name in schemes]
        lines.append(_line(number, _shaded(number, values)))
    heads = tuple(Head(name) for name in schemes)
    return Sheet("headline", (Head("number"),), heads, tuple(lines), "panel")


def _differences(found: Result) -> Sheet:
    _, *others = found.schemes
    lines = []
    for number in NUMBERS:
        apart = [found.difference(number, name) for name in others]
        lines.append(_line(number, [_signed(number, own) for own in apart]))
    heads = tuple(Head(f"minus {name}") for name in others)
    return Sheet("minus each other", (Head("number"),), heads, tuple(lines), "panel")


def _line(number: Number, cells: Sequence[Cell]) -> Line:
    unit = f", {number.unit}" if number.unit else ""
    arrow = "↓" if number.lower_is_better else "↑" if "share" not in number.key else ""
    return Line((Part(f"{number.label}{unit} {arrow}".rstrip()),), tuple(cells), _panel(number))


def _panel(number: Number) -> str:
    return classes().get(number.where, number.where)


def _shaded(number: Number, values: Sequence[Interval]) -> list[Cell]:
    """Cells of one number; a share has no better direction."""
    points = [own.value for own in values]
    cells = []
    for own in values:
        part = goodness(own.value, points, lower_is_better=number.lower_is_better)
        shade = "" if "share" in number.key else shaded(part)
        text = with_interval(own.times(number.factor), 3)
        cells.append(Cell((Part(text),), own.value, shade=shade))
    return cells


def _signed(number: Number, own: Interval) -> Cell:
    """A difference, in green or red where its interval excludes 0."""
    shade = ""
    if (own.low > 0.0 or own.high < 0.0) and "share" not in number.key:
        shade = shaded(float((own.value < 0.0) == number.lower_is_better))
    text = with_interval(own.times(number.factor), 3)
    return Cell((Part(text),), own.value, shade=shade)


def _planes(found: Sequence[tuple[str, Result, str]]) -> Item:
    """A dot for each scheme at its medians, with their intervals.

    Args:
        found: name in the key, result, and scheme of it.
    """
    colours = {name: 1 + i % COLOURS for i, (name, _, _) in enumerate(found)}
    panels = []
    for title, (wait, share, axis) in PLANES.items():
        dots = [
            (name, own.estimate(BY_KEY[wait], scheme), own.estimate(BY_KEY[share], scheme))
            for name, own, scheme in found
        ]
        known = [dot for dot in dots if math.isfinite(dot[1].value + dot[2].value)]
        panels += [_plane(title, axis, known, colours)] if known else []
    key = legend(colour_keys(colours.items()))
    return join((key, element("div", join(panels), class_="panels")))


def _plane(
    title: str,
    axis: str,
    dots: Sequence[tuple[str, Interval, Interval]],
    colours: Mapping[str, int],
) -> Markup:
    ends = [max(end, WAIT_FLOOR) for _, wait, _ in dots for end in (wait.low, wait.high)]
    across = Axis(min(ends) / 1.2, max(ends) * 1.2, "p95 wait, round trips", is_log=True)
    frame = Frame(across, Axis(0.0, 1.03, axis))
    content = []
    for name, wait, share in dots:
        x, y = np.array([max(wait.value, WAIT_FLOOR)]), np.array([share.value])
        wide = np.maximum([wait.low, wait.high], WAIT_FLOOR)
        bars = frame.line(wide, np.repeat(y, 2)) + frame.line(
            np.repeat(x, 2), np.array([share.low, share.high])
        )
        at = frame.dots(x, y)
        tip = f"{name}\n{significant(100 * share.value, 3)} %, {significant(wait.value, 3)} RTT"
        content.append(
            element(
                "g",
                element("path", class_="oval", d=bars),
                element("path", class_="halo", d=at),
                element("path", class_="centre", d=at),
                hit(at, tip),
                class_=f"s{colours[name]}",
            )
        )
    names = ", ".join(name for name, _, _ in dots)
    drawing = frame.draw(content, label=f"{axis} against p95 wait, {title}: {names}")
    return panel(title, drawing, hint="↖ better")


def _kinds(found: Result) -> list[Item]:
    shown = (
        ("use", "use, %", 100.0),
        ("wait", "p95 wait", 1.0),
        ("loss", "loss in queues, %", 100.0),
    )
    return [_whole(_by_kind(found, *one)) for one in shown]


def _by_kind(found: Result, key: str, title: str, factor: float) -> Sheet:
    lines = []
    for kind in dict.fromkeys(one.kind for one in found.networks):
        own = [one for one in found.networks if one.kind == kind]
        means = [float(np.mean([one.values[name][key] for one in own])) for name in found.schemes]
        cells = tuple(Cell((Part(significant(factor * value, 3)),), value) for value in means)
        lines.append(Line((Part(kind),), cells, own[0].panel))
    heads = tuple(Head(name) for name in found.schemes)
    return Sheet(title, (Head("kind"),), heads, tuple(lines), "panel")


def _entries(results: Sequence[Result], marked: Mapping[str, set[int]]) -> Sheet:
    """Values of every entry on its own networks."""
    lines = []
    for index, own in enumerate(results):
        cells = [Cell((Part("●" if index in front else ""),)) for front in marked.values()]
        cells += [
            Cell((Part(with_interval(value.times(number.factor), 3)),), value.value)
            for number in NUMBERS
            for value in [own.estimate(number)]
        ]
        lines.append(_entry_line(own, cells))
    heads = (*(Head(name) for name in marked), *map(_head, NUMBERS))
    return Sheet("entries", (Head("entry"),), heads, tuple(lines))


def _short(results: Sequence[Result]) -> Only:
    """Some numbers of every entry, for a terminal."""
    shown = [number for number in NUMBERS if number.key in BRIEF]
    lines = []
    for own in results:
        values = [number.factor * own.estimate(number).value for number in shown]
        cells = tuple(Cell((Part(significant(value, 3)),), value) for value in values)
        lines.append(Line((Part(own.title),), cells))
    sheet = Sheet("entries", (Head("entry"),), tuple(map(_head, shown)), tuple(lines))
    return in_terminal(sheet)


def _paired(results: Sequence[Result]) -> Sheet:
    lines = [
        _entry_line(
            own,
            [_signed(number, own.difference(number, REFERENCE)) for number in NUMBERS],
        )
        for own in results
        if own.name != REFERENCE
    ]
    return Sheet("minus CUBIC", (Head("entry"),), tuple(map(_head, NUMBERS)), tuple(lines))


def _entry_line(own: Result, cells: Sequence[Cell]) -> Line:
    signed = f", signed by {own.signer}" if own.signer else ""
    note = f"{own.digest[:12]}, core {own.core[:8]}{signed}"
    return Line((Part(own.title),), tuple(cells), note=note)


def _head(number: Number) -> Head:
    return Head(number.label, number.unit, number.about)


def _definitions() -> Sheet:
    lines = tuple(
        Line((Part(number.label),), (Cell((Part(number.about),)), Cell((Part(number.statistic),))))
        for number in NUMBERS
    )
    return Sheet("numbers", (Head("number"),), (Head("definition"), Head("over networks")), lines)


def _front(results: Sequence[Result], point: Callable[[Result], tuple[float, float]]) -> set[int]:
    """The entries that no other one is at least as good as in both and better than in one."""
    points = [point(own) for own in results]

    def is_beaten(own: tuple[float, float]) -> bool:
        return any(o[0] >= own[0] and o[1] >= own[1] and o != own for o in points)

    return {i for i, own in enumerate(points) if not is_beaten(own) and not np.isnan(own).any()}


def _alone(own: Result) -> tuple[float, float]:
    """Use and minus wait."""
    return own.estimate(BY_KEY["use"]).value, -own.estimate(BY_KEY["wait"]).value


def _beside(own: Result) -> tuple[float, float]:
    """The smallest share beside another, at most half, and minus the harm."""
    shares = [own.estimate(BY_KEY[f"share_{other}"]).value for other in BESIDE]
    return min(0.5, *shares), -own.estimate(BY_KEY["harm"]).value
