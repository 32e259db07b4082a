"""`ackademy train drl-cc`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy import folders, lookup
from ackademy.cli.bounds import RUNS_MAX
from ackademy.cli.options import words_of
from ackademy.cli.running import file_here, lacks_training, stopped
from ackademy.cli.train_deep import (
    Force,
    Quick,
    RecipeFile,
    Resume,
    Scenario,
    Seed,
    Work,
    interrupted,
)
from ackademy.cli.train_progress import tenths
from ackademy.console import Console
from ackademy.errors import TrainingError
from ackademy.files import check_output_folder, file_name
from ackademy.folders import check_policy_folder, work_name

if TYPE_CHECKING:
    from ackademy.learn.host_training import HostTrained, Recipe

QUICK_EPOCHS, QUICK_WARMUP, QUICK_ROWS = 400, 100, 100
"""of `--quick`"""


def drl_cc_command(
    network: Annotated[
        list[str] | None,
        typer.Option(help="Name of a network of the recipe.", metavar="NAME", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every agent of the recipe, one after the other.")
    ] = False,
    scenario: Scenario = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the policies, with a subfolder per network.")
    ] = folders.TRAINED / "drl_cc",
    recipe: RecipeFile = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=RUNS_MAX * 100, help="Number of epochs; the recipe's by default."),
    ] = None,
    seed: Seed = None,
    quick: Quick = False,
    resume: Resume = False,
    force: Force = False,
    work: Work = Path("runs"),
) -> None:
    """Train DRL-CC's agent: one for all connections of a host.

    The recipe has one agent per network, and `all`, an agent for all of them.

    With --resume, a network whose policy is there is left out, and the others go on from their
    checkpoints: several such commands with other --network options share a list.

    Examples:
        ackademy train drl-cc --network s1

        ackademy train drl-cc --network all

        ackademy train drl-cc --scenario scenarios/two_wifi.toml --seed 2 --out mine

        ackademy train drl-cc --all --resume
    """
    if sum((bool(network), everything, scenario is not None)) != 1:
        raise TrainingError("--network, --all or --scenario: one of them says what to train")
    try:
        from ackademy.learn import host_training
    except ImportError as error:
        raise lacks_training(error) from None
    check_output_folder(out)
    file = recipe or file_here("recipes/drl_cc.toml", "a recipe with --recipe")
    listed = host_training.read(file)
    words = words_of({"--recipe": recipe, "--epochs": epochs, "--seed": seed})
    words += ["--quick"] * quick
    console = Console()
    chosen = [
        _changed(own, epochs, seed, quick=quick) for own in _chosen(listed, network or [], scenario)
    ]
    folders = {own.name: out / file_name(own.name) for own in chosen}
    left = [own for own in chosen if not (resume and (folders[own.name] / "policy.toml").is_file())]
    for own in left:
        check_policy_folder(folders[own.name], force=force)  # before the training, not behind it
    for own in left:
        what = ["--scenario", str(scenario)] if scenario else ["--network", own.name]
        made = shlex.join(["ackademy", "train", "drl-cc", *what, *words, "--out", str(out)])
        _train(own, folders[own.name], made, console, resume=resume, work=work)


def _chosen(listed: Sequence[Recipe], names: Sequence[str], scenario: Path | None) -> list[Recipe]:
    from ackademy.learn.host_training import Network

    if scenario is not None:
        found = lookup.find(scenario, "scenario", TrainingError)
        network = Network(name=found.stem, scenario=found, changes={})
        return [replace(listed[0], name=found.stem, networks=(network,), host={})]
    known = {own.name: own for own in listed}
    for name in names:
        if name not in known:
            raise TrainingError(f"--network {name}: allowed: {', '.join(known)}")
    return [known[name] for name in names] if names else list(listed)


def _changed(recipe: Recipe, epochs: int | None, seed: int | None, *, quick: bool) -> Recipe:
    config = recipe.config
    if quick:
        config = replace(config, epochs=QUICK_EPOCHS, warmup=QUICK_WARMUP, row_every=QUICK_ROWS)
    if epochs is not None:
        config = replace(config, epochs=epochs, row_every=min(config.row_every, epochs))
    return replace(recipe, config=config, seed=recipe.seed if seed is None else seed)


def _train(
    recipe: Recipe, out: Path, made: str, console: Console, *, resume: bool, work: Path
) -> None:
    from ackademy.learn import host_card, host_training

    folder = work / "train" / "drl_cc" / work_name(out)
    line = tenths(console, recipe.name, "epochs")
    try:
        trained = host_training.train(recipe, folder, resume=resume, progress=line)
    except KeyboardInterrupt:
        raise stopped(interrupted(folder)) from None
    host_card.write(trained, out, made)
    console.say(_told(trained, out))


def _told(trained: HostTrained, out: Path) -> str:
    epochs = trained.recipe.config.epochs
    last = trained.curve.splitlines()
    named = dict(zip(last[0].split(","), last[-1].split(","), strict=True)) if last[1:] else {}
    learnt = (
        f"goodput {float(named['goodput_mbps']):.2f} Mb/s, Jain {float(named['jain']):.3f}; "
        if named
        else ""
    )
    return (
        f"{trained.recipe.name}: {learnt}{epochs} epochs, {trained.updates} updates, "
        f"{trained.packets / 1e6:.1f} million packets; {trained.wall_s:.0f} s, "
        f"{trained.cpu_s:.0f} s of CPU, {1e3 * trained.wall_s / epochs:.1f} ms per epoch\n"
        f"policy: {out}"
    )
