"""Scenarios over QUIC in virtual time: `--backend quic`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ackademy import compare, run
from ackademy.errors import ControllerError, ScenarioError
from commands import ackademy_command

TEXT = """\
duration_s = 4
[dumbbell]
rtt_ms = 30
[dumbbell.bottleneck]
rate_mbps = 10
queue = { kind = "drop_tail", bdp = 2 }
loss = { kind = "bernoulli", ratio = 0.002 }
[[flow]]
name = "bulk"
count = 2
start_s = 0.2
controller = "cubic"
"""


def test_the_same_seed_gives_the_same_tables_and_another_seed_others() -> None:
    first, again, other = (run(TEXT, seed=seed, backend="quic") for seed in (5, 5, 6))
    for name, table in first.columns.items():
        for column, values in table.items():
            np.testing.assert_array_equal(values, again.columns[name][column], err_msg=column)
    delivered = [list(own.floats("flows", "delivered_bytes")) for own in (first, other)]
    assert delivered[0] != delivered[1]


def test_goodput_and_round_trips_are_those_of_the_path() -> None:
    found = run(TEXT, backend="quic")
    goodput = found.floats("flows", "goodput_bytes").sum() * 8e-6 / 3.8
    assert 6.0 < goodput < 10.0
    rtt = found.floats("flow_series", "srtt_ms")
    assert (rtt[np.isfinite(rtt)] >= 30.0).all()
    assert (found.floats("flows", "rtt_min_ms") >= 30.0).all()
    assert np.diff(found.floats("flow_series", "time_s")).min() >= 0.0
    assert (
        found.floats("links", "arrived_packets")[0] == found.floats("flows", "sent_packets").sum()
    )


@pytest.mark.parametrize("cc", ["noq:cubic", "noq:new_reno", "noq:bbr3", "flagship", "pcc_quic"])
def test_noqs_controllers_policies_and_those_with_timers_run(cc: str) -> None:
    found = run(TEXT, cc=cc, backend="quic")
    assert (found.floats("flows", "goodput_bytes") > 100_000).all()


@pytest.mark.parametrize("cc", ["lia", "drl_cc", "noq:new_reno"])
def test_a_connection_of_two_subflows_runs_over_two_paths_of_quic(cc: str) -> None:
    found = run("two_paths", cc=cc, backend="quic")
    assert list(found.columns["flows"]["flow"]) == ["multipath.0", "multipath.1"]
    assert (found.floats("flows", "delivered_bytes") * 8e-6 / 30.0 > [15.0, 3.0]).all()
    assert found.floats("connections", "subflows") == [2]


def test_compare_measures_our_controllers_beside_noqs() -> None:
    found = compare(TEXT, ["cubic", "noq:cubic"], runs=2, backend="quic")
    assert found.runs.height == 4
    assert (found.runs["throughput_mean_mbps"] > 1.0).all()


def test_the_exported_run_says_that_it_was_quic(
    tmp_path: Path,
) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    words = ("run", "path.toml", "--backend", "quic", "--json", "run.json")
    assert ackademy_command(*words, cwd=tmp_path)[0] == 0
    assert json.loads((tmp_path / "run.json").read_text())["backend"] == "quic"


@pytest.mark.parametrize(
    ("cc", "error", "says"),
    [
        ("noq:vegas", ScenarioError, "noq:cubic"),
        ("kernel:cubic", ControllerError, "runs with --backend kernel alone"),
        ("lp_tcp/L50_K1", ScenarioError, "has a send hook"),
    ],
)
def test_what_quic_cannot_do_is_refused(cc: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as found:
        run(TEXT, cc=cc, backend="quic")
    assert "\n" not in str(found.value)


def test_a_command_refuses_it_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "ns2.toml").write_text(TEXT + 'sender = { recovery = "ns2" }\n')
    for words in (["run", "ns2.toml"], ["compare", "ns2.toml", "--cc", "cubic"]):
        code, _, err = ackademy_command(*words, "--backend", "quic", cwd=tmp_path)
        assert (code, err.count("\n")) == (2, 1), err
        assert "ns2.toml" in err
        assert "sender.recovery" in err
