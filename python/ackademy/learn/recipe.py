"""How a table learns: the settings of `q_table`, which need no Gymnasium to be read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to learn; the defaults are Knott 2023's where it has any."""

    episodes: int = 500
    steps: int = 100
    """per episode"""
    learning_rate: float = 0.01
    discount: float = 0.90
    decay_start: int = 100
    """episodes with epsilon 1"""
    bins: int = 20
    """per dimension of the observation"""
    random_start: bool = False
    """first values drawn from [-2, 0] instead of 0"""


ALLOWED: Mapping[str, str] = {
    "episodes": "a whole number from 1",
    "steps": "a whole number from 1",
    "learning_rate": "a number from 0 to 1",
    "discount": "a number from 0 to 1",
    "decay_start": "a whole number from 0",
    "bins": "a whole number from 1",
    "random_start": "true, false",
}
"""by field of `Recipe`"""


def is_allowed(name: str, value: object) -> bool:
    """Whether a field of `Recipe` may have this value.

    Args:
        name: a key of `ALLOWED`.
        value: as an experiment file has it.
    """
    if name == "random_start":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if ALLOWED[name].startswith("a whole number"):
        return isinstance(value, int) and value >= (0 if name == "decay_start" else 1)
    return 0.0 <= value <= 1.0
