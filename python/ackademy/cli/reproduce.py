"""`ackademy reproduce` and `ackademy report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import RUNS_MAX
from ackademy.cli.studies import Study, study
from ackademy.errors import AckademyError, ExperimentError

if TYPE_CHECKING:
    from ackademy import papers
    from ackademy.console import Console
    from ackademy.render.report import Medium, Report


@study(runs="Simulations per row; the paper's number by default.", without=("backend",))
def reproduce_command(
    own: Study,
    name: Annotated[
        str,
        typer.Argument(
            help="As in `ackademy list`.",
            metavar="PAPER[/ITEM]",
            autocompletion=completion.experiments,
        ),
    ],
    reports: options.ReportsFolder = options.REPORTS,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Print every number with its interval, every claim and assumption."
        ),
    ] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print a line per claim and one metric of the table.")
    ] = False,
) -> None:
    """Reproduce a table or figure of a paper, or all of them, beside the published numbers.

    It prints how many claims of the paper hold, those that do not, and the means of the table. The
    report has all numbers with their intervals, all claims and the assumptions.

    Finished simulations are kept: an interrupted command continues where it stopped.

    Examples:
        ackademy reproduce kong2018 --runs 10

        ackademy reproduce kong2018/table5

        ackademy reproduce kong2018/table5 --runs 10 --jobs 2 --full

        ackademy reproduce xiao2019/fig3 --runs 10

        ackademy reproduce kong2018/table6 --engine ray --address auto
    """
    from ackademy import papers
    from ackademy.cli import running
    from ackademy.files import check_output_folder
    from ackademy.papers import index
    from ackademy.render import report as render
    from ackademy.render import terminal

    check_output_folder(reports)
    if full and brief:
        raise AckademyError("reproduce --full --brief: allowed: one of them")
    medium: Medium = "markdown" if full else "brief" if brief else "terminal"
    studies = papers.load_all(name)
    paper = _paper(studies[0])
    single = len(studies) == 1
    for option, path in {"--csv": own.csv, "--json": own.json}.items():
        if path is not None and not single:
            raise AckademyError(f"reproduce {option}: allowed: for one item; --reports has all")
    stem = studies[0].name.replace("/", "-") if single else paper
    own.html = own.html or reports / f"{stem}.html"
    own.begin(stem)
    folder = own.work / paper
    label = f"{studies[0].item} of {paper}" if single else paper
    with running.resumable(), terminal.progress_bar(own.console, label) as progress:
        own.ran = papers.run_all(studies, own.runs, folder, own.runner(), progress)
    found = [(one, one.collect(own.runs or one.runs, folder)) for one in studies]
    if single:
        ((item, findings),) = found
        _write_numbers(item, findings, own.page.with_suffix(".csv"), own.console)
        results = findings.results()
        own.deliver(_report(item, findings), results, csv=findings.csv, medium=medium)
        return
    for item, findings in found:
        report = _report(item, findings)
        render.show(report, own.console, medium)
        _write(item, findings, report, reports, own.console)
        if own.figures:
            own.write_figures(report, own.figures / item.name.partition("/")[2])
    own.figures = None
    own.deliver(index.report(paper, found, own.spent_s, running.command()))


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
    from ackademy.studies.reproduce import files as experiment_files

    console = Console()
    written = 0
    for name in names or experiment_files.available():
        if not names and not (out / name.partition("/")[0]).is_dir():
            continue
        study = papers.load(name)
        findings = study.collect(runs or study.runs, out / _paper(study))
        if not findings.is_empty:
            _write(study, findings, _report(study, findings), reports, console)
            written += 1
        elif names:
            console.print(f"{name}: nothing has been run yet", style="dim", highlight=False)
    if not written:
        raise ExperimentError(f"{out}: nothing to report; run `ackademy reproduce` here first")


def _paper(study: papers.Study) -> str:
    """The folder name that all items of a paper share."""
    return study.name.partition("/")[0]


def _report(study: papers.Study, findings: papers.Findings) -> Report:
    return replace(study.report(findings), command="")  # its sections say how to repeat it


def _write_numbers(
    study: papers.Study, findings: papers.Findings, path: Path, console: Console
) -> None:
    from ackademy.files import write

    write(path, findings.csv())
    console.say(f"numbers: {path}")


def _write(
    study: papers.Study, findings: papers.Findings, report: Report, folder: Path, console: Console
) -> None:
    """Write the report and the numbers of an item."""
    from ackademy.files import write
    from ackademy.render import report as render

    stem = folder / study.name.replace("/", "-")
    _write_numbers(study, findings, stem.with_suffix(".csv"), console)
    write(stem.with_suffix(".html"), render.page(report))
    console.say(f"report:  {stem.with_suffix('.html')}")
