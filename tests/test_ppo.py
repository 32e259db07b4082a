"""One update of PPO: what its settings do, on batches without a simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy.learn import critic, ppo
from ackademy.learn.credit import Transitions
from ackademy.learn.episode_source import Sizes
from ackademy.learn.layers import layers_of

LAYERS = layers_of([{"kind": "flatten"}, {"kind": "dense", "units": 1}], "test")
CONFIG = ppo.Config(horizon=256, minibatch=64, epochs=4, learning_rate=0.05, discount=0.0)
WORTH = 100.0


def learner(config: ppo.Config) -> ppo.Learner:
    return ppo.Learner(LAYERS, config, Sizes((1, 2), 0, 1), seed=1)


def batch(seed: int = 2, *, value: float = 0.0, share: float = 0.5) -> Transitions:
    """Decisions in scenarios of two classes.

    Action 1 is right in class 0 and action -1 in class 1, where rewards are `WORTH` times as large.
    `value` is added to what the truth says of the capacity, and to the reward. Class 1 has
    `share` of the decisions.
    """
    m, rng = CONFIG.horizon, np.random.default_rng(seed)
    truth = np.zeros((m, len(critic.COLUMNS)), np.float32)
    kind = (np.arange(m) * share % 1.0 >= 1.0 - share).astype(np.int64)
    truth[:, critic.COLUMNS.index("class")] = kind
    truth[:, critic.COLUMNS.index("capacity_mbps")] = np.exp(4.0 * value * rng.normal(size=m))
    action = (0.5 * rng.normal(size=(m, 1))).astype(np.float32)
    reward = np.where(kind == 0, action[:, 0], -WORTH * action[:, 0])
    reward += WORTH * value * np.log(truth[:, critic.COLUMNS.index("capacity_mbps")]) / 4.0
    seen = np.zeros((m, 1, 2), np.float32)
    noise = action[:, 0] / 0.5
    log_probability = -0.5 * noise**2 - np.log(0.5) - ppo.LOG_ROOT
    return Transitions(
        observation=seen,
        action=action,
        reward=reward.astype(np.float32),
        following=seen,
        log_probability=log_probability.astype(np.float32),
        stream=np.arange(m),
        place=np.zeros(m, np.int64),
        truth=truth,
        following_truth=truth,
    )


def bias(of: ppo.Learner) -> float:
    """The policy's answer to zeros."""
    return float(np.asarray(of.parameters["policy"]["layers.1.bias"])[0])


def test_a_class_with_large_rewards_does_not_outweigh_the_others() -> None:
    moved = {}
    for per_class in (False, True):
        one = learner(replace(CONFIG, advantages_per_class=per_class))
        one.learn(batch(), 1, 0.0)
        moved[per_class] = bias(one)
    assert moved[False] < -0.3, "the class with large rewards decides"
    assert abs(moved[True]) < 0.1, "the classes want opposite actions and weigh the same"


def test_standardised_advantages_have_mean_0_and_deviation_1_in_each_class() -> None:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 3, 500)
    out = ppo.standardised(rng.normal(10.0 * kind, 1.0 + kind), kind)
    for one in range(3):
        assert abs(out[kind == one].mean()) < 1e-9
        assert abs(out[kind == one].std() - 1.0) < 1e-6


def test_class_weights_make_classes_count_alike_but_for_a_largest_weight() -> None:
    kind = np.repeat([4, 7, 9], [60, 39, 1])
    weights = ppo.class_weights(kind, 1e9)
    for one in (4, 7, 9):
        assert weights[kind == one].sum() == pytest.approx(100 / 3)
    bounded = ppo.class_weights(kind, 5.0)
    assert (bounded == np.minimum(weights, 5.0)).all()
    assert bounded[-1] == 5.0


def test_a_class_with_few_decisions_is_learned_as_much_as_the_others() -> None:
    moved = {}
    for most in (0.0, 100.0):
        one = learner(replace(CONFIG, advantages_per_class=True, class_weight_max=most))
        for seed in range(6):
            one.learn(batch(seed, share=0.9), 1, 0.0)
        moved[most] = bias(one)
    assert moved[0.0] < -0.05, "the class with most decisions decides"
    assert abs(moved[100.0]) < 0.02, "the classes weigh the same"


def test_a_critic_that_sees_the_truth_explains_what_the_observation_does_not_show() -> None:
    explained = {}
    for units in (0, 32):
        one = learner(replace(CONFIG, critic_units=units, reward_scale=0.01, learning_rate=0.02))
        for seed in range(12):
            told = one.learn(batch(seed, value=1.0), 1, 0.0)
        explained[units] = float(np.mean(told["explained"]))
    assert explained[0] < 0.05
    assert explained[32] > 0.5


def test_the_learning_rate_falls_to_nothing_with_a_decay_of_1() -> None:
    one = learner(replace(CONFIG, learning_rate_decay=1.0))
    one.learn(batch(), 1, 0.0)
    before = bias(one)
    assert before != 0.0
    one.learn(batch(), 1, 1.0)
    assert bias(one) == before


def test_the_weight_of_entropy_falls_to_nothing_with_a_decay_of_1() -> None:
    base = replace(CONFIG, learning_rate=0.01)
    spread = {}
    for entropy, progress in ((0.0, 1.0), (50.0, 0.0), (50.0, 1.0)):
        one = learner(replace(base, entropy=entropy, entropy_decay=1.0))
        one.learn(batch(), 1, progress)
        spread[entropy, progress] = float(np.asarray(one.parameters["log_std"])[0])
    assert spread[50.0, 1.0] == spread[0.0, 1.0] < spread[50.0, 0.0]


def test_the_spread_stays_above_its_floor() -> None:
    least = {}
    for floor in (0.0, 0.49):
        one = learner(replace(CONFIG, spread_floor=floor))
        for seed in range(4):
            one.learn(batch(seed), 1, 0.0)
        least[floor] = float(np.exp(np.asarray(one.parameters["log_std"])[0]))
    assert least[0.0] < 0.48
    assert least[0.49] == pytest.approx(0.49)


def test_the_rest_of_an_update_is_left_out_once_the_policy_has_moved_too_far() -> None:
    steps = {}
    for stop in (0.0, 0.02, 1e9):
        one = learner(replace(CONFIG, divergence_stop=stop))
        told = one.learn(batch(), 1, 0.0)
        steps[stop] = (np.size(told["divergence"]), bias(one))
    everything = CONFIG.epochs * CONFIG.horizon // CONFIG.minibatch
    assert steps[0.0] == steps[1e9], "a limit that is never reached changes nothing"
    assert steps[0.0][0] == everything
    assert 1 < steps[0.02][0] < everything
    assert abs(steps[0.02][1]) < abs(steps[0.0][1])


def test_inputs_of_the_critic_are_finite_and_bounded_whatever_the_truth() -> None:
    rows = np.zeros((3, len(critic.COLUMNS)), np.float32)
    rows[1] = 1e9
    rows[2] = -1.0
    out = critic.inputs(rows)
    assert out.shape == (3, critic.WIDTH)
    assert np.isfinite(out).all()
    assert (np.abs(out) <= 3.0).all()
    assert (out[:, -critic.CLASSES :].sum(axis=1) == 1.0).all()
