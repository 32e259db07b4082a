"""Shared by commands that run cells: progress bar, resuming, failures, settings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ackademy import _core, installation
from ackademy.backends import schemes
from ackademy.console import Console
from ackademy.errors import ControllerError, TrainingError
from ackademy.exits import BAD_INPUT, INTERRUPTED, fail
from ackademy.folders import here_or_above
from ackademy.render import terminal

if TYPE_CHECKING:
    from ackademy.runner.cells import Cell
    from ackademy.runner.engines import Engine
    from ackademy.runner.experiments import CellsRun

IDLE_SHOWN = 10
"""flows that a warning names"""

__all__ = [
    "BAD_INPUT",
    "INTERRUPTED",
    "command",
    "fail",
    "file_here",
    "lacks_training",
    "report_failures",
    "resumable",
    "run",
    "settings",
    "stopped",
    "warn_of_idle",
]


def lacks_training(error: ImportError) -> TrainingError:
    """What to say where the libraries of the extra `train` cannot be imported."""
    return TrainingError(
        f"{error}: this needs JAX, Flax, Optax, safetensors and Gymnasium: install the extra "
        f"with {installation.add_extra('train')}"
    )


def file_here(name: str, other: str) -> Path:
    """A file here, above, or in the source checkout.

    Raises:
        TrainingError: if there is none; `other` says what to name instead.
    """
    for path in here_or_above(name):
        return path
    raise TrainingError(f"no {name} here: name {other}")


def stopped(told: str) -> typer.Exit:
    """Say what is kept of a training that was interrupted; to be raised."""
    Console(stderr=True).print(told, style="red", soft_wrap=True)
    return typer.Exit(INTERRUPTED)


def run(
    cells: Sequence[Cell], folder: Path, engine: Engine, console: Console, label: str
) -> CellsRun:
    """Run the missing cells with a progress bar; warn of flows that send nothing."""
    from ackademy.runner import experiments

    texts = {(cell.origin, cell.text, cell.overrides): cell for cell in cells}
    warn_of_idle(cell.scenario() for cell in texts.values())
    with resumable(), terminal.progress_bar(console, label) as progress:
        return experiments.run_cells(cells, folder, engine, progress)


@contextmanager
def resumable() -> Iterator[None]:
    """On Ctrl-C, say how to resume."""
    from ackademy.runner import experiments

    try:
        yield
    except experiments.Interrupted as stop:
        fail(f"interrupted: {stop}; run the same command again to continue:\n  {command()}")
        raise typer.Exit(INTERRUPTED) from None


def warn_of_idle(scenarios: Iterable[_core.Scenario]) -> None:
    """Say which flows send nothing, since they start at the end of their scenario or after it."""
    for scenario in scenarios:
        if scenario.idle:
            flows = ", ".join(scenario.idle[:IDLE_SHOWN])
            more = len(scenario.idle) - IDLE_SHOWN
            flows += f" and {more} more" if more > 0 else ""
            fail(
                f"{scenario.origin}: {flows}: nothing is sent: start_s is not below "
                f"duration_s = {scenario.duration_s:g}"
            )


def report_failures(ran: CellsRun) -> None:
    """Say which cells were damaged, and which failed, the first with its traceback.

    The exit status is 1 if there is one, 2 if all were the fault of a Python file of the user.
    """
    for fault in ran.damaged:
        fail(f"{fault}: it was run again")
    if not ran.failures:
        return
    fail(f"{len(ran.failures)} of {ran.n_cells} cells failed; the others are kept")
    for failure in ran.failures[:10]:
        cell = failure.cell
        named = cell.controller or ", ".join(own.controller for own in cell.assignments)
        cc = named or schemes.AS_WRITTEN
        last = failure.error.splitlines()[-1] if failure.error else "no reason given"
        fail(f"  {cell.origin}, {cc}, seed {cell.seed}: {last}")
    fail(ran.failures[0].error)
    raise typer.Exit(BAD_INPUT if all(f.is_users for f in ran.failures) else 1)


def settings(param: Sequence[str] | None, cc: str | None) -> dict[str, float | str]:
    """Settings from `NAME=VALUE` words; a value that looks like a number becomes one."""
    if param and not cc:
        raise ControllerError("--param needs --cc: it sets what that controller has")
    return schemes.values(param or (), "--param")


def command() -> str:
    """The command line as typed."""
    return shlex.join(["ackademy", *sys.argv[1:]])
