"""`ackademy train drinc` and `ackademy train ppo`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.table import Table

from ackademy import lookup
from ackademy.cli.bounds import EPISODES_MAX, JOBS_MAX, SEED_MAX
from ackademy.cli.options import Address, words_of
from ackademy.cli.running import file_here, lacks_training, stopped
from ackademy.cli.train_progress import tenths
from ackademy.console import Console, counting_bar, task_field
from ackademy.errors import TrainingError
from ackademy.folders import check_policy_folder, new_policy_folder, work_name
from ackademy.render.numbers import significant

if TYPE_CHECKING:
    import polars as pl

    from ackademy.learn import training_log
    from ackademy.learn.deep import Opener, TrainingResult
    from ackademy.learn.running_reward import RunningReward

Learnt: TypeAlias = Literal["drinc", "ppo"]
PolicyFolder = Annotated[
    Path | None,
    typer.Option(help="The policy's folder; by default a new one in trained/.", show_default=False),
]
RecipeFile = Annotated[
    Path | None, typer.Option(help="Another recipe file.", metavar="FILE", show_default=False)
]
Scenario = Annotated[
    Path | None, typer.Option(help="Train on this scenario instead.", metavar="FILE")
]
Distribution = Annotated[
    Path | None,
    typer.Option(help="Train on this distribution of scenarios instead.", metavar="FILE"),
]
Learner = Annotated[
    list[str] | None,
    typer.Option(help="Pattern of the flows that learn, if not all do.", metavar="PATTERN"),
]
Reward = Annotated[
    str | None, typer.Option(help="Name of a reward, or file.py:function.", metavar="REWARD")
]
Seed = Annotated[
    int | None, typer.Option(min=0, max=SEED_MAX, help="Seed; the recipe's by default.")
]
Episodes = Annotated[
    int | None,
    typer.Option(min=1, max=EPISODES_MAX, help="Number of episodes; the recipe's by default."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A short training, as a check.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a training that was interrupted.")]
Threads = Annotated[
    int, typer.Option(min=0, max=JOBS_MAX, help="Threads of the simulations; 0: one per core.")
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="Local simulations, or a Ray cluster.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing policy.")]
Work = Annotated[Path, typer.Option(help="Folder of checkpoints and TensorBoard files.")]


def command(name: Learnt, default: str, about: str) -> Callable[..., None]:
    """A command that trains; typer reads its options from the signature.

    Args:
        name: of the command.
        default: the name of the policy where no folder is given.
        about: the text of `--help`.
    """

    def train(
        out: PolicyFolder = None,
        recipe: RecipeFile = None,
        scenario: Scenario = None,
        distribution: Distribution = None,
        learner: Learner = None,
        reward: Reward = None,
        seed: Seed = None,
        episodes: Episodes = None,
        quick: Quick = False,
        resume: Resume = False,
        force: Force = False,
        threads: Threads = 0,
        engine: Engine = "local",
        address: Address = None,
        work: Work = Path("runs"),
    ) -> None:
        asked = Asked(name, recipe, scenario, distribution, tuple(learner or ()), reward, seed,
                      episodes, quick)  # fmt: skip
        chosen = out or new_policy_folder(default)
        check_policy_folder(chosen, force=force)  # before the training, not behind it
        _train(asked, Place(engine, address, threads), chosen, resume=resume, work=work)

    train.__doc__ = about
    return train


drinc_command = command(
    "drinc",
    "tcp_drinc",
    """Train a TCP-Drinc-style agent by deep Q-learning with delayed credit.

    Examples:
        ackademy train drinc

        ackademy train drinc --quick --out mine

        ackademy train drinc --scenario scenarios/cellular.toml --reward mine.py:patient --out mine

        ackademy train drinc --engine ray --address 10.0.0.1:6379 --out mine
    """,
)
ppo_command = command(
    "ppo",
    "aurora_mixed",
    """Train a small policy with Aurora's observation by proximal policy optimisation.

    Examples:
        ackademy train ppo

        ackademy train ppo --quick --out mine

        ackademy train ppo --distribution distributions/pcc_rl.toml --reward aurora --out mine
    """,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a command line; `command` writes them back."""

    name: Learnt
    recipe: Path | None
    scenario: Path | None
    distribution: Path | None
    learners: tuple[str, ...]
    reward: str | None
    seed: int | None
    episodes: int | None
    quick: bool

    def source(self) -> Path | None:
        """The file of the scenario or distribution; `None` leaves the recipe's.

        Raises:
            TrainingError: if there is none.
        """
        if self.scenario is not None:
            return lookup.find(self.scenario, "scenario", TrainingError)
        if self.distribution is not None:
            return lookup.find(self.distribution, "distribution", TrainingError)
        return None

    def command(self, out: Path) -> str:
        """The command that makes the same policy."""
        options = {
            "--recipe": self.recipe,
            "--scenario": self.scenario,
            "--distribution": self.distribution,
            "--reward": self.reward,
            "--seed": self.seed,
            "--episodes": self.episodes,
        }
        words = ["ackademy", "train", self.name, *words_of(options)]
        words += [w for pattern in self.learners for w in ("--learner", pattern)]
        words += ["--quick"] * self.quick
        return shlex.join([*words, "--out", str(out)])


@dataclass(frozen=True, slots=True)
class Place:
    """Where simulations run, which changes no result."""

    engine: Literal["local", "ray"]
    address: str | None
    threads: int

    def check(self) -> None:
        """Refuse options that do not belong together.

        Raises:
            TrainingError: naming them.
        """
        if self.engine == "local" and self.address is not None:
            raise TrainingError("--address: allowed: with --engine ray")
        if self.engine == "ray" and self.threads:
            raise TrainingError("--threads: allowed: with --engine local; Ray has one per worker")

    @contextmanager
    def opened(self) -> Iterator[Opener]:
        """Opens episode sources there, as long as the context lasts.

        Raises:
            EngineError: if there is no such place.
        """
        if self.engine == "local":
            from ackademy.learn import deep

            yield deep.Here(self.threads)
            return
        from ackademy.learn import ray_cluster

        with ray_cluster.on_cluster(self.address) as make:
            yield make


def recipe_file(name: Learnt) -> Path:
    """The recipe of a command: in `recipes`, here, above, or in the source checkout.

    Raises:
        TrainingError: if there is none.
    """
    file = {"drinc": "drinc.toml", "ppo": "aurora_mixed.toml"}[name]
    return file_here(f"recipes/{file}", "a recipe with --recipe")


def _train(asked: Asked, place: Place, out: Path, *, resume: bool, work: Path) -> None:
    place.check()
    if asked.scenario is not None and asked.distribution is not None:
        raise TrainingError("--scenario and --distribution: allowed: one of them")
    try:
        if asked.reward is not None:  # refused before JAX is imported
            from ackademy.envs import rewards

            rewards.find(asked.reward)
        from ackademy.learn import checkpoint, deep, deep_recipe, training_card
    except ImportError as error:
        raise lacks_training(error) from None
    recipe = deep.with_changes(
        deep_recipe.read(asked.recipe or recipe_file(asked.name), quick=asked.quick),
        source=asked.source(),
        learners=asked.learners,
        reward=asked.reward,
        seed=asked.seed,
        episodes=asked.episodes,
    )
    wanted = {"drinc": "dqn", "ppo": "ppo"}[asked.name]
    if recipe.learner != wanted:
        raise TrainingError(f"{recipe.origin}: learner = {recipe.learner!r}: allowed: {wanted}")
    console = Console()
    folder = work / "train" / asked.name / work_name(out)
    if resume and not checkpoint.found(folder):
        told = f"no checkpoint in {folder}: the training begins anew"
        Console(stderr=True).print(told, soft_wrap=True)
    try:
        with place.opened() as make, _bar(console, out.name) as progress:
            trained = deep.train(recipe, make, folder, resume=resume, progress=progress)
        judged = training_card.write(trained, out, asked.command(out))
    except KeyboardInterrupt:
        raise stopped(interrupted(folder)) from None
    _tell(console, trained, judged, out)


def interrupted(folder: Path) -> str:
    """How to continue after an interrupt."""
    from ackademy.learn import checkpoint, training_log

    if checkpoint.found(folder):
        return f"interrupted; go on with --resume from the checkpoint in {folder}"
    return (
        f"interrupted before the first checkpoint (one every {training_log.CHECKPOINT_S:g} s): "
        "nothing is kept"
    )


@contextmanager
def _bar(console: Console, name: str) -> Iterator[training_log.Progress]:
    """Episodes and their reward in a bar in a terminal; elsewhere a line now and then."""
    if not console.is_terminal:
        yield tenths(console, name, "episodes")
        return
    with counting_bar(console, task_field("reward")) as bar:
        task = bar.add_task(f"{name}: episodes", total=None, reward="")

        def update(done: int, total: int, reward: RunningReward) -> None:
            bar.update(task, completed=done, total=total, reward=str(reward))

        yield update


def _tell(console: Console, trained: TrainingResult, judged: pl.DataFrame, out: Path) -> None:
    table = Table(title=f"{out.name} beside others", title_justify="left", title_style="bold")
    heads = ("scenario", "controller", "Mb/s", "utilisation", "delay ms", "loss", "Jain")
    for head in heads:
        table.add_column(head, justify="left" if head in heads[:2] else "right")
    for row in judged.iter_rows(named=True):
        numbers = ("throughput_mbps", "utilisation", "delay_ms", "loss_ratio", "jain")
        shown = ["–" if row[n] is None else significant(row[n], 3) for n in numbers]
        table.add_row(row["scenario"], row["controller"], *shown)
    console.print(table)
    console.say(
        f"{trained.episodes} episodes, {trained.decisions} decisions, {trained.updates} updates, "
        f"{trained.packets / 1e6:.1f} million packets; {trained.wall_s:.0f} s, "
        f"{trained.cpu_s:.0f} s of CPU\npolicy: {out}"
    )
