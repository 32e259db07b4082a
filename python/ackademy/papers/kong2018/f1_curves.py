"""F1 of the shipped loss predictors by threshold, drawn without a simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ackademy import files
from ackademy.csv_text import csv_text
from ackademy.errors import ExperimentError
from ackademy.learn.lp_tcp.scoring import Score, best, from_csv
from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import legend, ring
from ackademy.render.report import Report, Section
from ackademy.render.sheet import Head, Line, Part, Sheet, cell
from ackademy.runner.engines import Engine
from ackademy.runner.experiments import CellsRun, Progress
from ackademy.stats.claims import Checked
from ackademy.stats.formulas import FloatArray
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce.files import Assumption, Item
from ackademy.studies.reproduce.parts import assumptions_section, item_report
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

    def report(self, findings: CurveStudy) -> Report:
        """F1 threshold by threshold, and the maxima beside the published ones."""
        keys = legend((curve.name, f"s{index}") for index, curve in enumerate(self.curves))
        drawing = element("figure", keys, _drawn(self.curves), class_="panel drawn")
        lead = "Rings are the maxima, th₀. Packets the forest has not been fitted to."
        sections = [
            Section("curves", "F1 by threshold", lead, [drawing]),
            Section("maxima", "th₀, published and ours", "", [_maxima(self)]),
            assumptions_section(self.assumptions),
        ]
        return item_report(self, {}, sections)

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

    def results(self) -> None:
        """No tables of runs: the numbers are of another kind."""


def load(name: str) -> CurveStudy:
    """Read the figure's file and the curves that it names.

    Raises:
        ExperimentError: if one is missing or wrong.
    """
    path = experiment_files.find(name)
    item = TomlTable.read(path)
    return item.into(
        CurveStudy,
        *("kind", "curve", "assumption"),
        name=experiment_files.name_of(path),
        path=path,
        paper=experiment_files.read_paper(path),
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


def _drawn(curves: Sequence[Curve]) -> Markup:
    frame = Frame(Axis(0.0, 1.0, "threshold th"), Axis(0.0, 1.0, "F1"))
    content = []
    for index, curve in enumerate(curves):
        x: FloatArray = np.array([score.threshold for score in curve.scores])
        y: FloatArray = np.array([score.f1 for score in curve.scores])
        peak = frame.dots(np.array([curve.th0.threshold]), np.array([curve.th0.f1]))
        content.append(
            element(
                "g",
                element("path", class_="stroke", d=frame.line(x, y)),
                ring(peak),
                class_=f"s{index}",
            )
        )
    return frame.draw(content, label="F1 by threshold", class_="figure")


def _maxima(study: CurveStudy) -> Sheet:
    """The threshold with the largest F1, published and ours."""
    labels = ("th₀ published", "th₀ ours", "F1", "precision", "recall")
    lines = []
    for curve in study.curves:
        th0 = curve.th0
        ours = [f"{value:.3f}" for value in (th0.f1, th0.precision, th0.recall)]
        texts = (f"{curve.published:g}", f"{th0.threshold:g}", *ours)
        lines.append(Line((Part(curve.name),), tuple(map(cell, texts))))
    title = f"{study.item}: {study.title}"
    return Sheet(title, (Head("(L, K)"),), tuple(map(Head, labels)), tuple(lines))
