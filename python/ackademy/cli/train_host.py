"""`ackademy train drl-cc`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy import folders, lookup
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX
from ackademy.cli.running import INTERRUPTED, lacks_training
from ackademy.cli.train_deep import Force, Quick, Resume, Work
from ackademy.console import Console
from ackademy.errors import TrainingError
from ackademy.files import check_output_folder
from ackademy.folders import check_policy_folder, here_or_above, work_name

if TYPE_CHECKING:
    from ackademy.learn.host_training import HostTrained, Recipe
    from ackademy.learn.running_reward import RunningReward

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
    scenario: Annotated[
        Path | None, typer.Option(help="Train on this scenario instead.", metavar="FILE")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the policies, with a subfolder per network.")
    ] = folders.TRAINED / "drl_cc",
    recipe: Annotated[
        Path | None, typer.Option(help="Another recipe file.", metavar="FILE", show_default=False)
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=RUNS_MAX * 100, help="Number of epochs; the recipe's by default."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=SEED_MAX, help="Seed; the recipe's by default.")
    ] = None,
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
    listed = host_training.read(recipe or _recipe_file())
    words = ["--recipe", str(recipe)] if recipe else []
    words += [w for k, v in (("--epochs", epochs), ("--seed", seed)) if v is not None
              for w in (k, str(v))]  # fmt: skip
    words += ["--quick"] * quick
    console = Console()
    chosen = [
        _changed(own, epochs, seed, quick=quick) for own in _chosen(listed, network or [], scenario)
    ]
    left = [own for own in chosen if not (resume and (out / own.name / "policy.toml").is_file())]
    for own in left:
        check_policy_folder(out / own.name, force=force)  # before the training, not behind it
    for own in left:
        what = ["--scenario", str(scenario)] if scenario else ["--network", own.name]
        made = shlex.join(["ackademy", "train", "drl-cc", *what, *words, "--out", str(out)])
        _train(own, out / own.name, made, console, resume=resume, work=work)


def _recipe_file() -> Path:
    """The recipe, in `recipes` here, above, or in the source checkout.

    Raises:
        TrainingError: if there is none.
    """
    for path in here_or_above("recipes/drl_cc.toml"):
        return path
    raise TrainingError("no recipes/drl_cc.toml here: name a recipe with --recipe")


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
    from ackademy.learn import host_training
    from ackademy.render import host_card

    folder = work / "train" / "drl_cc" / work_name(out)
    tenths: set[int] = set()

    def line(done: int, total: int, reward: RunningReward) -> None:
        if (tenth := 10 * done // total) not in tenths:
            tenths.add(tenth)
            more = f", {reward}" if str(reward) else ""
            console.print(f"{recipe.name}: {done} of {total} epochs{more}", highlight=False)

    try:
        trained = host_training.train(recipe, folder, resume=resume, progress=line)
    except KeyboardInterrupt:
        message = f"interrupted; go on with --resume from the checkpoint in {folder}"
        Console(stderr=True).print(message, style="red", soft_wrap=True, markup=False)
        raise typer.Exit(INTERRUPTED) from None
    host_card.write(trained, out, made)
    console.print(_told(trained, out), highlight=False, soft_wrap=True)


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
