"""The simulations that a learner steps, as a protocol; `_core.Episodes` implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Actions: TypeAlias = I64 | F32


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a learner has to fit."""

    entering: tuple[int, int]
    """(history, features) of an observation"""
    n_choices: int
    """number of discrete actions; 0: actions are continuous"""
    action_size: int
    """numbers of one continuous action"""


class Simulated(Protocol):
    """Parallel simulations that a learner learns from."""

    @property
    def n_choices(self) -> int:
        """Number of discrete actions; 0: actions are continuous."""

    @property
    def action_size(self) -> int:
        """Numbers of one continuous action."""

    @property
    def packets(self) -> int:
        """Data packets simulated so far."""

    @property
    def progress(self) -> float:
        """Training progress in [0, 1], by which the scenarios of new episodes are drawn."""

    @progress.setter
    def progress(self, value: float, /) -> None: ...


class EpisodeSource(Simulated, Protocol):
    """Parallel simulations, each with up to `agents` learning flows.

    The arrays are allocated once: `step` and `reset` write into them.
    """

    @property
    def observation(self) -> F32:
        """Shape (n, agents, history, features), oldest first."""

    @property
    def metrics(self) -> F64:
        """Shape (n, agents, 17): what was acknowledged since the agent's last decision."""

    @property
    def credit(self) -> F64:
        """Shape (n, agents, 17): fate of the packets sent in the interval that closed last."""

    @property
    def credit_step(self) -> I64:
        """Shape (n, agents): decision of that interval; -1: none closed in this step."""

    @property
    def due(self) -> Bools:
        """Shape (n, agents): which agents are due."""

    @property
    def decision(self) -> I64:
        """Shape (n, agents): number of the decision now due, from 0 in each episode."""

    @property
    def over(self) -> Bools:
        """Shape (n,): the episode has ended, because its time is up."""

    @property
    def left(self) -> Bools:
        """Shape (n, agents): the flow has ended before the episode."""

    def reset(self, seed: int | None = None) -> None:
        """Begin new episodes in all simulations."""

    def step(self, actions: Actions) -> None:
        """Apply the due agents' actions; simulate until an agent is due or the episode ends.

        Actions of other agents are ignored. An episode that has ended begins anew instead.
        """


def sizes_of(env: EpisodeSource) -> Sizes:
    """What a learner on these simulations has to fit."""
    history, features = env.observation.shape[2:]
    return Sizes((history, features), env.n_choices, env.action_size)


class RewardSource(Protocol):
    """Computes rewards; `ackademy.envs.rewarder.Rewarder` implements it."""

    reward_decision: I64
    """shape (n, agents): number of the decision that the last reward is for, -1 without one"""

    def reset(self) -> None:
        """Start over after all episodes have been reset."""

    def compute(self) -> F64:
        """Rewards of the step just made, shape (n, agents)."""
