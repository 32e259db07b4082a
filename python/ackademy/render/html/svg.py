"""Charts as one SVG that needs no style sheet: for notebooks and for files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis
from ackademy.stats.formulas import FloatArray

WIDTH, LEFT, RIGHT, ABOVE, BELOW, KEYS = 720, 64, 16, 24, 40, 22
"""of the figure, and around the area of a panel, in pixels; KEYS is the height of the legend"""
COLOURS = ("#0b66c3", "#c44e04", "#08805a", "#8b45b5", "#8f6b00", "#0a7f92", "#c22f6c", "#5b6470")
INK, GRID = "#1b1e23", "#dcdad5"


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one scheme or flow."""

    name: str
    x: FloatArray
    y: FloatArray


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    height: int = 100
    """of the area, pixels"""
    is_dots: bool = False


def figure(panels: Sequence[Panel]) -> str:
    """The panels one below the other; equal names have equal colours."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    down = KEYS if len(names) > 1 else 0
    parts = [_keys(colours)] if down else []
    for panel in panels:
        parts.append(element("g", _panel(panel, colours), transform=f"translate({LEFT} {down})"))
        down += ABOVE + panel.height + BELOW
    drawing = element(
        "svg",
        element("rect", width=WIDTH, height=down, fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {down}",
        width=WIDTH,
        height=down,
        font_family="sans-serif",
        font_size=12,
        fill=INK,
    )
    return f"{drawing}\n"


def _keys(colours: dict[str, str]) -> Markup:
    """The legend, as far as it fits."""
    step = (WIDTH - LEFT - RIGHT) / len(colours)
    keys = []
    for index, (name, colour) in enumerate(colours.items()):
        at, short = LEFT + index * step, max(int(step / 7) - 3, 1)
        keys.append(element("rect", x=f"{at:.0f}", y=6, width=12, height=10, fill=colour))
        keys.append(element("text", name[:short], x=f"{at + 16:.0f}", y=15))
    return join(keys)


def _panel(panel: Panel, colours: dict[str, str]) -> Markup:
    wide, bottom = WIDTH - LEFT - RIGHT, ABOVE + panel.height
    parts = [element("text", panel.title, y=ABOVE - 8, font_weight="bold")]
    for value in panel.y.ticks():
        at = f"{bottom - panel.height * float(panel.y.part(np.array(value))):.1f}"
        parts.append(element("path", d=f"M0 {at}h{wide}", stroke=GRID))
        label = panel.y.tick_label(value)
        parts.append(element("text", label, x=-6, y=at, dy=4, text_anchor="end"))
    for value in panel.x.ticks():
        at = f"{wide * float(panel.x.part(np.array(value))):.1f}"
        label = panel.x.tick_label(value)
        parts.append(element("text", label, x=at, y=bottom + 15, text_anchor="middle"))
    if panel.x.label:
        middle = wide / 2
        parts.append(element("text", panel.x.label, x=middle, y=bottom + 31, text_anchor="middle"))
    parts += [_line(panel, line, colours[line.name]) for line in panel.lines]
    return join(parts)


def _line(panel: Panel, line: Line, colour: str) -> Markup:
    """A polyline with gaps where a value is not finite, or dots."""
    finite = np.isfinite(line.x) & np.isfinite(line.y)
    wide, high = WIDTH - LEFT - RIGHT, panel.height
    across = wide * panel.x.part(np.where(finite, line.x, panel.x.low))
    down = ABOVE + high * (1.0 - panel.y.part(np.where(finite, line.y, panel.y.low)))
    down = np.clip(down, ABOVE, ABOVE + high)
    steps, is_drawn = [], False
    for known, x, y in zip(finite, across, down, strict=True):
        if known:
            mark = "M" if panel.is_dots or not is_drawn else "L"
            steps.append(f"{mark}{x:.1f} {y:.1f}" + ("h0" if panel.is_dots else ""))
        is_drawn = bool(known)
    return element(
        "path",
        d="".join(steps),
        fill="none",
        stroke=colour,
        stroke_width=7 if panel.is_dots else 1.3,
        stroke_linecap="round" if panel.is_dots else None,
        stroke_linejoin="round",
    )
