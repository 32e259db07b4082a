"""F1 of the shipped loss predictors by threshold: nothing to simulate, all to draw."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType

from ackademy import files, papers, terminal
from ackademy.claims import Checked
from ackademy.console import Console
from ackademy.engines import Engine
from ackademy.errors import ExperimentError
from ackademy.experiments import Batch, Progress
from ackademy.metrics import FloatArray
from ackademy.papers import Assumption, Paper
from ackademy.report import assumptions
from ackademy.report.markup import Markup, element, join
from ackademy.report.page import Head, Section, document
from ackademy.report.plot import Axis, Frame
from ackademy.toml_table import TomlTable
from ackademy.train.scoring import Score, best, from_csv


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
class CurveStudy:
    """A figure of F1 curves, and all there is to find out about it."""

    name: str
    item: str
    title: str
    about: str
    paper: Paper
    curves: tuple[Curve, ...]
    assumptions: tuple[Assumption, ...]
    runs: int = 1

    def steps(self, runs: int) -> int:
        """One per curve; all were measured when the forests were trained."""
        return len(self.curves)

    def run(self, runs: int, folder: Path, engine: Engine, progress: Progress) -> Batch:
        """Nothing is left to do."""
        progress(len(self.curves), len(self.curves))
        return Batch(len(self.curves), len(self.curves), [])

    def collect(self, runs: int, folder: Path) -> CurveStudy:
        """The study is its findings."""
        return self

    @property
    def is_empty(self) -> bool:
        """Whether there is no curve."""
        return not self.curves

    @property
    def claims(self) -> Sequence[Checked]:
        """The paper says nothing of the curves."""
        return ()

    def tables(self, console: Console) -> RenderableType:
        """The maxima, published and ours."""
        table = terminal.headed_table(f"{self.item}: {self.title}", ["(L, K)"], [*HEADS])
        for curve in self.curves:
            table.add_row(curve.name, *_numbers(curve))
        return Group(table, terminal.assumptions_table(self.assumptions))

    def csv(self) -> str:
        """One line per setup and threshold."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["setup", "threshold", "precision", "recall", "f1"])
        for curve in self.curves:
            for score in curve.scores:
                numbers = (score.threshold, score.precision, score.recall, score.f1)
                writer.writerow([curve.name, *(f"{value:.6g}" for value in numbers)])
        return buffer.getvalue()

    def page(self) -> str:
        """The HTML report."""
        cite = join((f"{self.paper.authors}: “{self.paper.title}”. {self.paper.venue}.",))
        head = Head(f"Reproduction · {self.item}", self.title, self.about, cite, {})
        drawing = element("figure", _legend(self.curves), _drawn(self.curves), class_="panel drawn")
        lead = "Rings are the maxima, th₀. Packets the forest has not been fitted to."
        rests_on = assumptions.listed(self.assumptions)
        return document(
            head,
            [
                Section("curves", "F1 by threshold", lead, drawing),
                Section("maxima", "th₀, published and ours", "", _table(self.curves)),
                Section("assumptions", "What this rests on", "", rests_on),
            ],
        )


HEADS = ("th₀\npublished", "th₀\nours", "F1", "precision", "recall")


def load(name: str) -> CurveStudy:
    """Read the figure's file and the curves that it names.

    Raises:
        ExperimentError: if one is missing or wrong.
    """
    path = papers.find(name)
    item = TomlTable.read(path).only("kind", "title", "item", "about", "curve", "assumption")
    return CurveStudy(
        name=papers.name_of(path),
        item=item.string("item"),
        title=item.string("title"),
        about=item.string("about"),
        paper=papers.read_paper(path),
        curves=tuple(_curve(entry, path.parent) for entry in item.tables("curve")),
        assumptions=tuple(papers.parse_assumptions(item)),
    )


def _curve(entry: TomlTable, folder: Path) -> Curve:
    path = folder / entry.only("name", "published", "scores").string("scores")
    try:
        scores = from_csv(files.read_text(path, files.TABLE_BYTES_MAX, ExperimentError))
    except (KeyError, ValueError) as error:
        raise ExperimentError(f"{entry.where}: scores = {path}: {error}") from error
    return Curve(entry.string("name"), entry.number("published"), scores)


def _numbers(curve: Curve) -> list[str]:
    th0 = curve.th0
    ours = [f"{value:.3f}" for value in (th0.f1, th0.precision, th0.recall)]
    return [f"{curve.published:g}", f"{th0.threshold:g}", *ours]


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
                element("path", class_="ring", d=peak),
                element("path", class_="hole", d=peak),
                class_=f"s{index}",
            )
        )
    return frame.draw(content, label="F1 by threshold", class_="figure")


def _legend(curves: Sequence[Curve]) -> Markup:
    entries = [
        element("li", element("i", class_=f"key s{index}"), curve.name)
        for index, curve in enumerate(curves)
    ]
    return element("ul", join(entries), class_="legend")


def _table(curves: Sequence[Curve]) -> Markup:
    heads = [element("th", head.replace("\n", " ")) for head in ("(L, K)", *HEADS)]
    rows = [
        element(
            "tr",
            element("th", curve.name, scope="row"),
            *(element("td", number) for number in _numbers(curve)),
        )
        for curve in curves
    ]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", join(rows)))
    return element("div", table, class_="scroll")
