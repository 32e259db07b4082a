"""Rollouts on a Ray cluster: same seed, same bytes as in this process.

Each worker has a `Rollouts` with its share of the simulations. A call sends it the policy's weights
and gets its part of the batch, so that the network is used once per batch and not once per step. A
simulation knows its number among all, so results do not depend on where it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ackademy import _core
from ackademy.envs import opening
from ackademy.errors import EngineError
from ackademy.learn import recipe_source
from ackademy.learn.episode_source import F32
from ackademy.runner import engines

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe
    from ackademy.learn.rollouts import Collector

Counts: TypeAlias = tuple[int, int, int]
"""packets, decisions and episodes so far"""
START_S = 120.0
"""until all workers must have begun (proposed)"""


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the simulations."""

    first: int
    """number among all"""
    count: int

    def __str__(self) -> str:
        """As an error names them, from 0."""
        last = self.first + self.count - 1
        return f"simulation {last}" if self.count == 1 else f"simulations {self.first} to {last}"


def shares(n: int, workers: int) -> list[Share]:
    """Simulations 0 to n − 1 in at most `workers` parts, sizes at most 1 apart."""
    workers = min(n, workers)
    ends = [n * (i + 1) // workers for i in range(workers)]
    return [Share(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]


class Trajectories:
    """A worker's share of the simulations."""

    _rollouts: _core.Rollouts

    def version(self) -> str:
        """Of the core of this node."""
        return _core.CODE_HASH

    def begin(
        self, source: tuple[str, str, dict[str, bytes]], settings: Mapping[str, Any]
    ) -> tuple[int, int, int, int]:
        """What `__init__` would do, whose errors Ray would take for the worker's end.

        Args:
            source: text and origin of a scenario or a distribution, and the files it names.
            settings: the other arguments of `_core.Rollouts`.

        Returns:
            Number of choices, size of an action, history and features of an observation.
        """
        own = self._rollouts = _core.Rollouts(opening.parse_source(*source), **settings)
        return own.n_choices, own.action_size, own.history, own.n_features

    def collect(
        self, files: Mapping[str, bytes], log_std: F32, decisions: int, episodes: int | None,
        progress: float,
    ) -> tuple[_core._Batch, Counts]:  # fmt: skip
        """As `_core.Rollouts.collect`, at this progress."""
        own = self._rollouts
        own.progress = progress
        batch = own.collect(files, log_std, decisions, episodes=episodes)
        return batch, (own.packets, own.decisions, own.episodes)


class RayRollouts:
    """The simulations of a recipe on the cluster that Ray is connected to: a `Collector`.

    Args:
        recipe: its source is read here and sent as text.
        learners: patterns of the entries that learn.

    Raises:
        EngineError: if the workers do not begin, or a node has another version of this package.
        ValueError: as what a worker begins.

    Attributes:
        workers: Ray's handles, one for each share of the simulations.
        progress: of the training, in [0, 1].
    """

    def __init__(self, recipe: Recipe, learners: list[str]) -> None:
        import ray

        self.n, self._agents = recipe.simulations, recipe.agents
        settings = {
            "agent_settings": recipe.settings_text(),
            "agents": recipe.agents,
            "learners": learners,
            "seed": recipe.seed,
            "credit": recipe.credit,
            "truth": recipe.needs_truth,
            "reward": recipe.core_reward,
            "threads": 1,
        }
        self._shares = shares(recipe.simulations, free_cores())
        source = ray.put(recipe_source.pack(recipe))
        remote = ray.remote(num_cpus=1, max_restarts=0)(Trajectories)
        # Of any type: mypy cannot know the methods that Ray makes.
        self.workers: list[Any] = [remote.remote() for _ in self._shares]
        check_versions(self.workers)
        pairs = list(zip(self._shares, self.workers, strict=True))
        begun = [
            worker.begin.remote(source, {**settings, "n": share.count, "first": share.first})
            for share, worker in pairs
        ]
        sizes = [answer_of(*pair) for pair in zip(self._shares, begun, strict=True)]
        self.n_choices, self.action_size, self.history, self.n_features = sizes[0]
        self.packets = self.decisions = self.episodes = 0
        self.progress = 0.0
        self._counts: list[Counts] = [(0, 0, 0)] * len(self._shares)

    def close(self) -> None:
        """End the workers; the simulations cannot be used after it."""
        import ray

        for worker in self.workers:
            ray.kill(worker)
        self.workers = []

    def collect(
        self,
        files: Mapping[str, bytes],
        log_std: F32,
        decisions: int,
        *,
        episodes: int | None = None,
    ) -> _core._Batch:
        """As `_core.Rollouts.collect`, on all workers at once."""
        import ray

        policy, answers = ray.put(dict(files)), []
        for share, worker in zip(self._shares, self.workers, strict=True):
            count = part_of(share, decisions, self.n)
            answers.append(
                worker.collect.remote(policy, log_std, count, episodes, self.progress)
                if count
                else None
            )
        parts = []
        for index, (share, answer) in enumerate(zip(self._shares, answers, strict=True)):
            if answer is not None:
                batch, self._counts[index] = answer_of(share, answer)
                batch["stream"] = batch["stream"] + share.first * self._agents
                parts.append(batch)
        totals = (sum(column) for column in zip(*self._counts, strict=True))
        self.packets, self.decisions, self.episodes = totals
        return joined(parts)


def part_of(share: Share, decisions: int, n: int) -> int:
    """Decisions of a share: of the simulations of all shares the first ones have one more."""
    each, more = divmod(decisions, n)
    return each * share.count + min(max(more - share.first, 0), share.count)


def joined(parts: Sequence[_core._Batch]) -> _core._Batch:
    """The batches of all shares as one."""
    out: dict[str, Any] = {}
    for name, value in parts[0].items():
        column: list[Any] = [dict(part)[name] for part in parts]
        out[name] = None if value is None else np.concatenate(column)
    return out  # type: ignore[return-value]  # the same names


class Cluster:
    """Simulations on the cluster that Ray is connected to; an `Opener`."""

    def __init__(self) -> None:
        self._opened: list[RayRollouts] = []

    def rollouts(self, _: opening.Source, recipe: Recipe, learners: list[str]) -> Collector:
        """Simulations that make their decisions themselves."""
        self._opened.append(RayRollouts(recipe, learners))
        return self._opened[-1]

    def close(self) -> None:
        """End the workers."""
        for one in self._opened:
            one.close()


@contextmanager
def on_cluster(address: str | None) -> Iterator[Cluster]:
    """Opens simulations on a Ray cluster, which end with the context.

    It takes the cores that are free when it begins, one for each worker, and at most one for
    each simulation. Every node needs the same version of this package.

    Args:
        address: of the cluster; `None`: one of this machine's cores is started.

    Raises:
        EngineError: if Ray is not installed, the cluster cannot be reached, or a worker is lost.
    """
    cluster = Cluster()
    with engines.ray_session(address):
        try:
            yield cluster
        finally:
            cluster.close()


def free_cores() -> int:
    """Cores of the cluster that are free, at least 1."""
    import ray

    return max(1, int(ray.available_resources().get("CPU", 0)))


def check_versions(workers: Sequence[Any]) -> None:
    """Wait for the workers, and refuse nodes whose simulations could differ.

    Raises:
        EngineError: if a worker does not begin or has another version.
    """
    import ray

    answers = [worker.version.remote() for worker in workers]
    begun, late = ray.wait(answers, num_returns=len(answers), timeout=START_S)
    if late:
        raise EngineError(
            f"{len(begun)} of {len(answers)} Ray workers began within {START_S:.0f} s: "
            "the cluster has no free core for the others"
        )
    for answer in answers:
        try:
            version = ray.get(answer)
        except ray.exceptions.RayError as error:
            raise EngineError(
                f"a Ray worker cannot begin ({type(error).__name__}); allowed: nodes with this "
                "version of ackademy and the extras `ray` and `train`"
            ) from error
        if version != _core.CODE_HASH:
            raise EngineError(
                f"a node of the Ray cluster has core {version}; allowed: {_core.CODE_HASH}, "
                "the one here"
            )


def answer_of(share: Share, answer: Any) -> Any:  # noqa: ANN401  # Ray's reference to anything
    """The answer of a worker, or its error.

    Raises:
        EngineError: if it is lost.
    """
    import ray

    try:
        return ray.get(answer)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # as it is raised in this process
    except ray.exceptions.RayError as error:
        raise EngineError(
            f"{share}: their Ray worker was lost ({type(error).__name__}); what is trained is kept "
            "up to the last checkpoint: continue with --resume"
        ) from None
