"""Scenarios over QUIC: `--backend quic` in virtual time, `--backend quic-lab` with a fake lab."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ackademy import Run, compare, run
from ackademy.errors import AckademyError, ControllerError, ScenarioError
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


@pytest.mark.parametrize(
    "cc",
    [
        *("noq:cubic", "noq:new_reno", "noq:bbr3", "quinn:cubic", "quinn:new_reno", "quinn:bbr"),
        *("flagship", "pcc_quic"),
    ],
)
def test_the_stacks_own_controllers_policies_and_those_with_timers_run(cc: str) -> None:
    found = run(TEXT, cc=cc, backend="quic")
    assert (found.floats("flows", "goodput_bytes") > 100_000).all()


@pytest.mark.parametrize("cc", ["lia", "drl_cc", "noq:new_reno"])
def test_a_connection_of_two_subflows_runs_over_two_paths_of_quic(cc: str) -> None:
    found = run("two_paths", cc=cc, backend="quic")
    assert list(found.columns["flows"]["flow"]) == ["multipath.0", "multipath.1"]
    assert (found.floats("flows", "delivered_bytes") * 8e-6 / 30.0 > [15.0, 3.0]).all()
    assert found.floats("connections", "subflows") == [2]


def test_compare_measures_our_controllers_beside_the_stacks_own() -> None:
    found = compare(TEXT, ["cubic", "noq:cubic", "quinn:cubic"], runs=2, backend="quic")
    assert found.runs.height == 6
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
        ("quinn:vegas", ScenarioError, "quinn:bbr, quinn:cubic, quinn:new_reno"),
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


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON text sequence."""
    return [json.loads(record) for record in path.read_text().split("\x1e")[1:]]


def check_qlog(path: Path, found: Run) -> None:
    """A file has what noq told each flow's controller, and its times rise."""
    head, *events = records(path)
    assert (head["qlog_version"], head["trace"]["common_fields"]["protocol_type"]) == (
        "0.3",
        ["QUIC"],
    )
    own = {name: [e for e in events if e["name"] == name] for name in {e["name"] for e in events}}
    assert all(one["time"] <= other["time"] for one, other in pairwise(events))
    for row in found.flows.iter_rows(named=True):
        of_flow = {
            name: [e["data"] for e in some if e.get("group_id", row["flow"]) == row["flow"]]
            for name, some in own.items()
        }
        sent = of_flow["transport:packet_sent"]
        types = list(dict.fromkeys(data["header"]["packet_type"] for data in sent))
        assert types == ["initial", "handshake", "1RTT"]
        numbers = [
            d["header"]["packet_number"] for d in sent if d["header"]["packet_type"] == "1RTT"
        ]
        assert numbers == sorted(set(numbers))
        # Those of the handshake share a datagram, and acknowledgements alone are told to nobody.
        assert len(sent) == pytest.approx(row["sent_packets"], rel=0.02)
        acked = [
            number
            for data in of_flow["transport:packet_received"]
            for low, high in data["frames"][0]["acked_ranges"]
            for number in range(low, high + 1)
        ]
        assert set(acked) <= set(numbers)
        lost = len(of_flow.get("recovery:packet_lost", ()))
        assert lost == row["retransmitted_packets"]
        metrics = of_flow["recovery:metrics_updated"]
        rtts = [data["latest_rtt"] for data in metrics if "latest_rtt" in data]
        assert min(rtts) == pytest.approx(row["rtt_min_ms"], abs=1e-6)
        assert {"congestion_window", "smoothed_rtt"} <= {key for data in metrics for key in data}


@pytest.mark.parametrize("cc", ["cubic", "bbr3", "noq:cubic"])
def test_a_qlog_has_what_noq_tells_the_controller_and_changes_nothing(
    cc: str, tmp_path: Path
) -> None:
    plain = run(TEXT, cc=cc, backend="quic", sample_interval_ms=0)
    files = [tmp_path / "first.sqlog", tmp_path / "again.sqlog"]
    for path in files:
        found = run(TEXT, cc=cc, backend="quic", sample_interval_ms=0, qlog=path)
        assert found.flows.equals(plain.flows)
        check_qlog(path, found)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_qlog_of_quinn_is_refused_in_one_line_and_not_begun(tmp_path: Path) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    words = ("run", "path.toml", "--backend", "quic", "--cc", "quinn:cubic", "--qlog", "a.sqlog")
    code, _, err = ackademy_command(*words, cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1), err
    assert 'flow "bulk_0": a qlog of quinn' in err
    assert [path.name for path in tmp_path.iterdir()] == ["path.toml"]


def test_a_qlog_of_one_flow_names_it_once(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlog"
    found = run(TEXT.replace("count = 2", "count = 1"), backend="quic", qlog=path)
    check_qlog(path, found)
    head, *events = records(path)
    assert head["trace"]["common_fields"]["group_id"] == "bulk"
    assert not any("group_id" in event for event in events)


def test_a_packet_capture_of_quic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        AckademyError, match="pcap on the backend quic: allowed: on the backend sim"
    ):
        run(TEXT, backend="quic", pcap=tmp_path / "a.pcapng")


def test_the_lab_runs_a_scenario_over_quic(tmp_path: Path, fake: Path) -> None:
    found = run(TEXT, cc="noq:cubic", backend="quic-lab", seed=3)
    assert fake.read_text() == "start 3 over quic\n"
    assert found.backend == "quic-lab"
    assert found.kernel is not None
    assert found.kernel.decisions == 0
    with pytest.raises(ControllerError, match="runs with --backend quic or quic-lab alone"):
        run(TEXT, cc="noq:cubic", backend="kernel")
    with pytest.raises(ScenarioError, match="allowed with QUIC is"):
        run(TEXT + "sender = { packet_bytes = 600 }\n", backend="quic-lab")
    assert fake.read_text().count("start") == 1


def test_a_late_run_of_the_lab_is_repeated(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE", "late=1")
    found = compare(TEXT, ["cubic"], runs=2, backend="quic-lab")
    assert fake.read_text().splitlines() == ["start 1 over quic"] * 2 + ["start 2 over quic"]
    assert found.runs.height == 2


def test_virtual_time_is_compared_with_the_lab(tmp_path: Path, fake: Path) -> None:
    (tmp_path / "path.toml").write_text(TEXT)
    words = ("gap", "path.toml", "--cc", "cubic", "--baselines", "noq:cubic", "--runs", "1")
    more = ("--backends", "quic,quic-lab", "--markdown", "gap.md")
    code, _, err = ackademy_command(*words, *more, cwd=tmp_path)
    assert (code, err) == (0, "")
    markdown = (tmp_path / "gap.md").read_text()
    assert "| scenario | controller | QUIC | QUIC, lab | difference |" in markdown
    assert "within 3 % of noq:cubic, QUIC, lab" in markdown
