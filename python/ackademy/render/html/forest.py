"""Ours against published, row by row: where each estimate lies on the scale of differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ackademy.render.html.markup import Markup, element, join, math_label
from ackademy.render.numbers import even_ticks, plain


@dataclass(frozen=True, slots=True)
class Mark:
    """A difference from the published number and its interval."""

    name: str
    group: str
    colour: int
    value: float
    low: float
    high: float
    tip: str


@dataclass(frozen=True, slots=True)
class Scale:
    """One column: what is compared, and how far the axis goes on both sides of zero."""

    metric: str
    unit: str
    reach: float


def forest(columns: Sequence[tuple[Scale, Sequence[Mark]]]) -> Markup:
    """Columns side by side, each with a line per row; arrows where a mark is off the axis."""
    return element(
        "div", join([_column(scale, marks) for scale, marks in columns]), class_="forest"
    )


def reach(values: Sequence[float], floor: float, ceiling: float) -> float:
    """An axis that holds most of the values: the fourth fifth of their sizes, with room."""
    sizes = sorted(abs(value) for value in values if math.isfinite(value))
    wanted = 1.6 * sizes[int(0.8 * (len(sizes) - 1))] if sizes else floor
    return min(max(wanted, floor), ceiling)


def _column(scale: Scale, marks: Sequence[Mark]) -> Markup:
    steps = even_ticks(scale.reach)
    labels = [
        element("span", plain(step), class_="tick tick-x", style=f"left:{_at(scale, step):.2f}%")
        for step in steps
    ]
    rows: list[Markup] = []
    group = ""
    for mark in marks:
        if mark.group != group:
            group = mark.group
            rows.append(element("div", group, class_="forest-group"))
        rows.append(_row(scale, mark, steps))
    head = element("figcaption", element("b", math_label(scale.metric)), f" {scale.unit}")
    axis = element(
        "div",
        element("span"),
        element("div", join(labels), class_="forest-axis"),
        class_="forest-row",
    )
    return element("figure", head, join(rows), axis, class_="panel")


def _row(scale: Scale, mark: Mark, steps: Sequence[float]) -> Markup:
    left, right = _at(scale, mark.low), _at(scale, mark.high)
    grid = [
        element(
            "i", class_="zero" if step == 0.0 else "rule", style=f"left:{_at(scale, step):.2f}%"
        )
        for step in steps
    ]
    if abs(mark.value) > scale.reach:
        sign = mark.value > 0.0
        place = "right:0" if sign else "left:0"
        what = element("b", "▸" if sign else "◂", class_="beyond", style=place)
    else:
        bar = element("i", class_="bar", style=f"left:{left:.2f}%;width:{right - left:.2f}%")
        dot = element("i", class_="dot", style=f"left:{_at(scale, mark.value):.2f}%")
        what = join((bar, dot))
    track = element("div", join(grid), what, class_="track", data_tip=mark.tip, tabindex=0)
    return element("div", element("span", mark.name), track, class_=f"forest-row s{mark.colour}")


def _at(scale: Scale, value: float) -> float:
    """Place on the axis in per cent, kept inside."""
    return 50.0 + 50.0 * min(max(value / scale.reach, -1.0), 1.0)
