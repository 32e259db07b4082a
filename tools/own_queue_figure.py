"""Draw the figure of docs/reference/controllers/own_queue.md.

    python tools/own_queue_figure.py

Two flows of `own_queue` on 50 Mb/s, 40 ms, one bandwidth-delay product of buffer. The second starts
at 12 s and ends at 24 s.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ackademy
from flagship_figures import FLOWS, GREY, Panel, legend, sheet

FIGURE = Path(__file__).parents[1] / "docs" / "img" / "own_queue.svg"
RATE, RTT_MS, SECONDS = 50.0, 40.0, 30.0
PACKET_MBIT = 1500 * 8 / 1e6


def measured() -> ackademy.Run:
    """The run."""
    link = {"rate_mbps": RATE, "queue": {"kind": "drop_tail", "bdp": 1.0}}
    flows = [
        {"name": "first", "controller": "own_queue"},
        {"name": "second", "controller": "own_queue", "start_s": 12.0, "stop_s": 24.0},
    ]
    scenario = {
        "duration_s": SECONDS,
        "dumbbell": {"rtt_ms": RTT_MS, "bottleneck": link},
        "flow": flows,
    }
    return ackademy.run(scenario, seed=1, sample_interval_ms=100)


def smooth(values: np.ndarray, width: int = 5) -> np.ndarray:
    """Means over `width` samples; the ends keep their values."""
    means = np.convolve(values, np.ones(width) / width, mode="same")
    ends = width // 2
    return np.concatenate([values[:ends], means[ends:-ends], values[-ends:]])


def figure() -> str:
    """The figure as SVG."""
    series = measured().flow_series
    shown = series["time_s"] < SECONDS - 0.5
    top = Panel(60, 70, 720, 150, (0.0, SECONDS), (0.0, 60.0))
    low = Panel(60, 300, 720, 150, (0.0, SECONDS), (0.0, 20.0))
    ticks = range(0, 31, 5)
    drawn = [
        *top.frame("Throughput, Mb/s", ticks, (0, 20, 40, 60)),
        *low.frame(
            "Packets of the first flow in the queue, k, and its target, α",
            ticks,
            (0, 5, 10, 15, 20),
        ),
    ]
    for name, colour in zip(("first", "second"), FLOWS, strict=False):
        rows = series.filter((series["flow"] == name) & shown)
        time, rate = rows["time_s"].to_numpy(), smooth(rows["throughput_mbps"].to_numpy())
        drawn.append(top.line(time, np.where(rate > 0.0, rate, np.nan), colour))
        if name == "first":
            x = rate / PACKET_MBIT
            rtt_s = rows["rtt_ms"].to_numpy() / 1000.0
            drawn.append(low.line(time, smooth(x * (rtt_s - rtt_s[rtt_s > 0].min())), colour))
            drawn.append(low.line(time, 3.5 * np.sqrt(x / 833.0), GREY, 'stroke-dasharray="5 3" '))
    drawn += legend((("first flow", FLOWS[0]), ("second flow", FLOWS[1])), 250)
    drawn += legend((("k", FLOWS[0]), ("α = 3.5·√(x / 833)", GREY)), 482)
    drawn.append('<text class="c s" x="700" y="482">time, s</text>')
    return sheet("own_queue: two flows on 50 Mb/s, 40 ms", 500, drawn)


if __name__ == "__main__":
    FIGURE.write_text(figure(), encoding="utf-8")
