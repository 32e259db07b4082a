"""Runs one table or figure of a paper and sets its numbers beside the published ones."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from ackademy import experiments
from ackademy.cells import Cell
from ackademy.intervals import Interval, bootstrap_interval, t_interval
from ackademy.measures import COLUMNS, METRICS
from ackademy.metrics import FloatArray
from ackademy.papers import Claim, Experiment, Row
from ackademy.run import read_text

Verdict = Literal["holds", "does not hold", "undecided", "not run"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the paper's table with what we measured."""

    row: Row
    samples: FloatArray
    """shape (runs, flows, len(COLUMNS)); no runs if the row is missing or all its cells failed"""
    estimates: Mapping[str, Interval]
    """by metric, the published ones and those of claims; empty without runs"""
    drawn: Cell | None
    """the cell with a time series"""

    @property
    def n_runs(self) -> int:
        """Runs behind the numbers."""
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict
    observed: Interval | None
    """the ratio or the difference, by the claim's bound"""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A paper's table or figure, ours beside the published."""

    experiment: Experiment
    rows: tuple[Measured, ...]
    claims: tuple[Checked, ...]
    folder: Path


def cells_of(experiment: Experiment, row: Row, runs: int) -> list[Cell]:
    """The cells of a row, the first with a time series; seeds count from 1.

    Raises:
        AckademyError: if the scenario cannot be read.
    """
    if row.missing:
        return []
    text = read_text(experiment.scenario)
    return [
        Cell(
            text=text,
            origin=str(experiment.scenario),
            controller=row.controller,
            seed=seed,
            overrides=tuple(row.overrides.items()),
            params=tuple(row.params.items()),
            sample_interval_ms=experiment.sample_interval_ms if seed == 1 else 0.0,
        )
        for seed in range(1, (1 if row.deterministic else runs) + 1)
    ]


def all_cells(experiment: Experiment, runs: int) -> list[Cell]:
    """The cells of every row that can be run."""
    return [cell for row in experiment.rows for cell in cells_of(experiment, row, runs)]


def collect(experiment: Experiment, runs: int, folder: Path) -> Reproduction:
    """Measure what is on disk; rows without a finished cell stay empty."""
    rows = tuple(_measure(experiment, row, runs, folder) for row in experiment.rows)
    by_name = {measured.row.name: measured for measured in rows}
    claims = tuple(check(claim, by_name) for claim in experiment.claims)
    return Reproduction(experiment, rows, claims, folder)


def check(claim: Claim, rows: Mapping[tuple[str, str], Measured]) -> Checked:
    """Hold a claim against the 95 % bootstrap interval of what we observed."""
    ours, other = rows[claim.row], rows[claim.against]
    if not ours.n_runs or not other.n_runs:
        return Checked(claim, "not run", None)
    difference = claim.min_difference is not None
    observed = _comparison(ours.samples, other.samples, claim.metric, difference=difference)
    low, high = observed.low, observed.high
    if claim.max_ratio is not None:
        low, high, bound = -high, -low, -claim.max_ratio
    else:
        bound = claim.min_ratio if claim.min_ratio is not None else claim.min_difference or 0.0
    if low >= bound:
        return Checked(claim, "holds", observed)
    return Checked(claim, "does not hold" if high < bound else "undecided", observed)


def difference_ratio(metric: str, published: float, ours: float) -> float:
    """How far ours is from the published number, as a part of it.

    Variances are compared as standard deviations, since the published ones have one or two
    digits. `nan` where there is nothing to divide by, and for M_e, which is a logarithm.
    """
    if metric == "m_e" or published == 0.0:
        return math.nan
    ratio = ours / published
    return (math.sqrt(ratio) if metric.endswith("variance") else ratio) - 1.0


def to_csv(reproduction: Reproduction) -> str:
    """One line per row and metric: row, metric, published, ours, ci_low, ci_high, runs."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", "metric", "published", "ours", "ci_low", "ci_high", "runs"])
    for measured in reproduction.rows:
        for metric, published in measured.row.published.items():
            ours = measured.estimates.get(metric)
            numbers = [f"{v:.6g}" for v in (ours.value, ours.low, ours.high)] if ours else [""] * 3
            label = " ".join(measured.row.name)
            writer.writerow([label, metric, f"{published:.6g}", *numbers, measured.n_runs])
    return buffer.getvalue()


def _measure(experiment: Experiment, row: Row, runs: int, folder: Path) -> Measured:
    cells = cells_of(experiment, row, runs)
    finished = [cell for cell in cells if experiments.is_finished(folder, cell)]
    if not finished:
        return Measured(row, np.empty((0, 0, len(COLUMNS))), {}, None)
    tables = [experiments.read(folder, cell, "summary") for cell in finished]
    samples = np.stack(
        [table.select(pl.col(COLUMNS).cast(pl.Float64)).to_numpy() for table in tables]
    )
    wanted = {*experiment.metrics, *(claim.metric for claim in experiment.claims)}
    estimates = {metric: _estimate(samples, metric) for metric in METRICS if metric in wanted}
    drawn = next((cell for cell in finished if cell.sample_interval_ms > 0.0), None)
    return Measured(row, samples, estimates, drawn)


def _estimate(samples: FloatArray, metric: str) -> Interval:
    chosen = METRICS[metric]
    if chosen.is_mean:
        return t_interval(np.array([chosen.statistic(one_run[None]) for one_run in samples]))
    return bootstrap_interval(samples, chosen.statistic, np.random.default_rng(0))


def _comparison(ours: FloatArray, other: FloatArray, metric: str, *, difference: bool) -> Interval:
    """Ratio or difference of two independent rows, with a percentile bootstrap interval."""
    statistic, rng = METRICS[metric].statistic, np.random.default_rng(0)

    def compare(a: float, b: float) -> float:
        if difference:
            return a - b
        return a / b if b else (math.inf if a else 1.0)

    def resample(samples: FloatArray) -> FloatArray:
        return samples[rng.integers(0, len(samples), len(samples))]

    value = compare(statistic(ours), statistic(other))
    resampled = [
        compare(statistic(resample(ours)), statistic(resample(other))) for _ in range(2000)
    ]
    low, high = np.quantile(resampled, [0.025, 0.975], method="lower")
    return Interval(value, float(low), float(high))
