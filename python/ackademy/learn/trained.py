"""What a learner of networks returns."""

from __future__ import annotations

from dataclasses import dataclass

from ackademy.learn.networks import Weights
from ackademy.learn.ranges import Ranges


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A policy on its way."""

    decisions: int
    """made before"""
    weights: Weights


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training."""

    weights: Weights
    """of the policy"""
    decisions: int
    episodes: int
    updates: int
    snapshots: tuple[Snapshot, ...] = ()
    """of the last part of the training, if any were asked for; the last one has `weights`"""
    ranges: Ranges = ()
    """of each feature, in which nearly all of what was seen lies; none by deep Q-learning"""
    is_stopped: bool = False
    """whether it was stopped before its end"""
