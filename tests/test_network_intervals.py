"""Intervals over networks: paired, seeded, Student's for few, Holm's adjustment for several."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import BOOTSTRAP_MIN, holm, network_interval, t_interval

Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def test_fewer_than_ten_networks_have_a_t_interval() -> None:
    values = np.array([0.1, 0.3, -0.2, 0.4, 0.25, 0.0, 0.15, 0.2, 0.3])
    assert network_interval(values).interval == t_interval(values)
    more = network_interval(np.append(values, 0.1)).interval
    assert more.method == "bootstrap over networks"


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(1).normal(0.2, 1.0, 40)
    assert network_interval(values) == network_interval(values)
    assert network_interval(values) != network_interval(values, seed=2)


def test_interval_and_p_value_tell_the_same_story() -> None:
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.2, 0.35, 0.5, 1.0):
        found = network_interval(rng.normal(shift, 1.0, 30))
        if not 0.045 < found.p_value < 0.055:
            assert found.interval.contains(0.0) is (found.p_value > 0.05)


def test_unknown_networks_are_left_out_and_one_network_shows_no_spread() -> None:
    assert network_interval(np.array([0.5, math.nan])).p_value == 1.0
    assert network_interval(np.array([0.5, math.nan])).interval.half_width == 0.0
    assert math.isnan(network_interval(np.array([])).interval.value)
    same = network_interval(np.full(20, 0.5))
    assert (same.interval.low, same.interval.high, same.p_value) == (0.5, 0.5, 0.0)
    assert network_interval(np.zeros(20)).p_value == 1.0


def test_p_value_of_few_networks_is_of_the_t_test() -> None:
    # t = 2.262 is the 97.5 % quantile of 9 degrees; here with 3 degrees, t = 3.182.
    values = np.array([-1.0, -1.0, 1.0, 1.0])
    centre = 3.182446 * math.sqrt(values.var(ddof=1) / 4)
    assert network_interval(values + centre).p_value == pytest.approx(0.05, abs=1e-5)


def test_holm_multiplies_by_the_comparisons_that_are_left() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03})
    assert adjusted == {
        "a": pytest.approx(0.03),
        "b": pytest.approx(0.06),
        "c": pytest.approx(0.06),
    }
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def lognormal(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.exp(rng.normal(0.0, 0.5, shape)) - math.exp(0.125)


def bimodal(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.choice([-1.0, 1.0], shape) + rng.normal(0.0, 0.1, shape)


COVERAGE: tuple[tuple[str, Draw, int, float], ...] = (
    ("normal", lambda rng, shape: rng.normal(0.0, 1.0, shape), 10, 94.2),
    ("normal", lambda rng, shape: rng.normal(0.0, 1.0, shape), 30, 95.2),
    ("normal", lambda rng, shape: rng.normal(0.0, 1.0, shape), 100, 95.0),
    ("lognormal", lognormal, 10, 91.9),
    ("lognormal", lognormal, 30, 93.8),
    ("lognormal", lognormal, 100, 94.5),
    ("bimodal", bimodal, 10, 95.6),
    ("bimodal", bimodal, 30, 95.2),
    ("bimodal", bimodal, 100, 95.2),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "draw", "n", "printed"), COVERAGE)
def test_coverage_over_networks_is_what_the_docs_print(
    name: str, draw: Draw, n: int, printed: float
) -> None:
    sets = draw(np.random.default_rng(3), (4000, n))
    hits = sum(
        network_interval(values, resamples=2000, seed=index).interval.contains(0.0)
        for index, values in enumerate(sets)
    )
    assert n >= BOOTSTRAP_MIN
    assert 100.0 * hits / len(sets) == pytest.approx(printed, abs=0.1), name
