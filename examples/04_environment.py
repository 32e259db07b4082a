"""Step one learning flow by hand with your own reward."""

import gymnasium

from ackademy.envs.metrics import IntervalMetrics


def patient(metrics: IntervalMetrics, before: IntervalMetrics):
    """Throughput minus the queueing delay: 10 ms count as much as 1 Mb/s."""
    queue_ms = metrics.rtt_ms - metrics.flow_min_rtt_ms
    return metrics.throughput_mbps - 0.1 * queue_ms


env = gymnasium.make("ackademy/Flow-v0", agent_settings="drinc", reward=patient, render_mode="ansi")
observation, info = env.reset(seed=1)
print(f"{env.observation_space.shape} observations, {env.action_space.n} actions")
env.action_space.seed(1)
for _ in range(20):
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    print(env.render())
