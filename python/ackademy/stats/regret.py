"""Regret: how far a flow stays behind one that knows the network (league metric M3).

The omniscient flow sends at C(t), the rate of the bottleneck, and its packets never wait: its round
trip is the propagation delay and the time on the wire. Several flows share C(t) by max-min
fairness. `ackademy.stats.omniscient` reads C(t) and the delays from a scenario.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ackademy.stats.formulas import FloatArray
from ackademy.stats.scores import SHARE_FLOOR, utility


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the path does not change."""

    start_s: float
    end_s: float
    """above `start_s`"""
    rate_mbps: float
    """of the bottleneck, headers included; 0 in an outage"""
    rtt_ms: float
    """of a packet that never waits"""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a flow wants."""

    start_s: float
    stop_s: float
    mbps: float = math.inf
    """infinite for a bulk transfer"""
    yields: bool = True
    """false for datagrams, which are sent whatever the network does"""


@dataclass(frozen=True, slots=True)
class Ideal:
    """What an omniscient flow gets."""

    mbit: float
    """>= 0"""
    rtt_ms: float
    """mean over what it sends; `nan` if it sends nothing"""


def max_min_mbps(capacity_mbps: float, wanted_mbps: FloatArray) -> FloatArray:
    """Max-min fair shares of one link (Bertsekas and Gallager 1992, section 6.5.2).

    Args:
        capacity_mbps: of the link; >= 0.
        wanted_mbps: shape (n_flows,); what each flow wants; >= 0, may be infinite.

    Returns:
        Shape (n_flows,); Mb/s. No flow gets more than it wants, and the sum is the capacity unless
        all together want less. Flows that want more than an equal share of what the others leave
        get equal shares.
    """
    wanted = np.asarray(wanted_mbps, np.float64)
    shares = np.zeros(wanted.shape)
    left = capacity_mbps
    order = np.argsort(wanted, kind="stable")
    for served, index in enumerate(order):
        equal = left / (wanted.size - served)
        shares[index] = min(float(wanted[index]), equal)
        left -= float(shares[index])
    return shares


def omniscient(stretches: Sequence[Stretch], demands: Sequence[Demand]) -> list[Ideal]:
    """What each flow would get if all knew the network and shared it by max-min fairness.

    Datagrams come first, because they yield to no flow; the rest share what is left.

    Args:
        stretches: of the bottleneck, in order, without a gap.
        demands: one per flow.

    Returns:
        One per demand.
    """
    mbit = np.zeros(len(demands))
    weighted_ms = np.zeros(len(demands))
    for stretch in _cut(stretches, demands):
        shares = _shares(stretch, demands) * (stretch.end_s - stretch.start_s)
        mbit += shares
        weighted_ms += shares * stretch.rtt_ms
    return [
        Ideal(float(sent), float(total / sent) if sent else math.nan)
        for sent, total in zip(mbit, weighted_ms, strict=True)
    ]


def regret(fair_share: float, rtt_over_ideal: float) -> float:
    """Utility of the omniscient flow, which is 0, minus that of a flow: u* - u.

    Args:
        fair_share: throughput over that of the omniscient flow; >= 0, more than 1 counts as 1, for
            what a flow takes from others does not make up for its queue; `nan` without one.
        rtt_over_ideal: mean round trip over the omniscient flow's; less than 1 counts as 1; `nan`
            without a sample.

    Returns:
        -ln share + ln ratio, in [0, -ln 0.001]: the highest without a sample, or where the share is
        below a thousandth.
    """
    if math.isnan(fair_share) or math.isnan(rtt_over_ideal):
        return -math.log(SHARE_FLOOR)
    return max(0.0, -utility(min(fair_share, 1.0), max(rtt_over_ideal, 1.0)))


def power_regret(
    throughput_mbps: float, delay_ms: float, ideal_mbps: float, ideal_ms: float
) -> float:
    """1 - S / S* with S = throughput^2 / delay, the score of the power league.

    Args:
        throughput_mbps: of the flow; >= 0.
        delay_ms: its mean delay, propagation included; > 0, `nan` without a sample.
        ideal_mbps: of the omniscient flow.
        ideal_ms: its delay, of the same kind; > 0.

    Returns:
        In [0, 1] for a flow that is nowhere better than the omniscient one; 1 without a sample;
        0 where nothing could be sent.
    """
    if ideal_mbps == 0.0:
        return 0.0
    if math.isnan(delay_ms):
        return 1.0
    return 1.0 - (throughput_mbps / ideal_mbps) ** 2 * ideal_ms / delay_ms


def _cut(stretches: Sequence[Stretch], demands: Sequence[Demand]) -> list[Stretch]:
    """The same stretches, cut where a flow starts or stops."""
    times = {time for own in demands for time in (own.start_s, own.stop_s)}
    found = []
    for own in stretches:
        inner = sorted(time for time in times if own.start_s < time < own.end_s)
        ends = [own.start_s, *inner, own.end_s]
        found += [Stretch(start, end, own.rate_mbps, own.rtt_ms) for start, end in pairwise(ends)]
    return found


def _shares(stretch: Stretch, demands: Sequence[Demand]) -> FloatArray:
    """Mb/s of each flow in a stretch."""
    active = [own.start_s <= stretch.start_s < own.stop_s for own in demands]
    wanted = np.array([own.mbps if on else 0.0 for own, on in zip(demands, active, strict=True)])
    yields = np.array([own.yields for own in demands], np.bool_)
    shares = np.zeros(len(demands))
    shares[~yields] = max_min_mbps(stretch.rate_mbps, wanted[~yields])
    shares[yields] = max_min_mbps(stretch.rate_mbps - float(shares.sum()), wanted[yields])
    return shares
