"""Class `Episodes` of the binding: many simulations, one array each of what their agents see."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ackademy import _core

SCENARIO = """
duration_s = 6
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 8
queue = {{ kind = "drop_tail", packets = 30 }}
loss = {{ kind = "bernoulli", ratio = 0.001 }}
[[flow]]
name = "learner"
controller = "cubic"
count = {count}
start_spread_s = 0.5
[[flow]]
name = "rival"
controller = "new_reno"
"""
STEPS = """
[observation]
features = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
history = 16
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
"""
FACTOR = STEPS.replace("cwnd_steps", "cwnd_factor")
RATE_AND_CWND = STEPS.replace("cwnd_steps", "rate_and_cwnd")
KEEP = 2


def scenario(count: int = 1) -> _core.Scenario:
    return _core.Scenario.parse(SCENARIO.format(count=count), "episodes.toml")


def episodes(
    agent_settings: str = STEPS,
    *,
    n: int = 3,
    agents: int = 2,
    count: int = 2,
    learners: Sequence[str] = ("learn*",),
    seed: int = 7,
    first: int = 0,
    threads: int = 1,
) -> _core.Episodes:
    return _core.Episodes(
        scenario(count), agent_settings, n=n, agents=agents, learners=learners, seed=seed,
        first=first, threads=threads,
    )  # fmt: skip


def keep(own: _core.Episodes) -> npt.NDArray[np.int64]:
    return np.full(own.due.shape, KEEP)


def play(
    own: _core.Episodes, steps: int, answer: Callable[[_core.Episodes, int], npt.NDArray[Any]]
) -> list[bytes]:
    """Every array after every step, as bytes."""
    seen = []
    own.reset()
    for step in range(steps):
        seen.append(b"".join(array.tobytes() for array in [*arrays(own), own.time_s]))
        own.step(answer(own, step))
    return seen


def random_choices(own: _core.Episodes, step: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(step).integers(0, own.n_choices, own.due.shape)


def arrays(own: _core.Episodes) -> list[npt.NDArray[Any]]:
    """Those that are written in place."""
    return [
        own.observation, own.metrics, own.credit, own.credit_step, own.due, own.left, own.decision,
        own.over,
    ]  # fmt: skip


def test_arrays_have_the_shapes_of_the_agent_settings_and_stay_the_same_objects() -> None:
    own = episodes()
    assert (own.n_choices, own.action_size, own.n_features, own.history) == (5, 0, 5, 16)
    kept = arrays(own)
    own.reset()
    own.step(keep(own))
    now = arrays(own)
    assert all(one is two for one, two in zip(kept, now, strict=True))
    assert [array.shape for array in now] == [
        (3, 2, 16, 5), (3, 2, 17), (3, 2, 17), (3, 2), (3, 2), (3, 2), (3, 2), (3,),
    ]  # fmt: skip
    types = [np.float32, *[np.float64] * 2, np.int64, np.bool_, np.bool_, np.int64, np.bool_]
    assert [array.dtype for array in now] == types
    assert len(_core.interval_metrics()) == 17
    assert np.isfinite(own.metrics).all()


def test_every_running_simulation_awaits_an_answer_after_each_call() -> None:
    own = episodes(n=4)
    own.reset()
    for _ in range(200):
        assert (own.due.any(axis=1) != own.over).all()
        own.step(random_choices(own, 1))


def test_a_second_thread_is_refused_while_a_step_runs() -> None:
    own = episodes(n=64, threads=1)
    own.reset()
    stop, answers = threading.Event(), keep(own)

    def step() -> None:
        while not stop.is_set():
            own.step(answers)

    worker = threading.Thread(target=step)
    worker.start()
    try:
        with pytest.raises(RuntimeError, match="another thread"):
            deque((own.observation for _ in range(100_000)), maxlen=0)
    finally:
        stop.set()
        worker.join()
    assert own.observation.shape[0] == 64


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    alone = play(episodes(n=5, threads=1), 300, random_choices)
    assert play(episodes(n=5, threads=4), 300, random_choices) == alone
    assert play(episodes(n=5, threads=0), 300, random_choices) == alone
    assert play(episodes(n=5, seed=8), 300, random_choices) != alone


def test_simulations_from_a_number_on_are_those_of_that_number_among_all() -> None:
    whole, part = episodes(n=5), episodes(n=2, first=3)
    whole.reset()
    part.reset()
    for _ in range(300):
        for of_whole, of_part in zip(arrays(whole), arrays(part), strict=True):
            assert of_whole[3:].tobytes() == of_part.tobytes()
        whole.step(keep(whole))
        part.step(keep(part))
    assert whole.observation[0].tobytes() != part.observation[0].tobytes()


def test_a_simulation_does_the_same_whatever_runs_beside_it() -> None:
    many, one = episodes(n=4), episodes(n=1)
    many.reset()
    one.reset()
    for _ in range(100):
        assert (many.metrics[0] == one.metrics[0]).all()
        assert (many.observation[0] == one.observation[0]).all()
        many.step(keep(many))
        one.step(keep(one))


def test_an_episode_that_is_over_begins_anew_with_the_next_step() -> None:
    own = episodes(n=2, agents=1, count=1)
    own.reset()
    while not own.over.any():
        own.step(keep(own))
    ended = own.over.copy()
    assert not own.due[ended].any()
    assert (own.time_s[ended] == 6.0).all()
    assert (own.metrics[ended, 0, 0] == 6.0).all(), "told of what arrived up to the end"
    own.step(keep(own))
    assert not own.over[ended].any()
    assert own.due[ended].all()
    assert (own.decision[ended] == 0).all()
    assert (own.time_s[ended] < 2.0).all()


def test_episodes_follow_from_seed_place_and_number() -> None:
    own = episodes(n=2)
    own.reset()
    first = own.observation.copy()
    assert (first[0] != first[1]).any(), "the flows start at other times"
    own.reset()
    assert (own.observation != first).any(), "the next episodes"
    own.reset(seed=7)
    assert (own.observation == first).all()
    own.reset(seed=8)
    assert (own.observation != first).any()


def test_tables_are_those_of_the_episode_that_ended() -> None:
    own = episodes(n=1, agents=1, count=1)
    own.reset()
    with pytest.raises(ValueError, match="index = 0: no episode of it has ended yet"):
        own.tables(0)
    with pytest.raises(ValueError, match="index = 1: allowed is a whole number below 1"):
        own.tables(1)
    decisions = 0
    while not own.over[0]:
        decisions += int(own.due.sum())
        own.step(keep(own))
    tables = own.tables(0)
    assert set(tables) == set(_core.simulate(scenario(), 1)) - {"run"}
    flows = tables["flows"]
    assert list(flows["flow"]) == ["learner", "rival"]
    assert list(flows["controller"]) == ["agent", "new_reno"]
    assert np.sum(flows["sent_packets"]) == own.packets
    counters = dict(zip(tables["counters"]["name"], tables["counters"]["value"], strict=True))
    assert counters["decisions"] == decisions == own.decisions
    assert counters["fallbacks"] == 0


def test_every_decision_is_credited_once_and_in_order() -> None:
    own = episodes(n=1, agents=1, count=1)
    own.reset()
    told = []
    while not own.over[0]:
        own.step(keep(own))
        if own.credit_step[0, 0] >= 0:
            told.append(int(own.credit_step[0, 0]))
            assert own.credit_step[0, 0] < own.decision[0, 0]
    assert told == list(range(len(told)))
    assert len(told) > 0.8 * own.decisions


@pytest.mark.parametrize(
    ("agent_settings", "size", "value", "counter"),
    [
        (FACTOR, 1, np.nan, "not_finite"),
        (FACTOR, 1, 10.5, "out_of_range"),
        (RATE_AND_CWND, 2, np.inf, "not_finite"),
    ],
)
def test_nonsense_is_counted_and_the_flow_goes_on_without_its_agent(
    agent_settings: str, size: int, value: float, counter: str
) -> None:
    own = episodes(agent_settings, n=1, agents=1, count=1)
    assert (own.n_choices, own.action_size) == (0, size)
    own.reset()
    own.step(np.full((1, 1, size), value, np.float32))
    assert own.over[0], "nobody is asked any more"
    tables = own.tables(0)
    counters = dict(zip(tables["counters"]["name"], tables["counters"]["value"], strict=True))
    assert (counters[counter], counters["fallbacks"], counters["decisions"]) == (1, 1, 0)
    sent = np.asarray(tables["flows"]["sent_packets"])
    assert sent[0] > 500


def test_actions_of_another_shape_type_or_range_are_refused_and_change_nothing() -> None:
    own = episodes(n=1, agents=2)
    with pytest.raises(RuntimeError, match="step before reset"):
        own.step(keep(own))
    own.reset()
    before = own.time_s.copy()
    with pytest.raises(ValueError, match=r"actions of shape \[2, 2\]: allowed is int64 of shape"):
        own.step(np.zeros((2, 2), np.int64))
    with pytest.raises(TypeError, match="actions: allowed is an array of int64"):
        own.step(np.zeros((1, 2, 1), np.float32))
    agent = int(np.argmax(own.due[0]))
    wrong = keep(own)
    wrong[0, agent] = 5
    with pytest.raises(ValueError, match=rf"actions\[0, {agent}\] = 5: allowed is .* \[0, 4\]"):
        own.step(wrong)
    assert (own.time_s == before).all()
    ignored = np.full(own.due.shape, 99)
    ignored[own.due] = KEEP
    own.step(ignored)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, r"n = 0: allowed is a whole number in \[1, 65536\]"),
        ({"agents": 1}, "agents = 1: allowed is at least 2"),
        ({"n": 65536, "agents": 10000}, r"n = 65536 with agents = 10000: allowed are at most \d+"),
        ({"learners": ["nobody"]}, 'learners = .*: allowed are patterns .*: learner, rival'),
        ({"agent_settings": STEPS + "stepp = 1\n"}, "agent_settings: line 9: .*stepp"),
        (
            {"agent_settings": STEPS.replace("ack_gap", "gap")},
            r"agent_settings: line 3: observation.features\[4\]",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_on_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        episodes(**change)
    assert "\n" not in str(caught.value)


def test_a_call_that_cannot_write_its_arrays_is_refused_and_changes_nothing() -> None:
    own, other = episodes(), episodes()
    for each in (own, other):
        each.reset()
        each.step(keep(each))
    own.due.flags.writeable = False
    with pytest.raises(RuntimeError, match="an array of these episodes is held"):
        own.reset(seed=9)
    with pytest.raises(RuntimeError, match="an array of these episodes is held"):
        own.step(keep(own))
    own.due.flags.writeable = True
    for each in (own, other):
        each.step(keep(each))
    assert own.time_s.tolist() == other.time_s.tolist()
    assert own.decisions == other.decisions


FORKS = """
import os
import numpy as np
from ackademy import _core

source = _core.Scenario.parse({scenario!r}, "fork.toml")
own = _core.Episodes(source, {steps!r}, n=4, agents=2, learners=["learn*"], seed=7, threads=3)
own.reset()
child = os.fork()
if not child:
    status = 1
    try:
        own.step(np.full(own.due.shape, {keep}))
        del own
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_can_step_and_drop_episodes_of_several_threads() -> None:
    script = FORKS.format(scenario=SCENARIO.format(count=2), steps=STEPS, keep=KEEP)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_episode_that_failed_is_not_told_of_after_others_begin() -> None:
    """Both simulations of one seed draw more arrivals than agents, those of another do not."""
    poisson = 'traffic = {{ kind = "poisson", per_s = 1.0, mean_bytes = 1e6 }}'
    text = SCENARIO.replace("count = {count}", poisson).format()
    source = _core.Scenario.parse(text, "poisson.toml")

    def new() -> _core.Episodes:
        return _core.Episodes(source, STEPS, n=2, agents=6, learners=["learn*"], seed=0, threads=1)

    def begun(own: _core.Episodes, seed: int) -> bool:
        try:
            own.reset(seed)
        except ValueError:
            return False
        return True

    fits = [seed for seed in range(40) if begun(new(), seed)]
    fails = [seed for seed in range(40) if seed not in fits]
    assert fits
    assert len(fails) > 3
    for seed in fails:
        own = new()
        with pytest.raises(ValueError, match="agents = 6: allowed is at least 7"):
            own.reset(seed)
        own.reset(fits[0])


def test_a_source_of_another_type_is_refused() -> None:
    wrong: Any = "scenario.toml"
    with pytest.raises(TypeError, match="source of type str: allowed is a Scenario or a Distr"):
        _core.Episodes(wrong, STEPS, n=1, agents=1, learners=["*"], seed=1)


DISTRIBUTION = """
learners = ["learner"]
[[scenario]]
name = "slow"
weight = [[0.0, 1.0], [1.0, 0.0]]
[scenario.draw]
"dumbbell.bottleneck.rate_mbps" = { uniform = [2, 4] }
[scenario.inline]
duration_s = 5
[scenario.inline.dumbbell]
rtt_ms = 40
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 3
queue = { kind = "drop_tail", packets = 30 }
[[scenario.inline.flow]]
name = "learner"
controller = "cubic"
[[scenario]]
name = "fast"
weight = [[0.0, 0.0], [1.0, 1.0]]
[scenario.inline]
duration_s = 5
[scenario.inline.dumbbell]
rtt_ms = 40
[scenario.inline.dumbbell.bottleneck]
rate_mbps = 20
queue = { kind = "drop_tail", packets = 100 }
[[scenario.inline.flow]]
name = "learner"
controller = "cubic"
"""


def test_a_distribution_draws_each_episode_by_the_progress_of_training() -> None:
    source = _core.Distribution.parse(DISTRIBUTION, "curriculum.toml")
    own = _core.Episodes(source, STEPS, n=4, agents=1, learners=["learner"], seed=3, threads=2)
    sent = []
    for progress in (0.0, 1.0):
        own.progress = progress
        assert own.progress == progress
        own.reset()
        ended = np.zeros(4, bool)
        packets = []
        while not ended.all():
            for index in np.flatnonzero(own.over & ~ended):
                packets.append(int(np.sum(own.tables(int(index))["flows"]["sent_packets"])))
            ended |= own.over
            own.step(keep(own))
        sent.append(packets)
    assert max(sent[0]) < min(sent[1]), "the slow scenario first, then the fast one"
    assert len(set(sent[0])) == 4, "four rates were drawn"
    with pytest.raises(ValueError, match=r"progress = 1.5: allowed is a number in \[0, 1\]"):
        own.progress = 1.5


def test_features_are_listed_with_their_ranges() -> None:
    listed = _core.observation_features()
    names = [name for name, *_ in listed]
    assert names[:5] == ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
    assert all(about and scale and low < high for _, about, scale, low, high in listed)
    own = episodes()
    low, high = np.array([row[3:] for row in listed[:5]], np.float32).T
    own.reset()
    for step in range(100):
        assert ((own.observation >= low) & (own.observation <= high)).all()
        own.step(random_choices(own, step))
