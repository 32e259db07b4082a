"""Runs one table or figure of a paper and sets its numbers beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from ackademy.backends.runs import read_text
from ackademy.csv_text import csv_text
from ackademy.lazy import pl
from ackademy.runner.cells import Cell
from ackademy.runner.measured import Measured, measured
from ackademy.runner.measured import Row as MeasuredRow
from ackademy.runner.measured import tables as measured_tables
from ackademy.stats.claims import Checked, Claim, RowName, check
from ackademy.stats.results import Name, Results, Value, results
from ackademy.stats.run_tables import COLUMNS
from ackademy.studies.reproduce.files import Experiment, Row

LOGARITHMIC = ("m_e",)
"""metrics whose difference means something and whose ratio does not"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduced(Measured):
    """A row of the paper's table with what we measured."""

    printed: Row


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A paper's table or figure, ours beside the published."""

    experiment: Experiment
    rows: tuple[Reproduced, ...]
    claims: tuple[Checked, ...]
    folder: Path

    @property
    def by_name(self) -> Mapping[RowName, Reproduced]:
        """The rows by scheme and group."""
        return {own.printed.name: own for own in self.rows}

    @property
    def is_empty(self) -> bool:
        """Whether no row has a run."""
        return not any(own.n_runs for own in self.rows)

    def csv(self) -> str:
        """One line per row and metric."""
        return to_csv(self)

    def results(self) -> Results:
        """The two tables."""
        return tables(self)


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
    by_name = {measured.printed.name: measured for measured in rows}
    claims = tuple(check_rows(claim, by_name) for claim in experiment.claims)
    return Reproduction(experiment, rows, claims, folder)


def check_rows(claim: Claim, rows: Mapping[RowName, Reproduced]) -> Checked:
    """Hold a claim against measured rows."""
    return check(
        claim,
        lambda name: rows[name].of(claim.metric),
        lambda row, against: (
            rows[row].printed.has_runs_of(rows[against].printed)
            and rows[row].seeds == rows[against].seeds
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
    whole = measured_tables(study, reproduction.rows)
    each = results(study, (value for own in reproduction.rows for value in _of_flows(own)), ())
    return Results(pl.concat([whole.values, each.values]), whole.estimates)


def to_csv(reproduction: Reproduction) -> str:
    """One line per row and metric: row, metric, published, ours, ci_low, ci_high, runs."""
    found = {
        (own["scheme"], own["group"], own["metric"]): own
        for own in tables(reproduction).estimates.iter_rows(named=True)
    }
    rows: list[list[object]] = []
    for own in reproduction.rows:
        for metric in reproduction.experiment.metrics:
            published = own.printed.published.get(metric)
            printed = "" if published is None else f"{published:.6g}"
            ours = found.get((*own.printed.name, metric))
            ends = ("estimate", "low", "high")
            numbers = [f"{ours[end]:.6g}" for end in ends] if ours else [""] * len(ends)
            label = " ".join(own.printed.name)
            rows.append([label, metric, printed, *numbers, own.n_runs])
    return csv_text(["row", "metric", "published", "ours", "ci_low", "ci_high", "runs"], rows)


def _of_flows(own: Reproduced) -> Iterator[Value]:
    for index, seed in enumerate(own.seeds):
        for flow, numbers in zip(own.flows[index], own.of_flows[index], strict=True):
            for column, number in zip(COLUMNS, numbers, strict=True):
                yield Value(own.row.name, seed, column, float(number), flow)


def _measure(experiment: Experiment, row: Row, runs: int, folder: Path) -> Reproduced:
    name = Name((row.scenario or experiment.scenario).stem, row.scheme, row.group)
    cells, wanted = tuple(cells_of(experiment, row, runs)), tuple(_wanted(experiment, row))
    own = measured(MeasuredRow(name, cells, wanted, named=row.flows), folder)
    return Reproduced(**{one.name: getattr(own, one.name) for one in fields(own)}, printed=row)


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
