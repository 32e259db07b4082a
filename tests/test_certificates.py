"""Certificates: bounds hold, proofs and counterexamples exclude each other, known policies."""

from __future__ import annotations

import itertools
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ackademy import _core
from ackademy.cli import app
from ackademy.policies import certificates
from ackademy.policies.bounds import ACTIVATIONS, F64, Dense, DenseNetwork
from ackademy.policies.certificates import PROPERTIES, Box, Scales, States, Verdict, verdict_of
from ackademy.studies import certify

FEATURES = (
    "queue",
    "rtt_rise",
    "rtt_spread",
    "loss_log",
    "ce_ratio",
    "drain",
    "rtt_change",
    "base_rtt",
    "base_age",
    "own_best",
    "app_limited",
    "since_loss",
    "action_0",
    "action_1",
)
HISTORY = 8
FLAGSHIP = Path(__file__).parents[1] / "data/policies/flagship"
STEPS = Path(__file__).parents[1] / "crates/core/tests/files/own_queue_steps.txt"
"""steps of the law itself: `the_stored_steps_are_those_of_the_law` writes and checks them"""
SCALES = Scales.of(FEATURES)


def drawn_network(seed: int, size: float = 1.0) -> DenseNetwork:
    """A network of two hidden layers with drawn weights."""
    rng = np.random.default_rng(seed)
    sizes = (HISTORY * len(FEATURES), 16, 16, 2)
    layers = [
        Dense(
            size * rng.normal(size=(before, after)) / math.sqrt(before),
            0.1 * rng.normal(size=after),
            ACTIVATIONS["tanh"],
        )
        for before, after in itertools.pairwise(sizes)
    ]
    return DenseNetwork(tuple(layers))


def always(u1: float, u2: float) -> DenseNetwork:
    """A network that answers the same to everything."""
    kernel = np.zeros((HISTORY * len(FEATURES), 2))
    return DenseNetwork((Dense(kernel, np.array([u1, u2]), ACTIVATIONS["linear"]),))


def drawn_states(seed: int, count: int = 40) -> States:
    """States within the ranges of the features."""
    rng = np.random.default_rng(seed)
    share = rng.random((count, HISTORY, len(FEATURES)))
    window = np.exp(rng.uniform(math.log(4), math.log(2000), count))
    return States(
        SCALES.low + share * (SCALES.high - SCALES.low),
        window,
        rng.uniform(0.9, 1.1, count) * window,
        rng.uniform(0.5, 1.0, count) * window,
        window / rng.uniform(0.005, 0.3, count),
    )


def verdict(name: str, network: DenseNetwork, states: States) -> Verdict:
    (wanted,) = (own for own in PROPERTIES if own.name == name)
    found = verdict_of(wanted, network, states, SCALES, 7)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(5))
def test_no_answer_to_a_point_of_a_box_is_outside_of_the_bounds(seed: int) -> None:
    network, states = drawn_network(seed, 2.0), drawn_states(seed)
    rng = np.random.default_rng(seed)
    radius = rng.random(states.observation.shape) * 0.2
    box = Box(states.observation - radius, states.observation + radius)
    low, high = network.bounds(box.low, box.high)
    for _ in range(200):
        answers = network.answers(box.drawn(rng))
        assert (low <= answers).all()
        assert (answers <= high).all()
    assert (high - low < 2.0).any(), "bounds that say nothing"


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_is_proved_has_a_counterexample(seed: int) -> None:
    network, states = drawn_network(seed, 0.3), drawn_states(seed)
    for wanted in PROPERTIES:
        found = verdict_of(wanted, network, states, SCALES, seed)
        assert found is not None
        if found.states:
            assert found.certified + found.refuted <= 1.0 + 1e-12
            assert found.certified <= found.coverage + 1e-12
            assert (found.worst > 0.0) == (found.refuted > 0.0)


def test_the_law_alone_has_every_property_but_that_a_foreign_queue_makes_it_push() -> None:
    states, law = drawn_states(3), always(0.0, 0.0)
    for name in ("P1", "P3", "P5", "P6"):
        assert verdict(name, law, states).refuted == 0.0, name
    assert verdict("P1", law, states).certified == 1.0
    assert verdict("P6", law, states).certified == 1.0


def test_a_policy_that_always_pushes_fills_a_deep_queue_of_its_own() -> None:
    found = verdict("P1", always(1.0, 1.0), drawn_states(4, 400))
    assert found.states > 0
    assert found.refuted == 1.0
    assert found.worst > 0.0


def test_a_policy_that_always_yields_surrenders_to_a_foreign_queue() -> None:
    states = drawn_states(5)
    assert verdict("P4", always(-0.5, 0.0), states).refuted == 1.0
    assert verdict("P4", always(0.1, 0.0), states).certified == 1.0


def test_a_property_whose_features_the_policy_lacks_does_not_apply() -> None:
    scales = Scales.of(FEATURES[:3])
    states = drawn_states(6)
    short = States(
        states.observation[:, :, :3],
        states.cwnd_packets,
        states.earlier_packets,
        states.inflight_packets,
        states.delivery_pps,
    )
    absent = [own.name for own in PROPERTIES if not set(own.needs) <= set(scales.index)]
    assert absent == ["P1", "P2", "P3", "P4"]
    for wanted in PROPERTIES:
        if wanted.name in absent:
            assert verdict_of(wanted, always(0, 0), short, scales, 1) is None


def test_the_laws_step_never_falls_with_an_action_and_never_rises_with_the_queue() -> None:
    rng, states = np.random.default_rng(8), drawn_states(8, 500)
    ratio = np.exp(rng.uniform(0.0, 3.0, 500))
    low: F64 = rng.uniform(-1.0, 1.0, (500, 2))
    high = low + rng.random((500, 2)) * (1.0 - low)
    step = certificates.change(states, ratio, low)
    assert (step <= certificates.change(states, ratio, high) + 1e-12).all()
    assert (step >= certificates.change(states, 1.1 * ratio, low) - 1e-12).all()


def test_the_step_is_that_of_the_law_to_the_last_stored_digit() -> None:
    window, earlier, inflight, pps, ratio, first, second, stored = np.loadtxt(STEPS, skiprows=1).T
    states = States(np.zeros((len(window), 1, 1)), window, earlier, inflight, pps)
    step = certificates.change(states, ratio, np.stack([first, second], axis=1))
    assert np.abs(step - stored).max() < 2e-6
    still = certificates.change(
        replace(states, earlier_packets=window), ratio, np.stack([first, second], axis=1)
    )
    assert (np.abs(still - stored) > 1e-3).mean() > 0.3, "the window before decides nothing"


def test_the_step_counts_jitter_as_none() -> None:
    # As in the law's test `jitter_lets_a_window_grow_that_falls_without`.
    window = np.array([100.0])
    states = States(np.zeros((1, 1, 1)), window, window, window, np.array([833.0]))
    step = certificates.change(states, np.array([2.0]), np.array([[0.5, 0.0]]))
    assert step == pytest.approx(math.log(0.89))


def test_the_command_and_the_card_say_that_jitter_counts_as_none(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(FLAGSHIP, folder)
    (folder / "CARD.md").write_text("# mine\n\n<!-- certify -->\nold\n<!-- end of certify -->\n")
    printed = CliRunner().invoke(app, ["certify", str(folder), "--states", "64", "--card"])
    assert printed.exit_code == 0, printed.output
    assert certificates.WITHOUT_JITTER in " ".join(printed.output.split())
    assert certificates.WITHOUT_JITTER in (folder / "CARD.md").read_text()


def test_a_queue_that_the_last_step_takes_away_is_no_deep_queue_of_the_flows_own() -> None:
    states, push = drawn_states(9, 400), always(1.0, 1.0)
    before = verdict("P1", push, replace(states, earlier_packets=states.cwnd_packets))
    after = verdict("P1", push, replace(states, earlier_packets=2.0 * states.cwnd_packets))
    assert before.states > 0
    assert after.states == 0
    assert verdict("P1", always(0.0, 0.0), states).certified == 1.0


def test_the_window_before_is_that_of_the_streams_decision_before() -> None:
    window = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    stream = np.array([0, 1, 0, 1, 0, 1])
    # The last decision of stream 1 is of a new episode.
    place = np.array([4, 0, 5, 1, 6, 3])
    earlier = certify._earlier(window, stream, place)
    assert earlier.tolist() == [10.0, 20.0, 10.0, 20.0, 30.0, 60.0]


def test_every_freed_feature_exists() -> None:
    known = {name for name, *_ in _core.observation_features()}
    assert {*certificates.OWN_FEATURES, *certificates.RTT_FEATURES} <= known
