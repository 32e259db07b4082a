"""Truth of the simulator: who may see it, and the reward that is made of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ackademy import _core
from ackademy.envs import metrics, rewards
from ackademy.envs.flow import Flow
from ackademy.envs.metrics import COLUMNS, TRUTH_COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.rewarder import Rewarder
from ackademy.errors import TrainingError

ROOT = Path(__file__).parents[1]
SETTINGS = """\
[observation]
features = ["rtt_mean"]
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
steps = ["*0.9", "+0", "+2"]
"""
LINK = """\
duration_s = 6
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 10
queue = { kind = "drop_tail", packets = 60 }
[[flow]]
name = "learner"
count = 2
start_step_s = 1
"""


def episodes(*, truth: bool, credit_text: str = LINK) -> _core.Episodes:
    source = _core.Scenario.parse(credit_text, "link")
    return _core.Episodes(
        source, SETTINGS, n=2, agents=2, learners=["learner"], seed=3, threads=1, truth=truth
    )


def run(own: _core.Episodes, steps: int) -> list[FloatArray]:
    """What the agents measure under fixed actions."""
    own.reset()
    rows = []
    for step in range(steps):
        own.step(np.full((2, 2), step % 3, np.int64))
        rows.append(own.metrics.copy())
    return rows


def truth_of(**columns: float) -> FloatArray:
    values = {"interval": 5.0, "fair_mbps": 10.0, "base_rtt_ms": 40.0} | columns
    assert values.keys() <= set(TRUTH_COLUMNS)
    return np.array([[values.get(name, 0.0) for name in TRUTH_COLUMNS]])


def measured(throughput_mbps: float) -> FloatArray:
    row = np.zeros((1, len(COLUMNS)))
    row[0, COLUMNS.index("throughput_mbps")] = throughput_mbps
    return row


def test_truth_is_there_only_if_it_is_asked_for_and_changes_nothing() -> None:
    without, with_truth = episodes(truth=False), episodes(truth=True)
    for one, other in zip(run(without, 60), run(with_truth, 60), strict=True):
        assert np.array_equal(one, other)
    assert without.truth.shape == without.credit_truth.shape == (2, 2, 0)
    fair = with_truth.truth[..., TRUTH_COLUMNS.index("fair_mbps")]
    assert set(np.round(fair.ravel(), 2)) <= {5.0, 10.0}


def test_no_feature_has_the_name_of_a_column_of_truth() -> None:
    features = {name for name, *_ in _core.observation_features()}
    assert not features & set(TRUTH_COLUMNS)


def test_an_observation_of_truth_is_refused_in_one_line(tmp_path: Path) -> None:
    settings = SETTINGS.replace("rtt_mean", "fair_mbps")
    about = r'features\[0\] = "fair_mbps": .*; fair_mbps is truth, which only the simulator knows'
    with pytest.raises(TrainingError, match=about) as refused:
        Flow(agent_settings=settings)
    assert "\n" not in str(refused.value)
    folder = shutil.copytree(ROOT / "data/policies" / "aurora_mixed", tmp_path / "policy")
    text = (folder / "policy.toml").read_text()
    (folder / "policy.toml").write_text(text.replace('"latency_ratio"', '"fair_mbps"'))
    with pytest.raises(
        Exception, match=r"fair_mbps is truth, which only the simulator knows"
    ) as one:
        _core.Policy.open(folder)
    assert "\n" not in str(one.value)


def test_flagship_is_what_its_formula_says() -> None:
    def reward(throughput: float, before: float, **columns: float) -> float:
        own = IntervalMetrics(measured(throughput), truth=truth_of(**columns))
        return float(rewards.flagship(own, IntervalMetrics(measured(before)))[0])

    assert reward(10.0, 10.0) == pytest.approx(1.0)
    half = 0.25 + 0.5 * (1 - np.log(2) / np.log(50))
    assert reward(5.0, 5.0) == pytest.approx(half)
    assert reward(10.0, 10.0, queue_ms=40.0) == pytest.approx(1 - 0.25 * np.log(2))
    assert reward(10.0, 10.0, congestion_loss=0.02) == pytest.approx(0.9)
    assert reward(10.0, 5.0, intervals_since_event=20.0) == pytest.approx(1 - 0.05 * np.log(2))
    assert np.isnan(reward(10.0, 10.0, interval=0.0)), "the first interval is unrewarded"


def test_a_flow_gets_a_fifth_of_the_least_reward_beside_it() -> None:
    own = episodes(truth=True)
    own.reset()
    rewarding = Rewarder("flagship", "sent", own)
    rewarding.reset()
    latest = np.full((2, 2), np.nan)
    before = own.metrics.copy()
    seen = 0
    for step in range(1000):
        own.step(np.full((2, 2), step % 3, np.int64))
        if own.over.any():
            break
        given = rewarding.compute()
        known = rewarding.reward_decision >= 0
        for place in np.argwhere(known):
            i, j = (int(part) for part in place)
            throughput = before[i, j : j + 1, COLUMNS.index("throughput_mbps")]
            value = _core.flagship_reward(
                own.credit[i, j : j + 1], own.credit_truth[i, j : j + 1], throughput
            )[0]
            before[i, j] = own.credit[i, j]
            if np.isnan(value):
                assert given[i, j] == 0.0
            else:
                latest[i, j] = value
        for i, j in np.argwhere(known & ~np.isnan(latest)):
            least = min(np.nanmin(latest[i]), latest[i, j])
            if given[i, j] != 0.0:
                assert given[i, j] == pytest.approx(0.8 * latest[i, j] + 0.2 * least)
                seen += 1
    assert seen > 100
    assert (np.abs(latest) <= 1.0).all()


def test_a_reward_that_needs_truth_is_refused_where_none_is_collected() -> None:
    with pytest.raises(TrainingError, match="reward flagship: it needs truth; allowed with"):
        Rewarder("flagship", "sent", episodes(truth=False))
    with pytest.raises(ValueError, match="truth was not collected"):
        rewards.flagship(IntervalMetrics(measured(1.0)), IntervalMetrics(measured(1.0)))
    with pytest.raises(ValueError, match=r"truth of shape \(1, 3\): allowed: \(1, 16\)"):
        metrics.IntervalMetrics(measured(1.0), truth=np.zeros((1, 3)))


def test_an_environment_takes_the_reward_by_its_name() -> None:
    env = Flow(reward="flagship", credit="sent")
    env.reset(seed=1)
    given = [env.step(1)[1] for _ in range(80)]
    assert max(given) > 0.5
    assert min(given) >= -1.0
