"""F1 of the shipped loss predictors by threshold, drawn without a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ackademy import files
from ackademy.csv_text import csv_text
from ackademy.errors import ExperimentError
from ackademy.learn.lp_tcp.scoring import Score, best, from_csv
from ackademy.runner.engines import Engine
from ackademy.runner.experiments import CellsRun, Progress
from ackademy.stats.claims import Checked
from ackademy.studies import experiment_files
from ackademy.studies.experiment_files import Assumption, Item
from ackademy.toml_table import TomlTable


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one setup."""

    name: str
    published: float
    """th₀ of the paper's forest"""
    scores: tuple[Score, ...]

    @property
    def th0(self) -> Score:
        """The threshold with the largest F1."""
        return best(self.scores)


@dataclass(frozen=True, slots=True)
class CurveStudy(Item):
    """A figure of F1 curves: study and findings in one."""

    curves: tuple[Curve, ...]
    assumptions: tuple[Assumption, ...]
    runs: int = 1

    def steps(self, runs: int) -> int:
        """One per curve; all were measured when the forests were trained."""
        return len(self.curves)

    def run(self, runs: int, folder: Path, engine: Engine, progress: Progress) -> CellsRun:
        """Do nothing: the curves were measured in training."""
        progress(len(self.curves), len(self.curves))
        return CellsRun(len(self.curves), len(self.curves), [])

    def collect(self, runs: int, folder: Path) -> CurveStudy:
        """The study is its findings."""
        return self

    @property
    def is_empty(self) -> bool:
        """Whether there is no curve."""
        return not self.curves

    @property
    def claims(self) -> Sequence[Checked]:
        """None: the paper makes no claim about the curves."""
        return ()

    def csv(self) -> str:
        """One line per setup and threshold."""
        rows = []
        for curve in self.curves:
            for score in curve.scores:
                numbers = (score.threshold, score.precision, score.recall, score.f1)
                rows.append([curve.name, *(f"{value:.6g}" for value in numbers)])
        return csv_text(["setup", "threshold", "precision", "recall", "f1"], rows)


def load(name: str) -> CurveStudy:
    """Read the figure's file and the curves that it names.

    Raises:
        ExperimentError: if one is missing or wrong.
    """
    path = experiment_files.find(name)
    item = TomlTable.read(path).only("kind", "title", "item", "about", "curve", "assumption")
    return CurveStudy(
        **experiment_files.item_of(path, item),
        curves=tuple(_curve(entry, path.parent) for entry in item.tables("curve")),
        assumptions=tuple(experiment_files.parse_assumptions(item)),
    )


def _curve(entry: TomlTable, folder: Path) -> Curve:
    path = folder / entry.only("name", "published", "scores").string("scores")
    try:
        scores = from_csv(files.read_text(path, files.TABLE_BYTES_MAX, ExperimentError))
    except (KeyError, ValueError) as error:
        raise ExperimentError(f"{entry.where}: scores = {path}: {error}") from error
    return Curve(entry.string("name"), entry.number("published"), scores)
