"""Trains a deep learner by its recipe and writes a policy's folder."""

from __future__ import annotations

import inspect
import os
import time
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core, interrupts
from ackademy.backends.runs import read_text
from ackademy.envs import opening, rewards
from ackademy.envs.rewarder import Rewarder
from ackademy.errors import TrainingError
from ackademy.learn import (
    deep_recipe,
    dqn,
    episode_source,
    evolution,
    layers,
    networks,
    noiseless,
    ppo,
    ranges,
    recipe_source,
    rollouts,
)
from ackademy.learn.deep_recipe import LAWS, Recipe
from ackademy.learn.episode_source import EpisodeSource, Sizes
from ackademy.learn.networks import Weights
from ackademy.learn.rollouts import Collector
from ackademy.learn.trained import Snapshot, Trained
from ackademy.learn.training_log import Checkpoints, Progress, TrainingLog, quiet
from ackademy.policies import policy_files

if TYPE_CHECKING:
    from ackademy.learn.ray_rollouts import Cluster

COLUMNS = {"dqn": dqn.COLUMNS, "evolution": evolution.COLUMNS, "ppo": ppo.COLUMNS}
"""of the curve, by learner"""


Opener: TypeAlias = "Here | Cluster"
"""makes the simulations of a recipe"""


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained policy, its curve and its counts."""

    recipe: Recipe
    source: opening.Source
    learners: tuple[str, ...]
    weights: Weights
    curve: str
    """CSV"""
    decisions: int
    episodes: int
    updates: int
    packets: int
    """data packets simulated"""
    wall_s: float
    """wall-clock time of this process; not in any file, so that equal recipes write equal bytes"""
    cpu_s: float
    """processor time of all its threads; not in any file"""
    snapshots: tuple[Snapshot, ...] = ()
    """of the last part, if any were asked for"""
    ranges: ranges.Ranges = ()
    """of the features, if the policy's guard has a use for them"""
    is_stopped: bool = False
    """whether it was stopped before its end"""


@dataclass(frozen=True, slots=True)
class Here:
    """Simulations in this process; an `Opener`.

    Args:
        threads: 0: one per core. The number changes no result.
    """

    threads: int

    def episodes(
        self, source: opening.Source, recipe: Recipe, learners: list[str]
    ) -> EpisodeSource:
        """Simulations that are stepped."""
        return _core.Episodes(
            source,
            recipe.settings_text(),
            n=recipe.simulations,
            agents=recipe.agents,
            learners=learners,
            seed=recipe.seed,
            threads=self.threads,
            credit=recipe.credit == "sent",
        )

    def rollouts(self, source: opening.Source, recipe: Recipe, learners: list[str]) -> Collector:
        """Simulations that make their decisions themselves."""
        return _core.Rollouts(
            source,
            recipe.settings_text(),
            n=recipe.simulations,
            agents=recipe.agents,
            learners=learners,
            seed=recipe.seed,
            credit=recipe.credit,
            truth=recipe.needs_truth,
            reward=recipe.core_reward,
            threads=self.threads,
        )


def train(
    recipe: Recipe,
    make: Opener,
    folder: Path,
    *,
    resume: bool = False,
    progress: Progress = quiet,
    snapshots: int = 0,
    watch: rollouts.Watch | None = None,
) -> TrainingResult:
    """Train by a recipe.

    Args:
        recipe: what to learn.
        make: where simulations run.
        folder: where checkpoints and TensorBoard's files go.
        resume: go on from the last checkpoint there, if there is one.
        progress: told about episodes, or about decisions if they are counted.
        snapshots: how many policies of the last part are returned; not by deep Q-learning.
        watch: may stop the training; by proximal policy optimisation alone.

    Raises:
        TrainingError: if the recipe does not fit the scenario, or the checkpoint not the recipe.
        ScenarioError: if the scenario or the distribution is wrong.
    """
    interrupts.check()  # pressed while JAX was imported
    source = recipe_source.read(recipe)
    learners = patterns(source, recipe)
    reward = _reward_of(recipe)
    simulations: EpisodeSource | Collector
    try:
        if recipe.is_native:
            simulations = collector = make.rollouts(source, recipe, learners)
            sizes = rollouts.sizes_of(collector)
        else:
            if not isinstance(make, Here):
                raise TrainingError(f"{recipe.origin}: learner = 'dqn': allowed: ppo on a cluster")
            simulations = env = make.episodes(source, recipe, learners)
            env.reset()
            sizes = episode_source.sizes_of(env)
    except ValueError as error:
        raise TrainingError(f"{recipe.origin}: {error}") from None
    check(recipe, sizes)
    place = Checkpoints(folder, _fingerprint(recipe, source, reward), resume)
    log = TrainingLog(COLUMNS[recipe.learner], place, progress)
    wall, cpu = time.monotonic(), time.process_time()
    packets: int | None = None
    try:
        if recipe.learner == "evolution":
            trained, packets = _searched(recipe, source, sizes, make, log, snapshots)
        elif recipe.is_native:
            assert isinstance(recipe.config, ppo.Config)  # `deep_recipe.read` allows no other
            own = rollouts.Rollouts(collector, recipe.settings_text(), recipe.layers, reward)
            trained = rollouts.train(
                own, recipe.layers, recipe.config, recipe.seed, log,
                snapshots=snapshots, watch=watch,
            )  # fmt: skip
        else:
            assert isinstance(recipe.config, dqn.Config)
            assert reward is not None  # checked above
            rewarder = Rewarder(reward, recipe.credit, env)
            rewarder.reset()
            trained = dqn.train(env, rewarder, recipe.layers, recipe.config, recipe.seed, log)
    finally:
        log.close()
    if trained.updates == 0:
        raise TrainingError(
            f"{recipe.origin}: {trained.episodes} episodes with {trained.decisions} decisions: too "
            "few for one update, so nothing was learnt; allowed: more training.episodes"
        )
    return TrainingResult(
        recipe=recipe,
        source=source,
        learners=tuple(learners),
        weights=trained.weights,
        curve=log.csv(),
        decisions=trained.decisions,
        episodes=trained.episodes,
        updates=trained.updates,
        packets=simulations.packets if packets is None else packets,
        wall_s=time.monotonic() - wall,
        cpu_s=time.process_time() - cpu,
        snapshots=trained.snapshots,
        ranges=trained.ranges if recipe.map in LAWS else (),
        is_stopped=trained.is_stopped,
    )


def fingerprint_of(recipe: Recipe) -> str:
    """Identifies a training: equal ones leave equal weights on one machine.

    Raises:
        AckademyError: if a file of the recipe cannot be read or is wrong.
    """
    source = recipe_source.read(recipe)
    return _fingerprint(recipe, source, _reward_of(recipe))


def _fingerprint(recipe: Recipe, source: opening.Source, reward: rewards.Reward | None) -> str:
    return recipe.fingerprint(_content(source), _source_of(reward), _core.CODE_HASH)


def _reward_of(recipe: Recipe) -> rewards.Reward | None:
    """The reward, if the core does not compute it."""
    if recipe.core_reward is not None:
        return None
    reward = rewards.find(recipe.reward, recipe.origin.parent)
    if rewards.needs_truth(reward):
        raise TrainingError(
            f"{recipe.origin}: reward = {recipe.reward!r}: it needs truth; allowed: "
            f"{', '.join(deep_recipe.CORE_REWARDS)}, which the core computes"
        )
    return reward


def _searched(
    recipe: Recipe,
    source: opening.Source,
    sizes: Sizes,
    make: Opener,
    log: TrainingLog,
    snapshots: int,
) -> tuple[Trained, int]:
    """What a search by evolution finds, and the data packets that it simulates."""
    config = recipe.config
    assert isinstance(config, evolution.Config)
    if not isinstance(make, Here):
        raise TrainingError(f"{recipe.origin}: learner = 'evolution': allowed: ppo on a cluster")
    learners = patterns(source, recipe)

    def runner_of(weights: networks.Tensors) -> evolution.Runner:
        files = files_of(recipe, weights)
        return lambda seed, number: noiseless.run(
            source, recipe, learners, files, seed=seed, number=number
        )

    with ThreadPoolExecutor(make.threads or os.cpu_count()) as pool:
        try:
            begin = zeros(recipe, sizes.entering)
            if recipe.teacher is not None:
                begin = taught(recipe, recipe.teacher)
            last = networks.tensor_name(len(recipe.layers) - 1, "")
            searched = [n for n in sorted(begin) if not config.last_layer or n.startswith(last)]
            search = evolution.Search(
                runner_of, begin, searched, config, recipe.seed,
                networks=recipe.simulations, pool=pool,
            )  # fmt: skip
            trained = evolution.train(search, config, log, snapshots=snapshots)
        except ValueError as error:
            raise TrainingError(f"{recipe.origin}: {error}") from None
    return trained, search.packets


def taught(recipe: Recipe, teacher: Path) -> networks.Tensors:
    """The weights of a teacher, which a search begins with.

    Raises:
        TrainingError: if it observes something else than the recipe's policy, or has other layers.
        ExchangeError: if it is no policy of a network.
    """
    opened = policy_files.open_policy(teacher)
    observed = tomllib.loads(policy_files.settings_of(teacher))["observation"]
    own = layers.tables_of(recipe.layers), recipe.settings["observation"]
    if (opened.layers, observed) != own:
        told = f"teacher = {str(teacher)!r}: allowed: with its layers and observation"
        raise TrainingError(f"{recipe.origin}: {told}")
    return {name: np.asarray(value, np.float32) for name, value in opened.tensors.items()}


def patterns(source: opening.Source, recipe: Recipe) -> list[str]:
    """Patterns of the entries that learn."""
    return list(recipe.learners) or opening.learners_of(source, None)


def check(recipe: Recipe, sizes: Sizes) -> None:
    """Refuse a network or a learner that does not fit the actions, or what gives no policy.

    Raises:
        TrainingError: naming what does not fit.
    """
    shapes = layers.shapes_through(recipe.layers, sizes.entering, str(recipe.origin))
    wanted = sizes.n_choices or sizes.action_size
    if shapes[-1] != (wanted,):
        raise TrainingError(
            f"{recipe.origin}: layers give outputs of shape {shapes[-1]}: allowed: ({wanted},), "
            "as the action map wants"
        )
    _check_policy(recipe, sizes)
    if not recipe.is_native and recipe.core_reward:
        raise TrainingError(
            f"{recipe.origin}: learner = {recipe.learner!r}: allowed: evolution, ppo, since the "
            f"reward {recipe.reward} follows from the truth of the simulation"
        )
    if recipe.teacher is not None:
        taught(recipe, recipe.teacher)
    if recipe.learner == "evolution" and sizes.n_choices:
        raise TrainingError(
            f"{recipe.origin}: learner = 'evolution': allowed: dqn, ppo, since the action map is "
            "discrete"
        )
    if recipe.learner == "dqn" and not sizes.n_choices:
        raise TrainingError(
            f"{recipe.origin}: learner = 'dqn': allowed: evolution, ppo, since the action map is "
            "continuous"
        )


def _check_policy(recipe: Recipe, sizes: Sizes) -> None:
    """Let the core check a policy of zeros, so that an invalid one is refused before training."""
    try:
        _core.Policy.load(files_of(recipe, zeros(recipe, sizes.entering)))
    except ValueError as error:
        raise TrainingError(f"{recipe.origin}: gives no policy: {error}") from None


def zeros(recipe: Recipe, entering: tuple[int, int]) -> networks.Tensors:
    """Weights of zeros, whose policy answers every observation with zeros."""
    shapes = networks.tensor_shapes(recipe.layers, entering)
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}


def files_of(recipe: Recipe, weights: Mapping[str, npt.NDArray[np.float32]]) -> dict[str, bytes]:
    """The two files of a recipe's policy of these weights."""
    settings, tables = recipe.deployed_text(), layers.tables_of(recipe.layers)
    text = policy_files.policy_text(recipe.policy_about, settings, tables, {})
    return {
        policy_files.POLICY: text.encode(),
        policy_files.WEIGHTS: policy_files.bytes_of(weights),
    }


def _content(source: opening.Source) -> str:
    """The content of a source; equal contents give equal episodes."""
    if isinstance(source, _core.Distribution):
        return source.digest
    return source.canonical()


def _source_of(reward: rewards.Reward | None) -> str:
    """The text of a reward's file, so that a changed reward is another recipe."""
    if reward is None:
        return ""  # the core's: its hash is in the fingerprint
    file = inspect.getsourcefile(reward)
    return read_text(Path(file)) if file else ""
