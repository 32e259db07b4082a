"""Simulations without a network: agents that must answer what they are asked, paid late.

Every agent of every simulation has a period of its own, so decisions are asynchronous. A decision
shows a context; the right answer is the context. What it was worth is known with the agent's
next decision but one, as the packets of a slot are.
"""

from __future__ import annotations

import numpy as np

from ackademy.learn.school import F32, F64, I64, Actions, Bools

CONTEXTS = 3
HISTORY, FEATURES = 4, 4
TICKS = 60
THROUGHPUT = 4


class FakeSchool:
    """`n` simulations of `agents` agents, `TICKS` long; discrete or with one continuous value."""

    def __init__(
        self, n: int = 4, agents: int = 2, *, seed: int = 0, discrete: bool = True
    ) -> None:
        self.observation: F32 = np.zeros((n, agents, HISTORY, FEATURES), np.float32)
        self.measures: F64 = np.zeros((n, agents, 17))
        self.credit: F64 = np.zeros((n, agents, 17))
        self.credit_step: I64 = np.full((n, agents), -1, np.int64)
        self.due: Bools = np.zeros((n, agents), np.bool_)
        self.decision: I64 = np.zeros((n, agents), np.int64)
        self.over: Bools = np.zeros(n, np.bool_)
        self.n_choices = CONTEXTS if discrete else 0
        self.action_size = 0 if discrete else 1
        self.packets = self.decisions = 0
        self.progress = 0.0
        self.period = 1 + (np.arange(n * agents) % 3).reshape(n, agents)
        self.steps = 0
        self._seed = seed
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Begin all episodes anew."""
        self._seed = self._seed if seed is None else seed
        self._episode = np.zeros(len(self.over), np.int64)
        for i in range(len(self.over)):
            self._begin(i)

    def _begin(self, i: int) -> None:
        self._rng = getattr(self, "_rng", {})
        self._rng[i] = np.random.default_rng((self._seed, i, int(self._episode[i])))
        self._worth: dict[tuple[int, int, int], float] = getattr(self, "_worth", {})
        self._tick = getattr(self, "_tick", np.zeros(len(self.over), np.int64))
        self._tick[i] = 0
        self._episode[i] += 1
        self.over[i], self.due[i], self.credit_step[i] = False, True, -1
        self.decision[i] = 0
        self.observation[i] = 0.0
        for j in range(self.due.shape[1]):
            self._show(i, j)

    def _show(self, i: int, j: int) -> None:
        history = self.observation[i, j]
        history[:-1] = history[1:]
        history[-1] = 0.0
        history[-1, int(self._rng[i].integers(CONTEXTS))] = 1.0
        history[-1, -1] = self.decision[i, j] / TICKS

    def _value(self, i: int, j: int, actions: Actions) -> float:
        context = int(self.observation[i, j, -1, :CONTEXTS].argmax())
        if self.n_choices:
            return float(actions[i, j] == context)
        return 1.0 - (float(actions[i, j, 0]) - (context - 1.0)) ** 2

    def step(self, actions: Actions) -> None:
        """Take the answers of those who are due and go on until others are."""
        self.steps += 1
        for i in range(len(self.over)):
            if self.over[i]:
                self._begin(i)
                continue
            for j in np.flatnonzero(self.due[i]):
                self._worth[i, j, int(self.decision[i, j])] = self._value(i, int(j), actions)
                self.decisions += 1
            self.due[i], self.credit_step[i] = False, -1
            while not self.due[i].any() and not self.over[i]:
                self._tick[i] += 1
                self.over[i] = self._tick[i] >= TICKS
                self.due[i] = self._tick[i] % self.period[i] == 0
            for j in np.flatnonzero(self.due[i]):
                self.decision[i, j] += 1
                closed = int(self.decision[i, j]) - 2
                if closed >= 0:
                    self.credit_step[i, j] = closed
                    self.credit[i, j, THROUGHPUT] = self._worth[i, int(j), closed]
                self._show(i, int(j))
        self.packets += 1
