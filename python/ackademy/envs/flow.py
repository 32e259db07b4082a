"""One learning flow in a network, in one simulation or in many: `ackademy/Flow-v0`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ackademy.envs import opening
from ackademy.envs.metrics import COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.opening import LINK, Observation, Source
from ackademy.envs.rewarder import BoolArray, Credit
from ackademy.envs.rewards import Reward
from ackademy.errors import TrainingError

Action: TypeAlias = "int | np.integer[Any] | npt.NDArray[Any]"
Info: TypeAlias = dict[str, Any]

SEED_MAX = 2**63 - 1


class Flow(gym.Env[Observation, Action]):
    """One learning flow among others; a step lasts from one of its decisions to the next.

    A scenario describes the network and all flows; the caller's actions control one of them. The
    simulator is packet by packet, with loss recovery as in the kernel. The same code computes the
    observations of a finished policy.

    ## Observation

    `Box`, float32, shape (history, features): the latest intervals, oldest first, zeros
    before the first. The agent settings name the features; docs/reference/envs.md has their scaling
    and ranges. With `flat` the same numbers in one row, which many libraries want.

    ## Action

    `Discrete` with one choice per step of the action's `cwnd_steps`, or `Box` in [-1, 1] with one
    value (`cwnd_factor`, `rate_change`) or two (`rate_and_cwnd`, `own_queue`). An action that is
    not a number, or beyond the action's `limit`, hands the flow to CUBIC for the rest of the
    episode, as it would in use.

    ## Reward

    A function of the metrics of an interval and of the interval before it (`rewards`). With
    `credit="arrived"` the interval is the step: what was acknowledged and lost since the decision.
    Most of that was sent under the decision before. With `credit="sent"` the metrics are those of
    the packets sent under one decision, in the step in which the fate of the last of them is known.
    `info["credit"]` is the number of that decision; without one it is -1 and the reward is 0.

    ## Start and end

    `reset` simulates up to the flow's first decision. An episode is truncated at the end of the
    scenario and never terminates.

    ## Info

    | key | what |
    |---|---|
    | `metrics` | the interval just ended, by name (`ackademy.envs.metrics.COLUMNS`) |
    | `decision` | number of the decision now due, from 0 |
    | `credit` | number of the decision that the reward is for, -1 without one |

    Args:
        scenario: a scenario or a distribution of them: a file, its text, or parsed. The default,
            one flow alone on a link, has nothing random: its episode is the same for every seed.
        agent_settings: a name of `agent_settings.NAMED`, a TOML file, or its text.
        reward: a name of `rewards.REWARDS`, `file.py:function`, or a function.
        learner: pattern for the `[[flow]]` entry that learns; not needed where there is only one,
            or where a distribution names it.
        credit: which interval a reward is of.
        flat: whether observations are one row.
        render_mode: `ansi` for a line of text per step.

    ## Versions

    v0: first.

    Raises:
        AckademyError: one line with file, field, value and what is allowed.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 10}  # noqa: RUF012 (an instance attribute in Gymnasium's own eyes)

    def __init__(
        self,
        scenario: str | Path | Source = LINK,
        agent_settings: str | Path = "drinc",
        reward: str | Reward = "drinc",
        learner: str | None = None,
        credit: Credit = "arrived",
        flat: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise TrainingError(f"render_mode = {render_mode!r}: allowed: 'ansi', or none")
        self.render_mode = render_mode
        own = opening.Opened(scenario, agent_settings, reward, learner, credit, flat=flat)
        self._opened, self._episodes = own, own.episodes
        self.observation_space, self.action_space = own.observation_space, own.action_space
        self._view = own.episodes.observation.reshape(self.observation_space.shape)
        self._seeded = False
        self._reward = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin an episode and simulate up to the first decision.

        Args:
            seed: of the episode; without one, the next of the sequence that the last seed began.
            options: `progress`, for a curriculum (`opening.Opened.begin`); others are ignored.
        """
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(SEED_MAX))
        self._seeded = True
        self._opened.begin(seed, options)
        self._reward = 0.0
        return self._view.copy(), self._info()

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Apply an action and simulate up to the next decision or the end of the scenario.

        Raises:
            ResetNeeded: if the episode is over or none has begun.
            TrainingError: if it is no action.
        """
        own = self._opened
        if not own.is_running:
            raise gym.error.ResetNeeded("the episode is over or has not begun: call reset()")
        if self._episodes.over[0]:  # over before the first decision
            own.is_running = False
            return self._view.copy(), 0.0, False, True, self._info()
        own.write(own.actions[0], action)
        self._reward = float(own.step()[0, 0])
        truncated = bool(self._episodes.over[0])
        own.is_running = not truncated
        return self._view.copy(), self._reward, False, truncated, self._info()

    def render(self) -> str | None:  # type: ignore[override]
        """A line about the interval that has just ended, in mode `ansi`."""
        if self.render_mode is None:
            return None
        of = IntervalMetrics(self._episodes.metrics[0, 0])
        return (
            f"{float(of.time_s):9.3f} s  {float(of.throughput_mbps):8.3f} Mb/s  "
            f"rtt {float(of.rtt_ms):8.2f} ms  loss {100 * float(of.loss_ratio):5.1f} %  "
            f"cwnd {float(of.cwnd_packets):8.1f}  reward {self._reward:9.3f}"
        )

    def _info(self) -> Info:
        return {
            "metrics": dict(zip(COLUMNS, self._episodes.metrics[0, 0].tolist(), strict=True)),
            "decision": int(self._episodes.decision[0, 0]),
            "credit": int(self._opened.rewarder.reward_decision[0, 0]),
        }


class VectorFlow(VectorEnv[Observation, npt.NDArray[Any], npt.NDArray[Any]]):
    """`Flow` many times over: one call steps all simulations, on all cores and without the GIL.

    Spaces, rewards and infos are those of `Flow`, batched: `infos["metrics"]` holds one array of
    shape (num_envs,) per column, `decision` and `credit` are arrays. Episode `i` of a seed is the
    same whatever the number of environments or threads.

    An episode that is over begins anew with the next step, whose action is ignored and whose reward
    is 0 (`AutoresetMode.NEXT_STEP`).

    Args:
        num_envs: simulations.
        scenario: as for `Flow`.
        agent_settings: as for `Flow`.
        reward: as for `Flow`.
        learner: as for `Flow`.
        credit: as for `Flow`.
        flat: as for `Flow`.
        copy: whether observations and infos are copies. If not, they are views of arrays that the
            next step overwrites: read them before it.
        threads: that simulate; 0 for all cores. Results do not depend on it.

    Raises:
        AckademyError: one line with file, field, value and what is allowed.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Source = LINK,
        agent_settings: str | Path = "drinc",
        reward: str | Reward = "drinc",
        learner: str | None = None,
        credit: Credit = "arrived",
        flat: bool = False,
        copy: bool = True,
        threads: int = 0,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise TrainingError(f"render_mode = {render_mode!r}: allowed: none")
        if num_envs < 1:
            raise TrainingError(f"num_envs = {num_envs}: allowed: a whole number from 1")
        self.num_envs = num_envs
        own = opening.Opened(
            scenario, agent_settings, reward, learner, credit,
            n=num_envs, threads=threads, flat=flat,
        )  # fmt: skip
        self._opened, self.episodes = own, own.episodes
        self._copy = copy
        self.single_observation_space: spaces.Box = own.observation_space
        self.single_action_space = own.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._view = self.episodes.observation.reshape(num_envs, *own.observation_space.shape)
        self._metrics = IntervalMetrics(self.episodes.metrics[:, 0]).by_name()
        self._decision = self.episodes.decision[:, 0]
        self._seeded = False
        self._never: BoolArray = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin all episodes and simulate each up to its first decision.

        Args:
            seed: of all episodes; without one, the sequence of the last seed continues.
            options: `progress`, for a curriculum (`opening.Opened.begin`); others are ignored.
        """
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(SEED_MAX))
        self._seeded = True
        self._opened.begin(seed, options)
        return self._observe(), self._info()

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[Observation, FloatArray, BoolArray, BoolArray, Info]:
        """Apply an action per episode and simulate each up to its next decision or its end.

        Args:
            actions: shape (num_envs,) of choices, or (num_envs, values).

        Raises:
            ResetNeeded: if no episodes have begun.
            TrainingError: if they are no actions, or the next scenario that is drawn cannot be
                used for training.
        """
        own = self._opened
        if not own.is_running:
            raise gym.error.ResetNeeded("no episodes have begun: call reset()")
        own.write(own.actions[:, 0], actions)
        rewards = own.step()[:, 0]
        truncated = self.episodes.over.copy()
        return self._observe(), rewards, self._never.copy(), truncated, self._info()

    def _observe(self) -> Observation:
        return self._view.copy() if self._copy else self._view

    def _info(self) -> Info:
        if self._copy:
            metrics = IntervalMetrics(self.episodes.metrics[:, 0].copy()).by_name()
            decision = self.episodes.decision[:, 0].copy()
        else:
            metrics, decision = dict(self._metrics), self._decision
        credit = self._opened.rewarder.reward_decision[:, 0]
        return {"metrics": metrics, "decision": decision, "credit": credit}
