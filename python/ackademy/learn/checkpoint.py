"""Checkpoints of a training: every action so far, and the learner's arrays.

A simulation cannot be stored half-way, but it can be repeated: it is a function of its seed and
of the actions it was given. So a checkpoint holds the actions, and resuming simulates once more,
without learning, what was simulated before. It takes the time of the simulations, which is a small
part of a training's, and every array of the learner's own follows from it: open decisions, the
replay memory, the transitions collected so far. Only weights and optimiser are stored.

Random numbers need no storing: those of a step are drawn from (seed, purpose, step).
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from ackademy import files
from ackademy.errors import TrainingError
from ackademy.learn.episode_source import Actions, EpisodeSource
from ackademy.toml_table import toml_value

PREFIX = "checkpoint-"
ARRAYS, STATE = "arrays.safetensors", "state.toml"


class ActionLog:
    """The choices of the due agents, step by step."""

    def __init__(self) -> None:
        self.steps = 0
        self._actions: list[npt.NDArray[np.uint8]] = []

    def add(self, env: EpisodeSource, actions: Actions) -> None:
        """Record the actions of the next `step`.

        Args:
            env: as it stands, decisions due.
            actions: shape (n, agents).
        """
        self.steps += 1
        # At most 256 choices (the steps of `cwnd_steps`): a byte each.
        self._actions.append(actions[env.due].astype(np.uint8))

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a checkpoint."""
        if len(self._actions) > 1:
            self._actions = [np.concatenate(self._actions)]
        return {"action_log.actions": self._actions[0]} if self._actions else {}


class Replayed:
    """Replays the recorded actions, in the order of the steps."""

    def __init__(self, steps: int, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self.steps = steps
        self._actions = arrays.get("action_log.actions", np.zeros(0, np.uint8))
        self._at = 0

    def next(self, env: EpisodeSource) -> Actions:
        """Actions of the next step.

        Raises:
            TrainingError: if the simulations ask for other decisions than they did then.
        """
        due = env.due
        end = self._at + int(due.sum())
        if end > len(self._actions):
            raise TrainingError("the checkpoint does not fit these simulations: start anew")
        actions = np.zeros(due.shape, np.int64)
        actions[due] = self._actions[self._at : end]
        self._at = end
        return actions


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a training after a row of its curve."""

    state: Mapping[str, object]
    """counters, and `recipe`, which names what is learnt from what"""
    arrays: Mapping[str, npt.NDArray[np.generic]]
    curve: str
    """the rows so far, as CSV"""

    def counter(self, name: str) -> int:
        """A counter of the state."""
        value = self.state.get(name)
        if not isinstance(value, int):
            raise TrainingError(f"checkpoint: {name} = {value!r}: allowed: a whole number")
        return value


def save(checkpoint: Checkpoint, folder: Path, step: int) -> None:
    """Write a checkpoint atomically, then remove the older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{PREFIX}{os.getpid()}"
    for left in folder.glob(f".{PREFIX}*"):  # of saves that were killed
        shutil.rmtree(left, ignore_errors=True)
    made.mkdir()
    # Not `ascontiguousarray`, which would make Adam's count, a scalar, a vector of one.
    arrays = {name: np.asarray(array, order="C") for name, array in checkpoint.arrays.items()}
    files.write(made / ARRAYS, safetensors.numpy.save(arrays))
    files.write(made / "curve.csv", checkpoint.curve)
    lines = [f"{name} = {toml_value(value)}" for name, value in checkpoint.state.items()]
    files.write(made / STATE, "\n".join(lines) + "\n")
    older = _all(folder)
    final = folder / f"{PREFIX}{step:010d}"
    shutil.rmtree(final, ignore_errors=True)
    made.rename(final)
    for path in older:
        if path != final:
            shutil.rmtree(path, ignore_errors=True)


def load(folder: Path, recipe: str) -> Checkpoint | None:
    """The last checkpoint; `None` if there is none.

    Args:
        folder: where checkpoints lie.
        recipe: which one it must be of.

    Raises:
        TrainingError: if it cannot be read or is of another recipe.
    """
    found = _all(folder)
    if not found:
        return None
    path = found[-1]
    try:
        state = tomllib.loads((path / STATE).read_text(encoding="utf-8"))
        arrays = safetensors.numpy.load((path / ARRAYS).read_bytes())
        curve = (path / "curve.csv").read_text()
    except (OSError, ValueError, KeyError, safetensors.SafetensorError) as error:
        raise TrainingError(f"{path}: {error}") from None
    if state.get("recipe") != recipe:
        raise TrainingError(
            f"{path}: was begun with another recipe, reward, scenario or version: "
            "leave out --resume to start anew, or choose another --out"
        )
    return Checkpoint(state, arrays, curve)


def found(folder: Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return bool(_all(folder))


def discard(folder: Path) -> None:
    """Remove the checkpoints of a folder, and what killed saves left there."""
    for path in (*_all(folder), *folder.glob(f".{PREFIX}*")):
        shutil.rmtree(path, ignore_errors=True)


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []
