"""Step 64 simulations with one call: half of them keep their rate, half raise it steadily."""

import gymnasium
import numpy as np

import ackademy.envs

gymnasium.register_envs(ackademy.envs)

envs = gymnasium.make_vec(
    "ackademy/Flow-v0", num_envs=64, agent_settings="aurora", reward="aurora", copy=False
)
envs.reset(seed=1)
actions = np.zeros((64, 1), np.float32)
actions[32:] = 1.0
returns = np.zeros(64)
for _ in range(500):
    observations, rewards, terminations, truncations, infos = envs.step(actions)
    returns += rewards
print(
    f"reward per step: held {returns[:32].mean() / 500:.2f}, raised {returns[32:].mean() / 500:.2f}"
)
print(f"round trips now: {np.median(infos['metrics']['srtt_ms'][:32]):.0f} ms held, ", end="")
print(f"{np.median(infos['metrics']['srtt_ms'][32:]):.0f} ms raised")
