"""Gymnasium environments; importing this registers them, and so does a name with this module in it.

import gymnasium

env = gymnasium.make("ackademy.envs:ackademy/Flow-v0", scenario="deep_buffer")
"""

from __future__ import annotations

from gymnasium.envs.registration import register

register(
    id="ackademy/Flow-v0",
    entry_point="ackademy.envs.flow:Flow",
    vector_entry_point="ackademy.envs.flow:VectorFlow",
)
register(
    id="ackademy/CubicBeta-v0",
    entry_point="ackademy.papers.knott2023.environment:CubicBeta",
    max_episode_steps=100,
)
