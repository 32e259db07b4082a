"""Rewards: formulas with numbers worked out by hand, names, files, and who is rewarded when."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from ackademy import _core
from ackademy.envs import rewards
from ackademy.envs.metrics import COLUMNS, TRUTH_COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.rewarder import Accounts, Rewarder
from ackademy.errors import TrainingError


def interval(**columns: float) -> FloatArray:
    """A second with 100 packets acknowledged, 1.2 Mb/s, at an empty queue of 50 ms."""
    values = {
        "duration_s": 1.0,
        "acked_packets": 100.0,
        "throughput_mbps": 1.2,
        "rtt_mean_ms": 50.0,
        "srtt_ms": 50.0,
        "flow_min_rtt_ms": 50.0,
    } | columns
    assert values.keys() <= set(COLUMNS)
    return np.array([[values.get(name, 0.0) for name in COLUMNS]])


def metrics(**columns: float) -> IntervalMetrics:
    return IntervalMetrics(interval(**columns))


SAME = metrics()


# -------------------------------------------------------------------------------- metrics


def test_every_column_of_the_core_has_a_property_at_its_place() -> None:
    assert list(COLUMNS) == _core.interval_metrics()
    rows = np.arange(2.0 * len(COLUMNS)).reshape(2, -1)
    of = IntervalMetrics(rows)
    for place, name in enumerate(_core.interval_metrics()):
        assert np.array_equal(getattr(of, name), rows[:, place]), name
        assert np.array_equal(of.by_name()[name], rows[:, place]), name


def test_a_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 16\): allowed: \(\.\.\., 17\)"):
        IntervalMetrics(np.zeros((2, 16)))


def test_lost_packets_count_at_the_size_of_those_acknowledged() -> None:
    of = metrics(lost_packets=25.0)
    assert of.lost_mbps == pytest.approx(0.3)
    assert of.sent_mbps == pytest.approx(1.5)
    alone = metrics(acked_packets=0.0, throughput_mbps=0.0, lost_packets=100.0)
    assert alone.sent_mbps == pytest.approx(1.2)  # 1500 bytes each


def test_the_smoothed_round_trip_stands_in_where_there_is_no_sample() -> None:
    assert metrics(rtt_mean_ms=0.0, srtt_ms=70.0).rtt_ms == 70.0


# -------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize(
    ("throughput", "expected"),
    [(3.6, 10.0), (1.3, 2.0), (1.2, 2.0), (1.1, -2.0), (0.4, -10.0)],  # e is 2.72
)
def test_rl_tcp_rewards_by_the_rungs_of_the_change(throughput: float, expected: float) -> None:
    assert rewards.rl_tcp(metrics(throughput_mbps=throughput), SAME) == expected


def test_rl_tcp_weighs_delay_and_loss_as_it_is_told() -> None:
    slow = metrics(rtt_mean_ms=100.0)  # ln(50 / 0.1) = 6.2 lower
    assert rewards.rl_tcp(slow, SAME, delta_1=0.2) == -10.0
    assert rewards.rl_tcp(slow, SAME, delta_1=0.1) == -2.0
    assert rewards.rl_tcp(slow, SAME, delta_1=0.0) == 2.0
    lossy = metrics(loss_ratio=0.5)  # ln 2 = 0.69 lower
    assert rewards.rl_tcp(lossy, SAME, delta_2=2.0) == -10.0
    assert rewards.rl_tcp(lossy, SAME, delta_2=0.0) == 2.0


def test_q_tcp_rewards_the_sign_outside_a_dead_zone() -> None:
    assert rewards.q_tcp(metrics(throughput_mbps=1.3), SAME) == 2.0
    assert rewards.q_tcp(metrics(rtt_mean_ms=51.0), SAME) == -2.0
    assert rewards.q_tcp(metrics(throughput_mbps=1.2005), SAME) == 0.0


def test_drinc_rewards_the_change_of_log_power_within_one() -> None:
    both = metrics(throughput_mbps=2.4, rtt_mean_ms=75.0)
    assert rewards.drinc(both, SAME) == pytest.approx(np.log(2.0) - np.log(1.5))
    assert rewards.drinc(both, SAME, delta=0.0) == pytest.approx(np.log(2.0))
    assert rewards.drinc(metrics(throughput_mbps=12.0), SAME) == 1.0
    assert rewards.drinc(metrics(rtt_mean_ms=500.0), SAME) == -1.0


def test_learningcc_rewards_bandwidth_over_delay() -> None:
    assert rewards.learningcc(SAME, SAME) == pytest.approx(1200.0 / 50.0)


def test_allegro_rewards_throughput_until_a_twentieth_is_lost() -> None:
    lossless = rewards.pcc_allegro(SAME, SAME)
    assert lossless == pytest.approx(1.2 / (1.0 + np.exp(-5.0)))
    lossy = metrics(loss_ratio=0.2, lost_packets=25.0)
    assert rewards.pcc_allegro(lossy, SAME) == pytest.approx(-1.5 * 0.2, abs=1e-5)


def test_vivace_rewards_rate_less_slope_and_loss() -> None:
    lossy = metrics(loss_ratio=0.2, lost_packets=25.0, rtt_slope=0.02)
    expected = 1.5**0.9 - 900.0 * 1.5 * 0.02 - 11.35 * 1.5 * 0.2
    assert rewards.vivace(lossy, SAME) == pytest.approx(expected)
    assert rewards.vivace(metrics(rtt_slope=0.009), SAME) == pytest.approx(1.2**0.9)


def test_aurora_rewards_in_packets_seconds_and_ratios() -> None:
    lossy = metrics(loss_ratio=0.2, lost_packets=25.0)
    expected = (10.0 * 100.0 - 1000.0 * 0.05 - 2000.0 * 0.2) / 1000.0
    assert rewards.aurora(lossy, SAME) == pytest.approx(expected)


def test_orca_rewards_power_relative_to_the_best_so_far() -> None:
    assert rewards.orca(SAME, SAME) == pytest.approx(1.0)
    best = IntervalMetrics(interval(), np.array([2.4]))
    assert rewards.orca(best, SAME) == pytest.approx(0.5)
    within = metrics(srtt_ms=62.0)  # the margin is 1.25
    assert rewards.orca(within, SAME) == pytest.approx(1.0)
    assert rewards.orca(metrics(srtt_ms=125.0), SAME) == pytest.approx(0.5)
    lossy = metrics(lost_packets=25.0)
    assert rewards.orca(lossy, SAME) == pytest.approx((1.2 - 5 * 0.3) / 1.2)


def test_drl_cc_rewards_the_logarithm_of_goodput() -> None:
    assert rewards.drl_cc(SAME, SAME) == pytest.approx(np.log(1.2))
    assert rewards.drl_cc(metrics(throughput_mbps=0.0), SAME) == pytest.approx(np.log(0.01))


@pytest.mark.parametrize("name", rewards.REWARDS)
def test_every_reward_is_a_number_whatever_was_measured(name: str) -> None:
    nothing = np.zeros(len(COLUMNS))
    timeout = interval(acked_packets=0.0, throughput_mbps=0.0, rtt_mean_ms=0.0, lost_packets=9.0)
    timeout[:, COLUMNS.index("loss_ratio")] = 1.0
    rows = np.vstack([nothing, timeout, interval(), interval(rtt_slope=-9.0)])
    for before in (rows, rows[::-1]):
        truth = np.ones((4, len(TRUTH_COLUMNS))) if name == "flagship" else None
        own = IntervalMetrics(rows, truth=truth)
        values = rewards.REWARDS[name](own, IntervalMetrics(before.copy()))
        assert values.shape == (4,)
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", rewards.REWARDS)
def test_every_reward_says_where_it_comes_from(name: str) -> None:
    assert "Source: " in (rewards.REWARDS[name].__doc__ or "")


# ----------------------------------------------------------------------------------- names


def test_a_reward_is_found_by_name_in_a_file_or_as_it_is(tmp_path: Path) -> None:
    assert rewards.find("rl-tcp") is rewards.rl_tcp
    assert rewards.find(rewards.aurora) is rewards.aurora
    (tmp_path / "mine.py").write_text("def judge(metrics, before):\n    return metrics.time_s\n")
    beside = rewards.find("mine.py:judge", tmp_path)
    assert beside(SAME, SAME) == 0.0
    assert rewards.find(f"{tmp_path}/mine.py:judge") is beside


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("arora", "reward = 'arora': similar: aurora, orca; allowed: aurora, drinc, "),
        ("nowhere.py:judge", "reward = 'nowhere.py:judge': no file nowhere.py"),
        ("mine.py:play", r"no function play in .*mine\.py; it has: judge$"),
    ],
)
def test_an_unknown_reward_is_one_line(tmp_path: Path, reward: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(
        "import math\nfrom math import floor\n\ndef judge(metrics, before):\n    return 0\n"
    )
    with pytest.raises(TrainingError, match=message):
        rewards.find(reward, tmp_path)


# ------------------------------------------------------------------------------------- judge


class Script:
    """Two flows of one simulation whose accounts are written by hand."""

    def __init__(self) -> None:
        self.time_s = 0.0
        self.metrics = np.zeros((1, 2, len(COLUMNS)))
        self.credit = np.zeros((1, 2, len(COLUMNS)))
        self.credit_step = np.full((1, 2), -1)
        self.decision = np.zeros((1, 2), np.int64)
        self.due = np.zeros((1, 2), np.bool_)
        self.over = np.zeros(1, np.bool_)
        self.left = np.zeros((1, 2), np.bool_)

    def next(self, due: tuple[bool, bool], throughputs: tuple[float, float]) -> None:
        """These are due now, and this is what each of them has had."""
        self.due[0] = due
        self.time_s += 1.0
        self.left[0] |= self.over[0]
        for flow, throughput in enumerate(throughputs):
            if due[flow] or self.left[0, flow]:
                self.metrics[0, flow] = interval(time_s=self.time_s, throughput_mbps=throughput)[0]

    def begin(self) -> None:
        """Anew."""
        self.over[:] = False
        self.left[:] = False


def change(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    return metrics.throughput_mbps - before.throughput_mbps


def rewarder(script: Script, credit: str = "arrived") -> Rewarder:
    return Rewarder(change, credit, cast("Accounts", script))  # type: ignore[arg-type]


def test_a_flow_is_rewarded_once_per_interval_and_against_its_own_last() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.next((True, False), (1.0, 0.0))
    rewarding.reset()
    script.next((True, True), (3.0, 5.0))  # the second enters: no reward yet
    assert rewarding.compute().tolist() == [[2.0, 0.0]]
    assert rewarding.reward_decision.tolist() == [[0, -1]]
    script.decision[0] = (1, 0)
    script.next((False, True), (9.0, 6.0))
    assert rewarding.compute().tolist() == [[0.0, 1.0]]
    script.next((True, False), (7.0, 0.0))
    assert rewarding.compute().tolist() == [[4.0, 0.0]]


def test_an_interval_that_the_end_cuts_short_is_rewarded_only_if_it_has_something_to_tell() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    script.over[0] = True
    script.next((False, False), (4.0, 4.0))
    script.metrics[0, 1, 2] = 0.0  # nothing acknowledged, nothing lost
    assert rewarding.compute().tolist() == [[3.0, 0.0]]


def test_a_flow_that_ends_early_is_rewarded_for_its_last_interval_once() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    script.left[0, 1] = True
    script.next((True, False), (2.0, 5.0))
    assert rewarding.compute().tolist() == [[1.0, 4.0]]
    script.metrics[0, 1] += 1.0
    script.over[0] = True
    script.next((False, False), (3.0, 9.0))
    assert rewarding.compute().tolist() == [[1.0, 0.0]]


def test_a_flow_that_fell_back_is_not_rewarded_twice_for_its_last_metrics() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    stale = script.metrics[0, 1].copy()
    script.over[0] = True
    script.next((False, False), (4.0, 4.0))
    script.metrics[0, 1] = stale
    assert rewarding.compute().tolist() == [[3.0, 0.0]]


def test_an_episode_that_begins_anew_owes_nothing_to_the_one_before() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    script.over[0] = True
    script.next((False, False), (4.0, 4.0))
    rewarding.compute()
    script.begin()
    script.next((True, False), (9.0, 0.0))
    assert rewarding.compute().tolist() == [[0.0, 0.0]]
    assert rewarding.entered.tolist() == [[True, False]]
    script.next((True, False), (10.0, 0.0))
    assert rewarding.compute().tolist() == [[1.0, 0.0]]


def test_credit_is_given_when_it_is_settled_and_for_the_decision_it_belongs_to() -> None:
    script = Script()
    rewarding = rewarder(script, "sent")
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    script.next((True, True), (50.0, 50.0))  # what arrives is not what is rewarded
    assert rewarding.compute().tolist() == [[0.0, 0.0]]
    assert rewarding.reward_decision.tolist() == [[-1, -1]]
    script.credit[0, 0] = interval(throughput_mbps=3.0)[0]
    script.credit_step[0] = (0, -1)
    assert rewarding.compute().tolist() == [[2.0, 0.0]]
    assert rewarding.reward_decision.tolist() == [[0, -1]]
    script.credit[0, 0] = interval(throughput_mbps=7.0)[0]
    script.credit_step[0] = (1, -1)
    assert rewarding.compute().tolist() == [[4.0, 0.0]]


def test_the_best_throughput_is_an_episodes_own() -> None:
    seen: list[float] = []

    def note(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
        seen.extend(metrics.throughput_max_mbps[:1].tolist())
        return np.zeros(metrics.time_s.shape)

    script = Script()
    rewarding = Rewarder(note, "arrived", cast("Accounts", script))
    script.next((True, True), (5.0, 1.0))
    rewarding.reset()
    for throughput in (4.0, 8.0, 6.0):
        script.next((True, True), (throughput, 1.0))
        rewarding.compute()
    assert seen == [5.0, 8.0, 8.0]
    script.over[0] = True
    rewarding.compute()
    script.begin()
    script.next((True, True), (2.0, 1.0))
    rewarding.compute()
    script.next((True, True), (3.0, 1.0))
    rewarding.compute()
    assert seen[-1] == 3.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda metrics, before: np.zeros(3), r"reward <lambda>: shape \(3,\): allowed: \(2,\)"),
        (lambda metrics, before: metrics.time_s + np.nan, r"reward <lambda>: not finite"),
    ],
)
def test_a_function_that_returns_no_numbers_is_one_line(
    function: rewards.Reward, message: str
) -> None:
    script = Script()
    rewarding = Rewarder(function, "arrived", cast("Accounts", script))
    script.next((True, True), (1.0, 1.0))
    rewarding.reset()
    with pytest.raises(TrainingError, match=message):
        rewarding.compute()


def test_an_unknown_account_is_one_line() -> None:
    with pytest.raises(TrainingError, match="credit = 'later': allowed: arrived, sent"):
        rewarder(Script(), "later")


def test_a_script_has_what_episodes_have() -> None:
    for name in vars(Script()):
        assert hasattr(_core.Episodes, name), name


def test_arrays_of_another_shape_are_one_line() -> None:
    script = Script()
    rewarding = rewarder(script)
    script.metrics = np.zeros((1, 1, len(COLUMNS)))
    with pytest.raises(ValueError, match="metrics of 17 numbers: allowed is 34"):
        rewarding.reset()
