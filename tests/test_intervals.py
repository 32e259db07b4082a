"""Intervals against printed tables, and against the coverage they promise."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import (
    Interval,
    confidence_ellipse,
    jackknife_contrast,
    jackknife_interval,
    log_ratio_interval,
    mean,
    mean_interval,
    student_t_quantile,
    t_interval,
    variance,
    welch_interval,
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


def test_two_runs_give_a_variance_without_an_interval_and_without_a_warning() -> None:
    # Each run left out leaves one, whose variance is 0: its logarithm is not finite.
    found = jackknife_interval(np.array([7.0, 8.0]), variance, positive=True)
    assert found.value == pytest.approx(0.5)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


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


DOCS = Path(__file__).parents[1] / "docs" / "reference" / "evaluation.md"
SEED = int(os.environ.get("ACKADEMY_SEED", "20261122"))
"""of the simulated coverage; every test prints it"""
N_RUNS = (3, 5, 10, 100)


def modes(part: float, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Values near 1, and a part of them near 3."""
    return rng.normal(0.0, 0.1, shape) + np.where(rng.random(shape) < part, 1.0, 3.0)


@dataclass(frozen=True)
class Covered:
    """A line of the documented table: a statistic of values whose true value is known."""

    label: str
    truth: float
    draw: Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
    interval: Callable[[FloatArray], Interval] = t_interval

    def share(self, n_runs: int, sets: int) -> float:
        """How often the interval of `n_runs` runs holds the truth, in per cent."""
        rng = np.random.default_rng([SEED, n_runs])
        drawn = self.draw(rng, (sets, n_runs))
        return 100.0 * float(np.mean([self.interval(runs).contains(self.truth) for runs in drawn]))


def of_variance(runs: FloatArray) -> Interval:
    """As V(tp) has it."""
    return jackknife_interval(runs, variance, positive=True)


def of_merit(runs: FloatArray) -> Interval:
    """As M_e has it."""
    return jackknife_interval(runs, merit)


def of_difference(runs: FloatArray) -> Interval:
    """As a claim about two schemes with seeds of their own has it."""
    return welch_interval(runs[:, 0], runs[:, 1])


def of_ratio(runs: FloatArray) -> Interval:
    """The same of a ratio."""
    return log_ratio_interval(runs[:, 0], runs[:, 1], paired=False)


def of_paired_ratio(runs: FloatArray) -> Interval:
    """The same of two schemes with the same seeds."""
    return log_ratio_interval(runs[:, 0], runs[:, 1], paired=True)


def of_variances(runs: FloatArray) -> Interval:
    """The ratio of two variances."""
    return jackknife_contrast(variance, runs[:, 0], runs[:, 1], is_ratio=True, paired=False)


def pairs(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Two schemes whose runs of one seed go up and down together; means 5 and 4."""
    seeds = rng.normal(1.0, 0.2, (*shape, 1))
    return np.array([5.0, 4.0]) * (seeds + rng.normal(0.0, 0.05, (*shape, 2)))


MERIT = 2.0 + 0.1**2 / 2 - 0.1 * (3.0 + 0.4**2 / 2)
MEANS = (
    Covered("mean, normal", 5.0, lambda rng, shape: rng.normal(5.0, 1.0, shape)),
    Covered(
        "mean, lognormal σ = 0.5", math.exp(0.125), lambda rng, shape: rng.lognormal(0, 0.5, shape)
    ),
    Covered(
        "mean, lognormal σ = 1", math.exp(0.5), lambda rng, shape: rng.lognormal(0.0, 1.0, shape)
    ),
    Covered("mean, two even modes", 2.0, lambda rng, shape: modes(0.5, rng, shape)),
    Covered("mean, two modes 4 : 1", 1.4, lambda rng, shape: modes(0.8, rng, shape)),
)
OTHERS = (
    Covered(
        "M_e, lognormal",
        MERIT,
        lambda rng, shape: rng.lognormal([2.0, 3.0], [0.1, 0.4], (*shape, 2)),
        of_merit,
    ),
    Covered("variance, normal", 4.0, lambda rng, shape: rng.normal(5.0, 2.0, shape), of_variance),
    Covered(
        "variance, lognormal σ = 0.5",
        (math.exp(0.25) - 1.0) * math.exp(0.25),
        lambda rng, shape: rng.lognormal(0.0, 0.5, shape),
        of_variance,
    ),
    Covered(
        "variance, two even modes",
        1.01,
        lambda rng, shape: modes(0.5, rng, shape),
        of_variance,
    ),
)
DIFFERENCES = (
    Covered(
        "difference of means, normal",
        1.0,
        lambda rng, shape: rng.normal([5.0, 4.0], [1.0, 2.0], (*shape, 2)),
        of_difference,
    ),
    Covered(
        "difference of means, lognormal σ = 0.5",
        math.exp(0.125),
        lambda rng, shape: rng.lognormal(0.0, 0.5, (*shape, 2)) * np.array([2.0, 1.0]),
        of_difference,
    ),
    Covered(
        "difference of means, two even modes",
        0.0,
        lambda rng, shape: modes(0.5, rng, (*shape, 2)),
        of_difference,
    ),
    Covered(
        "ratio of means, normal",
        1.25,
        lambda rng, shape: rng.normal([5.0, 4.0], [1.0, 0.4], (*shape, 2)),
        of_ratio,
    ),
    Covered("ratio of means, paired", 1.25, pairs, of_paired_ratio),
    Covered(
        "ratio of means, lognormal σ = 0.5",
        2.0,
        lambda rng, shape: rng.lognormal(0.0, 0.5, (*shape, 2)) * np.array([2.0, 1.0]),
        of_ratio,
    ),
    Covered(
        "ratio of variances, normal",
        4.0,
        lambda rng, shape: rng.normal(5.0, [2.0, 1.0], (*shape, 2)),
        of_variances,
    ),
)


def documented(label: str) -> list[float]:
    """What docs/reference/evaluation.md prints of a line, per cent by number of runs."""
    (line,) = [own for own in DOCS.read_text().splitlines() if own.startswith(f"| {label} |")]
    return [float(word.strip(" %")) for word in line.split("|")[2:-1]]


@pytest.mark.parametrize("n_runs", N_RUNS)
def test_what_is_printed_as_95_per_cent_covers_it_on_normal_runs(n_runs: int) -> None:
    print(f"ACKADEMY_SEED={SEED}")
    assert 94.0 <= MEANS[0].share(n_runs, 5000) <= 96.0


@pytest.mark.parametrize("covered", [*MEANS, *DIFFERENCES[:-1]], ids=lambda own: own.label)
def test_the_documented_coverage_of_three_and_ten_runs_is_right(covered: Covered) -> None:
    """A quick look at the table that the slow test repeats whole."""
    print(f"ACKADEMY_SEED={SEED}")
    printed = dict(zip(N_RUNS, documented(covered.label), strict=True))
    for n_runs in (3, 10):
        assert covered.share(n_runs, 3000) == pytest.approx(printed[n_runs], abs=2.5)


@pytest.mark.slow
@pytest.mark.parametrize("covered", [*MEANS, *OTHERS, *DIFFERENCES], ids=lambda own: own.label)
def test_the_documented_coverage_is_what_simulations_give(covered: Covered) -> None:
    print(f"ACKADEMY_SEED={SEED}")
    sets = 20_000 if covered in MEANS else 4000
    found = [covered.share(n_runs, sets) for n_runs in N_RUNS]
    print(found)
    margin = 1.0 if covered in MEANS else 2.5
    assert found == pytest.approx(documented(covered.label), abs=margin)


ELSEWHERE = {
    "studies/gap/study.py": "an interval in per cent of the other side, and none for one seed",
    "studies/evaluate/study.py": "a share of runs, without an interval",
    "studies/scorecard/marks.py": "an interval of logarithms as one of a ratio, and its inverse",
    "studies/league/scores.py": "a scheme minus itself, which is 0",
}
"""Modules that make an `Interval` from numbers, with what it is of."""


def test_no_other_module_computes_an_interval() -> None:
    package = Path(__file__).parents[1] / "python" / "ackademy"
    made, quantiles = set(), set()
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name == "intervals.py":
            continue
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "ackademy.stats.intervals"
            for alias in node.names
        }
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
        }
        name = path.relative_to(package).as_posix()
        made |= {name} if "Interval" in names & called else set()
        quantiles |= {name} if {"student_t_quantile", "inv_cdf", "ppf", "sem"} & called else set()
    assert made == set(ELSEWHERE)
    assert not quantiles


def test_the_interval_says_by_which_method_and_level_it_was_found() -> None:
    runs = np.array([1.0, 2.0, 4.0])
    found = [
        t_interval(runs),
        jackknife_interval(runs, mean),
        jackknife_interval(runs, variance, positive=True),
        t_interval(runs[:1]),
        jackknife_interval(runs[:1], mean),
        mean_interval(np.array([math.nan, math.inf])),
    ]
    assert [own.method for own in found] == [
        "Student t",
        "jackknife t",
        "log jackknife t",
        "one run",
        "one run",
        "none",
    ]
    assert [own.level for own in found] == [0.95, 0.95, 0.95, 0.0, 0.0, 0.0]


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
