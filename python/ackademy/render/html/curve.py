"""The learning curve of a training as one SVG file that a card can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ackademy.lazy import pl
from ackademy.render.html import charts, svg
from ackademy.render.html.markup import element
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.numbers import padded

N_BUCKETS = 300
PANELS = (
    ("reward", "reward per decision"),
    ("throughput_mbps", "throughput, Mb/s"),
    ("rtt_ms", "round trip, ms"),
    ("loss_ratio", "loss ratio"),
    ("gain", "worth of the candidates above zeros"),
)


def drawing(curve: pl.DataFrame) -> str:
    """Panels over the decisions of all agents.

    Args:
        curve: a row per point; columns `decisions` and any of `PANELS`.
    """
    return _figure([(curve, name, title) for name, title in PANELS if name in curve.columns])


def rewards(curves: Mapping[str, pl.DataFrame]) -> str:
    """The rewards of several trainings, a panel each, under its name."""
    return _figure(
        [(own, "reward", f"{name}: reward per decision") for name, own in curves.items()]
    )


def _figure(panels: Sequence[tuple[pl.DataFrame, str, str]]) -> str:
    """Charts one below the other: the curve, its column and its title."""
    drawn = []
    for index, (curve, name, title) in enumerate(panels):
        x, y = (curve[own].cast(pl.Float64).to_numpy() for own in ("decisions", name))
        label = "decisions of all agents" if index == len(panels) - 1 else ""
        across = Axis(0.0, float(max(x, default=0.0)) or 1.0, label)
        up = Axis(*padded(float(min(y, default=0.0)), float(max(y, default=1.0))), n_ticks=3)
        frame = Frame(across, up)
        line = element("path", class_="line s1", d=frame.line(*thin(x, y, N_BUCKETS)))
        drawn += [element("div", title, class_="strip-title"),
                  frame.draw([line], label=title, class_="wide")]  # fmt: skip
    return svg.figure(charts.panels(element("article", *drawn, class_="strip")))
