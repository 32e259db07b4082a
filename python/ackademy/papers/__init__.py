"""Experiments of papers: the interface of the module that `kind = "..."` names.

A kind is a module, listed in `KINDS`, with a function

    def load(name: str) -> Study: ...

`name` is as on the command line (`experiment_files.find` gives the file). A file without `kind` is
a `table`. A study counts its steps, runs the missing ones, returns findings, and makes a report of
them. What belongs to one paper alone is in a folder here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from ackademy.render.report import Report
from ackademy.runner.engines import Engine
from ackademy.runner.experiments import CellsRun, Progress
from ackademy.stats.claims import Checked
from ackademy.stats.results import Results
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce.files import Paper
from ackademy.toml_table import TomlTable

KINDS: Mapping[str, str] = {
    "cubic_beta": "ackademy.papers.knott2023.report",
    "f1_curves": "ackademy.papers.kong2018.f1_curves",
    "fluid": "ackademy.papers.learningcc.fluid_study",
    "table": "ackademy.studies.reproduce.table",
}
"""the module that loads the files of a kind"""


class Findings(Protocol):
    """The results of a study so far."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been run yet."""

    @property
    def claims(self) -> Sequence[Checked]:
        """The paper's claims, checked; may be empty."""

    def csv(self) -> str:
        """The numbers as a file."""

    def results(self) -> Results | None:
        """The two tables of a study; `None` if its numbers are of another kind."""


class Study(Protocol):
    """One item of a paper, checked and ready to run."""

    @property
    def name(self) -> str:
        """As on the command line: `kong2018/table5`."""

    @property
    def item(self) -> str:
        """What the paper calls it: `Table 5`."""

    @property
    def title(self) -> str:
        """What it is about, in a few words."""

    @property
    def paper(self) -> Paper:
        """The publication."""

    @property
    def runs(self) -> int:
        """Repetitions, unless the command line asks for another number."""

    def steps(self, runs: int) -> int:
        """Number of steps of `run`, finished ones included."""

    def run(self, runs: int, folder: Path, engine: Engine, progress: Progress) -> CellsRun:
        """Run the missing steps and store them below `folder`, which all items of a paper share.

        Args:
            runs: repetitions.
            folder: results kept here are found again; a kind that keeps no cells has a subfolder.
            engine: where to compute cells.
            progress: called with the steps done and `steps(runs)`, first before anything runs.

        Raises:
            AckademyError: before anything runs, if the experiment is wrong.
            experiments.Interrupted: on Ctrl-C; what is finished is kept.
        """

    def collect(self, runs: int, folder: Path) -> Findings:
        """Read the finished results without running anything."""

    def report(self, findings: Any) -> Report:  # noqa: ANN401  # what `collect` returns
        """The report of what was found."""


def load_all(name: str) -> list[Study]:
    """The study that a name stands for, or all of a paper's where the name is a paper's.

    Raises:
        ExperimentError: if there is none, or a file is wrong.
    """
    if name in experiment_files.all_papers():
        return [load(item) for item in experiment_files.available() if item.startswith(f"{name}/")]
    return [load(name)]


def run_all(
    studies: Sequence[Study], runs: int | None, folder: Path, engine: Engine, progress: Progress
) -> CellsRun:
    """Run studies of one paper one after the other, with one count of steps.

    Simulations that several of them need are run once, since all are kept in one folder.

    Args:
        studies: what to run.
        runs: repetitions; each study's own number by default.
        folder: the paper's.
        engine: where to compute cells.
        progress: called with the steps done of all studies, and their total.
    """
    steps = [study.steps(runs or study.runs) for study in studies]
    ran = CellsRun(0, 0, [])
    for index, study in enumerate(studies):
        before, total = sum(steps[:index]), sum(steps)

        def update(n_done: int, _: int, before: int = before, total: int = total) -> None:
            progress(before + n_done, total)

        ran = ran.with_more(study.run(runs or study.runs, folder, engine, update))
    return ran


def load(name: str) -> Study:
    """The study that an experiment's file describes.

    Raises:
        ExperimentError: if there is no such file, or it is wrong.
    """
    path = experiment_files.find(name)
    table = TomlTable.read(path)
    kind = table.choice("kind", sorted(KINDS), "table")
    return cast("Study", importlib.import_module(KINDS[kind]).load(name))
