"""`ackademy list`, `schema` and `trace`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ackademy import _core, files, lookup
from ackademy.backends import controllers, guests
from ackademy.cli import completion
from ackademy.cli.bounds import SEED_MAX, finite
from ackademy.errors import AckademyError, FileError
from ackademy.folders import schema_file

if TYPE_CHECKING:
    from rich.table import Table

KINDS_LISTED: tuple[lookup.Kind, ...] = ("distribution", "list", "policy", "suite")
"""kinds whose names are printed on one line"""


SchemaKind = Literal["scenario", "distribution", "recipe", "suite", "scorecard", "policy", "paper"]


def list_command(
    controller: Annotated[
        str | None,
        typer.Argument(
            help="Show the settings of this controller.", autocompletion=completion.one_controller
        ),
    ] = None,
) -> None:
    """List controllers, scenarios and papers, or the settings of one controller.

    Examples:
        ackademy list

        ackademy list rl_tcp
    """
    from rich.table import Table

    from ackademy.console import Console
    from ackademy.studies.reproduce import files as experiment_files

    console = Console()
    if controller is not None:
        console.print(_controller_table(controllers.canonical(controller)))
        return
    table = Table(title="controllers", title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("governs", no_wrap=True)
    table.add_column("what it does")
    table.add_column("source")
    for entry in _core.controllers():
        table.add_row(entry["name"], entry["scope"], entry["about"], entry["source"])
    for name, source in guests.names():
        table.add_row(name, "subflow", "a guest: other people's code", source)
    console.print(table)
    scenarios = Table(title="scenarios", title_justify="left", title_style="bold")
    scenarios.add_column("name", no_wrap=True)
    scenarios.add_column("question")
    for name in lookup.names("scenario"):
        scenarios.add_row(name, _first_sentence(lookup.find(name, "scenario")))
    console.print(scenarios)
    for kind in KINDS_LISTED:
        console.print(f"{lookup.FOLDERS[kind]}:", ", ".join(lookup.names(kind)), highlight=False)
    console.print(
        "papers:", ", ".join(experiment_files.available()) or "none here", highlight=False
    )


def schema_command(
    kind: Annotated[SchemaKind, typer.Argument(help="Kind of file.")] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of files, for editors and generators.

    Examples:
        ackademy schema > scenario.schema.json

        ackademy schema recipe > recipe.schema.json
    """
    typer.echo(files.read_text(schema_file(kind)), nl=False)


def trace_command(
    mbps: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=10_000,
            callback=finite,
            help="Mean rate, by default 10 or that of --like.",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(min=1.0, max=86_400, callback=finite, help="Length; the trace then repeats."),
    ] = 60.0,
    volatility: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=10.0,
            callback=finite,
            help="Change of the rate in a second, relative to its mean, by default 0.5.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help=f"In scheduler grants, like a recorded trace: {', '.join(_core.fitted_traces())}."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Seed of the trace.")] = 1,
) -> None:
    """Print a cellular-like trace in mahimahi's format, for a link's `trace`.

    Examples:
        ackademy trace --mbps 5 --seconds 30 > scenarios/cellular.trace

        ackademy trace --like att_lte_down --seed 7 > scenarios/lte.trace
    """
    if like is None:
        text = _core.generate_trace(
            seconds,
            10.0 if mbps is None else mbps,
            0.5 if volatility is None else volatility,
            seed,
        )
    else:
        if volatility is not None:
            raise AckademyError(f"--volatility {volatility:g}: allowed: without --like")
        try:
            text = _core.generate_grants(
                seconds, like, {} if mbps is None else {"mean_mbps": mbps}, seed
            )
        except ValueError as error:
            raise AckademyError(f"--{error}") from error
    typer.echo(text, nl=False)


def _controller_table(name: str) -> Table:
    from rich.table import Table

    entries = {entry["name"]: entry for entry in _core.controllers()}
    if name not in entries:
        raise lookup.unknown_controller(name)
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
        if line.startswith("#:"):  # for editors
            continue
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# "))
    return " ".join(comment)
