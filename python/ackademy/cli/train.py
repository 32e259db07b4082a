"""`ackademy train`."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from ackademy.cli import completion
from ackademy.cli.bounds import JOBS_MAX, SEED_MAX
from ackademy.cli.options import Address, EngineName
from ackademy.errors import TrainingError
from ackademy.interrupts import between_batches

PATHS = ("scenario", "distribution", "recorded", "teacher", "selection.networks")
"""fields that name a file; of one that --set names from here, and not from the recipe"""


def train_command(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe, by file or name (`ackademy list`).",
            metavar="RECIPE",
            autocompletion=completion.recipes,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The policy's folder, or of several policies; by default in trained/.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Of what the recipe lists, only networks of this name; repeatable.",
            metavar="NAME",
        ),
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            help="Train on this scenario or distribution instead.",
            metavar="FILE",
            autocompletion=completion.scenarios,
        ),
    ] = "",
    learner: Annotated[
        list[str] | None,
        typer.Option(help="Pattern of the flows that learn, if not all do.", metavar="PATTERN"),
    ] = None,
    reward: Annotated[
        str, typer.Option(help="Name of a reward, or file.py:function.", metavar="REWARD")
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEED_MAX - 1000, help="Seed, or the first; else the recipe's."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Another value for a field of the recipe, as in training.episodes=500.",
            metavar="FIELD=VALUE",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short training, as a check.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a training that was interrupted.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing policy.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=JOBS_MAX, help="Threads or processes; one per core by default."),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Local simulations, or a Ray cluster.")
    ] = "local",
    address: Address = None,
    work: Annotated[
        Path, typer.Option(help="Folder of checkpoints, finished stages and TensorBoard files.")
    ] = Path("runs"),
) -> None:
    """Train a controller by a recipe, and write it as a policy.

    A recipe says what learns, on which networks, with which reward and settings.

    Examples:
        ackademy train drinc

        ackademy train aurora_mixed --quick --out mine

        ackademy train aurora_mixed --on pcc_rl --reward mine.py:patient --out mine

        ackademy train flagship --set selection.seeds=1 --set training.decisions=2000000

        ackademy train drl_cc --only s1

        ackademy train lp_tcp --only L=50,K=1
    """
    from ackademy import lookup
    from ackademy.cli import trainers
    from ackademy.cli.options import overrides
    from ackademy.files import check_output_folder, read_text

    file = lookup.find(recipe, "recipe", TrainingError)
    try:
        described = tomllib.loads(read_text(file, error=TrainingError))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TrainingError(f"{file}: {error}") from None
    kind = described.get("learner")
    has_selection = "selection" in described or any(
        word.strip().startswith("selection.") for word in settings or ()
    )
    selects = kind in ("ppo", "evolution") and has_selection
    run = trainers.KINDS.get("selected" if selects else str(kind))
    if run is None:
        allowed = ", ".join(name for name in trainers.KINDS if name != "selected")
        raise TrainingError(f"{file}: learner = {kind!r}: allowed: {allowed}")
    if (engine != "local" or address) and run is not trainers.KINDS["dqn"]:
        raise TrainingError("--engine, --address: allowed: with a recipe of one policy by dqn, ppo")
    check_output_folder(work)
    changes: dict[str, object] = {}
    place = None
    if on:
        place, changes = trainers.source(on)
        changes["learners"] = None
    for path, text in overrides(settings).items():
        value = tomllib.loads(f"x = {text}")["x"]
        is_here = path in PATHS and Path(str(value)).exists()
        changes[path] = str(Path(value).absolute()) if is_here else value
    changes |= {"seed": seed} if seed is not None else {}
    changes |= {"reward": reward} if reward else {}
    changes |= {"learners": list(learner)} if learner else {}
    words = [recipe, *_words("--only", only), *_words("--on", [on] if on else [])]
    words += [*_words("--learner", learner), *_words("--reward", [reward] if reward else [])]
    words += [*_words("--seed", [] if seed is None else [str(seed)]), *_words("--set", settings)]
    asked = trainers.Asked(
        name=file.stem,
        file=file,
        changes=changes,
        on=place,
        only=tuple(only or ()),
        reward=reward,
        out=out,
        command=shlex.join(["ackademy", "train", *words, *["--quick"] * quick]),
        is_quick=quick,
        is_resumed=resume,
        is_forced=force,
        jobs=jobs,
        engine=engine,
        address=address,
        work=work / "train",
    )
    with between_batches():
        run(asked)


def _words(option: str, values: list[str] | None) -> list[str]:
    return [word for value in values or [] for word in (option, value)]
