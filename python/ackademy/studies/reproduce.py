"""Runs one table or figure of a paper and sets its numbers beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ackademy.backends.runs import read_text
from ackademy.csv_text import csv_text
from ackademy.runner import experiments
from ackademy.runner.cells import Cell
from ackademy.stats.claims import Checked, Claim, RowName, check
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.results import Estimate, Name, Results, Value, results
from ackademy.stats.run_tables import COLUMNS, RunTables, per_flow, stacked
from ackademy.studies.experiment_files import Experiment, Row

LOGARITHMIC = ("m_e",)
"""metrics whose difference means something and whose ratio does not"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the paper's table with what we measured."""

    row: Row
    samples: FloatArray
    """shape (runs, flows, len(COLUMNS)), as `stacked` has it; no runs if the row is missing or all
    its cells failed"""
    estimates: Mapping[str, Interval]
    """by metric, the published ones and those of claims and figures; empty without runs"""
    drawn: Cell | None
    """the cell with a time series"""
    other_samples: Mapping[str, FloatArray] = field(default_factory=dict)
    """by metric, of those that are not of the row's flows; the first axis is runs"""
    seeds: tuple[int, ...] = ()
    """of the runs"""
    flows: tuple[tuple[str, ...], ...] = ()
    """of each run, the names of the row's flows"""
    is_fixed: bool = False
    """whether nothing in it is random, so that one run stands for every seed"""

    @property
    def n_runs(self) -> int:
        """Runs behind the numbers."""
        return len(self.samples)

    def of(self, metric: str) -> FloatArray:
        """Samples from which a metric's statistic is taken; the first axis is runs."""
        return self.other_samples.get(metric, self.samples)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A paper's table or figure, ours beside the published."""

    experiment: Experiment
    rows: tuple[Measured, ...]
    claims: tuple[Checked, ...]
    folder: Path

    @property
    def by_name(self) -> Mapping[RowName, Measured]:
        """The rows by scheme and group."""
        return {measured.row.name: measured for measured in self.rows}


def cells_of(experiment: Experiment, row: Row, runs: int) -> list[Cell]:
    """The cells of a row, the first with a time series; seeds count from 1.

    Rows that differ only in the flows they are about have equal cells.

    Raises:
        AckademyError: if the scenario cannot be read.
    """
    if row.missing:
        return []
    scenario = row.scenario or experiment.scenario
    text = read_text(scenario)
    return [
        Cell(
            text=text,
            origin=str(scenario),
            controller=row.controller,
            seed=seed,
            overrides=tuple(row.overrides.items()),
            params=tuple(row.params.items()),
            assignments=row.assignments,
            sample_interval_ms=experiment.sample_interval_ms if seed == 1 else 0.0,
        )
        for seed in range(1, (1 if row.deterministic else runs) + 1)
    ]


def all_cells(experiment: Experiment, runs: int) -> list[Cell]:
    """The cells of every row that can be run."""
    return [cell for row in experiment.rows for cell in cells_of(experiment, row, runs)]


def collect(experiment: Experiment, runs: int, folder: Path) -> Reproduction:
    """Measure what is on disk; rows without a finished cell stay empty.

    Raises:
        ExperimentError: if a row's or a metric's flows or links are not in its runs.
    """
    rows = tuple(_measure(experiment, row, runs, folder) for row in experiment.rows)
    by_name = {measured.row.name: measured for measured in rows}
    claims = tuple(check_rows(claim, by_name) for claim in experiment.claims)
    return Reproduction(experiment, rows, claims, folder)


def check_rows(claim: Claim, rows: Mapping[RowName, Measured]) -> Checked:
    """Hold a claim against measured rows."""
    return check(
        claim,
        lambda name: rows[name].of(claim.metric),
        lambda row, against: (
            rows[row].row.has_runs_of(rows[against].row) and rows[row].seeds == rows[against].seeds
        ),
    )


def difference_ratio(metric: str, published: float, ours: float) -> float:
    """How far ours is from the published number, as a part of it.

    Variances are compared as standard deviations, since the published ones have one or two
    digits. `nan` where there is nothing to divide by, and for M_e, which is a logarithm.
    """
    if metric in LOGARITHMIC or published == 0.0:
        return math.nan
    ratio = ours / published
    return (math.sqrt(ratio) if metric.endswith("variance") else ratio) - 1.0


def tables(reproduction: Reproduction) -> Results:
    """The two tables: numbers of runs and of their flows, and estimates."""
    study = reproduction.experiment.name
    rows = [(_name(reproduction.experiment, own.row), own) for own in reproduction.rows]
    values = (value for name, own in rows for value in _values(name, own))
    estimates = (
        Estimate(name, metric, metric_of(metric).statistic_name, interval, own.n_runs)
        for name, own in rows
        for metric, interval in own.estimates.items()
    )
    return results(study, values, estimates)


def to_csv(reproduction: Reproduction) -> str:
    """One line per row and metric: row, metric, published, ours, ci_low, ci_high, runs."""
    found = {
        (own["scheme"], own["group"], own["metric"]): own
        for own in tables(reproduction).estimates.iter_rows(named=True)
    }
    rows: list[list[object]] = []
    for measured in reproduction.rows:
        for metric in reproduction.experiment.metrics:
            published = measured.row.published.get(metric)
            printed = "" if published is None else f"{published:.6g}"
            ours = found.get((*measured.row.name, metric))
            ends = ("estimate", "low", "high")
            numbers = [f"{ours[end]:.6g}" for end in ends] if ours else [""] * len(ends)
            label = " ".join(measured.row.name)
            rows.append([label, metric, printed, *numbers, measured.n_runs])
    return csv_text(["row", "metric", "published", "ours", "ci_low", "ci_high", "runs"], rows)


def _name(experiment: Experiment, row: Row) -> Name:
    return Name((row.scenario or experiment.scenario).stem, row.scheme, row.group)


def _values(name: Name, own: Measured) -> Iterator[Value]:
    for index, seed in enumerate(own.seeds):
        for metric in own.estimates:
            value = metric_of(metric).of_run(own.of(metric)[index])
            yield Value(name, seed, metric, value)
        for flow, numbers in zip(own.flows[index], own.samples[index], strict=True):
            for column, number in zip(COLUMNS, numbers, strict=True):
                yield Value(name, seed, column, float(number), flow)


def _measure(experiment: Experiment, row: Row, runs: int, folder: Path) -> Measured:
    cells = cells_of(experiment, row, runs)
    finished = [cell for cell in cells if experiments.is_finished(folder, cell)]
    if not finished:
        return Measured(row, np.empty((0, 0, len(COLUMNS))), {}, None)
    wanted = _wanted(experiment, row)
    others = [metric for metric in wanted if metric_of(metric).extract is not per_flow]
    found = [_tables(folder, cell, row.flows, whole=bool(others)) for cell in finished]
    measured = Measured(
        row=row,
        samples=stacked([per_flow(tables) for tables in found]),
        estimates={},
        drawn=next((cell for cell in finished if experiments.has_series(folder, cell)), None),
        other_samples={
            metric: stacked([metric_of(metric).extract(tables) for tables in found])
            for metric in others
        },
        seeds=tuple(cell.seed for cell in finished),
        flows=tuple(tuple(tables.of(row.flows)["flow"]) for tables in found),
        is_fixed=experiments.is_fixed(folder, cells),
    )
    estimates = {metric: metric_of(metric).estimate(measured.of(metric)) for metric in wanted}
    return replace(measured, estimates=estimates)


def _wanted(experiment: Experiment, row: Row) -> list[str]:
    """The metrics that the table, a claim or a figure shows of a row, each once."""
    of_claims = [
        claim.metric
        for claim in experiment.claims
        if any(row.name in (case.row, case.against) for case in claim.cases)
    ]
    of_figures = [
        metric
        for figure in experiment.figures
        if row.name in figure.rows
        for metric in (figure.metric, figure.across)
        if metric
    ]
    return list(dict.fromkeys([*experiment.metrics, *of_claims, *of_figures]))


def _tables(folder: Path, cell: Cell, flows: str, *, whole: bool) -> RunTables:
    """What a finished cell left; links and counters only where a metric is of them."""
    summary = experiments.read(folder, cell, "summary")
    if not whole:
        return RunTables(summary, summary.clear(), summary.clear(), flows)
    links, counters = (experiments.read(folder, cell, name) for name in ("links", "counters"))
    joined = experiments.connections(folder, cell)
    duration_s = math.nan if joined is None else cell.scenario().duration_s
    return RunTables(summary, links, counters, flows, duration_s, joined)
