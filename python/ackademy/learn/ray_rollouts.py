"""Rollouts on a Ray cluster: same seed, same bytes as in this process.

Each worker has a `Rollouts` with its share of the simulations. A call sends it the policy's weights
and gets its part of the batch, so that the network is used once per batch and not once per step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ackademy import _core
from ackademy.envs import opening
from ackademy.learn.episode_source import F32
from ackademy.learn.ray_episode_source import Share, Workers, answer_of

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe

Counts: TypeAlias = tuple[int, int, int]
"""packets, decisions and episodes so far"""


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


class RayRollouts(Workers):
    """As `Workers`, by batches: a `Collector`; `learners` are patterns of the entries."""

    def __init__(self, recipe: Recipe, learners: list[str]) -> None:
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
        super().__init__(
            recipe,
            Trajectories,
            lambda share: ({**settings, "n": share.count, "first": share.first},),
        )
        self.n_choices, self.action_size, self.history, self.n_features = self.begun
        self.packets = self.decisions = self.episodes = 0
        self._counts: list[Counts] = [(0, 0, 0)] * len(self._shares)

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
