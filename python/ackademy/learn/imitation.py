"""A policy that answers as another one does, its teacher, as nearly as it can.

A policy with the teacher's own layers has its weights. Otherwise the teacher decides in the
episodes, and least squares fit the weights of a single layer to what it saw in the latest intervals
and what it answered, before the hyperbolic tangent. Such a policy over the law has two linear
functions that a reader can follow, and that certificates can bound, instead of a network's
thousands of weights.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ackademy.errors import TrainingError
from ackademy.learn.episode_source import F32
from ackademy.learn.layers import Dense, Flatten, tables_of
from ackademy.learn.networks import Tensors, tensor_name
from ackademy.policies import policy_files

if TYPE_CHECKING:
    from ackademy import _core
    from ackademy.learn.deep_recipe import Recipe
    from ackademy.learn.noiseless import Episode

LARGEST = 0.99
"""of a teacher's answers: the hyperbolic tangent of no finite number is 1"""
FILES = (policy_files.POLICY, policy_files.WEIGHTS)
SAME = 1e-4
"""difference up to which a last answer, as the flow is told it, is the one that was given"""


def files_of(teacher: Path) -> tuple[dict[str, bytes], str]:
    """The two files of a teacher, and its agent settings as TOML.

    Raises:
        ExchangeError: if it holds no policy of a network.
    """
    policy_files.open_policy(teacher)  # checks them
    files = {name: (teacher / name).read_bytes() for name in FILES}
    return files, policy_files.settings_of(teacher)


def check(recipe: Recipe, teacher: Path) -> None:
    """Refuse a recipe whose policy cannot be fitted to the teacher's answers.

    Raises:
        TrainingError: naming what does not fit.
        ExchangeError: if the teacher is no policy of a network.
    """
    if same(recipe, teacher) is not None:
        return
    where = f"{recipe.origin}: teacher = {str(teacher)!r}"
    kinds = [type(layer) for layer in recipe.layers]
    last = recipe.layers[-1]
    if kinds != [Flatten, Dense] or not isinstance(last, Dense) or last.activation != "tanh":
        raise TrainingError(
            f"{where}: allowed: with its layers and observation, or with layers flatten and dense, "
            "activation tanh"
        )
    seen, own = recipe.settings["observation"], _observed(teacher)
    assert isinstance(seen, dict)
    if seen["features"] != own["features"] or seen["history"] > own["history"]:
        raise TrainingError(
            f"{where}: allowed: a policy with the same features and as long a history at least"
        )
    if not any(str(name).startswith("action_") for name in seen["features"]):
        raise TrainingError(f"{where}: allowed: with features action_0 and so on")


def same(recipe: Recipe, teacher: Path) -> Tensors | None:
    """The teacher's weights, if the recipe's policy sees the same and has the same layers.

    Raises:
        ExchangeError: if the teacher is no policy of a network.
    """
    opened = policy_files.open_policy(teacher)
    seen = recipe.settings["observation"]
    if opened.layers != tables_of(recipe.layers) or _observed(teacher) != seen:
        return None
    return {name: np.asarray(value, np.float32) for name, value in opened.tensors.items()}


def _observed(teacher: Path) -> dict[str, Any]:
    """Its table `observation`."""
    found: dict[str, Any] = tomllib.loads(policy_files.settings_of(teacher))["observation"]
    return found


def fitted(recipe: Recipe, episodes: Iterable[Episode]) -> Tensors:
    """The weights that fit the answers that counted best.

    An answer counted if the flow saw it as its last one when it decided next: under contention
    alone most do not.

    Args:
        recipe: of the linear policy.
        episodes: of the teacher.

    Raises:
        TrainingError: if no answer counted.
    """
    observation = recipe.settings["observation"]
    assert isinstance(observation, dict)
    features, history = observation["features"], int(observation["history"])
    seen, answers = list[F32](), list[F32]()
    for episode in episodes:
        rows, wanted = _counted(episode.batch, features)
        seen.append(rows[:, -history:].reshape(len(rows), history * len(features)))
        answers.append(wanted)
    inputs, wanted = np.concatenate(seen).astype(np.float64), np.concatenate(answers)
    if not len(inputs):
        raise TrainingError(f"{recipe.origin}: teacher: no answer of it counts on these networks")
    before = np.arctanh(np.clip(wanted.astype(np.float64), -LARGEST, LARGEST))
    design = np.column_stack([inputs, np.ones(len(inputs))])
    found = np.linalg.lstsq(design, before)[0].astype(np.float32)
    kernel, bias = (tensor_name(1, part) for part in ("kernel", "bias"))
    return {kernel: np.ascontiguousarray(found[:-1]), bias: np.ascontiguousarray(found[-1])}


def _counted(batch: _core._Batch, features: list[str]) -> tuple[F32, F32]:
    """Observations, shape (m, history, features), and answers, (m, values), that counted."""
    answers = np.clip(batch["action"], -1.0, 1.0).astype(np.float32)
    counted = np.ones(len(answers), np.bool_)
    for value in range(answers.shape[1] if answers.ndim > 1 else 0):
        if (name := f"action_{value}") in features:
            told = batch["following"][:, -1, features.index(name)]
            counted &= np.abs(told - answers[:, value]) <= SAME
    return batch["observation"][counted], answers[counted]
