"""Several learning flows in one network, with asynchronous decisions."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

from ackademy import _core
from ackademy.backends import entries
from ackademy.envs import opening
from ackademy.envs.flow import SEED_MAX, Action, Info
from ackademy.envs.metrics import COLUMNS
from ackademy.envs.opening import Observation, Source
from ackademy.envs.rewarder import BoolArray, Credit
from ackademy.envs.rewards import Reward
from ackademy.errors import TrainingError

SHARED = """\
# Three flows that learn on one link, each beginning five seconds after the one before.
duration_s = 30

[dumbbell]
rtt_ms = 40

[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", bdp = 1 }

[[flow]]
name = "learner"
count = 3
start_step_s = 5
"""
"""the scenario of an environment that was given none"""

Observations = dict[str, Observation]


class SharedFlows(ParallelEnv[str, Observation, Action]):  # type: ignore[misc]
    """Learning flows of one network as agents `flow_0`, `flow_1`, ...; decisions are asynchronous.

    ## Time

    Every agent has its own decision clock: round trips, a time, or the next acknowledgement. A
    step simulates up to the next instant at which *any* agent is due, usually one alone.
    `infos[agent]["due"]` says which agents are due. Then, for every live agent:

    * its action is used if it was due, and ignored otherwise; it may be left out of `actions`
      where it was not due, and must not be where it was;
    * its observation is that of its last decision, and changes when it is due again;
    * its reward is 0 until it is due again, and then that of the whole interval since its last
      decision (`credit="arrived"`), or comes when all packets of a decision are accounted for
      (`credit="sent"`). No interval counts twice or is split. The rewards of an agent at the steps
      at which it is due, in order, are those of `Flow` with this flow as the only learner. So take
      its discounted return over its own decisions, not over the steps of the environment.

    ## Agents come and go

    An agent is in `agents` from its first decision on. It leaves, truncated, when its flow has
    ended, by the scenario's `stop_s` or because it has nothing left to send, or with the scenario.
    It does not come back in the same episode. An agent whose flow makes no decision never appears.
    No agent is terminated.

    Observations, actions, rewards and `infos` are otherwise those of `Flow`.

    Args:
        scenario: as for `Flow`.
        agent_settings: as for `Flow`, the same for all agents.
        reward: as for `Flow`.
        learner: pattern for the `[[flow]]` entries that learn; by default the only one there is, or
            what a distribution names.
        agents: most flows that learn at once; needed for a distribution only.
        credit: as for `Flow`.
        flat: as for `Flow`.

    Raises:
        AckademyError: one line with file, field, value and what is allowed.
    """

    metadata = {"name": "ackademy_shared_flows_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path | Source = SHARED,
        agent_settings: str | Path = "drinc",
        reward: str | Reward = "drinc",
        learner: str | None = None,
        agents: int | None = None,
        credit: Credit = "arrived",
        flat: bool = False,
    ) -> None:
        source = opening.read_source(scenario)
        count = _count(source, learner) if agents is None else agents
        if count < 1:
            raise TrainingError(f"agents = {count}: allowed: a whole number from 1")
        own = opening.Opened(
            source, agent_settings, reward, learner, credit, agents=count, flat=flat
        )
        self._opened, self._episodes, self._rewarder = own, own.episodes, own.rewarder
        self.render_mode = None
        self.possible_agents = [f"flow_{place}" for place in range(count)]
        self.agents: list[str] = []
        self._places = {agent: place for place, agent in enumerate(self.possible_agents)}
        self.observation_spaces: dict[str, spaces.Space[Observation]] = {
            agent: copy.copy(own.observation_space) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, spaces.Space[Any]] = {
            agent: copy.copy(own.action_space) for agent in self.possible_agents
        }
        self._view = self._episodes.observation[0].reshape(count, *own.observation_space.shape)
        self._left: BoolArray = np.zeros(count, np.bool_)
        self._generator: np.random.Generator | None = None

    def observation_space(self, agent: str) -> spaces.Space[Observation]:
        """Of an agent: the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Of an agent: the same object at every call."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Info]]:
        """Begin an episode and simulate up to the first decision of any agent.

        Args:
            seed: of the episode; without one, the next of the sequence that the last seed began.
            options: `progress`, for a curriculum (`opening.Opened.begin`); others are ignored.
        """
        if seed is None and self._generator is None:
            self._generator, _ = seeding.np_random()
            seed = int(self._generator.integers(SEED_MAX))
        elif seed is not None:
            self._generator, _ = seeding.np_random(seed)
        self._opened.begin(seed, options)
        self._left[:] = False
        self.agents = self._live()
        return self._observe(self.agents), self._infos(self.agents)

    def step(
        self, actions: Mapping[str, Action]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Apply the actions of the due agents, and simulate until an agent is due or to the end.

        Raises:
            TrainingError: if an agent that is due has no action, or what is none.
            ResetNeeded: if the episode is over or none has begun.
        """
        if not self.agents:
            raise ResetNeeded("the episode is over or has not begun: call reset()")
        due = self._episodes.due[0]
        for agent in self.agents:
            if due[self._places[agent]]:
                if agent not in actions:
                    raise TrainingError(f"actions: {agent} is due; allowed: an action of it")
                place = self._places[agent]
                self._opened.write(self._opened.actions[0, place : place + 1], actions[agent])
        rewards = self._opened.step()[0]
        left = self._episodes.left[0] | self._episodes.over[0]
        told = [*self.agents, *(agent for agent in self._live() if agent not in self.agents)]
        truncations = {agent: bool(left[self._places[agent]]) for agent in told}
        self.agents = [agent for agent in told if not truncations[agent]]
        return (
            self._observe(told),
            {agent: float(rewards[self._places[agent]]) for agent in told},
            dict.fromkeys(told, False),
            truncations,
            self._infos(told),
        )

    def _live(self) -> list[str]:
        """Agents that have been due in this episode and whose flows have not ended."""
        live = self._rewarder.entered[0] & ~self._episodes.left[0]
        return [agent for agent, place in self._places.items() if live[place]]

    def _observe(self, agents: list[str]) -> Observations:
        return {agent: self._view[self._places[agent]].copy() for agent in agents}

    def _infos(self, agents: list[str]) -> dict[str, Info]:
        return {agent: self._info(self._places[agent]) for agent in agents}

    def _info(self, place: int) -> Info:
        episodes = self._episodes
        metrics = episodes.metrics[0, place].tolist()
        return {
            "due": bool(episodes.due[0, place]),
            "metrics": dict(zip(COLUMNS, metrics, strict=True)),
            "decision": int(episodes.decision[0, place]),
            "credit": int(self._rewarder.reward_decision[0, place]),
        }


def _count(source: Source, learner: str | None) -> int:
    """Maximum number of flows that learn at once."""
    patterns = opening.learners_of(source, learner)
    if isinstance(source, _core.Distribution):
        return source.agents
    return entries.learning(source, patterns)
