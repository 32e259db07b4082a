"""Tuning CUBIC's beta (and C) from one transfer to the next: Knott 2023 as an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ackademy.papers.knott2023.transfers import (
    BETA_STEP_ALLOWED,
    BETA_UNITS,
    C_GRID,
    C_UNITS,
    DEFAULT_BETA,
    DEFAULT_C,
    Setting,
    Simulated,
    Transfer,
    Transfers,
    beta_grid,
    is_beta_step,
    scenario_file,
)

Tuned = Literal["beta", "c"]
LossUnit = Literal["percent", "fraction"]

THROUGHPUT_MAX_PPS = 1000.0
THROUGHPUT_REWARD = 10.0
LOSS_REWARD = -2000.0

Observation = npt.NDArray[np.float64]
Action: TypeAlias = "int | np.integer[Any] | npt.NDArray[np.integer[Any]]"


class CubicBeta(gym.Env[Observation, Action]):
    """One step is one whole transfer with the parameters that the action has just changed.

    ## Observation

    `Box`, float64: the parameters tuned, then the outcome of the last transfer.

    | index | feature | unit | range |
    |---|---|---|---|
    | 0 | beta | part of the window kept | [0, 1] |
    | 1 | C, only if tuned | segments/s³ | [0, 10] |
    | −2 | writes refused by the full send buffer: the paper's "loss" | part | [0, 1] |
    | −1 | writes accepted over the time of writing | packets/s | [0, 1000] |

    ## Action

    `Discrete(3)` for one parameter, `MultiDiscrete([3, 3])` for two: 0 lowers, 1 keeps, 2 raises it
    by one place of its grid; at an end of the grid it stays. beta moves by `beta_step` and stays
    that far from 0 and 1, C moves by a factor of 2 in [0.025, 6.4].

    ## Reward

    `10 * throughput − 2000 * loss`, throughput in packets/s and loss in per cent or as a fraction:
    the form of PCC-RL (Jay et al. 2019) without its latency term. The unit changes no order of
    settings, but it changes the sign: in per cent every reward is negative, and a table that starts
    at 0 is then optimistic and tries everything.

    ## Start and end

    `reset` puts the parameters back to the defaults (beta 0.7, C 0.4) and makes a transfer with
    them. Episodes do not end of themselves; the registered environment is cut after 100 steps.

    Nothing is random: `seed` is taken and changes nothing, and equal transfers are made once.

    Args:
        rate_mbps: of the link; the paper has 4, 6, 8 and 12.
        tune: `("beta",)`, or `("beta", "c")`.
        transfers: makes transfers; by default they are simulated.
        beta_step: 0.1, 0.05, or another of `transfers.BETA_STEPS`, which lead to 0.7.
        loss_unit: `percent`, as the paper's words have it, or `fraction`, as PCC-RL has it.

    ## Versions

    v0: first.

    Raises:
        ValueError: if `tune`, `beta_step` or `loss_unit` is not one of those named.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (an instance attribute in Gymnasium's own eyes)

    def __init__(
        self,
        rate_mbps: float = 4.0,
        tune: Sequence[Tuned] = ("beta",),
        transfers: Transfers | None = None,
        beta_step: float = 0.1,
        loss_unit: LossUnit = "percent",
    ) -> None:
        if tuple(tune) not in {("beta",), ("beta", "c")}:
            raise ValueError(f"tune = {tune!r}: allowed: ('beta',), ('beta', 'c')")
        if not is_beta_step(beta_step):
            raise ValueError(f"beta_step = {beta_step}: allowed: {BETA_STEP_ALLOWED}")
        if loss_unit not in get_args(LossUnit):
            raise ValueError(f"loss_unit = {loss_unit!r}: allowed: {', '.join(get_args(LossUnit))}")
        self.rate_mbps = rate_mbps
        self.tunes_c = "c" in tune
        self.transfers = transfers or Simulated.of_file(scenario_file())
        self.betas = beta_grid(round(beta_step * BETA_UNITS))
        self.loss_reward = LOSS_REWARD * (100.0 if loss_unit == "percent" else 1.0)
        low, high = [0.0, 0.0], [1.0, THROUGHPUT_MAX_PPS]
        if self.tunes_c:
            low, high = [0.0, *low], [10.0, *high]
        self.observation_space = spaces.Box(
            np.array([0.0, *low]), np.array([1.0, *high]), dtype=np.float64
        )
        self.action_space = spaces.MultiDiscrete([3, 3]) if self.tunes_c else spaces.Discrete(3)
        self._beta = self._c = 0
        self._reset_parameters()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Back to the defaults, and a transfer with them."""
        super().reset(seed=seed)
        self._reset_parameters()
        transfer = self.transfers(self.setting)
        return self._observe(transfer), self._info(transfer)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Change the parameters and make a transfer."""
        if self.tunes_c:
            beta_action, c_action = (int(part) for part in np.asarray(action))
            self._c = min(max(self._c + c_action - 1, 0), len(C_GRID) - 1)
        else:
            beta_action = int(action)
        self._beta = min(max(self._beta + beta_action - 1, 0), len(self.betas) - 1)
        transfer = self.transfers(self.setting)
        return self._observe(transfer), self.reward(transfer), False, False, self._info(transfer)

    @property
    def setting(self) -> Setting:
        """Parameters of the next transfer, before an action."""
        return Setting(self.rate_mbps, self.betas[self._beta], C_GRID[self._c])

    def reward(self, transfer: Transfer) -> float:
        """Reward of a transfer."""
        gain = THROUGHPUT_REWARD * transfer.throughput_pps
        return gain + self.loss_reward * transfer.refused_ratio

    def _reset_parameters(self) -> None:
        self._beta = self.betas.index(DEFAULT_BETA)
        self._c = C_GRID.index(DEFAULT_C)

    def _observe(self, transfer: Transfer) -> Observation:
        outcome = (transfer.refused_ratio, transfer.throughput_pps)
        beta = self.betas[self._beta] / BETA_UNITS
        if self.tunes_c:
            return np.array((beta, C_GRID[self._c] / C_UNITS, *outcome))
        return np.array((beta, *outcome))

    def _info(self, transfer: Transfer) -> dict[str, Any]:
        return {"transfer": transfer, "setting": self.setting}
