"""The throughput-delay plane: every run a dot, every scheme a 95 % ellipse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.render.html import shapes
from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import hit, panel, ring
from ackademy.render.numbers import padded, significant
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Ellipse, confidence_ellipse


@dataclass(frozen=True, slots=True)
class Cloud:
    """The runs of one scheme, or their flows, and where the paper puts it."""

    name: str
    colour: int
    delay_ms: FloatArray
    throughput_mbps: FloatArray
    published: tuple[float, float] | None = None
    """delay and throughput"""


def plane(
    title: str,
    clouds: Sequence[Cloud],
    across: str = "delay above the empty path, ms",
    up: str = "throughput, Mb/s",
    *,
    whole: bool = False,
) -> Markup:
    """One panel: delay to the right, throughput upwards, so that the upper left is best.

    Args:
        title: above the panel.
        clouds: those without a dot are left out, but for their published point.
        across: what the delay is, with its unit.
        up: what the throughput is, with its unit.
        whole: whether the axes reach to the last dot; else to the ellipses, and dots far outside
            them are cut off.
    """
    shapes = [
        (cloud, confidence_ellipse(_points(cloud))) for cloud in clouds if _points(cloud).size
    ]
    outlines = [ellipse.outline() for _, ellipse in shapes]
    printed = np.array([cloud.published for cloud in clouds if cloud.published]).reshape(-1, 2)
    dots = [_points(cloud) for cloud in clouds]
    is_empty = not shapes and not printed.size
    measured = np.zeros((1, 2)) if is_empty else np.vstack([*dots, printed])
    everything = np.vstack([*outlines, measured if whole or not shapes else printed])
    low, high = everything.min(axis=0), everything.max(axis=0)
    frame = Frame(
        Axis(*_range(float(low[0]), float(high[0]), float(measured[:, 0].min())), across),
        Axis(*_range(float(low[1]), float(high[1]), float(measured[:, 1].min())), up),
    )
    content = [_cloud(frame, cloud, ellipse) for cloud, ellipse in shapes]
    content += [_published(frame, cloud) for cloud in clouds if cloud.published]
    names = ", ".join(cloud.name for cloud in clouds)
    drawing = frame.draw(content, label=f"Throughput against delay, {title}: {names}")
    return panel(title, drawing, hint="nothing to draw" if is_empty else "↖ better")


def _range(low: float, high: float, smallest: float) -> tuple[float, float]:
    """An axis's ends; below 0 only if a measured number is: an ellipse knows no bound."""
    if smallest < 0.0:
        return padded(low, high)
    start, end = padded(max(low, 0.0), high)
    return max(start, 0.0), end


def legend(clouds: Sequence[tuple[str, int]], *, published: bool) -> Markup:
    """Which colour is which scheme."""
    keys = shapes.colour_keys(clouds)
    if keys:
        keys.append(("95 % of the runs", "ellipse"))
    if published:
        keys.append(("published", "ring"))
    return shapes.legend(keys)


def _points(cloud: Cloud) -> FloatArray:
    """Shape (dots, 2): delay and throughput, where both are known."""
    points = np.column_stack([cloud.delay_ms, cloud.throughput_mbps])
    return points[np.isfinite(points).all(axis=1)]


def _cloud(frame: Frame, cloud: Cloud, ellipse: Ellipse) -> Markup:
    outline = ellipse.outline()
    centre = np.array([ellipse.centre[0]]), np.array([ellipse.centre[1]])
    runs = len(cloud.delay_ms)
    tip = (
        f"{cloud.name}\n{significant(ellipse.centre[1])} Mb/s, {significant(ellipse.centre[0])} ms"
        f"\n{runs} {'value' if runs == 1 else 'values'}"
    )
    return element(
        "g",
        element("path", class_="oval", d=frame.line(outline[:, 0], outline[:, 1], closed=True)),
        element("path", class_="run", d=frame.dots(cloud.delay_ms, cloud.throughput_mbps)),
        element("path", class_="halo", d=frame.dots(*centre)),
        element("path", class_="centre", d=frame.dots(*centre)),
        hit(frame.dots(*centre), tip),
        class_=f"s{cloud.colour}",
    )


def _published(frame: Frame, cloud: Cloud) -> Markup:
    delay, throughput = cloud.published or (np.nan, np.nan)
    dot = frame.dots(np.array([delay]), np.array([throughput]))
    tip = f"{cloud.name}, published\n{significant(throughput)} Mb/s, {significant(delay)} ms"
    return element("g", ring(dot), hit(dot, tip), class_=f"s{cloud.colour}")
