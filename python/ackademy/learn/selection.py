"""Judges policies on fixed networks by the reward they were trained for, to choose among them.

A network's reward is the mean over the decisions of all flows that learn, without the noise of
training. Of the networks of a class the *worst quarter* counts: the mean of the lowest rewards. The
judgement is the mean of that over the classes, so that no class outweighs another, and a policy
cannot make up for the networks that it fails on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core, interrupts
from ackademy.backends import overlap
from ackademy.backends.link_lists import Link
from ackademy.errors import TrainingError
from ackademy.files import write
from ackademy.learn import deep, noiseless
from ackademy.learn.deep_recipe import Recipe
from ackademy.learn.noiseless import UNUSABLE, worst_quarter

Progress: TypeAlias = Callable[[int, int], None]
"""called with what is done and all there is to do"""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a policy gets on each network."""

    classes: tuple[str, ...]
    """class of each network"""
    rewards: tuple[float, ...]
    """of each network, in [-1, 1]"""

    @property
    def of_classes(self) -> dict[str, float]:
        """Mean of the worst quarter of each class, sorted by the class."""
        found: dict[str, list[float]] = {}
        for name, reward in zip(self.classes, self.rewards, strict=True):
            found.setdefault(name, []).append(reward)
        return {name: worst_quarter(found[name]) for name in sorted(found)}

    @property
    def mean(self) -> float:
        """What policies are chosen by: the mean over the classes."""
        values = list(self.of_classes.values())
        return math.fsum(values) / len(values)


def thinned(links: Sequence[Link], count: int, seed: int = 0) -> tuple[Link, ...]:
    """Some of the networks, equally many of each class as far as there are, in their order.

    Args:
        links: all of them.
        count: how many; all if there are not more.
        seed: which ones.
    """
    order = np.random.default_rng(seed).permutation(len(links))
    of_class: dict[str, list[int]] = {}
    for place in order:
        of_class.setdefault(links[place].kind, []).append(int(place))
    rounds = zip_longest(*(of_class[kind] for kind in sorted(of_class)))
    places = [place for each in rounds for place in each if place is not None]
    return tuple(links[place] for place in sorted(places[:count]))


class Judge:
    """Judges policies of a recipe.

    Args:
        recipe: its reward is one that the core computes.
        learners: patterns of the flows that learn.
        links: the networks.
        threads: side by side; changes no result.
        folder: where judgements are kept, so that none is made twice.

    Raises:
        TrainingError: if the reward cannot be computed here.
    """

    def __init__(
        self,
        recipe: Recipe,
        learners: Sequence[str],
        links: Sequence[Link],
        threads: int,
        folder: Path,
    ) -> None:
        if recipe.core_reward is None:
            raise TrainingError(
                f"{recipe.origin}: reward = {recipe.reward!r}: allowed: flagship, by which "
                "policies can be judged"
            )
        self._recipe, self._learners, self._links = recipe, list(learners), tuple(links)
        self._threads, self._folder = threads, folder
        digest = hashlib.sha256()
        for link in links:
            digest.update(f"{link.name}\n{link.kind}\n{link.scenario.canonical()}\n".encode())
        self.digest = digest.hexdigest()

    @property
    def networks(self) -> list[str]:
        """Digests of the networks, sorted."""
        return sorted({overlap.digest(link.scenario) for link in self._links})

    @property
    def classes(self) -> list[str]:
        """Classes of the networks, sorted."""
        return sorted({link.kind for link in self._links})

    def judge(self, weights: Mapping[str, npt.NDArray[np.float32]], told: Progress) -> Judgement:
        """What the policy of these weights gets.

        Args:
            weights: by the name of the tensor.
            told: about networks.

        Raises:
            TrainingError: if the policy cannot be evaluated, or a network cannot be run.
        """
        classes = tuple(link.kind for link in self._links)
        files = deep.files_of(self._recipe, weights)
        kept = self._folder / f"{self._key(files)}.json"
        if (known := _read(kept, len(classes))) is not None:
            told(len(classes), len(classes))
            return Judgement(classes, known)
        rewards = []
        with ThreadPoolExecutor(self._threads) as pool:
            waiting = [pool.submit(self._reward, link, files) for link in self._links]
            try:
                for done, one in enumerate(waiting, 1):
                    interrupts.check()
                    rewards.append(one.result())
                    told(done, len(waiting))
            finally:
                for one in waiting:
                    one.cancel()
        text = {"rewards": dict(zip((link.name for link in self._links), rewards, strict=True))}
        write(kept, json.dumps(text, indent=1) + "\n")
        return Judgement(classes, tuple(rewards))

    def _reward(self, link: Link, files: Mapping[str, bytes]) -> float:
        try:
            found = noiseless.run(link.scenario, self._recipe, self._learners, files).reward
        except ValueError as error:
            raise TrainingError(f"{link.name}: {error}") from None
        return UNUSABLE if found is None else found

    def _key(self, files: Mapping[str, bytes]) -> str:
        recipe = self._recipe
        parts = [_core.CODE_HASH, self.digest, recipe.reward, recipe.credit, *self._learners]
        digest = hashlib.sha256(json.dumps([*parts, recipe.agents]).encode())
        for name in sorted(files):
            digest.update(files[name])
        return digest.hexdigest()[:32]


def _read(path: Path, count: int) -> tuple[float, ...] | None:
    """A judgement that was kept; `None` if there is none, or a damaged one."""
    try:
        rewards = json.loads(path.read_text())["rewards"].values()
        return tuple(map(float, rewards)) if len(rewards) == count else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
