"""The command `ackademy`. A command's module is imported when that command is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from ackademy import __main__, exits
from ackademy.errors import AckademyError

SETTINGS = {"help_option_names": ["-h", "--help"]}

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("ackademy.cli.run:run_command", "Run a scenario once; print its flows and links."),
    "play": (
        "ackademy.cli.play:play_command",
        "Open the playground: the simulator in a browser.",
    ),
    "compare": (
        "ackademy.cli.compare:compare_command",
        "Compare controllers on the same scenarios.",
    ),
    "sweep": (
        "ackademy.cli.sweep:sweep_command",
        "Run schemes at several values of one setting.",
    ),
    "gap": ("ackademy.cli.gap:gap_command", "Compare backends: simulator, kernel, QUIC."),
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
        "Print the JSON Schema of a kind of files.",
    ),
    "docs": ("ackademy.cli.docs:docs_command", "Open the documentation in a browser."),
    "doctor": (
        "ackademy.cli.doctor:doctor_command",
        "Show what is installed, and how to add the rest.",
    ),
    "trace": ("ackademy.cli.listing:trace_command", "Print a cellular-like trace."),
    "traces": ("ackademy.cli.traces:app", "Fetch recorded links; split them into sets."),
    "draw": ("ackademy.cli.draw:draw_command", "Draw scenarios from a distribution."),
    "train": ("ackademy.cli.train:train_command", "Train a controller by a recipe."),
    "evaluate": (
        "ackademy.cli.evaluate:evaluate_command",
        "Evaluate policies and controllers on networks.",
    ),
    "benchmark": (
        "ackademy.cli.benchmark:benchmark_command",
        "Run an entry on networks that follow from it; entry tables.",
    ),
    "record": (
        "ackademy.cli.record:record_command",
        "Record what schemes observe and do, as a data set.",
    ),
    "scorecard": (
        "ackademy.cli.scorecard:scorecard_command",
        "Run the evaluations of RFC 9743 on a controller.",
    ),
    "search": (
        "ackademy.cli.search:search_command",
        "Search for a controller: a template with holes is bred.",
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


GONE = {
    "eval": "`ackademy evaluate POLICY`, with --on for other networks",
    "generalise": "`ackademy evaluate POLICY --on generalise`",
    "judge": "`ackademy evaluate CONTROLLER --on LIST`",
    "train ppo": "`ackademy train aurora_mixed`",
    "train drl-cc": "`ackademy train drl_cc`, with --only NAME for one network",
    "train lp-tcp": "`ackademy train lp_tcp`, with --only L=50,K=1 for one setup",
    "train lp-tcp-on": "`ackademy train lp_tcp_wire --on FILE`",
    "train cubic-beta": "`ackademy train cubic_beta`",
    "peers": "`PYTHONPATH=tools python -m ns_peers` in a checkout",
}
"""words of commands that no longer exist, and what takes their place"""


class LazyCommand(TyperCommand):
    """Name and first line of help of a command; its module is imported when it is used."""

    def make_context(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401
        """Import the command and parse its arguments, which the context then names as its own."""
        return load(str(self.name)).make_context(*args, **extra)


RENAMED = {
    "--out": ("--work", "--reports"),
    "--cells": ("--work",),
    "--threads": ("--jobs",),
    **dict.fromkeys(("--scenario", "--distribution", "--links"), ("--on",)),
    **dict.fromkeys(("--network", "--setup", "--variant"), ("--only",)),
    **dict.fromkeys(("--episodes", "--decisions", "--epochs", "--seeds", "--choose"), ("--set",)),
}
"""words that an option had in some commands, and what it is called in all of them now"""


class Command(TyperCommand):
    """A command that says the name of an option that was called otherwise."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse, after a look for words that no command has any longer.

        Raises:
            AckademyError: for one of them; one line.
        """
        own = {name for param in self.params for name in param.opts}
        for word in (word.partition("=")[0] for word in args):
            now = [name for name in RENAMED.get(word, ()) if name in own]
            if now and word not in own:
                raise AckademyError(f"{self.name} {word}: allowed: {' or '.join(now)}")
        return super().parse_args(ctx, args)


class Root(TyperGroup):
    """All commands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401
        super().__init__(**attributes)
        for name, (_, about) in COMMANDS.items():
            self.add_command(LazyCommand(name, help=about))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """The command that a word names.

        Raises:
            AckademyError: for one that no longer exists; one line that names the new one.
        """
        for word in (args[0], " ".join(args[:2])) if args else ():
            if word in GONE:
                raise AckademyError(f"ackademy {word}: now {GONE[word]}")
        return super().resolve_command(ctx, args)


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
        command.command(name, cls=Command)(found)
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
