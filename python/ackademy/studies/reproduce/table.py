"""A table or figure whose rows are simulations: most experiments."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ackademy.render.report import Report
from ackademy.runner import cells, experiments
from ackademy.runner.engines import Engine
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce import report as reproduce_report
from ackademy.studies.reproduce import study as reproduce
from ackademy.studies.reproduce.files import Experiment
from ackademy.studies.reproduce.study import Reproduction


@dataclass(frozen=True, slots=True)
class TableStudy(Experiment):
    """An experiment of rows and columns."""

    def steps(self, runs: int) -> int:
        """Distinct cells."""
        return len({cells.key(cell) for cell in reproduce.all_cells(self, runs)})

    def run(
        self,
        runs: int,
        folder: Path,
        engine: Engine,
        progress: experiments.Progress,
    ) -> experiments.CellsRun:
        """Simulate the cells that are not there."""
        every = reproduce.all_cells(self, runs)
        return experiments.run_cells(every, folder, engine, progress)

    def collect(self, runs: int, folder: Path) -> Reproduction:
        """Measure what is on disk."""
        return reproduce.collect(self, runs, folder)

    def report(self, findings: Reproduction) -> Report:
        """Ours beside the published."""
        return reproduce_report.report(findings)


def load(name: str) -> TableStudy:
    """Read the file of a table.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    found = experiment_files.load(name)
    return TableStudy(**{own.name: getattr(found, own.name) for own in fields(found)})
