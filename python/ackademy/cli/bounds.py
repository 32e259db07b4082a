"""Bounds that options of several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import typer

from ackademy.files import check_ending

SEED_MAX = 2**63 - 1
"""of a run; where seeds count up, `distributions.seeds` bounds the last of them"""
RUNS_MAX = 1_000_000
JOBS_MAX = 1024
SAMPLE_MS_MAX = 1e9
"""as the core has it"""


def finite(value: float | None) -> float | None:
    """A callback that refuses NaN, which passes every comparison with bounds."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not allowed; allowed: a finite number")
    return value


def named_as(*endings: str) -> Callable[[Path | None], Path | None]:
    """A callback that refuses an output whose name ends like a file of another kind.

    Args:
        endings: that are allowed, with their dots. `-` and names without an ending are, too.
    """

    def check(path: Path | None) -> Path | None:
        return path if path is None or str(path) == "-" else check_ending(path, endings)

    return check
