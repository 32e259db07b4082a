"""Harm: how much worse a flow does beside a controller than alone (Ware et al., HotNets 2019).

The victim's number is taken twice on the same network: `alone`, with the link to itself, and
`beside` the evaluated controller.
"""

from __future__ import annotations

import math

import numpy as np

from ackademy.stats.formulas import FloatArray

STARVED_RATIO = 0.1
"""starved: less than this part of the fair share"""
STARVED_S = 10.0
"""in any window of this length"""


def harm(alone: float, beside: float, more_is_better: bool) -> float:
    """Part of a victim's performance that a competitor takes away.

    More is better: max(0, (x - y) / x). Less is better: max(0, (y - x) / y).

    Args:
        alone: x, the victim's number on the network to itself, >= 0, in any unit; infinite for a
            transfer that does not finish.
        beside: y, its number beside the competitor, >= 0, in the same unit; infinite likewise.
        more_is_better: whether a larger number is a better one (throughput), or a smaller one
            (delay, loss, completion time).

    Returns:
        In [0, 1], no unit: 0 no harm, 1 all is lost. 0 where the victim has nothing to lose:
        nothing delivered alone, nothing worse than 0 beside, or a transfer that does not finish
        even alone. `nan` where a number is.

    Raises:
        ValueError: if a number is below 0, or a throughput is infinite.
    """
    if alone < 0.0 or beside < 0.0:
        raise ValueError(f"harm needs numbers >= 0, not {alone} and {beside}")
    if more_is_better and (math.isinf(alone) or math.isinf(beside)):
        raise ValueError(f"harm: infinite where more is better: {alone} and {beside}")
    if math.isnan(alone) or math.isnan(beside):
        return math.nan
    # Where there is harm, the larger of the two numbers is the denominator.
    upper, lower = (alone, beside) if more_is_better else (beside, alone)
    if upper <= lower:
        return 0.0
    return 1.0 if math.isinf(upper) else (upper - lower) / upper


def excess_harm(by_judged: float, by_own_kind: float) -> float:
    """E = H(A to B) - H(B to B): what a scheme takes beyond what the victim's own kind takes.

    Args:
        by_judged: harm of the evaluated scheme A to the victim B, in [0, 1].
        by_own_kind: harm of B to B on the same network, in [0, 1].

    Returns:
        In [-1, 1], no unit; at most 0 where A is no worse a neighbour than B itself. `nan` where
        a harm is.

    Raises:
        ValueError: if a harm is outside [0, 1].
    """
    for value in (by_judged, by_own_kind):
        if not (math.isnan(value) or 0.0 <= value <= 1.0):
            raise ValueError(f"excess_harm needs harms in [0, 1], not {value}")
    return by_judged - by_own_kind


def is_starved(rate_mbps: FloatArray, fair_mbps: FloatArray | float, interval_s: float) -> bool:
    """Whether a flow gets less than a tenth of its fair share in any window of 10 s.

    Args:
        rate_mbps: shape (n,); the flow's throughput in consecutive intervals, Mb/s, >= 0.
        fair_mbps: its fair share, one for all or shape (n,); Mb/s, >= 0.
        interval_s: length of an interval, in (0, 10].

    Returns:
        Whether the mean rate of some window is below `STARVED_RATIO` of the mean fair share of the
        same window. Windows overlap and move by one interval; a window has the whole number of
        intervals nearest below 10 s. Less than 10 s is one window. False without an interval, and
        in a window whose fair share is 0.

    Raises:
        ValueError: if a number is out of range or the shapes differ.
    """
    rates = np.asarray(rate_mbps, np.float64)
    fair = np.broadcast_to(np.asarray(fair_mbps, np.float64), rates.shape)
    if not 0.0 < interval_s <= STARVED_S:
        raise ValueError(f"is_starved needs interval_s in (0, {STARVED_S:g}], not {interval_s}")
    if rates.ndim != 1 or not (np.all(rates >= 0.0) and np.all(fair >= 0.0)):
        raise ValueError("is_starved needs rates and fair shares >= 0, of shape (n,)")
    if rates.size == 0:
        return False
    window = min(rates.size, math.floor(STARVED_S / interval_s + 1e-9))
    ones = np.ones(window)
    had, due = (np.convolve(values, ones, "valid") for values in (rates, fair))
    return bool(np.any(had < STARVED_RATIO * due - 1e-12 * due))
