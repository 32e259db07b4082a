"""Scenarios over ns-3's TCP (`--backend ns3`), and the module of `ns3/` elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ackademy import compare, run
from ackademy.backends import programs
from ackademy.backends.programs import ackademy_ns3
from ackademy.errors import Ns3Error, ScenarioError
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
TEXT = """\
duration_s = 20
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 10
queue = { kind = "drop_tail", bdp = 1 }
[[flow]]
controller = "cubic"
"""


def with_loss(ratio: float) -> str:
    """The scenario with random loss."""
    loss = f'loss = {{ kind = "bernoulli", ratio = {ratio} }}'
    return TEXT.replace("rate_mbps = 10", f"rate_mbps = 10\n{loss}")


def lacking() -> str:
    """Why ns-3 cannot be run here; empty if it can."""
    try:
        ackademy_ns3.find()
    except Ns3Error as error:
        return str(error)
    return ""


needs_ns3 = pytest.mark.skipif(bool(lacking()), reason=f"needs ns3: {lacking()}")


@needs_ns3
@pytest.mark.parametrize("cc", ["cubic", "new_reno", "own_queue"])
@pytest.mark.parametrize(
    "changes",
    [
        (),
        (("bdp = 1", "bdp = 4"),),
        (("rate_mbps = 10", "rate_mbps = 50"), ("rtt_ms = 40", "rtt_ms = 10")),
        (("[[flow]]", "[[flow]]\ncount = 3\nstart_step_s = 1"), ("bdp = 1", "packets = 80")),
    ],
)
def test_a_controller_gets_in_ns3_what_it_gets_in_the_simulator(
    cc: str, changes: Sequence[tuple[str, str]]
) -> None:
    text = TEXT.replace("duration_s = 20", "duration_s = 60")
    for old, new in changes:
        text = text.replace(old, new)
    ours, theirs = (run(text, cc=cc, backend=backend) for backend in ("sim", "ns3"))

    def measured(name: str) -> list[np.ndarray]:
        return [own.floats("flows", name) for own in (ours, theirs)]

    delivered = [values.sum() for values in measured("delivered_bytes")]
    samples = measured("rtt_samples")
    rtt = [
        (mean * count).sum() / count.sum()
        for mean, count in zip(measured("rtt_mean_ms"), samples, strict=True)
    ]
    assert delivered[1] == pytest.approx(delivered[0], rel=0.02)
    assert rtt[1] == pytest.approx(rtt[0], abs=2.0)


@needs_ns3
def test_the_same_seed_gives_the_same_tables_and_another_seed_others() -> None:
    text = with_loss(0.01)
    first, again, other = (run(text, seed=seed, backend="ns3") for seed in (5, 5, 6))
    for name, table in first.columns.items():
        for column, values in table.items():
            np.testing.assert_array_equal(values, again.columns[name][column], err_msg=column)
    delivered = [list(own.floats("flows", "delivered_bytes")) for own in (first, other)]
    assert delivered[0] != delivered[1]


@needs_ns3
def test_tables_have_the_columns_of_the_simulator_and_keep_the_books() -> None:
    ours, theirs = (run(with_loss(0.01), backend=backend) for backend in ("sim", "ns3"))
    for name, table in ours.columns.items():
        assert list(theirs.columns[name]) == list(table)
        assert theirs.frame(name).schema == ours.frame(name).schema

    def total(table: str, column: str) -> float:
        return float(theirs.floats(table, column)[0])

    assert total("links", "arrived_packets") == total("flows", "sent_packets")
    dropped = total("flows", "queue_drops") + total("flows", "random_losses")
    assert total("flows", "dropped_packets") == dropped > 0
    on_the_way = total("flows", "sent_packets") - total("flows", "received_packets") - dropped
    assert 0 <= on_the_way <= 100
    delivered = total("flows", "delivered_bytes")
    assert total("flows", "goodput_bytes") == delivered / 1500 * 1448
    assert theirs.floats("flow_series", "delivered_bytes")[-1] == delivered
    assert total("flows", "rtt_min_ms") >= 40.0


@needs_ns3
def test_flows_start_stop_and_transfer_as_the_scenario_says() -> None:
    text = (
        TEXT
        + """\
name = "stops"
stop_s = 5
[[flow]]
name = "late"
start_s = 15
traffic = { kind = "fixed", bytes = 1_000_001 }
"""
    )
    found = run(text, backend="ns3", sample_interval_ms=100)
    assert list(found.columns["flows"]["flow"]) == ["stops", "late"]
    assert found.floats("flows", "start_s").tolist() == [0.0, 15.0]
    assert found.floats("flows", "active_s")[0] == pytest.approx(5.0, abs=0.2)
    assert list(found.floats("flows", "goodput_bytes"))[1] == 1_000_001
    assert found.floats("flows", "transfers")[1] == 1
    assert 800 < found.floats("flows", "fct_mean_ms")[1] < 2000
    series = found.flow_series
    late = series.filter(series["flow"] == "late")
    assert late["time_s"].min() == 15.0


@needs_ns3
@pytest.mark.parametrize("cc", ["flagship", "bbr3", "pcc_quic", "ns3:cubic", "ns3:westwood_plus"])
def test_policies_paced_controllers_and_ns3s_own_run(cc: str) -> None:
    found = run(TEXT, cc=cc, backend="ns3")
    assert found.floats("flows", "goodput_bytes")[0] * 8e-6 / 20 > 6.0


@needs_ns3
def test_compare_measures_our_controllers_beside_ns3s_and_the_export_says_where(
    tmp_path: Path,
) -> None:
    found = compare(TEXT, ["cubic", "ns3:cubic"], runs=1, backend="ns3")
    assert (found.runs["throughput_mean_mbps"] > 9.0).all()
    (tmp_path / "path.toml").write_text(TEXT)
    words = ("run", "path.toml", "--backend", "ns3", "--json", "run.json")
    assert ackademy_command(*words, cwd=tmp_path)[0] == 0
    assert json.loads((tmp_path / "run.json").read_text())["backend"] == "ns3"


@needs_ns3
@pytest.mark.parametrize(
    ("plan", "line"),
    [
        ("protocol 99\n", "plans of version 99; allowed: 1; build this program with `make ns3`"),
        ("colour red\n", "unknown key `colour` in the plan"),
        ("protocol 1\nseed x\n", "`x`: allowed is a number"),
    ],
)
def test_the_program_refuses_a_plan_that_it_does_not_know(plan: str, line: str) -> None:
    with pytest.raises(ScenarioError, match=f"^here: {line}$"):
        ackademy_ns3.call([], plan, "here")


def fake(path: Path, script: str) -> Path:
    """A program that this script is."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("compiler", "said"),
    [("echo 3 35", "ns-3.35"), ("echo 2 40", "ns-2.40"), ("exit 1", "ns-?.?")],
)
def test_an_ns3_that_is_too_old_or_not_there_builds_nothing_and_is_one_line(
    compiler: str, said: str, tmp_path: Path
) -> None:
    fake(tmp_path / "g++", compiler)
    done = subprocess.run(
        [ROOT / "packaging/ns3.sh", tmp_path, tmp_path / "ns3"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    allowed = "allowed is ns-3.36 or newer; apt-get install libns3-dev g++"
    assert (done.returncode, done.stderr) == (2, f"ns3: {said}: {allowed}\n")
    assert not (tmp_path / "ns3").exists()


def test_a_program_of_ns3_with_another_abi_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "libackademy has ABI 2; allowed: 1, for which this program was built"
    program = fake(tmp_path / "ns3", f'echo "ackademy-ns3: {line}" >&2; exit 2')
    monkeypatch.setenv(ackademy_ns3.variable, str(program))
    (tmp_path / "path.toml").write_text(TEXT)
    code, _, err = ackademy_command("run", "path.toml", "--backend", "ns3", cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1), err
    assert f"path.toml: {line}" in err


@needs_ns3
@pytest.mark.parametrize(
    ("controller", "status"), [("copa", 0), ("policy", 0), ("nobody", 2), ("cubic:beta=2", 2)]
)
def test_a_program_of_ns3_selects_the_module_by_its_type(controller: str, status: int) -> None:
    program = ackademy_ns3.find().with_name("ackademy-dumbbell")
    parameters = f"policy={ROOT}/data/policies/flagship" if controller == "policy" else ""
    words = [
        "--ns3::TcpL4Protocol::SocketType=ns3::TcpAckademy",
        f"--ns3::TcpAckademy::Controller={controller}",
        f"--ns3::TcpAckademy::Parameters={parameters}",
        "--seconds=10",
    ]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stderr.startswith(f"TcpAckademy: controller {controller}: allowed is ")
        assert done.stderr.count("\n") == 1
    else:
        rates = [float(line.split()[0]) for line in done.stdout.splitlines()]
        assert len(rates) == 2
        assert 7.0 < sum(rates) < 10.0


@pytest.mark.parametrize(
    ("scenario", "line"),
    [
        ("policer", 'link "bottleneck": policer, aggregation, retransmit or ecn: allowed'),
        ("two_paths", 'flow "multipath": 2 subflows: allowed with ns-3 is one'),
    ],
)
def test_what_ns3_cannot_do_is_one_line_before_the_run(
    scenario: str, line: str, tmp_path: Path
) -> None:
    code, _, err = ackademy_command("run", scenario, "--backend", "ns3", cwd=tmp_path)
    assert code == 2
    assert line in err
    assert err.count("\n") == 1


def test_a_missing_program_is_one_line_that_says_what_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ACKADEMY_NS3", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    with pytest.raises(Ns3Error, match="make ns3") as caught:
        run(TEXT, backend="ns3")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("nothing", "printed what is not JSON"),
        ("{}", "printed flows = None; expected dict"),
        ('{"flows": {"flow": [7]}}', "printed a wrong number of a flow or a link"),
    ],
)
def test_what_the_program_prints_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, told: str
) -> None:
    fake = tmp_path / "fake"
    fake.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{printed}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("ACKADEMY_NS3", str(fake))
    with pytest.raises(Ns3Error, match=told):
        run(TEXT, backend="ns3")
