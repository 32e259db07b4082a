"""`ackademy/Flow-v0`, alone and as a vector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import ackademy.envs
from ackademy import _core
from ackademy.envs import agent_settings
from ackademy.envs.flow import Flow, VectorFlow
from ackademy.envs.metrics import COLUMNS, FloatArray, IntervalMetrics
from ackademy.errors import AckademyError, ScenarioError, TrainingError

gymnasium.register_envs(ackademy.envs)

DISTRIBUTIONS = Path(__file__).parents[1] / "data/distributions"
KEEP = 2

SHORT = """\
# A learner beside CUBIC for three seconds.
duration_s = 3
[dumbbell]
rtt_ms = 20
[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", packets = 20 }
loss = { kind = "bernoulli", ratio = 0.002 }
[[flow]]
name = "learner"
[[flow]]
name = "neighbour"
controller = "cubic"
start_spread_s = 0.2
"""


def test_gymnasium_imports_the_module_that_the_name_begins_with() -> None:
    code = "import gymnasium; gymnasium.make('ackademy.envs:ackademy/Flow-v0').reset(seed=1)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def flow(**settings: Any) -> Flow:  # noqa: ANN401
    return Flow(**{"scenario": SHORT, "learner": "learner"} | settings)


def steps(
    env: Flow, actions: npt.NDArray[Any], seed: int | None = 1
) -> tuple[list[npt.NDArray[np.float32]], list[float], list[dict[str, Any]]]:
    """An episode under these actions in turn, to its end."""
    observation, info = env.reset(seed=seed)
    observations, rewards, infos = [observation], [], [info]
    truncated, number = False, 0
    while not truncated:
        action = actions[number % len(actions)]
        observation, reward, terminated, truncated, info = env.step(action)
        assert not terminated
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
        number += 1
    return observations, rewards, infos


# ------------------------------------------------------------------------------------ spaces


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"agent_settings": "aurora", "reward": "aurora", "render_mode": "ansi"},
        {"flat": True, "credit": "sent", "reward": "orca"},
        {"scenario": DISTRIBUTIONS / "pcc_rl.toml", "agent_settings": "aurora"},
    ],
)
def test_gymnasiums_checker_passes_without_a_warning(settings: dict[str, Any]) -> None:
    check_env(gymnasium.make("ackademy/Flow-v0", **settings).unwrapped)


def test_spaces_follow_the_agent_settings() -> None:
    steps_env = flow()
    assert steps_env.observation_space.shape == (64, 5)
    assert isinstance(steps_env.action_space, spaces.Discrete)
    assert steps_env.action_space.n == 5
    rates = flow(agent_settings="aurora", flat=True)
    assert rates.observation_space.shape == (30,)
    assert rates.action_space == spaces.Box(-1.0, 1.0, (1,), np.float32)


def test_ranges_are_those_of_the_features_in_their_order() -> None:
    ranges = {name: (low, high) for name, _, _, low, high in _core.observation_features()}
    space = flow().observation_space
    assert isinstance(space, spaces.Box)
    names = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
    assert [tuple(pair) for pair in zip(space.low[-1], space.high[-1], strict=True)] == [
        ranges[name] for name in names
    ]
    flat = flow(flat=True).observation_space
    assert isinstance(flat, spaces.Box)
    assert np.array_equal(flat.low, space.low.ravel())
    assert np.array_equal(flat.high, space.high.ravel())


@pytest.mark.parametrize("name", agent_settings.NAMED)
def test_all_named_agent_settings_are_valid(name: str) -> None:
    env = flow(agent_settings=name)
    observations, rewards, _ = steps(env, np.array([env.action_space.sample()]))
    assert all(observation in env.observation_space for observation in observations)
    assert len(rewards) > 20


# --------------------------------------------------------------------------------- episodes


def test_an_episode_repeats_with_its_seed_and_differs_with_another() -> None:
    env = flow()
    actions = np.array([0, 4, 3, 2])
    first, again, other = (steps(env, actions, seed) for seed in (7, 7, 8))
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert first[2] == again[2]
    assert first[1] != other[1]


def test_resets_without_a_seed_go_on_in_the_seeds_sequence() -> None:
    env = flow()
    actions = np.array([2])
    runs = [steps(env, actions, seed)[1] for seed in (7, None, None, 7, None)]
    assert runs[1] == runs[4]
    assert runs[0] == runs[3]
    assert runs[0] != runs[1] != runs[2]


def test_an_episode_is_cut_at_the_scenarios_end_and_must_be_reset() -> None:
    env = flow()
    with pytest.raises(ResetNeeded):
        env.step(KEEP)
    _, _, infos = steps(env, np.array([KEEP]))
    assert infos[-1]["metrics"]["time_s"] == pytest.approx(3.0)
    with pytest.raises(ResetNeeded):
        env.step(KEEP)


def test_a_learner_that_never_decides_has_an_episode_without_a_step() -> None:
    late = SHORT.replace('name = "learner"', 'name = "learner"\nstart_s = 2.99')
    env = flow(scenario=late)
    _, info = env.reset(seed=1)
    _, reward, terminated, truncated, _ = env.step(KEEP)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["credit"] == -1


def test_a_flow_that_has_sent_everything_ends_the_episode_with_the_scenario() -> None:
    little = SHORT.replace(
        'name = "learner"', 'name = "learner"\ntraffic = { kind = "fixed", bytes = 300000 }'
    )
    _, rewards, infos = steps(flow(scenario=little, reward="drl_cc"), np.array([KEEP]))
    acked = sum(info["metrics"]["acked_packets"] for info in infos)
    assert acked == pytest.approx(300000 / 1460, rel=0.05)
    assert infos[-1]["metrics"]["time_s"] < 3.0
    assert len(rewards) == len(infos) - 1


def test_actions_move_the_window() -> None:
    env = flow(reward="learningcc")
    low, high = (
        np.mean([info["metrics"]["cwnd_packets"] for info in steps(env, np.array([action]))[2]])
        for action in (0, 4)
    )
    assert low < 4.0
    assert high > 3 * low


def test_an_action_that_is_no_number_hands_the_flow_over_for_good() -> None:
    env = flow(agent_settings="aurora")
    env.reset(seed=1)
    _, _, _, truncated, _ = env.step(np.array([np.nan], np.float32))
    assert truncated, "CUBIC decides nothing: the next stop is the end"


def test_measures_are_consistent_with_each_other() -> None:
    _, _, infos = steps(flow(), np.array([4, 0, 3]))
    for info in infos[1:-1]:
        of = info["metrics"]
        assert list(of) == list(COLUMNS)
        assert of["rtt_min_ms"] <= of["rtt_mean_ms"]
        assert of["flow_min_rtt_ms"] <= of["rtt_min_ms"] or of["rtt_min_ms"] == 0.0
        bits = of["acked_packets"] * 1500 * 8
        assert bits == pytest.approx(of["throughput_mbps"] * 1e6 * of["duration_s"], abs=1.0)
    times = [info["metrics"]["time_s"] for info in infos]
    assert times == sorted(times)


def test_decisions_are_numbered_and_credited_in_order() -> None:
    _, _, arrived = steps(flow(), np.array([KEEP]))
    assert [info["credit"] for info in arrived[1:-1]] == list(range(len(arrived) - 2))
    assert [info["decision"] for info in arrived[:-1]] == list(range(len(arrived) - 1))
    _, rewards, sent = steps(flow(credit="sent"), np.array([KEEP]))
    credited = [info["credit"] for info in sent if info["credit"] >= 0]
    assert credited == sorted(set(credited))
    assert len(credited) > 0.9 * len(sent)
    lags = [info["decision"] - info["credit"] for info in sent if info["credit"] >= 0]
    assert min(lags) >= 2, "an interval's packets are acknowledged in the interval after it"
    unpaid = [reward for reward, info in zip(rewards, sent[1:], strict=True) if info["credit"] < 0]
    assert unpaid
    assert not any(unpaid)


def test_a_reward_of_ones_own_is_given() -> None:
    def acked(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
        return metrics.acked_packets

    _, rewards, infos = steps(flow(reward=acked), np.array([KEEP]))
    assert rewards == [info["metrics"]["acked_packets"] for info in infos[1:]]


def test_rendering_says_where_the_flow_is() -> None:
    env = gymnasium.make("ackademy/Flow-v0", scenario=SHORT, learner="learner", render_mode="ansi")
    env.reset(seed=1)
    *_, info = env.step(KEEP)
    line: object = env.render()
    assert isinstance(line, str)
    assert f"{info['metrics']['throughput_mbps']:.3f} Mb/s" in line
    assert flow().render() is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"agent_settings": "drinks"},
            TrainingError,
            "agent_settings = 'drinks': no such file; allowed: astraea, aurora, dr",
        ),
        ({"agent_settings": "[observation]\nx = 1\n"}, TrainingError, "agent_settings: line "),
        ({"reward": "drinks"}, TrainingError, "reward = 'drinks': similar: drinc; allowed: aurora"),
        ({"learner": None}, TrainingError, "learner is not given; allowed: .* learner, neighbour"),
        ({"learner": "nobody"}, TrainingError, "nobody.*: learner, neighbour"),
        ({"learner": "*"}, TrainingError, "2 flows learn: allowed: one"),
        ({"credit": "late"}, TrainingError, "credit = 'late': allowed: arrived, sent"),
        ({"render_mode": "human"}, TrainingError, "render_mode = 'human': allowed: 'ansi'"),
        ({"scenario": "nowhere.toml"}, ScenarioError, "nowhere.toml: No such file"),
        ({"scenario": "x = 1\n"}, ScenarioError, "^scenario"),
    ],
)
def test_what_is_wrong_is_one_line(
    settings: dict[str, Any], error: type[AckademyError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        flow(**settings)
    assert "\n" not in str(caught.value)


# ----------------------------------------------------------------------------------- vector


def vector(n: int = 4, **settings: Any) -> VectorFlow:  # noqa: ANN401
    return VectorFlow(n, **{"scenario": SHORT, "learner": "learner"} | settings)


def rollout(env: VectorFlow, n_steps: int) -> list[tuple[npt.NDArray[Any], ...]]:
    """Observations, rewards, ends and throughputs under random actions."""
    observation, _ = env.reset(seed=5)
    env.action_space.seed(5)
    rows: list[tuple[npt.NDArray[Any], ...]] = [(observation,)]
    for _ in range(n_steps):
        observation, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
        assert not terminated.any()
        rows.append((observation, rewards, truncated, infos["metrics"]["throughput_mbps"]))
    return rows


def test_both_ways_of_making_it_work() -> None:
    single = gymnasium.make("ackademy/Flow-v0", scenario=SHORT, learner="learner")
    assert single.spec is not None
    for mode in (None, "vector_entry_point"):
        env = gymnasium.make_vec(
            "ackademy/Flow-v0",
            num_envs=3,
            vectorization_mode=mode,
            scenario=SHORT,
            learner="learner",
        )
        assert isinstance(env, VectorFlow)
        assert env.num_envs == 3
        assert env.observation_space.shape == (3, 64, 5)
        assert env.single_observation_space == single.observation_space
        observation, _ = env.reset(seed=1)
        assert observation in env.observation_space


def test_threads_change_nothing() -> None:
    one, two = (rollout(vector(5, threads=threads), 400) for threads in (1, 2))
    assert any(row[2].any() for row in one[1:]), "episodes end within these steps"
    for row, other in zip(one, two, strict=True):
        for array, same in zip(row, other, strict=True):
            assert np.array_equal(array, same)


def test_an_environment_is_the_same_in_a_vector_of_any_size() -> None:
    few, many = vector(2), vector(6)
    few.reset(seed=3)
    many.reset(seed=3)
    for _ in range(50):
        _, rewards, _, _, _ = few.step(np.full(2, KEEP))
        _, same, _, _, _ = many.step(np.full(6, KEEP))
        assert np.array_equal(rewards, same[:2])
    assert len(set(same.tolist())) > 1, "episodes differ among each other"


def test_a_vector_of_one_is_the_single_environment() -> None:
    single, one = flow(reward="orca"), vector(1, reward="orca")
    observation, _ = single.reset(seed=9)
    observations, _ = one.reset(seed=9)
    for number in range(150):
        assert np.array_equal(observation, observations[0])
        action = number % 5
        observation, reward, _, truncated, info = single.step(action)
        observations, rewards, _, ends, infos = one.step(np.array([action]))
        assert (reward, truncated) == (rewards[0], ends[0])
        assert info["metrics"] == {name: of[0] for name, of in infos["metrics"].items()}
        assert (info["decision"], info["credit"]) == (infos["decision"][0], infos["credit"][0])
        if truncated:
            break
    else:
        pytest.fail("no episode has ended")


def test_an_episode_that_is_over_begins_anew_with_the_next_step() -> None:
    env = vector(1)
    env.reset(seed=2)
    truncated = np.zeros(1, np.bool_)
    while not truncated[0]:
        _, _, _, truncated, infos = env.step(np.array([KEEP]))
    assert infos["metrics"]["time_s"][0] == pytest.approx(3.0)
    observation, rewards, _, truncated, infos = env.step(np.array([4]))
    assert rewards[0] == 0.0
    assert not truncated[0]
    assert infos["credit"][0] == -1
    assert infos["metrics"]["time_s"][0] < 1.0
    assert not observation[0, 0].any(), "the history begins with zeros"


def test_copies_stay_and_views_are_written_over() -> None:
    for copies in (True, False):
        env = vector(2, copy=copies)
        observation, infos = env.reset(seed=1)
        metrics = infos["metrics"]["time_s"]
        kept, kept_metrics = observation.copy(), metrics.copy()
        following, *_ = env.step(np.full(2, KEEP))
        assert np.array_equal(observation, kept) == copies
        assert np.array_equal(metrics, kept_metrics) == copies
        assert np.shares_memory(following, env.episodes.observation) != copies


def test_gymnasiums_vector_wrappers_work() -> None:
    env = DictInfoToList(RecordEpisodeStatistics(vector(3)))
    env.reset(seed=1)
    lengths: list[int] = []
    for _ in range(400):
        _, _, _, truncated, infos = env.step(np.full(3, KEEP))
        assert infos[0]["metrics"]["time_s"] >= 0.0
        lengths += [int(info["episode"]["l"]) for info in infos if "episode" in info]
        assert truncated.sum() == sum("episode" in info for info in infos)
    assert lengths


def test_episodes_of_a_distribution_differ_in_their_links() -> None:
    env = VectorFlow(16, DISTRIBUTIONS / "pcc_rl.toml", agent_settings="aurora", reward="aurora")
    _, infos = env.reset(seed=1)
    least = infos["metrics"]["flow_min_rtt_ms"]
    assert least.min() >= 100.0
    assert np.ptp(least) > 100.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "num_envs = 0: allowed: a whole number from 1"),
        ({"render_mode": "ansi"}, "render_mode = 'ansi': allowed: none"),
        ({"threads": -1}, "threads"),
    ],
)
def test_what_is_wrong_with_a_vector_is_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((TrainingError, OverflowError), match=message):
        vector(**settings)


SHARED_LATER = """
learners = ["learner"]
[[scenario]]
name = "alone"
weight = [[0, 1], [1, 0]]
[scenario.inline]
duration_s = 2
dumbbell = { rtt_ms = 20, bottleneck = LINK }
flow = [{ name = "learner" }]
[[scenario]]
name = "shared"
weight = [[0, 0], [0.5, 1], [1, 1]]
[scenario.inline]
duration_s = 2
dumbbell = { rtt_ms = 20, bottleneck = LINK }
flow = [{ name = "learner", count = 2 }, { name = "other" }]
[scenario.draw]
"flow.0.count" = { integer = [1, 3] }
""".replace("LINK", '{ rate_mbps = 4, queue = { kind = "drop_tail", packets = 20 } }')


@pytest.mark.parametrize("make", [Flow, lambda **more: VectorFlow(4, **more)])
def test_a_distribution_in_which_several_flows_may_learn_is_refused(
    make: Callable[..., Flow | VectorFlow],
) -> None:
    always = SHARED_LATER.replace("[[0, 0], [0.5, 1], [1, 1]]", "1")
    said = r"up to 3 flows learn: allowed: one; SharedFlows\(agents=3\) takes several"
    with pytest.raises(TrainingError, match=said):
        make(scenario=always)
    env = make(scenario=SHARED_LATER)
    env.reset(seed=1)
    said = "up to 3 flows learn at progress 0.6: allowed: one"
    with pytest.raises(TrainingError, match=said):
        env.reset(options={"progress": 0.6})
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(4, np.int64))


def test_several_learning_flows_that_only_the_draw_shows_are_one_line() -> None:
    always = SHARED_LATER.replace("[[0, 0], [0.5, 1], [1, 1]]", "1")
    env = VectorFlow(8, scenario=always, learner="learn*")
    said = r"[23] flows learn: allowed: one; SharedFlows\(agents=[23]\) takes several"
    with pytest.raises(TrainingError, match=said):
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("settings", "action", "said"),
    [
        ("drinc", 1.5, "action = 1.5: allowed: whole numbers"),
        ("drinc", float("nan"), "action = nan: allowed: whole numbers"),
        ("drinc", None, "action = None: allowed: whole numbers"),
        ("drinc", "2", "action = '2': allowed: whole numbers"),
        ("drinc", np.array([1, 2]), r"actions of shape \(2,\): allowed: \(1,\)"),
        ("aurora", None, "action = None: allowed: numbers"),
        ("aurora", np.zeros(2), r"actions of shape \(2,\): allowed: \(1, 1\)"),
    ],
)
def test_what_is_no_action_is_refused_on_one_line(settings: str, action: object, said: str) -> None:
    for env in (Flow(agent_settings=settings), VectorFlow(1, agent_settings=settings)):
        env.reset(seed=1)
        with pytest.raises(TrainingError, match=said):
            env.step(action)  # type: ignore[arg-type]


def test_a_vector_has_to_be_reset_before_its_first_step() -> None:
    with pytest.raises(ResetNeeded):
        VectorFlow(2).step(np.zeros(2, np.int64))


def test_a_choice_that_does_not_exist_is_refused() -> None:
    env = vector(2)
    env.reset(seed=1)
    with pytest.raises(TrainingError, match=r"actions\[1, 0\] = 5: allowed is a whole number in"):
        env.step(np.array([0, 5]))


def test_the_default_episode_is_the_same_for_every_seed_as_the_docs_say() -> None:
    env = gymnasium.make("ackademy/Flow-v0", agent_settings="drinc")
    episodes = []
    for seed in (1, 2**40):
        seen = [env.reset(seed=seed)[0]]
        seen += [env.step(2)[0] for _ in range(50)]
        episodes.append(np.stack(seen))
    assert np.array_equal(episodes[0], episodes[1])
    docs = Path(__file__).parents[1] / "docs" / "reference" / "envs.md"
    assert "every seed gives the same episode" in docs.read_text()
    assert "the same for every seed" in " ".join((Flow.__doc__ or "").split())
