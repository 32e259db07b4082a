"""Sentences of a paper as bounds on our numbers, and whether they hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import (
    Interval,
    jackknife_contrast,
    log_ratio_interval,
    t_interval,
    welch_interval,
)
from ackademy.stats.metrics import metric_of
from ackademy.toml_table import TomlTable

RowName = tuple[str, str]
"""Scheme and group, as in ("RL-TCP", "L = 50")."""

Paired = Callable[[RowName, RowName], bool]

Bound = Literal[
    "min_ratio", "max_ratio", "min_difference", "max_difference", "min_value", "max_value"
]
"""ratio: ours / other; difference: ours - other; value: ours alone"""

Verdict = Literal["holds", "does not hold", "undecided", "not run"]

PLURAL: Mapping[Verdict, str] = {
    "holds": "hold",
    "does not hold": "do not hold",
    "undecided": "undecided",
    "not run": "not run",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison that a claim makes."""

    row: RowName
    against: RowName | None
    """`None` where the claim is about a value"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, as a bound on one metric in one case or several."""

    text: str
    where: str
    metric: str
    cases: tuple[Case, ...]
    bound: Bound
    limit: float
    strict: bool = False
    """whether equality is not enough"""


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A case and what became of it."""

    case: Case
    verdict: Verdict
    observed: Interval | None
    """the ratio, the difference or the value, by the claim's bound"""


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim and what became of it."""

    claim: Claim
    cases: tuple[CheckedCase, ...]

    @property
    def verdict(self) -> Verdict:
        """Holds if it holds in every case, does not if it fails in one."""
        verdicts = {checked.verdict for checked in self.cases}
        order: tuple[Verdict, ...] = ("does not hold", "undecided", "not run")
        return next((verdict for verdict in order if verdict in verdicts), "holds")

    @property
    def observed(self) -> Interval | None:
        """Of the case that is nearest to failing, or fails most; `None` if none was run."""
        known = [c.observed for c in self.cases if c.observed and not math.isnan(c.observed.value)]
        sign = 1.0 if self.claim.bound.startswith("min") else -1.0
        return min(known, key=lambda interval: sign * interval.value, default=None)

    @property
    def failures(self) -> tuple[CheckedCase, ...]:
        """The cases in which it does not hold."""
        return tuple(case for case in self.cases if case.verdict == "does not hold")


def parse_claim(entry: TomlTable, rows: Sequence[RowName]) -> Claim:
    """Read a `[[claim]]`.

    Args:
        entry: with `text`, `where`, `metric`, `row` or `rows`, perhaps `against`, one bound, and
            perhaps `strict`.
        rows: all rows of the experiment.

    Raises:
        ExperimentError: if a field is wrong, names no row, or there is not exactly one bound.
    """
    bounds = [bound for bound in get_args(Bound) if bound in entry.values]
    if len(bounds) != 1:
        raise entry.error("bound", bounds, f"exactly one of {', '.join(get_args(Bound))}")
    bound = cast("Bound", bounds[0])
    chosen = _rows(entry, rows)
    others = _against(entry, chosen, rows)
    if bound.endswith("value") != (others is None):
        allowed = "nothing beside a bound on a value" if others else "a row to compare with"
        raise entry.error("against", entry.values.get("against"), allowed)
    metric_of(entry.string("metric"), entry.where)
    alone: list[RowName | None] = [None] * len(chosen)
    cases = tuple(Case(row, other) for row, other in zip(chosen, others or alone, strict=True))
    keys, limit = ("row", "rows", "against", *get_args(Bound)), entry.any_number(bound)
    return entry.into(Claim, *keys, cases=cases, bound=bound, limit=limit)


def check(
    claim: Claim,
    samples: Callable[[RowName], FloatArray],
    paired: Paired = lambda row, against: False,
) -> Checked:
    """Hold a claim against the intervals of what we observed.

    Args:
        claim: what to check.
        samples: a row's samples of the claim's metric, first axis runs; empty if not run.
        paired: whether two rows are of the same runs, so that they vary together.
    """
    return Checked(claim, tuple(_check_case(claim, case, samples, paired) for case in claim.cases))


def claims_in_words(checked: Sequence[Checked]) -> str:
    """How many claims met each verdict, as in `3 hold, 1 undecided`."""
    counts = Counter(claim.verdict for claim in checked)
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    words = [f"{counts[verdict]} {PLURAL[verdict]}" for verdict in verdicts if counts[verdict]]
    return ", ".join(words) or "none"


def _rows(entry: TomlTable, rows: Sequence[RowName]) -> list[RowName]:
    if ("row" in entry.values) == ("rows" in entry.values):
        raise entry.error("rows", entry.values.get("rows"), "exactly one of row and rows")
    if "row" in entry.values:
        return [_known(entry, entry.strings("row"), rows)]
    value = entry.values["rows"]
    if isinstance(value, str):
        found = [row for row in rows if row[0] == entry.string("rows")]
    else:
        found = [_known(entry, words, rows) for words in entry.lists("rows")]
    if not found:
        raise entry.error("rows", value, "a scheme, or a list of [scheme, group]")
    return found


def _against(
    entry: TomlTable, chosen: Sequence[RowName], rows: Sequence[RowName]
) -> list[RowName] | None:
    value = entry.values.get("against")
    if value is None:
        return None
    if isinstance(value, str):
        scheme = entry.string("against")
        return [_known(entry, [scheme, group], rows) for _, group in chosen]
    if isinstance(value, list) and all(isinstance(words, list) for words in value):
        found = [_known(entry, words, rows) for words in entry.lists("against")]
        if len(found) != len(chosen):
            raise entry.error("against", value, f"one row, or {len(chosen)} rows")
        return found
    return [_known(entry, entry.strings("against"), rows)] * len(chosen)


def _known(entry: TomlTable, words: Sequence[object], rows: Sequence[RowName]) -> RowName:
    name = tuple(words)
    if name not in rows:
        raise entry.error("row", list(words), "[scheme, group] of a row; there is no such row")
    return cast("RowName", name)


def _check_case(
    claim: Claim, case: Case, samples: Callable[[RowName], FloatArray], paired: Paired
) -> CheckedCase:
    ours = samples(case.row)
    other = samples(case.against) if case.against else None
    if not len(ours) or (other is not None and not len(other)):
        return CheckedCase(case, "not run", None)
    same_runs = case.against is not None and paired(case.row, case.against)
    observed = _observe(claim, ours, other, paired=same_runs)
    low, high, limit = observed.low, observed.high, claim.limit
    if claim.bound.startswith("max"):
        low, high, limit = -high, -low, -limit
    if low > limit or (low == limit and not claim.strict):
        return CheckedCase(case, "holds", observed)
    fails = high < limit or (high == limit and claim.strict)
    return CheckedCase(case, "does not hold" if fails else "undecided", observed)


def _observe(claim: Claim, ours: FloatArray, other: FloatArray | None, *, paired: bool) -> Interval:
    """Value, ratio or difference with its interval.

    Of plain means by Student's or Welch's t, a ratio of two positive ones by its logarithm (delta
    method); of any other statistic from the jackknife's pseudo-values.
    """
    metric, is_ratio = metric_of(claim.metric), claim.bound.endswith("ratio")
    if metric.is_mean:
        a = np.array([metric.statistic(run[None]) for run in ours])
        if other is None:
            return t_interval(a)
        b = np.array([metric.statistic(run[None]) for run in other])
        if not is_ratio:
            return t_interval(a - b) if paired else welch_interval(a, b)
        if a.mean() > 0.0 and b.mean() > 0.0:
            return log_ratio_interval(a, b, paired=paired)
    if other is None:
        return metric.estimate(ours)
    return jackknife_contrast(metric.statistic, ours, other, is_ratio=is_ratio, paired=paired)
