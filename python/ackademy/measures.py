"""The numbers of papers' tables: how they are called and how they follow from the runs of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ackademy.intervals import mean, variance
from ackademy.metrics import FloatArray
from ackademy.metrics import m_e as figure_of_merit

COLUMNS = ("throughput_mbps", "delay_ms", "loss_ratio", "timeouts", "base_rtt_ms")
"""What is kept of each flow of each run; the last axis of `Measured.samples`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a table: how to call it and how to get it from samples (runs, flows, columns)."""

    label: str
    unit: str
    about: str
    statistic: Callable[[FloatArray], float]
    is_mean: bool = False
    """a plain mean over runs and flows: Student's interval holds"""


METRICS: Mapping[str, Metric] = {
    "throughput_mean_mbps": Metric(
        "E(tp)", "Mb/s", "mean throughput", lambda s: mean(s[..., 0]), is_mean=True
    ),
    "throughput_variance": Metric(
        "V(tp)", "(Mb/s)²", "variance of throughput", lambda s: variance(s[..., 0])
    ),
    "delay_mean_ms": Metric(
        "E(d)", "ms", "mean of RTT − RTT_min", lambda s: mean(s[..., 1]), is_mean=True
    ),
    "delay_variance": Metric("V(d)", "ms²", "variance of delay", lambda s: variance(s[..., 1])),
    "loss_ratio": Metric(
        "p", "", "packets dropped over packets sent", lambda s: mean(s[..., 2]), is_mean=True
    ),
    "m_e": Metric(
        "M_e",
        "",
        "ln E(tp) − 0.1 ln E(d)",
        lambda s: float(figure_of_merit(np.array(mean(s[..., 0])), np.array(mean(s[..., 1])))),
    ),
    "rtt_mean_ms": Metric(
        "RTT", "ms", "mean round-trip time", lambda s: mean(s[..., 1] + s[..., 4]), is_mean=True
    ),
    "timeouts": Metric(
        "time-outs", "", "per flow and run", lambda s: mean(s[..., 3]), is_mean=True
    ),
}
