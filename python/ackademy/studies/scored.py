"""Frozen policies on drawn cases: everybody's scores, and means over groups of cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ackademy.backends.schemes import EvaluatedScheme
from ackademy.runner import cases, experiments
from ackademy.runner.cases import Case
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import NO_METHOD, Interval, mean_interval, t_interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.results import Estimate, Name, Results, Value, results
from ackademy.stats.scores import Score

FIELDS: Mapping[str, str] = {
    "throughput_total_mbps": "throughput_mbps",
    "link_share": "share",
    "delay_mean_ms": "delay_ms",
    "rtt_ratio": "rtt_ratio",
    "loss": "loss_ratio",
    "jain_throughput": "jain",
    "fallbacks": "fallbacks",
    "utility": "utility",
}
"""metrics of a score in order, and its fields"""
GAIN, WON = "gain", "won"
"""of the policy over a scheme"""


@dataclass(frozen=True, slots=True)
class Scored:
    """A case and the scores of the schemes that have run on it."""

    case: Case
    scores: Mapping[str, Score]
    """by scheme"""


@dataclass(frozen=True, slots=True)
class Summary:
    """One scheme on a group of cases."""

    group: str
    """empty for all together"""
    scheme: str
    scores: tuple[Score, ...]
    estimates: Mapping[str, Interval]
    """mean over runs by metric, `GAIN` and `WON` among them"""
    axis: str = ""
    """what the groups are ranges of; empty if they are not"""

    @property
    def full_group(self) -> str:
        """The group by its axis, too."""
        return f"{self.axis}: {self.group}" if self.axis else self.group

    @property
    def n_runs(self) -> int:
        """Runs behind the numbers."""
        return len(self.scores)

    def n(self, metric: str) -> int:
        """Runs behind one number: those that have a finite value of it."""
        known = metric in FIELDS
        return int(np.isfinite(self.per_run(metric)).sum()) if known else self.n_runs

    def per_run(self, metric: str) -> FloatArray:
        """Shape (n_runs,)."""
        return np.array([getattr(score, FIELDS[metric]) for score in self.scores], np.float64)


def scored(
    found: Sequence[Case], compared: Sequence[EvaluatedScheme], folder: Path
) -> list[Scored]:
    """Every case with the scores of the runs that are there, each cell read once.

    A case whose runs are those of another seed, since nothing in them is random, is left out.
    """
    listed = []
    for case in found:
        own = {scheme.name: cases.cell(case, scheme, folder) for scheme in compared}
        repeats = {name for name, cell in own.items() if experiments.is_repeat(folder, cell)}
        if len(repeats) == len(own):
            continue
        scores = {
            name: cases.score(case, cell, folder)
            for name, cell in own.items()
            if name in repeats or experiments.is_finished(folder, cell)
        }
        listed.append(Scored(case, scores))
    return listed


def summaries(
    group: str, members: Sequence[Scored], compared: Sequence[EvaluatedScheme], axis: str = ""
) -> list[Summary]:
    """One per scheme over cases that all have run on; the policy is the first scheme."""
    policy = [own.scores[compared[0].name] for own in members]
    found = []
    for scheme in compared:
        scores = [own.scores[scheme.name] for own in members]
        gains = np.array([a.utility - b.utility for a, b in zip(policy, scores, strict=True)])
        own = Summary(group, scheme.name, tuple(scores), {}, axis)
        estimates = {metric: mean_interval(own.per_run(metric)) for metric in FIELDS}
        estimates[GAIN] = t_interval(gains)
        estimates[WON] = Interval(float((gains > 0.0).mean()), math.nan, math.nan, NO_METHOD, 0.0)
        found.append(replace(own, estimates=estimates))
    return found


def tables(study: str, found: Sequence[Scored], summed: Sequence[Summary]) -> Results:
    """The two tables: a scenario per case, a group of estimates per group of cases."""
    return results(study, _values(found), _estimates(summed))


def _values(found: Sequence[Scored]) -> Iterator[Value]:
    for own in found:
        for scheme, score in own.scores.items():
            for metric, field in FIELDS.items():
                name = Name(own.case.name, scheme)
                yield Value(name, own.case.seed, metric, float(getattr(score, field)))


def _estimates(summed: Sequence[Summary]) -> Iterator[Estimate]:
    for own in summed:
        for metric, interval in own.estimates.items():
            statistic = metric_of(metric).statistic_name
            name = Name("", own.scheme, own.full_group)
            yield Estimate(name, metric, statistic, interval, own.n(metric))
