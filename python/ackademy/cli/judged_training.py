"""What the commands share that train the flagship, or variants of it, and judge what comes out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.table import Table

from ackademy import lookup
from ackademy.backends import link_lists
from ackademy.backends.link_lists import Link
from ackademy.cli.bounds import EPISODES_MAX, JOBS_MAX, RUNS_MAX, SEED_MAX
from ackademy.cli.running import file_here, stopped
from ackademy.cli.train_progress import stages
from ackademy.console import Console
from ackademy.errors import TrainingError
from ackademy.runner import experiments

if TYPE_CHECKING:
    from ackademy.learn.seeds import Stage

LINKS = "distributions/lists/flagship_choice.links"

Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, max=SEED_MAX - 1000, help="First seed; the recipe's by default."),
]
Decisions: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, max=EPISODES_MAX, help="Decisions of a training; the recipe's by default."),
]
NetworkList: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Another list of networks to judge on.", metavar="FILE", show_default=False),
]
Links: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, max=RUNS_MAX, help="Judge on so many of the networks; all by default."),
]
Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Short trainings, as a check.")]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=JOBS_MAX,
        help="Threads of simulations and judgements; one per core by default.",
    ),
]
Work: TypeAlias = Annotated[
    Path, typer.Option(help="Folder of trainings, checkpoints and judgements.")
]


def judged_networks(file: Path | None, count: int | None) -> tuple[Link, ...]:
    """The networks to judge on: those of a list, by default the one for choices, or some of them.

    Raises:
        TrainingError: if there is no list here.
        ExperimentError: if it is wrong.
    """
    from ackademy.learn import selection

    found = lookup.find(file, "list", TrainingError) if file else None
    listed = link_lists.read(found or file_here(LINKS, "a list with --networks")).links
    return selection.thinned(listed, count) if count else listed


def interrupted(place: Path) -> typer.Exit:
    """Say that what is finished is kept in a folder; to be raised."""
    return stopped(f"interrupted; run the same command again to go on from what is kept in {place}")


def judgement_table(name: str, *heads: str) -> Table:
    """An empty table of judgements: a column of names, and columns of numbers."""
    table = Table(title="Mean reward of the worst quarter, by class of networks", box=None,
                  title_justify="left", title_style="bold", pad_edge=False,
                  padding=(0, 1, 0, 0))  # fmt: skip
    table.add_column(name)
    for head in heads:
        table.add_column(head, justify="right")
    return table


def short(values: Iterable[float]) -> list[str]:
    """Numbers of few characters: eleven classes in 80 columns."""
    return [f"{value:.2f}".replace("0.", ".") for value in values]


def shown_stages(console: Console) -> AbstractContextManager[Stage]:
    """A bar per stage in a terminal; elsewhere a line per stage and tenth of it."""
    return stages(console, lambda name: _lines(console, name))


def _lines(console: Console, name: str) -> experiments.Progress:
    tenths, start = {0}, time.monotonic()

    def line(done: int, total: int) -> None:
        if (tenth := 10 * done // total) not in tenths:
            tenths.add(tenth)
            took = time.monotonic() - start
            console.print(f"{name}: {done} of {total}, {took:.0f} s", highlight=False)

    return line
