"""Reads recipes of LP-TCP's loss predictor: setups of the paper, or networks of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ackademy.errors import TrainingError
from ackademy.files import file_name
from ackademy.learn.lp_tcp.collecting import Phase, Recording
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.network import Task
from ackademy.learn.lp_tcp.result import Recipe
from ackademy.learn.lp_tcp.setups import Setup
from ackademy.learn.recipe_toml import (
    NONE,
    Changes,
    Count,
    Positive,
    listed,
    load,
    only,
    settings,
    table,
    text,
    whole,
)
from ackademy.toml_table import toml_value

KEYS = ("about", "learner", "seed", "training", "quick", "network")
OF_NETWORKS = ("duration_s", "trees", "min_leaf", "max_leaves", "runs")
"""those that count for a network of one's own"""
SEED_MAX = 2**32 - 1
"""of a fit"""


@dataclass(frozen=True, slots=True)
class Training:
    """The fields of `training`."""

    duration_s: Positive = 5000.0
    pieces: Count = 0
    phase: str = "ca"
    delivered_per_loss: int = 49
    trees: int = 100
    min_leaf: int = 5
    max_leaves: Count = 0
    runs: int = 20

    @property
    def growth(self) -> Growth:
        """Of the forest."""
        return Growth(trees=self.trees, min_samples_leaf=self.min_leaf, max_leaves=self.max_leaves)


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
    given = settings(Training(), training, path)
    if given.phase not in ("all", "ca"):
        raise TrainingError(f"{path}: training.phase = {given.phase!r}: allowed: all, ca")
    phase = cast("Phase", given.phase)
    recording = Recording(setup, seed, given.duration_s, given.pieces, phase)
    return Recipe(recording, given.delivered_per_loss, given.growth, given.runs)


def _task(
    path: Path, network: dict[str, object], training: dict[str, object], seed: int, where: str
) -> Task:
    only(training, OF_NETWORKS, f"{path}: training, with a scenario")
    given = settings(Training(), training, path)
    pairs = table(network, "set", where).items()
    return Task(
        path=path.parent / text(network, "scenario", where),
        seed=seed,
        duration_s=given.duration_s,
        growth=given.growth,
        runs=given.runs,
        settings=tuple((name, toml_value(value)) for name, value in pairs),
    )
