"""`ackademy train cubic-beta`: one learner of Knott 2023, with its progress."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from ackademy.cli.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.console import Console
from ackademy.errors import TrainingError
from ackademy.files import check_output_folder
from ackademy.papers.knott2023 import training as beta_training
from ackademy.papers.knott2023.training import Learner, Training
from ackademy.papers.knott2023.transfers import (
    BETA_STEP_ALLOWED,
    Recorded,
    Simulated,
    is_beta_step,
    scenario_file,
)


def cubic_beta_command(
    rate_mbps: Annotated[
        float, typer.Option(min=0.1, max=1000, callback=finite, help="Rate of the link.")
    ] = 4.0,
    episodes: Annotated[
        int, typer.Option(min=1, max=RUNS_MAX, help="Number of episodes, of 100 transfers each.")
    ] = 500,
    learning_rate: Annotated[float, typer.Option(min=0.0, max=1.0, callback=finite)] = 0.01,
    discount: Annotated[float, typer.Option(min=0.0, max=1.0, callback=finite)] = 0.9,
    decay_start: Annotated[
        int | None, typer.Option(min=0, help="Episodes of exploration only; a fifth by default.")
    ] = None,
    tune_c: Annotated[bool, typer.Option("--tune-c", help="Tune C, too.")] = False,
    beta_step: Annotated[
        float, typer.Option(callback=finite, help="Step by which an action changes beta.")
    ] = 0.1,
    loss_unit: Annotated[
        Literal["percent", "fraction"], typer.Option(help="Unit of loss in the reward.")
    ] = "percent",
    recorded: Annotated[
        Path | None, typer.Option(help="Learn on these transfers, such as ns3.csv.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Seed of exploration.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Write the episodes to this folder.")] = None,
) -> None:
    """Learn CUBIC's beta from one transfer to the next (Knott 2023).

    Examples:
        ackademy train cubic-beta --rate-mbps 4

        ackademy train cubic-beta --rate-mbps 4 --recorded papers/knott2023/ns3.csv --tune-c
    """
    console = Console()
    check_output_folder(out)
    if not is_beta_step(beta_step):
        raise TrainingError(f"--beta-step {beta_step:g}: allowed: {BETA_STEP_ALLOWED}")
    transfers = Recorded.of_file(recorded) if recorded else Simulated.of_file(scenario_file())
    start = episodes // 5 if decay_start is None else decay_start
    if start >= episodes:
        raise TrainingError(f"--decay-start {start}: allowed: below --episodes {episodes}")
    recipe = {
        "episodes": episodes,
        "learning_rate": learning_rate,
        "discount": discount,
        "decay_start": start,
    }
    learner = Learner("", transfers, tune_c, beta_step, loss_unit, recipe)
    with console.status("learning"):
        known = {setting: transfers(setting) for setting in learner.settings(rate_mbps)}
        training = beta_training.digest(beta_training.train(learner, rate_mbps, seed, known))
    default = known[beta_training.default_of(rate_mbps)]
    best = min(known, key=lambda setting: (known[setting].refused, setting))
    console.print(_progress(training, rate_mbps))
    console.print(
        f"stock CUBIC refuses {100 * default.refused_ratio:.1f} % of the writes; the best of "
        f"{len(known)} settings, beta {best.beta:g} and C {best.c:g}, "
        f"{100 * known[best].refused_ratio:.1f} %",
        highlight=False,
    )
    if out:
        beta_training.save(training, out)
        console.print(f"episodes: {out}", highlight=False)


def _progress(training: Training, rate_mbps: float) -> Table:
    """Ten rows, each the mean of a tenth of the episodes."""
    table = Table(title=f"{rate_mbps:g} Mb/s", title_justify="left", title_style="bold")
    for head in ("episodes", "reward", "refused %", "throughput 1/s", "beta"):
        table.add_column(head, justify="right")
    n = training.episodes.height
    for first in range(0, n, max(1, n // 10)):
        part = training.episodes.slice(first, max(1, n // 10))
        columns = ("reward", "refused_mean", "throughput_mean", "beta_mean")
        reward, refused, throughput, beta = (float(part[c].to_numpy().mean()) for c in columns)
        table.add_row(
            f"{first + 1} to {first + part.height}",
            f"{reward:.0f}",
            f"{100 * refused:.1f}",
            f"{throughput:.1f}",
            f"{beta:.2f}",
        )
    return table
