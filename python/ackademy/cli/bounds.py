"""Bounds that options of several commands share."""

from __future__ import annotations

import math

import typer

SEED_MAX = 2**63 - 1
"""of a run; where seeds count up, `distributions.seeds` bounds the last of them"""
FIT_SEED_MAX = 2**32 - 1
"""of a fit by scikit-learn"""
RUNS_MAX = 1_000_000
JOBS_MAX = 1024
EPISODES_MAX = 100_000_000
SAMPLE_MS_MAX = 1e9
"""as the core has it"""


def finite(value: float | None) -> float | None:
    """A callback that refuses NaN, which passes every comparison with bounds."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not allowed; allowed: a finite number")
    return value
