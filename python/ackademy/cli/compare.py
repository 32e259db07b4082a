"""`ackademy compare`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli.options import (
    REPORTS,
    RUNS,
    Address,
    BackendName,
    Engine,
    Jobs,
    Params,
    RunsFolder,
    controller_names,
    engine_of,
)
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from ackademy import engines, league


def compare_command(
    scenarios: Annotated[
        list[Path] | None, typer.Argument(help="Scenario files.", metavar="FILE...")
    ] = None,
    cc: Annotated[
        str, typer.Option(help="Controllers, separated by commas; the files' own by default.")
    ] = "",
    suite: Annotated[
        str, typer.Option(help="A league instead: every scheme and network of suites/NAME.toml.")
    ] = "",
    only: Annotated[
        str, typer.Option(help="Networks of the suite whose name fits, as in 'L =*'.")
    ] = "*",
    backend: BackendName = "sim",
    param: Params = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Seeds 1, 2, ... of each; 5, or the suite's number.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Where the report goes; compare.html in reports/.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a suite's tables to this file, for a document.")
    ] = None,
    jobs: Jobs = None,
    engine: Engine = "local",
    address: Address = None,
    out: RunsFolder = RUNS,
) -> None:
    """Set controllers side by side on the same scenarios, with 95 % intervals.

    Examples:
        ackademy compare scenarios/kong2018_*.toml --cc new_reno,cubic

        ackademy compare scenarios/kong2018_one_sender.toml --cc cubic,mine.py:Mine --runs 20

        ackademy compare scenarios/gap/*.toml --backend kernel --cc cubic,kernel:cubic

        ackademy compare --suite papers
    """
    from rich.console import Console

    from ackademy import batches, comparison, league, terminal
    from ackademy.report import comparison as report
    from ackademy.report.page import write

    console = Console()
    if bool(suite) == bool(scenarios):
        raise AckademyError("compare: allowed: scenario files, or --suite NAME, and not both")
    settings = batches.settings(param, cc)
    if suite:
        if cc:
            raise AckademyError("compare: --cc is for scenario files; a suite lists its schemes")
        entrants = league.load(suite)
        games = league.matches(entrants, runs or entrants.runs, backend, only)
        page = html or REPORTS / f"league-{entrants.name}-{backend}.html"
        _league(entrants, games, out, engine_of(engine, address, jobs), page, markdown)
        return
    html = html or REPORTS / "compare.html"
    found = comparison.contenders(
        scenarios or [], controller_names(cc), settings, runs or 5, 200.0, backend
    )
    folder = out / "compare"
    cells = [cell for contender in found for cell in contender.cells]
    batch = batches.run(cells, folder, engine_of(engine, address, jobs), console, "comparing")
    standings = comparison.standings(found, folder)
    console.print(terminal.comparison(standings, console))
    console.print(terminal.kernel_notes([r for s in standings for r in s.kernel_runs]))
    write(html, report.page(standings, folder, batches.command()))
    console.print(f"report: {html}", highlight=False)
    batches.report_failures(batch)


def _league(
    suite: league.Suite,
    games: Sequence[league.Match],
    out: Path,
    engine: engines.Engine,
    page: Path,
    markdown: Path | None,
) -> None:
    """Run what is not there of a league, print it and write its page."""
    from rich.console import Console

    from ackademy import batches, league, terminal, terminal_league
    from ackademy.report import league as report
    from ackademy.report import league_markdown
    from ackademy.report.page import write

    console, began = Console(), time.monotonic()
    folder = out / f"league-{suite.name}"
    cells = [cell for game in games for cell in game.cells]
    batch = batches.run(cells, folder, engine, console, f"league {suite.name}")
    results = league.results(games, folder)
    spent_s = time.monotonic() - began
    console.print(terminal_league.tables(results, console))
    console.print(terminal.kernel_notes([run for result in results for run in result.kernel_runs]))
    write(page, report.page(suite, results, spent_s, batches.command()))
    console.print(f"report: {page}", highlight=False)
    if markdown:
        write(markdown, league_markdown.tables(results, batches.command()))
        console.print(f"tables: {markdown}", highlight=False)
    console.print(terminal.effort(batch, spent_s), highlight=False)
    batches.report_failures(batch)
