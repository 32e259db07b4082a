"""Gymnasium environments; importing this registers them.

import ackademy.envs
import gymnasium

env = gymnasium.make("ackademy/CubicBeta-v0", rate_mbps=4.0)
"""

from __future__ import annotations

from gymnasium.envs.registration import register

register(
    id="ackademy/CubicBeta-v0",
    entry_point="ackademy.envs.cubic_beta:CubicBeta",
    max_episode_steps=100,
)
