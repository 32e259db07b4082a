"""What holds of the comparison with ns-2 and ns-3.

The last tests run the peers themselves and are skipped where they are not installed.
"""

from __future__ import annotations

import io
import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ackademy.console import Console
from ackademy.render import terminal
from ns_peers import __main__ as peers_command
from ns_peers import peers, sheets
from ns_peers.peers import Case, Flow, PeerResult, PeersError, Row, Simulators

ROOT = Path(__file__).resolve().parents[1]

LINE = json.dumps(
    {
        "peer": "ns-2",
        "wire_bytes": 1250,
        "flows": [
            {
                "active_s": 10.0,
                "delivered_bytes": 1_250_000,
                "sent": 1010,
                "retransmits": 10,
                "timeouts": 1,
                "drops": 5,
                "wait_ms": 2.0,
                "d_ms": None,
                "window_cuts": 3,
            }
        ],
    }
)


def result(*, mbps: float = 1.0, cpu_s: float = 0.001) -> PeerResult:
    """One flow that ran for 10 s."""
    flow = Flow(
        active_s=10.0,
        delivered_bytes=round(mbps * 1_250_000),
        sent=1010,
        retransmits=10,
        timeouts=1,
    )
    return PeerResult(flows=(flow,), wire_bytes=1250, cpu_s=cpu_s)


def test_result_is_the_last_line_of_json_whatever_the_peer_printed_before() -> None:
    read = peers.parse_result(f"cmd select_ca cubic\n{LINE}\n", cpu_s=0.002)
    assert read.packets == 1000
    assert read.quantities() == pytest.approx(
        {
            "throughput, Mb/s": 1.0,
            "queue wait, ms": 2.0,
            "p": 5 / 1010,
            "time-outs": 1.0,
            "CPU, us/packet": 2.0,
        }
    )


@pytest.mark.parametrize(
    "text",
    ["", "no json", "{", '{"flows": []}', '{"wire_bytes": 1250, "flows": [{"sent": 1}]}'],
    ids=["empty", "prose", "broken", "without a packet size", "without a flow's fields"],
)
def test_unreadable_output_is_told_in_one_line(text: str) -> None:
    with pytest.raises(PeersError) as caught:
        peers.parse_result(text, cpu_s=0.0)
    assert "\n" not in str(caught.value)


def test_two_equal_flows_are_fair_and_their_throughput_is_a_mean() -> None:
    one = result(mbps=3.0).flows[0]
    both = PeerResult(flows=(one, one), wire_bytes=1250, cpu_s=0.0).quantities()
    assert both["Jain index"] == pytest.approx(1.0)
    assert both["throughput, Mb/s"] == pytest.approx(3.0)


def test_seeds_are_averaged() -> None:
    mean = peers.mean_quantities([result(mbps=1.0), result(mbps=2.0)])
    assert mean["throughput, Mb/s"] == pytest.approx(1.5)


def test_case_names_are_distinct_and_quick_is_a_shorter_part_of_them() -> None:
    every, quick = peers.cases(), peers.cases(quick=True)
    names = [case.name for case in every]
    assert len(set(names)) == len(names)
    assert {case.name for case in quick} < set(names)
    assert max(case.duration_s for case in quick) < min(case.duration_s for case in every)


@pytest.mark.parametrize("case", peers.cases(), ids=lambda case: case.name)
def test_both_peers_put_the_same_packet_on_the_wire(case: Case) -> None:
    if case.algorithm in peers.NS2_AGENT:
        ns2 = {"payload": 1210, "timestamps": 1} | peers.ns2_arguments(case)
        headers = 50 if ns2["timestamps"] else 40
        assert ns2["payload"] == case.wire_bytes - headers
    ns3 = {"timestamps": 1} | peers.ns3_arguments(case)
    assert ns3["payload"] == case.wire_bytes - (54 if ns3["timestamps"] else 42)


@pytest.mark.parametrize("case", peers.cases(), ids=lambda case: case.name)
def test_arguments_are_known_to_the_peers_scripts(case: Case) -> None:
    tcl = (ROOT / "tools/ns_peers/ns2/dumbbell.tcl").read_text(encoding="utf-8")
    cc = (ROOT / "tools/ns_peers/ns3/dumbbell.cc").read_text(encoding="utf-8")
    for name in peers.ns2_arguments(case) if case.algorithm in peers.NS2_AGENT else ():
        assert f"\n    {name} " in tcl
    for name in peers.ns3_arguments(case):
        assert f'{{"{name}", Into(' in cc


def test_only_random_cases_are_repeated() -> None:
    repeated = {case.name for case in peers.cases() if case.is_random}
    assert "NewReno, L=50" not in repeated
    assert {"4 NewReno, L=50", "CUBIC, L=150, loss 0.001"} <= repeated


@pytest.mark.parametrize("case", peers.cases(), ids=lambda case: case.name)
def test_scenario_text_says_what_the_peers_are_told(case: Case) -> None:
    scenario = tomllib.loads(peers.scenario_toml(case))
    bottleneck = scenario["dumbbell"]["bottleneck"]
    told = peers.arguments_of(case.peers[0], case)
    assert scenario["duration_s"] == told["duration"]
    assert scenario["dumbbell"]["access_mbps"] * 1e6 == told["access"]
    assert scenario["dumbbell"]["rtt_ms"] / 1e3 == pytest.approx(told["rtt"])
    assert bottleneck["rate_mbps"] * 1e6 == pytest.approx(told["rate"])
    assert bottleneck["queue"]["packets"] == told["buffer"]
    assert bottleneck.get("loss", {"ratio": 0.0})["ratio"] == told["loss"]
    assert scenario["sender"].get("packet_bytes", 1260) == case.wire_bytes
    assert scenario["flow"][0]["count"] == told["flows"]
    assert scenario["flow"][0].get("params", {}).get("variant", "") == case.rules


def test_our_rows_become_the_peers_quantities() -> None:
    row = {
        "active_s": 10.0,
        "delivered_bytes": 1_260_000,
        "sent_packets": 1010,
        "retransmitted_packets": 10,
        "timeouts": 1,
        "queue_drops": 5,
        "rtt_at_delivery_ms": 166.0,
        "base_rtt_ms": 150.0,
    }
    read = peers.result_of_rows(peers.cases()[1], [row], {"wait_mean_ms": 15.0}, cpu_s=0.001)
    quantities = read.quantities()
    assert read.packets == 1000
    assert quantities["d, ms"] == pytest.approx(16.0)
    assert quantities["queue wait, ms"] == pytest.approx(15.0)
    assert quantities["p"] == pytest.approx(5 / 1010)


def test_missing_ns2_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PeersError, match="apt-get install ns2 libns3-dev g\\+\\+"):
        Simulators().prepare(["ns-2"])


def test_missing_compiler_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "tools/ns_peers", tmp_path / "tools/ns_peers")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PeersError, match="apt-get install ns2 libns3-dev g\\+\\+"):
        Simulators(tmp_path).prepare(["ns-3"])


def test_missing_scripts_are_told_apart_from_missing_peers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/true")
    with pytest.raises(PeersError, match="run from a checkout"):
        Simulators(tmp_path).prepare(["ns-2"])


def test_table_gives_our_ratio_to_ns2_and_dashes_for_what_is_missing() -> None:
    case = peers.cases()[0]
    quantities = {
        "ns-2": result(mbps=2.0).quantities(),
        "ours": result(mbps=3.0).quantities(),
    }
    printed = io.StringIO()
    console = Console(width=120, file=printed)
    console.print(*terminal.sheet(sheets.cases([Row(case, 1, quantities)]), console))
    line = next(part for part in printed.getvalue().splitlines() if "throughput" in part)
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "NewReno, L=5",
        "throughput, Mb/s",
        "2",
        "-",
        "3",
        "1.5",
        "-",
    ]


def test_json_holds_the_case_and_its_numbers(tmp_path: Path) -> None:
    row = Row(peers.cases()[0], 1, {"ns-2": result().quantities()})
    peers_command.write_json([row], tmp_path / "new" / "peers.json")
    (read,) = json.loads((tmp_path / "new" / "peers.json").read_text(encoding="utf-8"))
    assert read["case"]["buffer"] == 5
    assert read["quantities"]["ns-2"]["throughput, Mb/s"] == pytest.approx(1.0)


needs_ns2 = pytest.mark.skipif(shutil.which("ns") is None, reason="needs peers: no ns-2")
needs_ns3 = pytest.mark.skipif(
    shutil.which("g++") is None or not Path("/usr/include/ns3/core-module.h").is_file(),
    reason="needs peers: no headers of ns-3, or no g++",
)


def case_named(name: str) -> Case:
    """The case of this name; with ns-3, which is slow, its first 60 s."""
    case = next(case for case in peers.cases() if case.name == name)
    return replace(case, duration_s=60.0) if case.rules == "ns3" else case


def throughputs(name: str) -> tuple[float, float, float, float]:
    """Throughput in Mb/s and wait in ms of the case's peer, then ours."""
    case = case_named(name)
    (peer,) = case.peers
    found = []
    for result in (Simulators(ROOT).run(peer, case), peers.ours(case)):
        numbers = result.quantities()
        found += [numbers["throughput, Mb/s"], numbers["queue wait, ms"]]
    return found[0], found[1], found[2], found[3]


def test_a_case_with_rules_is_held_against_the_peer_that_has_them() -> None:
    assert case_named("Vegas as ns-3, L=50").peers == ("ns-3",)
    assert case_named("Vegas as Linux, L=50").peers == ("ns-2",)
    assert case_named("CUBIC, L=50").peers == peers.PEERS
    assert case_named("BBR, L=50").peers == ("ns-3",)


BBR = [case for case in peers.cases() if case.algorithm == "bbr"]


@pytest.mark.parametrize("case", BBR, ids=lambda case: case.name)
def test_the_documented_numbers_of_our_bbr_are_what_it_does(case: Case) -> None:
    text = (ROOT / "docs" / "results" / "peers.md").read_text(encoding="utf-8")
    (line,) = [own for own in text.splitlines() if own.startswith(f"| {case.name} |")]
    seeds = range(1, 9) if case.is_random else (1,)
    found = peers.mean_quantities([peers.ours(replace(case, seed=seed)) for seed in seeds])
    printed = [f"{found['throughput, Mb/s']:.3f}", f"{found['queue wait, ms']:.1f}"]
    assert line.split("|")[2].split("/") == [f" {printed[0]} ", f" {printed[1]} "]


@pytest.mark.slow
@needs_ns3
@pytest.mark.parametrize("name", ["BBR, L=50, 50 ms", "BBR, L=600"])
def test_our_bbr_is_near_ns3s_where_nothing_is_dropped_at_random(name: str) -> None:
    theirs, their_wait, mbps, wait = throughputs(name)
    assert mbps == pytest.approx(theirs, rel=0.05)
    assert wait == pytest.approx(their_wait, abs=2.0)


@pytest.mark.slow
@needs_ns3
@pytest.mark.parametrize(
    ("name", "share", "packets"),
    [
        ("Vegas as ns-3, L=50", 0.001, 0.02),
        ("Vegas as ns-3, L=50, 50 ms", 0.001, 0.02),
        ("Hybla as ns-3, L=50", 0.05, 4.0),
        ("Illinois as ns-3, L=50", 0.03, 4.0),
        ("Westwood+ as ns-3, L=50", 0.05, 4.0),
    ],
)
def test_by_ns3s_rules_ours_does_what_ns3_does(name: str, share: float, packets: float) -> None:
    # The first minute holds the start-up, and with it a time-out that only the peer has or has not:
    # a second and a half of 60 are 2.5 %. Ten Mb/s are a packet each ms.
    theirs, their_wait, mbps, wait = throughputs(name)
    assert mbps == pytest.approx(theirs, rel=share)
    assert wait == pytest.approx(their_wait, abs=packets)


@pytest.mark.slow
@needs_ns3
def test_ns3s_own_hybla_is_reno_because_its_ratio_never_leaves_one() -> None:
    case = case_named("Hybla as ns-3, L=50")
    reno, hybla = (
        Simulators(ROOT).run_with("ns-3", peers.ns3_arguments(case) | {"agent": agent})
        for agent in ("TcpNewReno", "TcpHybla")
    )
    rated = Simulators(ROOT).run("ns-3", case)
    reno_drops, hybla_drops, rated_drops = (run.flows[0].drops or 0 for run in (reno, hybla, rated))
    assert abs(hybla_drops - reno_drops) <= 5
    assert rated_drops > 5 * reno_drops


@pytest.mark.slow
@needs_ns2
@pytest.mark.parametrize(
    ("name", "share", "packets"),
    [
        ("Vegas as Linux, L=50", 0.01, 2.1),  # anywhere from two to four packets are in the queue
        ("Illinois as Linux, L=50", 0.01, 1.0),
        ("Westwood+ as Linux, L=50", 0.04, 1.0),  # ns-2 returns to half by slow start at first
        ("Hybla as Linux, L=50, 50 ms", 0.02, 0.5),
    ],
)
def test_by_linuxs_rules_ours_does_what_ns2s_modules_do(
    name: str, share: float, packets: float
) -> None:
    theirs, their_wait, mbps, wait = throughputs(name)
    assert mbps == pytest.approx(theirs, rel=share)
    assert wait == pytest.approx(their_wait, abs=packets)


@needs_ns2
def test_ns2_newreno_times_out_once_in_its_start_up_at_5_packets() -> None:
    case = replace(peers.cases()[0], duration_s=10.5)
    (flow,) = Simulators(ROOT).run("ns-2", case).flows
    assert (flow.sent, flow.drops, flow.timeouts) == (1767, 10, 1)


@needs_ns2
def test_ns2_names_an_argument_it_does_not_know() -> None:
    with pytest.raises(PeersError, match="known: access ack agent"):
        Simulators(ROOT).run_with("ns-2", {"bufer": 5})


@needs_ns2
def test_ns2_repeats_an_on_off_run_for_a_seed() -> None:
    case = replace(peers.cases()[4], duration_s=10.0, seed=3)
    first, second = (Simulators(ROOT).run("ns-2", case).flows for _ in range(2))
    assert first == second


@pytest.mark.slow
@needs_ns3
def test_ns3_recovers_with_sack_without_a_time_out() -> None:
    case = replace(peers.cases()[1], duration_s=10.0)
    (flow,) = Simulators(ROOT).run("ns-3", case).flows
    assert flow.timeouts == 0
    assert flow.drops == flow.retransmits
