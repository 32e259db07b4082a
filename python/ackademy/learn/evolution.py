"""Evolution strategies: a search for a policy's weights that needs no gradient and no critic.

The candidates of a generation are drawn around a mean and judged on the same networks; then the
mean moves towards the better ones: CMA-ES with a diagonal covariance (Ros and Hansen 2008, "A
simple modification in CMA-ES achieving linear time and space complexity"). The networks are drawn
anew for every generation, as a search on fixed ones fits those alone. A network's reward is the
mean over its decisions, without the noise of training; what a candidate is worth is the mean over
the classes of networks, each of which counts by its mean and by its worst quarter.

The search begins at weights of zeros, which answer every observation with zeros: of the map
`own_queue` the rules alone; or at the weights of a teacher. A
network on which the first candidate gets exactly what zeros get is one on which no answer counts,
as where a policy acts under contention alone: the others are not tried there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from cmaes import SepCMA

from ackademy import interrupts
from ackademy.learn.checkpoint import Checkpoint
from ackademy.learn.episode_source import F64
from ackademy.learn.networks import Tensors, Weights
from ackademy.learn.noiseless import UNUSABLE, Episode, worst_quarter
from ackademy.learn.ranges import Seen
from ackademy.learn.recipe_toml import Positive, Share
from ackademy.learn.rollouts import last_part
from ackademy.learn.trained import Snapshot, Trained
from ackademy.learn.training_log import Means, TrainingLog

COLUMNS = (
    "decisions",
    "episodes",
    "updates",
    "reward",
    "throughput_mbps",
    "rtt_ms",
    "loss_ratio",
    "zeros",
    "gain",
    "gain_best",
    "distance",
    "acted",
)
"""of the curve: counters; means over the decisions of the first candidate; what zeros are worth, by
how much more the candidates are, in the mean and the best one; how far from zeros the mean has
come; networks on which answers count"""
VALUES, SEEN = "evolution.values", "evolution.seen"
"""names of a checkpoint's arrays"""
ROWS = 4
"""vectors of features that are kept of a network, about"""
Runner: TypeAlias = Callable[[int, int], Episode]
"""runs an episode of a policy: seed and number of the network"""
RunnerOf: TypeAlias = Callable[[Tensors], Runner]
"""makes that of weights"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to search; defaults are *proposed*. A generation has the recipe's simulations."""

    generations: int = 60
    population: int = 14
    """candidates of a generation, 2 or more"""
    step: Positive = 0.5
    """standard deviation of each weight in the first generation"""
    last_layer: bool = False
    """whether the last layer alone is searched; the others stay as the teacher has them"""
    average: Share = 0.5
    """share of the generations so far, the latest ones, over which the mean is averaged into the
    policy that is kept (Polyak and Juditsky 1992): networks drawn anew make single means noisy"""
    worst: Share = 0.5
    """how much the worst quarter of a class counts, of 1; the rest is of the class's mean"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of an episode."""

    kind: int | None
    """class of the network; `None` if no decision was completed"""
    reward: float
    decisions: int
    packets: int


class Search:
    """The generations of a search, one after the other.

    Args:
        runner_of: makes what runs a policy.
        begin: the policy's tensors; those that are searched are where the search begins.
        searched: their names.
        config: how to search.
        seed: of candidates and networks.
        networks: of a generation.
        pool: threads; their number changes no result.
    """

    def __init__(
        self,
        runner_of: RunnerOf,
        begin: Tensors,
        searched: Sequence[str],
        config: Config,
        seed: int,
        *,
        networks: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._runner_of, self._config, self._seed = runner_of, config, seed
        self._networks, self._pool = networks, pool
        self._shapes = {name: begin[name].shape for name in searched}
        self._fixed = {name: value for name, value in begin.items() if name not in self._shapes}
        at = np.concatenate([begin[name].ravel() for name in searched]).astype(np.float64)
        self._zeros = np.zeros(len(at))
        own = np.random.SeedSequence(seed).generate_state(1)
        self._strategy = SepCMA(
            at, config.step, seed=int(own[0]), population_size=config.population
        )
        self.values: list[F64] = []
        """what the candidates of each generation were worth"""
        self.means = Means()
        """of the first candidates"""
        self.seen = Seen()
        self.decisions = self.episodes = self.packets = 0

    @property
    def mean(self) -> F64:
        """What the next candidates are drawn around, shape (weights,)."""
        return np.array(self._strategy.mean, np.float64)

    def tensors(self, point: F64) -> Tensors:
        """A policy's tensors of a point of the search, shape (weights,)."""
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        parts = np.split(point.astype(np.float32), np.cumsum(sizes)[:-1])
        own = {
            name: part.reshape(shape)
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }
        return {**self._fixed, **own}

    @property
    def counts(self) -> dict[str, int]:
        """What was simulated so far."""
        return {"decisions": self.decisions, "episodes": self.episodes, "packets": self.packets}

    def repeat(self, values: F64) -> None:
        """Go through a generation whose candidates are known to be worth this much."""
        self._tell([self._strategy.ask() for _ in values], values)

    def resume(self, kept: Checkpoint) -> None:
        """Go on after a checkpoint, as far as it is not repeated."""
        self.decisions, self.episodes, self.packets = map(kept.counter, self.counts)
        self.seen = Seen(np.asarray(kept.arrays[SEEN], np.float32))

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """For a checkpoint."""
        return {VALUES: np.stack(self.values), SEEN: self.seen.rows}

    def generation(self) -> dict[str, float]:
        """Try new candidates on new networks; returns the rest of a row of the curve."""
        draw = np.random.SeedSequence((self._seed, len(self.values))).generate_state(1, np.uint64)
        seed = int(draw[0] >> np.uint64(1))
        points = [self._strategy.ask() for _ in range(self._config.population)]
        everywhere = range(self._networks)
        zeros = self._run(self._zeros, seed, everywhere)
        first = self._run(points[0], seed, everywhere, is_first=True)
        acted = [i for i in everywhere if first[i].reward != zeros[i].reward]
        found = [first]
        for point in points[1:]:
            own = dict(zip(acted, self._run(point, seed, acted), strict=True))
            found.append([own.get(i, zeros[i]) for i in everywhere])
        base, *worth = (self._worth(zeros, each) for each in (zeros, *found))
        values = np.array(worth)
        self._tell(points, values)
        return {
            "zeros": base,
            "gain": float(values.mean()) - base,
            "gain_best": float(values.max()) - base,
            "distance": float(np.linalg.norm(self._strategy.mean)),
            "acted": len(acted),
        }

    def _tell(self, points: Sequence[F64], values: F64) -> None:
        self.values.append(values)
        self._strategy.tell([(x, -float(v)) for x, v in zip(points, values, strict=True)])

    def _run(
        self, point: F64, seed: int, numbers: Iterable[int], *, is_first: bool = False
    ) -> list[Outcome]:
        """Run a policy on some networks of a generation."""
        attempt = partial(self._runner_of(self.tensors(point)), seed)
        found = []
        for episode in self._pool.map(attempt, numbers):
            interrupts.check()
            classes = episode.batch["class_index"]
            reward = episode.reward
            kind = None if reward is None else int(classes[0])
            outcome = Outcome(
                kind, UNUSABLE if reward is None else reward, episode.decisions, episode.packets
            )
            found.append(outcome)
            if is_first:
                self._note(episode)
        self.decisions += sum(one.decisions for one in found)
        self.packets += sum(one.packets for one in found)
        self.episodes += len(found)
        return found

    def _note(self, episode: Episode) -> None:
        """Add an episode to what the curve and the policy's guard are told."""
        count, *sums = (math.fsum(column) for column in episode.batch["sums"].T)
        for name, total in zip(("throughput_mbps", "rtt_ms", "loss_ratio"), sums, strict=True):
            self.means.add_sum(name, total, int(count))
        if (rewards := episode.batch["reward"]) is not None:
            self.means.add("reward", rewards)
        if len(episode.batch["observation"]):
            self.seen.add(episode.batch["observation"], ROWS)

    def _worth(self, zeros: Sequence[Outcome], found: Sequence[Outcome]) -> float:
        """The mean over the classes of networks."""
        rewards: dict[int, list[float]] = {}
        for base, own in zip(zeros, found, strict=True):
            if base.kind is not None:
                rewards.setdefault(base.kind, []).append(own.reward)
        share = self._config.worst
        each = [
            share * worst_quarter(own) + (1.0 - share) * math.fsum(own) / len(own)
            for _, own in sorted(rewards.items())
        ]
        return math.fsum(each) / len(each) if each else UNUSABLE


def train(search: Search, config: Config, log: TrainingLog, *, snapshots: int = 0) -> Trained:
    """Search for so many generations.

    The same seed gives the same weights on one machine, killed and resumed or not: what candidates
    were worth is kept, and from that the strategy follows.

    Args:
        search: at its beginning.
        config: of the search.
        log: of columns `COLUMNS`.
        snapshots: how many means of the last part are returned.
    """
    means, made = list[F64](), list[int]()
    if (kept := log.resumed) is not None:
        for values in np.asarray(kept.arrays[VALUES], np.float64):
            search.repeat(values)
            means.append(search.mean)
        made = [int(row[0]) for row in log.rows]
        search.resume(kept)
    while (done := len(search.values)) < config.generations:
        interrupts.check()
        rest = search.generation()
        means.append(search.mean)
        made.append(search.decisions)
        counts = {name: search.counts[name] for name in ("decisions", "episodes")}
        log.row({**counts, "updates": done + 1, **search.means.take(), **rest})
        log.keep(done + 1, search.counts, search.arrays)
        log.progress(done + 1, config.generations)
    kept_ones = [*last_part(made[:-1], made[-1], snapshots - 1), len(means) - 1]
    taken = [
        Snapshot(made[i], _weights(search.tensors(averaged(means[: i + 1], config.average))))
        for i in kept_ones
    ]
    return Trained(
        weights=taken[-1].weights,
        decisions=search.decisions,
        episodes=search.episodes,
        updates=len(means),
        snapshots=tuple(taken) if snapshots else (),
        ranges=search.seen.ranges(),
    )


def averaged(means: Sequence[F64], share: float) -> F64:
    """The mean over the latest share of some points, over one at least."""
    count = max(1, round(share * len(means)))
    return np.asarray(np.mean(means[-count:], axis=0), np.float64)


def _weights(tensors: Tensors) -> Weights:
    return {name: jnp.asarray(value) for name, value in tensors.items()}
