"""Several learning flows in one network: whose turn it is, who is rewarded, who is there."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import (  # type: ignore[import-untyped]
    parallel_api_test,
    parallel_seed_test,
)

from ackademy.envs import rewards
from ackademy.envs.flow import Flow
from ackademy.envs.metrics import COLUMNS, IntervalMetrics
from ackademy.envs.parallel import SharedFlows
from ackademy.errors import TrainingError

DISTRIBUTIONS = Path(__file__).parents[1] / "data/distributions"
KEEP = 2

COMING_AND_GOING = """\
# One learner stays, one comes late, one goes early, and one has little to send.
duration_s = 6
[dumbbell]
rtt_ms = 30
[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", packets = 30 }
[[flow]]
name = "learner_stays"
[[flow]]
name = "learner_late"
start_s = 2
[[flow]]
name = "learner_early"
stop_s = 3
[[flow]]
name = "learner_little"
traffic = { kind = "fixed", bytes = 200000 }
[[flow]]
name = "other"
controller = "cubic"
"""
STAYS, LATE, EARLY, LITTLE = (f"flow_{place}" for place in range(4))


def shared(**settings: Any) -> SharedFlows:  # noqa: ANN401
    return SharedFlows(**{"scenario": COMING_AND_GOING, "learner": "learner_*"} | settings)


Told = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]


def episode(env: SharedFlows, junk: int | None = None) -> list[Told]:
    """What every step tells; `junk` is the action of those who are not due."""
    observations, infos = env.reset(seed=3)
    told: list[Told] = [(observations, {}, {}, {}, infos)]
    while env.agents:
        actions = {agent: KEEP for agent in env.agents if infos[agent]["due"]}
        if junk is not None:
            actions = {agent: junk for agent in env.agents} | actions
        told.append(env.step(actions))
        infos = told[-1][-1]
    return told


ROOM = """\
# Learners on links of their own, so that each comes to decide whatever the others do.
duration_s = 6
[[link]]
name = "first"
rate_mbps = 6
delay_ms = 15
[[link]]
name = "second"
rate_mbps = 6
delay_ms = 25
[[flow]]
name = "learner_stays"
path = ["first"]
[[flow]]
name = "learner_late"
path = ["second"]
start_s = 2
stop_s = 4
"""


@pytest.mark.parametrize(
    "settings",
    [{}, {"agent_settings": "aurora", "flat": True}, {"credit": "sent", "reward": "aurora"}],
)
def test_pettingzoos_tests_pass_without_a_warning(settings: dict[str, Any]) -> None:
    parallel_api_test(shared(scenario=ROOM, **settings), num_cycles=3000)
    parallel_seed_test(lambda: shared(scenario=COMING_AND_GOING, **settings), num_cycles=200)


def test_a_step_goes_on_to_the_next_instant_at_which_anyone_is_due() -> None:
    alone = 0
    for observations, _, _, truncated, infos in episode(shared())[:-1]:
        assert infos.keys() == observations.keys()
        due = [agent for agent, info in infos.items() if info["due"]]
        assert due or any(truncated.values())
        alone += len(due) == 1
    assert alone > 100, "decisions are asynchronous"


def test_agents_come_with_their_first_decision_and_leave_with_their_flow() -> None:
    told = episode(shared())
    present = {
        agent: [infos[agent]["metrics"]["time_s"] for *_, infos in told if agent in infos]
        for agent in (STAYS, LATE, EARLY, LITTLE)
    }
    assert present[STAYS][0] < 1.0
    assert 2.0 < present[LATE][0] < 3.0
    assert present[LATE][-1] == present[STAYS][-1] == pytest.approx(6.0)
    assert 3.0 < present[EARLY][-1] < 4.0
    assert present[LITTLE][-1] < 3.0
    for agent in (STAYS, LATE, EARLY, LITTLE):
        steps = [place for place, (observations, *_) in enumerate(told) if agent in observations]
        assert steps == list(range(steps[0], steps[-1] + 1)), f"{agent} is not revived"
        cut = [truncated[agent] for *_, truncated, _ in told if agent in truncated]
        assert cut.count(True) == 1
        assert cut[-1]
    assert not any(any(terminated.values()) for _, _, terminated, _, _ in told)


def test_what_those_do_who_are_not_due_changes_nothing() -> None:
    silent, noisy = episode(shared()), episode(shared(), junk=0)
    assert len(silent) == len(noisy)
    for one, other in zip(silent, noisy, strict=True):
        assert one[1:] == other[1:]
        for agent, observation in one[0].items():
            assert np.array_equal(observation, other[0][agent])


def test_those_who_are_not_due_keep_their_observation_and_get_nothing() -> None:
    told = episode(shared())
    waits = 0
    for (before, *_), (observations, rewarded, _, truncated, infos) in itertools.pairwise(told):
        for agent in infos.keys() & before.keys():
            if not infos[agent]["due"] and not truncated[agent]:
                waits += 1
                assert rewarded[agent] == 0.0
                assert infos[agent]["credit"] == -1
                assert np.array_equal(observations[agent], before[agent])
    assert waits > 100


def test_an_agent_is_rewarded_for_whole_intervals_against_its_own_last() -> None:
    told = episode(shared(reward="drinc"))
    for agent in (STAYS, LATE, EARLY, LITTLE):
        seen = [
            (rewarded.get(agent, 0.0), infos[agent]["metrics"])
            for _, rewarded, _, truncated, infos in told
            if agent in infos and infos[agent]["due"] and not truncated.get(agent, False)
        ]
        rows = np.array([[metrics[name] for name in COLUMNS] for _, metrics in seen])
        expected = rewards.drinc(IntervalMetrics(rows[1:]), IntervalMetrics(rows[:-1]))
        assert seen[0][0] == 0.0
        assert np.array_equal([rewarded for rewarded, _ in seen[1:]], expected)
        assert np.abs(expected).max() > 0.0


def test_one_learner_among_others_is_the_single_environment() -> None:
    settings: dict[str, Any] = {
        "scenario": COMING_AND_GOING,
        "learner": "learner_stays",
        "reward": "orca",
    }
    env, single = SharedFlows(**settings), Flow(**settings)
    told = episode(env)
    observation, _ = single.reset(seed=3)
    for observations, rewarded, _, truncated, infos in told[1:]:
        assert np.array_equal(observation, told[0][0]["flow_0"])
        observation, reward, _, over, info = single.step(KEEP)
        told[0] = (observations, {}, {}, {}, {})
        assert (reward, over) == (rewarded["flow_0"], truncated["flow_0"])
        assert info["metrics"] == infos["flow_0"]["metrics"]
    assert over


def test_whoever_is_due_must_act() -> None:
    env = shared()
    with pytest.raises(ResetNeeded):
        env.step({})
    _, infos = env.reset(seed=3)
    due = next(agent for agent, info in infos.items() if info["due"])
    with pytest.raises(TrainingError, match=f"actions: {due} is due; allowed: an action of it"):
        env.step({})


def test_agents_of_a_distribution_are_as_many_as_it_draws() -> None:
    env = SharedFlows(DISTRIBUTIONS / "drinc_train.toml")
    assert len(env.possible_agents) == 5
    counts = set()
    for seed in range(8):
        env.reset(seed=seed)
        for _ in range(60):
            env.step({agent: KEEP for agent in env.agents})
        counts.add(len(env.agents))
    assert len(counts) > 1
    assert max(counts) <= 5


def test_too_few_agents_are_one_line() -> None:
    with pytest.raises(TrainingError, match="agents = 2: allowed is at least 4, so many flows"):
        shared(agents=2)
    with pytest.raises(TrainingError, match="agents = 0: allowed: a whole number from 1"):
        shared(agents=0)
