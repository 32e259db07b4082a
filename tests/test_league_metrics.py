"""Metrics of a league: each formula, its unit, and what it gives where there is nothing to give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ackademy.stats import league_metrics as metrics
from ackademy.stats.league_metrics import ParetoPoint

NAN = math.nan


def test_power_score_is_throughput_squared_over_delay() -> None:
    assert metrics.power_score(12.0, 20.0) == pytest.approx(7.2)
    assert metrics.power_score(24.0, 80.0) == pytest.approx(metrics.power_score(12.0, 20.0))


def test_power_score_of_a_run_that_delivers_nothing_is_0() -> None:
    assert metrics.power_score(0.0, NAN) == 0.0
    with pytest.raises(ValueError, match="delay > 0"):
        metrics.power_score(1.0, 0.0)


def test_everyone_within_the_margin_wins_a_round_of_the_power_league() -> None:
    scores = {"a": 10.0, "b": 9.0, "c": 8.9, "d": 0.0}
    assert metrics.power_winners(scores, 0.05) == {"a"}
    assert metrics.power_winners(scores, 0.1) == {"a", "b"}
    assert metrics.power_winners(scores, 0.2) == {"a", "b", "c"}


def test_nobody_wins_a_round_in_which_nobody_delivers() -> None:
    assert metrics.power_winners({"a": 0.0, "b": 0.0}) == set()
    assert metrics.power_winners({}) == set()


def test_winning_rate_counts_the_rounds_that_a_scheme_has_played() -> None:
    rounds = [{"a": 1.0, "b": 2.0}, {"a": 3.0}, {"a": 2.0, "b": 2.0}]
    assert metrics.winning_rates(rounds) == {"a": pytest.approx(2 / 3), "b": 1.0}
    assert metrics.winning_rates([]) == {}


def test_friendly_are_those_near_the_distance_of_the_closest() -> None:
    rates = {"near": 9.0, "below": 7.9, "above": 12.2, "bully": 16.0, "mouse": 1.0}
    assert metrics.friendly_winners(rates, 10.0) == {"near"}
    assert metrics.friendly_winners({**rates, "above": 12.0}, 10.0) == {"near", "above"}
    assert metrics.friendly_winners({**rates, "below": 8.1}, 10.0) == {"near", "below"}


def test_the_closest_scheme_is_always_friendly() -> None:
    assert metrics.friendly_winners({"only": 0.0, "unknown": NAN}, 10.0) == {"only"}
    assert metrics.friendly_winners({}, 10.0) == set()
    with pytest.raises(ValueError, match="fair share > 0"):
        metrics.friendly_winners({"a": 1.0}, 0.0)


BASE = ParetoPoint(0.9, 0.5, 0.01)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (ParetoPoint(0.95, 0.5, 0.01), True),
        (ParetoPoint(0.9, 0.4, 0.01), True),
        (ParetoPoint(0.9, 0.5, 0.005), True),
        (ParetoPoint(0.95, 0.6, 0.01), False),
        (ParetoPoint(0.91, 0.49, 0.0095), False),
        (ParetoPoint(0.885, 0.4, 0.01), True),
        (ParetoPoint(0.87, 0.1, 0.0), False),
        (BASE, False),
    ],
)
def test_dominance_needs_one_gain_and_no_loss_beyond_the_tolerances(
    ours: ParetoPoint, expected: bool
) -> None:
    assert metrics.dominates(ours, BASE, 100.0) is expected


def test_a_millisecond_does_not_count_on_a_short_path() -> None:
    shorter = ParetoPoint(0.9, 0.45, 0.01)
    assert metrics.dominates(shorter, BASE, 100.0)
    assert not metrics.dominates(shorter, BASE, 10.0)


def test_share_above_the_fair_one_dominates_nobody() -> None:
    assert not metrics.dominates(ParetoPoint(2.0, 0.5, 0.01), ParetoPoint(1.0, 0.5, 0.01), 50.0)


def test_known_delay_dominates_one_of_a_flow_that_delivers_nothing() -> None:
    silent = ParetoPoint(0.0, NAN, 0.0)
    assert metrics.dominates(ParetoPoint(0.5, 1.0, 0.0), silent, 50.0)
    assert not metrics.dominates(silent, ParetoPoint(0.5, 1.0, 0.0), 50.0)
    assert not metrics.dominates(silent, silent, 50.0)


def test_front_holds_those_that_nobody_dominates() -> None:
    points = {
        "fast": ParetoPoint(1.0, 1.0, 0.0),
        "short": ParetoPoint(0.9, 0.1, 0.0),
        "worse": ParetoPoint(0.8, 0.5, 0.0),
    }
    assert metrics.pareto_front(points, 50.0) == {"fast", "short"}
    assert metrics.pareto_front({}, 50.0) == set()


def test_cdf_summary_leaves_out_what_is_unknown() -> None:
    values = np.array([NAN, *np.arange(101.0)])
    assert metrics.cdf_summary(values) == pytest.approx((5.0, 25.0, 50.0, 75.0, 95.0))
    assert all(math.isnan(value) for value in metrics.cdf_summary(np.array([NAN])))


def test_response_is_relative_to_the_link_of_that_time() -> None:
    used, ratio = metrics.response_ratios(
        np.array([5.0, 5.0, 0.0]),
        np.array([10.0, 50.0, 0.0]),
        np.array([60.0, NAN, 30.0]),
        np.array([40.0, 40.0, 20.0]),
    )
    np.testing.assert_allclose(used, [0.5, 0.1, NAN])
    np.testing.assert_allclose(ratio, [1.5, NAN, 1.5])
    with pytest.raises(ValueError, match="one shape"):
        metrics.response_ratios(np.ones(2), np.ones(3), np.ones(3), np.ones(3))


def test_flows_have_settled_when_all_of_them_stay_near_their_share_for_five_seconds() -> None:
    first = np.array([10.0, 9.0, 7.0, 5.5, 5.0, 5.0, 5.0, 5.0, 5.0])
    second = np.array([0.0, 1.0, 3.0, 4.1, 4.0, 5.0, 5.9, 5.0, 5.0])
    assert metrics.settling_time_s(np.stack([first, second]), 5.0, 1.0) == 3.0
    second[6] = 6.1
    assert metrics.settling_time_s(np.stack([first, second]), 5.0, 1.0) == math.inf


def test_settling_later_does_not_undo_a_first_five_seconds() -> None:
    rates = np.array([[5.0] * 5 + [9.0] * 3])
    assert metrics.settling_time_s(rates, np.array([5.0]), 1.0) == 0.0
    assert metrics.settling_time_s(rates[:, :4], 5.0, 1.0) == math.inf
    assert metrics.settling_time_s(np.empty((0, 9)), 5.0, 1.0) == 0.0
