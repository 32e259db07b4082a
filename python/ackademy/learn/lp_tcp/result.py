"""What a training of LP-TCP's loss predictor makes, and of what."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from ackademy.learn.lp_tcp import forest
from ackademy.learn.lp_tcp.choosing import Tried
from ackademy.learn.lp_tcp.collecting import Recording, Sends
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.scoring import Score


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was to learn from."""

    sends: int
    losses: int
    keep_one_in: int
    rows_fitted: int
    losses_fitted: int
    rows_scored: int
    losses_scored: int
    losses_repeated: int
    """of those scored on, those that equal a lost row fitted to in every feature, bit for bit"""

    @classmethod
    def of(cls, early: Sends, late: Sends) -> Counts:
        """Counts of the rows that were fitted to, and of those kept for scoring."""
        return cls(
            sends=late.n_sends,
            losses=late.n_drops,
            keep_one_in=late.keep_one_in,
            rows_fitted=len(early.dropped),
            losses_fitted=int(np.count_nonzero(early.dropped)),
            rows_scored=len(late.dropped),
            losses_scored=int(np.count_nonzero(late.dropped)),
            losses_repeated=repeated(early, late),
        )


def repeated(early: Sends, late: Sends) -> int:
    """Lost rows of `late` that equal a lost row of `early` in all features: known by heart."""
    known = {row.tobytes() for row in early.features[early.dropped]}
    return sum(row.tobytes() in known for row in late.features[late.dropped])


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything the policy depends on."""

    recording: Recording
    delivered_per_loss: int = 49
    """rows of delivered packets per lost one to fit to: two rows in a hundred are a loss"""
    growth: Growth = field(default_factory=Growth)
    runs: int = 20
    """simulations per threshold where senders share the link"""


@dataclass(frozen=True, slots=True)
class Trained:
    """A policy and how it came about."""

    recipe: Recipe
    forest: bytes
    n_nodes: int
    sends: Counts
    scores: tuple[Score, ...]
    th0: Score
    tried: tuple[Tried, ...]
    chosen: Tried


def scikit_learn_version() -> str:
    """The installed version; forests of different versions may differ.

    Raises:
        TrainingError: if it is not installed.
    """
    try:
        return version("scikit-learn")
    except PackageNotFoundError as error:
        raise forest.lacks_sklearn() from error
