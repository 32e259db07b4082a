"""`ackademy reproduce` and `ackademy report`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import RUNS_MAX
from ackademy.errors import ExperimentError

if TYPE_CHECKING:
    from ackademy import papers
    from ackademy.console import Console


def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="As in `ackademy list`.",
            metavar="PAPER[/ITEM]",
            autocompletion=completion.experiments,
        ),
    ],
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, max=RUNS_MAX, help="Simulations per row; the paper's number by default."
        ),
    ] = None,
    jobs: options.Jobs = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    out: options.RunsFolder = options.RUNS,
    reports: options.ReportsFolder = options.REPORTS,
    assumptions: Annotated[
        bool,
        typer.Option("--assumptions", help="Print every assumption, not only how many there are."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print every number with its interval, and every claim."),
    ] = False,
) -> None:
    """Reproduce a table or figure of a paper, or all of them, beside the published numbers.

    Printed are how many claims of the paper hold, those that do not, and the means of the table.
    The report has all numbers with their intervals, all claims and the assumptions.

    Finished simulations are kept: an interrupted command continues where it stopped.

    Examples:
        ackademy reproduce kong2018 --runs 10

        ackademy reproduce kong2018/table5

        ackademy reproduce kong2018/table5 --runs 10 --jobs 2 --full --assumptions

        ackademy reproduce xiao2019/fig3 --runs 10

        ackademy reproduce kong2018/table6 --engine ray --address auto
    """
    from ackademy import papers
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, write
    from ackademy.render import experiments, terminal
    from ackademy.render.html import index as index_report

    console = Console()
    console.shows_assumptions, console.is_full = assumptions, full
    check_output_folder(out)
    check_output_folder(reports)
    studies = papers.load_all(name)
    paper = _paper(studies[0])
    folder = out / paper
    label = f"{studies[0].item} of {paper}" if len(studies) == 1 else paper
    began = time.monotonic()
    with running.resumable(), terminal.progress_bar(console, label) as progress:
        chosen = options.engine_of(engine, address, jobs)
        ran = papers.run_all(studies, runs, folder, chosen, progress)
    spent_s = time.monotonic() - began
    found = [(study, study.collect(runs or study.runs, folder)) for study in studies]
    for study, findings in found:
        console.print(experiments.tables(findings, console))
        _write_reports(study, findings, reports, console)
    if len(studies) > 1:
        index = reports / f"{paper}.html"
        write(index, index_report.page(paper, found, spent_s, running.command()))
        console.print(terminal.index(found))
        console.say(f"all items: {index}")
    console.print(terminal.effort(ran, spent_s), highlight=False)
    running.report_failures(ran)


def report_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="As in `ackademy list`.",
            metavar="PAPER/ITEM...",
            autocompletion=completion.experiments,
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=RUNS_MAX, help="Simulations per row.")
    ] = None,
    out: options.RunsFolder = options.RUNS,
    reports: options.ReportsFolder = options.REPORTS,
) -> None:
    """Write the reports of finished simulations, without running anything.

    Examples:
        ackademy report

        ackademy report kong2018/table5 kong2018/table4
    """
    from ackademy import papers
    from ackademy.console import Console
    from ackademy.studies import experiment_files

    console = Console()
    written = 0
    for name in names or experiment_files.available():
        if not names and not (out / name.partition("/")[0]).is_dir():
            continue
        study = papers.load(name)
        findings = study.collect(runs or study.runs, out / _paper(study))
        if not findings.is_empty:
            _write_reports(study, findings, reports, console)
            written += 1
        elif names:
            console.print(f"{name}: nothing has been run yet", style="dim", highlight=False)
    if not written:
        raise ExperimentError(f"{out}: nothing to report; run `ackademy reproduce` here first")


def _paper(study: papers.Study) -> str:
    """The folder name that all items of a paper share."""
    return study.name.partition("/")[0]


def _write_reports(
    study: papers.Study, findings: papers.Findings, folder: Path, console: Console
) -> None:
    from ackademy.files import write
    from ackademy.render import experiments

    stem = folder / study.name.replace("/", "-")
    table, page = stem.with_suffix(".csv"), stem.with_suffix(".html")
    write(table, findings.csv())
    write(page, experiments.page(findings))
    console.say(f"numbers: {table}")
    console.say(f"report:  {page}")
