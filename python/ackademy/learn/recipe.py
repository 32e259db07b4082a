"""How a table learns: the settings of `q_table`, which need no Gymnasium to be read and checked."""

from __future__ import annotations

from dataclasses import dataclass

from ackademy.learn.recipe_toml import Count, Share


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to learn; the defaults are Knott 2023's where it has any."""

    episodes: int = 500
    steps: int = 100
    """per episode"""
    learning_rate: Share = 0.01
    discount: Share = 0.90
    decay_start: Count = 100
    """episodes with epsilon 1"""
    bins: int = 20
    """per dimension of the observation"""
    random_start: bool = False
    """first values drawn from [-2, 0] instead of 0"""
