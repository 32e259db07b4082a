"""What holds of the comparison with the peers on points that nobody picked."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from ackademy.console import Console
from ackademy.render import terminal
from ackademy.render.sheet import Part
from ns_peers import drawn as drawn_peers
from ns_peers import peers, sheets
from ns_peers.drawn import SCHEMES, Interval, Recorded, Tolerance
from ns_peers.peers import Case, Flow, PeerResult, PeersError, Simulators

ROOT = Path(__file__).resolve().parents[1]


class FakeSimulators(Simulators):
    """Peers that answer at once, and count how often they are asked."""

    def __init__(self) -> None:
        super().__init__(ROOT)
        self.asked = 0

    def run_with(self, peer: peers.Peer, arguments: object) -> PeerResult:
        """One flow at 1 Mb/s."""
        self.asked += 1
        flow = Flow(
            active_s=10.0,
            delivered_bytes=1_250_000,
            sent=1000,
            retransmits=0,
            timeouts=0,
            drops=2,
            wait_ms=3.0,
        )
        return PeerResult(flows=(flow,), wire_bytes=1250, cpu_s=0.0)


def test_points_depend_on_the_seed_and_the_first_are_those_of_fewer() -> None:
    assert drawn_peers.draw(5, 1) == drawn_peers.draw(9, 1)[:5]
    assert drawn_peers.draw(5, 1) != drawn_peers.draw(5, 2)


def test_points_are_bounded_in_what_they_cost_and_vary_in_everything() -> None:
    points = drawn_peers.draw(100, 3)
    for point in points:
        packets = point.rate_bps * point.duration_s / (8 * point.wire_bytes)
        assert packets <= drawn_peers.PACKETS_MAX
        assert 10.0 <= point.duration_s <= 100.0
        assert point.buffer >= 4
        assert 0.0 <= point.loss <= 1e-2
    assert {point.flows for point in points} == {1, 2, 4}
    assert 20 <= sum(point.loss > 0.0 for point in points) <= 50
    assert len({(point.rate_bps, point.rtt_s, point.buffer) for point in points}) == 100


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.label)
def test_a_drawn_case_is_a_scenario_of_ours_and_known_to_its_peers(
    scheme: drawn_peers.Scheme,
) -> None:
    import ackademy

    tcl = (ROOT / "tools/ns_peers/ns2/dumbbell.tcl").read_text(encoding="utf-8")
    cc = (ROOT / "tools/ns_peers/ns3/dumbbell.cc").read_text(encoding="utf-8")
    for point in drawn_peers.draw(6, 2):
        case = drawn_peers.case_of(point, scheme)
        ackademy.Scenario.parse(peers.scenario_toml(case), "drawn")
        for peer in scheme.peers:
            for name in peers.arguments_of(peer, case):
                known = f"\n    {name} " in tcl if peer == "ns-2" else f'{{"{name}", Into(' in cc
                assert known, f"{peer}: {name}"


def test_an_interval_is_widened_by_the_larger_of_share_and_least() -> None:
    tolerance = Tolerance(0.1, 0.5)
    assert Interval(10.0, 20.0).holds(9.0, tolerance, 1.0)
    assert not Interval(10.0, 20.0).holds(8.9, tolerance, 1.0)
    assert Interval(10.0, 20.0).holds(22.0, tolerance, 1.0)
    assert Interval(1.0, 1.0).holds(0.5, tolerance, 1.0)
    assert not Interval(1.0, 1.0).holds(0.5, tolerance, 0.1)


def test_a_run_that_is_recorded_is_not_repeated(tmp_path: Path) -> None:
    simulators = FakeSimulators()
    case = drawn_peers.case_of(drawn_peers.draw(1, 1)[0], SCHEMES[1])
    for _ in range(2):
        recorded = Recorded(tmp_path / "runs.json", simulators)
        assert recorded.run("ns-2", case)["throughput, Mb/s"] == pytest.approx(1.0)
    assert simulators.asked == 1
    Recorded(tmp_path / "runs.json", simulators).run("ns-2", replace(case, seed=2))
    assert simulators.asked == 2


def test_a_damaged_record_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "runs.json").write_text("{", encoding="utf-8")
    with pytest.raises(PeersError) as caught:
        Recorded(tmp_path / "runs.json", FakeSimulators())
    assert "runs.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_lies_outside_is_listed_with_its_point(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path / "runs.json", FakeSimulators())

    def slow(case: Case) -> PeerResult:
        result = recorded.simulators.run_with("ns-2", {})
        (flow,) = result.flows
        return replace(result, flows=(replace(flow, delivered_bytes=1_000_000),))

    console = Console(width=200, file=io.StringIO())
    rows = drawn_peers.compare(drawn_peers.draw(1, 1), recorded, slow, console)
    assert [row.inside("throughput, Mb/s") for row in rows] == [False] * len(SCHEMES)
    assert all(row.inside("p") and row.inside("queue wait, ms") for row in rows)
    printed = Console(width=200, file=io.StringIO())
    printed.print(*terminal.sheets([sheets.counts(rows), sheets.outside(rows)], printed))
    assert isinstance(printed.file, io.StringIO)
    text = printed.file.getvalue()
    assert text.count("throughput, Mb/s") == len(SCHEMES)
    point = Part(drawn_peers.describe(rows[0].case))
    assert [line.names[0] for line in sheets.outside(rows).lines] == [point] * len(SCHEMES)
    out = tmp_path / "record.txt"
    drawn_peers.write_record(rows, 1, out)
    lines = out.read_text(encoding="utf-8").splitlines()[2:]
    assert [line.split("|")[0] for line in lines] == [row.scheme for row in rows]
    assert all(line.endswith("|1|1|3|3|0.002|0.002") for line in lines)
