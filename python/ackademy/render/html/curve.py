"""The learning curve of a training as one SVG file that a card can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ackademy.lazy import pl
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, thin
from ackademy.render.numbers import padded, plain, ticks
from ackademy.stats.formulas import FloatArray

WIDTH, HEIGHT = 720, 150
"""of one panel"""
LEFT, RIGHT, TOP, BOTTOM = 70, 14, 26, 24
N_BUCKETS = 300
PANELS = (
    ("reward", "reward per decision"),
    ("throughput_mbps", "throughput, Mb/s"),
    ("rtt_ms", "round trip, ms"),
    ("loss_ratio", "loss ratio"),
    ("gain", "worth of the candidates above zeros"),
)
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #52514e; }
.title { font-weight: 600; fill: #0b0b0b; }
.grid { stroke: #e4e3df; fill: none; }
.line { stroke: #2a78d6; stroke-width: 1.6; fill: none; stroke-linejoin: round; }
"""


def svg(curve: pl.DataFrame) -> str:
    """Panels over the decisions of all agents.

    Args:
        curve: a row per point; columns `decisions` and any of `PANELS`.
    """
    return _picture(
        [(curve, name, title) for name, title in PANELS if name in curve.columns],
        "learning curve",
    )


def rewards(curves: Mapping[str, pl.DataFrame]) -> str:
    """The rewards of several trainings, a panel each, under its name."""
    return _picture(
        [(own, "reward", f"{name}: reward per decision") for name, own in curves.items()],
        "learning curves",
    )


def _picture(panels: Sequence[tuple[pl.DataFrame, str, str]], label: str) -> str:
    """Panels one below the other: the curve, its column and its title."""
    height = HEIGHT * len(panels) + 18
    drawn = []
    for at, (curve, name, title) in zip(range(0, height, HEIGHT), panels, strict=False):
        x = curve["decisions"].cast(pl.Float64).to_numpy()
        panel = _panel(x, curve[name].to_numpy(), title)
        drawn.append(element("g", panel, transform=f"translate(0 {at})"))
    foot = element("text", "decisions of all agents", x=WIDTH - RIGHT, y=height - 4,
                   text_anchor="end")  # fmt: skip
    picture = element(
        "svg",
        element("style", Markup(STYLE)),
        element("rect", width=WIDTH, height=height, fill="#fcfcfb"),
        *drawn,
        foot,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=label,
    )
    return f"{picture}\n".replace("text_anchor", "text-anchor")


def _panel(x: FloatArray, y: FloatArray, title: str) -> Markup:
    if not x.size:
        return element("text", title, x=LEFT, y=16, class_="title")
    across = Axis(0.0, float(x.max()) or 1.0)
    up = Axis(*padded(float(y.min()), float(y.max())))
    return join(
        [
            element("text", title, x=LEFT, y=16, class_="title"),
            *_grid(across, up),
            element("path", class_="line", d=_path(across, up, *thin(x, y, N_BUCKETS))),
        ]
    )


def _grid(across: Axis, up: Axis) -> Sequence[Markup]:
    marks = []
    for value in ticks(up.low, up.high, 3):
        at = _down(up, np.array([value]))[0]
        marks.append(element("path", class_="grid", d=f"M{LEFT} {at}H{WIDTH - RIGHT}"))
        marks.append(element("text", plain(value), x=LEFT - 8, y=at + 4, text_anchor="end"))
    for value in ticks(across.low, across.high, 5):
        at = _right(across, np.array([value]))[0]
        marks.append(element("text", f"{value:,.0f}".replace(",", " "), x=at, y=HEIGHT - 6,
                             text_anchor="middle"))  # fmt: skip
    return marks


def _path(across: Axis, up: Axis, x: FloatArray, y: FloatArray) -> str:
    points = zip(_right(across, x), _down(up, y), strict=True)
    return "M" + "L".join(f"{a} {b}" for a, b in points)


def _right(axis: Axis, values: FloatArray) -> list[float]:
    return [round(LEFT + float(p) * (WIDTH - LEFT - RIGHT), 1) for p in axis.part(values)]


def _down(axis: Axis, values: FloatArray) -> list[float]:
    return [round(TOP + (1 - float(p)) * (HEIGHT - TOP - BOTTOM), 1) for p in axis.part(values)]
