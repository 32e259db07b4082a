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
    def time_s(self) -> FloatArray:
        """End of the interval, since the start of the simulation."""
        return self.array[..., 0]

    @property
    def duration_s(self) -> FloatArray:
        """Length of the interval."""
        return self.array[..., 1]

    @property
    def acked_packets(self) -> FloatArray:
        """Newly acknowledged, in full packets; may be fractional."""
        return self.array[..., 2]

    @property
    def lost_packets(self) -> FloatArray:
        """Newly declared lost, in full packets; may be fractional."""
        return self.array[..., 3]

    @property
    def throughput_mbps(self) -> FloatArray:
        """Acknowledged over the length of the interval."""
        return self.array[..., 4]

    @property
    def loss_ratio(self) -> FloatArray:
        """Lost over lost and acknowledged, in [0, 1]."""
        return self.array[..., 5]

    @property
    def rtt_mean_ms(self) -> FloatArray:
        """Mean round-trip sample; 0 without a sample."""
        return self.array[..., 6]

    @property
    def rtt_min_ms(self) -> FloatArray:
        """Smallest round-trip sample; 0 without a sample."""
        return self.array[..., 7]

    @property
    def rtt_first_ms(self) -> FloatArray:
        """First round-trip sample; 0 without a sample."""
        return self.array[..., 8]

    @property
    def rtt_last_ms(self) -> FloatArray:
        """Last round-trip sample; 0 without a sample."""
        return self.array[..., 9]

    @property
    def rtt_slope(self) -> FloatArray:
        """Slope of the round-trip samples over time, seconds per second."""
        return self.array[..., 10]

    @property
    def flow_min_rtt_ms(self) -> FloatArray:
        """Smallest round trip of the flow, or of 10 s (`rtt_min = "window"`); 0 before any."""
        return self.array[..., 11]

    @property
    def srtt_ms(self) -> FloatArray:
        """Smoothed round-trip time at the end of the interval (RFC 6298); 0 before a sample."""
        return self.array[..., 12]

    @property
    def ack_gap_ms(self) -> FloatArray:
        """Mean time between acknowledged packets."""
        return self.array[..., 13]

    @property
    def cwnd_packets(self) -> FloatArray:
        """Congestion window at the end of the interval, in full packets."""
        return self.array[..., 14]

    @property
    def inflight_packets(self) -> FloatArray:
        """Sent, neither acknowledged nor declared lost, at the end of the interval."""
        return self.array[..., 15]

    @property
    def pacing_mbps(self) -> FloatArray:
        """Pacing rate at the end of the interval; 0 when the flow is not paced."""
        return self.array[..., 16]

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
