"""The rules that mark a measure, and the thinned grid of networks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ackademy.studies.scorecard.card import Rule
from ackademy.studies.scorecard.grid import thinned
from ackademy.studies.scorecard.marks import (
    Mark,
    Values,
    aggregate,
    marked,
    paired,
    paired_ratio,
    worst_of,
)


def values(
    own: Sequence[float], cubic: Sequence[float] | None = None, axis: Sequence[object] = ()
) -> Values:
    """Networks called 0, 1, ... with one seed each."""
    of: Mapping[str, np.typing.NDArray[np.float64]] = {
        "own": np.array(own, np.float64),
        "cubic": np.array(cubic if cubic is not None else own, np.float64),
    }
    names = tuple(str(index) for index in range(len(own)))
    axes = tuple({"loss": value} for value in (axis or range(len(own))))
    return Values(names, axes, of, {name: found[:, None] for name, found in of.items()})


def verdict(rule: Rule, found: Values, *, lower: bool = True) -> str:
    return marked(rule, found, "own", lower_is_better=lower).verdict


def test_an_upper_bound_holds_on_every_network() -> None:
    assert verdict(Rule(at_most=1.0), values([0.5, 1.0])) == "pass"
    mark = marked(Rule(at_most=1.0), values([0.5, 1.5, 3.0]), "own", lower_is_better=True)
    assert mark == Mark("fail", "3, allowed: at most 1 on 2 of 3 networks, as 2")


def test_a_lower_bound_holds_on_every_network() -> None:
    assert verdict(Rule(at_least=0.9), values([0.9, 1.0]), lower=False) == "pass"
    assert verdict(Rule(at_least=0.9), values([0.89, 1.0]), lower=False) == "fail"


def test_a_range_has_two_ends() -> None:
    rule = Rule(at_least=-0.3, at_most=0.3)
    assert [verdict(rule, values([own])) for own in (-0.4, 0.0, 0.4)] == ["fail", "pass", "fail"]


def test_a_network_without_a_value_does_not_count() -> None:
    assert verdict(Rule(at_most=1.0), values([0.5, math.nan])) == "pass"
    assert verdict(Rule(at_most=1.0), values([math.nan])) == "not measured"


def test_an_infinite_value_breaks_a_bound() -> None:
    assert verdict(Rule(at_most=1.0), values([math.inf])) == "fail"


def test_a_rivals_value_fulfils_a_bound_on_the_same_network() -> None:
    rule = Rule(at_most=0.02, alternative="cubic")
    assert verdict(rule, values([0.05, 0.01], [0.06, 0.0])) == "pass"
    assert verdict(rule, values([0.05, 0.03], [0.06, 0.0])) == "fail"


@pytest.mark.parametrize(
    ("over", "lower", "expected"),
    [("worst", True, 9.0), ("worst", False, 1.0), ("mean", True, 4.0), ("median", True, 2.0)],
)
def test_networks_are_aggregated(over: str, lower: bool, expected: float) -> None:
    own = np.array([1.0, 2.0, 9.0, math.nan])
    assert aggregate(own, over, lower_is_better=lower) == expected  # type: ignore[arg-type]


def test_the_95th_percentile_lets_one_network_in_twenty_be_worse() -> None:
    found = values([0.0] * 20 + [5.0])
    assert verdict(Rule(at_most=0.1, over="p95"), found) == "pass"
    assert verdict(Rule(at_most=0.1), found) == "fail"


def test_an_excess_is_beyond_a_rival_on_the_same_network() -> None:
    rule = Rule(at_most=0.1, excess_over="cubic")
    assert verdict(rule, values([0.55, 0.3], [0.5, 0.4])) == "pass"
    assert verdict(rule, values([0.65, 0.3], [0.5, 0.4])) == "fail"


def test_no_worse_is_shown_by_the_end_of_the_interval_of_the_ratio() -> None:
    rule = Rule(against="cubic")
    assert verdict(rule, values([1.0, 10.0, 100.0], [1.0, 10.1, 100.0])) == "pass"
    assert verdict(rule, values([1.2, 12.1, 119.0], [1.0, 10.0, 100.0])) == "fail"
    mark = marked(rule, values([0.5, 3.0], [1.0, 1.0]), "own", lower_is_better=True)
    assert mark.verdict == "fail"
    assert mark.why.startswith("not shown to be as good as cubic: ratio 1.22")


def test_where_higher_is_better_the_other_end_counts() -> None:
    rule = Rule(against="cubic")
    assert verdict(rule, values([2.0, 2.1, 2.0], [1.0, 1.0, 1.0]), lower=False) == "pass"
    assert verdict(rule, values([0.5, 0.52, 0.5], [1.0, 1.0, 1.0]), lower=False) == "fail"


def test_where_a_value_is_0_the_difference_counts() -> None:
    assert verdict(Rule(against="cubic"), values([0.0, 0.0], [0.0, 0.1])) == "fail"
    assert verdict(Rule(against="cubic"), values([0.0, 0.0, 0.0], [0.1, 0.1, 0.1])) == "pass"


def test_a_slack_is_allowed_beyond_the_margin() -> None:
    found = values([0.003, 0.003], [0.0, 0.0])
    assert verdict(Rule(against="cubic", slack=0.01), found) == "pass"
    assert verdict(Rule(against="cubic", slack=0.001), found) == "fail"


def test_a_rival_is_as_good_as_itself() -> None:
    found = values([1.0, 5.0])
    mark = marked(Rule(against="cubic"), found, "cubic", lower_is_better=True)
    assert mark.verdict == "pass"


def test_a_value_must_not_grow_along_an_axis() -> None:
    rule = Rule(falls_along="loss")
    assert verdict(rule, values([1.0, 9.0, 5.0], axis=[0.9, 0.1, 0.5])) == "pass"
    found = values([1.0, 9.0, 0.5], axis=[0.9, 0.1, 0.5])
    mark = marked(rule, found, "own", lower_is_better=True)
    assert mark == Mark("fail", "grows from 0.5 to 1 as loss goes from 0.5 to 0.9")


@pytest.mark.parametrize("rule", [Rule(against="bbr1"), Rule(at_most=1.0, excess_over="bbr1")])
def test_a_rule_about_a_rival_that_was_not_run_marks_nothing(rule: Rule) -> None:
    mark = marked(rule, values([1.0]), "own", lower_is_better=True)
    assert mark == Mark("not measured", "bbr1 was not run")


def test_a_check_without_a_rule_is_reported() -> None:
    assert verdict(Rule(), values([1.0])) == "reported"


def test_a_row_fails_if_one_check_fails() -> None:
    marks = [Mark("pass"), Mark("fail", "a"), Mark("reported", "c"), Mark("fail", "b")]
    assert worst_of(marks) == Mark("fail", "a; b")
    assert worst_of([Mark("reported"), Mark("pass"), Mark("not measured")]).verdict == "pass"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule(at_most=0.5), "at most 0.5"),
        (Rule(at_most=0.02, alternative="cubic"), "at most 0.02, or cubic's"),
        (Rule(at_least=-0.3, at_most=0.3), "at most 0.3, at least -0.3"),
        (
            Rule(at_most=0.1, excess_over="cubic", over="p95"),
            "beyond cubic's: p95 over networks at most 0.1",
        ),
        (Rule(against="cubic"), "as good as cubic"),
        (Rule(falls_along="loss"), "does not grow with loss"),
        (Rule(), "no mark"),
    ],
)
def test_a_rule_says_what_passes(rule: Rule, expected: str) -> None:
    assert rule.words == expected


def test_one_network_is_paired_by_seeds() -> None:
    runs = {"own": np.array([[1.0, 2.0, 3.0]]), "cubic": np.array([[0.0, 1.0, 2.0]])}
    found = Values(("a",), ({},), {name: own.mean(axis=1) for name, own in runs.items()}, runs)
    interval = paired(found, "own", "cubic")
    assert (interval.value, interval.low, interval.high) == (1.0, 1.0, 1.0)
    assert (interval.method, interval.level) == ("equal runs", 0.0)


def test_several_networks_are_paired_by_network() -> None:
    interval = paired(values([1.0, 2.0, 6.0], [0.0, 1.0, 2.0]), "own", "cubic")
    # Differences 1, 1, 4: mean 2, standard error 1, t of two degrees of freedom 4.3027.
    assert interval.value == pytest.approx(2.0)
    assert interval.high == pytest.approx(6.3027, abs=1e-4)


def test_the_ratio_is_a_geometric_mean() -> None:
    assert paired_ratio(values([2.0, 8.0], [1.0, 1.0]), "own", "cubic").value == pytest.approx(4.0)
    assert math.isnan(paired_ratio(values([0.0, 8.0], [1.0, 1.0]), "own", "cubic").value)


POINTS = [
    {"rate": rate, "rtt": rtt, "bdp": bdp}
    for rate in (1, 10, 50, 100)
    for rtt in (10, 30, 100)
    for bdp in (1, 4, 16, 100)
]


def test_a_thinned_grid_uses_every_value_about_equally_often() -> None:
    found = thinned("a", POINTS, 12)
    for axis, count in (("rate", 4), ("rtt", 3), ("bdp", 4)):
        used = Counter(point[axis] for point in found)
        assert len(used) == count
        assert max(used.values()) - min(used.values()) <= 1


def test_fewer_networks_are_the_first_of_more() -> None:
    assert thinned("a", POINTS, 20)[:5] == thinned("a", POINTS, 5)
    assert thinned("a", POINTS, 5) == thinned("a", list(reversed(POINTS)), 5)


def test_a_grid_that_is_small_enough_is_whole() -> None:
    found = thinned("a", POINTS, 1000)
    assert len(found) == len(POINTS)
    assert all(point in POINTS for point in found)
