"""The terminal recording of README.md: true output, small, and a still where nothing moves."""

from __future__ import annotations

import re
from pathlib import Path
from xml.dom import minidom

import terminal_svg


def drawing() -> minidom.Document:
    return minidom.parse(str(terminal_svg.FIGURE))


def text_of(node: minidom.Element) -> list[str]:
    """The lines below an element."""
    return [
        "".join(one.toxml() for one in text.childNodes)
        for text in node.getElementsByTagName("text")
    ]


def plain(markup: str) -> str:
    return re.sub(r"<[^>]+>", "", markup).replace("&lt;", "<").replace("&gt;", ">")


def test_the_recording_has_every_command_and_no_more_than_sixty_kilobytes() -> None:
    assert terminal_svg.FIGURE.stat().st_size <= 60_000
    root = drawing().documentElement
    assert root is not None
    lines = [plain(one) for one in text_of(root)]
    for command in (one for scene in terminal_svg.SCENES for one in scene):
        assert command in lines
    assert not any("/tmp" in one or "Traceback" in one for one in lines)


def test_without_animations_one_scene_is_shown_with_its_output() -> None:
    scenes = [
        node
        for node in drawing().getElementsByTagName("g")
        if "scene" in node.getAttribute("class")
    ]
    assert len(scenes) == len(terminal_svg.SCENES)
    (still,) = [node for node in scenes if "still" in node.getAttribute("class").split()]
    assert len(text_of(still)) > 8
    rules = terminal_svg.FIGURE.read_text(encoding="utf-8").split("</style>")[0]
    before, _, animated = rules.partition("@media (prefers-reduced-motion: no-preference)")
    assert "animation" not in before
    assert "animation" in animated


def test_the_first_command_still_prints_what_the_recording_shows(tmp_path: Path) -> None:
    (first,) = terminal_svg.SCENES[0]
    printed = [own.plain for own in terminal_svg.output(first, tmp_path)]
    (shown,) = [node for node in drawing().getElementsByTagName("g")
                if node.getAttribute("class") == "s0-0o"]  # fmt: skip
    assert [plain(one) for one in text_of(shown)] == printed
