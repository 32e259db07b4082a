"""Computes rewards: which flows get one after a step, and for which interval."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from ackademy.envs.metrics import COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.rewards import Reward, find, needs_truth, team_share
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


class AccountsWithTruth(Accounts, Protocol):
    """What a rewarder reads for a reward that needs the truth."""

    @property
    def truth(self) -> FloatArray:
        """Truth of what `metrics` is of, shape (n, agents, 16), or without a column."""

    @property
    def credit_truth(self) -> FloatArray:
        """The same of `credit`."""


class Rewarder:
    """Rewards of all flows of all episodes, step by step.

    A flow is rewarded when it is due again or ends, once for the interval since its last decision
    (`arrived`), or when the fate of all packets sent in one interval is known, for that interval
    (`sent`). The last interval of an episode has reward 0 if nothing was acknowledged or lost in
    it: its length would decide its reward. An agent without a rewarded interval has reward 0.

    The interval before a flow's first one ends at its first decision.

    A reward that needs the truth may be NaN: then the interval is unrewarded, its reward is 0. One
    with a team share mixes in the least of the latest own rewards of the flows that learn in the
    same episode and have not ended, its own included.

    Args:
        reward: a name, `file.py:function`, or a function.
        credit: which account a reward is of.
        accounts: read after each step.

    Attributes:
        reward_decision: number of the decision that the last reward is for, -1 without one; shape
            (n, agents).
        entered: which flows have been due in their present episode; shape (n, agents).

    Raises:
        TrainingError: if there is no such reward or account, or it needs truth that is not there.
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
        self._needs_truth = needs_truth(self.function)
        columns = getattr(accounts, "truth", np.zeros(0)).shape[-1]
        if self._needs_truth and columns == 0:
            allowed = "allowed with simulations that collect it"
            raise TrainingError(f"reward {_name(self.function)}: it needs truth; {allowed}")
        self._team_share = team_share(self.function)
        self._own = np.full(shape, np.nan)

    def reset(self) -> None:
        """Start over after all episodes have been reset."""
        self.entered[:] = False
        self._left[:] = False
        self._own[:] = np.nan
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
            self._own[began] = np.nan
        account, rewarded = self._account()
        rewards = np.zeros(rewarded.shape)
        self.reward_decision[:] = -1
        if self._needs_truth:
            if rewarded.any():
                rewards[rewarded] = self._judge_by_truth(account, rewarded)
                self.reward_decision[rewarded] = self._numbers()[rewarded]
        elif rewarded.all():
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

    def _judge_by_truth(self, account: FloatArray, rewarded: BoolArray) -> FloatArray:
        """The rewards of the flows that get one, of a function that needs the truth."""
        accounts = cast("AccountsWithTruth", self._accounts)
        truth = accounts.credit_truth if self.credit == "sent" else accounts.truth
        rows, best = account[rewarded], self._best[rewarded]
        best_before = best.copy()
        np.maximum(best, rows[..., THROUGHPUT], out=best)
        metrics = IntervalMetrics(rows, best, truth[rewarded])
        own = judge(self.function, metrics, IntervalMetrics(self._before[rewarded], best_before))
        self._before[rewarded] = rows
        self._best[rewarded] = best
        self._own[rewarded] = np.where(np.isnan(own), self._own[rewarded], own)
        least = np.fmin.reduce(np.where(accounts.left, np.nan, self._own), axis=1)
        least = np.broadcast_to(least[:, None], rewarded.shape)[rewarded]
        mixed = own + self._team_share * (np.fmin(least, own) - own)
        return np.where(np.isnan(own), 0.0, mixed)

    def _judge(self, rows: FloatArray, before: FloatArray, best: FloatArray) -> FloatArray:
        """The rewards of rows of metrics; raises `best` in place."""
        best_before = best.copy()
        np.maximum(best, rows[..., THROUGHPUT], out=best)
        return judge(
            self.function, IntervalMetrics(rows, best), IntervalMetrics(before, best_before)
        )

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


def judge(function: Reward, metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """The rewards of intervals, one per row.

    Args:
        function: called once.
        metrics: rows of the intervals.
        before: rows of the intervals before them.

    Raises:
        TrainingError: if the function returns a wrong shape or a number that is not finite; NaN is
            allowed of one that needs the truth.
    """
    shape = metrics.throughput_max_mbps.shape
    rewards = np.asarray(function(metrics, before))
    if rewards.shape != shape:
        raise TrainingError(f"reward {_name(function)}: shape {rewards.shape}: allowed: {shape}")
    known = np.isnan(rewards) if needs_truth(function) else np.zeros(shape, np.bool_)
    if not (np.isfinite(rewards) | known).all():
        raise TrainingError(f"reward {_name(function)}: not finite; allowed: numbers")
    return rewards


def _name(function: Reward) -> str:
    return getattr(function, "__name__", repr(function))
