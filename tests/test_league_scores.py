"""Scores of a league: what each is computed from, over which networks, and where it is printed."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import leagues
from ackademy.render import report as render
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.runner.measured import Measured
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.studies.league import harm as harm_matrix
from ackademy.studies.league import scores as league_scores
from ackademy.studies.league import suite as league
from ackademy.studies.league import tables as sheets
from ackademy.studies.league.harm import Harm
from ackademy.studies.league.report import Played, report
from test_league import NETWORK, SUITE

ROOT = Path(__file__).parents[1]

GRID = """
[[grid]]
kind = "alone"
paper = "Grid: alone"
seed = 4
networks = 1

[[grid]]
kind = "beside"
paper = "Grid: beside CUBIC"
seed = 3
networks = 1

[[grid]]
kind = "redraw"
paper = "Grid: redrawn"
seed = 1
networks = 1

[pairs]
seed = 5
networks = 1
runs = 1
"""
"""one network of each kind, of small rates"""


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[league.Suite, list[league.Result], list[Harm], Path]:
    """A league with one drawn network of each kind, played."""
    folder = tmp_path_factory.mktemp("scores")
    shutil.copytree(ROOT / "data/scenarios" / "league", folder / "scenarios" / "league")
    path = leagues.write_suite(
        folder, NETWORK, SUITE.replace("[[assumption]]", f"{GRID}\n[[assumption]]")
    )
    suite = league.load(str(path))
    cases = league.scheme_cases(suite, 1)
    met = harm_matrix.pairings(suite)
    runs = folder / "runs"
    cells = [cell for own in cases for cell in own.cells]
    cells += [cell for own in met for cell in own.cells]
    assert not run_cells(cells, runs, local(1), quiet).failures
    return suite, league.results(cases, runs), harm_matrix.measure(met, runs), runs


def test_a_network_of_the_grid_has_four_rounds_and_others_one(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    _, results, _, runs = played
    for own in league_scores.scores(results, runs):
        # Four segments alone; `short` and the redrawn link as a whole; mixed networks have none.
        assert own.rounds == 4 + 2
        assert own.windows == 4
        assert 0.0 <= own.power[0.05] <= own.power[0.1] <= own.power[0.2] <= 1.0
        assert len(own.used) == len(own.rtt_ratio) == 5
        assert list(own.used) == sorted(own.used)
        assert own.rtt_ratio[0] >= 0.99


def test_scores_are_in_every_form_of_the_report(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    suite, results, harms, runs = played
    scores = league_scores.scores(results, runs)
    own = report(Played(suite, results, scores, harms), "ackademy compare")
    text, page = render.text(own), render.page(own)
    for title in (
        "Power and friendliness leagues",
        "Regret against an omniscient flow",
        "Pareto dominance",
        "Learned schemes outside their papers",
        "Response to links redrawn",
        "Harm to others",
        "Harm in throughput",
        "Least regret",
    ):
        assert title in text
        assert title in page


def test_ranking_table_is_the_same_with_and_without_scores(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    suite, results, harms, runs = played
    scores = league_scores.scores(results, runs)
    plain = render.text(report(Played(suite, results)))
    with_scores = render.text(report(Played(suite, results, scores, harms)))
    for part in plain.strip().split("\n\n"):
        assert part in with_scores


def test_every_scheme_meets_every_other_and_its_own_kind(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    _, _, harms, _ = played
    names = ("CUBIC", "RL-TCP")
    assert {(own.by, own.to) for own in harms} == {(a, b) for a in names for b in names}
    for own in harms:
        assert all(0.0 <= value <= 1.0 for value in own.harm.values())
        if own.by == own.to:
            assert own.excess == {"throughput": 0.0, "delay": 0.0, "loss": 0.0}
            assert own.harm["throughput"] == pytest.approx(0.5, abs=0.1)
            assert own.share == pytest.approx(1.0, abs=0.1)


def test_two_flows_of_a_pair_share_one_link(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    _, _, harms, _ = played
    shares = {(own.by, own.to): own.share for own in harms}
    assert 1.5 < shares["CUBIC", "RL-TCP"] + shares["RL-TCP", "CUBIC"] <= 2.01


def result_of(case: league.SchemeCase, share: float, ratio: float) -> league.Result:
    """A result with a share, a round trip, and as much waiting as that."""
    link = case.network.link
    values = {
        f"equal_share:{link}": share,
        "rtt_ratio": ratio,
        "wait_p95_ratio": ratio - 1.0,
        "queue_loss": 0.0,
        "throughput_sum_mbps": 4.0 * share,
        "owd_mean_ms": 10.0 * ratio,
        "delay_mean_ms": 20.0 * (ratio - 1.0),
        "m_e": share,
    }
    estimates = {name: Interval(value, value, value) for name, value in values.items()}
    return league.Result(case, Measured(case.row, (1,), {}, estimates))


@pytest.fixture
def cases(tmp_path: Path) -> list[league.SchemeCase]:
    """CUBIC and RL-TCP on the two networks of the small league, `short` and `mix`."""
    return league.scheme_cases(league.load(str(leagues.write_suite(tmp_path, NETWORK, SUITE))), 1)


def test_regret_is_over_networks_and_compared_with_cubic(
    cases: list[league.SchemeCase], tmp_path: Path
) -> None:
    shares = {
        ("CUBIC", "short"): 1.0,
        ("CUBIC", "mix"): 0.5,
        ("RL-TCP", "short"): 0.5,
        ("RL-TCP", "mix"): 0.0,
    }
    rows = [result_of(own, shares[own.scheme.label, own.network.name], 1.0) for own in cases]
    found = {own.scheme: own for own in league_scores.scores(rows, tmp_path)}
    cubic, rl_tcp = found["CUBIC"].regret, found["RL-TCP"].regret
    assert cubic is not None
    assert rl_tcp is not None
    assert cubic.mean == pytest.approx((0.0 + 0.75) / 2)
    assert cubic.worst == pytest.approx(0.75)
    assert cubic.where == "mix"
    assert rl_tcp.mean == pytest.approx((0.75 + 1.0) / 2)
    assert rl_tcp.beyond_reference.value == pytest.approx((0.75 + 0.25) / 2)
    assert rl_tcp.beyond_reference.method == "Student t"
    assert math.isnan(cubic.p_value)


def test_dominance_counts_networks(cases: list[league.SchemeCase], tmp_path: Path) -> None:
    ratio = {"CUBIC": 3.0, "RL-TCP": 2.0}
    rows = [result_of(own, 0.9, ratio[own.scheme.label]) for own in cases]
    found = {own.scheme: own.dominance for own in league_scores.scores(rows, tmp_path)}
    assert (found["RL-TCP"].on_front, found["CUBIC"].on_front) == (2, 0)
    assert found["RL-TCP"].dominates_most == ("CUBIC", 2)
    assert found["CUBIC"].dominated_most == ("RL-TCP", 2)
    assert found["RL-TCP"].dominates_reference == 2
    assert found["CUBIC"].dominates_most == ("", 0)


def test_learned_scheme_at_home_is_not_counted_elsewhere(
    cases: list[league.SchemeCase], tmp_path: Path
) -> None:
    rows = [result_of(own, 0.5, 1.0) for own in cases]
    found = {own.scheme: own for own in league_scores.scores(rows, tmp_path)}
    away = found["RL-TCP"].away
    assert away is not None
    assert math.isnan(away.home)  # its family is Kong 2018; the networks are Nobody's
    assert away.away == pytest.approx(0.75)
    assert not away.survives
    assert found["CUBIC"].away is None


def test_what_applications_do_not_offer_is_no_regret(
    cases: list[league.SchemeCase], tmp_path: Path
) -> None:
    from dataclasses import replace

    limited = [replace(own, network=replace(own.network, offered_ratio=0.5)) for own in cases]
    assert league_scores.fair_share(result_of(limited[0], 0.5, 1.0)) == 1.0


def test_flow_that_delivers_nothing_has_all_the_regret_there_is(
    cases: list[league.SchemeCase], tmp_path: Path
) -> None:
    rows = [result_of(own, 0.0, math.nan) for own in cases]
    for own in league_scores.scores(rows, tmp_path):
        assert own.regret is not None
        assert own.regret.mean == 1.0
        assert own.regret.utility == pytest.approx(math.log(1000.0))


def test_more_than_the_fair_share_makes_up_for_no_delay(
    cases: list[league.SchemeCase], tmp_path: Path
) -> None:
    fair = league_scores.scores([result_of(own, 1.0, 2.0) for own in cases], tmp_path)
    greedy = league_scores.scores([result_of(own, 3.0, 2.0) for own in cases], tmp_path)
    assert [own.regret for own in fair] == [own.regret for own in greedy]
    assert fair[0].regret is not None
    assert fair[0].regret.mean == pytest.approx(0.5)


def harm_of(by: str, to: str, value: float, excess: float, *, starved: bool = False) -> Harm:
    every = dict.fromkeys(("throughput", "delay", "loss"), value)
    beyond = dict.fromkeys(every, excess)
    return Harm("net", by, to, every, beyond, 1.0 - value, starved)


def test_scheme_passes_if_others_lose_no_more_than_beside_their_own_kind() -> None:
    found = harm_matrix.neighbours(
        [
            harm_of("kind", "rude", 0.3, -0.2),
            harm_of("rude", "kind", 0.9, 0.4, starved=True),
            harm_of("kind", "kind", 0.5, 0.0, starved=True),
            harm_of("rude", "rude", 0.5, 0.0),
        ]
    )
    kind, rude = found
    assert (kind.scheme, kind.passes) == ("kind", True)
    assert (rude.scheme, rude.passes) == ("rude", False)
    assert rude.starves == {"kind": 1}
    assert kind.starved_by == {"rude": 1}
    assert kind.starves == {}
    assert kind.suffered["throughput"] == pytest.approx(0.9)


def test_matrix_marks_whom_a_scheme_starves() -> None:
    own = sheets.matrix([harm_of("a", "a", 0.5, 0.0), harm_of("a", "b", 0.95, 0.45, starved=True)])
    assert [head.label for head in own.heads] == ["a"]
    both = sheets.matrix(
        [
            harm_of("a", "a", 0.5, 0.0),
            harm_of("a", "b", 0.95, 0.45, starved=True),
            harm_of("b", "b", 0.5, 0.0),
        ]
    )
    assert [cell.parts[0].text for cell in both.lines[0].cells] == ["0.50", "0.95!"]
    assert [cell.parts[0].text for cell in both.lines[1].cells] == ["–", "0.50"]


def test_fair_share_is_of_an_equal_part_of_the_link(
    played: tuple[league.Suite, list[league.Result], list[Harm], Path],
) -> None:
    _, results, _, _ = played
    for own in results:
        if own.network == "mix":
            share = own.value("equal_share:bottleneck")
            assert share == pytest.approx(3.0 * own.value("throughput_sum_mbps") / 4.0, rel=0.05)
    assert metric_of("equal_share:data").better == "higher"
