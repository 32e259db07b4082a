"""Unmodified Stable-Baselines3: DQN, PPO and SAC. Needs the extra `torch`."""

import gymnasium
import torch
from stable_baselines3 import DQN, PPO, SAC

import ackademy.envs

gymnasium.register_envs(ackademy.envs)
torch.set_num_threads(1)  # these networks are too small to share

steps = gymnasium.make("ackademy/Flow-v0", agent_settings="drinc", reward="drinc", flat=True)
rates = gymnasium.make("ackademy/Flow-v0", agent_settings="aurora", reward="aurora", flat=True)
for model in (
    DQN("MlpPolicy", steps, learning_starts=100, seed=1, device="cpu"),
    PPO("MlpPolicy", rates, n_steps=128, seed=1, device="cpu"),
    SAC("MlpPolicy", rates, learning_starts=100, batch_size=64, seed=1, device="cpu"),
):
    model.learn(total_timesteps=300)
    env = model.get_env()
    observation, total = env.reset(), 0.0
    for _ in range(50):
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, _, _ = env.step(action)
        total += float(reward[0])
    print(f"{type(model).__name__}: reward per step {total / 50:+.3f} after 300 steps")
