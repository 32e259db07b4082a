"""Draw the figures of docs/results/beside-others.md, and print its tables.

    python tools/flagship_figures.py --judged reports/evaluate-flagship.csv

It simulates for a minute or two. The CSV file is the one that `ackademy evaluate --csv`
writes; without it the planes and their table are left out. With `--law` no policy is needed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import ackademy
from ackademy import AckademyError, Run, _core
from ackademy.backends import schemes
from ackademy.backends.schemes import Scheme
from ackademy.exits import status_of
from ackademy.files import write
from ackademy.stats.formulas import FloatArray, jain_index
from ackademy.stats.intervals import Interval, median_interval, network_interval, t_interval
from ackademy.stats.league_metrics import settling_time_s

HERE = Path(__file__).parents[1] / "docs" / "img"
POLICY = HERE.parents[1] / "data/policies" / "flagship"
LAW, OTHERS = "own_queue", ("own_queue", "cubic", "bbr3", "copa")

RATE, RTT_MS = 50.0, 40.0
"""Mb/s and ms of the link of all figures but the cellular one"""
JOINS, LEAVES = (0.0, 20.0, 40.0, 60.0), (95.0, 110.0, 125.0, 140.0)
"""when the four flows of one kind begin and end, s"""
BUFFERS = (0.5, 1.0, 4.0, 16.0)
"""beside one CUBIC flow, in bandwidth-delay products"""
LATER, BESIDE_S = 5.0, 120.0
"""when the later of the two begins, and the end of the run, s"""
SEEDS = tuple(range(1, 11))
"""of the runs of which shares and indices are means; the first of them is drawn"""
SPREAD_S = 0.5
"""within which each of their flows begins: by the exact start alone a share varies by a tenth"""
LINKS = ((RATE, RTT_MS), (100.0, 20.0), (20.0, 100.0))
"""Mb/s and ms of the links that four flows of one kind share"""
CELL_MBPS, CELL_RTT_MS, CELL_QUEUE, CELL_S, VOLATILITY = 12.0, 60.0, 400, 40.0, 0.5
TRACES = tuple(range(101, 109))
"""seeds of the cellular-like traces; the first is drawn"""
CLASSES = {
    "A": "A: alone",
    "B": "B: random loss",
    "C": "C: changing rates",
    "D": "D: changing delays",
    "E": "E: its own kind",
    "G": "G: beside loss-based",
}

WIDTH = 800
FLOWS = ("#1f6fb2", "#d9822b", "#2a9d6f", "#a23b72")
"""colours of flows of one kind"""
SCHEMES = ("#1f6fb2", "#2a9d6f", "#c0392b", "#8e5bb5", "#d9822b")
"""colours of the policy, the law, CUBIC, BBRv3 and Copa"""
GREY, SOFT = "#57606a", "#dfe3e8"
STYLE = """\
<style>
  text { font: 13px "Helvetica Neue", Arial, sans-serif; fill: #1f2328; }
  .c { text-anchor: middle; } .e { text-anchor: end; } .b { font-weight: 600; }
  .s { font-size: 12px; fill: #57606a; }
  .v { font-size: 11px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
  .sheet { fill: #ffffff; stroke: #d0d7de; } .grid { stroke: #e3e7eb; }
  .edge { fill: none; stroke: #8c959f; }
  path { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
</style>"""


class Ratio:
    """A rule of ratios: all flows see one round trip and multiply by one factor, per round trip."""

    def __init__(self, flow: _core.Flow) -> None:
        self.mss_bytes = flow.mss_bytes
        self.cwnd_bytes = float(flow.params.get("packets", 10.0)) * self.mss_bytes
        self.due_ns = 0

    def on_ack(self, ack: _core.Ack) -> None:
        """Towards a round trip of 1.1 times the smallest: up below it, down above it."""
        if ack.now_ns >= self.due_ns and ack.rtt_ns > 0:
            self.due_ns = ack.now_ns + ack.rtt_ns
            factor = math.exp(0.2 * (1.1 - ack.rtt_ns / ack.min_rtt_ns))
            self.cwnd_bytes = max(self.cwnd_bytes * factor, 2.0 * self.mss_bytes)

    def on_loss(self, loss: _core.Loss) -> None:
        """Nothing is lost in the run that uses it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a figure with its axes; pixels, and data from `x[0]` to `x[1]`."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    is_log: bool = False
    """the axis to the right"""

    def across(self, value: float) -> float:
        """Pixels from the left of the figure; what is beyond an end is drawn at it."""
        low, high = self.x
        value = min(max(value, low), high)
        part = (value - low) / (high - low)
        if self.is_log:
            part = np.log(value / low) / np.log(high / low)
        return self.left + self.width * float(part)

    def down(self, value: float) -> float:
        """Pixels from the top of the figure; what is beyond an end is drawn at it."""
        low, high = self.y
        part = (min(max(value, low), high) - low) / (high - low)
        return self.top + self.height * (1.0 - part)

    def frame(
        self, title: str, x_ticks: Sequence[float], y_ticks: Sequence[float], labels: str = "xy"
    ) -> list[str]:
        """Title, grid, the numbers at the axes named in `labels`, and the border."""
        bottom, right = self.top + self.height, self.left + self.width
        out = [f'<text class="b" x="{self.left:.1f}" y="{self.top - 8:.1f}">{title}</text>']
        for value in x_ticks:
            at = f"{self.across(value):.1f}"
            out.append(f'<line class="grid" x1="{at}" y1="{self.top}" x2="{at}" y2="{bottom}"/>')
            if "x" in labels:
                out.append(f'<text class="c s" x="{at}" y="{bottom + 16}">{value:g}</text>')
        for value in y_ticks:
            at = f"{self.down(value):.1f}"
            out.append(f'<line class="grid" x1="{self.left}" y1="{at}" x2="{right}" y2="{at}"/>')
            if "y" in labels:
                text = f'y="{self.down(value) + 4:.1f}">{value:g}</text>'
                out.append(f'<text class="e s" x="{self.left - 6}" {text}')
        size = f'width="{self.width}" height="{self.height}"'
        return [*out, f'<rect class="edge" x="{self.left}" y="{self.top}" {size}/>']

    def line(self, x: Iterable[float], y: Iterable[float], colour: str, more: str = "") -> str:
        """A polyline, with a gap where a value is not finite."""
        steps, pen_up = [], True
        for right, up in zip(x, y, strict=True):
            if np.isfinite(up):
                letter = "M" if pen_up else "L"
                steps.append(f"{letter}{self.across(right):.1f} {self.down(up):.1f}")
            pen_up = not np.isfinite(up)
        return f'<path stroke="{colour}" {more}d="{"".join(steps)}"/>'

    def steps(self, x: FloatArray, y: FloatArray, colour: str) -> str:
        """The area under values that each hold until the next `x`."""
        bottom = self.down(self.y[0])
        path = f"M{self.across(float(x[0])):.1f} {bottom:.1f}"
        for (low, high), value in zip(itertools.pairwise(x), y, strict=True):
            path += f"L{self.across(low):.1f} {self.down(value):.1f}"
            path += f"L{self.across(high):.1f} {self.down(value):.1f}"
        path += f"L{self.across(float(x[-1])):.1f} {bottom:.1f}Z"
        return f'<path style="fill: {colour}" d="{path}"/>'


def sheet(title: str, height: float, content: Iterable[str]) -> str:
    """An SVG file with a white ground, so that it can be read on a dark page."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="t">',
            f'<title id="t">{title}</title>',
            STYLE,
            f'<rect class="sheet" x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="10"/>',
            f'<text class="b" x="20" y="28">{title}</text>',
            *content,
            "</svg>\n",
        ]
    )


def legend(entries: Iterable[tuple[str, str]], y: float, x: float = 60.0) -> list[str]:
    """Lines in the colours of what they name."""
    out = []
    for name, colour in entries:
        out.append(f'<path stroke="{colour}" style="stroke-width: 4" d="M{x} {y - 4}h18"/>')
        out.append(f'<text class="s" x="{x + 24}" y="{y}">{name}</text>')
        x += 48 + 6.6 * len(name)
    return out


def upwards(panel: Panel, label: str) -> str:
    """The label of the axis upwards."""
    x, y = panel.left - 40, panel.top + panel.height / 2
    return f'<text class="c s" transform="translate({x} {y}) rotate(-90)">{label}</text>'


def rates(run: Run, flow: str, step_s: float) -> tuple[FloatArray, FloatArray]:
    """Mb/s that a flow delivers in consecutive intervals, and their middles; `nan` while it is off.

    Args:
        run: with a time series.
        flow: its name.
        step_s: length of an interval, a multiple of the sampling interval.
    """
    edges = np.arange(0.0, run.scenario.duration_s + step_s / 2, step_s)
    own = run.flow_series.filter(pl.col("flow") == flow)
    times = own["time_s"].to_numpy()
    delivered = np.interp(edges, times, own["delivered_bytes"].cast(pl.Float64).to_numpy())
    found = 8e-6 * np.diff(delivered) / step_s
    row = run.flows.filter(pl.col("flow") == flow)
    start = float(row["start_s"][0])
    end = start + float(row["active_s"][0])
    middles = (edges[1:] + edges[:-1]) / 2
    return middles, np.where((middles > start) & (middles < end), found, np.nan)


def queue_ms(run: Run, rate_mbps: float) -> tuple[FloatArray, FloatArray]:
    """Time that the bottleneck's queue takes to leave, at each sample."""
    link = run.link_series.filter(pl.col("link") == "bottleneck")
    waiting = link["queue_bytes"].cast(pl.Float64).to_numpy()
    return link["time_s"].to_numpy(), waiting * 8e-3 / rate_mbps


def bottleneck(run: Run, column: str) -> float:
    """A total of the bottleneck."""
    return float(run.links.row(by_predicate=pl.col("link") == "bottleneck", named=True)[column])


def means(time: FloatArray, values: FloatArray, step_s: float) -> tuple[FloatArray, FloatArray]:
    """Means over consecutive intervals, and their middles; `nan` where there is no value."""
    edges = np.arange(0.0, float(time[-1]) + step_s / 2, step_s)
    known = np.isfinite(values)
    count, _ = np.histogram(time[known], edges)
    total, _ = np.histogram(time[known], edges, weights=values[known])
    with np.errstate(invalid="ignore"):
        return (edges[1:] + edges[:-1]) / 2, total / np.where(count > 0, count, np.nan)


def capacity_mbps(trace: str, edges: FloatArray) -> FloatArray:
    """What a trace that repeats carries between consecutive times, in packets of 1500 bytes."""
    times = np.array([int(line) for line in trace.split()], np.float64) / 1e3
    length = times[-1]
    repeats = int(edges[-1] / length) + 1
    every = np.concatenate([times + index * length for index in range(repeats)])
    return np.histogram(every, edges)[0] * 0.012 / np.diff(edges)


def flow(scheme: Scheme, name: str, **more: float) -> dict[str, object]:
    """A flow of a scenario."""
    return {"name": name, "controller": scheme.controller, "params": dict(scheme.params), **more}


def dumbbell(
    duration_s: float,
    bdp: float,
    *flows: Mapping[str, object],
    link: tuple[float, float] = LINKS[0],
) -> dict[str, object]:
    """A scenario of one bottleneck: its Mb/s, and the ms of the path, by default the figures'."""
    rate, rtt_ms = link
    queue = {"kind": "drop_tail", "bdp": bdp}
    return {
        "duration_s": duration_s,
        "sample_interval_ms": 50,
        "dumbbell": {"rtt_ms": rtt_ms, "bottleneck": {"rate_mbps": rate, "queue": queue}},
        "flow": list(flows),
    }


def of_seeds(simulate: Callable[..., Run]) -> list[Run]:
    """A run of each of the seeds, on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda seed: simulate(seed=seed), SEEDS))


# Two flows of one rule.


def split_figure() -> tuple[str, str]:
    """The rule of ratios, with and without the true round trip, and the law; their shares."""
    law = schemes.one(LAW)
    ratio = Scheme("a rule of ratios", f"{Path(__file__).resolve()}:Ratio")
    large, small = ({"params": {"packets": packets}} for packets in (150.0, 10.0))
    cases = {
        "ratios, 150 and 10 packets": (
            flow(ratio, "first", start_s=0.1) | large,
            flow(ratio, "second") | small,
        ),
        "ratios, 10 s apart": (flow(ratio, "first"), flow(ratio, "second", start_s=10.0)),
        "own_queue, 10 s apart": (flow(law, "first"), flow(law, "second", start_s=10.0)),
    }
    out, rows = [], []
    for column, (name, pair) in enumerate(cases.items()):
        run = ackademy.run(dumbbell(60.0, 4.0, *pair))
        panel = Panel(60 + 247 * column, 64, 227, 150, (0, 60), (0, 60))
        out += panel.frame(name, (0, 20, 40), (0, 20, 40, 60), "x" if column else "xy")
        last = []
        for colour, own in zip(FLOWS, ("first", "second"), strict=False):
            time, rate = rates(run, own, 0.5)
            out.append(panel.line(time, rate, colour))
            last.append(float(np.nanmean(rate[time > 40.0])))
        if not column:
            out.append(upwards(panel, "throughput, Mb/s"))
        time, wait = queue_ms(run, RATE)
        shares = [f"{100 * value / RATE:.1f}" for value in last]
        jain = f"{jain_index(np.array(last)):.3f}"
        rows.append([name, *shares, jain, f"{wait[time > 40.0].mean():.1f}"])
    out.append('<text class="c s" x="410" y="250">time, s</text>')
    out += legend([("first flow", FLOWS[0]), ("second flow", FLOWS[1])], 274)
    title = f"Two flows of one rule, {RATE:g} Mb/s, {RTT_MS:g} ms, 4 BDP of buffer"
    head = ("rule", "first, % of the link", "second, %", "Jain", "mean queue, ms")
    return sheet(title, 290, out), table(head, rows)


# Four flows of one kind that come and go.


def joining(
    scheme: Scheme,
    link: tuple[float, float] = LINKS[0],
    *,
    seed: int = 1,
    spread_s: float = 0.0,
) -> Run:
    """Four flows of one scheme, each of which begins within `spread_s` of its time."""
    flows = [
        flow(scheme, f"flow_{index + 1}", start_s=start, stop_s=stop, start_spread_s=spread_s)
        for index, (start, stop) in enumerate(zip(JOINS, LEAVES, strict=True))
    ]
    return ackademy.run(dumbbell(LEAVES[-1], 1.0, *flows, link=link), seed=seed)


def stretches() -> list[tuple[float, float, list[int]]]:
    """From one event to the next: begin, end, and which flows are there."""
    times = sorted({*JOINS, *LEAVES})
    return [
        (low, high, [i for i in range(len(JOINS)) if JOINS[i] <= low and LEAVES[i] >= high])
        for low, high in itertools.pairwise(times)
    ]


def each_rate(run: Run) -> FloatArray:
    """Mb/s of each of the four flows in each second, 0 while it is off; shape (4, seconds)."""
    return np.nan_to_num([rates(run, f"flow_{i + 1}", 1.0)[1] for i in range(len(JOINS))])


def mean_jain(each: FloatArray) -> float:
    """Of rates, over the seconds with two flows or more, 5 s after each event."""
    jains = [
        jain_index(second)
        for low, high, there in stretches()
        if len(there) > 1
        for second in each[there, int(low) + 5 : int(high)].T
    ]
    return float(np.mean(jains))


def mean_queue(run: Run, link: tuple[float, float]) -> float:
    """While two flows or more are there, in round trips of the empty path."""
    rate, rtt_ms = link
    time, wait = queue_ms(run, rate)
    return float(wait[(time >= JOINS[1]) & (time < LEAVES[-2])].mean()) / rtt_ms


def joining_table(chosen: Sequence[Scheme]) -> str:
    """Jain's index and the queue of each scheme on each of the links."""
    rows = []
    for scheme in chosen:
        found: list[list[str]] = [[], []]
        for link in LINKS:
            runs = of_seeds(partial(joining, scheme, link, spread_s=SPREAD_S))
            queues = np.array([mean_queue(run, link) for run in runs])
            jains = np.array([mean_jain(each_rate(run)) for run in runs])
            found[0].append(between(t_interval(jains), 3))
            found[1].append(between(t_interval(queues), 2))
        rows.append([f"`{scheme.label}`", *found[0], *found[1]])
    links = [f"{rate:g} Mb/s, {rtt_ms:g} ms" for rate, rtt_ms in LINKS]
    kinds = [f"{what}, {link}" for what in ("Jain", "queue in RTT") for link in links]
    return table(("scheme", *kinds), rows)


def joining_row(name: str, run: Run) -> list[str]:
    """The numbers of a scheme's four flows."""
    each = each_rate(run)
    settled = [
        settling_time_s(each[there, int(low) : int(high)], RATE / len(there), 1.0)
        for low, high, there in stretches()
    ]
    time, wait = queue_ms(run, RATE)
    used = bottleneck(run, "delivered_bytes") / bottleneck(run, "capacity_bytes")
    dropped = bottleneck(run, "queue_drops") / bottleneck(run, "arrived_packets")
    never = sum(np.isinf(settled))
    return [
        f"`{name}`",
        f"{mean_jain(each):.3f}",
        f"{np.median(settled):.0f} · {max(settled):.0f}".replace("inf", "never"),
        f"{never} of {len(settled)}",
        f"{100 * used:.1f}",
        f"{wait[time > 1.0].mean():.1f}",
        f"{np.quantile(wait[time > 1.0], 0.95):.1f}",
        f"{100 * dropped:.2f}",
    ]


def joining_figure(chosen: Sequence[Scheme]) -> tuple[str, str]:
    """Time series of the policy, the law and CUBIC; the numbers of all."""
    runs = {scheme.label: joining(scheme) for scheme in chosen}
    shown = list(runs)[: len(chosen) - 2]
    wide = (WIDTH - 60 - 20 * len(shown)) / len(shown)
    out = []
    for column, name in enumerate(shown):
        left, labels = 60 + (wide + 20) * column, "" if column else "y"
        above = Panel(left, 64, wide, 150, (0, LEAVES[-1]), (0, 60))
        below = Panel(left, 244, wide, 90, (0, LEAVES[-1]), (0, 50))
        out += above.frame(name, (0, 40, 80, 120), (0, 20, 40, 60), labels)
        out += below.frame("", (0, 40, 80, 120), (0, 20, 40), "x" + labels)
        times = [time for low, high, _ in stretches() for time in (low, high)]
        fair = [RATE / len(there) for *_, there in stretches() for _ in range(2)]
        out.append(above.line(times, fair, GREY, 'stroke-dasharray="4 3" '))
        for index, colour in enumerate(FLOWS):
            out.append(above.line(*rates(runs[name], f"flow_{index + 1}", 1.0), colour))
        out.append(below.line(*means(*queue_ms(runs[name], RATE), 0.5), GREY))
        if not column:
            out += [upwards(above, "throughput, Mb/s"), upwards(below, "queue, ms")]
    out.append('<text class="c s" x="410" y="370">time, s</text>')
    entries = [(f"flow {index + 1}", colour) for index, colour in enumerate(FLOWS)]
    out += legend([*entries, ("a fair share (broken); queue", GREY)], 394)
    title = f"Four flows of one kind come and go, {RATE:g} Mb/s, {RTT_MS:g} ms, 1 BDP of buffer"
    settled = "settled after, s (median · longest)", "not settled"
    waits = "queue, ms", "its p95, ms"
    head = ("scheme", "Jain", *settled, "of the link, %", *waits, "dropped, %")
    rows = [joining_row(name, run) for name, run in runs.items()]
    return sheet(title, 410, out), table(head, rows)


# Beside one CUBIC flow.


def beside(scheme: Scheme, bdp: float, *, is_first: bool, seed: int) -> Run:
    """A scheme and CUBIC, one of them first."""
    starts = (0.0, LATER) if is_first else (LATER, 0.0)
    own, other = (
        flow(kind, name, start_s=start, start_spread_s=SPREAD_S)
        for kind, name, start in zip(
            (scheme, schemes.one("cubic")), ("own", "other"), starts, strict=True
        )
    )
    return ackademy.run(dumbbell(BESIDE_S, bdp, own, other), seed=seed)


def late_share(run: Run) -> float:
    """Of what the two flows deliver in the last half, the part of the scheme."""
    late = [np.nansum(rate[time > BESIDE_S / 2]) for time, rate in both(run)]
    return float(late[0] / sum(late))


def both(run: Run) -> list[tuple[FloatArray, FloatArray]]:
    """Throughput of the scheme and of CUBIC."""
    return [rates(run, name, 1.0) for name in ("own", "other")]


def beside_figure(chosen: Sequence[Scheme]) -> tuple[str, str]:
    """Time series of the first scheme, and shares of all."""
    drawn, shares = {}, {}
    name = chosen[0].label
    for scheme, bdp, is_first in itertools.product(chosen, BUFFERS, (False, True)):
        runs = of_seeds(partial(beside, scheme, bdp, is_first=is_first))
        late = np.array([100 * late_share(run) for run in runs])
        shares[scheme.label, bdp, is_first] = t_interval(late)
        if scheme.label == name and not is_first:
            drawn[bdp] = runs[0]
    out, wide = [], 165
    for column, bdp in enumerate(BUFFERS):
        panel = Panel(60 + (wide + 20) * column, 64, wide, 130, (0, BESIDE_S), (0, 60))
        out += panel.frame(
            f"{bdp:g} BDP", (0, 40, 80, 120), (0, 20, 40, 60), "x" if column else "xy"
        )
        own, other = both(drawn[bdp])
        out.append(panel.line(*other, GREY))
        out.append(panel.line(*own, colour_of(chosen, 0)))
        if not column:
            out.append(upwards(panel, "throughput, Mb/s"))
    out.append('<text class="c s" x="410" y="228">time, s</text>')
    out += legend([(f"{name}, 5 s later", colour_of(chosen, 0)), ("CUBIC, first", GREY)], 250)
    for row, is_first in enumerate((False, True)):
        panel = Panel(60, 292 + 150 * row, 720, 100, (0, 4), (0, 100))
        title = "CUBIC first" if not is_first else "CUBIC second"
        out += panel.frame(f"{title}: share of the scheme, %", (), (0, 25, 50, 75, 100), "y")
        half = panel.down(50.0)
        out.append(f'<path stroke="{GREY}" stroke-dasharray="4 3" d="M60 {half:.1f}h720"/>')
        for place, bdp in enumerate(BUFFERS):
            middle = panel.across(place + 0.5)
            bottom = panel.top + panel.height
            out.append(f'<text class="c s" x="{middle:.1f}" y="{bottom + 16}">{bdp:g} BDP</text>')
            for index, scheme in enumerate(chosen):
                share = shares[scheme.label, bdp, is_first].value
                left = middle + (index - len(chosen) / 2) * 30 + 3
                high = panel.down(share)
                box = f'x="{left:.1f}" y="{high:.1f}" width="24" height="{bottom - high:.1f}"'
                out.append(f'<rect fill="{colour_of(chosen, index)}" {box}/>')
                label = f'x="{left + 12:.1f}" y="{high - 3:.1f}">{share:.0f}</text>'
                out.append(f'<text class="c v" {label}')
    names = [(scheme.label, colour_of(chosen, index)) for index, scheme in enumerate(chosen)]
    out += legend(names, 590)
    title = f"Beside one CUBIC flow, {RATE:g} Mb/s, {RTT_MS:g} ms; mean shares of the last minute"
    rows = [
        [f"`{scheme.label}`"]
        + [
            " · ".join(between(shares[scheme.label, bdp, first], 1) for first in (False, True))
            for bdp in BUFFERS
        ]
        for scheme in chosen
    ]
    head = ("scheme", *(f"{bdp:g} BDP" for bdp in BUFFERS))
    return sheet(title, 606, out), table(head, rows)


def colour_of(chosen: Sequence[Scheme], index: int) -> str:
    """The colour of a scheme, the same with and without a policy."""
    return SCHEMES[len(SCHEMES) - len(chosen) + index]


# On cellular-like links.


def on_trace(scheme: Scheme, file: Path) -> Run:
    """One flow on a link that follows a trace."""
    queue = {"kind": "drop_tail", "packets": CELL_QUEUE}
    return ackademy.run(
        {
            "duration_s": CELL_S,
            "sample_interval_ms": 50,
            "dumbbell": {
                "rtt_ms": CELL_RTT_MS,
                "bottleneck": {"trace": str(file), "queue": queue},
            },
            "flow": [flow(scheme, "own")],
        }
    )


def cellular_figure(chosen: Sequence[Scheme]) -> tuple[str, str]:
    """Throughput and delay on one trace, and the numbers of all."""
    texts = [_core.generate_trace(CELL_S, CELL_MBPS, VOLATILITY, seed) for seed in TRACES]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{seed}.trace" for seed in TRACES]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        runs = {own.label: [on_trace(own, file) for file in files] for own in chosen}
    edges = np.arange(0.0, CELL_S + 0.1, 0.5)
    capacity = capacity_mbps(texts[0], edges)
    shown = list(runs)[: len(chosen) - 2]
    waits = {name: excess_ms(runs[name][0]) for name in shown}
    high = 50.0 * np.ceil(max(np.nanmax(wait) for _, wait in waits.values()) / 50.0)
    top = 5.0 * np.ceil(capacity.max() / 5.0)
    wide, out = (WIDTH - 60 - 20 * len(shown)) / len(shown), []
    for column, name in enumerate(shown):
        left, labels = 60 + (wide + 20) * column, "" if column else "y"
        above = Panel(left, 64, wide, 150, (0, CELL_S), (0, top))
        below = Panel(left, 244, wide, 110, (0, CELL_S), (0, high))
        out += above.frame(name, (0, 10, 20, 30, 40), range(0, int(top) + 1, 10), labels)
        out += below.frame("", (0, 10, 20, 30, 40), range(0, int(high) + 1, 200), "x" + labels)
        colour = colour_of(chosen, list(runs).index(name))
        out.append(above.steps(edges, capacity, SOFT))
        out.append(above.line(*rates(runs[name][0], "own", 0.5), colour))
        out.append(below.line(*waits[name], colour))
        if not column:
            out += [upwards(above, "throughput, Mb/s"), upwards(below, "wait, ms")]
    out.append('<text class="c s" x="410" y="390">time, s</text>')
    out += legend([("capacity of the link", SOFT)], 412)
    title = f"A cellular-like link, {CELL_MBPS:g} Mb/s on the mean, {CELL_RTT_MS:g} ms, "
    title += f"{CELL_QUEUE} packets of buffer"
    head = ("scheme", "of the capacity, %", "median wait, ms", "its p95, ms", "dropped, %")
    rows = [[f"`{name}`", *cellular_row(own)] for name, own in runs.items()]
    return sheet(title, 428, out), table(head, rows)


def excess_ms(run: Run) -> tuple[FloatArray, FloatArray]:
    """Round trip above that of the empty path, means over a quarter of a second."""
    series = run.flow_series
    excess = series["rtt_ms"].to_numpy() - CELL_RTT_MS
    return means(series["time_s"].to_numpy(), excess, 0.25)


def cellular_row(runs: Sequence[Run]) -> list[str]:
    """Means over the traces, with their intervals."""

    def over(value: Callable[[Run], float], digits: int) -> str:
        found = network_interval(np.array([value(run) for run in runs])).interval
        return between(found, digits)

    return [
        over(
            lambda run: (
                100 * bottleneck(run, "delivered_bytes") / bottleneck(run, "capacity_bytes")
            ),
            1,
        ),
        over(lambda run: run.flows["rtt_p50_ms"][0] - CELL_RTT_MS, 0),
        over(lambda run: run.flows["rtt_p95_ms"][0] - CELL_RTT_MS, 0),
        over(lambda run: 100 * run.flows["queue_drops"][0] / run.flows["sent_packets"][0], 2),
    ]


# Throughput-delay planes of the validation networks.


def plane_figure(judged: Path, chosen: Sequence[Scheme]) -> tuple[str, str]:
    """Median share against median wait by class of networks, with intervals.

    Raises:
        AckademyError: if the file lacks a scheme or a class.
    """
    rows = pl.read_csv(judged)
    known = set(rows["scheme"].to_list())
    for scheme in chosen:
        if scheme.label not in known:
            raise AckademyError(f"{judged}: scheme: {scheme.label}: allowed: a file that has it")
    out, lines = [], {own.label: [f"`{own.label}`"] for own in chosen}
    counts = {}
    ticks = (0.1, 0.3, 1, 3, 10)
    for place, (kind, title) in enumerate(CLASSES.items()):
        column, row = place % 3, place // 3
        panel = Panel(60 + 250 * column, 64 + 230 * row, 230, 170, (0.04, 14), (0, 1.05), True)
        within = rows.filter(pl.col("group") == kind)
        counts[kind] = within["scenario"].n_unique()
        labels = "x" if column else "xy"
        out += panel.frame(f"{title} ({counts[kind]})", ticks, (0, 0.25, 0.5, 0.75, 1), labels)
        if not column:
            out.append(upwards(panel, "share of what is fair"))
        for index, scheme in enumerate(chosen):
            own = within.filter(pl.col("scheme") == scheme.label)
            share = median_interval(np.minimum(own["fair_share"].to_numpy(), 1.0))
            wait = median_interval(own["wait_p95_ratio"].to_numpy())
            out += cross(panel, wait, share, colour_of(chosen, index))
            lines[scheme.label].append(f"{share.value:.2f} · {wait.value:.2f}")
    out.append('<text class="c s" x="410" y="516">p95 queueing delay, round trips</text>')
    names = [(scheme.label, colour_of(chosen, index)) for index, scheme in enumerate(chosen)]
    out += legend(names, 542)
    title = "Medians over the validation networks of six classes, with 95 % intervals; ↖ is better"
    head = ("scheme", *(f"{title} ({counts[kind]})" for kind, title in CLASSES.items()))
    return sheet(title, 558, out), table(head, list(lines.values()))


def cross(panel: Panel, wait: Interval, share: Interval, colour: str) -> list[str]:
    """A dot and its two intervals."""
    x, y = panel.across(wait.value), panel.down(share.value)
    low, high = panel.across(wait.low), panel.across(wait.high)
    top, bottom = panel.down(share.high), panel.down(share.low)
    path = f"M{low:.1f} {y:.1f}H{high:.1f}M{x:.1f} {top:.1f}V{bottom:.1f}"
    return [
        f'<path stroke="{colour}" d="{path}"/>',
        f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
    ]


def between(found: Interval, digits: int) -> str:
    """A number with its interval."""
    return f"{found.value:.{digits}f} ± {found.half_width:.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, the first column to the left."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def main() -> None:
    """Write the figures and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("policy", nargs="?", default=str(POLICY), help="folder of the policy")
    parser.add_argument("--law", action="store_true", help="no policy, own_queue alone")
    parser.add_argument("--judged", type=Path, help="CSV file of `ackademy evaluate`")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the figures")
    args = parser.parse_args()
    words = OTHERS if args.law else (args.policy, *OTHERS)
    chosen = [schemes.one(word) for word in words]
    drawn = {
        "split": split_figure(),
        "joining": joining_figure(chosen),
        "beside_cubic": beside_figure(chosen),
        "cellular": cellular_figure(chosen),
    }
    if args.judged:
        drawn["planes"] = plane_figure(args.judged, chosen)
    print(f"Four flows of one kind\n\n{joining_table(chosen)}\n")
    for name, (figure, numbers) in drawn.items():
        write(args.out / f"flagship_{name}.svg", figure)
        print(f"flagship_{name}.svg\n\n{numbers}\n")


if __name__ == "__main__":
    sys.exit(status_of(main))
