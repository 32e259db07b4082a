"""What every study does with finished cells: measure the runs of a row, estimate over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ackademy import _core
from ackademy.backends import entries
from ackademy.backends.kernel import KernelRun
from ackademy.runner import experiments
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.results import Estimate, Name, Results, Value, results
from ackademy.stats.run_tables import RunTables, per_flow, stacked


@dataclass(frozen=True, slots=True)
class Row:
    """Cells that differ in their seeds alone, and what is measured of them."""

    name: Name
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]
    flows: str = "*"
    """pattern of the `[[flow]]` entries that the numbers are of"""


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
    """how the runs on the kernel went, those that do not count included"""
    is_fixed: bool = False
    """whether nothing in it is random, so that one run stands for every seed"""

    @property
    def n_runs(self) -> int:
        """That count."""
        return len(self.seeds)

    @property
    def n_invalid(self) -> int:
        """Runs whose emulator was late; they are in no number."""
        return sum(not run.valid for run in self.kernel_runs)

    def value(self, metric: str) -> float:
        """The estimate; `nan` without runs."""
        estimate = self.estimates.get(metric)
        return math.nan if estimate is None else estimate.value


def measure(rows: Iterable[Row], folder: Path) -> list[Measured]:
    """Measure what is on disk."""
    return [_measure(row, folder) for row in rows]


def tables(study: str, measured: Sequence[Measured]) -> Results:
    """The two tables of a study."""
    return results(study, _values(measured), _estimates(measured))


def run_tables(folder: Path, cell: Cell, scenario: _core.Scenario, flows: str) -> RunTables:
    """What a finished cell left, with the flows chosen that a pattern of entries names."""
    summary, links, counters = (
        experiments.read(folder, cell, name) for name in ("summary", "links", "counters")
    )
    chosen = tuple(entries.governed(scenario, [flows], summary["flow"].to_list()))
    joined = experiments.connections(folder, cell)
    return RunTables(summary, links, counters, chosen, scenario.duration_s, joined)


def _measure(row: Row, folder: Path) -> Measured:
    finished, kernel_runs = experiments.countable(folder, row.cells)
    if not finished:
        return Measured(row, (), {}, {}, None, kernel_runs)
    scenario = finished[0].scenario()  # the cells of a row differ in their seeds alone
    found = [run_tables(folder, cell, scenario, row.flows) for cell in finished]
    flows = stacked([per_flow(tables) for tables in found])
    values, estimates = {}, {}
    for name in row.metrics:
        metric = metric_of(name)
        is_of_flows = metric.extract is per_flow
        samples = flows if is_of_flows else stacked([metric.extract(t) for t in found])
        values[name] = np.array([metric.of_run(own) for own in samples], np.float64)
        estimates[name] = metric.estimate(samples)
    drawn = next((cell for cell in finished if experiments.has_series(folder, cell)), None)
    seeds = tuple(cell.seed for cell in finished)
    is_fixed = experiments.is_fixed(folder, row.cells)
    return Measured(row, seeds, values, estimates, drawn, kernel_runs, is_fixed)


def _values(measured: Sequence[Measured]) -> Iterator[Value]:
    for own in measured:
        for index, seed in enumerate(own.seeds):
            for metric, values in own.values.items():
                yield Value(own.row.name, seed, metric, float(values[index]))


def _estimates(measured: Sequence[Measured]) -> Iterator[Estimate]:
    for own in measured:
        for metric, interval in own.estimates.items():
            statistic = metric_of(metric).statistic_name
            yield Estimate(own.row.name, metric, statistic, interval, own.n_runs)
