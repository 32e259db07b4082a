"""Harm in completion time: which transfers count, and what a bulk flow does to them."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import polars as pl
import pytest

import leagues
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.studies.league import harm as harm_matrix
from ackademy.studies.league import suite as league
from ackademy.studies.league import tables as league_tables
from ackademy.studies.league.harm import COMPLETION
from test_league import NETWORK

ROOT = Path(__file__).parents[1]
SUITE = "".join(
    [
        leagues.head("One network."),
        leagues.scheme("CUBIC", "cubic", "baseline"),
        leagues.scheme("LEDBAT++", "ledbat_plus_plus", "IRTF draft"),
        leagues.network("short", "Ten packets of buffer", "Nobody 2018", 20),
        "\n[pairs]\nseed = 5\nnetworks = 1\nruns = 1\ntransfers = true\n",
    ]
)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("second_0", 20.0, 1, 50.0), ("second_1", 30.0, 1, 70.0)], 50.0),
        ([("second_0", 20.0, 1, 50.0), ("second_1", 30.0, 0, 0.0), ("second_2", 30.0, 0, 0.0)],
         math.inf),
        ([("second_0", 5.0, 1, 50.0), ("second_1", 55.0, 0, 0.0), ("first", 0.0, 0, 0.0)],
         math.nan),
    ],
    ids=["the lower of two", "most do not finish", "none starts in the middle"],
)  # fmt: skip
def test_the_completion_time_is_the_median_of_transfers_that_start_in_the_middle(
    rows: list[tuple[str, float, int, float]], expected: float
) -> None:
    table = pl.DataFrame(rows, ["flow", "start_s", "transfers", "fct_mean_ms"], orient="row")
    found = harm_matrix.completion_ms(table, 60.0)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_transfers_wait_longer_beside_cubic_than_beside_a_scavenger(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data/scenarios" / "league", tmp_path / "scenarios" / "league")
    suite = league.load(str(leagues.write_suite(tmp_path, NETWORK, SUITE)))
    met, short = harm_matrix.pairings(suite), harm_matrix.transfers(suite)
    assert len(short) == 2 * 3
    cells = [cell for own in met for cell in own.cells]
    cells += [cell for own in short for cell in own.cells]
    assert not run_cells(cells, tmp_path / "runs", local(2), quiet).failures
    plain = harm_matrix.measure(met, tmp_path / "runs")
    assert all(COMPLETION not in own.harm for own in plain)
    harms = harm_matrix.measure(met, tmp_path / "runs", short)
    by_pair = {(own.by, own.to): own for own in harms}
    cubic, scavenger = (by_pair[name, "CUBIC"] for name in ("CUBIC", "LEDBAT++"))
    assert 0.0 <= scavenger.harm[COMPLETION] < cubic.harm[COMPLETION] < 1.0
    assert cubic.excess[COMPLETION] == 0.0
    assert scavenger.excess[COMPLETION] < 0.0
    heads = [head.label for own in league_tables.sheets([], harms) for head in own.heads]
    assert "to completion" in heads


def test_a_suite_without_transfers_runs_none(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data/scenarios" / "league", tmp_path / "scenarios" / "league")
    text = SUITE.replace("transfers = true\n", "")
    suite = league.load(str(leagues.write_suite(tmp_path, NETWORK, text)))
    assert harm_matrix.pairings(suite) != []
    assert harm_matrix.transfers(suite) == []
