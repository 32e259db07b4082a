"""Charts as one SVG without a style sheet, for notebooks and files, on white, in three sizes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ackademy.render.html.charts import Key, Panel, Path, Plot, Tick
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import SIDE

Width: TypeAlias = Literal["screen", "column", "page"]
FONT = "Roboto, Helvetica, Arial, sans-serif"
INK, SOFT, GRID, BAD = "#1b1e23", "#5c636e", "#e0ded9", "#b3361e"
COLOURS = (
    "#5b6470", "#0b66c3", "#c44e04", "#08805a", "#8b45b5",
    "#8f6b00", "#0a7f92", "#c22f6c", "#5a3a1e", "#6f8f1a",
)  # fmt: skip
"""those of the page, by the number of the class"""
LETTER, CUT = 0.56, 0.45
"""mean width of a letter, and what is drawn outside of the axes, in sizes of the font"""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a figure."""

    width: float
    unit: str
    font: float
    columns: int
    """panels side by side at most"""


SIZES: dict[Width, Size] = {
    "screen": Size(720.0, "px", 12.0, 2),
    "column": Size(252.0, "pt", 7.5, 1),
    "page": Size(516.0, "pt", 7.5, 3),
}
"""for a screen, and for one and both columns of a paper (3.5 and 7.2 inches)"""


@dataclass(frozen=True, slots=True)
class Look:
    """How a path is drawn; `C` is the colour of its series."""

    stroke: str = "C"
    width: float = 1.3
    """at a font of 12"""
    fill: str = "none"
    opacity: float = 1.0
    dashes: str = ""


LOOKS = {
    "grid": Look(GRID, 0.8),
    "oval": Look("C", 1.6, "C"),
    "run": Look("C", 4.2, opacity=0.5),
    "halo": Look("#ffffff", 13.0),
    "centre": Look("C", 10.0),
    "dot": Look("C", 9.0),
    "bar": Look("C", 5.0, opacity=0.45),
    "beyond": Look("none", fill="C"),
    "ring": Look("C", 12.0),
    "hole": Look("#ffffff", 7.0),
    "column": Look("none", fill="C", opacity=0.62),
    "whisker": Look(INK, 1.4, opacity=0.75),
    "dashes": Look(INK, 1.4, dashes="7 4"),
    "dotted": Look(BAD, 1.6, dashes="2 3"),
    "diagonal": Look(SOFT, 1.2, dashes="5 4"),
    "stroke": Look("C", 1.8),
    "line": Look("C", 1.3),
    "blob": Look("C", 10.0),
}
"""as style.css has them, by the last class"""
OVAL_OPACITY = 0.13


def figure(panels: Sequence[Panel], width: Width = "screen") -> str:
    """The panels in rows; a legend that all of them have stands above them once."""
    size = SIZES[width]
    legends = {own.shown_keys() for own in panels}
    is_common = len(legends) == 1
    columns = _columns(panels, size)
    gap = 2.0 * size.font
    wide = (size.width - gap * (columns - 1)) / columns
    down, parts = 0.5 * size.font, []
    if is_common:
        down, keys = _legend(next(iter(legends)), size, size.width, down)
        parts.append(keys)
    for first in range(0, len(panels), columns):
        drawn = [_panel(own, size, wide, with_keys=not is_common)
                 for own in panels[first : first + columns]]  # fmt: skip
        for index, (_, content) in enumerate(drawn):
            at = f"translate({_number(index * (wide + gap))} {_number(down)})"
            parts.append(element("g", content, transform=at))
        down += max(high for high, _ in drawn) + size.font
    high = _number(down)
    drawing = element(
        "svg",
        element("rect", width=_number(size.width), height=high, fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_number(size.width)} {high}",
        width=f"{size.width:g}{size.unit}",
        height=f"{high}{size.unit}",
        role="img",
        aria_label=", ".join(own.title for own in panels if own.title) or None,
        font_family=FONT,
        font_size=size.font,
        fill=INK,
    )
    return f"{drawing}\n"


def _columns(panels: Sequence[Panel], size: Size) -> int:
    """How many panels stand side by side."""
    kinds = {plot.shape for own in panels for plot in own.plots}
    most = {"wide": 2, "figure": 1}
    found = min([size.columns, *(most[kind] for kind in kinds if kind in most)])
    if "wide" in kinds and size.unit == "px":
        found = 1
    return max(min(found, len(panels)), 1)


def _panel(panel: Panel, size: Size, wide: float, *, with_keys: bool) -> tuple[float, Markup]:
    """Height and content of a panel."""
    font, down, parts = size.font, 0.0, []
    for line in textwrap.wrap(panel.title, int(wide / font / LETTER / 1.08)):
        down += 1.3 * font
        parts.append(element("text", line, y=_number(down), font_weight="bold"))
    if with_keys:
        down, keys = _legend(panel.shown_keys(), size, wide, down + 0.4 * font)
        parts.append(keys)
    # Plots below each other share the left edge, so that their times do.
    left = max(_left(plot, font) for plot in panel.plots)
    for plot in panel.plots:
        high, content = _plot(plot, size, wide, left)
        parts.append(element("g", content, transform=f"translate(0 {_number(down)})"))
        down += high
    return down, join(parts)


def _left(plot: Plot, font: float) -> float:
    """Room for the labels of the vertical axis."""
    letters = max((len(tick.text) * (1.1 if tick.is_bold else 1.0) for tick in plot.y_ticks
                   if not tick.is_bold), default=0.0)  # fmt: skip
    return (letters * LETTER + 0.9) * font


def _legend(keys: Sequence[Key], size: Size, wide: float, down: float) -> tuple[float, Markup]:
    """The lower end and the entries of a legend, in as many rows as it takes."""
    font, across, parts = size.font, 0.0, []
    for key in keys:
        need = (LETTER * len(key.name) + 3.0) * font
        if across and across + need > wide + font:
            across, down = 0.0, down + 1.5 * font
        parts.append(_key_mark(key, size, across + 0.65 * font, down + 0.75 * font))
        at = _number(across + 1.5 * font)
        parts.append(element("text", key.name, x=at, y=_number(down + 1.1 * font)))
        across += need
    return (down + 2.0 * font if keys else down), join(parts)


def _key_mark(key: Key, size: Size, x: float, y: float) -> Markup:
    """What stands before a name: a dot, a square, a ring, an ellipse or a line."""
    font, classes = size.font, set(key.classes)
    colour = _colour(key.classes)
    if classes & {"dashes", "dotted"}:
        look = LOOKS["dashes" if "dashes" in classes else "dotted"]
        data = f"M{_number(x - 0.6 * font)} {_number(y)}h{_number(1.2 * font)}"
        return element("path", d=data, stroke=look.stroke, stroke_width=_number(font / 8.0),
                       stroke_dasharray=_scaled(look.dashes, font / 12.0))  # fmt: skip
    fill = "#ffffff" if classes & {"hollow", "ring", "ellipse"} else colour
    if "square" in classes:
        side, half = _number(0.7 * font), 0.35 * font
        return element("rect", x=_number(x - half), y=_number(y - half), width=side, height=side,
                       fill=fill, stroke=colour, stroke_width=_number(font / 8.0))  # fmt: skip
    across = 0.55 if "ellipse" in classes else 0.36
    return element("ellipse", cx=_number(x), cy=_number(y), rx=_number(across * font),
                   ry=_number(0.36 * font), fill=fill, stroke=colour,
                   stroke_width=_number(font / 8.0))  # fmt: skip


def _plot(plot: Plot, size: Size, wide: float, left: float) -> tuple[float, Markup]:
    """Height and content of one drawing with its axes."""
    font = size.font
    area = max(wide - left - 0.9 * font, 4.0 * font)
    high = _height(plot, area, font)
    top, parts = 0.7 * font, []
    for label, colour in ((plot.title, INK), (plot.y_label, SOFT)):
        if label:
            parts.append(element("text", label, y=_number(top + 0.8 * font), fill=colour))
            top += 1.4 * font
    for tick in plot.y_ticks:
        parts.append(_y_tick(tick, left, top + high * tick.part, font))
    bottom = top + high
    for tick in plot.x_ticks:
        at = _number(left + area * tick.part)
        parts.append(element("text", tick.text, x=at, y=_number(bottom + 1.2 * font),
                             text_anchor="middle", fill=SOFT))  # fmt: skip
    bottom += 1.5 * font if plot.x_ticks else 0.0
    if plot.x_label:
        middle = _number(left + 0.5 * area)
        parts.append(element("text", plot.x_label, x=middle, y=_number(bottom + font),
                             text_anchor="middle", fill=SOFT))  # fmt: skip
        bottom += 1.4 * font
    paths = [_path(path, area / SIDE, high / SIDE, font / 12.0) for path in plot.paths]
    # Cut off a little outside of the axes, so that marks on them are whole.
    room = CUT * font
    parts.append(
        element(
            "svg",
            element("g", *paths, transform=f"translate({_number(room)} {_number(room)})"),
            x=_number(left - room),
            y=_number(top - room),
            width=_number(area + 2.0 * room),
            height=_number(high + 2.0 * room),
            overflow="hidden",
        )
    )
    return bottom + 0.3 * font, join(parts)


def _height(plot: Plot, area: float, font: float) -> float:
    if plot.shape == "rows":
        return 1.7 * font * len(plot.y_ticks)
    if plot.shape == "plane":
        return min(0.75 * area, 30.0 * font)
    return (7.75 if plot.shape == "wide" else 20.0) * font


def _y_tick(tick: Tick, left: float, y: float, font: float) -> Markup:
    at = _number(y + 0.35 * font)
    if tick.is_bold:
        return element("text", tick.text, y=at, font_weight="bold")
    across = _number(left - 0.4 * font)
    return element("text", tick.text, x=across, y=at, text_anchor="end", fill=SOFT)


def _path(path: Path, across: float, down: float, scale: float) -> Markup:
    """A path of the grid in the units of the figure; dots are discs."""
    kind = next((name for name in reversed(path.classes) if name in LOOKS), "line")
    look, colour = LOOKS[kind], _colour(path.classes)
    data = _placed(path.data, across, down)
    opacity = look.opacity * (0.4 if "faint" in path.classes else 1.0)
    if re.fullmatch(r"(?:M[^MLhvZ]+h0)+", path.data):
        discs = _discs(data, 0.5 * look.width * scale, is_square="square" in path.classes)
        fill = colour if look.stroke == "C" else look.stroke
        return element("path", d=discs, fill=fill, fill_opacity=_part(opacity))
    is_mark = kind == "whisker" and "mark" in path.classes
    stroke = colour if look.stroke == "C" or is_mark else look.stroke
    return element(
        "path",
        d=data,
        fill=colour if look.fill == "C" else look.fill,
        fill_opacity=_part(OVAL_OPACITY if kind == "oval" else opacity),
        stroke=None if look.stroke == "none" else stroke,
        stroke_opacity=_part(opacity),
        stroke_width=_number(look.width * scale),
        stroke_linejoin="round",
        stroke_dasharray=_scaled(look.dashes, scale) if look.dashes else None,
    )


def _placed(data: str, across: float, down: float) -> str:
    """Path data of the grid, scaled."""
    steps = []
    for command, numbers in re.findall(r"([MLhvZ])([^MLhvZ]*)", data):
        values = [float(one) for one in numbers.split()]
        scales = {"h": (across,), "v": (down,)}.get(command, (across, down))
        moved = (_number(v * s) for v, s in zip(values, scales, strict=False))
        steps.append(command + " ".join(moved))
    return "".join(steps)


def _discs(data: str, radius: float, *, is_square: bool) -> str:
    """Discs, or squares, at the points of path data."""
    r, two = _number(radius), _number(2.0 * radius)
    shapes = []
    for x, y in re.findall(r"M(\S+) (\S+?)h0", data):
        left, top = _number(float(x) - radius), _number(float(y) - radius)
        if is_square:
            shapes.append(f"M{left} {top}h{two}v{two}h-{two}z")
        else:
            shapes.append(f"M{left} {y}a{r} {r} 0 1 0 {two} 0a{r} {r} 0 1 0 -{two} 0z")
    return "".join(shapes)


def _colour(classes: Sequence[str]) -> str:
    """The colour of the innermost class that names one."""
    numbered = [int(name[1:]) for name in classes if re.fullmatch(r"s\d", name)]
    return COLOURS[numbered[-1]] if numbered else SOFT


def _scaled(dashes: str, scale: float) -> str:
    return " ".join(_number(scale * float(one)) for one in dashes.split())


def _part(opacity: float) -> str | None:
    return None if opacity >= 1.0 else f"{opacity:.2g}"


def _number(value: float) -> str:
    """Short: two decimals at most."""
    if not math.isfinite(value):
        return "0"
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"
