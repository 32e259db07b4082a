"""One value against another: where two measurements agree, the dot is on the diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import hit, panel
from ackademy.render.numbers import significant

WIDE = 8.0
"""largest over smallest value from which on axes are logarithmic"""


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured twice."""

    name: str
    colour: int
    x: float
    y: float


def scatter(title: str, unit: str, axes: tuple[str, str], points: Sequence[Point]) -> Markup:
    """One panel with equal axes, of these names.

    Logarithmic ones where the values are far apart. Values are finite and not negative.
    """
    values = np.array([(point.x, point.y) for point in points])
    low, high = float(values.min()), float(values.max())
    is_log = low > 0.0 and high > WIDE * low
    if is_log:
        low, high = low / 1.3, high * 1.3
    else:
        room = 0.06 * (high - low) or 0.05 * high or 1.0
        low, high = max(low - room, 0.0), high + room
    ends = np.array([low, high])
    frame = Frame(
        Axis(low, high, f"{axes[0]}, {unit}".rstrip(", "), is_log=is_log),
        Axis(low, high, f"{axes[1]}, {unit}".rstrip(", "), is_log=is_log),
    )
    content = [element("path", class_="diagonal", d=frame.line(ends, ends))]
    content += [_dot(frame, point, unit, axes) for point in points]
    drawing = frame.draw(content, label=f"{title}: {axes[1]} against {axes[0]}")
    return panel(title, drawing)


def _dot(frame: Frame, point: Point, unit: str, axes: tuple[str, str]) -> Markup:
    at = frame.dots(np.array([point.x]), np.array([point.y]))
    tip = (
        f"{point.name}\n{axes[0]} {significant(point.x)} {unit}"
        f"\n{axes[1]} {significant(point.y)} {unit}"
    )
    return element(
        "g",
        element("path", class_="halo", d=at),
        element("path", class_="centre", d=at),
        hit(at, tip),
        class_=f"s{point.colour}",
    )
