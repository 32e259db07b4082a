"""Training on a Ray cluster of two nodes: the bytes of a training in one process."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy.cli import app
from ackademy.envs import opening
from ackademy.errors import EngineError, TrainingError
from ackademy.learn import deep, deep_recipe, ray_rollouts
from ackademy.learn.ray_rollouts import RayRollouts, part_of
from ackademy.learn.rollouts import Collector
from ackademy.learn.training_log import Checkpoints

TRACE = "".join(f"{ms}\n" for ms in range(1, 400, 2))
DISTRIBUTION = """\
about = "Two kinds of links, the first of which goes out of use while training goes on"
learners = ["learner"]

[[scenario]]
name = "fixed"
weight = [[0, 1], [1, 0]]
[scenario.inline]
duration_s = 2
[scenario.inline.dumbbell]
rtt_ms = 40
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 8
queue = { kind = "drop_tail", packets = 30 }
[[scenario.inline.flow]]
name = "learner"
count = 2
start_spread_s = 0.3
[scenario.draw]
"dumbbell.bottleneck.rate_mbps" = { uniform = [2, 8] }

[[scenario]]
name = "traced"
[scenario.inline]
duration_s = 2
[scenario.inline.dumbbell]
rtt_ms = 30
[scenario.inline.dumbbell.bottleneck]
trace = "up.trace"
queue = { kind = "drop_tail", packets = 30 }
[[scenario.inline.flow]]
name = "learner"
"""
RECIPE = """\
about = "as small as it gets"
learner = "ppo"
reward = "orca"
credit = "sent"
distribution = "links.toml"
simulations = 5
agents = 2
seed = 3
[observation]
features = ["latency_ratio", "send_ratio"]
history = 2
[decision]
every = "srtt"
[action]
map = "rate_change"
[[layers]]
kind = "flatten"
[[layers]]
kind = "dense"
units = 1
activation = "tanh"
[training]
episodes = 12
horizon = 128
minibatch = 64
epochs = 2
"""


@pytest.fixture
def recipe(tmp_path: Path) -> deep_recipe.Recipe:
    """PPO for a dozen episodes of two seconds."""
    (tmp_path / "up.trace").write_text(TRACE)
    (tmp_path / "links.toml").write_text(DISTRIBUTION)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return deep_recipe.read(tmp_path / "recipe.toml")


def wait_for_cores(count: int) -> None:
    """Wait until the cluster says that so many cores are free; it says so some time later."""
    import ray

    deadline = time.monotonic() + 60.0
    while ray.available_resources().get("CPU", 0) != count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(("n", "workers"), [(5, 2), (7, 3), (4, 4)])
@pytest.mark.parametrize("decisions", [1, 3, 12, 128, 129, 131])
def test_each_simulation_makes_as_many_decisions_as_without_a_cluster(
    n: int, workers: int, decisions: int
) -> None:
    each, more = divmod(decisions, n)
    for share in ray_rollouts.shares(n, workers):
        own = range(share.first, share.first + share.count)
        count = part_of(share, decisions, n)
        # The worker divides its part the same way.
        there = [count // share.count + (i < count % share.count) for i in range(share.count)]
        assert there == [each + (i < more) for i in own]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_training_on_a_cluster_leaves_the_same_bytes(
    recipe: deep_recipe.Recipe, tmp_path: Path, address: str
) -> None:
    here = deep.train(recipe, deep.Here(1), tmp_path / "here")
    with ray_rollouts.on_cluster(address) as make:
        there = deep.train(recipe, make, tmp_path / "there")
    assert there.curve == here.curve
    assert here.updates >= 3
    assert (there.packets, there.decisions) == (here.packets, here.decisions)
    assert {k: np.asarray(v).tobytes() for k, v in there.weights.items()} == {
        k: np.asarray(v).tobytes() for k, v in here.weights.items()
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_refuses_what_it_cannot_begin(
    recipe: deep_recipe.Recipe, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opening.read_source(recipe.source)
    with ray_rollouts.on_cluster(address) as make, pytest.raises(ValueError, match="nobody"):
        make.rollouts(source, recipe, ["nobody"])
    with ray_rollouts.on_cluster(address) as make:
        wait_for_cores(2)
        there = make.rollouts(source, recipe, ["learner"])
        here = deep.Here(1).rollouts(source, recipe, ["learner"])
        (recipe.origin.parent / "up.trace").unlink()  # was sent with the text
        zeros = deep.files_of(recipe, deep.zeros(recipe, (here.history, here.n_features)))
        batches = [own.collect(zeros, np.zeros(1, np.float32), 40) for own in (here, there)]
        assert batches[0]["observation"].tobytes() == batches[1]["observation"].tobytes()
        (recipe.origin.parent / "up.trace").write_text(TRACE)
        monkeypatch.setattr(ray_rollouts, "START_S", 1.0)
        wait_for_cores(0)
        with pytest.raises(EngineError, match=r"0 of 1 Ray workers began within 1 s: the cluster"):
            make.rollouts(source, recipe, ["learner"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lost_worker_is_one_line_and_the_training_goes_on_anywhere(
    recipe: deep_recipe.Recipe, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(deep, "Checkpoints", partial(Checkpoints, checkpoint_s=0.0))
    opened: list[object] = []
    with ray_rollouts.on_cluster(address) as make:
        rollouts = make.rollouts
        wait_for_cores(2)

        def kept(source: opening.Source, recipe: deep_recipe.Recipe, names: list[str]) -> Collector:
            opened.append(rollouts(source, recipe, names))
            return cast("Collector", opened[0])

        def kill(done: int, total: int, reward: object) -> None:
            assert isinstance(opened[0], RayRollouts)
            ray.kill(opened[0].workers[1])

        monkeypatch.setattr(make, "rollouts", kept)
        with pytest.raises(EngineError) as caught:
            deep.train(recipe, make, tmp_path / "there", progress=kill)
    assert str(caught.value) == (
        "simulations 2 to 4: their Ray worker was lost (ActorDiedError); what is trained is kept "
        "up to the last checkpoint: continue with --resume"
    )
    resumed = deep.train(recipe, deep.Here(1), tmp_path / "there", resume=True)
    whole = deep.train(recipe, deep.Here(1), tmp_path / "here")
    assert resumed.curve == whole.curve
    assert {k: np.asarray(v).tobytes() for k, v in resumed.weights.items()} == {
        k: np.asarray(v).tobytes() for k, v in whole.weights.items()
    }


@pytest.mark.parametrize("workers", [1, 2, 5, 7, 9])
def test_shares_are_all_simulations_in_order_and_even(workers: int) -> None:
    own = ray_rollouts.shares(7, workers)
    assert [i for share in own for i in range(share.first, share.first + share.count)] == list(
        range(7)
    )
    counts = [share.count for share in own]
    assert len(counts) == min(workers, 7)
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--address", "10.0.0.1:6379"], "--address: allowed: with --engine ray"),
        (["--engine", "ray", "--jobs", "2"], "--jobs: allowed: with --engine local"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        app(["train", "aurora_mixed", *options], standalone_mode=False)


def test_training_without_ray_says_how_to_install_it(
    recipe: deep_recipe.Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match="make build EXTRAS=ray"):
        app(["train", str(recipe.origin), "--engine", "ray"], standalone_mode=False)
