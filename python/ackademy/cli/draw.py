"""`ackademy draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ackademy.backends.distributions import drawn, read, save
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.console import Console
from ackademy.files import check_output_folder, file_name


def draw_command(
    file: Annotated[Path, typer.Argument(help="A distribution, by file or name.", metavar="FILE")],
    seed: Annotated[
        int,
        typer.Option(min=0, max=SEED_MAX, help="Seed of the first scenario; the others count up."),
    ] = 1,
    count: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="Number of scenarios.")] = 1,
    progress: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, callback=finite, help="Progress of the training, for a curriculum."
        ),
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(help="Write scenario files to this folder, with their traces.")
    ] = None,
) -> None:
    """Draw scenarios from a distribution: print one, or write them to files that `run` takes.

    Examples:
        ackademy draw mixed --seed 7

        ackademy draw mixed --count 20 --progress 1 --out build/drawn
    """
    console = Console()
    check_output_folder(out)
    distribution = read(file)
    if out is None:
        for _, scenario in drawn(distribution, seed, count, progress):
            typer.echo(scenario.portable()[0])
        return
    table = Table("file", "flows", "s")
    for own, scenario in drawn(distribution, seed, count, progress):
        path = out / f"{file_name(scenario.name)}.toml"
        save(scenario, path, f"Drawn from {file} with seed {own} at progress {progress:g}.")
        table.add_row(str(path), ", ".join(scenario.flows), f"{scenario.duration_s:g}")
    console.print(table)
