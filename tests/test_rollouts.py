"""Class `Rollouts` of the binding: decisions made in the core, beside the Python path."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pytest

from ackademy import _core
from ackademy.envs import rewards
from ackademy.envs.metrics import IntervalMetrics
from ackademy.envs.rewarder import Credit, Rewarder
from ackademy.learn import critic
from ackademy.learn.credit import OpenDecisions
from ackademy.policies import policy_files

Batch: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = dict[int, list[tuple[Any, ...]]]
"""per stream: place, observation, following, action, log-probability, reward"""

SCENARIO = """
duration_s = 2
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 8
queue = { kind = "drop_tail", packets = 30 }
loss = { kind = "bernoulli", ratio = 0.01 }
[[flow]]
name = "learner"
controller = "cubic"
count = 2
start_spread_s = 0.5
[[flow]]
name = "learner_that_leaves"
controller = "cubic"
stop_s = 1
[[flow]]
name = "rival"
controller = "new_reno"
"""
CLASSES = """
about = "two kinds of links"
learners = ["learner"]
"""
ONE_CLASS = """
[[scenario]]
name = "{name}"
weight = {weight}
[scenario.inline]
duration_s = 1
[scenario.inline.dumbbell]
rtt_ms = 20
[scenario.inline.dumbbell.bottleneck]
rate_mbps = {rate}
queue = {{ kind = "drop_tail", packets = 9 }}
[[scenario.inline.flow]]
name = "learner"
"""
SLOW = ONE_CLASS.format(name="slow", weight="[[0, 1], [1, 0]]", rate=2)
FAST = ONE_CLASS.format(name="fast", weight="[[0, 0], [1, 1]]", rate=9)
STEPS = """
[observation]
features = ["cwnd_change", "rtt_mean", "rtt_ratio"]
history = 4
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
"""
RATE = (
    STEPS.replace("cwnd_steps", "rate_change") + "[start]\nslow_start = true\nloss_guard = false\n"
)
TWO = STEPS.replace("cwnd_steps", "rate_and_cwnd")
SETTINGS = {"choices": STEPS, "a value": RATE, "two values": TWO}
OUTPUTS = {"choices": 5, "a value": 1, "two values": 2}
N, AGENTS, SEED = 3, 3, 7
MASK = (1 << 64) - 1


def policy(kind: str, seed: int = 0) -> dict[str, bytes]:
    """A network with random weights."""
    rng = np.random.default_rng(seed)
    sizes = (12, 8, OUTPUTS[kind])
    layers: list[dict[str, Any]] = [{"kind": "flatten"}]
    tensors = {}
    for i, (n_in, n_out) in enumerate(pairwise(sizes), 1):
        layers.append({"kind": "dense", "units": n_out, "activation": "tanh"})
        tensors[f"layers.{i}.kernel"] = rng.normal(size=(n_in, n_out)).astype(np.float32)
        tensors[f"layers.{i}.bias"] = rng.normal(size=n_out).astype(np.float32)
    text = policy_files.policy_text("random", SETTINGS[kind], layers, {})
    return {"policy.toml": text.encode(), "weights.safetensors": policy_files.bytes_of(tensors)}


def log_std(kind: str) -> npt.NDArray[np.float32]:
    size = 0 if kind == "choices" else OUTPUTS[kind]
    return np.linspace(-1.0, -0.5, size, dtype=np.float32)


def source() -> _core.Scenario:
    return _core.Scenario.parse(SCENARIO, "rollouts.toml")


def rollouts(
    kind: str, credit: Credit = "sent", *, n: int = N, threads: int = 1, seed: int = SEED,
    first: int = 0,
) -> _core.Rollouts:  # fmt: skip
    return _core.Rollouts(
        source(), SETTINGS[kind], n=n, agents=AGENTS, learners=["learn*"], seed=seed,
        credit=credit, first=first, threads=threads,
    )  # fmt: skip


def as_batch(batch: object) -> Batch:
    assert isinstance(batch, dict)
    return batch


def bytes_of(batch: Batch) -> bytes:
    return b"".join(np.asarray(batch[name]).tobytes() for name in sorted(batch))


def rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & MASK


class Stream:
    """The random stream of an agent in an episode, as `rng.rs` describes it."""

    def __init__(self, seed: int) -> None:
        self.state = []
        for _ in range(4):
            seed, value = self.split_mix(seed)
            self.state.append(value)

    @staticmethod
    def split_mix(state: int) -> tuple[int, int]:
        """The next state, and a number of 64 bits."""
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return state, z ^ (z >> 31)

    @classmethod
    def derive(cls, seed: int, label: str, index: int) -> int:
        """The seed of a consumer."""
        state = seed ^ 0x9E3779B97F4A7C15
        for byte in label.encode():
            state = cls.split_mix(state ^ byte)[1]
        return cls.split_mix(state ^ ((index * 0xD1342543DE82EF95) & MASK))[1]

    def uniform(self) -> float:
        """In [0, 1)."""
        s = self.state
        out = (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
        return (out >> 11) / 2.0**53

    def normal(self) -> float:
        """Of mean 0 and variance 1."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(math.tau * self.uniform())


def drawn(kind: str, outputs: npt.NDArray[np.float32], stream: Stream) -> tuple[Any, float]:
    """An action and its log-probability."""
    wide = outputs.astype(np.float64)
    if kind == "choices":
        weights = np.exp(wide - wide.max())
        chosen = int(np.searchsorted(np.cumsum(weights), stream.uniform() * weights.sum(), "right"))
        return chosen, float(wide[chosen] - wide.max() - np.log(weights.sum()))
    log = log_std(kind).astype(np.float64)
    noise = np.array([stream.normal() for _ in log])
    logs = -0.5 * noise**2 - log - 0.5 * math.log(2.0 * math.pi)
    return (wide + np.exp(log) * noise).astype(np.float32), float(logs.sum())


def stepped(
    kind: str, credit: Credit, reward: str | rewards.Reward, files: dict[str, bytes], steps: int
) -> Rows:
    """The same trajectories step by step: what a learner in Python collects."""
    env = _core.Episodes(
        source(), SETTINGS[kind], n=N, agents=AGENTS, learners=["learn*"], seed=SEED, threads=1,
        truth=reward == "flagship",
    )  # fmt: skip
    env.reset()
    actor = _core.Policy.load(files)
    rewarder, open_decisions = Rewarder(reward, credit, env), OpenDecisions(env)
    rewarder.reset()
    begun = np.zeros(N, np.int64)
    streams: dict[tuple[int, int, int], Stream] = {}
    rows: Rows = defaultdict(list)
    for _ in range(steps):
        size = () if env.n_choices else (env.action_size,)
        actions = np.zeros((N, AGENTS, *size), np.int64 if env.n_choices else np.float32)
        log_probability = np.zeros((N, AGENTS), np.float32)
        for i, j in np.argwhere(env.due & ~env.over[:, None]):
            key = (int(i), int(begun[i]), int(j))
            if key not in streams:
                own = Stream.derive(SEED, "simulation", key[0])
                own = Stream.derive(own, "episode", key[1])
                streams[key] = Stream(Stream.derive(own, "action", key[2]))
            outputs = actor.outputs(env.observation[i, j])
            actions[i, j], log_probability[i, j] = drawn(kind, outputs, streams[key])
        open_decisions.open(env, actions, log_probability)
        env.step(actions if env.n_choices else np.clip(actions, -1.0, 1.0))
        done = open_decisions.close(env, rewarder.compute(), rewarder.reward_decision)
        begun += env.over
        for k in range(len(done)):
            rows[int(done.stream[k])].append(
                (done.place[k], done.observation[k], done.following[k], done.action[k],
                 done.log_probability[k], done.reward[k])
            )  # fmt: skip
    return rows


def rewarded(batch: Batch, reward: rewards.Reward) -> npt.NDArray[np.float64]:
    now = IntervalMetrics(batch["metrics"], batch["best"])
    return reward(now, IntervalMetrics(batch["before"], batch["best_before"]))


@pytest.mark.parametrize("credit", ["sent", "arrived"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_rollout_is_what_the_python_path_collects_from_the_same_actions(
    kind: str, credit: Credit
) -> None:
    reward, actor = rewards.orca, policy(kind)
    own = rollouts(kind, credit)
    batches = [own.collect(actor, log_std(kind), 351) for _ in range(2)]
    assert own.episodes >= 2 * N, "several episodes of each simulation"
    expected = stepped(kind, credit, reward, actor, 700)
    seen: dict[int, int] = defaultdict(int)
    for batch in batches:
        assert len(batch["stream"]) == 351
        values = rewarded(as_batch(batch), reward).astype(np.float32)
        for k, stream in enumerate(batch["stream"].tolist()):
            wanted = expected[stream][seen[stream]]
            seen[stream] += 1
            found = (batch["place"][k], batch["observation"][k], batch["following"][k],
                     batch["action"][k])  # fmt: skip
            for one, other in zip(found, wanted, strict=False):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(batch["log_probability"][k], wanted[4], rtol=0, atol=1e-6)
            assert values[k] == wanted[5]
    assert len(seen) == N * AGENTS


@pytest.mark.parametrize("kind", ["choices", "two values"])
def test_log_probabilities_are_those_of_the_learner(kind: str) -> None:
    pytest.importorskip("flax", reason="needs train: an extra")
    import jax.numpy as jnp

    from ackademy.learn import ppo

    actor = policy(kind)
    batch = rollouts(kind).collect(actor, log_std(kind), 300)
    outputs = np.stack([_core.Policy.load(actor).outputs(seen) for seen in batch["observation"]])
    found, _ = ppo._log_probability_and_entropy(
        jnp.asarray(outputs), jnp.asarray(log_std(kind)), jnp.asarray(batch["action"])
    )
    np.testing.assert_allclose(found, batch["log_probability"], rtol=0, atol=1e-5)


def test_actions_have_the_probabilities_that_are_told() -> None:
    actor = policy("choices")
    batch = rollouts("choices").collect(actor, log_std("choices"), 3000)
    outputs = np.stack(
        [_core.Policy.load(actor).outputs(seen) for seen in batch["observation"]]
    ).astype(np.float64)
    weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    expected = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    found = np.bincount(batch["action"], minlength=5) / len(outputs)
    np.testing.assert_allclose(found, expected, atol=4.0 * 0.5 / math.sqrt(len(outputs)))
    assert expected.min() < 0.6 * expected.max(), "the choices differ"


def test_values_are_normal_around_the_outputs() -> None:
    actor = policy("two values")
    batch = rollouts("two values").collect(actor, log_std("two values"), 3000)
    outputs = np.stack([_core.Policy.load(actor).outputs(seen) for seen in batch["observation"]])
    noise = (batch["action"] - outputs) / np.exp(log_std("two values"))
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=4.0 / math.sqrt(3000))
    np.testing.assert_allclose(noise.std(axis=0), 1.0, atol=4.0 / math.sqrt(6000))
    assert abs(float((noise[:, 0] * noise[:, 1]).mean())) < 4.0 / math.sqrt(3000)
    assert np.abs(batch["action"]).max() > 1.0, "what is learnt from is not clipped"


@pytest.mark.parametrize("kind", SETTINGS)
def test_equal_seeds_give_equal_bytes_with_any_number_of_threads(kind: str) -> None:
    def collected(threads: int, seed: int = SEED) -> list[bytes]:
        own = rollouts(kind, n=5, threads=threads, seed=seed)
        actors = [policy(kind, 0), policy(kind, 1)]
        return [bytes_of(as_batch(own.collect(actor, log_std(kind), 303))) for actor in actors]

    one = collected(1)
    assert collected(2) == one
    assert collected(0) == one
    assert collected(1, seed=8) != one


def test_a_simulation_does_the_same_among_others_and_alone() -> None:
    actor = policy("a value")
    among = rollouts("a value", n=3).collect(actor, log_std("a value"), 300)
    alone = rollouts("a value", n=1, first=1).collect(actor, log_std("a value"), 100)
    for name in ("observation", "action", "log_probability", "metrics", "place"):
        np.testing.assert_array_equal(among[name][100:200], alone[name])
    np.testing.assert_array_equal(among["stream"][100:200], alone["stream"] + AGENTS)


def test_batches_go_on_where_the_last_one_ended() -> None:
    actor = policy("a value")
    whole = rollouts("a value", n=1).collect(actor, log_std("a value"), 500)
    own = rollouts("a value", n=1)
    parts = [own.collect(actor, log_std("a value"), 125) for _ in range(4)]
    for name in ("observation", "following", "action", "metrics", "before", "stream", "place"):
        np.testing.assert_array_equal(whole[name], np.concatenate([part[name] for part in parts]))


def test_the_class_of_a_drawn_scenario_is_told_and_follows_the_progress() -> None:
    own = _core.Rollouts(
        _core.Distribution.parse(CLASSES + SLOW + FAST, "classes.toml"), SETTINGS["a value"],
        n=4, agents=1, learners=["learner"], seed=1, threads=1,
    )  # fmt: skip
    actor = policy("a value")
    assert set(own.collect(actor, log_std("a value"), 100)["class_index"].tolist()) == {0}
    own.progress = 1.0
    later = own.collect(actor, log_std("a value"), 400)
    assert own.progress == 1.0
    # The episodes that had begun are of the first class.
    assert set(later["class_index"].tolist()) == {0, 1}
    assert set(own.collect(actor, log_std("a value"), 100)["class_index"].tolist()) == {1}
    fast = later["metrics"][later["class_index"] == 1, 4].mean()
    assert fast > later["metrics"][later["class_index"] == 0, 4].mean()


def test_a_batch_ends_early_after_as_many_episodes_of_a_simulation() -> None:
    own = rollouts("a value")
    batch = own.collect(policy("a value"), log_std("a value"), 100_000, episodes=2)
    assert own.episodes == 2 * N
    assert 0 < len(batch["stream"]) < own.decisions < 100_000


def with_truth(
    learner: str, agents: int, *, truth: bool = False, reward: str | None = None
) -> Batch:
    own = _core.Rollouts(
        source(), RATE, n=2, agents=agents, learners=[learner], seed=SEED, threads=1,
        truth=truth, reward=reward,
    )  # fmt: skip
    return as_batch(own.collect(policy("a value"), log_std("a value"), 200))


def flagship(batch: Batch) -> npt.NDArray[np.float64]:
    """A flow's own reward by its formula, from the rows."""
    truth = dict(zip(critic.TRUTH, batch["rewarded_truth"].T, strict=True))
    now, before = IntervalMetrics(batch["metrics"]), IntervalMetrics(batch["before"])
    share = now.throughput_mbps / truth["fair_mbps"]
    log = 0.5 * (1.0 + np.log(np.maximum(share, 0.02)) / -math.log(0.02))
    worth = np.where(share > 1.0, 2.0 - share, 0.5 * share + log)
    beside = truth["loss_based_flows"] > 0
    queue = np.where(beside, truth["own_queue_ms"], truth["queue_ms"])
    weight = np.where(beside, 0.1, 0.5)
    delay = weight * np.log(1.0 + queue / np.maximum(truth["base_rtt_ms"], 10.0))
    loss = 5.0 * np.minimum(truth["congestion_loss"], 0.2)
    change = np.abs(np.log(now.throughput_mbps / before.throughput_mbps))
    settled = truth["intervals_since_event"] >= 10
    waver = np.where(settled, 0.05 * np.minimum(change, 1.0), 0.0)
    own: npt.NDArray[np.float64] = np.clip(worth - delay - loss - waver, -1.0, 1.0)
    return own


def test_the_reward_flagship_follows_from_the_truth_of_the_rewarded_interval() -> None:
    batch = with_truth("learner_that_leaves", 1, truth=True, reward="flagship")
    first = batch["rewarded_truth"][:, 0] == 0
    expected = np.where(first, 0.0, flagship(batch))
    np.testing.assert_allclose(batch["reward"], expected, rtol=0, atol=1e-12)
    assert 0 < first.sum() < 20, "the first interval of each flow is unrewarded"
    assert batch["reward"].min() < batch["reward"].max() - 0.3, "rewards differ"


@pytest.mark.parametrize("credit", ["sent", "arrived"])
def test_the_reward_flagship_is_that_of_the_python_path(credit: Credit) -> None:
    own = _core.Rollouts(
        source(), RATE, n=N, agents=AGENTS, learners=["learn*"], seed=SEED, credit=credit,
        reward="flagship", threads=1,
    )  # fmt: skip
    batch = as_batch(own.collect(policy("a value"), log_std("a value"), 500))
    expected = stepped("a value", credit, "flagship", policy("a value"), 500)
    seen: dict[int, int] = defaultdict(int)
    wanted = []
    for stream in batch["stream"].tolist():
        wanted.append(expected[stream][seen[stream]])
        seen[stream] += 1
    np.testing.assert_array_equal(batch["place"], [row[0] for row in wanted])
    np.testing.assert_allclose(batch["reward"], [row[5] for row in wanted], rtol=0, atol=1e-6)
    assert batch["reward"].std() > 0.1


def test_truth_is_of_the_moment_of_the_decision_and_of_the_next() -> None:
    batch = with_truth("learner_that_leaves", 1, truth=True)
    goes_on = (np.diff(batch["place"]) == 1) & (np.diff(batch["stream"]) == 0)
    assert goes_on.sum() > 100
    following, truth = batch["following_truth"][:-1][goes_on], batch["truth"][1:][goes_on]
    np.testing.assert_array_equal(following, truth)
    assert batch["reward"] is None
    # The interval that ended with a decision is that of the decision before.
    interval = batch["truth"][:, critic.COLUMNS.index("interval")]
    assert set(np.diff(interval)[goes_on].tolist()) == {1.0}
    without = with_truth("learner_that_leaves", 1)
    assert [without[name].shape[1] for name in ("truth", "following_truth")] == [0, 0]
    np.testing.assert_array_equal(without["observation"], batch["observation"])


Change: TypeAlias = Callable[[_core.Rollouts], object]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda own: own.collect(policy("choices"), log_std("a value"), 9),
         r"policy: allowed is one with the tables of `agent_settings`"),
        (lambda own: own.collect(policy("a value"), log_std("two values"), 9),
         r"log_std = \[-1.0, -0.5\]: allowed are 1 finite numbers"),
        (lambda own: own.collect(policy("a value"), np.array([np.nan], np.float32), 9),
         r"log_std = \[NaN\]: allowed are 1 finite numbers"),
        (lambda own: own.collect(policy("a value"), log_std("a value"), 0),
         r"decisions = 0: allowed is a whole number in \[1, 16777216\]"),
        (lambda own: setattr(own, "progress", 2.0), r"progress = 2: allowed is a number in"),
        (lambda own: rollouts("a value", cast("Credit", "later")),
         r'credit = "later": allowed is sent, arrived'),
        (lambda own: rollouts("a value", n=0), r"n = 0: allowed is a whole number in \[1, 65536\]"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_one_line(call: Change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(rollouts("a value"))
