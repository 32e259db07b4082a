"""What a learner asks of the simulations it learns in; `_core.Episodes` is the one there is."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Actions: TypeAlias = I64 | F32


class EpisodeSource(Protocol):
    """Simulations side by side, each with up to `agents` learning flows.

    The arrays are the same for ever: `step` and `reset` write into them.
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
        """Shape (n, agents): whose decision it is now."""

    @property
    def decision(self) -> I64:
        """Shape (n, agents): number of the decision now due, from 0 in each episode."""

    @property
    def over(self) -> Bools:
        """Shape (n,): the episode has reached its end, which is that of its time."""

    @property
    def left(self) -> Bools:
        """Shape (n, agents): the flow has ended before the episode; it decides no more."""

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
        """How far training is, in [0, 1]: what the scenarios of new episodes are drawn by."""

    @progress.setter
    def progress(self, value: float, /) -> None: ...

    def reset(self, seed: int | None = None) -> None:
        """Begin all episodes anew."""

    def step(self, actions: Actions) -> None:
        """Give the due agents their actions and go on until each simulation has one due or is over.

        What stands at other agents is ignored; an episode that is over begins anew instead.
        """


class RewardSource(Protocol):
    """Computes rewards; `ackademy.envs.rewarder.Rewarder` is the one there is."""

    reward_decision: I64
    """shape (n, agents): number of the decision that the last reward is for, -1 without one"""

    def reset(self) -> None:
        """All episodes have begun anew."""

    def compute(self) -> F64:
        """Rewards of the step just made, shape (n, agents)."""
