"""The BDP oracle of a league: what it is told, where it runs, and what is measured against it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

import leagues
from ackademy._core import Ack, Flow
from ackademy.render import report as render
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.studies.league import scores as league_scores
from ackademy.studies.league import suite as league
from ackademy.studies.league.bdp_oracle import BdpOracle
from ackademy.studies.league.report import Played, report
from test_league import NETWORK, SUITE
from test_league_scores import GRID

ROOT = Path(__file__).parents[1]


class Told:
    """What a flow is told: 12 Mb/s over 40 ms, and 24 Mb/s over 20 ms from second 7."""

    mss_bytes = 1500

    def __init__(self, flows: float) -> None:
        self.params = {"rates_mbps": "0:12 7.0:24", "rtts_ms": "0:40 7.0:20", "flows": flows}


class At:
    """An acknowledgement of which only the time counts."""

    def __init__(self, now_s: float) -> None:
        self.now_ns = int(now_s * 1e9)


@pytest.mark.parametrize(
    ("flows", "now_s", "packets", "mbps"),
    [
        (1.0, 6.9, 41, 12.0),  # 40 on the way and one on the wire
        (1.0, 7.0, 41, 24.0),
        (2.0, 6.9, 21, 6.0),  # half of 41, in whole packets
        (100.0, 6.9, 1, 0.12),  # never below one
    ],
)
def test_the_window_is_what_the_path_holds_and_the_rate_a_part_of_the_links(
    flows: float, now_s: float, packets: int, mbps: float
) -> None:
    oracle = BdpOracle(cast("Flow", Told(flows)))
    oracle.on_ack(cast("Ack", At(now_s)))
    assert oracle.cwnd_bytes == 1500.0 * packets
    assert oracle.pacing_bps == pytest.approx(1e6 * mbps)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> league.Suite:
    """A league with one drawn network of each kind."""
    folder = tmp_path_factory.mktemp("oracle")
    shutil.copytree(ROOT / "data/scenarios" / "league", folder / "scenarios" / "league")
    text = SUITE.replace("[[assumption]]", f"{GRID}\n[[assumption]]")
    return league.load(str(leagues.write_suite(folder, NETWORK, text)))


def test_it_runs_where_a_flow_is_alone_and_the_path_is_known(suite: league.Suite) -> None:
    found = league.oracle_cases(suite, 2)
    assert [own.network.role for own in found] == ["alone", "redraw"]
    assert all(len(own.cells) == 2 for own in found)
    assert league.oracle_cases(suite, 2, only="short") == []


def test_it_has_its_share_without_a_queue_and_schemes_are_measured_against_it(
    suite: league.Suite, tmp_path: Path
) -> None:
    alone = tuple(own for own in suite.networks if own.role == "alone")
    suite = replace(suite, networks=alone)
    played = league.scheme_cases(suite, 1)
    told = league.oracle_cases(suite, 1)
    cells = [cell for own in (*played, *told) for cell in own.cells]
    assert not run_cells(cells, tmp_path, local(1), quiet).failures
    results, oracle = league.results(played, tmp_path), league.results(told, tmp_path)
    assert league_scores.fair_share(oracle[0]) > 0.98
    assert oracle[0].value("rtt_ratio") < 1.1
    assert all(own.oracle is None for own in league_scores.scores(results, tmp_path))
    found = league_scores.scores(results, tmp_path, oracle)
    for own in found:
        assert own.oracle is not None
        assert own.oracle.networks == 1
        assert own.oracle.mean == own.oracle.worst <= 1.0
        assert own.oracle.where == alone[0].name
    assert "Regret against the BDP oracle" in render.text(report(Played(suite, results, found)))
    itself = league_scores.scores(oracle, tmp_path, oracle)
    assert itself[0].oracle is not None
    assert itself[0].oracle.mean == pytest.approx(0.0)
