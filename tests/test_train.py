"""Training of LP-TCP's forest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ackademy.errors import TrainingError
from ackademy.learn.lp_tcp import forest, network, result, scoring
from ackademy.learn.lp_tcp.collecting import Sends
from ackademy.learn.lp_tcp.forest import Features, Growth, Labels
from ackademy.learn.lp_tcp.scoring import Weights
from ackademy.learn.lp_tcp.setups import PUBLISHED, Setup
from ackademy.runner import engines

pytest.importorskip("sklearn", reason="needs train: an extra")


@pytest.fixture(scope="module")
def rows() -> tuple[Features, Labels]:
    """Rows like a sender's: most features say nothing, many values repeat."""
    rng = np.random.default_rng(0)
    x = rng.random((3000, 55), dtype=np.float32)
    x[:, 1] = np.round(50 * x[:, 1])
    return x, (x[:, 0] + 0.02 * x[:, 1] + 0.3 * rng.random(3000)) > 1.8


@pytest.fixture(scope="module")
def small() -> Growth:
    return Growth(trees=12)


def test_our_arrays_give_what_scikit_learn_gives(
    rows: tuple[Features, Labels], small: Growth
) -> None:
    from sklearn.ensemble import RandomForestClassifier

    x, y = rows
    model = RandomForestClassifier(12, max_features=7, min_samples_leaf=5, random_state=3).fit(x, y)
    between = np.float32(0.5) * (x + np.roll(x, 1, axis=0))
    ours = forest.fit(x, y, small, seed=3, jobs=1)
    for points in (x, between):
        expected = model.predict_proba(points)[:, 1]
        np.testing.assert_allclose(ours.mean(points), expected, rtol=0, atol=1e-6)


def test_thresholds_part_32_bit_numbers_as_64_bit_ones_do() -> None:
    exact = np.array([0.1, 0.3, 1e-9, -0.7, 1234.56789, 0.5])
    stored = forest._round_down(exact)
    above = np.nextafter(stored, np.float32(np.inf))
    assert (stored.astype(np.float64) <= exact).all()
    assert (above.astype(np.float64) > exact).all()


def test_the_bytes_depend_on_the_seed_and_not_on_the_processes(
    rows: tuple[Features, Labels], small: Growth
) -> None:
    def content(seed: int, jobs: int) -> bytes:
        return forest.to_bytes(forest.fit(*rows, small, seed, jobs), {})

    assert content(1, 1) == content(1, 2)
    assert content(1, 1) != content(2, 1)


def test_a_forest_survives_being_written(rows: tuple[Features, Labels], small: Growth) -> None:
    fitted = forest.fit(*rows, small, seed=1, jobs=1)
    read = forest.from_bytes(forest.to_bytes(fitted, {"made": "here"}))
    for name in forest.Arrays.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(read, name), getattr(fitted, name))


def test_no_tree_has_more_leaves_than_allowed(rows: tuple[Features, Labels]) -> None:
    arrays = forest.fit(*rows, Growth(trees=3, max_leaves=5), seed=1, jobs=1)
    for nodes in np.split(arrays.feature, arrays.root[1:]):
        assert np.count_nonzero(nodes == forest.LEAF) <= 5


def test_rows_without_a_loss_are_refused(rows: tuple[Features, Labels], small: Growth) -> None:
    x, y = rows
    with pytest.raises(TrainingError, match="nothing to tell apart"):
        forest.fit(x, np.zeros_like(y), small, seed=1, jobs=1)


WEIGHTS = Weights(scored=9.0, fitted=36.0)


def test_f1_counts_delivered_packets_as_often_as_they_were_sent() -> None:
    output = np.array([0.9, 0.9, 0.1, 0.1])
    dropped = np.array([True, False, True, False])
    scores = {score.threshold: score for score in scoring.curve(output, dropped, WEIGHTS)}
    # One hit, nine alarms, one loss missed.
    assert scores[0.5].precision == pytest.approx(0.1)
    assert scores[0.5].recall == pytest.approx(0.5)
    assert scores[0.5].f1 == pytest.approx(2 / (1 + 9 + 2))
    assert scores[0.98].f1 == 0.0


def test_the_prior_correction_gives_the_share_on_the_wire() -> None:
    # 20 lost and 80 delivered rows, each of which stands for 10: 20 lost of 820.
    assert scoring.corrected(0.2, 10.0) == pytest.approx(20 / 820)


def test_the_probability_is_of_the_rows_fitted_to_not_of_those_scored_on() -> None:
    scores = scoring.curve(np.array([0.9, 0.1]), np.array([True, False]), WEIGHTS)
    assert scores[24].threshold == 0.5
    assert scores[24].probability == pytest.approx(1 / 37)


def test_a_thinned_row_stands_for_all_that_the_recording_and_the_thinning_left_out() -> None:
    dropped = np.array([True, True, *[False] * 100])
    sends = Sends(np.zeros((102, 55), np.float32), dropped, np.arange(102.0), 1002, 2, 10)
    fitted = sends.thinned(5, seed=1)
    assert fitted.n_delivered == 10
    assert sends.delivered_per_row(fitted) == 100.0
    assert sends.delivered_per_row(sends) == 10.0


@pytest.mark.parametrize(
    "text", ["L=50", "K=1", "L=50,K=x", "L=0,K=1", "L=50,K=1,mix", "L=5,K=1,Z=2"]
)
def test_a_setup_that_is_none_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(TrainingError, match="L=50,K=4,mix"):
        Setup.parse(text)


def test_a_setup_is_written_as_it_is_read() -> None:
    assert [Setup.parse(str(setup)) for setup in PUBLISHED] == list(PUBLISHED)
    assert Setup.parse("L=50,K=4,mix").label == "(50,4)_mix"


def test_a_lost_row_scored_on_that_was_fitted_to_is_counted_as_repeated() -> None:
    x = np.zeros((4, 55), dtype=np.float32)
    x[:, 0] = [1.0, 2.0, 1.0, 3.0]
    lost = np.array([True, False, True, True])
    sends = Sends(x, lost, np.arange(4.0), n_sends=4, n_drops=3, keep_one_in=1)
    assert result.repeated(*sends.split(2.0)) == 1


def test_a_lost_row_that_was_delivered_before_is_not_repeated() -> None:
    x = np.ones((2, 55), dtype=np.float32)
    sends = Sends(x, np.array([False, True]), np.arange(2.0), n_sends=2, n_drops=1, keep_one_in=1)
    assert result.repeated(*sends.split(1.0)) == 0


def test_a_network_with_too_few_losses_is_refused(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "data/scenarios" / "wire" / "case1_lossy.toml"
    task = network.Task(path, duration_s=10.0)
    with pytest.raises(TrainingError, match="losses in congestion avoidance"):
        network.train(task, tmp_path / "out", tmp_path / "work", engines.local(1), 1)
    assert not (tmp_path / "out").exists()
