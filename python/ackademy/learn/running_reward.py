"""The mean reward of the latest episodes of a training, and its best value so far."""

from __future__ import annotations

import math
from collections import deque
from statistics import fmean

EPISODES = 20
"""that the mean is over, at least"""


class RunningReward:
    """The mean of the reward over the rows of a curve that cover the latest episodes."""

    def __init__(self) -> None:
        self._rows: deque[tuple[float, float]] = deque()
        self.mean = math.nan
        """reward per decision over the latest `EPISODES` episodes; `nan` before the first row"""
        self.best = math.nan
        """largest `mean` over as many episodes; `nan` while there are fewer"""

    def add(self, episodes: float, reward: float) -> None:
        """Take in a row.

        Args:
            episodes: finished when the row was made, never fewer than in the row before.
            reward: mean per decision since the row before.
        """
        self._rows.append((episodes, reward))
        # The rows that are left begin no later than `EPISODES` ago.
        while len(self._rows) > 1 and self._rows[0][0] <= episodes - EPISODES:
            self._rows.popleft()
        self.mean = fmean(reward for _, reward in self._rows)
        if episodes >= EPISODES and not self.best > self.mean:
            self.best = self.mean

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return ""
        best = "" if math.isnan(self.best) else f", best {self.best:.4g}"
        return f"mean reward of the last {EPISODES} {self.mean:.4g}{best}"
