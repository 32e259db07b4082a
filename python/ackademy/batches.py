"""What commands that run cells share: a bar, a way to go on, failures told, settings read."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console

from ackademy import experiments, schemes, terminal
from ackademy.cells import Cell
from ackademy.engines import Engine
from ackademy.errors import ControllerError

INTERRUPTED = 130


def run(
    cells: Sequence[Cell], folder: Path, engine: Engine, console: Console, label: str
) -> experiments.Batch:
    """Run the cells that are not there yet, with a bar."""
    with resumable(), terminal.progress_bar(console, label) as progress:
        return experiments.run_cells(cells, folder, engine, progress)


@contextmanager
def resumable() -> Iterator[None]:
    """On Ctrl-C, say how to go on."""
    try:
        yield
    except experiments.Interrupted as stop:
        fail(f"interrupted: {stop}; run the same command again to go on:\n  {command()}")
        raise typer.Exit(INTERRUPTED) from None


def report_failures(batch: experiments.Batch) -> None:
    """Say which cells failed, the first with its traceback; exit status 1 if there is one."""
    if not batch.failures:
        return
    fail(f"{len(batch.failures)} of {batch.n_cells} cells failed; the others are kept")
    for failure in batch.failures[:10]:
        cell = failure.cell
        named = cell.controller or ", ".join(own.controller for own in cell.assignments)
        cc = named or schemes.AS_WRITTEN
        last = failure.error.splitlines()[-1] if failure.error else "no reason given"
        fail(f"  {cell.origin}, {cc}, seed {cell.seed}: {last}")
    fail(batch.failures[0].error)
    raise typer.Exit(1)


def settings(param: Sequence[str] | None, cc: str | None) -> dict[str, float | str]:
    """`NAME=VALUE` words; what looks like a number is one."""
    if param and not cc:
        raise ControllerError("--param needs --cc: it sets what that controller has")
    return schemes.values(param or (), "--param")


def command() -> str:
    """What the user typed."""
    return shlex.join(["ackademy", *sys.argv[1:]])


def fail(message: str) -> None:
    """Say on stderr what went wrong."""
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
