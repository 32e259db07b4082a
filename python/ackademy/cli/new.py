"""`ackademy new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy.cli import templates
from ackademy.files import write


def new_command(
    kind: Annotated[templates.Kind, typer.Argument(help="Kind of file.")],
    name: Annotated[str, typer.Argument(help="Name: letters, digits and _.")],
) -> None:
    """Write a controller, reward, scenario, experiment, policy or notebook that runs as it is.

    Nothing is overwritten. The first line of a TOML file names the JSON Schema of its kind, which
    is written to the folder .ackademy: editors check and complete the file by it.

    Examples:
        ackademy new controller mine        # mine.py with a class Mine

        ackademy new coupled mine           # mine.py with a class Mine for several subflows

        ackademy new reward my_reward       # my_reward.py with a function reward

        ackademy new scenario my_link       # my_link.toml

        ackademy new experiment my_paper    # papers/my_paper: a table and its paper; my_paper.toml

        ackademy new policy my_policy       # a folder: policy.toml and weights

        ackademy new notebook my_study      # my_study.ipynb: a comparison and its figure
    """
    made = templates.files(kind, name)
    templates.write(made)
    schemas = templates.schemas(made)
    for path, text in schemas.items():
        write(Path(path), text)
    for path in [*made, *schemas]:
        typer.echo(f"wrote {path}")
    for command in templates.commands(kind, name):
        typer.echo(f"next: {command}")
