"""Episodes in which a policy decides as it is deployed, without the noise of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ackademy import _core
from ackademy.envs.opening import Source

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe

NO_NOISE = -1e3
"""logarithm of a standard deviation of 0"""
DECISIONS = 1 << 17
"""most of an episode: more than 8 flows make in 60 s"""
UNUSABLE = -1.0
"""reward of a network on which no decision completes: the least there is"""
WORST = 0.25
"""share of a class that counts as its worst"""


@dataclass(frozen=True, slots=True)
class Episode:
    """What an episode gave."""

    batch: _core._Batch
    decisions: int
    """made, completed or not"""
    packets: int

    @property
    def reward(self) -> float | None:
        """The mean over the completed decisions of all flows that learn; `None` without one."""
        rewards = self.batch["reward"]
        assert rewards is not None  # the recipe's reward is the core's
        return math.fsum(rewards) / len(rewards) if len(rewards) else None


def run(
    source: Source,
    recipe: Recipe,
    learners: Sequence[str],
    files: Mapping[str, bytes],
    *,
    seed: int = 0,
    number: int = 0,
) -> Episode:
    """Run an episode.

    Args:
        source: a scenario, or the distribution that it is drawn from, as at the end of training.
        recipe: its reward is one that the core computes.
        learners: patterns of the flows that learn.
        files: of the policy.
        seed: of everything that is drawn.
        number: of the simulation, which the draws follow from as well.

    Raises:
        ValueError: if the policy cannot be evaluated, or the network cannot be run.
    """
    rollouts = _core.Rollouts(
        source, recipe.deployed_text(), n=1, agents=recipe.agents, learners=learners,
        seed=seed, credit=recipe.credit, reward=recipe.core_reward, first=number, threads=1,
    )  # fmt: skip
    rollouts.progress = 1.0
    quiet = np.full(rollouts.action_size, NO_NOISE, np.float32)
    batch = rollouts.collect(files, quiet, DECISIONS, episodes=1)
    return Episode(batch, rollouts.decisions, rollouts.packets)


def worst_quarter(rewards: Sequence[float]) -> float:
    """Mean of the lowest quarter of the values, of one at least."""
    count = math.ceil(WORST * len(rewards))
    return math.fsum(sorted(rewards)[:count]) / count
