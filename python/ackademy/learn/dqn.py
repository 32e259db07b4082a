"""Deep Q-learning with delayed credit (Mnih et al. 2015; the buffer is TCP-Drinc's).

One network and one memory for all agents of all simulations. Every agent has its own history
and decision clock; `credit` finds the reward of each decision and the next observation of the
same agent. So the target of a transition is

    r + discount * max_a Q_target(X_{t+1}, a)

with one discount per decision of that agent. No transition ends an episode: episodes end because
their time is up, and the value of what would have followed counts (Pardo et al. 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import Array, lax

from ackademy import interrupts
from ackademy.envs.rewarder import Rewarder
from ackademy.learn import networks
from ackademy.learn.checkpoint import ActionLog, Replayed
from ackademy.learn.credit import OpenDecisions, Transitions
from ackademy.learn.episode_source import F32, I64, EpisodeSource
from ackademy.learn.layers import Layer
from ackademy.learn.networks import Weights
from ackademy.learn.recipe_toml import Count, Share
from ackademy.learn.trained import Trained
from ackademy.learn.training_log import Means, TrainingLog

COLUMNS = (
    "decisions",
    "episodes",
    "updates",
    "reward",
    "throughput_mbps",
    "rtt_ms",
    "loss_ratio",
    "epsilon",
    "td_loss",
    "value",
)
"""of the curve: counters, then means since the row before"""
ACTING, LEARNING = 1, 2
"""purposes of random numbers"""
Batches: TypeAlias = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to learn. All numbers are *proposed*: the paper prints none."""

    episodes: int = 400
    """to be finished, over all simulations"""
    memory: int = 50_000
    """transitions"""
    warmup: Count = 1_000
    """transitions before the first update"""
    batch: int = 32
    """transitions per update"""
    updates_per_decision: Share = 0.25
    """of any agent"""
    updates_at_once: int = 16
    """run in one compiled call"""
    target_every: int = 500
    """updates between copies to the target network"""
    learning_rate: float = 2.5e-4
    """Adam's"""
    discount: Share = 0.9
    """per decision of one agent"""
    huber: float = 1.0
    """error beyond which the loss grows linearly"""
    epsilon_start: Share = 1.0
    """share of random actions at the beginning"""
    epsilon_end: Share = 0.05
    """and after `epsilon_decisions`"""
    epsilon_decisions: Count = 20_000
    """over which it falls linearly"""
    row_every: int = 4_000
    """transitions between rows of the curve"""

    def epsilon(self, decisions: int) -> float:
        """Share of random actions after so many decisions."""
        part = min(1.0, decisions / max(1, self.epsilon_decisions))
        return self.epsilon_start + part * (self.epsilon_end - self.epsilon_start)


def train(
    env: EpisodeSource,
    rewarder: Rewarder,
    layers: tuple[Layer, ...],
    config: Config,
    seed: int,
    log: TrainingLog,
) -> Trained:
    """Learn until enough episodes have ended.

    The same seed gives the same weights on one machine, killed and resumed or not.

    Args:
        env: simulations with discrete actions, freshly reset.
        rewarder: computes their rewards.
        layers: of the network; the last one has an output per action.
        config: how to learn.
        seed: of the network's first weights, of exploration and of sampling.
        log: of columns `COLUMNS`.
    """
    entering = env.observation.shape[2:]
    learner = _Learner(layers, config, networks.begin(layers, entering, jax.random.key(seed)))
    memory, open_decisions, action_log, means = (
        Memory(config.memory, entering),
        OpenDecisions(env),
        ActionLog(),
        Means(),
    )
    past: Replayed | None = None
    if (kept := log.resumed) is not None:
        learner.restore(kept.counter("updates"), kept.arrays)
        past = Replayed(kept.counter("step"), kept.arrays)
    decisions = episodes = transitions = 0

    while episodes < config.episodes:
        interrupts.check()
        if past is not None and action_log.steps < past.steps:
            actions = past.next(env)
        else:
            rng = np.random.default_rng((seed, ACTING, action_log.steps))
            actions = explore(env, learner.greedy(env), config.epsilon(decisions), rng)
        action_log.add(env, actions)
        open_decisions.open(env, actions)
        decisions += int(env.due.sum())
        env.step(actions)
        rewards = rewarder.compute()
        done = open_decisions.close(env, rewards, rewarder.reward_decision)
        memory.add(done)
        row, transitions = transitions // config.row_every, transitions + len(done)
        episodes += int(env.over.sum())
        env.progress = min(1.0, episodes / config.episodes)

        owed = 0 if transitions < config.warmup else int(transitions * config.updates_per_decision)
        while learner.updates + config.updates_at_once <= owed:
            rng = np.random.default_rng((seed, LEARNING, learner.updates))
            loss, value = learner.learn(memory.sample(config.updates_at_once, config.batch, rng))
            means.add("td_loss", loss)
            means.add("value", value)

        means.note(env, done.reward)
        if transitions // config.row_every > row:
            if past is not None and action_log.steps <= past.steps:
                means.clear()
                continue
            counters = {"decisions": decisions, "episodes": episodes, "updates": learner.updates}
            log.row({**counters, **means.take(), "epsilon": config.epsilon(decisions)})
            log.keep(
                action_log.steps,
                {"updates": learner.updates},
                lambda: {**learner.arrays(), **action_log.arrays()},
            )
            log.progress(min(episodes, config.episodes), config.episodes)

    return Trained(learner.weights, decisions, episodes, learner.updates)


def explore(env: EpisodeSource, greedy: I64, epsilon: float, rng: np.random.Generator) -> I64:
    """The greedy actions, each replaced by a random one with probability `epsilon`."""
    guesses = rng.integers(env.n_choices, size=greedy.shape)
    return np.where(rng.random(greedy.shape) < epsilon, guesses, greedy)


class Memory:
    """The last transitions, in a ring."""

    def __init__(self, size: int, entering: tuple[int, ...]) -> None:
        self._size, self._added = size, 0
        self._observation = np.zeros((size, *entering), np.float32)
        self._following = np.zeros((size, *entering), np.float32)
        self._action = np.zeros(size, np.int32)
        self._reward = np.zeros(size, np.float32)

    def add(self, new: Transitions) -> None:
        """Add transitions, overwriting the oldest."""
        places = (self._added + np.arange(len(new))) % self._size
        self._observation[places] = new.observation
        self._following[places] = new.following
        self._action[places] = new.action
        self._reward[places] = new.reward
        self._added += len(new)

    def sample(self, updates: int, batch: int, rng: np.random.Generator) -> Batches:
        """Transitions at random, each field of shape (updates, batch, ...)."""
        chosen = rng.integers(min(self._added, self._size), size=(updates, batch))
        fields = (self._observation, self._action, self._reward, self._following)
        observation, action, reward, following = (jnp.asarray(field[chosen]) for field in fields)
        return observation, action, reward, following


class _Learner:
    """Network, target network and optimiser."""

    def __init__(self, layers: tuple[Layer, ...], config: Config, weights: Weights) -> None:
        self.weights, self.updates = weights, 0
        self._layers, self._config = layers, config
        self._target = weights
        self._optimiser = optax.adam(config.learning_rate).init(weights)

    def greedy(self, env: EpisodeSource) -> I64:
        """The best action of every agent that is due; 0 elsewhere."""
        due = env.due
        seen = env.observation[due]
        actions = np.zeros(due.shape, np.int64)
        values = networks.in_slices(self._layers, self.weights, seen, len(due))
        actions[due] = values.argmax(axis=1)
        return actions

    def learn(self, batches: Batches) -> tuple[F32, F32]:
        """One update per batch; returns the loss and the mean value of each."""
        self.weights, self._target, self._optimiser, loss, value = _updates(
            self._layers, self._config, self.weights, self._target, self._optimiser,
            self.updates, batches,
        )  # fmt: skip
        self.updates += len(loss)
        return np.asarray(loss), np.asarray(value)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a checkpoint."""
        return networks.leaves((self.weights, self._target, self._optimiser), "learner")

    def restore(self, updates: int, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Restore a checkpoint."""
        self.updates = updates
        before = (self.weights, self._target, self._optimiser)
        found = networks.with_leaves(before, arrays, "learner")
        self.weights, self._target, self._optimiser = found


@partial(jax.jit, static_argnums=(0, 1))
def _updates(
    layers: tuple[Layer, ...],
    config: Config,
    weights: Weights,
    target: Weights,
    optimiser: Any,  # noqa: ANN401  # Optax's state, a tree of arrays
    updates: Array | int,
    batches: Batches,
) -> tuple[Weights, Weights, Any, Array, Array]:
    """As many updates as there are batches, in one compiled call."""
    adam = optax.adam(config.learning_rate)

    def loss(weights: Weights, target: Weights, batch: Batches) -> tuple[Array, Array]:
        observation, action, reward, following = batch
        values = networks.apply(layers, weights, observation)  # (batch, choices)
        value = jnp.take_along_axis(values, action[:, None], axis=1)[:, 0]
        best = networks.apply(layers, target, following).max(axis=1)
        wanted = lax.stop_gradient(reward + config.discount * best)
        return optax.huber_loss(value, wanted, delta=config.huber).mean(), value.mean()

    def update(carry: Any, batch: Batches) -> tuple[Any, tuple[Array, Array]]:  # noqa: ANN401
        weights, target, optimiser, count = carry
        (lost, value), gradient = jax.value_and_grad(loss, has_aux=True)(weights, target, batch)
        change, optimiser = adam.update(gradient, optimiser, weights)
        weights = optax.apply_updates(weights, change)
        count = count + 1
        copies = count % config.target_every == 0
        target = jax.tree.map(lambda new, old: jnp.where(copies, new, old), weights, target)
        return (weights, target, optimiser, count), (lost, value)

    begin = (weights, target, optimiser, jnp.asarray(updates, jnp.int32))
    (weights, target, optimiser, _), (lost, value) = lax.scan(update, begin, batches)
    return weights, target, optimiser, lost, value
