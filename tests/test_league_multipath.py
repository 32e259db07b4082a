"""The league by connection: subflows are summed, and a league by flow is not touched."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

import leagues
from ackademy import ExperimentError
from ackademy.render import report as render
from ackademy.runner import experiments
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import RunTables, per_connection
from ackademy.studies.league import grid
from ackademy.studies.league import ranking as leaderboard
from ackademy.studies.league import suite as league
from ackademy.studies.league.report import Played, report

ROOT = Path(__file__).parents[1]

NETWORK = """\
duration_s = 60
[dumbbell]
rtt_ms = 40
access_mbps = 100
[dumbbell.bottleneck]
rate_mbps = 20
queue = { kind = "drop_tail", packets = 100 }
[[flow]]
name = "multipath"
controller = "new_reno"
mptcp = { subflow = [{}, {}] }
[[flow]]
name = "tcp"
controller = "new_reno"
"""

SUITE = "".join(
    [
        leagues.head("One network.", 'by = "connection"'),
        leagues.scheme("NewReno", "new_reno", "baseline"),
        leagues.scheme("LIA", "lia", "RFC 6356"),
        leagues.network(
            "shared", "One bottleneck", "Nobody 2019", 60, more='flows = "multipath"\n'
        ),
    ]
)


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    """A small league by connection."""
    return leagues.write_suite(tmp_path, NETWORK, SUITE)


def tables_of(
    delivered: tuple[int, int, int],
    chosen: tuple[bool, bool, bool],
    second_ms: float | None = 50.0,
) -> RunTables:
    """A connection of two subflows before a plain flow, with made-up numbers."""
    flows = pl.DataFrame(
        {
            "flow": ["a.0", "a.1", "tcp"],
            "received_packets": delivered,
            "delay_ms": [10.0, second_ms if delivered[1] else math.nan, 30.0],
            "base_rtt_ms": [20.0, 100.0, 40.0],
        }
    )
    connections = pl.DataFrame(
        {"connection": ["a", "tcp"], "subflows": [2, 1], "goodput_mbps": [4.0, 1.0]}
    )
    return RunTables(flows, flows.clear(), flows.clear(), chosen, 10.0, connections)


def test_delay_of_a_connection_is_that_of_its_packets_on_whatever_subflow() -> None:
    both = per_connection(tables_of((300, 100, 50), (True, True, False)))
    assert both == pytest.approx([4.0, 20.0, 40.0, 2.5])
    idle = per_connection(tables_of((300, 0, 50), (True, True, False)))
    assert idle == pytest.approx([4.0, 10.0, 20.0, 2.5])


@pytest.mark.parametrize("unknown_ms", [None, math.nan])
def test_a_subflow_of_unknown_delay_does_not_hide_that_of_the_others(
    unknown_ms: float | None,
) -> None:
    tables = tables_of((300, 100, 50), (True, True, False), unknown_ms)
    assert per_connection(tables) == pytest.approx([4.0, 10.0, 40.0, 2.5])


def test_merit_power_and_share_of_connections_follow_their_definitions() -> None:
    sample = per_connection(tables_of((300, 100, 50), (True, True, False)))
    assert metric_of("connection_m_e").of_run(sample) == pytest.approx(
        math.log(4.0) - 0.1 * math.log(20.0)
    )
    assert metric_of("connection_power").of_run(sample) == pytest.approx(4.0 / 0.060)
    assert metric_of("connection_share").of_run(sample) == pytest.approx(1.6)
    nothing = per_connection(tables_of((0, 0, 50), (True, True, False)))
    assert math.isnan(metric_of("connection_m_e").of_run(nothing))


def test_a_run_without_subflows_has_no_numbers_of_connections() -> None:
    flows = tables_of((1, 1, 1), (True, True, True)).flows
    plain = RunTables(flows, flows.clear(), flows.clear(), "*")
    with pytest.raises(ExperimentError, match="allowed: only where one has several subflows"):
        per_connection(plain)


def test_a_league_by_connection_reads_the_table_of_connections(
    suite_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    for own in leagues.played(suite_file, folder):
        rows = [experiments.connections(folder, cell) for cell in own.scheme_case.cells]
        goodput = [
            row.filter(pl.col("connection") == "multipath")["goodput_mbps"].item()
            for row in rows
            if row is not None
        ]
        everyone = [row["goodput_mbps"].mean() for row in rows if row is not None]
        assert len(goodput) == 2
        assert own.value("throughput_mean_mbps") == pytest.approx(sum(goodput) / 2)
        share = sum(goodput) / sum(float(str(value)) for value in everyone)
        assert own.value(grid.SHARE) == pytest.approx(share)
        assert own.merit == own.value("m_e") != -math.inf


def test_two_uncoupled_subflows_are_judged_as_one_connection_with_two_shares(
    suite_file: Path, tmp_path: Path
) -> None:
    reno, lia = leagues.played(suite_file, tmp_path / "runs")
    assert reno.value(grid.SHARE) > 1.2 > lia.value(grid.SHARE)
    assert reno.value(grid.JAIN) < lia.value(grid.JAIN)
    table = leaderboard.rankings([reno, lia])
    assert {ranking.scheme.label for ranking in table} == {"NewReno", "LIA"}


def test_reports_of_a_league_by_connection_say_so(suite_file: Path, tmp_path: Path) -> None:
    found = leagues.played(suite_file, tmp_path / "runs")
    own = report(Played(league.load(str(suite_file)), found), "ackademy compare")
    page = render.page(own)
    assert "goodput per connection, Mb/s" in page
    assert "throughput per flow, Mb/s" not in page
    assert "goodput of a connection, Mb/s" in render.text(own)


def test_what_a_league_may_be_by_is_flow_or_connection(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace('"connection"', '"subflow"'))
    with pytest.raises(ExperimentError, match=r"by = 'subflow': allowed: flow, connection$"):
        league.load(str(suite_file))


def test_the_papers_league_keeps_its_metrics_of_flows() -> None:
    for network in league.load(str(ROOT / "data/suites" / "papers.toml")).networks:
        for column in (*network.shown, "delay_mean_ms"):
            expected = f"utilisation:{network.link}" if column == "utilisation" else column
            assert network.metric(column) == expected


def test_every_network_of_the_multipath_league_has_several_subflows() -> None:
    suite = league.load(str(ROOT / "data/suites" / "multipath.toml"))
    assert {network.by for network in suite.networks} == {"connection"}
    for own in league.scheme_cases(suite, 1):
        scenario = own.cells[0].scenario()
        resolved = scenario.canonical()
        assert 'recovery = "sack"' in resolved
        assert "multipath = true" in resolved or "subflow" in resolved
        policy = dict(own.cells[0].assignments[0].params).get("policy")
        assert (policy is not None) == (own.scheme.label == "DRL-CC")
        assert policy is None or (Path(str(policy)) / "policy.toml").is_file()
