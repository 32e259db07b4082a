"""Intervals against printed tables, and against the coverage they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import (
    confidence_ellipse,
    jackknife_contrast,
    jackknife_interval,
    mean,
    student_t_quantile,
    t_interval,
    variance,
)


@pytest.mark.parametrize(
    ("degrees", "printed"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (99, 1.9842)],
)
def test_student_quantile_agrees_with_the_printed_table(degrees: int, printed: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(printed, abs=5e-5)


def test_student_quantile_is_antisymmetric() -> None:
    assert student_t_quantile(0.025, 7) == -student_t_quantile(0.975, 7)


def test_variance_of_one_run_is_zero_and_of_none_is_unknown() -> None:
    assert variance(np.array([3.0])) == 0.0
    assert math.isnan(variance(np.array([])))
    assert math.isnan(mean(np.array([])))


def test_variance_divides_by_n_minus_one() -> None:
    assert variance(np.array([1.0, 3.0])) == 2.0


def test_t_interval_of_one_run_has_no_width() -> None:
    interval = t_interval(np.array([7.0]))
    assert (interval.low, interval.high) == (7.0, 7.0)


def test_t_interval_holds_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(5.0, 2.0, size=(2000, 6))
    covered = np.mean([t_interval(row).contains(5.0) for row in runs])
    assert covered == pytest.approx(0.95, abs=0.02)


def test_jackknife_of_a_mean_is_students_interval() -> None:
    samples = np.random.default_rng(5).normal(10.0, 1.0, size=7)
    ours, t = jackknife_interval(samples, mean), t_interval(samples)
    assert (ours.low, ours.high) == pytest.approx((t.low, t.high))


def test_jackknife_leaves_out_whole_runs_so_that_flows_stay_together() -> None:
    flows = np.repeat(np.random.default_rng(6).normal(size=(20, 1)), 50, axis=1)
    whole = jackknife_interval(flows, mean)
    pooled = jackknife_interval(flows.ravel(), mean)
    assert whole.half_width > 3.0 * pooled.half_width


def test_jackknife_of_equal_runs_has_no_width() -> None:
    interval = jackknife_interval(np.full(10, 7.49), mean)
    assert interval.low == pytest.approx(7.49)
    assert interval.high == pytest.approx(7.49)


def test_jackknife_of_an_infinite_statistic_has_no_interval() -> None:
    interval = jackknife_interval(np.zeros(4), lambda _: -math.inf)
    assert math.isnan(interval.low)


def test_the_interval_of_a_variance_stays_above_zero() -> None:
    runs = np.array([5.0, 5.1, 4.9, 5.0, 9.0])
    interval = jackknife_interval(runs, variance, positive=True)
    assert 0.0 < interval.low < interval.value < interval.high


def merit(runs: FloatArray) -> float:
    throughput, delay = runs.mean(axis=0)
    return float(np.log(throughput) - 0.1 * np.log(delay))


@pytest.mark.parametrize("n_runs", [5, 10, 100])
def test_jackknife_holds_the_figure_of_merit_as_often_as_it_says(n_runs: int) -> None:
    rng = np.random.default_rng(8)
    drawn = rng.lognormal([2.0, 3.0], [0.1, 0.4], size=(1000, n_runs, 2))
    true = 2.0 + 0.1**2 / 2 - 0.1 * (3.0 + 0.4**2 / 2)
    covered = np.mean([jackknife_interval(runs, merit).contains(true) for runs in drawn])
    assert covered == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("n_runs", [5, 10, 100])
def test_jackknife_holds_the_variance_of_normal_runs_as_often_as_it_says(n_runs: int) -> None:
    drawn = np.random.default_rng(9).normal(5.0, 2.0, size=(1000, n_runs))
    found = [jackknife_interval(runs, variance, positive=True).contains(4.0) for runs in drawn]
    assert np.mean(found) == pytest.approx(0.945, abs=0.02)


def test_a_ratio_of_variances_is_held_as_often_as_it_says() -> None:
    rng = np.random.default_rng(10)
    pairs = [(rng.normal(0.0, 3.0, 30), rng.normal(0.0, 1.0, 30)) for _ in range(1000)]
    found = [
        jackknife_contrast(variance, a, b, is_ratio=True, paired=False).contains(9.0)
        for a, b in pairs
    ]
    assert np.mean(found) == pytest.approx(0.945, abs=0.02)


def test_the_difference_of_paired_runs_is_narrower_than_of_independent_ones() -> None:
    rng = np.random.default_rng(11)
    seeds = rng.normal(10.0, 3.0, size=20)
    ours, other = seeds + rng.normal(1.0, 0.1, 20), seeds
    paired, free = (
        jackknife_contrast(mean, ours, other, is_ratio=False, paired=p) for p in (True, False)
    )
    assert paired.contains(1.0)
    assert paired.half_width < 0.1 * free.half_width


def test_ellipse_holds_its_share_of_the_runs() -> None:
    rng = np.random.default_rng(7)
    points = rng.multivariate_normal([16.0, 8.9], [[4.0, 0.9], [0.9, 0.25]], size=4000)
    ellipse = confidence_ellipse(points)
    turn = np.array(
        [
            [math.cos(ellipse.angle_rad), math.sin(ellipse.angle_rad)],
            [-math.sin(ellipse.angle_rad), math.cos(ellipse.angle_rad)],
        ]
    )
    scaled: FloatArray = (points - ellipse.centre) @ turn.T / ellipse.half_axes
    assert np.mean(np.square(scaled).sum(axis=1) <= 1.0) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("degrees", [0.0, 30.0, 90.0, 150.0])
def test_ellipse_of_known_covariance_has_known_axes(degrees: float) -> None:
    """Four runs whose covariance is 24 along one axis and 6 across it, turned about (600, 2)."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along, across = np.array([cosine, sine]), np.array([-sine, cosine])
    points = np.array([600.0, 2.0]) + np.array(
        [6.0 * along, -6.0 * along, 3.0 * across, -3.0 * across]
    )
    ellipse = confidence_ellipse(points)
    assert ellipse.centre == pytest.approx((600.0, 2.0))
    assert ellipse.half_axes == pytest.approx(
        (math.sqrt(5.991465 * 24.0), math.sqrt(5.991465 * 6.0))
    )
    assert math.sin(ellipse.angle_rad - math.radians(degrees)) == pytest.approx(0.0, abs=1e-9)
    outline = ellipse.outline() - np.array([600.0, 2.0])
    on_it = (outline @ along) ** 2 / 24.0 + (outline @ across) ** 2 / 6.0
    assert on_it == pytest.approx(np.full(len(outline), 5.991465))


def test_ellipse_of_runs_on_a_line_is_flat() -> None:
    ellipse = confidence_ellipse(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]))
    assert ellipse.half_axes[1] == pytest.approx(0.0, abs=1e-6)
    assert ellipse.angle_rad == pytest.approx(math.pi / 4.0)


def test_ellipse_of_one_run_is_a_point() -> None:
    assert confidence_ellipse(np.array([[1.0, 2.0]])).half_axes == (0.0, 0.0)


def test_ellipse_refuses_anything_but_pairs() -> None:
    with pytest.raises(ValueError, match="n_runs, 2"):
        confidence_ellipse(np.zeros((3, 3)))
