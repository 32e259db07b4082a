"""What repeated runs say: mean, variance, intervals, confidence ellipses.

Every interval of the project is computed here, and says by which method and for which level. The
level is nominal: it is exact for normally distributed values. How often an interval of few, skewed
or two-peaked values holds the truth is simulated by tests/test_intervals.py and printed in
docs/reference/evaluation.md.

Student's quantiles are computed here from the closed form for whole degrees of freedom, so that
thirty megabytes of SciPy are not needed for one function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from ackademy.stats.formulas import FloatArray

Statistic: TypeAlias = Callable[[FloatArray], float]
"""from runs, shape (n_runs, ...), to a number"""


LEVEL = 0.95
"""nominal, of every interval unless it says otherwise"""
NOMINAL = f"nominal {100 * LEVEL:g} % t interval"
"""how tables call what stands beside a value: level and method"""
RESAMPLES = 10_000
BOOTSTRAP_MIN = 10
"""networks, below which resampling says less than Student's interval"""
ONE_RUN = "one run"
"""method of an interval of no width, which has no level"""
EQUAL_RUNS = "equal runs"
"""method where all runs gave one value: they show no spread, and say nothing of the error"""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the range that holds the true value with the stated confidence."""

    value: float
    low: float
    high: float
    method: str = ""
    """by which the ends were found"""
    level: float = LEVEL
    """nominal; 0 for one run or equal runs, whose ends are their value: there is no interval"""

    @property
    def half_width(self) -> float:
        """Half the range; what follows a plus-minus sign."""
        return (self.high - self.low) / 2.0

    def contains(self, other: float) -> bool:
        """Whether `other` is inside, ends included."""
        return self.low <= other <= self.high

    def times(self, factor: float) -> Interval:
        """In a unit that is smaller by a factor above 0, as per cent are."""
        ends = (factor * self.value, factor * self.low, factor * self.high)
        return Interval(*ends, self.method, self.level)


NO_METHOD = "none"
"""method where there is no interval, which has no level"""
NOTHING = Interval(math.nan, math.nan, math.nan, NO_METHOD, 0.0)
"""an estimate without a run"""


@dataclass(frozen=True, slots=True)
class Ellipse:
    """An ellipse in a plane: centre, the two half axes, and the turn of the first of them."""

    centre: tuple[float, float]
    half_axes: tuple[float, float]
    angle_rad: float

    def outline(self, n_points: int = 72) -> FloatArray:
        """Points on the ellipse, shape (n_points, 2), closed by the caller."""
        turn = np.linspace(0.0, 2.0 * math.pi, n_points, endpoint=False)
        along, across = self.half_axes[0] * np.cos(turn), self.half_axes[1] * np.sin(turn)
        cosine, sine = math.cos(self.angle_rad), math.sin(self.angle_rad)
        x = self.centre[0] + along * cosine - across * sine
        y = self.centre[1] + along * sine + across * cosine
        return np.column_stack([x, y])


def mean(values: FloatArray) -> float:
    """Arithmetic mean: E(.) of Kong 2018's tables.

    Args:
        values: any shape, flattened; one value per run, or per run and flow.

    Returns:
        `nan` when there are no values.
    """
    array = np.asarray(values, np.float64)
    return float(array.mean()) if array.size else math.nan


def variance(values: FloatArray) -> float:
    """Unbiased sample variance: V(.) of Kong 2018's tables.

    Args:
        values: any shape, flattened; one value per run, or per run and flow.

    Returns:
        >= 0; 0.0 for one value, which cannot vary; `nan` when there are none.
    """
    array = np.asarray(values, np.float64)
    if array.size == 0:
        return math.nan
    return float(array.var(ddof=1)) if array.size > 1 else 0.0


def t_interval(values: FloatArray, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean of independent values (Student 1908).

    Args:
        values: shape (n_runs,); independent, so average the flows of one run first.
        confidence: in (0, 1).

    Returns:
        The mean and its interval; of no width and level 0 for one value or equal values, which
        show no spread; `nan` at both ends where a value is not finite.

    Raises:
        ValueError: if there are no values.
    """
    array = np.asarray(values, np.float64).ravel()
    if array.size == 0:
        raise ValueError("t_interval needs at least one value")
    centre = float(array.mean())
    if array.size == 1:
        return Interval(centre, centre, centre, ONE_RUN, 0.0)
    quantile = student_t_quantile(0.5 + confidence / 2.0, array.size - 1)
    spread = float(array.std(ddof=1)) if np.isfinite(array).all() else math.nan
    if spread == 0.0 and bool((array == array[0]).all()):
        return Interval(centre, centre, centre, EQUAL_RUNS, 0.0)
    half = quantile * spread / math.sqrt(array.size)
    return Interval(centre, centre - half, centre + half, "Student t", confidence)


def mean_interval(values: FloatArray) -> Interval:
    """Student's interval of the mean of the finite values; `nan` where there is none."""
    finite = values[np.isfinite(values)]
    return t_interval(finite) if finite.size else NOTHING


def welch_interval(ours: FloatArray, other: FloatArray) -> Interval:
    """95 % interval of the difference of two means of independent values (Welch 1947).

    Args:
        ours: shape (n,); independent values, n >= 1.
        other: shape (m,); independent of them, m >= 1. A single value counts as exact.
    """
    parts = [(variance(values) / values.size, values.size - 1) for values in (ours, other)]
    return _around(float(ours.mean() - other.mean()), parts)


def log_ratio_interval(ours: FloatArray, other: FloatArray, *, paired: bool) -> Interval:
    """95 % interval of the ratio of two positive means, symmetric in its logarithm (delta method).

    Args:
        ours: shape (n,); independent values with a mean above 0.
        other: shape (m,); likewise, m = n if paired. A single value counts as exact.
        paired: whether values at the same place are of the same run.
    """
    a, b = ours / ours.mean(), other / other.mean()
    groups = [a - b] if paired else [a, b]
    parts = [(variance(values) / values.size, values.size - 1) for values in groups]
    logarithm = _around(math.log(ours.mean() / other.mean()), parts)
    value = float(ours.mean() / other.mean())
    return Interval(value, math.exp(logarithm.low), math.exp(logarithm.high), "log-ratio t")


def _around(centre: float, parts: list[tuple[float, int]]) -> Interval:
    """By Student's t with the degrees of freedom of Welch and Satterthwaite, rounded down.

    Args:
        centre: the estimate.
        parts: for each group, its share of the estimate's variance and its degrees of freedom.
    """
    total = sum(share for share, _ in parts)
    below = sum(share**2 / degrees for share, degrees in parts if degrees)
    if total == 0.0:
        return Interval(centre, centre, centre, EQUAL_RUNS, 0.0)
    if below == 0.0 or not math.isfinite(total):
        return Interval(centre, math.nan, math.nan, "Welch t")
    half = student_t_quantile(0.975, max(1, math.floor(total**2 / below + 1e-9))) * math.sqrt(total)
    return Interval(centre, centre - half, centre + half, "Welch t")


@cache
def student_t_quantile(probability: float, degrees: int) -> float:
    """The value below which Student's t lies with this probability.

    Args:
        probability: in (0, 1).
        degrees: of freedom, >= 1.

    Returns:
        Accurate to about 1e-10 of its size.

    Raises:
        ValueError: if an argument is out of range.
    """
    if not 0.0 < probability < 1.0 or degrees < 1:
        raise ValueError(f"no Student quantile for p = {probability}, {degrees} degrees")
    if probability < 0.5:
        return -student_t_quantile(1.0 - probability, degrees)
    low, high = 0.0, 1.0
    while _student_t_cdf(high, degrees) < probability:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = 0.5 * (low + high)
        if _student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@dataclass(frozen=True, slots=True)
class Paired:
    """A mean of paired differences with its interval and the p-value of its being 0."""

    interval: Interval
    p_value: float
    """two-sided, [0, 1]; 1 where nothing is known"""


def network_interval(
    differences: FloatArray, *, resamples: int = RESAMPLES, seed: int = 1
) -> Paired:
    """95 % interval of a mean difference of two schemes over networks, each network counted once.

    From `BOOTSTRAP_MIN` networks on by the bootstrap over networks: the percentiles are those that
    make it as wide as Student's for normal values (Hesterberg 2015, "expanded percentile"), since
    the plain ones are too narrow for few networks. Below it is Student's interval. Seeds must be
    averaged within a network before.

    Args:
        differences: shape (n_networks,); of one network, one scheme minus the other; `nan` is
            left out.
        resamples: of the networks with replacement, >= 1.
        seed: of the resampling; the same seed gives the same numbers.

    Returns:
        Of no width for one network, or for equal differences; without a network `NOTHING`.
    """
    known = np.asarray(differences, np.float64).ravel()
    known = known[~np.isnan(known)]
    if known.size == 0:
        return Paired(NOTHING, 1.0)
    if known.size < BOOTSTRAP_MIN or float(np.ptp(known)) == 0.0:
        return Paired(t_interval(known), _t_p_value(known))
    n, centre = known.size, float(known.mean())
    means = np.sort(_resampled_means(known, resamples, seed))
    tail = _tail(student_t_quantile(0.975, n - 1), n)
    low, high = (float(value) for value in np.quantile(means, (tail, 1.0 - tail)))
    below = (1.0 + np.searchsorted(means, 0.0, "right")) / (resamples + 2.0)
    above = (1.0 + resamples - np.searchsorted(means, 0.0, "left")) / (resamples + 2.0)
    one_sided = min(float(min(below, above)), 0.5)
    t = -NormalDist().inv_cdf(one_sided) * math.sqrt((n - 1) / n)
    p_value = 2.0 * (1.0 - _student_t_cdf(t, n - 1))
    return Paired(Interval(centre, low, high, "bootstrap over networks"), min(p_value, 1.0))


def median_interval(values: FloatArray) -> Interval:
    """Median with the interval between two order statistics, for values of any distribution.

    The median lies between the ends with a probability of at least 95 %, whatever the
    distribution, as the sign test has it.

    Args:
        values: shape (n,), independent; `nan` is left out.

    Returns:
        The smallest and the largest value as ends where there are too few for 95 %, which are six;
        without a value `NOTHING`.
    """
    known = np.sort(np.asarray(values, np.float64).ravel())
    known = known[~np.isnan(known)]
    if known.size == 0:
        return NOTHING
    n = int(known.size)
    below, rank = 0.0, 0
    while rank < n // 2:
        below += math.comb(n, rank) / 2.0**n
        if below > (1.0 - LEVEL) / 2.0:
            break
        rank += 1
    low = max(rank - 1, 0)
    ends = float(known[low]), float(known[n - 1 - low])
    return Interval(float(np.median(known)), *ends, "order statistics")


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P-values of several comparisons, adjusted for their number (Holm 1979).

    Args:
        p_values: by name, each in [0, 1].

    Returns:
        By name, each in [0, 1] and at least what it was; compare with 0.05.
    """
    adjusted, running = {}, 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, value) in enumerate(ordered):
        running = max(running, min(1.0, (len(ordered) - rank) * value))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}


def _resampled_means(values: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Shape (resamples,), in parts that fit into memory."""
    rng, parts, left = np.random.default_rng(seed), [], resamples
    while left > 0:
        count = min(left, max(1, 2_000_000 // values.size))
        parts.append(values[rng.integers(0, values.size, (count, values.size))].mean(axis=1))
        left -= count
    return np.concatenate(parts)


def _tail(quantile: float, n: int) -> float:
    """The part beyond an end of the bootstrap's means that stands for Student's quantile."""
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * quantile)


def _t_p_value(values: FloatArray) -> float:
    """Two-sided, of the mean being 0, by Student's t; 1 for one value, which shows no spread."""
    deviation, centre = math.sqrt(variance(values)), float(values.mean())
    if values.size == 1 or centre == 0.0:
        return 1.0
    if deviation == 0.0:
        return 0.0
    t = abs(centre) * math.sqrt(values.size) / deviation
    return 2.0 * (1.0 - _student_t_cdf(t, values.size - 1))


def jackknife_interval(
    samples: FloatArray, statistic: Statistic, *, positive: bool = False
) -> Interval:
    """Student's 95 % interval around any smooth statistic of runs, by the jackknife (Tukey 1958).

    Leaving out each run in turn gives pseudo-values, whose mean has a variance that can be
    estimated. A statistic that is above 0 by nature is taken as its logarithm, so that the interval
    stays above 0. Simulated coverage is in docs/reference/evaluation.md and held by
    tests/test_intervals.py.

    Args:
        samples: shape (n_runs, ...); whole runs are left out, so the flows of a run stay together.
        statistic: from such an array to the number in question.
        positive: whether the statistic is above 0 by nature.

    Returns:
        The statistic of `samples` and its interval: of no width for one run or equal runs; `nan`
        at both ends where leaving out a run gives no finite number.

    Raises:
        ValueError: if there are no runs.
    """
    if len(samples) == 0:
        raise ValueError("jackknife_interval needs at least one run")
    value, pseudo = statistic(samples), _pseudo_values(samples, statistic, positive=positive)
    return _back(value, t_interval(pseudo), is_logarithm=positive)


def jackknife_contrast(
    statistic: Statistic,
    ours: FloatArray,
    other: FloatArray,
    *,
    is_ratio: bool,
    paired: bool,
) -> Interval:
    """95 % interval of the ratio or the difference of a statistic of two sets of runs.

    Args:
        statistic: of an array of runs; above 0 if a ratio is asked for.
        ours: shape (n, ...), n >= 1.
        other: shape (m, ...), m >= 1; m = n if paired.
        is_ratio: ratio, symmetric in its logarithm, or difference.
        paired: whether runs at the same place have the same seed.

    Returns:
        `nan` at both ends where there is no finite estimate of the error.
    """
    first, second = statistic(ours), statistic(other)
    if is_ratio:
        value = first / second if second else (math.inf if first else 1.0)
    else:
        value = first - second
    if len(ours) == 1 and len(other) == 1:
        return Interval(value, value, value, ONE_RUN, 0.0)
    a, b = (_pseudo_values(runs, statistic, positive=is_ratio) for runs in (ours, other))
    if not np.all(np.isfinite(a)) or not np.all(np.isfinite(b)):
        return Interval(value, math.nan, math.nan, NO_METHOD, 0.0)
    apart = t_interval(a - b) if paired else welch_interval(a, b)
    return _back(value, apart, is_logarithm=is_ratio)


def confidence_ellipse(points: FloatArray, confidence: float = 0.95) -> Ellipse:
    """The ellipse that holds this part of normally distributed runs (Hotelling 1931).

    Drawn from the covariance and the chi-square quantile with two degrees of freedom, which is
    -2 ln(1 - confidence). It shows the spread of single runs, not the error of their mean.

    Args:
        points: shape (n_runs, 2); finite.
        confidence: in (0, 1).

    Returns:
        Of no size for one point; flat where the runs lie on a line.

    Raises:
        ValueError: if the shape is not (n_runs, 2) with at least one run.
    """
    array = np.asarray(points, np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise ValueError(f"confidence_ellipse needs shape (n_runs, 2), not {array.shape}")
    centre = (float(array[:, 0].mean()), float(array[:, 1].mean()))
    if len(array) == 1:
        return Ellipse(centre, (0.0, 0.0), 0.0)
    eigenvalues, eigenvectors = np.linalg.eigh(np.cov(array, rowvar=False))
    scale = math.sqrt(-2.0 * math.log(1.0 - confidence))
    minor, major = (scale * math.sqrt(max(float(value), 0.0)) for value in eigenvalues)
    axis = eigenvectors[:, 1]
    angle = math.atan2(float(axis[1]), float(axis[0])) % math.pi
    return Ellipse(centre, (major, minor), angle)


def _student_t_cdf(t: float, degrees: int) -> float:
    """P(T <= t) for t >= 0 (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan2(t, math.sqrt(degrees))
    cosine_squared = math.cos(theta) ** 2
    odd = degrees % 2 == 1
    term = math.cos(theta) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    if odd:
        return 0.5 + (theta + math.sin(theta) * total) / math.pi
    return 0.5 + 0.5 * math.sin(theta) * total


def _pseudo_values(samples: FloatArray, statistic: Statistic, *, positive: bool) -> FloatArray:
    """Shape (n_runs,): what each run adds to the statistic, or to its logarithm if `positive`."""

    def scaled(runs: FloatArray) -> float:
        value = statistic(runs)
        return (math.log(value) if value > 0.0 else -math.inf) if positive else value

    n_runs, whole = len(samples), scaled(samples)
    if n_runs == 1:
        return np.array([whole])
    without = [scaled(np.delete(samples, run, axis=0)) for run in range(n_runs)]
    with np.errstate(invalid="ignore"):
        return n_runs * whole - (n_runs - 1) * np.array(without)


def _back(value: float, around: Interval, *, is_logarithm: bool) -> Interval:
    """An interval of this width around the value; as a factor if it is one of a logarithm."""
    half = around.half_width
    kind = "log jackknife t" if is_logarithm else "jackknife t"
    method, level = (kind, around.level) if around.level else (around.method, 0.0)
    if (value == 0.0 and is_logarithm) or not math.isfinite(value) or not math.isfinite(half):
        return Interval(value, math.nan, math.nan, method, level)
    if is_logarithm:
        return Interval(value, value * math.exp(-half), value * math.exp(half), method, level)
    return Interval(value, value - half, value + half, method, level)
