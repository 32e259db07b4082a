"""What `ackademy train` does, by what a recipe says that learns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ackademy import lookup
from ackademy.cli.options import EngineName
from ackademy.cli.running import lacks_training, stopped
from ackademy.cli.train_progress import episodes, staged_lines, stages, tenths
from ackademy.console import Console
from ackademy.errors import ScenarioError, TrainingError
from ackademy.files import check_output_folder, file_name
from ackademy.folders import TRAINED, check_policy_folder, is_file, new_policy_folder, work_name
from ackademy.render.numbers import significant
from ackademy.runner import engines, experiments
from ackademy.toml_table import TomlTable

if TYPE_CHECKING:
    import polars as pl
    import typer

    from ackademy.learn.deep import Opener, TrainingResult
    from ackademy.learn.host_training import HostTrained
    from ackademy.learn.lp_tcp.training import Stage
    from ackademy.learn.seeds import Seeds
    from ackademy.papers.knott2023.training import Training


@dataclass(frozen=True, slots=True)
class Asked:
    """A recipe and the options of the command."""

    name: str
    """of the recipe"""
    file: Path
    changes: Mapping[str, object]
    """of its fields"""
    on: Path | None
    """the scenario or distribution in place of the recipe's"""
    only: tuple[str, ...]
    reward: str
    out: Path | None
    command: str
    """that does the same; the policy's folder is to be added"""
    is_quick: bool
    is_resumed: bool
    is_forced: bool
    jobs: int | None
    engine: EngineName
    address: str | None
    work: Path

    @property
    def threads(self) -> int:
        """One per core, or as asked."""
        return self.jobs or engines.core_count()

    def folder(self) -> Path:
        """Of the only policy, checked before the training, not behind it.

        Raises:
            AckademyError: if it holds something.
        """
        found = self.out or new_policy_folder(self.name)
        check_policy_folder(found, force=self.is_forced)
        return found

    def folders(self, names: Iterable[str]) -> dict[str, Path]:
        """Those of several policies by name, checked, but for those that a resumed command has.

        Raises:
            AckademyError: if one holds something.
        """
        parent = self.out or TRAINED / self.name
        check_output_folder(parent)
        found = {name: parent / file_name(name) for name in names}
        left = {
            name: folder
            for name, folder in found.items()
            if not (self.is_resumed and is_file(folder / "policy.toml"))
        }
        for folder in left.values():
            check_policy_folder(folder, force=self.is_forced)
        return left

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Those of the recipe's names that are asked for.

        Raises:
            TrainingError: if there is none of a name.
        """
        for name in self.only:
            if name not in names:
                raise TrainingError(f"--only {name}: allowed: {', '.join(names)}")
        return list(dict.fromkeys(self.only)) or list(names)


def source(on: str) -> tuple[Path, dict[str, object]]:
    """The file of a scenario or distribution, and the fields of a recipe for it.

    Raises:
        AckademyError: if there is none.
    """
    is_drawn = on in lookup.names("distribution") and not is_file(on)
    if is_file(on):
        is_drawn = isinstance(TomlTable.read(Path(on)).values.get("scenario"), list)
    kind = "distribution" if is_drawn else "scenario"
    found = lookup.find(on, kind, TrainingError)  # type: ignore[arg-type]  # one of two kinds
    other = "scenario" if is_drawn else "distribution"
    return found, {kind: str(found.absolute()), other: None, "without_classes": None}


def deep(asked: Asked) -> None:
    """One policy by deep Q-learning or proximal policy optimisation."""
    _no_names(asked)
    out = asked.folder()
    try:
        if asked.reward:  # refused before JAX is imported
            from ackademy.envs import rewards

            rewards.find(asked.reward)
        from ackademy.learn import checkpoint, deep_recipe, training_card
        from ackademy.learn import deep as learn_deep
    except ImportError as error:
        raise lacks_training(error) from None
    recipe = deep_recipe.read(asked.file, quick=asked.is_quick, changes=asked.changes)
    console, folder = Console(), asked.work / asked.name / work_name(out)
    if asked.is_resumed and not checkpoint.found(folder):
        told = f"no checkpoint in {folder}: the training begins anew"
        Console(stderr=True).print(told, soft_wrap=True)
    try:
        with _opened(asked) as make, episodes(console, out.name) as progress:
            trained = learn_deep.train(
                recipe, make, folder, resume=asked.is_resumed, progress=progress
            )
        tried = training_card.write(trained, out, f"{asked.command} --out {out}")
    except KeyboardInterrupt:
        raise stopped(interrupted(folder)) from None
    console.print(_beside(tried, out.name))
    console.say(f"{_counts(trained)}\npolicy: {out}")


def selected(asked: Asked) -> None:
    """Several trainings by one recipe, the best policy of which is kept."""
    _no_names(asked)
    out = asked.folder()
    try:
        from ackademy.learn import deep as deep_of
        from ackademy.learn import deep_recipe, seeds, selection_card, training_card
    except ImportError as error:
        raise lacks_training(error) from None
    recipe = deep_recipe.read(asked.file, quick=asked.is_quick, changes=asked.changes)
    plan, links = seeds.plan(asked.file, recipe, asked.changes)
    console, start, place = Console(), time.monotonic(), asked.work / "selection"
    judge = seeds.judge_of(recipe, links, asked.threads, place)
    try:
        with stages(console, staged_lines(console)) as stage:
            found = seeds.train(recipe, plan, deep_of.Here(asked.threads), judge, place, stage)
        training_card.write(
            found.winner, out, f"{asked.command} --out {out}",
            more=selection_card.files(found, judge), chosen=selection_card.section(found),
        )  # fmt: skip
    except KeyboardInterrupt:
        raise _kept(place) from None
    console.print(_seeds_table(found))
    if any(row.is_stopped for row in found.rows):
        console.print("* stopped: below own_queue alone", highlight=False)
    for seed, own in found.trained.items():
        console.say(f"seed {seed}: {_counts(own)}")
    took = time.monotonic() - start
    console.say(f"{selection_card.verdict(found)}\n{took:.0f} s in all; policy: {out}")


def host(asked: Asked) -> None:
    """Agents of a host by deep deterministic policy gradient, one per network of the recipe."""
    try:
        from ackademy.learn import host_card, host_training
    except ImportError as error:
        raise lacks_training(error) from None
    network = {"network": [{"name": asked.on.stem}]} if asked.on else {}
    read = host_training.read(
        asked.file, quick=asked.is_quick, changes={**asked.changes, **network}
    )
    listed = {own.name: own for own in read}
    console = Console()
    for name, out in asked.folders(asked.chosen(list(listed))).items():
        folder = asked.work / asked.name / work_name(out)
        line = tenths(console, name, "epochs")
        try:
            trained = host_training.train(
                listed[name], folder, resume=asked.is_resumed, progress=line
            )
        except KeyboardInterrupt:
            raise stopped(interrupted(folder)) from None
        host_card.write(trained, out, _with_name(asked, name, out.parent))
        console.say(f"{_host_counts(trained)}\npolicy: {out}")


def forest(asked: Asked) -> None:
    """LP-TCP's loss predictors, one per setup or network of the recipe."""
    from ackademy.learn.lp_tcp import network, recipes, training

    of_others = ("scenario", "distribution", "without_classes", "learners")
    changes = {name: own for name, own in asked.changes.items() if name not in of_others}
    if asked.on:
        changes["network"] = [{"name": asked.on.stem, "scenario": str(asked.on.absolute())}]
    read = recipes.read(asked.file, quick=asked.is_quick, changes=changes)
    names = asked.chosen(list(read))
    folders = asked.folders(recipes.folder_of(read[name], name) for name in names)
    console, engine, work = Console(), engines.local(asked.threads), asked.work / asked.name

    def line(name: str) -> experiments.Progress:
        console.say(name)
        return experiments.quiet

    for name in names:
        own, out = read[name], folders.get(recipes.folder_of(read[name], name))
        if out is None:
            continue
        start, made = time.monotonic(), _with_name(asked, name, out.parent)
        if isinstance(own, network.Task):
            task = network.train(own, out, work / work_name(out), engine, asked.threads, made)
            losses, th0, best, size = task.n_losses, task.th0, task.chosen, len(task.content)
        else:
            place = training.Workshop(scenario_folder(), work, engine, asked.threads)
            with stages(console, line) as stage:
                try:
                    trained = training.train(own, place, partial(_staged, stage, name))
                except KeyboardInterrupt:
                    told = f"interrupted; finished stages are kept in {work}"
                    raise stopped(told) from None
            training.export(trained, out, made)
            losses, th0, best = trained.sends.losses, trained.th0, trained.chosen
            size = len(trained.forest)
        console.say(
            f"{name}: {losses} losses, F1 {th0.f1:.3f} at th₀ = {th0.threshold:g}; threshold "
            f"{best.threshold:g}: M_e {best.m_e:.4f}; {size / 1e6:.2f} MB; "
            f"{time.monotonic() - start:.0f} s\npolicy: {out}"
        )


def q_table(asked: Asked) -> None:
    """A learner of Knott 2023, which tunes CUBIC from one transfer to the next."""
    from ackademy.papers.knott2023 import training
    from ackademy.papers.knott2023.study import learner_of

    _no_names(asked)
    check_output_folder(asked.out)
    learner, rate_mbps, seed = learner_of(asked.file, asked.changes, quick=asked.is_quick)
    console = Console()
    with console.status("learning"):
        known = {setting: learner.transfers(setting) for setting in learner.settings(rate_mbps)}
        found = training.digest(training.train(learner, rate_mbps, seed, known))
    default = known[training.default_of(rate_mbps)]
    best = min(known, key=lambda setting: (known[setting].refused, setting))
    console.print(_tenths_table(found, rate_mbps))
    console.print(
        f"stock CUBIC refuses {100 * default.refused_ratio:.1f} % of the writes; the best of "
        f"{len(known)} settings, beta {best.beta:g} and C {best.c:g}, "
        f"{100 * known[best].refused_ratio:.1f} %",
        highlight=False,
    )
    if asked.out:
        training.save(found, asked.out)
        console.print(f"episodes: {asked.out}", highlight=False)


KINDS: Mapping[str, Callable[[Asked], None]] = {
    "dqn": deep,
    "ppo": deep,
    "selected": selected,
    "evolution": selected,
    "ddpg": host,
    "forest": forest,
    "q_table": q_table,
}
"""by `learner` of a recipe"""


def scenario_folder() -> Path:
    """The folder `scenarios` here, above, or of the source checkout.

    Raises:
        ScenarioError: if there is none with Kong 2018's networks.
    """
    return lookup.find("kong2018_one_sender", "scenario", ScenarioError).parent


def interrupted(folder: Path) -> str:
    """How to continue after an interrupt."""
    from ackademy.learn import checkpoint, training_log

    if checkpoint.found(folder):
        return f"interrupted; continue with --resume from the checkpoint in {folder}"
    return (
        f"interrupted before the first checkpoint (one every {training_log.CHECKPOINT_S:g} s): "
        "nothing is kept"
    )


def _staged(stage: Stage, name: str, told: str) -> experiments.Progress:
    return stage(f"{name}: {told}")


def _no_names(asked: Asked) -> None:
    if asked.only:
        raise TrainingError(f"--only {asked.only[0]}: allowed: with a recipe that lists networks")


def _with_name(asked: Asked, name: str, parent: Path) -> str:
    """The command that makes the policy of one name."""
    only = "" if asked.on else f" --only {name}"
    before = asked.command
    for other in asked.only:
        before = before.replace(f" --only {other}", "")
    return f"{before}{only} --out {parent}"


def _kept(place: Path) -> typer.Exit:
    return stopped(
        f"interrupted; run the same command again to continue from what is kept in {place}"
    )


@contextmanager
def _opened(asked: Asked) -> Iterator[Opener]:
    """Opens simulations here or on a cluster, as long as the context lasts."""
    from ackademy.learn import deep as learn_deep

    if asked.engine == "local":
        if asked.address is not None:
            raise TrainingError("--address: allowed: with --engine ray")
        yield learn_deep.Here(asked.jobs or 0)
        return
    if asked.jobs:
        raise TrainingError("--jobs: allowed: with --engine local; Ray has one per worker")
    from ackademy.learn import ray_rollouts

    with ray_rollouts.on_cluster(asked.address) as make:
        yield make


def _counts(own: TrainingResult) -> str:
    return (
        f"{own.decisions} decisions, {own.episodes} episodes, {own.updates} updates, "
        f"{own.packets / 1e6:.1f} million packets; {own.wall_s:.0f} s, {own.cpu_s:.0f} s of CPU"
    )


def _host_counts(own: HostTrained) -> str:
    epochs = own.recipe.config.epochs
    head, *rows = own.curve.splitlines()
    named = dict(zip(head.split(","), rows[-1].split(","), strict=True)) if rows else {}
    learnt = (
        f"goodput {float(named['goodput_mbps']):.2f} Mb/s, Jain {float(named['jain']):.3f}; "
        if named
        else ""
    )
    return (
        f"{own.recipe.name}: {learnt}{epochs} epochs, {own.updates} updates, "
        f"{own.packets / 1e6:.1f} million packets; {own.wall_s:.0f} s, {own.cpu_s:.0f} s of CPU"
    )


def _beside(tried: pl.DataFrame, name: str) -> Table:
    table = Table(title=f"{name} beside others", title_justify="left", title_style="bold")
    heads = ("scenario", "controller", "Mb/s", "utilisation", "delay ms", "loss", "Jain")
    for head in heads:
        table.add_column(head, justify="left" if head in heads[:2] else "right")
    for row in tried.iter_rows(named=True):
        numbers = ("throughput_mbps", "utilisation", "delay_ms", "loss_ratio", "jain")
        shown = ["–" if row[n] is None else significant(row[n], 3) for n in numbers]
        table.add_row(row["scenario"], row["controller"], *shown)
    return table


def _seeds_table(found: Seeds) -> Table:
    classes = sorted(found.zeros.judgement.of_classes)
    table = Table(title="Mean reward of the worst quarter, by class of networks", box=None,
                  title_justify="left", title_style="bold", pad_edge=False,
                  padding=(0, 1, 0, 0))  # fmt: skip
    table.add_column("seed")
    for head in ("decisions", "mean", *classes):
        table.add_column(head, justify="right")
    for row in found.rows:
        name = "own_queue" if row.seed is None else f"{row.seed}{'*' * row.is_stopped}"
        # Few characters: eleven classes in 80 columns.
        values = [f"{own:.2f}".replace("0.", ".") for own in row.judgement.of_classes.values()]
        style = "bold" if row is found.best else None
        table.add_row(name, str(row.decisions), f"{row.judgement.mean:.4f}", *values, style=style)
    return table


def _tenths_table(training: Training, rate_mbps: float) -> Table:
    """Ten rows, each the mean of a tenth of the episodes."""
    table = Table(title=f"{rate_mbps:g} Mb/s", title_justify="left", title_style="bold")
    for head in ("episodes", "reward", "refused %", "throughput 1/s", "beta"):
        table.add_column(head, justify="right")
    n = training.episodes.height
    for first in range(0, n, max(1, n // 10)):
        part = training.episodes.slice(first, max(1, n // 10))
        columns = ("reward", "refused_mean", "throughput_mean", "beta_mean")
        reward, refused, throughput, beta = (float(part[c].to_numpy().mean()) for c in columns)
        shown = (f"{reward:.0f}", f"{100 * refused:.1f}", f"{throughput:.1f}", f"{beta:.2f}")
        table.add_row(f"{first + 1} to {first + part.height}", *shown)
    return table
