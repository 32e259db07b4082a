"""`ackademy record`: flows are observed as learners would be, and Minari reads the file."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random

import numpy as np
import pytest

pytest.importorskip("h5py", reason="needs record: an extra")
pytest.importorskip("gymnasium", reason="needs record: an extra")

import h5py

from ackademy import _core
from ackademy.backends import schemes
from ackademy.envs.metrics import COLUMNS, TRUTH_COLUMNS, FloatArray
from ackademy.envs.rewarder import Rewarder
from ackademy.envs.rewards import REWARDS
from ackademy.errors import AckademyError, ControllerError
from ackademy.policies.policy_files import tables_text
from ackademy.runner.cases import Case
from ackademy.studies import record
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
SEED = 20261128
BITS = 2**64 - 1
FEATURES = [name for name, *_ in _core.observation_features() if not name.startswith("action_")]
POLICY = _core.Policy.open(ROOT / "data" / "policies" / "flagship")


def network(rng: Random, flows: int = 1) -> str:
    """A dumbbell at random, of which nothing else is random."""
    entries = "".join(f'[[flow]]\nname = "own{place}"\n' for place in range(flows))
    return f"""\
duration_s = {rng.uniform(3, 8)}
[dumbbell]
rtt_ms = {rng.uniform(5, 150)}
[dumbbell.bottleneck]
rate_mbps = {rng.uniform(1, 40)}
queue = {{ kind = "drop_tail", bdp = {rng.uniform(0.3, 3)} }}
{entries}"""


def settings(features: list[str], history: int) -> record.Settings:
    own = record.settings(",".join(features), "")
    observation = {"features": features, "history": history}
    return record.Settings({**own.tables, "observation": observation})


def recorded(
    text: str, scheme: str, own: record.Settings, reward: str, seed: int = 1
) -> list[record.Episode]:
    case = Case("network", text, "network.toml", flows=("*",), seed=seed)
    task = record.tasks([case], [schemes.one(scheme)])[0]
    return record.episodes(task, own, REWARDS[reward])


def mixed(value: int) -> int:
    """SplitMix64 of a state, as the core's `rng.rs` has it."""
    value = (value + 0x9E3779B97F4A7C15) & BITS
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & BITS
    return value ^ (value >> 31)


def episode_seed(seed: int) -> int:
    """Of the first episode of the first simulation of `Episodes`."""
    for label in ("simulation", "episode"):
        state = seed ^ 0x9E3779B97F4A7C15
        for letter in label.encode():
            state = mixed(state ^ letter)
        seed = mixed(state)
    return seed


class Reference:
    """Environments in which the flagship acts, and a learner observes what a test asks for."""

    def __init__(self, text: str, agents: int, own: record.Settings, reward: str) -> None:
        scenario = _core.Scenario.parse(text, "network")
        tables = {**tomllib.loads(POLICY.agent_settings), "observation": own.tables["observation"]}
        self.acting, self.seen = (
            _core.Episodes(
                scenario, words, n=1, agents=agents, learners=["*"], seed=1, truth=True,
                credit=False,
            )
            for words in (POLICY.agent_settings, tables_text(tables))
        )  # fmt: skip
        self.rewarder = Rewarder(REWARDS[reward], "arrived", self.seen)
        self.acting.reset(1)
        self.seen.reset(1)
        self.rewarder.reset()

    def step(self) -> FloatArray:
        """The rewards of the agents."""
        seen = self.acting.observation[0]
        actions = np.stack([POLICY.decide(one) for one in seen])[None].astype(np.float32)
        for episodes in (self.acting, self.seen):
            episodes.step(actions)
        rewards: FloatArray = self.rewarder.compute()[0]
        return rewards


def test_a_scheme_is_observed_as_a_learner_that_does_the_same() -> None:
    rng = Random(SEED)
    for _ in range(6):
        text, history = network(rng), rng.randrange(1, 9)
        features = rng.sample(FEATURES, len(FEATURES))
        reward = rng.choice(["aurora", "flagship", "drinc", "orca"])
        own = settings(features, history)
        found = recorded(text, "flagship", own, reward, episode_seed(1))[0]
        reference = Reference(text, 1, own, reward)
        for place in range(len(found.actions) + 1):
            seen, env = found.observations[place].copy(), reference.seen
            wanted = env.observation[0, 0].copy()
            if "cwnd_change" in features and place < history:  # the first is of no interval
                first, column = history - 1 - place, features.index("cwnd_change")
                seen[first, column] = wanted[first, column] = 0.0
            # A controller tells its window in whole bytes.
            np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=2e-4)
            np.testing.assert_allclose(found.metrics[place], env.metrics[0, 0], atol=1e-3)
            np.testing.assert_allclose(found.truth[place], env.truth[0, 0])
            if place < len(found.actions):
                np.testing.assert_allclose(found.rewards[place], reference.step()[0], atol=1e-9)
        assert env.over[0]


def test_the_share_of_a_team_is_that_of_environments() -> None:
    rng = Random(SEED + 1)
    text, own = network(rng, flows=3), settings(["srtt"], 1)
    found = recorded(text, "flagship", own, "flagship", episode_seed(1))
    reference = Reference(text, 3, own, "flagship")
    earned: list[list[float]] = [[], [], []]
    while not reference.seen.over[0]:
        rewards = reference.step()
        for place in range(3):
            if reference.rewarder.reward_decision[0, place] >= 0:
                earned[place].append(rewards[place])
    for episode, wanted in zip(found, earned, strict=True):
        np.testing.assert_allclose(episode.rewards, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("scheme", "apart"),
    [
        *((name, 0.0) for name in ("cubic", "new_reno", "vegas", "illinois", "westwood_plus")),
        *((name, 0.02) for name in ("bbr3", "copa", "vivace", "prague", "own_queue")),
    ],
)
def test_watching_leaves_a_scheme_alone(scheme: str, apart: float) -> None:
    """A paced sender that is woken for a decision may send a nanosecond earlier or later."""
    rng = Random(SEED + 2)
    for _ in range(3):
        scenario = _core.Scenario.parse(network(rng, flows=2), "network")
        scenario = scenario.with_controller(scheme, {})
        own = record.settings("drinc", "20ms")
        tables, seen = _core.watch(scenario, 1, own.text, watched=["own1"])
        plain = _core.simulate(scenario, 1)["flows"]
        assert len(seen) == 1
        assert len(seen[0]["metrics"]) > 10
        for name, column in plain.items():
            if apart == 0.0 and name != "controller":
                np.testing.assert_array_equal(tables["flows"][name], column, err_msg=name)
            elif name in ("sent_packets", "delivered_bytes"):
                watched = np.asarray(tables["flows"][name], np.float64)
                np.testing.assert_allclose(watched, np.asarray(column, np.float64), rtol=apart)


def test_an_action_is_what_the_scheme_did_to_its_window() -> None:
    rng = Random(SEED + 3)
    own = record.settings("cwnd,action_0", "")
    for scheme in ("cubic", "copa"):
        episode = recorded(network(rng), scheme, own, "aurora")[0]
        cwnd = episode.metrics[:, COLUMNS.index("cwnd_packets")]
        inside = np.abs(episode.actions[:, 0]) < 1.0
        after = cwnd[:-1] * 2.0 ** episode.actions[:, 0]
        np.testing.assert_allclose(after[inside], cwnd[1:][inside], rtol=1e-5)
        assert inside.mean() > 0.9
        assert np.abs(episode.actions).max() > 0.0
        np.testing.assert_array_equal(episode.observations[1:, -1, 1], episode.actions[:, 0])


def test_a_data_set_is_the_same_bytes_and_whole(tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(network(Random(SEED + 4)))
    words = ("cubic", "copa", "--on", "network.toml", "--runs", "3", "--reward", "aurora")
    digests = []
    for name, jobs in (("one-v0", "1"), ("two/one-v0", "2")):
        told = ackademy_command(
            "record", *words, "--jobs", jobs, "--out", f"sets/{name}", cwd=tmp_path
        )
        assert told[0] == 0, told
        folder = tmp_path / "sets" / name
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
        assert [path.name for path in files] == ["agent.toml", "main_data.hdf5", "metadata.json"]
    assert digests[0] == digests[1]
    with h5py.File(tmp_path / "sets" / "one-v0" / "data" / "main_data.hdf5") as file:
        assert len(file) == 6
        for group in file.values():
            steps = int(group.attrs["total_steps"])
            assert group["observations"].shape == (steps + 1, 64, 5)
            assert group["rewards"].shape == (steps,)
            assert group["truncations"][()].sum() == 1
            assert set(group["infos/truth"]) == set(TRUTH_COLUMNS)


def test_minari_reads_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari", reason="needs minari: a package")
    (tmp_path / "network.toml").write_text(network(Random(SEED + 5), flows=2))
    words = ("cubic", "--on", "network.toml", "--runs", "2", "--observation", "srtt,cwnd")
    told = ackademy_command("record", *words, "--out", "sets/mine-v0", cwd=tmp_path)
    assert told[0] == 0, told
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    assert list(minari.list_local_datasets()) == ["mine-v0"]
    found = minari.load_dataset("mine-v0")
    assert found.total_episodes == 4
    lengths = 0
    for episode in found.iterate_episodes():
        lengths += len(episode)
        assert all(found.observation_space.contains(one) for one in episode.observations)
        assert all(found.action_space.contains(one) for one in episode.actions)
        assert len(episode.infos["truth"]["fair_mbps"]) == len(episode.observations)
        assert len(episode.rewards) == len(episode.actions) == len(episode.observations) - 1
    assert lengths == found.total_steps > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--out", "mine"), "--out mine: allowed: a name that ends in -v and a number: mine-v0"),
        (("--observation", "cwnds"), "--observation 'cwnds': allowed: "),
        (("--observation", "cwnd_change,srtt,srtt2"), "--observation 'srtt2': allowed: "),
        (("--every", "7"), "--every '7': allowed: srtt, min_rtt, or a time as in 20ms"),
        (("--every", "0ms"), "--observation drinc: "),
        (("--reward", "none"), "reward = 'none': "),
        (("--flows", "nobody"), "flow 'nobody': allowed: own0"),
        (("--on", "nowhere"), "nowhere"),
    ],
)
def test_bad_words_are_one_line_and_leave_nothing(
    words: tuple[str, str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "network.toml").write_text(network(Random(SEED)))
    given = {"--on": "network.toml", "--out": "sets/mine-v0"} | {words[0]: words[1]}
    flat = [word for pair in given.items() for word in pair]
    status, out, errors = ackademy_command("record", "cubic", *flat, cwd=tmp_path)
    assert (status, out, errors.count("\n")) == (2, "", 1), errors
    assert told in errors
    assert not list(tmp_path.rglob("*-v0*"))


def test_a_scheme_of_a_whole_host_is_refused() -> None:
    case = Case("network", network(Random(SEED)), "network.toml")
    with pytest.raises(ControllerError, match="record drl_cc: allowed: schemes of which each"):
        record.tasks([case], [schemes.one("drl_cc")])


def test_a_set_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine-v0").mkdir()
    with pytest.raises(AckademyError, match="it is there; allowed: a new folder"):
        record.check_name(tmp_path / "mine-v0")


def test_a_failed_recording_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "network.toml").write_text(network(Random(SEED)))
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def __init__(self, flow):\n        self.cwnd_bytes = 30000\n"
        "    def on_ack(self, ack):\n        raise RuntimeError('late')\n"
        "    def on_loss(self, loss):\n        pass\n"
    )
    words = ("cubic", "mine.py:Mine", "--on", "network.toml", "--runs", "2")
    status, _, errors = ackademy_command("record", *words, "--out", "sets/x-v0", cwd=tmp_path)
    assert status == 2, errors
    assert "late" in errors
    assert not list((tmp_path / "sets").iterdir())


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    text = network(Random(SEED)).replace("duration_s = ", "duration_s = 10", 1)
    (tmp_path / "network.toml").write_text(text)
    words = ["cubic", "--on", "network.toml", "--runs", "500", "--out", "sets/x-v0"]
    program = [sys.executable, "-c", "from ackademy.cli import main; main()", "record", *words]
    with subprocess.Popen(
        program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("recording: 1 of 500")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: nothing is kept" in errors
    assert not list((tmp_path / "sets").iterdir())


def test_without_the_extra_a_line_names_it(tmp_path: Path) -> None:
    (tmp_path / "h5py.py").write_text("raise ImportError('No module named h5py')\n")
    status, _, errors = ackademy_command("record", "cubic", "--on", "mixed", cwd=tmp_path)
    assert status == 2
    assert errors.count("\n") == 1
    assert "record needs the extra record: " in errors
