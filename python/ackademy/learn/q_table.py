"""Q-learning with a table (Watkins 1989) on a Gymnasium environment with a box of observations.

    log = learn(CubicBeta(rate_mbps=4.0), Recipe(), seed=1)

The box is cut into equal bins, a bin of each dimension names a state, and the table holds a value
for each state and action:

    Q(s, a) <- (1 - learning_rate) Q(s, a) + learning_rate (r + discount max_a' Q(s', a'))

Actions are random with probability epsilon, which stays at 1 until `decay_start` and then falls by
equal steps to 0 after the last episode. Episodes are truncated, not terminated: their last
update has a successor like every other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ackademy.learn.recipe import Recipe

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Log:
    """Observations and rewards of a training."""

    observations: Floats
    """shape (episodes, steps, dimensions): after each step"""
    rewards: Floats
    """shape (episodes, steps)"""


def learn(
    env: gym.Env[Floats, Any],
    recipe: Recipe,
    seed: int,
    progress: Callable[[int], None] = lambda episode: None,
) -> Log:
    """Learn for `recipe.episodes` episodes.

    Args:
        env: with a bounded `Box` of observations and `Discrete` or `MultiDiscrete` actions.
        recipe: how.
        seed: of exploration and of ties between equal values.
        progress: told how many episodes are done.

    Returns:
        Observations and rewards of every step.
    """
    rng = np.random.default_rng(seed)
    state_of = _states(env.observation_space, recipe.bins)
    actions = _actions(env.action_space)
    table = _table(recipe, env.observation_space, len(actions), rng)
    shape = (recipe.episodes, recipe.steps)
    log = Log(np.empty((*shape, *(env.observation_space.shape or ()))), np.empty(shape))
    epsilon = 1.0
    for episode in range(recipe.episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        state = state_of(observation)
        explores = rng.random(recipe.steps) < epsilon
        guesses = rng.integers(len(actions), size=recipe.steps)
        ties = rng.random(recipe.steps)
        for step in range(recipe.steps):
            values = table[state]
            action = int(guesses[step]) if explores[step] else _best(values, ties[step])
            observation, reward, _, _, _ = env.step(actions[action])
            state = state_of(observation)
            target = float(reward) + recipe.discount * max(table[state])
            values[action] += recipe.learning_rate * (target - values[action])
            log.observations[episode, step] = observation
            log.rewards[episode, step] = reward
        if episode >= recipe.decay_start:
            epsilon = max(0.0, epsilon - 1.0 / (recipe.episodes - recipe.decay_start))
        progress(episode + 1)
    return log


def _best(values: list[float], tie: float) -> int:
    """The action of the largest value; `tie` in [0, 1) chooses among equal ones."""
    largest = max(values)
    if values.count(largest) == 1:
        return values.index(largest)
    equal = [action for action, value in enumerate(values) if value == largest]
    return equal[int(tie * len(equal))]


def _states(space: gym.Space[Any], bins: int) -> Callable[[Floats], int]:
    """The state's number of each observation."""
    assert isinstance(space, spaces.Box)
    low, scale = space.low, bins / (space.high - space.low)
    weights = bins ** np.arange(low.size)[::-1]

    def state_of(observation: Floats) -> int:
        # A value on a bin's edge belongs above it, whatever its last bit says.
        places = np.minimum(((observation - low) * scale + 1e-9).astype(np.int64), bins - 1)
        return int(places @ weights)

    return state_of


def _actions(space: gym.Space[Any]) -> list[Any]:
    if isinstance(space, spaces.MultiDiscrete):
        return [np.array(action) for action in np.ndindex(*space.nvec)]
    assert isinstance(space, spaces.Discrete)
    return [int(space.start) + index for index in range(int(space.n))]


def _table(
    recipe: Recipe, space: gym.Space[Any], n_actions: int, rng: np.random.Generator
) -> _Table:
    draw = (lambda: rng.uniform(-2.0, 0.0, n_actions).tolist()) if recipe.random_start else None
    return _Table(draw or (lambda: [0.0] * n_actions))


class _Table(dict[int, list[float]]):
    """Values of the actions by state; created on first visit, since most states have none."""

    def __init__(self, first: Callable[[], list[float]]) -> None:
        super().__init__()
        self._first = first

    def __missing__(self, state: int) -> list[float]:
        values = self[state] = self._first()
        return values
