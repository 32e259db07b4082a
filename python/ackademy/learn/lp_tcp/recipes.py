"""Reads recipes of LP-TCP's loss predictor: setups of the paper, or networks of one's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

from ackademy.errors import TrainingError
from ackademy.files import file_name
from ackademy.learn.lp_tcp.collecting import Phase, Recording
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.network import Task
from ackademy.learn.lp_tcp.result import Recipe
from ackademy.learn.lp_tcp.setups import Setup
from ackademy.learn.recipe_toml import NONE, Changes, listed, load, only, table, text, whole
from ackademy.toml_table import toml_value

KEYS = ("about", "learner", "seed", "training", "quick", "network")
USUAL = {
    "duration_s": 5000.0,
    "pieces": 0,
    "phase": "ca",
    "delivered_per_loss": 49,
    "trees": 100,
    "min_leaf": 5,
    "max_leaves": 0,
    "runs": 20,
}
"""the fields of `training`"""
MOST = {"pieces": 1000, "trees": 10_000, "runs": 100_000}
MAY_BE_ZERO = ("pieces", "max_leaves")
OF_NETWORKS = ("duration_s", "trees", "min_leaf", "max_leaves", "runs")
"""those that count for a network of one's own"""
SEED_MAX = 2**32 - 1
"""of a fit"""


def read(path: Path, *, quick: bool = False, changes: Changes = NONE) -> dict[str, Recipe | Task]:
    """What to train, by name.

    Args:
        path: a TOML file. A network without a scenario is a setup of the paper.
        quick: take `[quick]` for the fields of `[training]` that it names.
        changes: as of `recipe_toml.load`.

    Raises:
        TrainingError: if it cannot be read, or a field is missing, unknown or not allowed.
    """
    values = load(path, changes)
    only(values, KEYS, path)
    shorter = table(values, "quick", path) if quick else {}
    training = {**table(values, "training", path), **shorter}
    seed = whole(values.get("seed"), "seed", 0, path, SEED_MAX)
    found: dict[str, Recipe | Task] = {}
    for where, network in listed(values.get("network"), "network", path):
        only(network, ("name", "scenario", "set"), where)
        name = text(network, "name", where)
        if name in found:
            raise TrainingError(f"{where}: name = {name!r}: allowed: every name once")
        if "scenario" in network:
            found[name] = _task(path, network, training, seed, where)
        else:
            found[name] = _setup(Setup.parse(name), training, seed, path)
    return found


def folder_of(own: Recipe | Task, name: str) -> str:
    """The name of its policy's folder."""
    return file_name(name) if isinstance(own, Task) else own.recording.setup.folder


def _setup(setup: Setup, training: dict[str, object], seed: int, path: Path) -> Recipe:
    given = _checked({**USUAL, **training}, path)
    phase = str(given["phase"])
    if phase not in ("all", "ca"):
        raise TrainingError(f"{path}: training.phase = {phase!r}: allowed: all, ca")
    recording = Recording(
        setup, seed, float(given["duration_s"]), int(given["pieces"]), cast("Phase", phase)
    )
    return Recipe(recording, int(given["delivered_per_loss"]), _growth(given), int(given["runs"]))


def _task(
    path: Path, network: dict[str, object], training: dict[str, object], seed: int, where: str
) -> Task:
    only(training, OF_NETWORKS, f"{path}: training, with a scenario")
    given = _checked({**USUAL, **training}, path)
    pairs = table(network, "set", where).items()
    return Task(
        path=path.parent / text(network, "scenario", where),
        seed=seed,
        duration_s=float(given["duration_s"]),
        growth=_growth(given),
        runs=int(given["runs"]),
        settings=tuple((name, toml_value(value)) for name, value in pairs),
    )


def _growth(given: dict[str, float | str]) -> Growth:
    return Growth(
        trees=int(given["trees"]),
        min_samples_leaf=int(given["min_leaf"]),
        max_leaves=int(given["max_leaves"]),
    )


def _checked(training: dict[str, object], path: Path) -> dict[str, float | str]:
    only(training, tuple(USUAL), f"{path}: training")
    found: dict[str, float | str] = {}
    for name, value in training.items():
        if name == "phase":
            found[name] = str(value)
        elif name == "duration_s":
            if isinstance(value, bool) or not isinstance(value, int | float):
                value = -1.0
            if not 1.0 <= value <= sys.float_info.max:
                told = f"training.{name} = {training[name]!r}: allowed: a number from 1"
                raise TrainingError(f"{path}: {told}")
            found[name] = float(value)
        else:
            least, most = int(name not in MAY_BE_ZERO), MOST.get(name, 100_000_000)
            found[name] = whole(value, f"training.{name}", least, path, most)
    return found
