"""Computes rewards: which flows get one after a step, and for which interval."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ackademy import _core
from ackademy.envs.metrics import FloatArray, IntervalMetrics
from ackademy.envs.rewards import Reward, find, needs_truth, team_share
from ackademy.errors import TrainingError

Credit = Literal["arrived", "sent"]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


Accounts: TypeAlias = _core.Episodes
"""what a rewarder reads after each step"""


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

    Raises:
        TrainingError: if there is no such reward or account, or it needs truth that is not there.
    """

    def __init__(self, reward: str | Reward, credit: Credit, accounts: Accounts) -> None:
        if credit not in get_args(Credit):
            raise TrainingError(f"credit = {credit!r}: allowed: {', '.join(get_args(Credit))}")
        self.function = find(reward)
        self.credit = credit
        self._accounts = accounts
        n, agents = accounts.due.shape
        self._intervals = _core.RewardedIntervals(n, agents, sent=credit == "sent")
        self.reward_decision: IntArray = np.full((n, agents), -1, np.int64)
        self._needs_truth = needs_truth(self.function)
        columns = getattr(accounts, "truth", np.zeros(0)).shape[-1]
        if self._needs_truth and columns == 0:
            allowed = "allowed with simulations that collect it"
            raise TrainingError(f"reward {_name(self.function)}: it needs truth; {allowed}")
        self._team_share = team_share(self.function)
        self._own = np.full((n, agents), np.nan)
        self._over = np.zeros(n, np.bool_)

    @property
    def entered(self) -> BoolArray:
        """Which flows have been due in their present episode; shape (n, agents)."""
        return self._intervals.entered

    def reset(self) -> None:
        """Start over after all episodes have been reset."""
        self._intervals.reset(self._accounts)
        self._own[:] = np.nan
        self._over = self._accounts.over.copy()
        self.reward_decision = np.full_like(self.reward_decision, -1)

    def compute(self) -> FloatArray:
        """The rewards of the step just made, shape (n, agents).

        Raises:
            TrainingError: if the function returns a wrong shape or a number that is not finite.
        """
        places, rows, before, best, best_before, decisions = self._intervals.take(self._accounts)
        self.reward_decision = decisions
        if self._needs_truth:
            self._own[self._over] = np.nan
            self._over = self._accounts.over.copy()
        if len(places) == 0:
            return np.zeros(decisions.shape)
        truth = self._truth(places) if self._needs_truth else None
        metrics = IntervalMetrics(rows, best, truth)
        own = judge(self.function, metrics, IntervalMetrics(before, best_before))
        mixed = self._mix(own, places) if self._needs_truth else own
        if len(places) == decisions.size:
            return mixed.reshape(decisions.shape)
        rewards = np.zeros(decisions.shape)
        rewards.reshape(-1)[places] = mixed
        return rewards

    def _truth(self, places: IntArray) -> FloatArray:
        """The truth of the intervals of the flows in these places."""
        accounts = self._accounts
        truth = accounts.credit_truth if self.credit == "sent" else accounts.truth
        return truth.reshape(-1, truth.shape[-1])[places]

    def _mix(self, own: FloatArray, places: IntArray) -> FloatArray:
        """Own rewards and a share of the least in the same episode; 0 for the unrewarded."""
        latest = self._own.reshape(-1)
        latest[places] = np.where(np.isnan(own), latest[places], own)
        least = np.fmin.reduce(np.where(self._accounts.left, np.nan, self._own), axis=1)
        least = least[places // self._own.shape[1]]
        mixed = own + self._team_share * (np.fmin(least, own) - own)
        return np.where(np.isnan(own), 0.0, mixed)


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
    known = np.isfinite(rewards)
    if needs_truth(function):
        known |= np.isnan(rewards)
    if not known.all():
        raise TrainingError(f"reward {_name(function)}: not finite; allowed: numbers")
    return rewards


def _name(function: Reward) -> str:
    return getattr(function, "__name__", repr(function))
