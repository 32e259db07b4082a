"""`ackademy train flagship`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import judged_training
from ackademy.cli.bounds import EPISODES_MAX
from ackademy.cli.options import words_of
from ackademy.cli.running import file_here, lacks_training
from ackademy.cli.train_deep import Force, PolicyFolder, RecipeFile
from ackademy.console import Console
from ackademy.files import check_output_folder
from ackademy.folders import check_policy_folder, new_policy_folder
from ackademy.runner.engines import core_count

if TYPE_CHECKING:
    from ackademy.learn.seeds import Seeds

RECIPE = "recipes/flagship.toml"
STOP_AFTER = 3_000_000
"""as `learn.seeds` has it, which needs JAX"""


def flagship_command(
    out: PolicyFolder = None,
    recipe: RecipeFile = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of trainings; seeds follow on --seed.")
    ] = 5,
    seed: judged_training.Seed = None,
    decisions: judged_training.Decisions = None,
    stop_after: Annotated[
        int,
        typer.Option(
            min=0,
            max=EPISODES_MAX,
            help="Decisions after which a training that is below the law alone is stopped; "
            "0: none is.",
        ),
    ] = STOP_AFTER,
    networks: judged_training.NetworkList = None,
    links: judged_training.Links = None,
    choose: Annotated[
        int | None,
        typer.Option(min=0, help="Keep the best policy of this seed instead of that of all."),
    ] = None,
    quick: judged_training.Quick = False,
    force: Force = False,
    jobs: judged_training.Jobs = None,
    work: judged_training.Work = Path("runs"),
) -> None:
    """Train the flagship with several seeds, judge some policies of each, and keep the best.

    Every policy is judged on fixed networks by the mean, over their classes, of the mean reward of
    a class's worst quarter; so is the law without a network (weights of zeros). What is finished is
    kept: an interrupted command continues where it stopped, and other numbers of seeds share it.

    Examples:
        ackademy train flagship

        ackademy train flagship --seeds 1 --decisions 2000000 --out mine

        ackademy train flagship --seeds 2 --quick --links 11 --out mine

        ackademy train flagship --recipe mine.toml --networks mine.links --jobs 1 --out mine
    """
    chosen = out or new_policy_folder("flagship")
    check_policy_folder(chosen, force=force)  # before the training, not behind it
    check_output_folder(work)
    try:
        from ackademy.learn import (
            deep,
            deep_recipe,
            recipe_source,
            selection,
            selection_card,
            training_card,
        )
        from ackademy.learn import seeds as learn_seeds
    except ImportError as error:
        raise lacks_training(error) from None
    read = deep_recipe.read(recipe or file_here(RECIPE, "a recipe with --recipe"), quick=quick)
    asked = deep_recipe.adjusted(read, seed, decisions)
    if choose is not None and not asked.seed <= choose < asked.seed + seeds:
        allowed = f"one of {asked.seed} to {asked.seed + seeds - 1}, the seeds that are trained"
        raise typer.BadParameter(f"{choose}: allowed is {allowed}", param_hint="--choose")
    judged = judged_training.judged_networks(networks, links)
    source = recipe_source.read(asked)
    place = work / "train" / "flagship"
    threads = jobs or core_count()
    judge = selection.Judge(asked, deep.patterns(source, asked), judged, threads, place / "judged")
    console, start = Console(), time.monotonic()
    plan = learn_seeds.Plan(seeds, stop_after, choose=choose)
    words = _command(
        chosen, recipe, seeds, seed, decisions, stop_after, networks, links, choose, quick
    )
    try:
        with judged_training.shown_stages(console) as stage:
            found = learn_seeds.train(asked, plan, deep.Here(threads), judge, place, stage)
        training_card.write(
            found.winner, chosen, words,
            more=selection_card.files(found, judge.digest), chosen=selection_card.section(found),
        )  # fmt: skip
    except KeyboardInterrupt:
        raise judged_training.interrupted(place) from None
    _tell(console, found, chosen, time.monotonic() - start)


def _command(
    out: Path,
    recipe: Path | None,
    seeds: int,
    seed: int | None,
    decisions: int | None,
    stop_after: int,
    networks: Path | None,
    links: int | None,
    choose: int | None,
    quick: bool,
) -> str:
    """The command that makes the same policy; options at their defaults are left out."""
    options = {
        "--recipe": recipe,
        "--seeds": None if seeds == 5 else seeds,
        "--seed": seed,
        "--decisions": decisions,
        "--stop-after": None if stop_after == STOP_AFTER else stop_after,
        "--networks": networks,
        "--links": links,
        "--choose": choose,
    }
    words = [*words_of(options), *["--quick"] * quick]
    return shlex.join(["ackademy", "train", "flagship", *words, "--out", str(out)])


def _tell(console: Console, found: Seeds, out: Path, wall_s: float) -> None:
    from ackademy.learn import selection_card

    classes = sorted(found.zeros.judgement.of_classes)
    table = judged_training.judgement_table("seed", "decisions", "mean", *classes)
    for row in found.rows:
        name = "law" if row.seed is None else f"{row.seed}{'*' * row.is_stopped}"
        values = judged_training.short(row.judgement.of_classes.values())
        style = "bold" if row is found.best else None
        table.add_row(name, str(row.decisions), f"{row.judgement.mean:.4f}", *values, style=style)
    console.print(table)
    if any(row.is_stopped for row in found.rows):
        console.print("* stopped: below the law alone", highlight=False)
    for seed, own in found.trained.items():
        console.say(
            f"seed {seed}: {own.decisions} decisions, {own.episodes} episodes, "
            f"{own.updates} updates, {own.packets / 1e6:.1f} million packets, {own.wall_s:.0f} s, "
            f"{own.cpu_s:.0f} s of CPU"
        )
    console.say(f"{selection_card.verdict(found)}\n{wall_s:.0f} s in all; policy: {out}")
