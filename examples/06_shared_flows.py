"""Three learning flows in one network, each deciding at its own times."""

from collections import Counter

from ackademy.envs.parallel import SharedFlows

env = SharedFlows(agent_settings="drinc", reward="drl_cc")
observations, infos = env.reset(seed=1)
decisions, returns = Counter(), Counter()
while env.agents:
    # Only those who are due are asked; what the others get is what they had.
    actions = {agent: 2 for agent in env.agents if infos[agent]["due"]}
    decisions.update(actions.keys())
    observations, rewards, terminations, truncations, infos = env.step(actions)
    returns.update(rewards)
for agent, count in decisions.items():
    print(f"{agent}: {count} decisions, return {returns[agent]:.1f}")
