"""The figure at the head of README.md: its numbers, its labels, its size."""

from __future__ import annotations

import itertools
import re
from xml.dom import minidom

import front_figure


def test_the_figure_shows_the_numbers_of_the_table() -> None:
    assert len(front_figure.rows()) == len(front_figure.USES) * len(front_figure.SCHEMES)
    assert front_figure.FIGURE.read_text(encoding="utf-8") == front_figure.figure()


def test_every_mark_is_inside_its_panel_and_every_scheme_has_a_label() -> None:
    drawing = minidom.parseString(front_figure.figure())
    circles = drawing.getElementsByTagName("circle")
    assert len(circles) == len(front_figure.rows())
    for circle in circles:
        assert front_figure.LEFT <= float(circle.getAttribute("cx")) <= front_figure.WIDTH
    words = [str(node.firstChild.nodeValue) for node in drawing.getElementsByTagName("text")]  # type: ignore[union-attr]
    named = [name for text in words for name in text.split(", ")]
    for name in front_figure.SCHEMES.values():
        assert named.count(name) == len(front_figure.USES)


def test_no_label_covers_another_label() -> None:
    drawing = minidom.parseString(front_figure.figure())
    boxes = []
    for node in drawing.getElementsByTagName("text"):
        classes = node.getAttribute("class").split()
        if classes[0] == "b" and len(classes) == 3:
            text = str(node.firstChild.nodeValue)  # type: ignore[union-attr]
            x, y = (float(node.getAttribute(name)) for name in "xy")
            wide = front_figure.LETTER * len(text)
            left = x - {"s": 0.0, "m": wide / 2.0, "e": wide}[classes[1]]
            boxes.append(front_figure.Box(left, y - 12.0, left + wide, y + 2.0))
    assert len(boxes) >= len(front_figure.USES)
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))


def test_no_text_is_below_thirteen_pixels_on_a_phone_of_390() -> None:
    assert front_figure.WIDTH <= 400
    sizes = re.findall(r"font(?:-size)?: (\d+)px", front_figure.STYLE)
    assert min(map(int, sizes)) >= 13
