"""What the core hands to a trainer, and the policies that it takes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ackademy import ControllerError, _core

TEXT = """
duration_s = 30
[dumbbell]
rtt_ms = 50
bottleneck = { rate_mbps = 5, queue = { kind = "drop_tail", packets = 15 } }
[sender]
recovery = "ns2"
[[flow]]
count = 2
start_step_s = 0.1
"""
POLICY = Path(__file__).parents[1] / "crates/core/tests/files/lp_tcp/policy"


def test_sends_are_those_of_the_simulation() -> None:
    scenario = _core.Scenario.parse(TEXT, "text")
    sends = _core.collect_sends(scenario, 1, keep_one_in=1)
    flows = _core.simulate(scenario, 1)["flows"]
    assert sends["features"].shape == (sends["n_sends"], 55)
    assert sends["n_drops"] == sends["dropped"].sum() == np.sum(flows["queue_drops"])
    assert np.bincount(sends["flow"]).tolist() == list(flows["sent_packets"])
    assert set(sends["phase"].tolist()) == {0, 1}
    assert (np.diff(sends["time_s"]) >= 0).all()


def test_keeping_one_in_none_is_refused() -> None:
    with pytest.raises(ValueError, match="keep_one_in = 0: allowed is a number from 1"):
        _core.collect_sends(_core.Scenario.parse(TEXT, "text"), 1, keep_one_in=0)


def test_a_forest_answers_row_by_row() -> None:
    x = np.zeros((2, 55), dtype=np.float32)
    x[1, [54, 0]] = 2.0, 50.0
    means = [(0.125 + 0 + 0.25) / 3, (0.875 + 0.75 + 0.25) / 3]
    np.testing.assert_allclose(_core.Forest.load(POLICY.read_bytes()).mean(x), means, atol=1e-9)
    with pytest.raises(ValueError, match="features of 54 columns: allowed is 55 columns"):
        _core.Forest.load(POLICY.read_bytes()).mean(x[:, :54])


def test_a_policy_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(POLICY.read_bytes()[:-1])
    scenario = _core.Scenario.parse(TEXT, "text")
    for path, reason in (
        (tmp_path / "cut", "data_offsets of `feature`"),
        (tmp_path / "gone", "a file that can be read"),
        ("/dev/zero", "a regular file of at most"),
    ):
        with pytest.raises(ControllerError) as error:
            scenario.with_controller("lp_tcp", {"policy": str(path)})
        message = str(error.value)
        assert "\n" not in message
        assert message.startswith(f'controller lp_tcp: `policy` = "{path}": allowed is ')
        assert reason in message


def test_a_moved_policy_gives_the_same_cell_and_a_changed_one_another(tmp_path: Path) -> None:
    scenario = _core.Scenario.parse(TEXT, "text")

    def canonical(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        params = {"policy": str(tmp_path / name)}
        return scenario.with_controller("lp_tcp", params).canonical()

    content = POLICY.read_bytes()
    assert canonical("here", content) == canonical("there", content)
    changed = content.replace(b'"0.5"', b'"0.6"')
    assert canonical("here", changed) != canonical("there", content)
