"""PPO on rollouts of the core: what a training leaves, and that it repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy.envs.metrics import FloatArray, IntervalMetrics
from ackademy.learn import deep, deep_recipe, networks, ppo
from ackademy.learn.training_log import Checkpoints

RECIPE = """\
about = "as small as it gets"
learner = "ppo"
reward = "orca"
credit = "{credit}"
scenario = "link.toml"
simulations = 5
agents = 1
seed = 3
{more}
[observation]
features = ["latency_ratio", "send_ratio"]
history = 2
[decision]
every = "srtt"
[action]
map = "{map}"
scale = 0.5
[[layers]]
kind = "flatten"
[[layers]]
kind = "dense"
units = 1
activation = "tanh"
[training]
episodes = 40
horizon = 128
minibatch = 64
epochs = 2
"""
LINK = """\
duration_s = 2
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 8
queue = { kind = "drop_tail", packets = 30 }
[[flow]]
name = "learner"
"""


def recipe(
    folder: Path, *, kind: str = "rate_change", credit: str = "sent", more: str = ""
) -> deep_recipe.Recipe:  # fmt: skip
    text = RECIPE.format(credit=credit, map=kind, more=more)
    (folder / "link.toml").write_text(LINK)
    (folder / "recipe.toml").write_text(text)
    return deep_recipe.read(folder / "recipe.toml")


def trained(own: deep_recipe.Recipe, folder: Path, threads: int = 1) -> tuple[bytes, str]:
    result = deep.train(own, deep.Here(threads), folder)
    return networks.to_bytes(result.weights), result.curve


def test_the_same_seed_leaves_the_same_bytes_with_any_number_of_threads(tmp_path: Path) -> None:
    own = recipe(tmp_path)
    weights, curve = trained(own, tmp_path / "one")
    assert len(curve.splitlines()) > 4
    assert trained(own, tmp_path / "two", 2) == (weights, curve)
    assert trained(replace(own, seed=4), tmp_path / "other")[0] != weights


def test_killed_in_the_middle_and_resumed_it_learns_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = recipe(tmp_path)
    whole = trained(own, tmp_path / "whole")

    def every_row(folder: Path, fingerprint: str, resume: bool) -> Checkpoints:
        return Checkpoints(folder, fingerprint, resume, checkpoint_s=0.0)

    monkeypatch.setattr(deep, "Checkpoints", every_row)
    rows = 0

    def kill(done: int, total: int, reward: object) -> None:
        nonlocal rows
        rows += 1
        if rows == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deep.train(own, deep.Here(1), tmp_path / "killed", progress=kill)
    resumed = deep.train(own, deep.Here(2), tmp_path / "killed", resume=True)
    assert (networks.to_bytes(resumed.weights), resumed.curve) == whole


def small(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """The window the policy leaves behind: the smaller, the better."""
    return -np.log(metrics.cwnd_packets)


def test_ppo_learns_from_rollouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = recipe(tmp_path, kind="cwnd_factor", credit="arrived")
    config = ppo.Config(
        episodes=150, horizon=512, minibatch=128, epochs=4, learning_rate=1e-2, discount=0.9
    )
    monkeypatch.setattr("ackademy.envs.rewards.find", lambda *_: small)
    curve = deep.train(replace(own, config=config), deep.Here(1), tmp_path / "work").curve
    head, *rows = curve.splitlines()
    found = [float(row.split(",")[head.split(",").index("reward")]) for row in rows]
    assert found[-1] > found[0] + 0.5, found


def test_a_critic_of_the_truth_learns_from_the_reward_flagship(tmp_path: Path) -> None:
    own = replace(recipe(tmp_path), reward="flagship")
    config = replace(
        cast("ppo.Config", own.config), critic_units=8, advantages_per_class=True, episodes=15
    )
    result = deep.train(replace(own, config=config), deep.Here(1), tmp_path / "work")
    head, *rows = result.curve.splitlines()
    found = [float(row.split(",")[head.split(",").index("reward")]) for row in rows]
    assert len(found) >= 2
    assert all(-1.0 <= value <= 1.0 for value in found)
