"""One run over time: throughput, RTT, losses, queue and cwnd, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.lazy import pl
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.shapes import key, legend
from ackademy.stats.formulas import FloatArray

N_BUCKETS = 350
"""pairs of points per line: about one per pixel of a wide chart"""
N_RATES = 160
"""intervals over which throughput is averaged"""
MAX_LINES = 8
"""flows drawn in one chart: those that delivered most"""


@dataclass(frozen=True, slots=True)
class Strip:
    """One run to draw."""

    name: str
    note: str
    colour: int
    flows: pl.DataFrame
    links: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Lines:
    title: str
    unit: str
    lines: list[tuple[str, FloatArray, FloatArray]]


def strips(runs: Sequence[Strip]) -> Markup:
    """Cards side by side, with equal axes so that they can be compared."""
    drawn = [(run, _charts(run)) for run in runs]
    tops = [max(tops) for tops in zip(*(map(_top, charts) for _, charts in drawn), strict=True)]
    end = max(_end(chart) for _, charts in drawn for chart in charts) or 1.0
    cards = [_card(run, charts, tops, end) for run, charts in drawn]
    return element("div", join(cards), class_="strips")


def _charts(run: Strip) -> list[_Lines]:
    """What is drawn of a run, from top to bottom."""
    flows = _by_flow(run)
    return [
        _throughput(flows),
        _of_flows("RTT", "ms", flows, "srtt_ms"),
        _of_flows("lost so far", "packets", flows, "lost_packets"),
        _queue(run),
        _of_flows("cwnd", "packets", flows, "cwnd_packets"),
    ]


def _card(run: Strip, charts: Sequence[_Lines], tops: Sequence[float], end: float) -> Markup:
    n_flows = run.flows["flow"].n_unique() if run.flows.height else 0
    more = f"the {MAX_LINES} largest of {n_flows} flows" if n_flows > MAX_LINES else None
    head = element(
        "header",
        key(f"s{run.colour}"),
        element("b", run.name),
        element("span", run.note, class_="hint"),
        element("span", more, class_="hint") if more else None,
    )
    last = len(charts) - 1
    plots = [
        _chart(chart, run, top, end, x_label="time, s" if index == last else "")
        for index, (chart, top) in enumerate(zip(charts, tops, strict=True))
    ]
    names = [name for name, _, _ in charts[0].lines]
    return element("article", head, _flow_legend(names), join(plots), class_=f"strip s{run.colour}")


def _flow_legend(names: Sequence[str]) -> Markup | None:
    """Which colour is which flow; nothing for one flow, which has the run's colour."""
    if len(names) < 2:
        return None
    return legend((name, f"s{index}") for index, name in enumerate(names))


def _chart(chart: _Lines, run: Strip, top: float, end: float, *, x_label: str) -> Markup:
    frame = Frame(Axis(0.0, end, x_label, n_ticks=4), Axis(0.0, 1.08 * top or 1.0, n_ticks=3))
    several = len(chart.lines) > 1
    lines = [
        element(
            "path",
            class_=f"line s{index}" if several else "line",
            d=frame.line(*thin(time, values, N_BUCKETS)),
            data_name=name if several else chart.title,
            data_unit=chart.unit,
        )
        for index, (name, time, values) in enumerate(chart.lines)
    ]
    title = element("div", element("b", chart.title), f", {chart.unit}", class_="strip-title")
    drawing = frame.draw(
        lines,
        label=f"{chart.title} of {run.name} over time",
        class_="wide" if x_label else "wide bare",
        is_read=True,
    )
    return join((title, drawing))


def _of_flows(
    title: str, unit: str, flows: Sequence[tuple[str, pl.DataFrame]], column: str
) -> _Lines:
    """A column of the flows' time series, a line per flow."""
    lines = [(name, _floats(part, "time_s"), _floats(part, column)) for name, part in flows]
    return _Lines(title, unit, lines)


def _queue(run: Strip) -> _Lines:
    """The link that queues most."""
    if run.links.is_empty():
        return _Lines("queue", "packets", [])
    mean = pl.col("queue_packets").cast(pl.Float64).mean()
    longest = (
        run.links.group_by("link", maintain_order=True)
        .agg(mean)
        .sort("queue_packets", descending=True, maintain_order=True)
    )
    link = str(longest["link"][0])
    part = run.links.filter(pl.col("link") == link)
    return _Lines(
        "queue", "packets", [(link, _floats(part, "time_s"), _floats(part, "queue_packets"))]
    )


def _throughput(flows: Sequence[tuple[str, pl.DataFrame]]) -> _Lines:
    """Bytes that arrived over short intervals, in order or not.

    Those delivered in order jump where a gap is filled, above what the link carries.
    """
    lines = []
    for name, part in flows:
        time, arrived = _floats(part, "time_s"), _floats(part, "arrived_bytes")
        if time.size > 2:
            edges = np.linspace(time[0], time[-1], min(N_RATES, time.size - 1) + 1)
            rate = 8e-6 * np.diff(np.interp(edges, time, arrived)) / np.diff(edges)
            lines.append((name, 0.5 * (edges[1:] + edges[:-1]), rate))
    return _Lines("throughput: arrivals", "Mb/s", lines)


def _by_flow(run: Strip) -> list[tuple[str, pl.DataFrame]]:
    """The flows, or those that delivered most where there are many."""
    delivered = pl.col("delivered_bytes").cast(pl.Float64).max()
    totals = run.flows.group_by("flow", maintain_order=True).agg(delivered)
    largest = totals.sort("delivered_bytes", descending=True, maintain_order=True)
    chosen = run.flows.filter(pl.col("flow").is_in(largest["flow"].head(MAX_LINES).to_list()))
    parts = chosen.partition_by("flow", maintain_order=True)
    return sorted(((str(part["flow"][0]), part) for part in parts), key=lambda pair: pair[0])


def _floats(table: pl.DataFrame, column: str) -> FloatArray:
    return table[column].cast(pl.Float64).to_numpy()


def _top(chart: _Lines) -> float:
    """The largest value, a rare spike at the start aside."""
    values = [np.nanquantile(line, 0.998) for _, _, line in chart.lines if np.isfinite(line).any()]
    return float(max(values, default=1.0))


def _end(chart: _Lines) -> float:
    return max((float(time[-1]) for _, time, _ in chart.lines if time.size), default=0.0)
