"""The deep learners, on simulations without a network: what they learn, and that they repeat."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy.envs.metrics import FloatArray, IntervalMetrics
from ackademy.envs.rewarder import Rewarder
from ackademy.errors import TrainingError
from ackademy.learn import checkpoint, dqn, networks, ppo
from ackademy.learn.credit import OpenDecisions, Transitions
from ackademy.learn.episode_source import F32, F64, I64, Actions, Bools
from ackademy.learn.layers import Layer, layers_of, tables_of
from ackademy.learn.training_log import Checkpoints, TrainingLog
from ackademy.policies import policy_files

CONTEXTS = 3
HISTORY, FEATURES = 4, 4
TICKS = 60
THROUGHPUT = 4

CHOICES = layers_of(
    [
        {"kind": "flatten"},
        {"kind": "dense", "units": 16, "activation": "relu"},
        {"kind": "dense", "units": CONTEXTS},
    ],
    "test",
)
DQN = dqn.Config(
    episodes=20, warmup=100, updates_per_decision=0.5, learning_rate=3e-3, discount=0.5,
    target_every=50, epsilon_decisions=600, row_every=250,
)  # fmt: skip
EVERY_ROW = 0.0


class FakeEpisodes:
    """Simulations without a network: agents that must answer what they are asked, rewarded late.

    Every agent of every simulation has a period of its own, so decisions are asynchronous. A
    decision shows a context; the right answer is the context. What it was worth is known `late`
    decisions of the agent later, two as the packets of an interval are.
    """

    def __init__(self, n: int = 4, agents: int = 2, *, seed: int = 0, late: int = 2) -> None:
        self.late = late
        self.observation: F32 = np.zeros((n, agents, HISTORY, FEATURES), np.float32)
        self.metrics: F64 = np.zeros((n, agents, 17))
        self.credit: F64 = np.zeros((n, agents, 17))
        self.credit_step: I64 = np.full((n, agents), -1, np.int64)
        self.due: Bools = np.zeros((n, agents), np.bool_)
        self.decision: I64 = np.zeros((n, agents), np.int64)
        self.over: Bools = np.zeros(n, np.bool_)
        self.left: Bools = np.zeros((n, agents), np.bool_)
        self.n_choices = CONTEXTS
        self.action_size = 0
        self.packets = self.decisions = 0
        self.progress = 0.0
        self.period = 1 + (np.arange(n * agents) % 3).reshape(n, agents)
        self.steps = 0
        self._seed = seed
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Begin all episodes anew."""
        self._seed = self._seed if seed is None else seed
        self._episode = np.zeros(len(self.over), np.int64)
        for i in range(len(self.over)):
            self._begin(i)

    def _begin(self, i: int) -> None:
        self._rng = getattr(self, "_rng", {})
        self._rng[i] = np.random.default_rng((self._seed, i, int(self._episode[i])))
        self._worth: dict[tuple[int, int, int], float] = getattr(self, "_worth", {})
        self._tick = getattr(self, "_tick", np.zeros(len(self.over), np.int64))
        self._tick[i] = 0
        self._episode[i] += 1
        self.over[i], self.due[i], self.credit_step[i] = False, True, -1
        self.decision[i] = 0
        self.observation[i] = 0.0
        for j in range(self.due.shape[1]):
            self._show(i, j)

    def _show(self, i: int, j: int) -> None:
        history = self.observation[i, j]
        history[:-1] = history[1:]
        history[-1] = 0.0
        history[-1, int(self._rng[i].integers(CONTEXTS))] = 1.0
        history[-1, -1] = self.decision[i, j] / TICKS

    def _value(self, i: int, j: int, actions: Actions) -> float:
        context = int(self.observation[i, j, -1, :CONTEXTS].argmax())
        return float(actions[i, j] == context)

    def step(self, actions: Actions) -> None:
        """Take the answers of those who are due and go on until others are."""
        self.steps += 1
        for i in range(len(self.over)):
            if self.over[i]:
                self._begin(i)
                continue
            for j in np.flatnonzero(self.due[i]):
                self._worth[i, int(j), int(self.decision[i, j])] = self._value(i, int(j), actions)
                self.decisions += 1
            self.due[i], self.credit_step[i] = False, -1
            while not self.due[i].any() and not self.over[i]:
                self._tick[i] += 1
                self.over[i] = self._tick[i] >= TICKS
                self.due[i] = self._tick[i] % self.period[i] == 0
            for j in np.flatnonzero(self.due[i]):
                self.decision[i, j] += 1
                closed = int(self.decision[i, j]) - self.late
                if closed >= 0:
                    self.credit_step[i, j] = closed
                    self.credit[i, j, THROUGHPUT] = self._worth[i, int(j), closed]
                self._show(i, int(j))
        self.packets += 1


def throughput(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    return metrics.throughput_mbps


def train(
    layers: tuple[Layer, ...],
    config: dqn.Config,
    place: Checkpoints | None = None,
    *,
    seed: int = 1,
    die_after: int = 0,
) -> tuple[networks.Weights, str]:
    """Weights and curve; `die_after` that many rows it is killed."""
    env: Any = FakeEpisodes(seed=seed)
    rewarder = Rewarder(throughput, "sent", env)
    rewarder.reset()

    def progress(done: int, total: int, reward: object) -> None:
        if die_after and len(log.rows) == die_after:
            raise KeyboardInterrupt

    log = TrainingLog(dqn.COLUMNS, place, progress)
    try:
        weights = dqn.train(env, rewarder, layers, config, seed, log).weights
    finally:
        log.close()
    return weights, log.csv()


def test_a_curve_counts_in_whole_numbers_however_many() -> None:
    log = TrainingLog(("decisions", "reward"))
    log.row({"decisions": 33_678, "reward": 0.5})
    log.row({"decisions": 10_001_351, "reward": 2 / 3})
    assert log.csv() == "decisions,reward\n33678,0.5\n10001351,0.6666667\n"


def rewards(curve: str) -> list[float]:
    head, *rows = curve.splitlines()
    place = head.split(",").index("reward")
    return [float(row.split(",")[place]) for row in rows]


def test_dqn_learns_what_is_rewarded_two_decisions_late() -> None:
    _, curve = train(CHOICES, DQN)
    # At random, one answer in three is right; with credit off by one decision too.
    assert rewards(curve)[0] < 0.6
    assert rewards(curve)[-1] > 0.85


def test_killed_in_the_middle_and_resumed_it_learns_the_same(tmp_path: Path) -> None:
    place = Checkpoints(tmp_path, "recipe", checkpoint_s=EVERY_ROW)
    whole, curve = train(CHOICES, DQN)
    rows = len(curve.splitlines()) - 1
    with pytest.raises(KeyboardInterrupt):
        train(CHOICES, DQN, place, die_after=rows // 2)
    resumed, again = train(CHOICES, DQN, replace(place, resume=True))
    assert again == curve
    assert networks.to_bytes(resumed) == networks.to_bytes(whole)
    other, _ = train(CHOICES, DQN, seed=2)
    assert networks.to_bytes(other) != networks.to_bytes(whole)


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    place = Checkpoints(tmp_path, "one", checkpoint_s=EVERY_ROW)
    with pytest.raises(KeyboardInterrupt):
        train(CHOICES, DQN, place, die_after=2)
    with pytest.raises(TrainingError, match="another recipe"):
        train(CHOICES, DQN, Checkpoints(tmp_path, "other", resume=True))


def test_a_checkpoint_half_written_is_not_seen(tmp_path: Path) -> None:
    arrays = {"a": np.ones(2), "count": np.array(7)}
    made = checkpoint.Checkpoint({"recipe": "one", "step": 3}, arrays, "decisions\n1\n")
    checkpoint.save(made, tmp_path, 3)
    (tmp_path / f".{checkpoint.PREFIX}99").mkdir()
    loaded = checkpoint.load(tmp_path, "one")
    assert loaded is not None
    assert loaded.counter("step") == 3
    np.testing.assert_array_equal(loaded.arrays["a"], np.ones(2))
    assert loaded.arrays["count"].shape == ()


@pytest.mark.parametrize("late", [2, 5, 20])
def test_a_transition_is_of_one_agent_and_holds_the_reward_of_its_own_interval(late: int) -> None:
    env: Any = FakeEpisodes(n=3, agents=3, late=late)
    rewarder, open_decisions = Rewarder(throughput, "sent", env), OpenDecisions(env)
    rewarder.reset()
    rng, seen, parts = np.random.default_rng(0), {}, []
    episode = np.zeros(3, np.int64)
    for _ in range(200):
        actions = rng.integers(CONTEXTS, size=env.due.shape)
        for i, j in np.argwhere(env.due & ~env.over[:, None]):
            key = (3 * i + j, episode[i], env.decision[i, j])
            seen[tuple(map(int, key))] = (env.observation[i, j].copy(), int(actions[i, j]))
        open_decisions.open(env, actions)
        env.step(actions)
        parts.append(
            (
                episode.copy(),
                open_decisions.close(env, rewarder.compute(), rewarder.reward_decision),
            )
        )
        episode += env.over
    n = 0
    for episodes, done in parts:
        for k in range(len(done)):
            stream = int(done.stream[k])
            number = round(float(done.observation[k, -1, -1]) * TICKS)
            observation, action = seen[stream, int(episodes[stream // 3]), number]
            following, _ = seen[stream, int(episodes[stream // 3]), number + 1]
            np.testing.assert_array_equal(done.observation[k], observation)
            np.testing.assert_array_equal(done.following[k], following)
            assert done.action[k] == action
            assert done.reward[k] == (observation[-1, :CONTEXTS].argmax() == action)
            n += 1
    assert n > 300
    assert len(seen) - n <= (2 + late) * 9 * 4  # the last ones of each agent in each episode


def test_advantages_run_along_each_stream_and_stop_where_it_is_cut() -> None:
    m = 5
    batch = Transitions(
        observation=np.zeros((m, 1, 1), np.float32),
        action=np.zeros(m, np.int64),
        reward=np.array([1, 10, 2, 20, 4], np.float32),
        following=np.zeros((m, 1, 1), np.float32),
        log_probability=np.zeros(m, np.float32),
        stream=np.array([0, 1, 0, 1, 0]),
        place=np.array([0, 5, 1, 7, 2]),
        truth=np.zeros((m, 0), np.float32),
        following_truth=np.zeros((m, 0), np.float32),
    )
    value, following = np.zeros(m, np.float32), np.full(m, 8.0, np.float32)
    advantage = ppo.advantages(batch, value, following, discount=0.5, trace=0.5)
    last = 4 + 4.0
    middle = 2 + 4.0 + 0.25 * last
    np.testing.assert_allclose(advantage, [1 + 4 + 0.25 * middle, 14, middle, 24, last])


NETWORKS: list[list[dict[str, object]]] = [
    [{"kind": "conv1d", "filters": 6, "kernel": 5, "activation": "relu"},
     {"kind": "max_pool", "size": 2},
     {"kind": "conv1d", "filters": 5, "kernel": 4, "padding": "valid", "activation": "tanh"},
     {"kind": "dense", "units": 4, "activation": "sigmoid"},
     {"kind": "lstm", "units": 3, "returns": "all"},
     {"kind": "lstm", "units": 7},
     {"kind": "dense", "units": 2}],
    [{"kind": "gru", "units": 5, "returns": "all"},
     {"kind": "gru", "units": 4},
     {"kind": "dense", "units": 3}],
    [{"kind": "layer_norm", "epsilon": 1e-4},
     {"kind": "dense", "units": 6, "activation": {"kind": "leaky_relu", "slope": 0.2}},
     {"kind": "flatten"},
     {"kind": "layer_norm", "activation": "relu"},
     {"kind": "dense", "units": 3}],
]  # fmt: skip


@pytest.mark.parametrize("tables", NETWORKS, ids=["lstm", "gru", "norm"])
def test_a_network_survives_being_written(tables: list[dict[str, object]], tmp_path: Path) -> None:
    import jax

    layers = layers_of(tables, "test")
    assert layers_of(tables_of(layers), "test") == layers
    weights = networks.begin(layers, (16, 3), jax.random.key(3))
    networks.save(weights, tmp_path / "weights.safetensors")
    tensors = policy_files.tensors_of((tmp_path / "weights.safetensors").read_bytes())
    read = {name: jax.numpy.asarray(value) for name, value in tensors.items()}
    x = jax.random.normal(jax.random.key(4), (5, 16, 3))
    np.testing.assert_array_equal(
        networks.jitted(layers, weights, x), networks.jitted(layers, read, x)
    )
    assert {name: value.shape for name, value in read.items()} == networks.tensor_shapes(
        layers, (16, 3)
    )


def test_training_moves_every_tensor_of_a_network_that_normalises() -> None:
    import jax

    layers = layers_of(NETWORKS[2], "test")
    weights = networks.begin(layers, (16, 3), jax.random.key(3))
    x = jax.random.normal(jax.random.key(4), (50, 16, 3))
    slopes = jax.grad(lambda own: (networks.jitted(layers, own, x) ** 2).sum())(weights)
    assert all(np.isfinite(slope).all() and np.any(slope) for slope in slopes.values())


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"kind": "relu", "slope": 0.1}, r"activation = .*: allowed: \{ kind = \"leaky_relu\""),
        ({"kind": "leaky_relu", "slope": 2.0}, r"slope = 0.0 to 1.0"),
        ("leaky", r"activation = 'leaky': allowed: .*leaky_relu"),
    ],
)
def test_an_activation_that_there_is_not_is_refused(table: object, told: str) -> None:
    with pytest.raises(TrainingError, match=told):
        layers_of([{"kind": "dense", "units": 2, "activation": table}], "test")


def test_layers_compute_what_flax_computes_from_the_same_tensors() -> None:
    import flax.linen as nn
    import jax

    x = jax.random.normal(jax.random.key(0), (4, 9, 3))
    conv = layers_of([{"kind": "conv1d", "filters": 6, "kernel": 4}], "test")
    w = networks.begin(conv, (9, 3), jax.random.key(1))
    kernel = {"kernel": w["layers.0.kernel"], "bias": w["layers.0.bias"]}
    expected = np.asarray(nn.Conv(6, (4,)).apply({"params": kernel}, x))
    np.testing.assert_allclose(networks.jitted(conv, w, x), expected, rtol=0, atol=1e-5)

    lstm = layers_of([{"kind": "lstm", "units": 5, "returns": "all"}], "test")
    w = networks.begin(lstm, (9, 3), jax.random.key(2))
    w["layers.0.bias"] = jax.random.normal(jax.random.key(3), (20,))
    parts = {}
    for k, gate in enumerate("ifgo"):
        columns = slice(5 * k, 5 * k + 5)
        parts[f"i{gate}"] = {"kernel": w["layers.0.kernel"][:, columns]}
        parts[f"h{gate}"] = {"kernel": w["layers.0.recurrent"][:, columns],
                             "bias": w["layers.0.bias"][columns]}  # fmt: skip
    cell = nn.OptimizedLSTMCell(5)
    expected = np.asarray(nn.RNN(cell).apply({"params": {"cell": parts}}, x))
    np.testing.assert_allclose(networks.jitted(lstm, w, x), expected, rtol=0, atol=1e-5)

    gru = layers_of([{"kind": "gru", "units": 5, "returns": "all"}], "test")
    w = networks.begin(gru, (9, 3), jax.random.key(4))
    w["layers.0.bias"] = jax.random.normal(jax.random.key(5), (15,))
    w["layers.0.recurrent_bias"] = jax.random.normal(jax.random.key(6), (5,))
    parts = {}
    for k, gate in enumerate("rzn"):
        columns = slice(5 * k, 5 * k + 5)
        parts[f"i{gate}"] = {"kernel": w["layers.0.kernel"][:, columns],
                             "bias": w["layers.0.bias"][columns]}  # fmt: skip
        parts[f"h{gate}"] = {"kernel": w["layers.0.recurrent"][:, columns]}
    parts["hn"]["bias"] = w["layers.0.recurrent_bias"]
    expected = np.asarray(nn.RNN(nn.GRUCell(5)).apply({"params": {"cell": parts}}, x))
    np.testing.assert_allclose(networks.jitted(gru, w, x), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "dens", "units": 3}, r"layers\[0\]\.kind = 'dens': allowed: dense, conv1d"),
        ({"kind": "dense", "units": 0}, r"layers\[0\]\.units = 0: allowed: a whole number from 1"),
        ({"kind": "dense"}, r"layers\[0\]\.units = None: allowed"),
        ({"kind": "dense", "units": 3, "bias": True}, r"layers\[0\]\.bias: no such key of dense"),
        ({"kind": "lstm", "units": 3, "returns": "first"}, r"returns = 'first': allowed"),
    ],
)
def test_a_layer_that_is_none_is_one_line(table: dict[str, object], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        layers_of([table], "test.toml")
