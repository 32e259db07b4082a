"""A number of a table: its names, its definition, and how runs give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, jackknife_interval, t_interval
from ackademy.stats.run_tables import RunTables, per_flow

Better = Literal["higher", "lower", ""]
"""the direction in which a number is better; empty where neither is"""
Window = Literal["whole", "steady"]
"""the time that a number is of: the whole run, or from the end of its warm-up on"""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a table: how to call it and how to get it from the runs of a row."""

    label: str
    """a paper's symbol, or the name"""
    unit: str
    about: str
    """the definition"""
    statistic: Callable[[FloatArray], float]
    """of what `extract` gives, one more axis, runs, in front, as `run_tables.stacked` has it"""
    is_mean: bool = False
    """a plain mean over runs and flows: Student's interval holds"""
    is_positive: bool = False
    """above 0 by nature: its interval is one of the logarithm"""
    extract: Callable[[RunTables], FloatArray] = per_flow
    words: str = ""
    """the name where `label` is a symbol"""
    better: Better = ""
    digits: int = 4
    """significant ones of the value"""
    window: Window = "whole"
    over_runs: str = ""
    """the statistic over runs, where it is neither their mean nor a function of means"""

    @property
    def name(self) -> str:
        """How tables that are not a paper's call it."""
        return self.words or self.label

    @property
    def brief(self) -> str:
        """The definition in a few words: what stands before its colon."""
        return self.about.partition(":")[0]

    @property
    def statistic_name(self) -> str:
        """`mean`, `function of means` or what else is taken over the runs."""
        return self.over_runs or ("mean" if self.is_mean else "function of means")

    def of_run(self, sample: FloatArray) -> float:
        """The number of one run alone, from what `extract` gives of it."""
        return self.statistic(sample[None])

    def estimate(self, samples: FloatArray) -> Interval:
        """The number with its interval: Student's of a mean, else the jackknife's.

        Args:
            samples: what `extract` gives of each run, shape (n_runs, ...), n_runs >= 1, or as
                `run_tables.stacked` has it where runs differ in their number of flows.
        """
        if self.is_mean:
            return t_interval(np.array([self.statistic(run[None]) for run in samples]))
        return jackknife_interval(samples, self.statistic, positive=self.is_positive)
