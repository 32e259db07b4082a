"""Options that several commands have. Imports nothing that takes time: completion reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ackademy import controllers
from ackademy.backends import Backend

if TYPE_CHECKING:
    from ackademy import engines

EngineName = Literal["local", "ray"]
RUNS, REPORTS = Path("runs"), Path("reports")

Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="Setting of the controllers."),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes; as many as there are cores by default.")
]
Engine = Annotated[EngineName, typer.Option(help="Processes here, or a Ray cluster.")]
BackendName = Annotated[
    Backend,
    typer.Option(help="The simulator, or this machine's TCP in real time (Linux, root)."),
]
Address = Annotated[
    str | None, typer.Option(help="Of a running Ray cluster; one is started here by default.")
]
RunsFolder = Annotated[Path, typer.Option(help="Where cells are kept.")]
ReportsFolder = Annotated[Path, typer.Option(help="Where reports go.")]


def engine_of(name: EngineName, address: str | None, jobs: int | None) -> engines.Engine:
    """The engine that `--engine`, `--address` and `--jobs` name.

    Raises:
        EngineError: if Ray is not installed.
    """
    from ackademy import engines

    if name == "ray":
        return engines.ray_cluster(address)
    return engines.local(jobs or engines.core_count())


def controller_names(words: str) -> list[str]:
    """Controllers separated by commas."""
    return [controllers.canonical(word.strip()) for word in words.split(",") if word.strip()]
