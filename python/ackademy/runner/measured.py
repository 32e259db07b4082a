"""What every study does with finished cells: measure the runs of a row, estimate over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ackademy import _core
from ackademy.backends import entries
from ackademy.backends.kernel import KernelRun
from ackademy.backends.schemes import AS_WRITTEN, Scheme
from ackademy.runner import cases, experiments
from ackademy.runner.cases import Case, Plan
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.results import Estimate, Name, Results, Value, results
from ackademy.stats.run_tables import COLUMNS, RunTables, per_flow, stacked


@dataclass(frozen=True, slots=True)
class Row:
    """Cells that differ in their seeds alone, and what is measured of them."""

    name: Name
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]
    flows: tuple[str, ...] = ("*",)
    """patterns of the `[[flow]]` entries that the numbers are of"""
    named: str = ""
    """pattern of flows, which takes the place of `flows`; empty: none"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row with what was measured."""

    row: Row
    seeds: tuple[int, ...]
    """of the runs that count"""
    values: Mapping[str, FloatArray]
    """by metric, that of each run alone; shape (n_runs,)"""
    estimates: Mapping[str, Interval]
    """by metric; empty if no run counts"""
    drawn: Cell | None = None
    """the cell with a time series"""
    kernel_runs: tuple[KernelRun, ...] = ()
    """how the runs in real time went, those that do not count included"""
    is_fixed: bool = False
    """whether nothing in it is random, so that one run stands for every seed"""
    flows: tuple[tuple[str, ...], ...] = ()
    """of each run, the names of the row's flows"""
    of_flows: FloatArray = field(default_factory=lambda: np.empty((0, 0, len(COLUMNS))))
    """shape (n_runs, n_flows, len(COLUMNS)), as `stacked` has it"""
    samples: Mapping[str, FloatArray] = field(default_factory=dict)
    """by metric that is not of the row's flows; the first axis is runs"""

    @property
    def n_runs(self) -> int:
        """Number of runs behind the numbers."""
        return len(self.seeds)

    @property
    def n_invalid(self) -> int:
        """Runs whose emulator was late; they are in no number."""
        return sum(not run.valid for run in self.kernel_runs)

    @property
    def valid_runs(self) -> list[KernelRun]:
        """How the runs in real time went that count."""
        return [run for run in self.kernel_runs if run.valid]

    def value(self, metric: str) -> float:
        """The estimate; `nan` without runs."""
        estimate = self.estimates.get(metric)
        return math.nan if estimate is None else estimate.value

    def of(self, metric: str) -> FloatArray:
        """Samples from which a metric's statistic is taken; the first axis is runs."""
        return self.samples.get(metric, self.of_flows)


def rows(
    found: Sequence[Case], schemes: Sequence[Scheme], plan: Plan, metrics: Sequence[str]
) -> list[Row]:
    """Every case under every scheme, or under its own controllers if there is no scheme."""
    return [
        Row(
            Name(case.name, scheme.label, case.group, plan.backend),
            cases.cells(case, scheme, plan),
            tuple(metrics),
            case.flows,
        )
        for case in found
        for scheme in schemes or [Scheme(AS_WRITTEN, None)]
    ]


def measure(found: Iterable[Row], folder: Path) -> list[Measured]:
    """Measure what is on disk."""
    return [measured(row, folder) for row in found]


def measured(row: Row, folder: Path) -> Measured:
    """Measure one row; each of its cells is read once."""
    finished, kernel_runs = experiments.countable(folder, row.cells)
    is_fixed = experiments.is_fixed(folder, row.cells)
    if not finished and not kernel_runs:
        finished = [cell for cell in row.cells if experiments.is_repeat(folder, cell)][:1]
        is_fixed = bool(finished)
    if not finished:
        return Measured(row, (), {}, {}, None, kernel_runs)
    others = [name for name in row.metrics if metric_of(name).extract is not per_flow]
    scenario = finished[0].scenario()  # the cells of a row differ in their seeds alone
    read = run_tables if others else _flows_alone
    found = [read(folder, cell, scenario, row) for cell in finished]
    of_flows = stacked([per_flow(tables) for tables in found])
    samples = {
        name: stacked([metric_of(name).extract(tables) for tables in found]) for name in others
    }
    values, estimates = {}, {}
    for name in row.metrics:
        metric, own = metric_of(name), samples.get(name, of_flows)
        values[name] = np.array([metric.of_run(run) for run in own], np.float64)
        estimates[name] = metric.estimate(own)
    return Measured(
        row=row,
        seeds=tuple(cell.seed for cell in finished),
        values=values,
        estimates=estimates,
        drawn=next((cell for cell in finished if experiments.has_series(folder, cell)), None),
        kernel_runs=kernel_runs,
        is_fixed=is_fixed,
        flows=tuple(tuple(tables.of(tables.chosen)["flow"]) for tables in found),
        of_flows=of_flows,
        samples=samples,
    )


def tables(study: str, found: Sequence[Measured]) -> Results:
    """The two tables of a study."""
    return results(study, _values(found), _estimates(found))


def run_tables(folder: Path, cell: Cell, scenario: _core.Scenario, row: Row) -> RunTables:
    """What a finished cell left, the flows of a row chosen."""
    summary, links, counters = experiments.read_several(folder, cell, experiments.TABLES)
    joined = experiments.connections(folder, cell)
    chosen = _chosen(scenario, row, summary["flow"].to_list())
    return RunTables(summary, links, counters, chosen, scenario.duration_s, joined)


def _flows_alone(folder: Path, cell: Cell, scenario: _core.Scenario, row: Row) -> RunTables:
    """The same without links and counters, for metrics that are of flows alone."""
    summary = experiments.read(folder, cell, "summary")
    none = summary.clear()
    chosen = _chosen(scenario, row, summary["flow"].to_list())
    return RunTables(summary, none, none, chosen, scenario.duration_s)


def _chosen(scenario: _core.Scenario, row: Row, names: Sequence[str]) -> str | tuple[bool, ...]:
    return row.named or tuple(entries.governed(scenario, row.flows, names))


def _values(found: Sequence[Measured]) -> Iterator[Value]:
    for own in found:
        for index, seed in enumerate(own.seeds):
            for metric, values in own.values.items():
                yield Value(own.row.name, seed, metric, float(values[index]))


def _estimates(found: Sequence[Measured]) -> Iterator[Estimate]:
    for own in found:
        for metric, interval in own.estimates.items():
            statistic = metric_of(metric).statistic_name
            yield Estimate(own.row.name, metric, statistic, interval, own.n_runs)
