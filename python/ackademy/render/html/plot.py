"""The frame of a chart: axes, grid, and from data to the 1000 by 1000 grid of a stretched SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.numbers import log_ticks, plain, ticks
from ackademy.stats.formulas import FloatArray

SIDE = 1000


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of data and how it is called."""

    low: float
    high: float
    label: str = ""
    n_ticks: int = 5
    is_log: bool = False
    """equal steps for equal factors; both ends and all values are above 0"""
    names: tuple[str, ...] = ()
    """of categories, each one wide; the axis then goes from 0 to their number"""

    def part(self, values: FloatArray) -> FloatArray:
        """Where values lie between the ends, as a part of the axis; in the middle of equal ends."""
        inside, low, high = np.asarray(values, np.float64), self.low, self.high
        if self.is_log:
            inside, low, high = np.log10(inside), math.log10(low), math.log10(high)
        return (inside - low) / (high - low) if high != low else 0.0 * inside + 0.5

    def ticks(self) -> list[float]:
        """Round numbers on the axis; the middles of categories."""
        if self.names:
            return [index + 0.5 for index in range(len(self.names))]
        if self.is_log:
            return log_ticks(self.low, self.high)
        return ticks(self.low, self.high, self.n_ticks)

    def tick_label(self, value: float) -> str:
        """What stands at a tick."""
        return self.names[int(value)] if self.names else plain(value)


@dataclass(frozen=True, slots=True)
class Frame:
    """Two axes; `x` runs to the right and `y` upwards."""

    x: Axis
    y: Axis

    def points(self, x: FloatArray, y: FloatArray) -> list[tuple[int, int]]:
        """Whole grid coordinates; what lies far outside is cut off a little beyond the frame."""
        across = np.clip(self.x.part(x) * SIDE, -SIDE, 2 * SIDE)
        down = np.clip((1.0 - self.y.part(y)) * SIDE, -SIDE, 2 * SIDE)
        return [(round(float(a)), round(float(b))) for a, b in zip(across, down, strict=True)]

    def line(self, x: FloatArray, y: FloatArray, *, closed: bool = False) -> str:
        """Path data of a polyline; gaps where a value is not finite."""
        steps: list[str] = []
        pen_up = True
        finite = np.isfinite(x) & np.isfinite(y)
        points = self.points(np.where(finite, x, 0.0), np.where(finite, y, 0.0))
        for keep, (across, down) in zip(finite, points, strict=True):
            if keep:
                steps.append(f"{'M' if pen_up else 'L'}{across} {down}")
            pen_up = not keep
        return "".join(steps) + ("Z" if closed and steps else "")

    def dots(self, x: FloatArray, y: FloatArray) -> str:
        """Path data of dots: strokes of no length, round because their caps are."""
        finite = np.isfinite(x) & np.isfinite(y)
        return "".join(f"M{a} {b}h0" for a, b in self.points(x[finite], y[finite]))

    def draw(
        self, content: Sequence[Markup], *, label: str, class_: str = "", is_read: bool = False
    ) -> Markup:
        """The chart: grid, content, and tick labels around them.

        Args:
            content: of the grid.
            label: for those who do not see it.
            class_: more classes.
            is_read: whether the pointer reads values off its lines, which have names.
        """
        x_ticks, y_ticks = self.x.ticks(), self.y.ticks()
        x_at = [f"{100 * float(v):.3f}%" for v in self.x.part(np.array(x_ticks))]
        y_at = [f"{100 - 100 * float(v):.3f}%" for v in self.y.part(np.array(y_ticks))]
        grid = "".join(
            [f"M{float(v[:-1]) * 10:.0f} 0v{SIDE}" for v in x_at if not self.x.names]
            + [f"M0 {float(v[:-1]) * 10:.0f}h{SIDE}" for v in y_at]
        )
        drawing = element(
            "svg",
            element("path", class_="grid", d=grid),
            *content,
            viewBox=f"0 0 {SIDE} {SIDE}",
            preserveAspectRatio="none",
            role="img",
            aria_label=label,
            data_x=f"{self.x.low:g},{self.x.high:g}" if is_read else None,
            data_y=f"{self.y.low:g},{self.y.high:g}" if is_read else None,
        )
        x_labels = [
            element("span", self.x.tick_label(value), class_="tick tick-x", style=f"left:{at}")
            for value, at in zip(x_ticks, x_at, strict=True)
        ]
        y_labels = [
            element("span", self.y.tick_label(value), class_="tick tick-y", style=f"top:{at}")
            for value, at in zip(y_ticks, y_at, strict=True)
        ]
        return element(
            "div",
            element("div", self.y.label, class_="axis-y") if self.y.label else None,
            element("div", drawing, join(x_labels), join(y_labels), class_="area"),
            element("div", self.x.label, class_="axis-x") if self.x.label else None,
            class_=f"plot {class_}".strip(),
        )


def thin(time: FloatArray, values: FloatArray, n_buckets: int) -> tuple[FloatArray, FloatArray]:
    """Fewer points with the same outline: the smallest and largest of each bucket, in order."""
    if time.size <= 2 * n_buckets:
        return time, values
    edges = np.linspace(0, time.size, n_buckets + 1).astype(np.int64)
    chosen: list[int] = []
    for start, end in pairwise(edges):
        part = values[start:end]
        if np.isfinite(part).any():
            pair = {int(np.nanargmin(part)), int(np.nanargmax(part))}
            chosen.extend(int(start) + index for index in sorted(pair))
    return time[chosen], values[chosen]
