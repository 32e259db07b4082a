"""From a measure's values over networks to a mark.

The marks are proposals of this project: RFC 9743 sets no thresholds, and leaves the judgement to
the community.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import NOTHING, Interval, mean, t_interval
from ackademy.studies.scorecard.card import Over, Rule

Verdict = Literal["pass", "fail", "not applicable", "not measured", "reported"]

TOLERANCE = 1e-9
"""part of a bound by which rounding may exceed it"""


@dataclass(frozen=True, slots=True)
class Mark:
    """A verdict with its reason."""

    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Values:
    """A measure on the networks of a check, seeds averaged."""

    networks: tuple[str, ...]
    axes: tuple[Mapping[str, object], ...]
    """of each network"""
    by_scheme: Mapping[str, FloatArray]
    """shape (n_networks,) each"""
    runs: Mapping[str, FloatArray]
    """of single runs, shape (n_networks, n_runs) each"""

    def of(self, scheme: str) -> FloatArray:
        """By network; `nan` everywhere for a scheme that was not run."""
        return self.by_scheme.get(scheme, np.full(len(self.networks), math.nan))


def aggregate(values: FloatArray, over: Over, *, lower_is_better: bool) -> float:
    """The value of several networks; `nan` without one.

    Args:
        values: shape (n_networks,); those that are `nan` do not count.
        over: `worst` is the largest where lower is better, else the smallest; `p95` the value that
            nineteen of twenty networks do not exceed, or do not fall below.
        lower_is_better: the direction.
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return math.nan
    if over == "mean":
        return mean(known)
    if over == "median":
        return float(np.median(known))
    if over == "p95":
        return float(np.quantile(known, 0.95 if lower_is_better else 0.05))
    return float(known.max() if lower_is_better else known.min())


def paired(values: Values, scheme: str, rival: str) -> Interval:
    """95 % interval of the mean difference to a rival on the same networks and seeds.

    A network is one observation, its seeds averaged; where there is one network only, a seed is.
    Student's t, the project's interval of a mean (docs/reference/evaluation.md).
    """
    ours, theirs = _observations(values, scheme), _observations(values, rival)
    if ours.shape != theirs.shape:
        return NOTHING
    with np.errstate(invalid="ignore"):
        differences = ours - theirs
    known = differences[np.isfinite(differences)]
    return t_interval(known) if known.size else NOTHING


def paired_ratio(values: Values, scheme: str, rival: str) -> Interval:
    """95 % interval of the geometric mean of the ratio to a rival on the same networks and seeds.

    Networks differ in scale, so one is not to outweigh the others. Observations as in `paired`,
    Student's t of the logarithms; `nan` where a value is not above 0 and finite.
    """
    ours, theirs = _observations(values, scheme), _observations(values, rival)
    if ours.shape != theirs.shape:
        return NOTHING
    known = ~(np.isnan(ours) | np.isnan(theirs))
    pairs = np.stack([ours[known], theirs[known]])
    if pairs.size == 0 or not np.all(np.isfinite(pairs)) or pairs.min() <= 0.0:
        return NOTHING
    logarithm = t_interval(np.log(pairs[0] / pairs[1]))
    value, low, high = (math.exp(x) for x in (logarithm.value, logarithm.low, logarithm.high))
    return Interval(value, low, high, "log-ratio t", logarithm.level)


def marked(rule: Rule, values: Values, scheme: str, *, lower_is_better: bool) -> Mark:
    """Whether a scheme fulfils a rule on these networks."""
    own = values.of(scheme)
    for rival in (rule.against, rule.excess_over):
        if rival and rival not in values.by_scheme:
            return Mark("not measured", f"{rival} was not run")
    if rule.excess_over:
        own = own - values.of(rule.excess_over)
    if np.all(np.isnan(own)):
        return Mark("not measured", "no run has a value")
    if rule.is_absent:
        return Mark("reported", "no mark is set")
    faults = [
        *_bound_faults(rule, values, own, lower_is_better=lower_is_better),
        *_rival_faults(rule, values, scheme, lower_is_better=lower_is_better),
        *_order_faults(rule, values, own),
    ]
    return Mark("fail", "; ".join(faults)) if faults else Mark("pass")


def worst_of(marks: Sequence[Mark]) -> Mark:
    """The mark of a row from those of its checks: fail if one fails, pass if one passes."""
    for verdict in ("fail", "pass", "not measured"):
        found = [mark for mark in marks if mark.verdict == verdict]
        if found:
            return replace(found[0], why="; ".join(mark.why for mark in found if mark.why))
    return marks[0] if marks else Mark("not measured", "no check")


def _bound_faults(
    rule: Rule, values: Values, own: FloatArray, *, lower_is_better: bool
) -> list[str]:
    """What is wrong with a lower and an upper bound."""
    found = []
    for bound, is_upper in ((rule.at_most, True), (rule.at_least, False)):
        if bound is None:
            continue
        limits = np.full(own.shape, bound)
        if rule.alternative:
            theirs = values.of(rule.alternative)
            choose = np.fmax if is_upper else np.fmin
            limits = choose(limits, theirs)
        sign = 1.0 if is_upper else -1.0
        beyond = sign * (own - limits) > TOLERANCE * np.maximum(np.abs(limits), 1.0)
        if rule.over != "worst":
            value = aggregate(own, rule.over, lower_is_better=is_upper)
            if sign * (value - bound) > TOLERANCE * max(abs(bound), 1.0):
                found.append(f"{rule.over} {_short(value)}, {_words(bound, is_upper)}")
        elif beyond.any():
            at = int(np.nanargmax(sign * (own - limits)))
            known = int(np.sum(~np.isnan(own)))
            where = f" on {int(beyond.sum())} of {known} networks, as {values.networks[at]}"
            words = _words(float(limits[at]), is_upper)
            found.append(f"{_short(float(own[at]))}, {words}{where if known > 1 else ''}")
    return found


def _rival_faults(rule: Rule, values: Values, scheme: str, *, lower_is_better: bool) -> list[str]:
    """Whether the interval of what separates it from a rival reaches beyond the margin."""
    if not rule.against or rule.against == scheme:
        return []
    interval = paired_ratio(values, scheme, rule.against)
    if rule.slack or math.isnan(interval.value):
        return _difference_faults(rule, values, scheme, lower_is_better=lower_is_better)
    worse = interval if lower_is_better else _inverse(interval)
    if worse.high <= 1.0 + rule.margin + TOLERANCE:
        return []
    kind = "worse than" if worse.low > 1.0 else "not shown to be as good as"
    return [f"{kind} {rule.against}: ratio {_short(interval.value)} {_ends(interval)}"]


def _difference_faults(
    rule: Rule, values: Values, scheme: str, *, lower_is_better: bool
) -> list[str]:
    """As `_rival_faults`, by the difference: with a slack, or where a value is 0."""
    interval = paired(values, scheme, rule.against)
    if math.isnan(interval.value):
        return [f"no common run with {rule.against}"]
    theirs = values.of(rule.against)
    allowed = rule.margin * abs(mean(theirs[np.isfinite(theirs)])) + rule.slack
    low, high = interval.low, interval.high
    worse_low, worse_high = (low, high) if lower_is_better else (-high, -low)
    if worse_high <= allowed + TOLERANCE:
        return []
    kind = "worse than" if worse_low > 0.0 else "not shown to be as good as"
    return [f"{kind} {rule.against}: difference {_short(interval.value)} {_ends(interval)}"]


def _order_faults(rule: Rule, values: Values, own: FloatArray) -> list[str]:
    """Whether the value grows somewhere along an axis."""
    if not rule.falls_along:
        return []
    groups: dict[str, list[tuple[float, float, str]]] = {}
    for axes, value, name in zip(values.axes, own, values.networks, strict=True):
        along = axes[rule.falls_along]
        others = repr({key: other for key, other in axes.items() if key != rule.falls_along})
        if isinstance(along, int | float) and not math.isnan(value):
            groups.setdefault(others, []).append((float(along), float(value), name))
    for group in groups.values():
        ordered = sorted(group)
        for before, after in itertools.pairwise(ordered):
            if after[1] > before[1] * (1.0 + TOLERANCE):
                return [
                    f"grows from {_short(before[1])} to {_short(after[1])} as "
                    f"{rule.falls_along} goes from {before[0]:g} to {after[0]:g}"
                ]
    return []


def _observations(values: Values, scheme: str) -> FloatArray:
    """A value per network; per seed where there is one network only."""
    if len(values.networks) == 1:
        return values.runs.get(scheme, np.full((1, 0), math.nan)).ravel()
    return values.of(scheme)


def _inverse(own: Interval) -> Interval:
    return Interval(1.0 / own.value, 1.0 / own.high, 1.0 / own.low, own.method, own.level)


def _ends(own: Interval) -> str:
    return f"[{_short(own.low)}, {_short(own.high)}]"


def _words(bound: float, is_upper: bool) -> str:
    return f"allowed: at {'most' if is_upper else 'least'} {_short(bound)}"


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
