"""Harm of Ware et al. (HotNets 2019): formula, direction, degenerate cases, starvation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ackademy.stats.harm import excess_harm, harm, is_starved


@pytest.mark.parametrize(
    ("alone", "beside", "more_is_better", "expected"),
    [
        (10.0, 5.0, True, 0.5),
        (10.0, 10.0, True, 0.0),
        (10.0, 0.0, True, 1.0),
        (20.0, 80.0, False, 0.75),
        (20.0, 20.0, False, 0.0),
        (0.0, 0.02, False, 1.0),
    ],
)
def test_harm_is_the_part_lost_of_the_larger_number(
    alone: float, beside: float, more_is_better: bool, expected: float
) -> None:
    assert harm(alone, beside, more_is_better) == pytest.approx(expected)


def test_harm_has_no_unit() -> None:
    assert harm(3.0, 1.0, True) == pytest.approx(harm(3e6, 1e6, True))
    assert harm(1.0, 3.0, False) == pytest.approx(harm(1e-3, 3e-3, False))


@pytest.mark.parametrize(("alone", "beside"), [(5.0, 6.0), (0.0, 4.0), (0.0, 0.0)])
def test_more_than_alone_is_no_harm(alone: float, beside: float) -> None:
    assert harm(alone, beside, True) == 0.0
    assert harm(beside, alone, False) == 0.0


def test_transfer_that_does_not_finish_beside_another_is_harmed_wholly() -> None:
    assert harm(800.0, math.inf, False) == 1.0
    assert harm(math.inf, math.inf, False) == 0.0
    assert harm(math.inf, 800.0, False) == 0.0


def test_unknown_number_gives_unknown_harm() -> None:
    assert math.isnan(harm(math.nan, 1.0, True))
    assert math.isnan(harm(1.0, math.nan, False))
    assert math.isnan(excess_harm(math.nan, 0.5))


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="numbers >= 0"):
        harm(-1.0, 1.0, True)
    with pytest.raises(ValueError, match="infinite"):
        harm(math.inf, 1.0, True)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        excess_harm(1.5, 0.5)


def test_excess_harm_is_above_0_where_the_own_kind_takes_less() -> None:
    fair = harm(10.0, 5.0, True)
    assert excess_harm(harm(10.0, 2.0, True), fair) == pytest.approx(0.3)
    assert excess_harm(harm(10.0, 7.0, True), fair) == pytest.approx(-0.2)


def test_ten_seconds_below_a_tenth_of_the_fair_share_starve() -> None:
    rates = np.full(60, 5.0)
    rates[20:30] = 0.49
    assert is_starved(rates, 5.0, 1.0)
    rates[20:30] = 0.51
    assert not is_starved(rates, 5.0, 1.0)


def test_nine_silent_seconds_beside_a_fair_one_do_not_starve() -> None:
    rates = np.full(60, 5.0)
    rates[20:29] = 0.0
    assert not is_starved(rates, 5.0, 1.0)
    assert is_starved(np.where(np.arange(60) == 29, 0.0, rates), 5.0, 1.0)


def test_exactly_a_tenth_does_not_starve() -> None:
    assert not is_starved(np.full(300, 0.1), 1.0, 0.1)


def test_short_run_is_one_window_and_an_empty_one_none() -> None:
    assert is_starved(np.array([0.0, 0.0]), 1.0, 1.0)
    assert not is_starved(np.array([0.0, 1.0]), 1.0, 1.0)
    assert not is_starved(np.array([]), 1.0, 1.0)


def test_share_that_changes_is_compared_in_the_same_window() -> None:
    fair = np.where(np.arange(40) < 20, 10.0, 0.0)
    assert not is_starved(np.where(np.arange(40) < 20, 5.0, 0.0), fair, 1.0)
    assert is_starved(np.where(np.arange(40) < 20, 0.5, 0.0), fair, 1.0)


@pytest.mark.parametrize("interval_s", [0.0, -1.0, 11.0, math.nan])
def test_interval_out_of_range_is_refused(interval_s: float) -> None:
    with pytest.raises(ValueError, match="interval_s"):
        is_starved(np.ones(3), 1.0, interval_s)
