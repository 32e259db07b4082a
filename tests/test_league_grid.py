"""Drawn networks of a league: the grids' sizes, thinning by seed, and schedules."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import leagues
from ackademy import ExperimentError
from ackademy.studies.league import grid as league_grid
from ackademy.studies.league import suite as league
from ackademy.toml_table import TomlTable

ROOT = Path(__file__).parents[1]


def grid(**fields: object) -> TomlTable:
    return TomlTable({"paper": "Grid", "seed": 1, **fields}, "suite.toml: grid[0]")


def test_the_power_league_s_grid_has_660_networks_and_no_rate_above_its_largest() -> None:
    full = league_grid.alone_grid()
    assert len({own.name for own in full}) == 660
    assert max(rate for own in full for _, rate in own.rates_mbps) == 192.0
    steps = {own.rates_mbps[-1][1] / own.rates_mbps[0][1] for own in full}
    assert steps == {0.25, 0.5, 1.0, 2.0, 4.0}


def test_the_friendliness_league_s_grid_has_100_networks_beside_cubic() -> None:
    full = league_grid.beside_grid()
    assert len({own.name for own in full}) == 100
    assert {own.flows for own in full} == {"flow"}


def test_thinning_depends_on_the_seed_and_a_larger_part_holds_the_smaller() -> None:
    full = league_grid.alone_grid()
    ten = [own.name for own in league_grid.thinned(full, 1, 10)]
    twenty = [own.name for own in league_grid.thinned(full, 1, 20)]
    assert len(set(ten)) == 10
    assert set(ten) < set(twenty)
    assert ten != [own.name for own in league_grid.thinned(full, 2, 10)]
    places = [own.name for own in full]
    assert sorted(ten, key=places.index) == ten


def test_a_thinner_league_runs_some_of_the_same_networks() -> None:
    path = str(ROOT / "data/suites" / "all.toml")
    full, tenth = league.load(path), league.load(path, 10)
    listed = [own for own in full.networks if not own.role]
    assert [own for own in tenth.networks if not own.role] == listed
    drawn, kept = ({own.name for own in suite.networks if own.role} for suite in (full, tenth))
    assert kept < drawn
    assert (len(drawn), len(kept)) == (132 + 24 + 20, 14 + 3 + 2)
    assert full.pairs is not None
    assert tenth.pairs is not None
    assert set(own.name for own in tenth.pairs.networks) < {own.name for own in full.pairs.networks}


def test_buffers_are_in_products_of_the_first_rate_and_hold_four_packets() -> None:
    full = {own.name: own for own in league_grid.alone_grid()}
    assert full["24 Mb/s, 40 ms, 2 BDP, × 4"].overrides["link.0.queue.packets"] == "160"
    assert full["12 Mb/s, 10 ms, 0.5 BDP"].overrides["link.0.queue.packets"] == "5"
    # 160 packets of 1500 bytes at 96 Mb/s, the rate from 7 s on
    assert full["24 Mb/s, 40 ms, 2 BDP, × 4"].full_delay_ms == pytest.approx(20.0)


def test_redrawn_links_stay_in_their_ranges_and_differ() -> None:
    first, second = league_grid.drawn(grid(kind="redraw", networks=2))
    assert len(first.rates_mbps) == len(first.rtts_ms) == 30
    assert all(1.0 <= rate <= 100.0 for _, rate in first.rates_mbps)
    assert all(20.0 <= rtt <= 200.0 for _, rtt in first.rtts_ms)
    assert first.rates_mbps != second.rates_mbps
    assert league_grid.drawn(grid(kind="redraw", networks=1)) == [first]
    rates = np.array([rate for _, rate in (*first.rates_mbps, *second.rates_mbps)])
    assert 35.0 < rates.mean() < 65.0


def test_mean_of_a_schedule_weighs_by_time() -> None:
    schedule = ((0.0, 10.0), (7.0, 30.0))
    assert league_grid.mean_between(schedule, 3.0, 10.0) == pytest.approx((40.0 + 90.0) / 7.0)
    assert league_grid.mean_between(schedule, 10.0, 17.0) == 30.0
    assert league_grid.value_at(schedule, 7.0) == 30.0
    assert league_grid.value_at(schedule, 6.9) == 10.0
    assert math.isnan(league_grid.value_at(((1.0, 2.0),), 0.5))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"kind": "far", "networks": 1}, "kind = 'far': allowed: alone, beside, redraw"),
        ({"kind": "alone", "networks": 661}, "networks = 661: allowed: .* from 1 to 660"),
        ({"kind": "alone", "networks": 0}, "networks = 0: allowed"),
        ({"kind": "alone", "networks": 1, "rate": 3}, "rate = 3: allowed: no such key"),
    ],
)
def test_wrong_field_of_a_grid_is_one_line(fields: dict[str, object], line: str) -> None:
    with pytest.raises(ExperimentError, match=line):
        league_grid.drawn(grid(**fields))


def test_the_league_of_all_has_the_papers_networks_and_the_papers_schemes() -> None:
    papers = league.load(str(ROOT / "data/suites" / "papers.toml"))
    everyone = league.load(str(ROOT / "data/suites" / "all.toml"))
    assert everyone.networks[: len(papers.networks)] == papers.networks
    assert everyone.schemes[: len(papers.schemes)] == papers.schemes
    assert {own.source for own in everyone.networks} >= {"Xiao 2019", "Kong 2018", "Grid", "ECN"}


def test_the_league_of_all_has_scenarios_and_controllers_that_exist() -> None:
    everyone = league.load(str(ROOT / "data/suites" / "all.toml"))
    for case in league.scheme_cases(everyone, 1):
        resolved = case.cells[0].scenario().canonical()
        assert 'recovery = "sack"' in resolved
        if case.network.role:
            assert case.cells[0].sample_interval_ms > 0.0


def test_only_a_scheme_that_says_so_reads_marks_exactly_and_only_where_there_are_some() -> None:
    everyone = league.load(str(ROOT / "data/suites" / "all.toml"))
    for case in league.scheme_cases(everyone, 1):
        has_marks = case.network.source == "ECN"
        resolved = case.cells[0].scenario().canonical()
        assert ('ecn = "accurate"' in resolved) is (has_marks and case.scheme.ecn == "accurate")
        assert ('ecn = "classic"' in resolved) is (has_marks and not case.scheme.ecn)


def test_a_suite_of_one_s_own_draws_networks_wherever_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    grid = '[[grid]]\nkind = "alone"\npaper = "Grid"\nseed = 1\nnetworks = 1\n'
    path.write_text(leagues.head("One network.") + leagues.scheme("CUBIC", "cubic", "a") + grid)
    (case,) = league.scheme_cases(league.load(str(path)), 1)
    assert case.network.scenario.name == "link.toml"
    assert case.cells[0].scenario().duration_s == 30.0
    assert league.scheme_cases(league.load(str(path)), 1, "kernel") == []


def test_a_suite_extends_one_that_extends_none(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('title = "a"\nextends = "a.toml"\n')
    with pytest.raises(ExperimentError, match=r"extends = 'a\.toml': allowed: a suite in the same"):
        league.load(str(tmp_path / "a.toml"))
    (tmp_path / "b.toml").write_text('title = "b"\nextends = "no.toml"\n')
    with pytest.raises(ExperimentError, match=r"extends = 'no\.toml'"):
        league.load(str(tmp_path / "b.toml"))
