"""The simulations that a learner steps, and what it has to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core

F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Actions: TypeAlias = I64 | F32
EpisodeSource: TypeAlias = _core.Episodes


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a learner has to fit."""

    entering: tuple[int, int]
    """(history, features) of an observation"""
    n_choices: int
    """number of discrete actions; 0: actions are continuous"""
    action_size: int
    """numbers of one continuous action"""


def sizes_of(env: EpisodeSource) -> Sizes:
    """What a learner on these simulations has to fit."""
    history, features = env.observation.shape[2:]
    return Sizes((history, features), env.n_choices, env.action_size)
