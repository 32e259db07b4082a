"""The learner of a host: what it learns, that it repeats, and that its policy is the core's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

import jax
import jax.numpy as jnp
from typer.testing import CliRunner

from ackademy import _core
from ackademy.cli.train import app
from ackademy.envs.host import (
    F32,
    FLOOR_MBPS,
    HostSettings,
    Measured,
    Observation,
    SimulatedHost,
    goodputs,
)
from ackademy.errors import TrainingError
from ackademy.learn import ddpg, host_training
from ackademy.learn.training_log import Checkpoints, TrainingLog
from ackademy.render import host_card

ROOT = Path(__file__).parents[1]
SETTINGS = HostSettings(rate_mbps=16.0, rtt_ms=100.0, bdp_packets=66.7, window_packets=100.0)
QUICK = ddpg.Config(
    epochs=1500, warmup=300, batch=32, discount=0.0, actor_rate=1e-3, critic_rate=3e-3,
    tau=0.01, state=8, hidden=32, row_every=500,
)  # fmt: skip
SCENARIO = """\
duration_s = 20
[two_path]
first = { rate_mbps = 8, delay_ms = 50, queue = { kind = "drop_tail", packets = 300 } }
second = { rate_mbps = 8, delay_ms = 50, queue = { kind = "drop_tail", packets = 300 } }
[[flow]]
controller = "cubic"
multipath = true
count = 3
"""


class Bandit:
    """A host without memory: the flows' mean and the target say which changes are best."""

    paths = 2

    def __init__(self, seed: int = 0, flows: int = 3) -> None:
        self._rng, self._most = np.random.default_rng(seed), flows
        self.observation = self._seen()

    def _seen(self) -> Observation:
        flows = self._rng.uniform(-1, 1, (int(self._rng.integers(1, self._most + 1)), 3))
        target = self._rng.uniform(-1, 1, 2)
        return Observation(target.astype(np.float32), flows.astype(np.float32))

    def best(self) -> F32:
        """One change follows the target, the other the last of the flows."""
        return np.array([0.8 * self.observation.target[0], 0.8 * self.observation.flows[-1, 0]])

    def begin(self) -> None:
        """Nothing."""

    def step(self, changes: F32) -> Measured | None:
        """Reward the distance to the best changes."""
        reward = 1.0 - float(np.square(changes - self.best()).sum())
        self.observation = self._seen()
        return Measured(reward, np.ones(1), 100.0)


class Plant:
    """A linear system x' = 0.9 x + 0.5 a with costs x^2 + 0.1 a^2: its best gain is known."""

    paths = 1

    def __init__(self, seed: int = 0) -> None:
        self._rng, self._x, self._t = np.random.default_rng(seed), 0.0, 0

    @property
    def observation(self) -> Observation:
        """The state, as a target and as the only flow."""
        x = np.array([self._x], np.float32)
        return Observation(x, x[None])

    def begin(self) -> None:
        """Begin anywhere."""
        self._x, self._t = float(self._rng.uniform(-1, 1)), 0

    def step(self, changes: F32) -> Measured | None:
        """One step; an episode has 20."""
        a = float(changes[0])
        reward = -(self._x**2 + 0.1 * a**2)
        self._x = 0.9 * self._x + 0.5 * a
        self._t += 1
        return None if self._t == 20 else Measured(reward, np.ones(1), 100.0)


def best_gain(discount: float) -> float:
    """The gain k of the best actions a = -k x, by iterating the value x^2 p."""
    p = 0.0
    for _ in range(1000):
        k = discount * p * 0.9 * 0.5 / (0.1 + discount * p * 0.25)
        p = 1.0 + 0.1 * k**2 + discount * p * (0.9 - 0.5 * k) ** 2
    return k


def actions(config: ddpg.Config, networks: ddpg.Networks, seen: Observation) -> F32:
    flows, there = jnp.asarray(seen.flows)[None], jnp.array([len(seen.flows)])
    h = ddpg.represent(config, networks.representation, flows, there)
    found: F32 = np.asarray(ddpg.act(config, networks.actor, jnp.asarray(seen.target)[None], h))
    first: F32 = found[0]
    return first


def train(
    host: ddpg.Host, config: ddpg.Config, place: Checkpoints | None = None, seed: int = 1
) -> ddpg.Trained:
    return ddpg.train(host, config, seed, TrainingLog(ddpg.COLUMNS, place))


@pytest.mark.slow  # thousands of updates
def test_a_bandit_s_best_changes_are_found_from_the_target_and_the_last_flow() -> None:
    config = replace(QUICK, epochs=3000, noise_end=0.3)
    trained = train(Bandit(), config)
    host, errors, spread = Bandit(seed=9), [], []
    for _ in range(300):
        best = host.best()
        errors.append(np.square(actions(config, trained.networks, host.observation) - best))
        spread.append(np.square(best))
        host.step(best)
    error, without = np.mean(errors, axis=0), np.mean(spread, axis=0)
    assert (error < 0.25 * without).all(), f"{error} of {without}"


@pytest.mark.slow  # thousands of updates
def test_a_linear_system_gets_nearly_its_best_gain() -> None:
    config = replace(QUICK, epochs=4000, discount=0.9, noise_end=0.1)
    networks = train(Plant(), config).networks
    best = best_gain(config.discount)
    for x in (-0.6, -0.3, 0.3, 0.6):
        seen = Observation(np.array([x], np.float32), np.array([[x]], np.float32))
        action = float(actions(config, networks, seen)[0])
        assert action / x == pytest.approx(-best, abs=0.35), f"at {x}; best {-best:.3f}"


def test_flows_beyond_those_that_are_there_do_not_count() -> None:
    learner = ddpg.begin(QUICK, 3, 2, 2, seed=1)
    flows = np.random.default_rng(1).normal(size=(1, 5, 3)).astype(np.float32)
    params = learner.networks.representation
    some = ddpg.represent(QUICK, params, jnp.asarray(flows[:, :2]), jnp.array([2]))
    padded = ddpg.represent(QUICK, params, jnp.asarray(flows), jnp.array([2]))
    np.testing.assert_allclose(some, padded, rtol=1e-6)


def test_the_critic_does_not_change_the_representation() -> None:
    learner = ddpg.begin(replace(QUICK, actor_rate=0.0), 3, 2, 2, seed=1)
    host, memory = Bandit(), ddpg.Memory(QUICK, 3, 2, 2)
    for _ in range(50):
        seen = host.observation
        measured = host.step(np.zeros(2, np.float32))
        assert measured is not None
        memory.add(seen, np.zeros(2, np.float32), measured.reward, host.observation)
    batch = memory.sample(32, np.random.default_rng(1))
    new, _, _ = ddpg.update(replace(QUICK, actor_rate=0.0), learner, batch)
    same = jax.tree.map(
        lambda a, b: bool((a == b).all()),
        learner.networks.representation,
        new.networks.representation,
    )
    assert all(same.values())
    assert not bool(
        (learner.networks.critic["0"]["kernel"] == new.networks.critic["0"]["kernel"]).all()
    )


def test_a_training_that_was_killed_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    config = replace(QUICK, epochs=120, warmup=30, row_every=20, discount=0.9)
    whole = train(Bandit(), config)

    class KilledError(Exception):
        pass

    class Killed(Bandit):
        def step(self, changes: F32) -> Measured | None:
            self.steps = getattr(self, "steps", 0) + 1
            if self.steps > 90:
                raise KilledError
            return super().step(changes)

    with pytest.raises(KilledError):
        train(Killed(), config, Checkpoints(tmp_path, "same", checkpoint_s=0.0))
    again = train(Bandit(), config, Checkpoints(tmp_path, "same", resume=True, checkpoint_s=0.0))
    for name, tensor in ddpg.tensors(whole.networks).items():
        np.testing.assert_array_equal(tensor, ddpg.tensors(again.networks)[name], name)


def recipe(config: ddpg.Config, scenario: Path) -> host_training.Recipe:
    return host_training.Recipe(
        origin=Path("drl_cc.toml"), about="a test", name="test", scenario=scenario, changes={},
        seed=1, config=config,
    )  # fmt: skip


def test_the_core_evaluates_the_networks_as_jax_does(tmp_path: Path) -> None:
    config = ddpg.Config()
    networks = ddpg.begin(config, 11, 10, 2, seed=3).networks
    wide = {"0": networks.actor["0"], "1": networks.actor["1"]}
    last = jax.tree.map(lambda w: 100.0 * w, networks.actor["2"])  # not all outputs near 0
    networks = networks._replace(actor={**wide, "2": last})
    trained = host_training.HostTrained(
        recipe(config, Path("s.toml")), SETTINGS, networks, _curve(), 1, 1, 1, 0.0, 0.0
    )
    host_card.write(trained, tmp_path / "policy", "ackademy train drl-cc")
    policy = _core.JointPolicy.open(tmp_path / "policy")
    assert policy.paths == 2
    rng, largest = np.random.default_rng(5), 0.0
    for flows in (1, 2, 5, 10, 31):
        seen = Observation(
            rng.uniform(0, 2, 10).astype(np.float32),
            rng.uniform(0, 2, (flows, 11)).astype(np.float32),
        )
        expected = actions(config, networks, seen)
        found = policy.outputs(seen.target, seen.flows)
        largest = max(largest, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert largest > 0.1


def _curve() -> str:
    rows = [",".join(ddpg.COLUMNS), *(",".join(["1"] * len(ddpg.COLUMNS)) for _ in range(2))]
    return "\n".join(rows) + "\n"


def test_the_reward_is_the_sum_of_the_logarithms_of_the_flows_goodputs() -> None:
    scenario = _core.Scenario.parse(SCENARIO, "s.toml")
    host = SimulatedHost([scenario], SETTINGS, seed=1)
    host.begin()
    measured = host.step(np.zeros(2, np.float32))
    assert measured is not None
    flows = host.observation.flows
    assert flows.shape[1] == 11
    mbps = goodputs(flows, SETTINGS)
    np.testing.assert_allclose(mbps, 16.0 * (flows[:, 1] + flows[:, 6]), rtol=1e-6)
    assert measured.reward == pytest.approx(np.log(np.maximum(mbps, FLOOR_MBPS)).sum())
    none = np.zeros((4, 11), np.float32)
    assert np.log(np.maximum(goodputs(none, SETTINGS), FLOOR_MBPS)).sum() == pytest.approx(
        4 * np.log(0.01)
    )


def test_a_quick_training_leaves_a_policy_that_runs_and_resume_leaves_it_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lossless.toml"
    file.write_text(SCENARIO)
    words = ["drl-cc", "--scenario", str(file), "--quick", "--out", str(tmp_path / "out"),
             "--work", str(tmp_path / "runs"), "--resume"]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "400 epochs, 300 updates" in result.output
    folder = tmp_path / "out" / "lossless"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {
        "CARD.md",
        "curve.csv",
        "curve.svg",
        "policy.toml",
        "weights.safetensors",
    }
    from ackademy.backends import schemes

    assert schemes.of_folder(folder)[0] == "drl_cc"
    scenario = _core.Scenario.parse(SCENARIO, "s.toml")
    governed = scenario.with_controller("drl_cc", {"policy": str(folder)})
    tables = _core.simulate(governed, 1)
    assert np.sum(tables["flows"]["goodput_bytes"]) > 1e6
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("seed = 1", "seed = -1"),
        ("tau = 0.001", "tau = 2.0"),
        ("epochs = 50000", "epochs = 0.5"),
        ("[training]", "[training]\nrate = 1"),
        ('name = "rate2"', 'name = "s1"'),
    ],
)
def test_a_wrong_recipe_is_refused_in_a_line(tmp_path: Path, change: str, fault: str) -> None:
    text = (ROOT / "recipes" / "drl_cc.toml").read_text()
    file = tmp_path / "drl_cc.toml"
    file.write_text(text.replace(change, fault))
    with pytest.raises(TrainingError, match="allowed: ") as raised:
        host_training.read(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_network_of_the_recipe_can_be_trained_on() -> None:
    recipes = host_training.read(ROOT / "recipes" / "drl_cc.toml")
    assert len(recipes) == 19
    for own in recipes:
        host = own.parsed()
        assert "paths = 2" in _core.HostEpisodes.scales(host, list(own.learners)), own.name
