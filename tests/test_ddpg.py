"""The learner of a host: what it learns, that it repeats, and that its policy is the core's."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

import jax
import jax.numpy as jnp
from typer.testing import CliRunner

from ackademy import _core
from ackademy.cli import app
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
from ackademy.learn import ddpg, host_card, host_training
from ackademy.learn.training_log import Checkpoints, TrainingLog

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
    host: Bandit | Plant | SimulatedHost,
    config: ddpg.Config,
    place: Checkpoints | None = None,
    seed: int = 1,
) -> ddpg.Trained:
    return ddpg.train(cast("SimulatedHost", host), config, seed, TrainingLog(ddpg.COLUMNS, place))


SHORT = replace(QUICK, epochs=1000, batch=64, actor_rate=3e-3, critic_rate=1e-2, tau=0.02)
"""larger steps, for a thousand updates in one call"""


def learnt(
    host: Bandit | Plant | SimulatedHost, config: ddpg.Config, seed: int = 1
) -> ddpg.Networks:
    """As many updates as random transitions: the learner without acting in between."""
    host.begin()
    seen, rng = host.observation, np.random.default_rng(seed)
    sizes = (seen.flows.shape[1], len(seen.target), host.paths)
    memory = ddpg.Memory(config, *sizes)
    while len(memory) < config.epochs:
        action = rng.uniform(-1.0, 1.0, host.paths).astype(np.float32)
        measured = host.step(action)
        if measured is None:
            host.begin()
        else:
            memory.add(seen, action, measured.reward, host.observation)
        seen = host.observation
    batches = [memory.sample(config.batch, rng) for _ in range(config.epochs)]

    def step(learner: ddpg.Learner, batch: ddpg.Batch) -> tuple[ddpg.Learner, None]:
        return ddpg.update(config, learner, batch)[0], None

    stacked = jax.tree.map(lambda *own: np.stack(own), *batches)
    learner, _ = jax.jit(partial(jax.lax.scan, step))(ddpg.begin(config, *sizes, seed), stacked)
    networks: ddpg.Networks = learner.networks
    return networks


def check_bandit(config: ddpg.Config, networks: ddpg.Networks) -> None:
    host, many = Bandit(seed=9), 300
    flows, there = np.zeros((many, 3, 3), np.float32), np.zeros(many, np.int32)
    targets, best = np.zeros((many, 2), np.float32), np.zeros((many, 2))
    for row in range(many):
        seen, best[row] = host.observation, host.best()
        flows[row, : len(seen.flows)], there[row], targets[row] = (
            seen.flows,
            len(seen.flows),
            seen.target,
        )
        host.step(best[row])
    h = ddpg.represent(config, networks.representation, jnp.asarray(flows), jnp.asarray(there))
    found = np.asarray(ddpg.act(config, networks.actor, jnp.asarray(targets), h))
    error, without = np.square(found - best).mean(axis=0), np.square(best).mean(axis=0)
    assert (error < 0.25 * without).all(), f"{error} of {without}"


def check_plant(config: ddpg.Config, learnt: list[ddpg.Networks]) -> None:
    """One seed's gain at one state spreads by 0.2, and depends on how a processor rounds."""
    best = best_gain(config.discount)
    for x in (-0.6, -0.3, 0.3, 0.6):
        seen = Observation(np.array([x], np.float32), np.array([[x]], np.float32))
        gains = [float(actions(config, networks, seen)[0]) / x for networks in learnt]
        assert np.mean(gains) == pytest.approx(-best, abs=0.35), f"at {x}; best {-best:.3f}"


def test_the_updates_alone_find_a_bandit_s_best_changes() -> None:
    check_bandit(SHORT, learnt(Bandit(), SHORT))


def test_the_updates_alone_find_nearly_the_best_gain_of_a_linear_system() -> None:
    config = replace(SHORT, discount=0.9)
    check_plant(config, [learnt(Plant(), config, seed) for seed in (1, 2, 3, 4)])


@pytest.mark.slow  # thousands of updates
def test_a_bandit_s_best_changes_are_found_from_the_target_and_the_last_flow() -> None:
    config = replace(QUICK, epochs=3000, noise_end=0.3)
    check_bandit(config, train(Bandit(), config).networks)


@pytest.mark.slow  # thousands of updates
def test_a_linear_system_gets_nearly_its_best_gain() -> None:
    config = replace(QUICK, epochs=4000, discount=0.9, noise_end=0.1)
    check_plant(config, [train(Plant(), config).networks])


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
    network = host_training.Network(name="test", scenario=scenario, changes={})
    return host_training.Recipe(
        origin=Path("drl_cc.toml"), about="a test", name="test", networks=(network,),
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
    host_card.write(trained, tmp_path / "policy", "ackademy train drl_cc")
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
    words = ["train", "drl_cc", "--on", str(file), "--quick", "--out", str(tmp_path / "out"),
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


NETWORK = """
duration_s = 3
[two_path]
first = { rate_mbps = RATE, delay_ms = 20, queue = { kind = "drop_tail", packets = 100 } }
second = { rate_mbps = RATE, delay_ms = 20, queue = { kind = "drop_tail", packets = 100 } }
[[flow]]
controller = "cubic"
multipath = true
"""


def test_each_of_several_networks_comes_once_before_any_comes_again() -> None:
    rates = (4, 8, 16)
    scenarios = [_core.Scenario.parse(NETWORK.replace("RATE", str(own)), "s") for own in rates]

    def drawn(seed: int) -> list[int]:
        host, found = SimulatedHost(scenarios, SETTINGS, seed=seed), []
        for _ in range(12):
            host.begin()
            most = 0.0
            while (measured := host.step(np.ones(2, np.float32))) is not None:
                most = max(most, float(measured.goodput_mbps.sum()))
            found.append(min(rates, key=lambda rate: abs(2 * rate - most)))
        return found

    order = drawn(1)
    rounds = [tuple(order[begin : begin + 3]) for begin in range(0, 12, 3)]
    assert all(sorted(own) == list(rates) for own in rounds), order
    assert len(set(rounds)) > 1, "the order is drawn anew"
    assert drawn(1) == order
    assert drawn(2) != order


def test_an_agent_for_several_networks_has_the_largest_scales() -> None:
    by_name = {own.name: own for own in host_training.read(ROOT / "data/recipes" / "drl_cc.toml")}
    everything = by_name.pop("all")
    assert [own.name for own in everything.networks] == list(by_name)
    settings = everything.settings([own.parsed() for own in everything.networks])
    each = [own.settings([own.networks[0].parsed()]) for own in by_name.values()]
    for name in ("rate_mbps", "rtt_ms", "bdp_packets", "window_packets"):
        assert getattr(settings, name) == max(getattr(own, name) for own in each), name


def test_without_the_lstm_the_actor_sees_its_target_only(tmp_path: Path) -> None:
    config = replace(QUICK, epochs=60, warmup=30, row_every=20, represent=False)
    networks = train(Bandit(), config).networks
    assert not any(float(np.abs(own).max()) for own in jax.tree.leaves(networks.representation))
    target, rng = np.array([0.3, -0.4], np.float32), np.random.default_rng(1)
    one, other = (
        actions(config, networks, Observation(target, rng.normal(size=(3, 3)).astype(np.float32)))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
    # The same networks as the core has them, with an LSTM of zeros.
    np.testing.assert_array_equal(
        actions(
            replace(config, represent=True),
            networks,
            Observation(target, np.ones((2, 3), np.float32)),
        ),
        one,
    )


def test_a_training_by_members_and_other_choices_leaves_them_in_the_policy(tmp_path: Path) -> None:
    for name, rate in (("slow", 4), ("fast", 8)):
        (tmp_path / f"{name}.toml").write_text(NETWORK.replace("RATE", str(rate)))
    (tmp_path / "own.toml").write_text("""\
about = "a test"
learner = "ddpg"
seed = 1
[training]
warmup = 20
row_every = 20
[[network]]
name = "slow"
scenario = "slow.toml"
[[network]]
name = "fast"
scenario = "fast.toml"
[[network]]
name = "both"
seed = 7
members = ["slow", "fast"]
host = { epoch_ms = 50.0, between = "halve", window_packets = 30.0 }
training = { batch = 16 }
""")
    words = ["train", str(tmp_path / "own.toml"), "--only", "both", "--set", "training.epochs=60",
             "--out", str(tmp_path / "out"), "--work", str(tmp_path / "runs")]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    described = tomllib.loads((tmp_path / "out" / "both" / "policy.toml").read_text())
    assert (
        described["host"] | {"rate_mbps": 16.0, "epoch_ms": 50.0, "between": "halve"}
        == described["host"]
    )
    assert described["host"]["window_packets"] == 30.0
    assert described["made"]["networks"] == ["slow", "fast"]
    assert described["made"]["seed"] == 7
    assert described["made"]["training"]["batch"] == 16
    assert _core.JointPolicy.open(tmp_path / "out" / "both").paths == 2
    card = (tmp_path / "out" / "both" / "CARD.md").read_text()
    assert "the 2 networks" in card
    assert "| epoch ms | 50.0 |" in card


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('members = ["s9"]', "members: 's9': allowed: s1, "),
        ("members = []", "members = []: allowed: a list of names"),
        ('members = ["s1"]\nset = { duration_s = 1 }', "without `scenario` and `set`"),
        ("host = { rate_mbps = 1 }", "host: rate_mbps: no such key; allowed: window_packets, "),
        ("seed = -1", "seed = -1: allowed: a whole number from 0"),
        ("training = { epochs = 0 }", "training.epochs = 0: allowed: a whole number from 1"),
    ],
)
def test_a_wrong_entry_of_a_recipe_is_refused_in_a_line(
    tmp_path: Path, entry: str, fault: str
) -> None:
    text = (ROOT / "data/recipes" / "drl_cc.toml").read_text()
    file = tmp_path / "drl_cc.toml"
    file.write_text(f'{text}\n[[network]]\nname = "mine"\n{entry}\n')
    with pytest.raises(TrainingError) as raised:
        host_training.read(file)
    assert str(raised.value).startswith(f"{file}: network[22]")
    assert fault in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_choice_out_of_its_range_is_refused_in_a_line(tmp_path: Path) -> None:
    (own,) = host_training.read(ROOT / "data/recipes" / "drl_cc.toml")[:1]
    for host, fault in (({"epoch_ms": 1.0}, "epoch_ms = 1"), ({"between": "x"}, 'between = "x"')):
        with pytest.raises(TrainingError, match=fault) as raised:
            host_training.train(replace(own, host=host), tmp_path)
        assert "\n" not in str(raised.value)


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
    text = (ROOT / "data/recipes" / "drl_cc.toml").read_text()
    file = tmp_path / "drl_cc.toml"
    file.write_text(text.replace(change, fault))
    with pytest.raises(TrainingError, match="allowed: ") as raised:
        host_training.read(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("recipe", "count", "folder"),
    [
        ("data/recipes/drl_cc.toml", 22, "policies/drl_cc"),
        ("research/recipes/drl_cc_choices.toml", 17, "policies/drl_cc/choices"),
    ],
)
def test_every_agent_of_the_recipes_can_be_trained_and_is_there(
    recipe: str, count: int, folder: str
) -> None:
    recipes = host_training.read(ROOT / recipe)
    assert len(recipes) == count
    for own in recipes:
        settings = own.settings([network.parsed() for network in own.networks])
        assert settings.paths == 2
        found = [ROOT / place / folder / own.name for place in ("data", "research")]
        (path,) = (path for path in found if path.exists())
        shipped = tomllib.loads((path / "policy.toml").read_text())
        assert HostSettings(**shipped["host"]) == settings, own.name
        assert shipped["made"]["seed"] == own.seed
        assert shipped["made"]["decisions"] == own.config.epochs
