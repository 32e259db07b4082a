"""`ackademy run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy import controllers
from ackademy.cli.options import BackendName, Params

SAMPLES_PER_RUN = 2000
"""rows of a time series that is drawn and nothing else"""


def run_command(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    cc: Annotated[
        str | None,
        typer.Option(
            help="Controller of every flow: a name from `list`, file.py:Class, or kernel:NAME."
        ),
    ] = None,
    backend: BackendName = "sim",
    param: Params = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every random choice.")] = 1,
    sample_ms: Annotated[
        float, typer.Option(min=0.0, help="Between rows of the time series.")
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
    from rich.console import Console

    from ackademy import batches, runs, terminal
    from ackademy.report import comparison as report
    from ackademy.report.page import write

    console = Console()
    name = controllers.canonical(cc) if cc else None
    parsed = runs.read_scenario(scenario, cc=name, params=batches.settings(param, cc))
    if html and not sample_ms:
        sample_ms = 1e3 * parsed.duration_s / SAMPLES_PER_RUN
    try:
        with terminal.waiting(console, parsed.duration_s if backend == "kernel" else 0.0):
            result = runs.run(parsed, seed=seed, sample_interval_ms=sample_ms, backend=backend)
    except KeyboardInterrupt:
        batches.fail("interrupted; nothing was written")
        raise typer.Exit(batches.INTERRUPTED) from None
    console.print(terminal.run_tables(result, console))
    if parquet:
        result.write_parquet(parquet)
        console.print(f"tables: {parquet}", highlight=False)
    if html:
        write(html, report.run_page(result, batches.command()))
        console.print(f"report: {html}", highlight=False)
