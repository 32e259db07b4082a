"""A table or figure whose rows are simulations: most experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ackademy.runner import cells, experiments
from ackademy.runner.engines import Engine
from ackademy.stats.claims import Checked
from ackademy.studies import experiment_files, reproduce
from ackademy.studies.experiment_files import Experiment


@dataclass(frozen=True, slots=True)
class TableFindings:
    """Rows beside the published ones."""

    reproduction: reproduce.Reproduction

    @property
    def is_empty(self) -> bool:
        """Whether no row has a run."""
        return not any(measured.n_runs for measured in self.reproduction.rows)

    @property
    def claims(self) -> Sequence[Checked]:
        """The paper's claims, checked."""
        return self.reproduction.claims

    def csv(self) -> str:
        """One line per row and metric."""
        return reproduce.to_csv(self.reproduction)


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

    def collect(self, runs: int, folder: Path) -> TableFindings:
        """Measure what is on disk."""
        return TableFindings(reproduce.collect(self, runs, folder))


def load(name: str) -> TableStudy:
    """Read the file of a table.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    found = experiment_files.load(name)
    return TableStudy(**{own.name: getattr(found, own.name) for own in fields(found)})
