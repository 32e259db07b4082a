"""Unmodified RLlib: PPO on one local machine. Needs the extra `torch`."""

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

from ackademy.envs.flow import Flow

torch.set_num_threads(1)  # this network is too small to share
register_env("flow", lambda settings: Flow(**settings))
ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
config = (
    PPOConfig()
    .environment("flow", env_config={"agent_settings": "aurora", "reward": "aurora", "flat": True})
    .env_runners(num_env_runners=0)
    .training(train_batch_size=400, minibatch_size=100, num_epochs=2)
    .debugging(seed=1)
)
algorithm = config.build_algo()
for _ in range(2):
    result = algorithm.train()
print(f"steps sampled: {result['num_env_steps_sampled_lifetime']:.0f}")
algorithm.stop()
ray.shutdown()
