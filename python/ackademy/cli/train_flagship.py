"""`ackademy train flagship`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from ackademy.backends import link_lists
from ackademy.cli.bounds import EPISODES_MAX, JOBS_MAX, RUNS_MAX, SEED_MAX
from ackademy.cli.running import INTERRUPTED
from ackademy.cli.train_deep import Force
from ackademy.console import Console, task_label
from ackademy.errors import TrainingError
from ackademy.files import check_output_folder
from ackademy.folders import check_policy_folder, here_or_above, new_policy_folder
from ackademy.runner.engines import core_count

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe
    from ackademy.learn.seeds import Seeds, Stage
    from ackademy.learn.selection import Told

RECIPE, LINKS = "recipes/flagship.toml", "distributions/lists/flagship_validation.links"
STOP_AFTER = 3_000_000
"""as `learn.seeds` has it, which needs JAX"""


def flagship_command(
    out: Annotated[
        Path | None,
        typer.Option(
            help="The policy's folder; by default a new one in trained/.", show_default=False
        ),
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Another recipe file.", metavar="FILE", show_default=False)
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of trainings; seeds follow on --seed.")
    ] = 5,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEED_MAX - 1000, help="First seed; the recipe's by default."),
    ] = None,
    decisions: Annotated[
        int | None,
        typer.Option(
            min=1, max=EPISODES_MAX, help="Decisions of a training; the recipe's by default."
        ),
    ] = None,
    stop_after: Annotated[
        int,
        typer.Option(
            min=0,
            max=EPISODES_MAX,
            help="Decisions after which a training that is below the law alone is stopped; "
            "0: none is.",
        ),
    ] = STOP_AFTER,
    networks: Annotated[
        Path | None,
        typer.Option(
            help="Another list of networks to judge on.", metavar="FILE", show_default=False
        ),
    ] = None,
    links: Annotated[
        int | None,
        typer.Option(min=1, max=RUNS_MAX, help="Judge on so many of the networks; all by default."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short trainings, as a check.")] = False,
    force: Force = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=JOBS_MAX,
            help="Threads of simulations and judgements; one per core by default.",
        ),
    ] = None,
    work: Annotated[
        Path, typer.Option(help="Folder of trainings, checkpoints and judgements.")
    ] = Path("runs"),
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
        from ackademy.learn import deep, deep_recipe, recipe_source, selection
        from ackademy.learn import seeds as learn_seeds
        from ackademy.render import selection_card, training_card
    except ImportError as error:
        raise TrainingError(
            f"{error}: training needs JAX, Flax, Optax, safetensors and Gymnasium: install the "
            "extra with `pip install 'ackademy[train]'`"
        ) from None
    read = deep_recipe.read(recipe or file_here(RECIPE, "a recipe with --recipe"), quick=quick)
    asked = _changed(read, seed, decisions)
    listed = link_lists.read(networks or file_here(LINKS, "a list with --networks")).links
    judged = selection.thinned(listed, links) if links else listed
    source = recipe_source.read(asked)
    place = work / "train" / "flagship"
    threads = jobs or core_count()
    judge = selection.Judge(asked, deep.patterns(source, asked), judged, threads, place / "judged")
    console, start = Console(), time.monotonic()
    plan = learn_seeds.Plan(seeds, stop_after)
    try:
        with shown_stages(console) as stage:
            found = learn_seeds.train(asked, plan, deep.Here(threads), judge, place, stage)
    except KeyboardInterrupt:
        told = f"interrupted; run the same command again to go on from what is kept in {place}"
        Console(stderr=True).print(told, style="red", soft_wrap=True, markup=False)
        raise typer.Exit(INTERRUPTED) from None
    words = _command(chosen, recipe, seeds, seed, decisions, stop_after, networks, links, quick)
    training_card.write(
        found.winner, chosen, words,
        more=selection_card.files(found, judge.digest), chosen=selection_card.section(found),
    )  # fmt: skip
    _tell(console, found, chosen, time.monotonic() - start)


def file_here(name: str, other: str) -> Path:
    """A file here, above, or in the source checkout.

    Raises:
        TrainingError: if there is none.
    """
    for path in here_or_above(name):
        return path
    raise TrainingError(f"no {name} here: name {other}")


def _changed(recipe: Recipe, seed: int | None, decisions: int | None) -> Recipe:
    from ackademy.learn import ppo

    if not isinstance(recipe.config, ppo.Config):
        raise TrainingError(f"{recipe.origin}: learner = {recipe.learner!r}: allowed: ppo")
    config = recipe.config if decisions is None else replace(recipe.config, decisions=decisions)
    return replace(recipe, seed=recipe.seed if seed is None else seed, config=config)


def _command(
    out: Path,
    recipe: Path | None,
    seeds: int,
    seed: int | None,
    decisions: int | None,
    stop_after: int,
    networks: Path | None,
    links: int | None,
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
    }
    words = [w for k, v in options.items() if v is not None for w in (k, str(v))]
    words += ["--quick"] * quick
    return shlex.join(["ackademy", "train", "flagship", *words, "--out", str(out)])


@contextmanager
def shown_stages(console: Console) -> Iterator[Stage]:
    """A bar per stage in a terminal; elsewhere a line per stage and tenth of it."""
    if not console.is_terminal:
        yield lambda name: _lines(console, name)
        return
    columns = (task_label(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:

        def begin(name: str) -> Told:
            task = bar.add_task(name, total=None)

            def update(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            return update

        yield begin


def _lines(console: Console, name: str) -> Told:
    tenths, start = {0}, time.monotonic()

    def line(done: int, total: int) -> None:
        if (tenth := 10 * done // total) not in tenths:
            tenths.add(tenth)
            took = time.monotonic() - start
            console.print(f"{name}: {done} of {total}, {took:.0f} s", highlight=False)

    return line


def _tell(console: Console, found: Seeds, out: Path, wall_s: float) -> None:
    from ackademy.render import selection_card

    classes = sorted(found.zeros.judgement.of_classes)
    table = Table(title="Mean reward of the worst quarter, by class of networks", box=None,
                  title_justify="left", title_style="bold", pad_edge=False,
                  padding=(0, 1, 0, 0))  # fmt: skip
    for head in ("seed", "decisions", "mean", *classes):
        table.add_column(head, justify="left" if head == "seed" else "right")
    for row in found.rows:
        name = "law" if row.seed is None else f"{row.seed}{'*' * row.is_stopped}"
        values = [f"{value:.2f}" for value in row.judgement.of_classes.values()]
        values = [value.replace("0.", ".") for value in values]  # eleven classes in 80 columns
        style = "bold" if row is found.best else None
        table.add_row(name, str(row.decisions), f"{row.judgement.mean:.4f}", *values, style=style)
    console.print(table)
    if any(row.is_stopped for row in found.rows):
        console.print("* stopped: below the law alone", highlight=False)
    for seed, own in found.trained.items():
        console.print(
            f"seed {seed}: {own.decisions} decisions, {own.episodes} episodes, "
            f"{own.updates} updates, {own.packets / 1e6:.1f} million packets, {own.wall_s:.0f} s, "
            f"{own.cpu_s:.0f} s of CPU",
            highlight=False,
            soft_wrap=True,
        )
    console.print(
        f"{selection_card.verdict(found)}\n{wall_s:.0f} s in all; policy: {out}",
        highlight=False,
        soft_wrap=True,
    )
