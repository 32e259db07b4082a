"""Computes rewards: which flows get one after a step, and for which interval."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ackademy.envs.metrics import COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.rewards import Reward, find
from ackademy.errors import TrainingError

Credit = Literal["arrived", "sent"]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

TIME, ACKED, LOST, THROUGHPUT = (
    COLUMNS.index(name) for name in ("time_s", "acked_packets", "lost_packets", "throughput_mbps")
)


class Accounts(Protocol):
    """What a rewarder reads after each step: `_core.Episodes`, or an object with its arrays."""

    @property
    def metrics(self) -> FloatArray:
        """What was acknowledged since the last decision, shape (n, agents, 17)."""

    @property
    def credit(self) -> FloatArray:
        """Fate of the packets sent in one monitor interval, shape (n, agents, 17)."""

    @property
    def credit_step(self) -> IntArray:
        """Number of the decision that began that interval, or -1, shape (n, agents)."""

    @property
    def decision(self) -> IntArray:
        """Number of the decision now due, shape (n, agents)."""

    @property
    def due(self) -> BoolArray:
        """Which agents are due, shape (n, agents)."""

    @property
    def left(self) -> BoolArray:
        """Which flows have ended, alone or with their episode, shape (n, agents)."""

    @property
    def over(self) -> BoolArray:
        """Which episodes have ended, shape (n,)."""


class Rewarder:
    """Rewards of all flows of all episodes, step by step.

    A flow is rewarded when it is due again or ends, once for the interval since its last decision
    (`arrived`), or when the fate of all packets sent in one interval is known, for that interval
    (`sent`). The last interval of an episode has reward 0 if nothing was acknowledged or lost in
    it: its length would decide its reward. An agent without a rewarded interval has reward 0.

    The interval before a flow's first one ends at its first decision.

    Args:
        reward: a name, `file.py:function`, or a function.
        credit: which account a reward is of.
        accounts: read after each step.

    Attributes:
        reward_decision: number of the decision that the last reward is for, -1 without one; shape
            (n, agents).
        entered: which flows have been due in their present episode; shape (n, agents).

    Raises:
        TrainingError: if there is no such reward or account.
    """

    def __init__(self, reward: str | Reward, credit: Credit, accounts: Accounts) -> None:
        if credit not in get_args(Credit):
            raise TrainingError(f"credit = {credit!r}: allowed: {', '.join(get_args(Credit))}")
        self.function = find(reward)
        self.credit = credit
        self._accounts = accounts
        shape = accounts.due.shape
        self.reward_decision: IntArray = np.full(shape, -1, np.int64)
        self._before = np.zeros_like(accounts.metrics)
        self._best = np.zeros(shape)
        self.entered: BoolArray = np.zeros(shape, np.bool_)
        self._over = np.zeros(shape[0], np.bool_)
        self._left = np.zeros(shape, np.bool_)
        self._made: IntArray = np.full(shape, -1, np.int64)

    def reset(self) -> None:
        """Start over after all episodes have been reset."""
        self.entered[:] = False
        self._left[:] = False
        self.reward_decision[:] = -1
        self._enter()

    def compute(self) -> FloatArray:
        """The rewards of the step just made, shape (n, agents).

        Raises:
            TrainingError: if the function returns a wrong shape or a number that is not finite.
        """
        began = self._over
        if began.any():
            self.entered[began] = False
            self._left[began] = False
        account, rewarded = self._account()
        rewards = np.zeros(rewarded.shape)
        self.reward_decision[:] = -1
        if rewarded.all():
            rows, best = account.reshape(-1, len(COLUMNS)), self._best.reshape(-1)
            before = self._before.reshape(rows.shape)
            rewards.reshape(-1)[:] = self._judge(rows, before, best)
            self._before[:] = account
            self.reward_decision[:] = self._numbers()
        elif rewarded.any():
            rows, best = account[rewarded], self._best[rewarded]
            rewards[rewarded] = self._judge(rows, self._before[rewarded], best)
            self._before[rewarded] = rows
            self._best[rewarded] = best
            self.reward_decision[rewarded] = self._numbers()[rewarded]
        self._enter()
        return rewards

    def _account(self) -> tuple[FloatArray, BoolArray]:
        """The account of each reward, and the flows that get one."""
        accounts = self._accounts
        if self.credit == "sent":
            return accounts.credit, self.entered & (accounts.credit_step >= 0)
        metrics = accounts.metrics
        rewarded = self.entered & accounts.due
        if accounts.left.any():
            ends = self.entered & accounts.left & ~self._left
            known = (metrics[..., ACKED] > 0.0) | (metrics[..., LOST] > 0.0)
            # A flow that has fallen back has no new metrics.
            rewarded |= ends & known & (metrics[..., TIME] > self._before[..., TIME])
        return metrics, rewarded

    def _numbers(self) -> IntArray:
        return self._accounts.credit_step if self.credit == "sent" else self._made

    def _judge(self, rows: FloatArray, before: FloatArray, best: FloatArray) -> FloatArray:
        """The rewards of rows of metrics; raises `best` in place."""
        best_before = best.copy()
        np.maximum(best, rows[..., THROUGHPUT], out=best)
        rewards = np.asarray(
            self.function(IntervalMetrics(rows, best), IntervalMetrics(before, best_before))
        )
        if rewards.shape != best.shape:
            raise TrainingError(
                f"reward {_name(self.function)}: shape {rewards.shape}: allowed: {best.shape}"
            )
        if not np.isfinite(rewards).all():
            raise TrainingError(f"reward {_name(self.function)}: not finite; allowed: numbers")
        return rewards

    def _enter(self) -> None:
        """Record the first interval of new flows, and forget episodes that have ended."""
        accounts = self._accounts
        self._over = accounts.over.copy()
        self._left = accounts.left.copy()
        np.copyto(self._made, accounts.decision, where=accounts.due)
        if self.entered.all():
            return
        new = accounts.due & ~self.entered
        if new.any():
            self._before[new] = accounts.metrics[new]
            self._best[new] = accounts.metrics[new][:, THROUGHPUT]
            self.entered |= new


def _name(function: Reward) -> str:
    return getattr(function, "__name__", repr(function))
