"""Random scenarios: distribution files (docs/reference/distributions.md) and draws on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ackademy import _core, lookup
from ackademy.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.console import Console
from ackademy.errors import ScenarioError
from ackademy.files import check_output_folder, write
from ackademy.runs import read_text


def read(path: Path | str) -> _core.Distribution:
    """The distribution of a file or a name, checked at every combination of its draws' ends.

    Raises:
        ScenarioError: if the file cannot be read or is wrong; one line.
    """
    found = lookup.find(path, "distribution", ScenarioError)
    return _core.Distribution.parse(read_text(found), str(found))


def drawn(
    distribution: _core.Distribution, seed: int, count: int, progress: float = 0.0
) -> Iterator[tuple[int, _core.Scenario]]:
    """Scenarios of the seeds from `seed` on, each with its seed."""
    for own in range(seed, seed + count):
        yield own, distribution.draw(own, progress)


def save(scenario: _core.Scenario, path: Path, about: str = "") -> None:
    """Write a scenario so that it runs from where it then lies.

    Its traces go beside it; files of its controllers are named by absolute paths.

    Args:
        scenario: what to write; every default is filled in.
        path: of the scenario file; its folder is made.
        about: why it is worth running, the file's first line; empty for none.

    Raises:
        AckademyError: if a file cannot be written.
    """
    text, traces = scenario.portable()
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    for name, trace in traces.items():
        write(path.parent / name, trace)
    write(path, comment + text)


def draw_command(
    file: Annotated[Path, typer.Argument(help="A distribution, by file or name.", metavar="FILE")],
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Of the first; the others follow it.")
    ] = 1,
    count: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="How many.")] = 1,
    progress: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, callback=finite, help="Of the training, for the curriculum."
        ),
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(help="Write scenario files to this folder, with their traces.")
    ] = None,
) -> None:
    """Draw scenarios from a distribution: print one, or write them to files that `run` takes.

    Examples:
        ackademy draw distributions/mixed.toml --seed 7

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
        path = out / f"{scenario.name}.toml"
        save(scenario, path, f"Drawn from {file} with seed {own} at progress {progress:g}.")
        table.add_row(str(path), ", ".join(scenario.flows), f"{scenario.duration_s:g}")
    console.print(table)
