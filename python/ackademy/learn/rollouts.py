"""Batches of decisions that the core simulates and makes; Python sees no step.

The core evaluates the policy's network, draws the actions and completes the decisions as `credit`
does (`_core.Rollouts`). Rewards are computed here, from the rows of a whole batch, by the same
functions as step by step. Every row holds the interval before and the best throughput so far, so a
function of rows gives the same rewards; one that keeps a state between its calls gets the rows of a
stream in order, but not the streams interleaved as in time.

Of a training that was killed, the simulations are repeated with the policies of then: what they do
follows from the seed and from those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ackademy import _core, interrupts
from ackademy.envs.metrics import IntervalMetrics
from ackademy.envs.rewarder import judge
from ackademy.envs.rewards import Reward
from ackademy.errors import TrainingError
from ackademy.learn import ppo
from ackademy.learn.credit import Transitions
from ackademy.learn.episode_source import F32, F64, Sizes
from ackademy.learn.layers import Layer, tables_of
from ackademy.learn.ranges import Seen
from ackademy.learn.trained import Snapshot, Trained
from ackademy.learn.training_log import Means, TrainingLog
from ackademy.policies import policy_files

if TYPE_CHECKING:
    from ackademy.learn.ray_rollouts import RayRollouts

POLICY, LOG_STD = "rollouts.policy.", "rollouts.log_std"
"""names of a checkpoint's arrays"""
LAST_PART = 0.2
"""of a training, over which snapshots are spread evenly, its end included (*proposed*)"""


Collector: TypeAlias = "_core.Rollouts | RayRollouts"
"""collects decisions, here or on a cluster"""


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides: a network and the spread of its values."""

    weights: Mapping[str, F32]
    """by the name of the tensor"""
    log_std: F32
    """shape (action_size,)"""


class Rollouts:
    """Collects a learner's batches.

    Args:
        collector: simulates.
        settings: the five tables of agent settings as TOML.
        layers: of the policy.
        reward: of the rows of a batch; `None`: the collector has one.
    """

    def __init__(
        self, collector: Collector, settings: str, layers: tuple[Layer, ...], reward: Reward | None
    ) -> None:
        self.collector = collector
        self._text = policy_files.policy_text("in training", settings, tables_of(layers), {})
        self._reward = reward

    def collect(
        self, policy: Policy, decisions: int, episodes: int | None, means: Means
    ) -> Transitions:
        """Some further decisions.

        Args:
            policy: makes them.
            decisions: to be completed.
            episodes: a simulation of which so many end before stops with fewer.
            means: what the curve shows is added to them.

        Raises:
            TrainingError: if the policy cannot be evaluated or the reward is wrong.
        """
        files = {
            policy_files.POLICY: self._text.encode(),
            policy_files.WEIGHTS: policy_files.bytes_of(policy.weights),
        }
        try:
            batch = self.collector.collect(files, policy.log_std, decisions, episodes=episodes)
        except ValueError as error:
            raise TrainingError(str(error)) from None
        reward = batch["reward"] if self._reward is None else rewards_of(self._reward, batch)
        assert reward is not None  # the collector was made with a reward
        # Exactly rounded: the same however simulations are divided among machines.
        count, *sums = (math.fsum(column) for column in batch["sums"].T)
        for name, total in zip(("throughput_mbps", "rtt_ms", "loss_ratio"), sums, strict=True):
            means.add_sum(name, total, int(count))
        means.add("reward", reward)
        return transitions(batch, reward)


def rewards_of(reward: Reward, batch: _core._Batch) -> F64:
    """The rewards of the decisions of a batch, shape (m,).

    Raises:
        TrainingError: if the function returns a wrong shape or a number that is not finite.
    """
    metrics = IntervalMetrics(batch["metrics"], batch["best"])
    return judge(reward, metrics, IntervalMetrics(batch["before"], batch["best_before"]))


def sizes_of(collector: Collector) -> Sizes:
    """What a learner on these simulations has to fit."""
    entering = (collector.history, collector.n_features)
    return Sizes(entering, collector.n_choices, collector.action_size)


def transitions(batch: _core._Batch, reward: F64) -> Transitions:
    """A batch as the learner takes it."""
    return Transitions(
        observation=batch["observation"],
        action=batch["action"],
        reward=reward.astype(np.float32),
        following=batch["following"],
        log_probability=batch["log_probability"],
        stream=batch["stream"],
        place=batch["place"],
        truth=batch["truth"],
        following_truth=batch["following_truth"],
    )


class PolicyLog:
    """The policies of all batches so far, for a checkpoint and for snapshots."""

    def __init__(self) -> None:
        self.count = 0
        self._weights: dict[str, list[F32]] = {}
        self._log_std: list[F32] = []
        self._made: list[int] = []

    def add(self, policy: Policy, decisions: int) -> None:
        """Record the policy of the next batch, before which so many decisions were made."""
        self.count += 1
        self._made.append(decisions)
        self._log_std.append(policy.log_std)
        for name, value in policy.weights.items():
            self._weights.setdefault(name, []).append(value)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a checkpoint."""
        out: dict[str, npt.NDArray[np.generic]] = {LOG_STD: np.stack(self._log_std)}
        return {**out, **{POLICY + name: np.stack(v) for name, v in self._weights.items()}}

    def snapshots(self, last: Snapshot, count: int) -> tuple[Snapshot, ...]:
        """So many policies of the last part of a training, oldest first, the last one included.

        Args:
            last: what the training ended with.
            count: how many; fewer of a training with fewer batches there.
        """
        found = [
            Snapshot(self._made[i], {name: jnp.asarray(v[i]) for name, v in self._weights.items()})
            for i in last_part(self._made, last.decisions, count - 1)
        ]
        return (*found, last) if count else ()


def last_part(made: Sequence[int], end: int, count: int) -> list[int]:
    """Which policies are spread evenly over the last part of a training, its end left out.

    Args:
        made: decisions that were made before each policy was there, growing.
        end: all decisions of the training.
        count: how many; fewer where two would be the same.
    """
    wanted = (end * (1.0 - LAST_PART * back / count) for back in range(count, 0, -1))
    places = (max(0, int(np.searchsorted(made, at, side="right")) - 1) for at in wanted)
    return list(dict.fromkeys(places))


def recorded(arrays: Mapping[str, npt.NDArray[np.generic]], index: int) -> Policy:
    """The policy of batch `index` of a checkpoint."""
    weights = {
        name.removeprefix(POLICY): np.asarray(array[index], np.float32)
        for name, array in arrays.items()
        if name.startswith(POLICY)
    }
    return Policy(weights, np.asarray(arrays[LOG_STD][index], np.float32))


def policy_of(learner: ppo.Learner) -> Policy:
    """What decides by what has been learnt so far."""
    weights = {name: np.asarray(v) for name, v in learner.parameters["policy"].items()}
    return Policy(weights, np.asarray(learner.parameters["log_std"]))


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks once at a training on its way."""

    decisions: int
    """when: once so many have been made"""
    goes_on: Callable[[Snapshot], bool]
    """whether the training is worth going on; it must depend on the policy alone"""


def train(
    rollouts: Rollouts,
    layers: tuple[Layer, ...],
    config: ppo.Config,
    seed: int,
    log: TrainingLog,
    *,
    snapshots: int = 0,
    watch: Watch | None = None,
) -> Trained:
    """Learn by PPO until enough episodes have ended, or enough decisions have been made.

    The same seed gives the same weights on one machine, killed and resumed or not.

    Args:
        rollouts: collects.
        layers: of the policy; without a critic of its own the value has the same ones with a
            single output.
        config: how to learn.
        seed: of the networks' first weights and of the minibatches; the actions have the
            simulations'.
        log: of columns `ppo.COLUMNS`.
        snapshots: how many policies of the last part are returned.
        watch: may stop it.
    """
    source = rollouts.collector
    learner = ppo.Learner(layers, config, sizes_of(source), seed)
    policies, means, seen = PolicyLog(), Means(), Seen()
    past, is_stopped = 0, False
    if (kept := log.resumed) is not None:
        learner.restore(kept.counter("updates"), kept.arrays)
        past = kept.counter("step")
    waiting: list[Transitions] = []
    taken = 0

    def present() -> Policy:
        if kept is not None and policies.count < past:
            return recorded(kept.arrays, policies.count)
        return policy_of(learner)

    def snapshot() -> Snapshot:
        weights = {name: jnp.asarray(v) for name, v in present().weights.items()}
        return Snapshot(source.decisions, weights)

    while not is_stopped and config.progress(source.decisions, source.episodes) < 1.0:
        interrupts.check()
        policy = present()
        policies.add(policy, source.decisions)
        missing = config.horizon - sum(map(len, waiting))
        left = -(-(config.episodes - source.episodes) // source.n)
        done = rollouts.collect(policy, missing, None if config.decisions else left, means)
        source.progress = config.progress(source.decisions, source.episodes)
        waiting.append(done)
        if len(done) < missing:
            continue
        batch, waiting = Transitions.joined(waiting), []
        seen.add(batch.observation)
        taken += 1
        if taken <= learner.updates:
            means.clear()  # learnt from before the checkpoint
        else:
            for name, value in learner.learn(batch, seed, source.progress).items():
                means.add(name, value)
            log.row(
                {
                    "decisions": source.decisions,
                    "episodes": source.episodes,
                    "updates": learner.updates,
                    **means.take(),
                }
            )
            log.keep(
                policies.count,
                {"updates": learner.updates},
                lambda: {**learner.arrays(), **policies.arrays()},
            )
            log.progress(*config.done(source.decisions, source.episodes))
        # In what is repeated as well: what was learnt after a look need not be there.
        if watch is not None and source.decisions >= watch.decisions:
            is_stopped, watch = not watch.goes_on(snapshot()), None

    last = snapshot()
    return Trained(
        weights=last.weights,
        decisions=last.decisions,
        episodes=source.episodes,
        updates=learner.updates,
        snapshots=policies.snapshots(last, snapshots),
        ranges=seen.ranges(),
        is_stopped=is_stopped,
    )
