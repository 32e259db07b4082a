"""LearningCC's fluid model beside the simulations of another experiment.

The file names that experiment (`measured`), its link, and the schemes that are Reno and LearningCC.
The model takes each flow's measured round trip, loss and growth, and gives its rate; flows add up
to a share of the link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ackademy.csv_text import csv_text
from ackademy.errors import ExperimentError
from ackademy.lazy import pl
from ackademy.papers.learningcc import fluid
from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import legend, panel, ring
from ackademy.render.numbers import NONE
from ackademy.render.report import Item as ReportItem
from ackademy.render.report import Report, Section, in_text
from ackademy.render.sheet import Head, Line, Part, Sheet, cell
from ackademy.runner import cells, experiments
from ackademy.runner.engines import Engine
from ackademy.stats.claims import Checked
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import RunTables
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce import study as reproduce
from ackademy.studies.reproduce.files import Assumption, Experiment, Item, Row
from ackademy.studies.reproduce.parts import assumptions_section, item_report
from ackademy.toml_table import TomlTable

LEAD = "Dots: measured. Lines: the fluid model. Rings: the square-root law."
BITS = 8e-6
"""megabits per byte"""


@dataclass(frozen=True, slots=True)
class Point:
    """One network under one scheme; shares of a link in [0, 1]."""

    scheme: str
    group: str
    """its case before the first comma"""
    x: float
    measured: float
    model: float
    law: float | None
    """by the square-root law, where it applies"""

    @property
    def case(self) -> str:
        """The network without its loss."""
        return self.group.partition(", ")[0]


@dataclass(frozen=True, slots=True)
class FluidFindings:
    """Measured and modelled shares of the link."""

    study: FluidStudy
    points: tuple[Point, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured."""
        return not self.points

    @property
    def claims(self) -> Sequence[Checked]:
        """None: the paper does not compare the model with simulations; this study does."""
        return ()

    def csv(self) -> str:
        """One line per group and scheme."""
        rows = []
        for point in self.points:
            law = "" if point.law is None else f"{point.law:.6g}"
            rows.append(
                [point.scheme, point.group, f"{point.measured:.6g}", f"{point.model:.6g}", law]
            )
        return csv_text(["scheme", "group", "measured", "fluid_model", "square_root_law"], rows)

    def results(self) -> None:
        """No tables of runs: the numbers are of another kind."""


@dataclass(frozen=True, slots=True)
class FluidStudy(Item):
    """The simulations that the model is compared with."""

    measured: Experiment
    """reduced to the rows of the two schemes"""
    reno: str
    learningcc: str
    link: str
    packet_bytes: float
    assumptions: tuple[Assumption, ...]

    @property
    def runs(self) -> int:
        """As many as the measured experiment has."""
        return self.measured.runs

    def steps(self, runs: int) -> int:
        """Distinct cells."""
        return len({cells.key(cell) for cell in reproduce.all_cells(self.measured, runs)})

    def run(
        self, runs: int, folder: Path, engine: Engine, progress: experiments.Progress
    ) -> experiments.CellsRun:
        """Simulate the missing cells of the measured experiment."""
        every = reproduce.all_cells(self.measured, runs)
        return experiments.run_cells(every, folder, engine, progress)

    def collect(self, runs: int, folder: Path) -> FluidFindings:
        """Shares of all rows that have runs."""
        points = []
        for row in self.measured.rows:
            found = [
                self._run_tables(folder, cell)
                for cell in reproduce.cells_of(self.measured, row, runs)
                if experiments.is_finished(folder, cell)
            ]
            if found:
                points.append(self._point(row, found))
        return FluidFindings(self, tuple(points))

    def report(self, findings: FluidFindings) -> Report:
        """A chart per case, and every number."""
        cases = dict.fromkeys(point.case for point in findings.points)
        charts = [_chart(case, findings.points) for case in cases]
        items: list[ReportItem] = [*charts, in_text(_sheet(findings))]
        sections = [Section("cases", "Cases", LEAD, items), assumptions_section(self.assumptions)]
        return item_report(self, {}, sections)

    @staticmethod
    def _run_tables(folder: Path, cell: cells.Cell) -> RunTables:
        summary, links, counters = (
            experiments.read(folder, cell, name) for name in ("summary", "links", "counters")
        )
        return RunTables(summary, links, counters)

    def _point(self, row: Row, found: Sequence[RunTables]) -> Point:
        share = metric_of(f"goodput_share:{self.link}")
        is_reno = row.scheme == self.reno
        laws = [self._law(run) for run in found]
        return Point(
            scheme=row.scheme,
            group=row.group,
            x=row.x if row.x is not None else 0.0,
            measured=float(np.mean([share.extract(run) for run in found])),
            model=float(np.mean([self._model(run, is_reno=is_reno) for run in found])),
            law=float(np.mean(laws)) if is_reno else None,
        )

    def _model(self, run: RunTables, *, is_reno: bool) -> float:
        if is_reno:
            rates = [
                fluid.reno_rate(1e-3 * flow["rtt_mean_ms"], flow["loss_ratio"])
                for flow in run.flows.iter_rows(named=True)
            ]
        else:
            rates = [_learningcc(run, flow) for flow in run.flows.iter_rows(named=True)]
        return self._share(run, sum(rates))

    def _law(self, run: RunTables) -> float:
        """By the propagation delay alone, as the law is used before a run."""
        rates = [
            fluid.square_root_rate(1e-3 * flow["base_rtt_ms"], flow["loss_ratio"])
            for flow in run.flows.iter_rows(named=True)
        ]
        return self._share(run, sum(rates))

    def _share(self, run: RunTables, packets_per_s: float) -> float:
        links = run.links.filter(pl.col("link") == self.link)
        seconds = float(run.flows["active_s"].to_numpy().max())
        capacity_mbps = BITS * float(links["capacity_bytes"].sum()) / seconds
        return min(1.0, BITS * self.packet_bytes * packets_per_s / capacity_mbps)


def _learningcc(run: RunTables, flow: dict[str, float]) -> float:
    """A flow by equation 11, from the congestion events and slopes that it counted itself."""
    counted = run.counters.filter(pl.col("flow") == flow["flow"])
    count = dict(zip(counted["name"], counted["value"], strict=True))
    events = sum(value for name, value in count.items() if name.startswith("backoffs_"))
    return fluid.learningcc_rate(
        rtt_s=1e-3 * flow["rtt_mean_ms"],
        min_rtt_s=1e-3 * flow["base_rtt_ms"],
        event_ratio=max(events, 1.0) / flow["sent_packets"],
        alpha=count["alpha_mean"],
    )


def load(name: str) -> FluidStudy:
    """Read the file.

    Raises:
        ExperimentError: if it, or the experiment it names, is missing or wrong.
    """
    path = experiment_files.find(name)
    table = TomlTable.read(path)
    beside = f"{table.string('measured')}.toml"
    if beside != Path(beside).name:
        raise table.error("measured", table.string("measured"), "an item of the same paper")
    measured = experiment_files.load(str(path.parent / beside))
    schemes = table.string("reno"), table.string("learningcc")
    rows = tuple(row for row in measured.rows if row.scheme in schemes)
    if not {row.scheme for row in rows} == set(schemes):
        raise ExperimentError(f"{path}: reno, learningcc = {schemes}: allowed: its schemes")
    return table.into(
        FluidStudy,
        *("kind", "measured", "assumption"),
        name=experiment_files.name_of(path),
        path=path,
        paper=experiment_files.read_paper(path),
        measured=replace(measured, rows=rows),
        assumptions=tuple(experiment_files.parse_assumptions(table)),
    )


def _chart(case: str, points: Sequence[Point]) -> Markup:
    own = sorted((point for point in points if point.case == case), key=lambda point: point.x)
    schemes = list(dict.fromkeys(point.scheme for point in points))
    ends = own[0].x - 0.25, own[-1].x + 0.25
    frame = Frame(Axis(*ends, "random loss, %"), Axis(0.0, 1.05, "share of the link"))
    content, keys = [], []
    for index, scheme in enumerate(schemes):
        line = [point for point in own if point.scheme == scheme]
        x = np.array([point.x for point in line])
        model, measured = (
            np.array([getattr(point, name) for point in line]) for name in ("model", "measured")
        )
        content.append(
            element(
                "g",
                element("path", class_="stroke", d=frame.line(x, model)),
                element("path", class_="centre", d=frame.dots(x, measured)),
                class_=f"s{index}",
            )
        )
        keys.append((scheme, f"s{index}"))
        law = np.array([np.nan if point.law is None else point.law for point in line])
        if np.isfinite(law).any():
            content.append(element("g", ring(frame.dots(x, law)), class_=f"s{index}"))
            keys.append((f"{scheme}, law", "ring"))
    drawing = frame.draw(content, label=f"{case}: share of the link by loss", class_="figure")
    return panel(case.capitalize(), legend(keys), drawing, class_="panel drawn")


def _sheet(findings: FluidFindings) -> Sheet:
    """A line per case and scheme: measured, by the model, and by the square-root law."""
    lines = tuple(
        Line(
            (Part(point.scheme), Part(point.group)),
            tuple(
                cell(NONE if share is None else f"{share:.3f}")
                for share in (point.measured, point.model, point.law)
            ),
        )
        for point in findings.points
    )
    heads = tuple(map(Head, ("measured", "fluid model", "square-root law")))
    title = f"{findings.study.item}: {findings.study.title}"
    return Sheet(title, (Head("scheme"), Head("group")), heads, lines)
