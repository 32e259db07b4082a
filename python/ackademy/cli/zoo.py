"""`ackademy zoo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ackademy import folders
from ackademy.cli import running
from ackademy.console import Console
from ackademy.errors import AckademyError
from ackademy.policies import zoo


def zoo_command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of policies; by default policies/ here and above, and the shipped ones."
        ),
    ] = None,
) -> None:
    """List the policies, with what their cards say, and run each for two seconds.

    The exit status is 1 if one cannot be run.

    Examples:
        ackademy zoo
    """
    console = Console()
    if folder is not None and not folder.is_dir():
        raise AckademyError(f"{folder}: allowed: a folder with policies in it")
    roots = [folder] if folder is not None else folders.here_or_above("policies")
    found = [model for root in roots for model in zoo.models(root)]
    title = f"policies in {', '.join(map(str, roots))}"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("runs")
    table.add_column("what it is", overflow="fold")
    for model in found:
        runs = Text("no", "red") if model.fault else Text("yes", "green")
        table.add_row(model.name, runs, _described(model))
        table.add_section()
    console.print(table)
    for model in found:
        if model.fault:
            running.fail(f"{model.name}: {model.fault}")
    if any(model.fault for model in found):
        raise typer.Exit(1)


def _described(model: zoo.Model) -> str:
    """A policy in a few lines that fit beside its name in 80 columns, or wrap there."""
    size = f"{model.parameters:,} numbers, {model.size_bytes / 1024:.0f} KiB"
    parts = {
        model.controller: model.about,
        "observes": model.observes,
        "acts": model.acts,
        "size": size,
        "trained by": model.trained,
        "card": _headline(model).replace("\n", "; "),
    }
    return "\n".join(f"{label}: {text}" for label, text in parts.items() if text)


def _headline(model: zoo.Model) -> str:
    if model.card is None:
        return "no card.toml"
    return "\n".join(
        f"{name}: {100 * own['share']:.0f} %, RTT × {own['rtt_ratio']:.2f}"
        for name, own in model.card.headline.items()
    )
