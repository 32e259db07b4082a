"""Reads the charts of a page back from its markup, for files: a page is drawn once.

Pages put ticks and labels around a stretched drawing and take colours from a style sheet. `panels`
gives both as data, so that every chart of every page can be drawn as a file (`render.html.svg`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Literal
from xml.etree.ElementTree import Element, TreeBuilder

from ackademy.render.html.plot import SIDE

Shape = Literal["plane", "wide", "figure", "rows"]
"""of the area: 4 to 3, low and wide, high and wide, or as high as its rows"""
VOID = frozenset({"br", "hr", "input", "meta"})
GROUPS = frozenset({"panel", "strip"})
MARKS = {"ellipse": "oval"}
"""class of a mark in a drawing by that of its key in a legend, where the two differ"""


@dataclass(frozen=True, slots=True)
class Path:
    """A path on the grid of a drawing, with its classes and those of what it is in."""

    data: str
    classes: tuple[str, ...]
    """outermost first"""


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis."""

    part: float
    """of the axis, from its left or upper end"""
    text: str
    is_bold: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One drawing with its axes."""

    shape: Shape
    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend."""

    name: str
    classes: tuple[str, ...]


@dataclass(slots=True)
class Panel:
    """Drawings below one title: what becomes a figure."""

    title: str
    keys: tuple[Key, ...] = ()
    plots: list[Plot] = field(default_factory=list)

    def shown_keys(self) -> tuple[Key, ...]:
        """The entries of the legend whose marks are drawn."""
        drawn = [set(path.classes) for plot in self.plots for path in plot.paths]
        wanted = [(key, {MARKS.get(own, own) for own in key.classes}) for key in self.keys]
        return tuple(key for key, classes in wanted if any(classes <= own for own in drawn))


def panels(markup: str) -> list[Panel]:
    """The charts of a part of a page, in order; those without a drawing are left out."""
    reader = _Reader()
    reader.feed(f"<div>{markup}</div>")
    found: list[Panel] = []
    _walk(reader.tree.close(), (), _Place(None, [()], ""), found)
    return [own for own in found if own.plots]


class _Reader(HTMLParser):
    """Makes a tree of a page's markup."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.tree.end(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        self.tree.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tree.end(tag)

    def handle_data(self, data: str) -> None:
        self.tree.data(data)


@dataclass(frozen=True, slots=True)
class _Place:
    """What surrounds a node."""

    panel: Panel | None
    keys: list[tuple[Key, ...]]
    """the legend above, which holds until the next one; a list of one"""
    title: str
    """of the tab or the panel around"""


def _walk(node: Element, outer: tuple[str, ...], place: _Place, found: list[Panel]) -> None:
    """Append the charts inside a node, which is within those classes, to `found`."""
    own = _classes(node)
    classes = outer + own
    if "legend" in own:
        place.keys[0] = tuple(Key(_text(item), _key_of(item)) for item in node.iter("li"))
    elif GROUPS & set(own) or node.tag == "article":
        title = ": ".join(filter(None, (place.title, _title(node))))
        place = _Place(Panel(title), list(place.keys), title)
        found += [place.panel] if place.panel else []
        if "forest" in outer and place.panel:
            place.panel.plots.append(_rows(node, classes))
    elif "plot" in own:
        panel = place.panel or Panel(place.title)
        found += [] if place.panel else [panel]
        panel.keys = place.keys[0]
        panel.plots.append(_plot(node, classes))
        return
    labels = [_text(child) for child in node if child.tag == "label" and "tabs" in own]
    strip = ""
    for child in node:
        inner = place
        if "tab" in _classes(child):
            inner = replace(place, title=labels.pop(0))
        _walk(child, classes, inner, found)
        if strip and place.panel and "plot" in _classes(child):
            place.panel.plots[-1] = replace(place.panel.plots[-1], title=strip)
        strip = _text(child) if "strip-title" in _classes(child) else ""


def _plot(node: Element, classes: tuple[str, ...]) -> Plot:
    kinds: tuple[Shape, ...] = ("wide", "figure")
    shape: Shape = next((kind for kind in kinds if kind in classes), "plane")
    labels = {name: "" for name in ("axis-x", "axis-y")}
    ticks: dict[str, list[Tick]] = {"tick-x": [], "tick-y": []}
    paths: list[Path] = []
    for child in node.iter():
        own = _classes(child)
        for name in own:
            if name in labels:
                labels[name] = _text(child)
            elif name in ticks and not (name == "tick-x" and "bare" in classes):
                ticks[name].append(Tick(_percent(child, "left", "top"), _text(child)))
        if child.tag == "svg":
            paths = list(_paths(child, classes))
    return Plot(
        shape, "", labels["axis-x"], labels["axis-y"],
        tuple(ticks["tick-x"]), tuple(ticks["tick-y"]), tuple(paths),
    )  # fmt: skip


def _rows(node: Element, classes: tuple[str, ...]) -> Plot:
    """A column of a forest: a row per mark, groups between them."""
    rows = [child for child in node if {"forest-group", "forest-row"} & set(_classes(child))]
    axis = [child for child in node.iter() if "tick" in _classes(child)]
    ticks = [Tick(_percent(child, "left"), _text(child)) for child in axis]
    rows = [
        row for row in rows if "forest-axis" not in {n for c in row.iter() for n in _classes(c)}
    ]
    names, paths = [], [Path(_across(tick.part), ("grid",)) for tick in ticks]
    for index, row in enumerate(rows):
        down = (index + 0.5) / len(rows)
        is_group = "forest-group" in _classes(row)
        names.append(Tick(down, _text(row) if is_group else _text(row[0]), is_group))
        own = classes + _classes(row)
        for child in row.iter():
            paths += [Path(data, (*own, kind)) for data, kind in _mark(child, down)]
    return Plot("rows", "", "", "", tuple(ticks), tuple(names), tuple(paths))


def _across(part: float) -> str:
    return f"M{SIDE * part:.0f} 0v{SIDE}"


def _mark(node: Element, down: float) -> Iterator[tuple[str, str]]:
    """Path and class of a bar, a dot or an arrow of a forest's row."""
    own, y = _classes(node), f"{SIDE * down:.0f}"
    if "bar" in own:
        left, width = _percent(node, "left"), _percent(node, "width")
        yield f"M{SIDE * left:.0f} {y}L{SIDE * (left + width):.0f} {y}", "bar"
    elif "dot" in own:
        yield f"M{SIDE * _percent(node, 'left'):.0f} {y}h0", "dot"
    elif "beyond" in own:
        tip, back = (SIDE, 985) if "right" in node.get("style", "") else (0, 15)
        high, low = (f"{SIDE * down + side:.0f}" for side in (-6, 6))
        yield f"M{back} {high}L{tip} {y}L{back} {low}Z", "beyond"


def _paths(node: Element, outer: tuple[str, ...]) -> Iterator[Path]:
    """The paths of a drawing but for those that only a pointer finds."""
    for child in node:
        classes = outer + _classes(child)
        if child.tag == "path" and "hit" not in classes and child.get("d"):
            yield Path(child.get("d", ""), classes)
        yield from _paths(child, classes)


def _title(node: Element) -> str:
    """What is bold in the head of a panel, and the unit behind it."""
    heads = [child for child in node if child.tag in ("figcaption", "header")]
    found = [own for head in heads for own in head if own.tag == "b"]
    return " ".join(f"{_text(own)}, {(own.tail or '').strip()}".removesuffix(", ") for own in found)


def _key_of(item: Element) -> tuple[str, ...]:
    mark = next((child for child in item.iter() if "key" in _classes(child)), item)
    return tuple(name for name in _classes(mark) if name != "key")


def _classes(node: Element) -> tuple[str, ...]:
    return tuple(node.get("class", "").split())


def _text(node: Element) -> str:
    """Its words; an index keeps its mark, as in M_e."""
    parts = [node.text or ""]
    for child in node:
        parts += ["_" if child.tag == "sub" else "", _text(child), child.tail or ""]
    return " ".join("".join(parts).split())


def _percent(node: Element, *names: str) -> float:
    """A length of a style as a part."""
    found = re.search(rf"(?:{'|'.join(names)}):(-?[\d.]+)%", node.get("style", ""))
    return float(found[1]) / 100.0 if found else 0.0
