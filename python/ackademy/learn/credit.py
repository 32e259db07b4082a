"""Delayed credit: which reward belongs to which decision (TCP-Drinc's experience buffer).

A decision changes the packets that are sent after it, and those are acknowledged a round trip
later, after the next decision. So a decision is kept here with its observation until the monitor
interval of the packets sent under it closes and the next decision of the same agent is due. Then
(X_t, a_t, reward of the packets of interval t, X_{t+1}) is complete.

Agents decide asynchronously. The successor of a decision is always the next one of the *same*
agent, however many others decide in between, so a discount counts decisions of one agent.

An episode ends because its time is up, not because the connection ends: no transition is
terminal. The one or two decisions whose interval did not close before it are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ackademy.learn.episode_source import F32, F64, I64, Actions, Bools, EpisodeSource

DEPTH = 8
"""Decisions of one agent that may be open at first. With intervals of a round trip two are; with
shorter ones there are more, and room is made for them."""
DEPTH_MAX = 4096
"""at most, as the core's interval accounts have it"""


@dataclass(frozen=True, slots=True)
class Transitions:
    """Completed decisions, in the order in which they were completed."""

    observation: F32
    """shape (m, history, features)"""
    action: Actions
    """shape (m,) or (m, action_size)"""
    reward: F32
    """shape (m,)"""
    following: F32
    """shape (m, history, features): what the same agent saw at its next decision"""
    log_probability: F32
    """shape (m,): of the action when it was chosen"""
    stream: I64
    """shape (m,): the agent, as `simulation * agents + agent`"""
    place: I64
    """shape (m,): one more per decision of a stream; a new episode leaves a gap"""
    truth: F32
    """shape (m, columns): what only the simulator knew when deciding; no column if not asked for"""
    following_truth: F32
    """the same at the agent's next decision"""

    def __len__(self) -> int:
        return len(self.reward)

    def __getitem__(self, chosen: slice) -> Transitions:
        return Transitions(*(getattr(self, name)[chosen] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: list[Transitions]) -> Transitions:
        """All of them, one behind the other."""
        columns = ([getattr(part, name) for part in parts] for name in cls.__slots__)
        return cls(*(np.concatenate(column) for column in columns))


class OpenDecisions:
    """The open decisions of all agents."""

    def __init__(self, env: EpisodeSource) -> None:
        n, agents, history, features = env.observation.shape
        self._agents = agents
        size = () if env.n_choices else (env.action_size,)
        dtype = np.int64 if env.n_choices else np.float32
        self._depth = DEPTH
        cells = (n * agents, DEPTH)
        self._number = np.full(cells, -1, np.int64)
        self._observation = np.zeros((*cells, history, features), np.float32)
        self._action: Actions = np.zeros((*cells, *size), dtype)
        self._log_probability = np.zeros(cells, np.float32)
        self._value = np.zeros(cells, np.float32)
        self._closed = np.zeros(cells, np.bool_)
        self._settled = np.full(n * agents, -1, np.int64)
        """the last decision with a reward; they come in order, so none before it gets one"""
        self._first_place = np.zeros(n * agents, np.int64)
        self._complete: list[tuple[I64, I64]] = []

    def open(
        self, env: EpisodeSource, actions: Actions, log_probability: F32 | None = None
    ) -> None:
        """Record the due decisions and their actions; call it before `step`.

        Args:
            env: as it stands, decisions due.
            actions: shape (n, agents) or (n, agents, action_size).
            log_probability: shape (n, agents), of the actions.
        """
        streams = np.flatnonzero(env.due & ~env.over[:, None])
        number = env.decision.reshape(-1)[streams]
        while (self._held(streams, number) > self._settled[streams]).any():
            if self._depth == DEPTH_MAX:
                break
            self._grow()
        place = number % self._depth
        self._number[streams, place] = number
        self._closed[streams, place] = False
        self._observation[streams, place] = _flat(env.observation)[streams]
        self._action[streams, place] = _flat(actions)[streams]
        if log_probability is not None:
            self._log_probability[streams, place] = log_probability.reshape(-1)[streams]
        self._note(streams, number - 1)

    def close(self, env: EpisodeSource, rewards: F64, reward_decision: I64) -> Transitions:
        """Give the intervals that closed in this step their rewards; call it after `step`.

        Args:
            env: as it stands.
            rewards: shape (n, agents).
            reward_decision: shape (n, agents): number of the decision each is for; -1: no reward.

        Returns:
            Every transition completed since the last call.
        """
        streams = np.flatnonzero(reward_decision >= 0)
        number = reward_decision.reshape(-1)[streams]
        known = self._held(streams, number) == number
        streams, number = streams[known], number[known]
        self._value[streams, number % self._depth] = rewards.reshape(-1)[streams]
        self._closed[streams, number % self._depth] = True
        self._settled[streams] = number
        self._note(streams, number)
        done = self._take()
        self._forget(np.repeat(env.over, self._agents))
        return done

    def _note(self, streams: I64, number: I64) -> None:
        """Complete the decisions that have both their reward and their successor."""
        here, there = number % self._depth, (number + 1) % self._depth
        ready = (
            (number >= 0)
            & (self._number[streams, here] == number)
            & self._closed[streams, here]
            & (self._number[streams, there] == number + 1)
        )
        if ready.any():
            self._complete.append((streams[ready], number[ready]))

    def _take(self) -> Transitions:
        empty = np.zeros(0, np.int64)
        streams = np.concatenate([empty, *(streams for streams, _ in self._complete)])
        number = np.concatenate([empty, *(number for _, number in self._complete)])
        self._complete = []
        here, there = number % self._depth, (number + 1) % self._depth
        return Transitions(
            observation=self._observation[streams, here],
            action=self._action[streams, here],
            reward=self._value[streams, here],
            following=self._observation[streams, there],
            log_probability=self._log_probability[streams, here],
            stream=streams,
            place=self._first_place[streams] + number,
            truth=np.zeros((len(streams), 0), np.float32),
            following_truth=np.zeros((len(streams), 0), np.float32),
        )

    def _forget(self, ended: Bools) -> None:
        """Drop the open decisions of episodes that have ended."""
        self._first_place[ended] += self._number[ended].max(axis=1, initial=-1) + 2
        self._number[ended] = -1
        self._settled[ended] = -1
        self._closed[ended] = False

    def _held(self, streams: I64, number: I64) -> I64:
        """Which decisions are where these are, or would be; -1: none."""
        return self._number[streams, number % self._depth]

    def _grow(self) -> None:
        """Make room for twice as many open decisions."""
        streams, place = np.nonzero(self._number >= 0)
        wider = self._number[streams, place] % (2 * self._depth)
        for name in ("_number", "_observation", "_action", "_log_probability", "_value", "_closed"):
            old = getattr(self, name)
            shape = (len(old), 2 * self._depth, *old.shape[2:])
            new = np.full(shape, -1 if name == "_number" else 0, old.dtype)
            new[streams, wider] = old[streams, place]
            setattr(self, name, new)
        self._depth *= 2


def _flat(array: Actions | F32) -> Actions | F32:
    """Streams in place of simulations and agents."""
    return array.reshape(-1, *array.shape[2:])
