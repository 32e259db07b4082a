"""The policies that are shipped: what their cards promise."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from ackademy import _core
from ackademy.learn.lp_tcp import collecting, forest, scoring
from ackademy.learn.lp_tcp import training as lp_tcp
from ackademy.learn.lp_tcp.collecting import Recording
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.setups import PUBLISHED, Setup
from ackademy.studies.reproduce import files as experiment_files

ROOT = Path(__file__).parents[1]
POLICIES = ROOT / "data/policies" / "lp_tcp"
BYTES_MAX = 2_000_000

each_setup = pytest.mark.parametrize("setup", PUBLISHED, ids=lambda setup: setup.folder)


def made(setup: Setup) -> dict[str, object]:
    """How a shipped forest was made."""
    with (POLICIES / setup.folder / "policy.toml").open("rb") as file:
        return tomllib.load(file)


@each_setup
def test_a_forest_is_small_enough_to_ship(setup: Setup) -> None:
    assert (POLICIES / setup.folder / "forest.safetensors").stat().st_size <= BYTES_MAX


@each_setup
def test_the_core_gives_the_mean_that_the_arrays_give(setup: Setup) -> None:
    content = (POLICIES / setup.folder / "forest.safetensors").read_bytes()
    arrays = forest.from_bytes(content)
    rng = np.random.default_rng(0)
    low, high = arrays.threshold.min(), arrays.threshold.max()
    x = rng.uniform(low, 1.5 * high, (2000, 55)).astype(np.float32)
    # Values of the forest's own thresholds are where rounding would show.
    x[1000:] = rng.choice(arrays.threshold, (1000, 55))
    core = _core.Forest.load(content)
    np.testing.assert_allclose(core.mean(x), arrays.mean(x), rtol=0, atol=1e-6)


@each_setup
def test_th0_is_where_the_shipped_curve_has_its_maximum(setup: Setup) -> None:
    text = (POLICIES / setup.folder / "f1.csv").read_text(encoding="utf-8")
    assert scoring.best(scoring.from_csv(text)).threshold == made(setup)["made"]["th0"]  # type: ignore[index]


def test_papers_use_the_threshold_that_training_chose() -> None:
    used = 0
    for name in ("table5", "table6", "table7", "table8", "fig2b", "fig2c"):
        for row in experiment_files.load(f"kong2018/{name}").rows:
            params = dict(row.params) or {k: v for a in row.assignments for k, v in a.params}
            if "policy" not in params:
                continue
            with Path(str(params["policy"])).with_name("policy.toml").open("rb") as file:
                assert params["threshold"] == tomllib.load(file)["threshold"], (name, row.name)
            used += 1
    assert used >= 9


@each_setup
def test_table3_s_th0_is_the_policy_s(setup: Setup) -> None:
    facts = made(setup)["made"]
    assert isinstance(facts, dict)
    rows = {
        row.name: dict(row.assignments[0].params)
        for row in experiment_files.load("kong2018/table3").rows
    }
    th0 = rows["th = th₀", setup.label]
    assert th0["threshold"] == facts["th0"]
    assert Path(str(th0["policy"])).parent.name == setup.folder


def test_retraining_gives_the_shipped_bytes() -> None:
    pytest.importorskip("sklearn", reason="needs train: an extra")
    setup = Setup(5, 1)
    facts, threshold = made(setup)["made"], made(setup)["threshold"]
    assert isinstance(facts, dict)
    assert isinstance(threshold, float)
    recording = Recording(setup, facts["seed"])
    growth = Growth(max_leaves=facts["max_leaves"], min_samples_leaf=facts["min_samples_leaf"])
    sends = collecting.record(recording, ROOT / "data/scenarios")
    early, late = sends.split(lp_tcp.TRAIN_SHARE * recording.duration_s)
    fitted = early.thinned(facts["delivered_per_loss"], recording.seed)
    grown = forest.fit(fitted.features, fitted.dropped, growth, recording.seed, jobs=2)
    shipped = (POLICIES / setup.folder / "forest.safetensors").read_bytes()
    assert lp_tcp.to_bytes(grown, threshold) == shipped
    output = _core.Forest.load(shipped).mean(late.features)
    weights = scoring.Weights(facts["keep_one_in"], early.delivered_per_row(fitted))
    scores = scoring.curve(output, late.dropped, weights)
    assert scoring.to_csv(scores) == (POLICIES / setup.folder / "f1.csv").read_text("utf-8")


@pytest.mark.parametrize("name", ["wire_case1", "wire_case6"])
def test_a_policy_of_the_wire_is_a_forest_over_the_55_numbers(name: str) -> None:
    shipped = _core.Forest.load((POLICIES / name / "forest.safetensors").read_bytes())
    mean = shipped.mean(np.zeros((1, 55), dtype=np.float32))
    assert 0.0 <= mean[0] <= 1.0
