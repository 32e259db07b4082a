"""The command `ackademy`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer
from rich.table import Table

import ackademy
from ackademy import (
    _core,
    batches,
    compare,
    controllers,
    distributions,
    engines,
    exits,
    experiments,
    files,
    gap,
    generalise_cli,
    kinds,
    league,
    papers,
    policies_cli,
    terminal,
    terminal_gap,
    terminal_league,
)
from ackademy import peers as peers_module
from ackademy.console import Console
from ackademy.errors import AckademyError, ControllerError, FileError
from ackademy.exchange import cli as exchange_cli
from ackademy.files import write
from ackademy.kernel import Backend
from ackademy.options import JOBS_MAX, RUNS_MAX, SAMPLE_MS_MAX, SEED_MAX, finite
from ackademy.report import comparison as comparison_report
from ackademy.report import gap as gap_report
from ackademy.report import gap_markdown, league_markdown
from ackademy.report import index as index_report
from ackademy.report import league as league_report
from ackademy.run import read_scenario
from ackademy.train import cli as train_cli

EngineName = Literal["local", "ray"]

SAMPLES_PER_RUN = 2000
"""rows of a time series that is drawn and nothing else"""

app = typer.Typer(
    name="ackademy",
    help="Learned congestion control: run, compare, and reproduce what papers printed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="Setting of the controllers."),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=JOBS_MAX, help="Processes; as many as there are cores by default."),
]
Engine = Annotated[EngineName, typer.Option(help="Processes here, or a Ray cluster.")]
BackendName = Annotated[
    Backend,
    typer.Option(help="The simulator, or this machine's TCP in real time (Linux, root)."),
]
Address = Annotated[
    str | None, typer.Option(help="Of a running Ray cluster; one is started here by default.")
]
RunsFolder = Annotated[Path, typer.Option(help="Where cells are kept.")]
ReportsFolder = Annotated[Path, typer.Option(help="Where reports go.")]
RUNS, REPORTS = Path("runs"), Path("reports")


def main() -> NoReturn:
    """Entry point: what the user can mend is one line and exit status 2."""
    sys.exit(exits.status_of(app))


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print versions and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"ackademy {ackademy.__version__}, core {_core.CODE_HASH}")
        raise typer.Exit


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    cc: Annotated[
        str | None,
        typer.Option(
            help="Controller of every flow: a name from `list`, file.py:Class, or kernel:NAME."
        ),
    ] = None,
    backend: BackendName = "sim",
    param: Params = None,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of every random choice.")] = 1,
    sample_ms: Annotated[
        float,
        typer.Option(
            min=0.0, max=SAMPLE_MS_MAX, callback=finite, help="Between rows of the time series."
        ),
    ] = 0.0,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="Write tables to this folder.")] = None,
) -> None:
    """Run a scenario once and print its flows and links.

    Examples:
        ackademy run scenarios/kong2018_one_sender.toml

        ackademy run scenarios/kong2018_one_sender.toml --cc cubic --seed 3 --html run.html

        ackademy run scenarios/kong2018_one_sender.toml --cc mine.py:Mine --parquet out/

        ackademy run scenarios/gap/random_loss.toml --backend kernel --cc kernel:cubic
    """
    console = Console()
    files.check_output(html)
    files.check_output_folder(parquet)
    name = controllers.canonical(cc) if cc else None
    parsed = read_scenario(scenario, cc=name, params=batches.settings(param, cc))
    if html and not sample_ms:
        sample_ms = 1e3 * parsed.duration_s / SAMPLES_PER_RUN
    try:
        with terminal.waiting(console, parsed.duration_s if backend == "kernel" else 0.0):
            result = ackademy.run(parsed, seed=seed, sample_interval_ms=sample_ms, backend=backend)
    except KeyboardInterrupt:
        batches.fail("interrupted; nothing was written")
        raise typer.Exit(batches.INTERRUPTED) from None
    console.print(terminal.run_tables(result, console))
    if parquet:
        result.write_parquet(parquet)
        console.print(f"tables: {parquet}", highlight=False)
    if html:
        write(html, comparison_report.run_page(result, batches.command()))
        console.print(f"report: {html}", highlight=False)


@app.command("compare")
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
        str | None, typer.Option(help="Networks of the suite whose name fits, as in 'L =*'.")
    ] = None,
    backend: BackendName = "sim",
    param: Params = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, max=RUNS_MAX, help="Seeds 1, 2, ... of each; 5, or the suite's number."
        ),
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
    console = Console()
    if bool(suite) == bool(scenarios):
        raise AckademyError("compare: allowed: scenario files, or --suite NAME, and not both")
    for option, value in (("--only", only), ("--markdown", markdown)):
        if value is not None and not suite:
            raise AckademyError(f"compare: {option}: allowed: with --suite")
    settings = batches.settings(param, cc)
    if suite:
        if cc:
            raise AckademyError("compare: --cc is for scenario files; a suite lists its schemes")
        entrants = league.load(suite)
        games = league.matches(entrants, runs or entrants.runs, backend, only or "*")
        page = html or REPORTS / f"league-{entrants.name}-{backend}.html"
        files.check_outputs([page, markdown])
        files.check_output_folder(out)
        _league(entrants, games, out, _engine(engine, address, jobs), page, markdown)
        return
    html = html or REPORTS / "compare.html"
    files.check_output(html)
    files.check_output_folder(out)
    found = compare.contenders(scenarios or [], _names(cc), settings, runs or 5, 200.0, backend)
    folder = out / "compare"
    cells = [cell for contender in found for cell in contender.cells]
    batch = batches.run(cells, folder, _engine(engine, address, jobs), console, "comparing")
    standings = compare.standings(found, folder)
    console.print(terminal.comparison(standings, console))
    console.print(terminal.kernel_notes([r for s in standings for r in s.kernel_runs]))
    write(html, comparison_report.page(standings, folder, batches.command()))
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
    console, began = Console(), time.monotonic()
    folder = out / f"league-{suite.name}"
    cells = [cell for game in games for cell in game.cells]
    batch = batches.run(cells, folder, engine, console, f"league {suite.name}")
    results = league.results(games, folder)
    spent_s = time.monotonic() - began
    console.print(terminal_league.tables(results, console))
    console.print(terminal.kernel_notes([run for result in results for run in result.kernel_runs]))
    write(page, league_report.page(suite, results, spent_s, batches.command()))
    console.print(f"report: {page}", highlight=False)
    if markdown:
        write(markdown, league_markdown.tables(results, batches.command()))
        console.print(f"tables: {markdown}", highlight=False)
    console.print(terminal.effort(batch, spent_s), highlight=False)
    batches.report_failures(batch)


@app.command("gap")
def gap_command(
    scenarios: Annotated[list[Path], typer.Argument(help="Scenario files.", metavar="FILE...")],
    cc: Annotated[
        str, typer.Option(help="Controllers, separated by commas.")
    ] = "new_reno,cubic,rl_tcp",
    param: Params = None,
    baselines: Annotated[
        str, typer.Option(help="The kernel's own beside them, as kernel:NAME, by commas.")
    ] = "",
    runs: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="Of each, on each side.")] = 5,
    duration_s: Annotated[
        float | None,
        typer.Option(min=0.1, callback=finite, help="Of a run, instead of the scenarios' own."),
    ] = None,
    html: Annotated[Path, typer.Option(help="Where the report goes.")] = REPORTS / "gap.html",
    markdown: Annotated[
        Path | None, typer.Option(help="Write the tables to this file, for a document.")
    ] = None,
    jobs: Jobs = None,
    out: RunsFolder = RUNS,
) -> None:
    """Run scenarios in the simulator and on this machine's TCP, and print how far apart they are.

    Runs on the kernel take real time, one after the other; finished ones are kept.

    Examples:
        ackademy gap scenarios/gap/*.toml --cc new_reno,cubic,rl-tcp

        ackademy gap scenarios/gap/*.toml --cc cubic --baselines kernel:cubic --runs 10

        ackademy gap scenarios/gap/*.toml --cc tcp-drinc --param policy=policies/tcp_drinc
    """
    console = Console()
    settings = batches.settings(param, cc)
    files.check_outputs([html, markdown])
    files.check_output_folder(out)
    found = gap.pairs(scenarios, _names(cc), _names(baselines), runs, duration_s, settings)
    folder = out / "gap"
    simulated = [cell for pair in found for cell in pair.sim]
    emulated = [cell for pair in found for cell in pair.kernel]
    engine = engines.local(jobs or engines.core_count())
    before = experiments.missing(folder, emulated)
    batch = batches.run(simulated, folder, engine, console, "gap, simulating")
    if before:
        console.print(terminal_gap.forecast(before), highlight=False)
    batch = batch.with_more(batches.run(emulated, folder, engine, console, "gap, on the kernel"))
    gaps = gap.measure(found, folder)
    console.print(terminal_gap.tables(gaps, console))
    write(html, gap_report.page(gaps, folder, batches.command()))
    console.print(f"report: {html}", highlight=False)
    if markdown:
        write(markdown, gap_markdown.tables(gaps, batches.command()))
        console.print(f"tables: {markdown}", highlight=False)
    batches.report_failures(batch)


@app.command("reproduce")
def reproduce_command(
    name: Annotated[str, typer.Argument(help="As in `ackademy list`.", metavar="PAPER[/ITEM]")],
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, max=RUNS_MAX, help="Simulations per row; the paper's number by default."
        ),
    ] = None,
    jobs: Jobs = None,
    engine: Engine = "local",
    address: Address = None,
    out: RunsFolder = RUNS,
    reports: ReportsFolder = REPORTS,
) -> None:
    """Run a table or figure of a paper, or all of them, and print it beside the published numbers.

    Finished simulations are kept: an interrupted command goes on where it was.

    Examples:
        ackademy reproduce kong2018 --runs 10

        ackademy reproduce kong2018/table5

        ackademy reproduce kong2018/table5 --runs 10 --jobs 2

        ackademy reproduce xiao2019/fig3 --runs 10

        ackademy reproduce kong2018/table6 --engine ray --address auto
    """
    console = Console()
    files.check_output_folder(out)
    files.check_output_folder(reports)
    studies = kinds.load_all(name)
    paper = _paper(studies[0])
    folder = out / paper
    label = f"{studies[0].item} of {paper}" if len(studies) == 1 else paper
    began = time.monotonic()
    with batches.resumable(), terminal.progress_bar(console, label) as progress:
        chosen = _engine(engine, address, jobs)
        batch = kinds.run_all(studies, runs, folder, chosen, progress)
    spent_s = time.monotonic() - began
    found = [(study, study.collect(runs or study.runs, folder)) for study in studies]
    for study, findings in found:
        console.print(findings.tables(console))
        _write_reports(study, findings, reports, console)
    if len(studies) > 1:
        index = reports / f"{paper}.html"
        write(index, index_report.page(paper, found, spent_s, batches.command()))
        console.print(terminal.index(found))
        console.print(f"all items: {index}", highlight=False, soft_wrap=True)
    console.print(terminal.effort(batch, spent_s), highlight=False)
    batches.report_failures(batch)


@app.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="As in `ackademy list`.", metavar="PAPER/ITEM...")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=RUNS_MAX, help="Simulations per row.")
    ] = None,
    out: RunsFolder = RUNS,
    reports: ReportsFolder = REPORTS,
) -> None:
    """Write the reports of what has been run, without running anything.

    Examples:
        ackademy report

        ackademy report kong2018/table5 kong2018/table4
    """
    console = Console()
    for name in names or papers.available():
        study = kinds.load(name)
        findings = study.collect(runs or study.runs, out / _paper(study))
        if not findings.is_empty:
            _write_reports(study, findings, reports, console)
        else:
            console.print(f"{name}: nothing has been run yet", style="dim", highlight=False)


@app.command("list")
def list_command(
    controller: Annotated[
        str | None, typer.Argument(help="Show the settings of this controller.")
    ] = None,
) -> None:
    """List controllers, scenarios and papers, or the settings of one controller.

    Examples:
        ackademy list

        ackademy list rl_tcp
    """
    console = Console()
    if controller is not None:
        console.print(_controller_table(controllers.canonical(controller)))
        return
    table = Table(title="controllers", title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("what it does")
    table.add_column("source")
    for entry in _core.controllers():
        table.add_row(entry["name"], entry["about"], entry["source"])
    console.print(table)
    scenarios = Table(title="scenarios", title_justify="left", title_style="bold")
    scenarios.add_column("file", no_wrap=True)
    scenarios.add_column("question")
    for path in sorted(Path("scenarios").glob("*.toml")):
        scenarios.add_row(str(path), _first_sentence(path))
    console.print(scenarios)
    console.print("papers:", ", ".join(papers.available()) or "none here", highlight=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors and generators.

    Examples:
        ackademy schema > scenario.schema.json
    """
    typer.echo(_core.schema())


@app.command()
def trace(
    mbps: Annotated[
        float, typer.Option(min=0.01, max=10_000, callback=finite, help="Mean rate.")
    ] = 10.0,
    seconds: Annotated[
        float,
        typer.Option(min=1.0, max=86_400, callback=finite, help="Length; the trace then repeats."),
    ] = 60.0,
    volatility: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=10.0,
            callback=finite,
            help="Change of the rate in a second, relative to its mean.",
        ),
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of every draw.")] = 1,
) -> None:
    """Print a cellular-like trace in mahimahi's format, for a link's `trace`.

    Examples:
        ackademy trace --mbps 5 --seconds 30 > scenarios/cellular.trace
    """
    typer.echo(_core.generate_trace(seconds, mbps, volatility, seed), nl=False)


app.command("peers")(peers_module.peers)
app.command("draw")(distributions.draw_command)
app.command("generalise")(generalise_cli.generalise_command)
app.command("eval")(policies_cli.eval_command)
app.command("zoo")(policies_cli.zoo_command)
app.command("export")(exchange_cli.export_command)
app.command("import")(exchange_cli.import_command)
app.add_typer(train_cli.app, name="train")


def _paper(study: kinds.Study) -> str:
    """The folder name that all items of a paper share."""
    return study.name.partition("/")[0]


def _write_reports(
    study: kinds.Study, findings: kinds.Findings, folder: Path, console: Console
) -> None:
    stem = folder / study.name.replace("/", "-")
    table, page = stem.with_suffix(".csv"), stem.with_suffix(".html")
    write(table, findings.csv())
    write(page, findings.page())
    console.print(f"numbers: {table}", highlight=False, soft_wrap=True)
    console.print(f"report:  {page}", highlight=False, soft_wrap=True)


def _engine(name: EngineName, address: str | None, jobs: int | None) -> engines.Engine:
    if name == "local" and address is not None:
        raise AckademyError("--address: allowed: with --engine ray")
    if name == "ray":
        return engines.ray_cluster(address)
    return engines.local(jobs or engines.core_count())


def _names(words: str) -> list[str]:
    """Controllers separated by commas."""
    return [controllers.canonical(word.strip()) for word in words.split(",") if word.strip()]


def _controller_table(name: str) -> Table:
    entries = {entry["name"]: entry for entry in _core.controllers()}
    if name not in entries:
        raise ControllerError(f"controller {name}: allowed is {', '.join(entries)}")
    entry = entries[name]
    table = Table(
        title=f"{name}: {entry['about']}\n{entry['source']}",
        title_justify="left",
        title_style="bold",
    )
    for head in ("setting", "default", "allowed", "what it does"):
        table.add_column(head, no_wrap=head == "setting")
    for param in entry["params"]:
        default = "must be given" if param["default"] is None else str(param["default"])
        table.add_row(param["name"], default, param["allowed"], param["about"])
    return table


def _first_sentence(path: Path) -> str:
    """The comment that opens a scenario file: why the path is worth testing."""
    try:
        lines = files.read_text(path).splitlines()
    except FileError as error:
        return str(error)
    comment: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# "))
    return " ".join(comment)
