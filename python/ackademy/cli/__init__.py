"""The command `ackademy`. A command's module is imported when that command is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from ackademy import __main__, exits

SETTINGS = {"help_option_names": ["-h", "--help"]}

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("ackademy.cli.run:run_command", "Run a scenario once; print its flows and links."),
    "compare": (
        "ackademy.cli.compare:compare_command",
        "Compare controllers on the same scenarios.",
    ),
    "sweep": (
        "ackademy.cli.sweep:sweep_command",
        "Run schemes at several values of one setting.",
    ),
    "gap": ("ackademy.cli.gap:gap_command", "Compare the simulator with this machine's TCP."),
    "reproduce": (
        "ackademy.cli.reproduce:reproduce_command",
        "Reproduce a table or figure of a paper.",
    ),
    "report": (
        "ackademy.cli.reproduce:report_command",
        "Write reports of finished reproductions.",
    ),
    "list": (
        "ackademy.cli.listing:list_command",
        "List controllers, scenarios, papers; a controller's settings.",
    ),
    "schema": (
        "ackademy.cli.listing:schema_command",
        "Print the JSON Schema of scenario files.",
    ),
    "trace": ("ackademy.cli.listing:trace_command", "Print a cellular-like trace."),
    "draw": ("ackademy.cli.draw:draw_command", "Draw scenarios from a distribution."),
    "train": ("ackademy.cli.train:train_command", "Train a controller by a recipe."),
    "evaluate": (
        "ackademy.cli.evaluate:evaluate_command",
        "Evaluate policies and controllers on networks.",
    ),
    "scorecard": (
        "ackademy.cli.scorecard:scorecard_command",
        "Run the evaluations of RFC 9743 on a controller.",
    ),
    "certify": (
        "ackademy.cli.certify:certify_command",
        "Prove properties of a policy over own_queue.",
    ),
    "stress": (
        "ackademy.cli.stress:stress_command",
        "Search for the networks on which a controller does worst.",
    ),
    "zoo": ("ackademy.cli.zoo:zoo_command", "List the policies and run each."),
    "new": ("ackademy.cli.new:new_command", "Write a controller, scenario, policy, ... to edit."),
    "export": ("ackademy.cli.onnx:export_command", "Write a policy as an ONNX model."),
    "import": ("ackademy.cli.onnx:import_command", "Make a policy from an ONNX model."),
}
"""by name: the function or Typer application behind a command, and what `--help` says of it"""


class LazyCommand(TyperCommand):
    """Name and first line of help of a command; its module is imported when it is used."""

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Import the command and parse its arguments, which the context then names as its own."""
        return load(str(self.name)).make_context(*args, **extra)


class Root(TyperGroup):
    """All commands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401
        super().__init__(**attributes)
        for name, (_, about) in COMMANDS.items():
            self.add_command(LazyCommand(name, help=about))


app = typer.Typer(
    name="ackademy",
    cls=Root,
    help="Learned congestion control: run, compare, train and reproduce papers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Rich takes as long to import as everything else that help needs
    context_settings=SETTINGS,
)


def main() -> NoReturn:
    """Entry point: an error that the user can fix is one line, with exit status 2."""
    exits.leave(exits.status_of(app))


def load(name: str) -> TyperCommand | TyperGroup:
    """The command of this name, its module imported."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found: typer.Typer | Callable[..., None] = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        command = typer.Typer(
            rich_markup_mode="rich",
            context_settings=SETTINGS,
            add_completion=False,
            pretty_exceptions_enable=False,
        )
        command.command(name)(found)
        found = command
    loaded = typer.main.get_command(found)
    if not isinstance(loaded, TyperCommand | TyperGroup):
        raise TypeError(f"{module}.{attribute} is no command")
    return loaded


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print versions and exit.")] = False,
) -> None:
    if version:
        typer.echo(__main__.version())
        raise typer.Exit
