"""Intervals against printed tables, and against the coverage they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ackademy.intervals import (
    bootstrap_interval,
    confidence_ellipse,
    mean,
    student_t_quantile,
    t_interval,
    variance,
)
from ackademy.metrics import FloatArray


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


def test_bootstrap_repeats_exactly_for_the_same_generator_state() -> None:
    samples = np.random.default_rng(2).normal(size=(30, 2))

    def interval(seed: int) -> tuple[float, float]:
        result = bootstrap_interval(samples, mean, np.random.default_rng(seed))
        return result.low, result.high

    assert interval(3) == interval(3)
    assert interval(3) != interval(4)


def test_bootstrap_of_the_mean_is_close_to_students_interval() -> None:
    samples = np.random.default_rng(5).normal(10.0, 1.0, size=100)
    bootstrap = bootstrap_interval(samples, mean, np.random.default_rng(0))
    student = t_interval(samples)
    assert bootstrap.low == pytest.approx(student.low, abs=0.03)
    assert bootstrap.high == pytest.approx(student.high, abs=0.03)


def test_bootstrap_draws_whole_runs_so_that_flows_stay_together() -> None:
    flows = np.repeat(np.random.default_rng(6).normal(size=(20, 1)), 50, axis=1)
    whole = bootstrap_interval(flows, mean, np.random.default_rng(0))
    pooled = bootstrap_interval(flows.ravel(), mean, np.random.default_rng(0))
    assert whole.half_width > 3.0 * pooled.half_width


def test_bootstrap_of_equal_runs_has_no_width() -> None:
    interval = bootstrap_interval(np.full(10, 7.49), mean, np.random.default_rng(0))
    assert interval.low == pytest.approx(7.49)
    assert interval.high == pytest.approx(7.49)


def test_bootstrap_of_an_infinite_statistic_has_no_interval() -> None:
    interval = bootstrap_interval(np.zeros(4), lambda _: -math.inf, np.random.default_rng(0))
    assert math.isnan(interval.low)


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
