"""Metrics of a learning flow over an interval: columns by name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core

FloatArray: TypeAlias = npt.NDArray[np.float64]

COLUMNS = tuple(_core.interval_metrics())
"""names of the columns in the order in which the core writes them"""

TRUTH_COLUMNS = tuple(_core.truth_columns())
"""names of the columns of truth, which only the simulator knows: for rewards and critics"""

PACKET_BITS = 1500 * 8
"""bits of a packet of unknown size; *proposed*, the default packet size of scenarios"""

SHORTEST_S = 1e-3
"""minimum length of an interval in a denominator; *proposed*"""


class _Column:
    """A column of `IntervalMetrics`, by the name that it is given there."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._place = COLUMNS.index(name)

    def __get__(self, own: IntervalMetrics, owner: type | None = None) -> FloatArray:
        return own.array[..., self._place]


class IntervalMetrics:
    """Intervals of learning flows, one per row.

    Every value is finite. A value without a sample is 0; `rtt_ms` then takes the smoothed time.

    Args:
        array: shape (..., 17), the columns `COLUMNS`; kept, not copied.
        throughput_max_mbps: shape (...), the highest throughput that an interval of the flow has
            had in its episode, this one included; by default this one's.
        truth: shape (..., 16), the columns `TRUTH_COLUMNS` of the same intervals; only for a reward
            that needs it.

    Raises:
        ValueError: if the last axis is not 17 long, or that of the truth not 16.
    """

    __slots__ = ("_throughput_max_mbps", "_truth", "array")

    time_s = _Column()
    """end of the interval, since the start of the simulation"""
    duration_s = _Column()
    """length of the interval"""
    acked_packets = _Column()
    """newly acknowledged, in full packets; may be fractional"""
    lost_packets = _Column()
    """newly declared lost, in full packets; may be fractional"""
    throughput_mbps = _Column()
    """acknowledged over the length of the interval"""
    loss_ratio = _Column()
    """lost over lost and acknowledged, in [0, 1]"""
    rtt_mean_ms = _Column()
    """mean round-trip sample; 0 without a sample"""
    rtt_min_ms = _Column()
    """smallest round-trip sample; 0 without a sample"""
    rtt_first_ms = _Column()
    """first round-trip sample; 0 without a sample"""
    rtt_last_ms = _Column()
    """last round-trip sample; 0 without a sample"""
    rtt_slope = _Column()
    """slope of the round-trip samples over time, seconds per second"""
    flow_min_rtt_ms = _Column()
    """smallest round trip of the flow, or of 10 s (`rtt_min = "window"`); 0 before any"""
    srtt_ms = _Column()
    """smoothed round-trip time at the end of the interval (RFC 6298); 0 before a sample"""
    ack_gap_ms = _Column()
    """mean time between acknowledged packets"""
    cwnd_packets = _Column()
    """congestion window at the end of the interval, in full packets"""
    inflight_packets = _Column()
    """sent, neither acknowledged nor declared lost, at the end of the interval"""
    pacing_mbps = _Column()
    """pacing rate at the end of the interval; 0 when the flow is not paced"""

    def __init__(
        self,
        array: FloatArray,
        throughput_max_mbps: FloatArray | None = None,
        truth: FloatArray | None = None,
    ) -> None:
        if array.ndim == 0 or array.shape[-1] != len(COLUMNS):
            raise ValueError(f"array of shape {array.shape}: allowed: (..., {len(COLUMNS)})")
        self.array = array
        if truth is not None and truth.shape != (*array.shape[:-1], len(TRUTH_COLUMNS)):
            wanted = (*array.shape[:-1], len(TRUTH_COLUMNS))
            raise ValueError(f"truth of shape {truth.shape}: allowed: {wanted}")
        self._throughput_max_mbps = throughput_max_mbps
        self._truth = truth

    @property
    def truth(self) -> FloatArray:
        """What only the simulator knows, shape (..., 16), columns `TRUTH_COLUMNS`.

        Raises:
            ValueError: if the simulations were not asked for it.
        """
        if self._truth is None:
            raise ValueError("truth was not collected; allowed: Episodes(..., truth=True)")
        return self._truth

    @property
    def throughput_max_mbps(self) -> FloatArray:
        """Highest throughput of an interval of this flow in its episode."""
        known = self._throughput_max_mbps
        return self.throughput_mbps if known is None else known

    @property
    def rtt_ms(self) -> FloatArray:
        """Mean round-trip sample, or the smoothed time where the interval has no sample."""
        mean = self.rtt_mean_ms
        return np.where(mean > 0.0, mean, self.srtt_ms)

    @property
    def sent_mbps(self) -> FloatArray:
        """Acknowledged and lost over the length of the interval: the sending rate."""
        return self.throughput_mbps + self.lost_mbps

    @property
    def lost_mbps(self) -> FloatArray:
        """Lost over the length of the interval, in the size of the packets that were acknowledged.

        Without acknowledged packets, a packet counts 1500 bytes.
        """
        acked = self.acked_packets
        counted = self.lost_packets * PACKET_BITS / (np.maximum(self.duration_s, SHORTEST_S) * 1e6)
        scaled = self.throughput_mbps * self.lost_packets / np.maximum(acked, 1e-9)
        return np.where(acked > 0.0, scaled, counted)

    def by_name(self) -> dict[str, FloatArray]:
        """Every column of the array, as views."""
        return {name: self.array[..., place] for place, name in enumerate(COLUMNS)}
