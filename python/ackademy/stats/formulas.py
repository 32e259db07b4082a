"""One function per number of a report. Each takes arrays and returns an array or a float.

What is measured over repeated runs (means, variances, intervals) is in `intervals`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars as pl

FloatArray: TypeAlias = npt.NDArray[np.float64]


def throughput_mbps(delivered_bytes: FloatArray, active_s: FloatArray) -> FloatArray:
    """Bytes delivered, headers included, over the time a flow was active (Kong 2018, section 4).

    Args:
        delivered_bytes: shape (n_flows,); in-order bytes at the receiver as sent on the wire; >= 0.
        active_s: shape (n_flows,); seconds in which the flow had something to send; >= 0.

    Returns:
        Shape (n_flows,); Mb/s, >= 0; 0.0 for a flow that was never active.
    """
    return _ratio(8e-6 * np.asarray(delivered_bytes, np.float64), active_s, empty=0.0)


def goodput_mbps(goodput_bytes: FloatArray, active_s: FloatArray) -> FloatArray:
    """New application data over active time (RFC 2647 section 3.17).

    Args:
        goodput_bytes: shape (n_flows,); payload bytes delivered in order, each counted once; >= 0.
        active_s: shape (n_flows,); seconds in which the flow had something to send; >= 0.

    Returns:
        Shape (n_flows,); Mb/s, >= 0, at most the throughput; 0.0 for a flow never active.
    """
    return _ratio(8e-6 * np.asarray(goodput_bytes, np.float64), active_s, empty=0.0)


def delay_ms(rtt_ms: FloatArray, base_rtt_ms: FloatArray) -> FloatArray:
    """Round trip above that of the empty path: d = RTT - RTT_min (Kong 2018, section 4).

    Args:
        rtt_ms: shape (n_flows,); mean round-trip time; `nan` for a flow without a sample.
        base_rtt_ms: shape (n_flows,); propagation only, there and back; >= 0.

    Returns:
        Shape (n_flows,); ms; `nan` without a sample. The packet's own transmission is part of it,
        so an empty queue gives a little more than 0.
    """
    return np.asarray(rtt_ms, np.float64) - np.asarray(base_rtt_ms, np.float64)


def one_way_delay_ms(sent_ms: FloatArray, received_ms: FloatArray) -> float:
    """Mean time from sending to reception (RFC 7679; the delay of LearningCC's figures 2 and 3).

    Args:
        sent_ms: shape (n_packets,); when each packet that arrived left its sender.
        received_ms: shape (n_packets,); when it arrived, by the same clock; >= `sent_ms`.

    Returns:
        ms, >= 0; `nan` when nothing arrived.

    Raises:
        ValueError: if the shapes differ or a packet arrives before it leaves.
    """
    sent, received = np.asarray(sent_ms, np.float64), np.asarray(received_ms, np.float64)
    if sent.shape != received.shape:
        raise ValueError(f"one_way_delay_ms: {sent.shape} sent but {received.shape} received")
    if np.any(received < sent):
        raise ValueError("one_way_delay_ms: a packet arrives before it leaves")
    return float(np.mean(received - sent)) if sent.size else math.nan


def loss_ratio(dropped: FloatArray, sent: FloatArray) -> FloatArray:
    """Part of the packets sent that the network dropped: p of Kong 2018, section 4.

    Args:
        dropped: shape (n_flows,); packets, by full queues and by random loss; >= 0.
        sent: shape (n_flows,); packets, retransmissions included; >= `dropped`.

    Returns:
        Shape (n_flows,); in [0, 1]; 0.0 for a flow that sent nothing.
    """
    return _ratio(np.asarray(dropped, np.float64), sent, empty=0.0)


def pooled_loss(flows: pl.DataFrame) -> float:
    """Part of the packets of all flows together that the network dropped: "loss" in every table.

    Args:
        flows: columns `dropped_packets` and `sent_packets`, a row per flow.

    Returns:
        In [0, 1]; 0.0 where nothing was sent. A flow that sends little weighs little; the mean of
        the flows' own ratios, Kong's p, is another number.
    """
    sent = float(flows["sent_packets"].sum())
    return float(flows["dropped_packets"].sum()) / sent if sent else 0.0


def m_e(throughput_mbps: FloatArray, delay_ms: FloatArray) -> FloatArray:
    """Kong's figure of merit, equation 5: M_e = ln E(tp) - 0.1 ln E(d).

    Args:
        throughput_mbps: any shape; mean throughput in Mb/s; >= 0.
        delay_ms: same shape; mean delay above the empty path in ms; >= 0.

    Returns:
        Same shape, unbounded; -inf without throughput, +inf without delay, `nan` without both
        or with a negative input.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(np.asarray(throughput_mbps)) - 0.1 * np.log(np.asarray(delay_ms))
    return np.asarray(value, np.float64)


def jain_index(shares: FloatArray) -> float:
    """Fairness of the flows' shares of one link (Jain, Chiu and Hawe 1984, equation 1).

    Args:
        shares: shape (n_flows,); throughputs or delays in any one unit; each >= 0.

    Returns:
        In [1 / n_flows, 1]; 1.0 when nothing was sent, since nothing was unfair.

    Raises:
        ValueError: if there are no flows or a share is negative.
    """
    values = np.asarray(shares, np.float64)
    if values.size == 0:
        raise ValueError("jain_index needs at least one flow")
    if np.any(values < 0.0):
        raise ValueError("jain_index needs shares >= 0")
    largest = values.max()
    if largest == 0.0:
        return 1.0
    scaled = values / largest  # squares of tiny or huge shares stay in range
    return float(scaled.sum() ** 2 / (scaled.size * np.square(scaled).sum()))


def utilisation(delivered_bytes: FloatArray, capacity_bytes: FloatArray) -> FloatArray:
    """Part of what a link could carry that it did carry (RFC 5166 section 2.1.1).

    Args:
        delivered_bytes: shape (n_links,); bytes that left the link, headers included; >= 0.
        capacity_bytes: shape (n_links,); its rate integrated over the run; >= 0.

    Returns:
        Shape (n_links,); in [0, 1] but for the packet in transmission at the end; 0.0 for a link
        that was never up.
    """
    return _ratio(np.asarray(delivered_bytes, np.float64), capacity_bytes, empty=0.0)


def goodput_share(goodput_bytes: FloatArray, capacity_bytes: FloatArray) -> FloatArray:
    """Part of what a link could carry that reached applications in order.

    Utilisation counts what is sent twice, and what waits at the receiver behind a gap; this does
    not, so that a flow that stalls or resends on a full link shows.

    Args:
        goodput_bytes: shape (n_links,); payload of its flows delivered in order; >= 0.
        capacity_bytes: shape (n_links,); its rate integrated over the run; >= 0.

    Returns:
        Shape (n_links,); in [0, 1]; below the utilisation by the headers at least; 0.0 for a link
        that was never up.
    """
    return _ratio(np.asarray(goodput_bytes, np.float64), capacity_bytes, empty=0.0)


def convergence_time_s(
    time_s: FloatArray, rate_mbps: FloatArray, target_mbps: float, *, tolerance_ratio: float = 0.1
) -> float:
    """When a flow came within a band around its share and stayed there (RFC 5166 section 2.2.2).

    Args:
        time_s: shape (n,); since the flow, or the one it must make room for, began; increasing.
        rate_mbps: shape (n,); the flow's rate, smoothed by the caller as the question asks; >= 0.
        target_mbps: the share to come to; > 0.
        tolerance_ratio: half the band's width in terms of the target; > 0.

    Returns:
        The first time from which every later sample is inside the band, in s; `nan` if the last
        sample is outside or there is none.

    Raises:
        ValueError: if the shapes differ, or the target or the tolerance is not positive.
    """
    times, rates = np.asarray(time_s, np.float64), np.asarray(rate_mbps, np.float64)
    if times.shape != rates.shape:
        raise ValueError(f"convergence_time_s: {times.shape} times but {rates.shape} rates")
    if target_mbps <= 0.0 or tolerance_ratio <= 0.0:
        raise ValueError("convergence_time_s needs a target and a tolerance above 0")
    outside = np.flatnonzero(~(np.abs(rates - target_mbps) <= tolerance_ratio * target_mbps))
    first_inside = int(outside[-1]) + 1 if outside.size else 0
    return float(times[first_inside]) if first_inside < times.size else math.nan


def _ratio(above: FloatArray, below: FloatArray, *, empty: float) -> FloatArray:
    numerator, denominator = np.broadcast_arrays(above, np.asarray(below, np.float64))
    result: FloatArray = np.full(numerator.shape, empty)
    np.divide(numerator, denominator, out=result, where=denominator > 0.0)
    return result
