"""`ackademy compare`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import RUNS_MAX
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from ackademy.console import Console
    from ackademy.runner import engines
    from ackademy.runner.experiments import CellsRun
    from ackademy.stats.results import Results
    from ackademy.studies import harm_matrix, league, league_scores


def compare_command(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            help="Scenarios, by file or name.",
            metavar="SCENARIO...",
            autocompletion=completion.scenarios,
        ),
    ] = None,
    cc: Annotated[
        list[str] | None,
        typer.Option(
            help="Schemes separated by commas: controllers, NAME:SETTING=VALUE,SETTING=VALUE, "
            "policies, file.py:Class, kernel:NAME; the files' own by default; repeatable.",
            autocompletion=completion.controllers,
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            help="Run a league: every scheme on every network of a suite.",
            autocompletion=completion.suites,
        ),
    ] = "",
    only: Annotated[
        str | None,
        typer.Option(help="Only networks of the suite whose name matches, as in 'L =*'."),
    ] = None,
    thin: Annotated[
        int | None,
        typer.Option(min=1, help="Of the networks that a suite draws, run one of so many."),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=RUNS_MAX,
            help="Search so many networks for the largest regret of each scheme of the suite.",
        ),
    ] = None,
    backend: options.BackendName = "sim",
    param: options.Params = None,
    settings: options.Overrides = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=RUNS_MAX,
            help="Runs of each scheme, with seeds 1, 2, ...; 5, or the suite's number.",
        ),
    ] = None,
    html: options.Page = None,
    markdown: options.Markdown = None,
    json: options.Json = None,
    csv: options.Csv = None,
    jobs: options.Jobs = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    out: options.RunsFolder = options.RUNS,
) -> None:
    """Compare controllers on the same scenarios, with nominal 95 % intervals.

    Examples:
        ackademy compare scenarios/kong2018_*.toml --cc new_reno,cubic

        ackademy compare deep_buffer --cc cubic,cubic:beta=0.8,c=0.3,mine.py:Mine --runs 20

        ackademy compare deep_buffer --cc cubic,vegas --set dumbbell.rtt_ms=80 --csv numbers.csv

        ackademy compare gap/fast gap/steps --backend kernel --cc cubic,kernel:cubic

        ackademy compare --suite papers

        ackademy compare --suite all --thin 10 --runs 1
    """
    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import league_worst, running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, write
    from ackademy.render import terminal
    from ackademy.render.html import comparison as report
    from ackademy.render.sheets import compare as sheets
    from ackademy.studies import comparison, harm_matrix, league, league_oracle, measured

    console = Console(stderr=options.is_stdout(json, csv))
    if bool(suite) == bool(scenarios):
        raise AckademyError("compare: allowed: scenarios, or --suite NAME, and not both")
    of_suites = {"--only": only, "--thin": thin, "--worst": worst, "--markdown": markdown}
    for option, value in of_suites.items():
        if value is not None and not suite:
            raise AckademyError(f"compare: {option}: allowed: with --suite")
    check_output_folder(out)
    words = ",".join(cc or [])
    common = running.settings(param, words)
    if suite:
        if cc or settings:
            raise AckademyError("compare: allowed beside --suite: no --cc, --set")
        loaded = league.load(suite, thin or 1)
        on_networks = league.scheme_cases(loaded, runs or loaded.runs, backend, only or "*")
        page = html or options.REPORTS / f"league-{loaded.name}-{backend}.html"
        options.check_exports(json, csv, page, markdown)
        runner = options.engine_of(engine, address, jobs)
        met = harm_matrix.meetings(loaded) if only is None and backend == "sim" else []
        short = harm_matrix.transfers(loaded) if met else []
        told = backend == "sim"
        oracle = league_oracle.cases(loaded, runs or loaded.runs, only or "*") if told else []
        ran, judged = _league(console, loaded, _Found(on_networks, met, short, oracle), out, runner)
        _export(league.tables(judged.results), json, csv)
        _league_reports(console, loaded, judged, page, markdown)
        if worst is not None:
            league_worst.report(console, loaded, worst, out, runner)
        running.report_failures(ran)
        return
    named = lookup.scenarios_of(scenarios or [])
    found = schemes.parse(words, common)
    settled = [*(settings or ()), *(param or ()), *([backend] if backend != "sim" else [])]
    labels = [own.label for own in found]
    html = html or options.page_of("compare", [word for word, _ in named], labels, settled)
    options.check_exports(json, csv, html)
    cases = [comparison.case_of(path) for _, path in named]
    cases = comparison.named_apart(cases, [word for word, _ in named])
    changes = tuple(options.overrides(settings).items())
    plan = comparison.Plan(runs or 5, comparison.SAMPLE_MS, changes, backend)
    rows = comparison.rows(cases, found, plan)
    folder = out / "compare"
    cells = [cell for row in rows for cell in row.cells]
    ran = running.run(cells, folder, options.engine_of(engine, address, jobs), console, "comparing")
    measures = measured.measure(rows, folder)
    terminal.show([sheets.sheet(measures)], console)
    console.print(terminal.kernel_notes([run for own in measures for run in own.kernel_runs]))
    _export(measured.tables(comparison.STUDY, measures), json, csv)
    write(html, report.page(measures, folder, running.command()))
    console.print(f"report: {html}", highlight=False)
    running.report_failures(ran)


def _export(results: Results, json: Path | None, csv: Path | None) -> None:
    """Write a study's tables: both as JSON, the estimates as CSV."""
    from ackademy.render import exports

    if json:
        options.export(json, exports.results_json(results))
    if csv:
        options.export(csv, results.csv())


class _Found(NamedTuple):
    """What a league runs."""

    cases: Sequence[league.SchemeCase]
    meetings: Sequence[harm_matrix.Meeting]
    transfers: Sequence[harm_matrix.Transfers]
    oracle: Sequence[league.SchemeCase]


class _Judged(NamedTuple):
    """What a league measured."""

    results: Sequence[league.Result]
    scores: Sequence[league_scores.Scores]
    harms: Sequence[harm_matrix.Harm]


def _league(
    console: Console, suite: league.Suite, found: _Found, out: Path, engine: engines.Engine
) -> tuple[CellsRun, _Judged]:
    """Run the missing cells of a league and print it."""
    from ackademy.cli import running
    from ackademy.render import terminal
    from ackademy.render.terminal import league as terminal_league
    from ackademy.studies import harm_matrix, league, league_scores

    began = time.monotonic()
    folder = out / f"league-{suite.name}"
    cells = [cell for own in found.cases for cell in own.cells]
    cells += [cell for own in found.oracle for cell in own.cells]
    cells += [cell for own in found.meetings for cell in own.cells]
    cells += [cell for own in found.transfers for cell in own.cells]
    ran = running.run(cells, folder, engine, console, f"league {suite.name}")
    results = league.results(found.cases, folder)
    scores = league_scores.scores(results, folder, league.results(found.oracle, folder))
    judged = _Judged(results, scores, harm_matrix.measure(found.meetings, folder, found.transfers))
    console.print(terminal_league.tables(results, console, scores, judged.harms))
    kernel_runs = [run for result in results for run in result.measured.kernel_runs]
    console.print(terminal.kernel_notes(kernel_runs))
    console.print(terminal.effort(ran, time.monotonic() - began), highlight=False)
    return ran, judged


def _league_reports(
    console: Console, suite: league.Suite, judged: _Judged, page: Path, markdown: Path | None
) -> None:
    """Write the page and the tables of a league."""
    from ackademy.cli import running
    from ackademy.files import write
    from ackademy.render.html import league as report
    from ackademy.render.markdown import league as league_markdown

    results, scores, harms = judged
    write(page, report.page(suite, results, running.command(), scores, harms))
    console.print(f"report: {page}", highlight=False)
    if markdown:
        write(markdown, league_markdown.tables(results, running.command(), scores, harms))
        console.print(f"tables: {markdown}", highlight=False)
