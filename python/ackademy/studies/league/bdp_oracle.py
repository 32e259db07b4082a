"""The BDP oracle: a flow that is told the rate and the round trip of its path (league metric M3).

`ackademy.studies.league.oracle` names this file as a controller, so it stands alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackademy._core import Ack, Flow, Loss


class BdpOracle:
    """Window C(t) tau(t) / n in whole packets, paced at C(t) / n.

    C is the rate of the bottleneck, tau the round trip of a packet that never waits, n the number
    of flows. The settings `rates_mbps` and `rtts_ms` are schedules, as `0:12 7:24` for 12 from the
    beginning and 24 from second 7; `rtts_ms` is the propagation alone. A step takes effect with the
    first record after it. Losses change nothing.
    """

    def __init__(self, flow: Flow) -> None:
        self._rates = _steps(flow.params["rates_mbps"])
        self._rtts = _steps(flow.params["rtts_ms"])
        self._flows = float(flow.params["flows"])
        self._packet = flow.mss_bytes
        self._follow(0.0)

    def on_ack(self, ack: Ack) -> None:
        """Follow the schedules."""
        self._follow(ack.now_ns * 1e-9)

    def on_loss(self, loss: Loss) -> None:
        """Follow the schedules."""
        self._follow(loss.now_ns * 1e-9)

    def _follow(self, now_s: float) -> None:
        rate_bps = 1e6 * _at(self._rates, now_s)
        wire_s = 8.0 * self._packet / rate_bps
        window = rate_bps / 8.0 * (1e-3 * _at(self._rtts, now_s) + wire_s) / self._flows
        self.cwnd_bytes = self._packet * max(1.0, math.ceil(window / self._packet - 1e-9))
        self.pacing_bps = rate_bps / self._flows


def _steps(text: float | str) -> list[tuple[float, float]]:
    """From second, value: latest first."""
    pairs = (word.split(":") for word in str(text).split())
    return [(float(start), float(value)) for start, value in pairs][::-1]


def _at(steps: list[tuple[float, float]], now_s: float) -> float:
    """The value of a schedule at a time."""
    return next(value for start, value in steps if start <= now_s)
