"""Throughput against delay for many schemes on one network: a marker each, with whiskers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import hit, panel
from ackademy.render.numbers import padded, significant, with_interval
from ackademy.studies.league import Result

N_COLOURS = 8
SHAPES = ("", "square", "hollow", "square hollow")
"""of markers, one for every eight schemes"""
DELAY, THROUGHPUT = "delay_mean_ms", "throughput_mean_mbps"
_RATE = {
    "flow": "throughput per flow, Mb/s",
    "connection": "goodput per connection, Mb/s",
}


def marks(names: Sequence[str]) -> Mapping[str, str]:
    """Classes of each name's marker: a colour and a shape."""
    return {
        name: f"s{index % N_COLOURS} {SHAPES[index // N_COLOURS % len(SHAPES)]}".rstrip()
        for index, name in enumerate(names)
    }


def plane(results: Sequence[Result], mark: Mapping[str, str]) -> Markup:
    """One panel: delay to the right, on a logarithmic axis, and throughput upwards.

    The axes hold the means; a whisker that is longer is cut off. A scheme without a delay is not
    drawn.
    """
    shown = [result for result in results if _place(result)]
    network = results[0].scheme_case.network
    delays = [result.value(DELAY) for result in shown]
    rates = [result.value(THROUGHPUT) for result in shown]
    bottom, top = padded(min(rates, default=0.0), max(rates, default=0.0))
    ends = min(delays, default=1.0) / 1.3, max(delays, default=1.0) * 1.3
    frame = Frame(
        Axis(*ends, "mean delay above the empty path, ms", is_log=True),
        Axis(max(bottom, 0.0), top, _RATE[network.by]),
    )
    content = [_mark(frame, result, mark[result.scheme]) for result in shown]
    names = ", ".join(result.scheme for result in shown)
    drawing = frame.draw(content, label=f"Throughput against delay, {network.title}: {names}")
    return panel(network.title, drawing, hint="↖ better" if shown else "nothing to draw")


def _place(result: Result) -> bool:
    delay = result.value(DELAY)
    return math.isfinite(delay) and delay > 0.0 and math.isfinite(result.value(THROUGHPUT))


def _ends(result: Result, metric: str) -> tuple[float, float, float]:
    interval = result.interval(metric)
    return max(interval.low, 0.2 * interval.value), interval.value, interval.high


def _mark(frame: Frame, result: Result, mark: str) -> Markup:
    low_d, delay, high_d = _ends(result, DELAY)
    low_t, rate, high_t = _ends(result, THROUGHPUT)
    dot = frame.dots(np.array([delay]), np.array([rate]))
    across = frame.line(np.array([low_d, high_d]), np.array([rate, rate]))
    up = frame.line(np.array([delay, delay]), np.array([low_t, high_t]))
    tip = (
        f"{result.scheme}\n{with_interval(result.interval(THROUGHPUT))} Mb/s\n"
        f"{with_interval(result.interval(DELAY))} ms\n"
        f"M_e {significant(result.value('m_e'))}"
    )
    shapes = [element("path", class_="whisker", d=across + up)]
    shapes.append(element("path", class_="blob", d=dot))
    if "hollow" in mark:
        shapes.append(element("path", class_="hole", d=dot))
    shapes.append(hit(dot, tip))
    return element("g", *shapes, class_=f"mark {mark}")
