"""Metrics that compare schemes over networks: power, friendliness, dominance, response.

Every function takes numbers of runs that are finished and states its unit and its degenerate
case. `ackademy.studies.league.scores` applies them to a league, beside those of
`ackademy.stats.regret`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.stats.formulas import FloatArray

MARGINS = (0.05, 0.1, 0.2)
"""of the best score: who is within it wins, too"""
FRIENDLY_MARGIN = 0.1
SHARE_TOLERANCE, WAIT_TOLERANCE, LOSS_TOLERANCE = 0.02, 0.02, 0.001
"""differences that do not count in a comparison of two Pareto points"""
WAIT_TOLERANCE_MS = 1.0
"""the same of a queueing delay where that is more than `WAIT_TOLERANCE` of the round trip"""
SETTLED_RATIO, SETTLED_S = 0.2, 5.0
"""settled: within this part of the fair share, for so long"""
CDF_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def power_score(throughput_mbps: float, one_way_delay_ms: float) -> float:
    """Throughput squared over mean one-way delay, as Sage's and ccBench's leagues score a run.

    Args:
        throughput_mbps: >= 0.
        one_way_delay_ms: mean, propagation included, > 0; `nan` where nothing arrived.

    Returns:
        (Mb/s)^2 per ms, >= 0; 0.0 where nothing arrived. The numbers are not rounded.

    Raises:
        ValueError: if a number is out of range.
    """
    if throughput_mbps < 0.0 or one_way_delay_ms <= 0.0:
        found = f"{throughput_mbps} Mb/s, {one_way_delay_ms} ms"
        raise ValueError(f"power_score needs throughput >= 0 and delay > 0, not {found}")
    if math.isnan(throughput_mbps) or math.isnan(one_way_delay_ms):
        return 0.0
    return throughput_mbps**2 / one_way_delay_ms


def power_winners(scores: Mapping[str, float], margin: float = 0.1) -> set[str]:
    """The schemes whose score is within a margin of the best on one network and segment.

    Args:
        scores: by scheme, any unit, >= 0.
        margin: in [0, 1): S >= (1 - margin) max S wins.

    Returns:
        Their names; none where no score is above 0.
    """
    best = max(scores.values(), default=0.0)
    if not best > 0.0:
        return set()
    return {name for name, score in scores.items() if score >= (1.0 - margin) * best}


def winning_rates(rounds: Sequence[Mapping[str, float]], margin: float = 0.1) -> dict[str, float]:
    """Wins over rounds played, of every scheme: the ranking of a power league (M1).

    Args:
        rounds: scores by scheme, one mapping per network and segment.
        margin: as in `power_winners`.

    Returns:
        By scheme, in [0, 1]: its wins over the rounds in which it has a score.
    """
    played: dict[str, int] = {}
    won: dict[str, int] = {}
    for scores in rounds:
        winners = power_winners(scores, margin)
        for name in scores:
            played[name] = played.get(name, 0) + 1
            won[name] = won.get(name, 0) + (name in winners)
    return {name: won[name] / count for name, count in played.items()}


def friendly_winners(
    rates_mbps: Mapping[str, float], fair_mbps: float, margin: float = FRIENDLY_MARGIN
) -> set[str]:
    """The schemes that are about as close to the fair share beside CUBIC as the closest one (M2).

    With g the smallest distance of a scheme to the fair share F in this window, those win whose
    throughput x has (1 - margin) (F - g) <= x <= (1 + margin) (F + g).

    Args:
        rates_mbps: by scheme, throughput in one window of time, Mb/s, >= 0.
        fair_mbps: half of the link, Mb/s, > 0.
        margin: in [0, 1).

    Returns:
        Their names; none without a scheme.

    Raises:
        ValueError: if the fair share is not above 0.
    """
    if not fair_mbps > 0.0:
        raise ValueError(f"friendly_winners needs a fair share > 0, not {fair_mbps}")
    known = {name: rate for name, rate in rates_mbps.items() if not math.isnan(rate)}
    if not known:
        return set()
    gap = min(abs(fair_mbps - rate) for rate in known.values())
    low, high = (1.0 - margin) * (fair_mbps - gap), (1.0 + margin) * (fair_mbps + gap)
    return {name for name, rate in known.items() if low <= rate <= high}


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A scheme on a network, as dominance compares it (M5)."""

    share: float
    """throughput over the fair share, >= 0; more than 1 counts as 1; more is better"""
    wait_ratio: float
    """95th percentile of the queueing delay over the empty round trip, >= 0; less is better"""
    loss: float
    """packets that queues dropped over packets sent, [0, 1]; less is better"""


def dominates(ours: ParetoPoint, other: ParetoPoint, rtt_ms: float) -> bool:
    """Whether no coordinate is worse by more than its tolerance, and one is better by more (M5).

    Tolerances are 0.02 of the fair share; the larger of 0.02 of the round trip and 1 ms of queueing
    delay; and 0.1 % of loss.

    Args:
        ours: the point that may dominate.
        other: the point that may be dominated.
        rtt_ms: round trip of the empty path, > 0.

    Returns:
        Never true of a point and itself. A delay that is unknown, since nothing arrived, is worse
        than any known one and equal to another unknown one.

    Raises:
        ValueError: if the round trip is not above 0.
    """
    if not rtt_ms > 0.0:
        raise ValueError(f"dominates needs a round trip > 0 ms, not {rtt_ms}")
    wait = max(WAIT_TOLERANCE, WAIT_TOLERANCE_MS / rtt_ms)
    gains = (
        (min(ours.share, 1.0) - min(other.share, 1.0), SHARE_TOLERANCE),
        (_less(ours.wait_ratio, other.wait_ratio), wait),
        (other.loss - ours.loss, LOSS_TOLERANCE),
    )
    return all(gain >= -least for gain, least in gains) and any(
        gain > least for gain, least in gains
    )


def pareto_front(points: Mapping[str, ParetoPoint], rtt_ms: float) -> set[str]:
    """The schemes that no other one dominates on one network.

    Args:
        points: by scheme.
        rtt_ms: round trip of the empty path, > 0.

    Returns:
        Their names. With tolerances dominance is not transitive, so the set may be empty.
    """
    return {
        name
        for name, own in points.items()
        if not any(dominates(other, own, rtt_ms) for key, other in points.items() if key != name)
    }


def cdf_summary(values: FloatArray, levels: Sequence[float] = CDF_LEVELS) -> tuple[float, ...]:
    """The points of an empirical distribution at these levels (M7).

    Args:
        values: any shape, flattened, any unit; `nan` is left out.
        levels: each in [0, 1].

    Returns:
        One value per level, interpolated between the sorted values; `nan` without a value.
    """
    known = np.asarray(values, np.float64).ravel()
    known = known[~np.isnan(known)]
    if known.size == 0:
        return (math.nan,) * len(levels)
    return tuple(float(value) for value in np.quantile(known, levels))


def response_ratios(
    rate_mbps: FloatArray, capacity_mbps: FloatArray, rtt_ms: FloatArray, base_rtt_ms: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Use of the link and round trip over the empty one, interval by interval (M7).

    Args:
        rate_mbps: shape (n,); goodput or throughput of the flow in each interval, >= 0.
        capacity_mbps: shape (n,); what the link could carry, >= 0.
        rtt_ms: shape (n,); round trip in the interval; `nan` without a sample.
        base_rtt_ms: shape (n,); of the empty path then, > 0.

    Returns:
        Both of shape (n,), no unit; `nan` where the link is down, or without a sample.

    Raises:
        ValueError: if the shapes differ or an empty round trip is not above 0.
    """
    arrays = [
        np.asarray(values, np.float64) for values in (rate_mbps, capacity_mbps, rtt_ms, base_rtt_ms)
    ]
    if any(own.shape != arrays[0].shape or own.ndim != 1 for own in arrays):
        shapes = ", ".join(str(own.shape) for own in arrays)
        raise ValueError(f"response_ratios needs four arrays of one shape (n,), not {shapes}")
    rate, capacity, rtt, base = arrays
    if not np.all(base > 0.0):
        raise ValueError("response_ratios needs empty round trips > 0")
    used = np.full(rate.shape, math.nan)
    np.divide(rate, capacity, out=used, where=capacity > 0.0)
    return used, rtt / base


def settling_time_s(
    rates_mbps: FloatArray, fair_mbps: FloatArray | float, interval_s: float
) -> float:
    """Time from an event until every flow stays near its fair share for five seconds.

    Unlike `formulas.convergence_time_s` it asks for five seconds, not for the rest of the run.

    Args:
        rates_mbps: shape (flows, n); throughput in consecutive intervals after the event, >= 0.
        fair_mbps: each flow's fair share, one for all or shape (flows,); > 0.
        interval_s: length of an interval, > 0; one second is customary.

    Returns:
        Seconds from the event to the start of the first such five seconds, all flows within
        `SETTLED_RATIO` of their share; infinite if there are none; 0.0 without a flow.

    Raises:
        ValueError: if a number is out of range.
    """
    rates = np.asarray(rates_mbps, np.float64)
    if rates.ndim != 2 or not interval_s > 0.0:
        raise ValueError("settling_time_s needs rates of shape (flows, n) and interval_s > 0")
    fair = np.broadcast_to(np.asarray(fair_mbps, np.float64), rates.shape[:1])
    if not np.all(fair > 0.0):
        raise ValueError("settling_time_s needs fair shares > 0")
    if rates.shape[0] == 0:
        return 0.0
    near = np.all(np.abs(rates - fair[:, None]) <= SETTLED_RATIO * fair[:, None], axis=0)
    wanted = math.ceil(SETTLED_S / interval_s - 1e-9)
    if near.size < wanted:
        return math.inf
    inside = np.convolve(near.astype(np.float64), np.ones(wanted), "valid") > wanted - 0.5
    return float(np.argmax(inside)) * interval_s if inside.any() else math.inf


def _less(ours: float, other: float) -> float:
    """By how much ours is below the other's, an unknown number being above all."""
    if math.isnan(ours) or math.isnan(other):
        return float(math.isnan(other)) - float(math.isnan(ours))
    return other - ours
