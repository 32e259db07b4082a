"""The figure at the head of README.md: its numbers, its labels, its size, its words."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.dom import minidom

import benchmark_table
import front_figure
from ackademy import _core
from front_figure import LEFT, RIGHT, WIDTH, Box

PAGE = Path(__file__).parents[1] / "docs" / "results" / "benchmark.md"


def drawn(tag: str) -> list[minidom.Element]:
    return [*minidom.parseString(front_figure.figure()).getElementsByTagName(tag)]


def labels() -> list[tuple[str, Box]]:
    """Labels of marks, with what they cover."""
    found = []
    for node in drawn("text"):
        classes = node.getAttribute("class").split()
        if classes[-1:] == ["l"]:
            text = str(node.firstChild.nodeValue)  # type: ignore[union-attr]
            x, y = (float(node.getAttribute(name)) for name in "xy")
            wide = len(text) * (front_figure.BOLD if classes[0] == "b" else front_figure.PLAIN)
            left = x - {"s": 0.0, "m": wide / 2.0, "e": wide}[classes[1]]
            found.append((text, Box(left, y - 11.0, left + wide, y + 3.0)))
    return found


def test_the_figure_and_its_words_are_those_of_the_table() -> None:
    assert front_figure.FIGURE.read_text(encoding="utf-8") == front_figure.figure()
    for page in front_figure.PAGES:
        told = [own[1] for own in front_figure.IMAGE.finditer(page.read_text(encoding="utf-8"))]
        assert told == [front_figure.alt()]


def test_the_table_has_every_shipped_scheme_of_one_flow() -> None:
    listed = [row["entry"] for row in front_figure.rows()]
    names = benchmark_table.names()
    assert sorted(listed) == sorted(map(benchmark_table.shown, names))
    assert len({row["program"] for row in front_figure.rows()}) == 1
    text = PAGE.read_text(encoding="utf-8")
    for own in _core.controllers():
        needs = [param["name"] for param in own["params"] if param["default"] is None]
        if own["scope"] == "subflow" and not needs and own["name"] not in names:
            assert f"`{own['name']}`" in text, "the page says what is left out"


def test_every_mark_is_inside_its_panel() -> None:
    circles = drawn("circle")
    assert len(circles) == 2 * len(front_figure.rows())
    for circle in circles:
        assert LEFT <= float(circle.getAttribute("cx")) <= WIDTH - RIGHT


def test_every_entry_of_a_front_has_a_label_and_no_label_covers_another() -> None:
    found = labels()
    names = [name for name, _ in found]
    for panel in front_figure.panels():
        for dot in panel.dots:
            on_fronts = sum(
                one.is_front
                for own in front_figure.panels()
                for one in own.dots
                if one.name == dot.name
            )
            assert names.count(dot.name) >= on_fronts
    assert set(front_figure.KNOWN) <= set(names)
    boxes = [box for _, box in found]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))


def test_an_entry_on_a_front_is_not_beaten_in_its_panel() -> None:
    for panel in front_figure.panels():
        front = [dot for dot in panel.dots if dot.is_front]
        assert front
        for dot, other in itertools.product(front, panel.dots):
            assert not (other.across < dot.across and other.up > dot.up)


def test_no_text_is_below_thirteen_pixels_on_a_phone_of_390() -> None:
    assert WIDTH <= 400
    sizes = re.findall(r"font(?:-size)?: (\d+)px", front_figure.STYLE)
    assert min(map(int, sizes)) >= 13
