"""In which range each feature lies in training, so that a flow can tell when it is elsewhere."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ackademy.learn.episode_source import F32

Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""smallest and largest value of each feature, as the network sees them"""
OUTSIDE = 0.001
"""share of the values below a range, and of those above it"""
ROWS = 1024
"""vectors that are kept of a batch, about: many batches make few enough numbers to sort"""


class Seen:
    """A sample of the vectors of features that decisions were made by.

    Args:
        kept: rows of an earlier one, to go on from.
    """

    def __init__(self, kept: F32 | None = None) -> None:
        self._parts: list[F32] = [] if kept is None else [kept]

    @property
    def rows(self) -> F32:
        """The vectors so far, shape (m, features), once something was seen."""
        return np.concatenate(self._parts)

    def add(self, observation: F32, most: int = ROWS) -> None:
        """Take some of a batch, evenly spread.

        Args:
            observation: shape (m, history, features), of which the newest vectors count: the others
                are those of earlier decisions, or zeros before the first.
            most: how many, about.
        """
        step = max(1, len(observation) // most)
        self._parts.append(observation[::step, -1].copy())

    def ranges(self) -> Ranges:
        """The 0.1 and the 99.9 % quantile of each feature; none if nothing was seen."""
        if not self._parts:
            return ()
        rows = self.rows
        # Of values that occur: between two of them a value may lie that never does.
        low = np.quantile(rows, OUTSIDE, axis=0, method="lower")
        high = np.quantile(rows, 1.0 - OUTSIDE, axis=0, method="higher")
        return tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))
