"""Proximal policy optimisation (Schulman et al. 2017) over agents with asynchronous decisions.

Decisions of one agent in one episode are a stream. `credit` completes them in order; advantages
(GAE, Schulman et al. 2016) run along each stream, and where a stream is cut, by the end of its
episode or of the batch, the value of what the agent saw next stands for the rest: an episode ends
because its time is up.

Continuous actions are Gaussian around the network's outputs, with a learned spread that does
not depend on the observation; the flow gets the value clipped to [-1, 1], as the core would.
A deployed policy answers with the outputs themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import Array, lax

from ackademy.learn import critic, networks
from ackademy.learn.credit import Transitions
from ackademy.learn.episode_source import (
    F32,
    F64,
    I64,
    Sizes,
)
from ackademy.learn.layers import Dense, Layer
from ackademy.learn.recipe_toml import Count, Positive, Share

COLUMNS = (
    "decisions",
    "episodes",
    "updates",
    "reward",
    "throughput_mbps",
    "rtt_ms",
    "loss_ratio",
    "entropy",
    "policy_loss",
    "value_loss",
    "explained",
    "divergence",
    "clipped",
)
"""of the curve: counters, then means since the row before"""
LEARNING = 2
"""purpose of random numbers"""
Parameters: TypeAlias = dict[str, Any]
"""`policy` and `value`: weights; `log_std`: shape (action_size,)"""
LOG_ROOT = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to learn; defaults are *proposed*, near those of the paper's continuous tasks."""

    episodes: int = 1_000
    """to be finished, over all simulations"""
    decisions: Count = 0
    """to be made, over all simulations, instead of finishing `episodes`; 0: `episodes` counts"""
    horizon: int = 8_192
    """transitions per batch, over all agents"""
    epochs: int = 8
    """passes over a batch"""
    minibatch: int = 512
    """transitions per step of the optimiser; divides `horizon`"""
    learning_rate: float = 3e-4
    """Adam's"""
    discount: Share = 0.99
    """per decision of one agent"""
    trace: Share = 0.95
    """GAE's lambda"""
    clip: Share = 0.2
    """clipping range of the ratio of probabilities"""
    entropy: float = 0.0
    """weight of the bonus for entropy"""
    value_weight: float = 0.5
    """of the value's squared error"""
    gradient_norm: float = 0.5
    """gradients are clipped to this norm"""
    spread: Positive = 0.5
    """standard deviation of continuous actions at the beginning"""
    reward_scale: float = 1.0
    """factor of rewards before anything is learnt from them"""
    reward_limit: float = 0.0
    """largest amount of a reward, then; 0: none. A few intervals far beyond the link's rate would
    otherwise outweigh all others"""
    learning_rate_decay: Share = 0.0
    """share of the learning rate that is gone at the end; it falls linearly over the decisions, or
    over the episodes if their number is not given"""
    entropy_decay: Share = 0.0
    """the same of the weight of the bonus for entropy"""
    spread_floor: float = 0.0
    """least standard deviation of continuous actions; 0: none"""
    divergence_stop: float = 0.0
    """once a minibatch's divergence is above it, the rest of the update is left out; 0: never"""
    advantages_per_class: bool = False
    """whether advantages are normalised among the decisions of one class of scenarios, before they
    are among those of a minibatch: a class with large rewards does not outweigh the others"""
    class_weight_max: float = 0.0
    """advantages are multiplied by what makes each class of scenarios count alike, at most by this:
    a class with few flows, or short episodes, has few decisions; 0: all decisions count alike"""
    critic_units: Count = 0
    """units of each of the two hidden layers of a value that sees the simulation's truth beside the
    observation (asymmetric actor and critic, Pinto et al. 2018); 0: the value has the policy's
    layers and sees what the policy sees"""

    def done(self, decisions: int, episodes: int) -> tuple[int, int]:
        """What is done of what is to be done, in decisions or in episodes; at most all of it."""
        if self.decisions > 0:
            return min(decisions, self.decisions), self.decisions
        return min(episodes, self.episodes), self.episodes

    def progress(self, decisions: int, episodes: int) -> float:
        """Of the training, in [0, 1]."""
        done, total = self.done(decisions, episodes)
        return done / total


def advantages(
    batch: Transitions, value: F32, following: F32, discount: float, trace: float
) -> F64:
    """Generalised advantages along each stream.

    Args:
        batch: shape (m,), in any order.
        value: shape (m,): of what was seen when deciding.
        following: shape (m,): of what the same agent saw next.
        discount: per decision.
        trace: lambda; 0: one step only.

    Returns:
        Shape (m,).
    """
    order = np.lexsort((batch.place, batch.stream))
    surprise = (batch.reward + discount * following - value).astype(np.float64)[order]
    stream, place = batch.stream[order], batch.place[order]
    goes_on = np.zeros(len(order), np.bool_)
    goes_on[:-1] = (stream[1:] == stream[:-1]) & (place[1:] == place[:-1] + 1)
    sums, later = surprise.tolist(), 0.0
    for i in range(len(sums) - 1, -1, -1):
        later = sums[i] + (discount * trace * later if goes_on[i] else 0.0)
        sums[i] = later
    out = np.empty(len(order))
    out[order] = sums
    return out


def standardised(advantage: F64, classes: I64) -> F64:
    """Advantages less the mean of their class, over its standard deviation.

    Args:
        advantage: shape (m,).
        classes: shape (m,): class of the scenario of each.

    Returns:
        Shape (m,); 0 where a class has a single value.
    """
    out = np.zeros_like(advantage)
    for one in np.unique(classes):
        chosen = classes == one
        values = advantage[chosen]
        out[chosen] = (values - values.mean()) / (values.std() + 1e-8)
    return out


def class_weights(classes: I64, most: float) -> F64:
    """What makes each class of networks count alike, however many decisions it has.

    Args:
        classes: shape (m,): class of the scenario of each decision.
        most: largest weight, so that a few decisions do not rule a step.

    Returns:
        Shape (m,): the share of decisions that a class had if all had as many, over its own share.
    """
    found, place, counts = np.unique(classes, return_inverse=True, return_counts=True)
    own = len(classes) / (len(found) * counts)
    return np.asarray(np.minimum(own, most)[place], np.float64)


class Learner:
    """Policy, value and optimiser.

    Args:
        layers: of the policy.
        config: how to learn.
        sizes: of observations and actions.
        seed: of the first weights.
    """

    def __init__(self, layers: tuple[Layer, ...], config: Config, sizes: Sizes, seed: int) -> None:
        self.updates = 0
        self._layers, self._config = layers, config
        entering: tuple[int, ...] = sizes.entering
        self._value_layers, seen_by_value = (*layers[:-1], Dense(1)), entering
        if units := config.critic_units:
            self._value_layers = (Dense(units, "tanh"), Dense(units, "tanh"), Dense(1))
            seen_by_value = (entering[0] * entering[1] + critic.WIDTH,)
        policy_key, value_key = jax.random.split(jax.random.key(seed))
        policy = networks.begin(layers, entering, policy_key)
        # Every action is about as likely at first, whatever is seen.
        last = networks.tensor_name(len(layers) - 1, "kernel")
        policy[last] = 0.01 * policy[last]
        self.parameters: Parameters = {
            "policy": policy,
            "value": networks.begin(self._value_layers, seen_by_value, value_key),
            "log_std": jnp.full(sizes.action_size, np.log(config.spread), jnp.float32),
        }
        self._optimiser = _optimiser(config).init(self.parameters)

    def learn(self, batch: Transitions, seed: int, progress: float) -> dict[str, F32 | float]:
        """Some epochs over a batch; returns their means for the curve.

        Args:
            batch: as many decisions as the horizon.
            seed: of the minibatches.
            progress: of the training, in [0, 1].
        """
        config = self._config
        seen = self._seen_by_value(batch.observation, batch.truth)
        value = self._values(seen)
        reward = batch.reward * np.float32(config.reward_scale)
        if config.reward_limit > 0.0:
            reward = np.clip(reward, -config.reward_limit, config.reward_limit)
        rewarded = replace(batch, reward=reward)
        following = self._values(self._seen_by_value(batch.following, batch.following_truth))
        advantage = advantages(rewarded, value, following, config.discount, config.trace)
        wanted = advantage + value
        if config.advantages_per_class:
            advantage = standardised(advantage, critic.classes(batch.truth))
        if (most := config.class_weight_max) > 0.0:
            advantage = advantage * class_weights(critic.classes(batch.truth), most)
        rng = np.random.default_rng((seed, LEARNING, self.updates))
        order = np.stack([rng.permutation(config.horizon) for _ in range(config.epochs)])
        columns = (batch.observation, seen, batch.action, batch.log_probability, advantage, wanted)
        weights = (
            1.0 - config.learning_rate_decay * progress,
            config.entropy * (1.0 - config.entropy_decay * progress),
        )
        self.parameters, self._optimiser, told = _update(
            self._layers, self._value_layers, config, self.parameters, self._optimiser,
            tuple(jnp.asarray(c, None if c is batch.action else jnp.float32) for c in columns),
            jnp.asarray(order.reshape(-1, config.minibatch)), weights,
        )  # fmt: skip
        self.updates += 1
        spread = float(np.var(wanted))
        explained = 1.0 - float(np.var(wanted - value)) / spread if spread > 0.0 else 0.0
        made = np.asarray(told.pop("made"))
        return {"explained": explained, **{name: np.asarray(v)[made] for name, v in told.items()}}

    def _seen_by_value(self, observation: F32, truth: F32) -> F32:
        """What the value's network sees of observations and the truth of the same moments."""
        if not self._config.critic_units:
            return observation
        flat = observation.reshape(len(observation), -1)
        return np.concatenate([flat, critic.inputs(truth)], axis=1)

    def _values(self, seen: F32) -> F32:
        weights = self.parameters["value"]
        return np.asarray(networks.jitted(self._value_layers, weights, jnp.asarray(seen)))[:, 0]

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a checkpoint."""
        return networks.leaves((self.parameters, self._optimiser), "learner")

    def restore(self, updates: int, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Restore a checkpoint."""
        self.updates = updates
        before = (self.parameters, self._optimiser)
        self.parameters, self._optimiser = networks.with_leaves(before, arrays, "learner")


def _optimiser(config: Config) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(config.gradient_norm), optax.adam(config.learning_rate, eps=1e-5)
    )


def _log_probability_and_entropy(
    outputs: Array, log_std: Array, action: Array
) -> tuple[Array, Array]:
    """Of actions under a policy's outputs; discrete if the actions are whole numbers."""
    if jnp.issubdtype(action.dtype, jnp.integer):
        logs = jax.nn.log_softmax(outputs)
        chosen = jnp.take_along_axis(logs, action[:, None], axis=1)[:, 0]
        return chosen, -(jnp.exp(logs) * logs).sum(axis=1)
    noise = (action - outputs[:, : action.shape[1]]) / jnp.exp(log_std)
    chosen = (-0.5 * noise**2 - log_std - LOG_ROOT).sum(axis=1)
    return chosen, jnp.broadcast_to((log_std + 0.5 + LOG_ROOT).sum(), chosen.shape)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _update(
    layers: tuple[Layer, ...],
    value_layers: tuple[Layer, ...],
    config: Config,
    parameters: Parameters,
    optimiser: Any,  # noqa: ANN401  # Optax's state, a tree of arrays
    columns: tuple[Array, ...],
    order: Array,
    weights: tuple[float, float],
) -> tuple[Parameters, Any, dict[str, Array]]:
    """A step of the optimiser for each row of `order`, which holds places in the batch.

    `weights` are the factor of the learning rate and the weight of the entropy. The last of the
    result has a number per step, and in `made` whether the step was made.
    """
    rate, entropy_weight = weights

    def loss(parameters: Parameters, rows: tuple[Array, ...]) -> tuple[Array, dict[str, Array]]:
        observation, seen_by_value, action, before, advantage, wanted = rows
        outputs = networks.apply(layers, parameters["policy"], observation)
        now, entropy = _log_probability_and_entropy(outputs, parameters["log_std"], action)
        value = networks.apply(value_layers, parameters["value"], seen_by_value)[:, 0]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = jnp.exp(now - before)
        held = jnp.clip(ratio, 1.0 - config.clip, 1.0 + config.clip)
        policy_loss = -jnp.minimum(ratio * advantage, held * advantage).mean()
        value_loss = 0.5 * jnp.square(value - wanted).mean()
        total = policy_loss + config.value_weight * value_loss - entropy_weight * entropy.mean()
        told = {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy": entropy.mean(),
            "divergence": (ratio - 1.0 - (now - before)).mean(),
            "clipped": (jnp.abs(ratio - 1.0) > config.clip).mean(),
        }
        return total, told

    def step(carry: Any, places: Array) -> tuple[Any, dict[str, Array]]:  # noqa: ANN401
        parameters, optimiser = carry
        rows = tuple(column[places] for column in columns)
        gradient, told = jax.grad(loss, has_aux=True)(parameters, rows)
        change, optimiser = _optimiser(config).update(gradient, optimiser, parameters)
        if config.learning_rate_decay > 0.0:
            change = jax.tree.map(lambda part: rate * part, change)
        return (_floored(optax.apply_updates(parameters, change), config), optimiser), told

    def until_stopped(carry: Any, places: Array) -> tuple[Any, dict[str, Array]]:  # noqa: ANN401
        learned, stopped = carry
        after, told = lax.cond(stopped, lambda: (learned, unchanged), lambda: step(learned, places))
        return (after, stopped | (told["divergence"] > config.divergence_stop)), {
            **told, "made": ~stopped,
        }  # fmt: skip

    if config.divergence_stop <= 0.0:
        (parameters, optimiser), told = lax.scan(step, (parameters, optimiser), order)
        return parameters, optimiser, {**told, "made": jnp.ones(len(order), bool)}
    names = ("policy_loss", "value_loss", "entropy", "divergence", "clipped")
    unchanged = dict.fromkeys(names, jnp.zeros(()))
    begin = ((parameters, optimiser), jnp.asarray(False))
    ((parameters, optimiser), _), told = lax.scan(until_stopped, begin, order)
    return parameters, optimiser, told


def _floored(parameters: Parameters, config: Config) -> Parameters:
    """With the spread at its floor at least."""
    if config.spread_floor <= 0.0:
        return parameters
    least = float(np.log(config.spread_floor))
    return {**parameters, "log_std": jnp.maximum(parameters["log_std"], least)}
