"""What every study's command has: the same options, cells that run, and a report in every medium.

@study(runs="Runs of each scheme.")
def compare_command(own: Study, scenarios: ..., cc: ...) -> None:
    own.begin("compare-cubic")                  # before the work: where outputs go
    own.run(cells, "comparing")
    own.deliver(report, results)
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackademy.backends import Backend
from ackademy.cli import options
from ackademy.cli.bounds import RUNS_MAX

if TYPE_CHECKING:
    from ackademy.console import Console
    from ackademy.render.report import Medium, Report
    from ackademy.runner.cells import Cell
    from ackademy.runner.engines import Engine
    from ackademy.runner.experiments import CellsRun
    from ackademy.stats.results import Results

OPTIONS: Mapping[str, tuple[Any, object]] = {
    "runs": (int | None, None),
    "backend": (options.BackendName, "sim"),
    "html": (options.Page, None),
    "markdown": (options.Markdown, None),
    "figures": (options.Figures, None),
    "figure_format": (options.FigureFormat, "svg"),
    "figure_width": (options.FigureWidth, "screen"),
    "json": (options.Json, None),
    "csv": (options.Csv, None),
    "jobs": (options.Jobs, None),
    "engine": (options.Engine, "local"),
    "address": (options.Address, None),
    "work": (options.RunsFolder, options.RUNS),
}
"""type and default by name, in the order of the help"""

OUTPUTS_ALONE = ("runs", "backend", "jobs", "engine", "address", "work")
"""what a study without cells has no use for"""


@dataclass(slots=True)
class Study:
    """The options of a study's command, and what it has done so far."""

    name: str
    runs: int | None = None
    backend: Backend = "sim"
    html: Path | None = None
    markdown: Path | None = None
    figures: Path | None = None
    figure_format: str = "svg"
    figure_width: options.FigureWidthName = "screen"
    json: Path | None = None
    csv: Path | None = None
    jobs: int | None = None
    engine: options.EngineName = "local"
    address: str | None = None
    work: Path = options.RUNS
    console: Console = field(init=False)
    page: Path = field(init=False)
    """of the report; known from `begin` on"""
    ran: CellsRun = field(init=False)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        from ackademy.console import Console
        from ackademy.runner.experiments import CellsRun

        self.console = Console(stderr=options.is_stdout(self.json, self.csv))
        self.ran, self._began = CellsRun(0, 0, []), time.monotonic()

    @property
    def folder(self) -> Path:
        """Of the cells."""
        return self.work / self.name

    @property
    def spent_s(self) -> float:
        """Since the command began."""
        return time.monotonic() - self._began

    def begin(self, stem: str, *more: Path | None) -> None:
        """Find out before the work whether its outputs can be written.

        Args:
            stem: of the page's name where the options give none.
            more: further files.

        Raises:
            FileError: if not.
        """
        from ackademy.files import check_output_folder

        self.page = self.html or options.REPORTS / f"{stem}.html"
        options.check_exports(self.json, self.csv, self.page, self.markdown, *more)
        options.check_figures(self.figures, self.figure_format)
        check_output_folder(self.work)

    def runner(self) -> Engine:
        """Where cells run.

        Raises:
            AckademyError: as `options.engine_of`.
        """
        return options.engine_of(self.engine, self.address, self.jobs)

    def run(self, cells: Sequence[Cell], label: str, folder: Path | None = None) -> CellsRun:
        """Run the missing cells, with a progress bar."""
        from ackademy.cli import running

        ran = running.run(cells, folder or self.folder, self.runner(), self.console, label)
        self.ran = self.ran.with_more(ran)
        return ran

    def deliver(
        self,
        report: Report,
        results: Results | None = None,
        *,
        csv: Callable[[], str] | None = None,
        described: Mapping[str, object] | None = None,
        json: Callable[[], str] | None = None,
        medium: Medium = "terminal",
    ) -> None:
        """Print the report, write it in every medium that is asked for, and tell of failures.

        Args:
            report: what was found.
            results: the tables of the study.
            csv: what `--csv` writes; by default the estimates.
            described: what `--json` says before the results.
            json: what it writes in place of the results.
            medium: which items are printed.
        """
        from ackademy.cli import running
        from ackademy.files import write
        from ackademy.render import exports, terminal
        from ackademy.render import report as render
        from ackademy.stats.results import results as make

        render.show(report, self.console, medium)
        if self.ran.n_cells:
            self.console.print(terminal.effort(self.ran, self.spent_s), highlight=False)
        write(self.page, render.page(report))
        self.console.say(f"report: {self.page}")
        self.write_figures(report, self.figures)
        if self.markdown:
            write(self.markdown, render.text(report))
            self.console.say(f"tables: {self.markdown}")
        if self.json:
            found = results or make("", (), ())
            told = json() if json else exports.results_json(found, described)
            options.export(self.json, told)
        if self.csv:
            options.export(self.csv, csv() if csv else results.csv() if results else "")
        running.report_failures(self.ran)

    def write_figures(self, report: Report, folder: Path | None) -> None:
        """Write the charts of a report, if a folder is given."""
        options.write_figures(report, folder, self.figure_format, self.figure_width, self.console)


def study(
    *, runs: str = "Seeds of each run.", without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first parameter is a `Study`.

    Args:
        runs: what the option of this name is in this study.
        without: options that say nothing there.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        counted = Annotated[int | None, typer.Option(min=1, max=RUNS_MAX, help=runs)]
        shared = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default,
                annotation=counted if name == "runs" else kind,
            )
            for name, (kind, default) in OPTIONS.items()
            if name not in without
        ]  # fmt: skip

        @wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401
            name = command.__name__.removesuffix("_command")
            told = {key: given.pop(key) for key in list(given) if key in OPTIONS}
            command(Study(name, **told), **given)

        both = [own_one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for own_one in own] + shared
        del call.__wrapped__  # typer reads the signature below
        call.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in both}
        return call

    return decorate


assert {own.name for own in fields(Study)} >= OPTIONS.keys()
