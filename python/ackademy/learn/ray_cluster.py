"""Opens simulations on a Ray cluster, stepped or deciding themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ackademy.envs import opening
from ackademy.learn.episode_source import EpisodeSource
from ackademy.learn.ray_episode_source import RayEpisodes
from ackademy.learn.ray_rollouts import RayRollouts
from ackademy.runner import engines

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe
    from ackademy.learn.rollouts import Collector


class Cluster:
    """Simulations on the cluster that Ray is connected to; an `Opener`."""

    def __init__(self) -> None:
        self._opened: list[RayEpisodes | RayRollouts] = []

    def episodes(self, _: opening.Source, recipe: Recipe, learners: list[str]) -> EpisodeSource:
        """Simulations that are stepped."""
        source = RayEpisodes(recipe, learners)
        self._opened.append(source)
        return source

    def rollouts(self, _: opening.Source, recipe: Recipe, learners: list[str]) -> Collector:
        """Simulations that make their decisions themselves."""
        collector = RayRollouts(recipe, learners)
        self._opened.append(collector)
        return collector

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
