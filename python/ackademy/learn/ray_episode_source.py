"""Episodes simulated on a Ray cluster: same seed, same bytes as in this process.

Each worker has an `Episodes` with its share of the simulations. A simulation knows its number among
all, so results do not depend on where it runs. Texts, files and arrays go over the network. All
workers step in parallel, and this process, where the learner is, waits for the slowest. Ray's calls
cost some milliseconds a step (docs/reference/learners.md), so a cluster is useful only if a step
takes longer than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ackademy import _core
from ackademy.envs import opening
from ackademy.errors import EngineError
from ackademy.learn import recipe_source
from ackademy.learn.episode_source import F32, F64, I64, Actions, Bools

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe

Seen: TypeAlias = tuple[tuple[F32, F64, F64, I64, Bools, I64, Bools, Bools], int]
"""the arrays of `ARRAYS` after a step, and packets so far"""
ARRAYS = ("observation", "metrics", "credit", "credit_step", "due", "decision", "over", "left")
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


class Simulations:
    """A worker's share of the simulations."""

    _episodes: _core.Episodes

    def version(self) -> str:
        """Of the core of this node."""
        return _core.CODE_HASH

    def begin(
        self,
        source: tuple[str, str, dict[str, bytes]],
        agent_settings: str,
        learners: Sequence[str],
        sizes: Mapping[str, int],
    ) -> tuple[int, int, tuple[int, ...]]:
        """What `__init__` would do, whose errors Ray would take for the worker's end.

        Args:
            source: text and origin of a scenario or a distribution, and the files it names.
            agent_settings: TOML of the five tables.
            learners: patterns of the entries that learn.
            sizes: `first`, `n`, `agents`, `seed` and `credit` of `Episodes`.

        Returns:
            Number of choices, size of an action, shape of one observation.
        """
        own = self._episodes = _core.Episodes(
            opening.parse_source(*source),
            agent_settings,
            learners=learners,
            n=sizes["n"],
            agents=sizes["agents"],
            seed=sizes["seed"],
            first=sizes["first"],
            threads=1,
            credit=bool(sizes["credit"]),
        )
        return own.n_choices, own.action_size, own.observation.shape[2:]

    def reset(self, seed: int | None, progress: float) -> Seen:
        """As of `EpisodeSource`."""
        self._episodes.progress = progress
        self._episodes.reset(seed)
        return self._seen()

    def step(self, actions: Actions, progress: float) -> Seen:
        """As of `EpisodeSource`."""
        self._episodes.progress = progress
        self._episodes.step(actions)
        return self._seen()

    def _seen(self) -> Seen:
        own = self._episodes
        arrays = (own.observation, own.metrics, own.credit, own.credit_step,
                  own.due, own.decision, own.over, own.left)  # fmt: skip
        return arrays, own.packets


class Workers:
    """The simulations of a recipe on the cluster that Ray is connected to.

    Args:
        recipe: its source is read here and sent as text.
        kind: class of a worker; its method `begin` takes the source and more arguments.
        arguments: these, of a share.

    Raises:
        EngineError: if the workers do not begin, or a node has another version of this package.
        ValueError: as what a worker begins.

    Attributes:
        workers: Ray's handles, one for each share of the simulations.
        begun: what the first worker answered.
        progress: of the training, in [0, 1].
    """

    def __init__(
        self, recipe: Recipe, kind: type, arguments: Callable[[Share], tuple[Any, ...]]
    ) -> None:
        import ray

        self._shares = shares(recipe.simulations, free_cores())
        source = ray.put(recipe_source.pack(recipe))
        remote = ray.remote(num_cpus=1, max_restarts=0)(kind)
        # Of any type: mypy cannot know the methods that Ray makes.
        self.workers: list[Any] = [remote.remote() for _ in self._shares]
        check_versions(self.workers)
        pairs = list(zip(self._shares, self.workers, strict=True))
        begun = [worker.begin.remote(source, *arguments(share)) for share, worker in pairs]
        same = [answer_of(*pair) for pair in zip(self._shares, begun, strict=True)]
        self.begun: Any = same[0]
        self.progress = 0.0

    def close(self) -> None:
        """End the workers; the simulations cannot be used after it."""
        import ray

        for worker in self.workers:
            ray.kill(worker)
        self.workers = []


class RayEpisodes(Workers):
    """As `Workers`, stepped: an `EpisodeSource`; `learners` are patterns of the entries."""

    def __init__(self, recipe: Recipe, learners: list[str]) -> None:
        n, agents, settings = recipe.simulations, recipe.agents, recipe.settings_text()

        def arguments(share: Share) -> tuple[Any, ...]:
            credit = recipe.credit == "sent"
            own = {"first": share.first, "n": share.count, "agents": agents}
            sizes = {**own, "seed": recipe.seed, "credit": credit}
            return settings, learners, sizes

        super().__init__(recipe, Simulations, arguments)
        self.n_choices, self.action_size, entering = self.begun
        self.observation: F32 = np.zeros((n, agents, *entering), np.float32)
        self.metrics: F64 = np.zeros((n, agents, len(_core.interval_metrics())))
        self.credit: F64 = np.zeros_like(self.metrics)
        self.credit_step: I64 = np.zeros((n, agents), np.int64)
        self.due: Bools = np.zeros((n, agents), np.bool_)
        self.decision: I64 = np.zeros((n, agents), np.int64)
        self.over: Bools = np.zeros(n, np.bool_)
        self.left: Bools = np.zeros((n, agents), np.bool_)
        self.packets = 0

    def reset(self, seed: int | None = None) -> None:
        """Begin all episodes anew."""
        self._take([worker.reset.remote(seed, self.progress) for worker in self.workers])

    def step(self, actions: Actions) -> None:
        """As `EpisodeSource.step`, on all workers at once."""
        parts = [actions[share.first : share.first + share.count] for share in self._shares]
        pairs = zip(self.workers, parts, strict=True)
        self._take([worker.step.remote(part, self.progress) for worker, part in pairs])

    def _take(self, answers: Sequence[Any]) -> None:
        """Copy the workers' arrays into those of all simulations."""
        packets = 0
        for share, answer in zip(self._shares, answers, strict=True):
            seen: Seen = answer_of(share, answer)
            for name, array in zip(ARRAYS, seen[0], strict=True):
                getattr(self, name)[share.first : share.first + share.count] = array
            packets += seen[1]
        self.packets = packets


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
