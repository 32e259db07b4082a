"""The league: one sender under every scheme, honest winners, and a page with all of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import leagues
from ackademy import ExperimentError
from ackademy.render import report as render
from ackademy.runner.measured import Measured
from ackademy.stats.formulas import pooled_loss
from ackademy.stats.intervals import Interval
from ackademy.stats.metric import Metric
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import RunTables
from ackademy.studies.league import grid
from ackademy.studies.league import ranking as leaderboard
from ackademy.studies.league import suite as league
from ackademy.studies.league.report import Played, report

ROOT = Path(__file__).parents[1]

NETWORK = """\
duration_s = 3
[dumbbell]
rtt_ms = 20
[dumbbell.bottleneck]
rate_mbps = 4
queue = { kind = "drop_tail", packets = 10 }
[sender]
recovery = "ns2"
[[flow]]
name = "learner"
[[flow]]
name = "reno"
count = 2
start_spread_s = 0.1
"""

SUITE = "".join(
    [
        leagues.head("Two networks."),
        "packet_bytes = 1000\n",
        leagues.scheme("CUBIC", "cubic", "baseline"),
        leagues.scheme("Kernel CUBIC", "kernel:cubic", "Linux"),
        leagues.scheme(
            "RL-TCP", "rl_tcp", "Kong 2018", learns=True, more="params = { delta1 = 0.2 }\n"
        ),
        leagues.network(
            "short",
            "Ten packets of buffer",
            "Nobody 2018",
            20,
            more="learner_params = { buffer_packets = 10 }\n"
            "params = { RL-TCP = { delta1 = 0.4 } }\n",
        ),
        leagues.network(
            "mix",
            "One among NewReno",
            "Nobody 2018",
            80,
            settings='set = { "dumbbell.bottleneck.queue.packets" = 40, '
            '"sender.packet_bytes" = 1200 }\n',
            more='flows = "learner"\n',
        ),
        '\n[[assumption]]\norigin = "proposed"\ntext = "All of it."\n',
    ]
)


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    """A small league."""
    return leagues.write_suite(tmp_path, NETWORK, SUITE)


@pytest.fixture
def results(suite_file: Path, tmp_path: Path) -> list[league.Result]:
    """The small league, played."""
    return leagues.played(suite_file, tmp_path / "runs")


def test_one_sender_is_under_every_scheme_and_a_network_may_size_its_packets(
    suite_file: Path,
) -> None:
    for scheme_case in league.scheme_cases(league.load(str(suite_file)), 1):
        resolved = scheme_case.cells[0].scenario().canonical()
        assert 'recovery = "sack"' in resolved
        size = 1000 if scheme_case.network.name == "short" else 1200
        assert f"packet_bytes = {size}" in resolved


def test_network_s_settings_of_a_scheme_win_over_its_own(suite_file: Path) -> None:
    found = league.scheme_cases(league.load(str(suite_file)), 1)
    params = {
        (scheme_case.network.name, scheme_case.scheme.label): dict(
            scheme_case.cells[0].assignments[0].params
        )
        for scheme_case in found
    }
    assert params["short", "RL-TCP"] == {"buffer_packets": 10, "delta1": 0.4}
    assert params["mix", "RL-TCP"] == {"delta1": 0.2}
    assert params["short", "CUBIC"] == {}


def test_kernel_s_own_controllers_play_on_the_kernel_only(suite_file: Path) -> None:
    suite = league.load(str(suite_file))
    simulated = {scheme_case.scheme.label for scheme_case in league.scheme_cases(suite, 1)}
    assert simulated == {"CUBIC", "RL-TCP"}
    emulated = league.scheme_cases(suite, 1, "kernel")
    assert {scheme_case.scheme.label for scheme_case in emulated} == {
        "CUBIC",
        "Kernel CUBIC",
        "RL-TCP",
    }
    assert dict(emulated[0].cells[0].overrides)["duration_s"] == "1.0"


def test_in_a_mixed_network_only_the_named_flows_are_the_scheme_s(
    results: list[league.Result],
) -> None:
    mix = next(r for r in results if (r.network, r.scheme) == ("mix", "RL-TCP"))
    controllers = mix.scheme_case.cells[0].scenario().controllers
    assert controllers == ["rl_tcp", "new_reno", "new_reno"]
    assert mix.value("throughput_mean_mbps") < 0.9 * 4 * mix.value("utilisation")
    assert 1 / 3 <= mix.value("jain_throughput:*") < 1.0
    everyone = 4 * mix.value("utilisation") / 3
    assert mix.value("throughput_share") == pytest.approx(
        mix.value("throughput_mean_mbps") / everyone, rel=0.1
    )


def result_of(scheme_case: league.SchemeCase, **values: tuple[float, float]) -> league.Result:
    """A result with made-up values and half widths of intervals."""
    plain = {
        "throughput_mean_mbps": (1.0, 0.0),
        "delay_p50_ms": (1.0, 0.0),
        "loss": (0.0, 0.0),
    }
    plain |= {"jain_throughput:*": (1.0, 0.0), **values}
    estimates = {key: Interval(v, v - half, v + half) for key, (v, half) in plain.items()}
    return league.Result(scheme_case, Measured(scheme_case.row, (1, 2), {}, estimates))


def test_wins_are_shared_where_intervals_overlap(suite_file: Path) -> None:
    first, second, *_ = league.scheme_cases(league.load(str(suite_file)), 1)
    clear = [result_of(first, m_e=(2.0, 0.1)), result_of(second, m_e=(1.5, 0.1))]
    assert [r.scheme for r in leaderboard.leaders(clear)] == ["CUBIC"]
    close = [result_of(first, m_e=(2.0, 0.1)), result_of(second, m_e=(1.85, 0.1))]
    assert [r.scheme for r in leaderboard.leaders(close)] == ["CUBIC", "RL-TCP"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"throughput_mean_mbps": (0.4, 0.0)}, "starves"),
        ({"delay_p50_ms": (16.0, 0.0)}, "fills the buffer"),
        ({"jain_throughput:*": (0.8, 0.0)}, "unfair"),
        ({"loss": (0.05, 0.0)}, "loses"),
    ],
)
def test_each_way_to_break_is_named(
    suite_file: Path, values: dict[str, tuple[float, float]], kind: str
) -> None:
    first, second, *_ = league.scheme_cases(league.load(str(suite_file)), 1)
    rows = [result_of(first, m_e=(2.0, 0.1)), result_of(second, m_e=(1.0, 0.1), **values)]
    best, worst = leaderboard.rankings(rows)
    assert [breakage.kind for breakage in worst.breakages] == [kind]
    assert best.breakages == ()
    assert worst.worst[0] == "short"
    assert worst.worst[1] == pytest.approx(1.0)
    assert (best.mean_rank, worst.mean_rank) == (1.0, 2.0)


def test_page_has_every_network_and_scheme(suite_file: Path, results: list[league.Result]) -> None:
    page = render.page(report(Played(league.load(str(suite_file)), results), "ackademy compare"))
    for text in ("Ten packets of buffer", "One among NewReno", "RL-TCP", "CUBIC", "All of it."):
        assert text in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_document_s_tables_have_every_scheme_and_network(
    suite_file: Path, results: list[league.Result]
) -> None:
    text = render.text(report(Played(league.load(str(suite_file)), results), "ackademy compare"))
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()]
    assert {"RL-TCP", "CUBIC", "short", "mix"} <= set(rows)


def test_equal_figures_of_merit_share_a_rank(suite_file: Path) -> None:
    first, second, *_ = league.scheme_cases(league.load(str(suite_file)), 1)
    table = leaderboard.rankings(
        [result_of(first, m_e=(2.0, 0.0)), result_of(second, m_e=(2.0, 0.0))]
    )
    assert [ranking.mean_rank for ranking in table] == [1.0, 1.0]


@pytest.mark.parametrize("network", ["short", "mix"])
def test_a_scheme_that_delivers_nothing_is_last_and_starves(suite_file: Path, network: str) -> None:
    first, second = league.scheme_cases(league.load(str(suite_file)), 1, only=network)
    nothing = {
        "m_e": (math.nan, math.nan),
        "throughput_mean_mbps": (0.0, 0.0),
        "delay_p50_ms": (math.nan, math.nan),
        "throughput_share": (0.0, 0.0),
    }
    rows = [
        result_of(first, **nothing),
        result_of(second, m_e=(-1.0, 0.1), throughput_share=(1.0, 0.0)),
    ]
    best, last = leaderboard.rankings(rows)
    assert (best.scheme.label, best.wins) == ("RL-TCP", (network,))
    assert (last.scheme.label, last.mean_rank, last.wins) == ("CUBIC", 2.0, ())
    assert last.worst == (network, math.inf)
    assert [breakage.kind for breakage in last.breakages] == ["starves"]


def test_where_nobody_delivers_nobody_leads(suite_file: Path) -> None:
    rows = [
        result_of(scheme_case, m_e=(math.nan, math.nan))
        for scheme_case in league.scheme_cases(league.load(str(suite_file)), 1, only="short")
    ]
    assert leaderboard.leaders(rows) == []


def test_a_paper_of_many_networks_weighs_no_more_in_the_rank_than_one_of_few(
    suite_file: Path,
) -> None:
    extra = SUITE.replace('paper = "Nobody 2018"', 'paper = "Nobody 2018: short"', 1)
    third = leagues.network("third", "Another's", "Somebody 2019", 20, more="learner_params = {}\n")
    suite_file.write_text(extra.replace("[[assumption]]", f"{third}\n[[assumption]]"))
    found = league.scheme_cases(league.load(str(suite_file)), 1)
    merit = {"CUBIC": {"short": 2.0, "mix": 2.0, "third": 1.0}, "RL-TCP": {}}
    rows = [
        result_of(
            scheme_case,
            m_e=(merit[scheme_case.scheme.label].get(scheme_case.network.name, 1.5), 0.0),
            throughput_share=(1.0, 0.0),
        )
        for scheme_case in found
    ]
    assert [ranking.mean_rank for ranking in leaderboard.rankings(rows)] == [1.5, 1.5]


def test_interval_of_a_figure_of_merit_covers_what_it_says_with_five_runs() -> None:
    rng = np.random.default_rng(1)
    metric = Metric("", "", "", lambda runs: float(np.log(runs.mean())))
    draws = np.exp(rng.normal(0.0, 0.3, (500, 5, 1)))
    hits = sum(metric.estimate(runs).contains(0.3**2 / 2) for runs in draws)
    assert 0.92 <= hits / 500 <= 0.98


def test_setting_that_is_neither_number_nor_text_is_one_line(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace("params = { delta1 = 0.2 }", "params = { delta1 = [1] }"))
    line = r"scheme\[2\]: params: delta1 = \[1\]: allowed: a number or a text$"
    with pytest.raises(ExperimentError, match=line) as error:
        league.load(str(suite_file))
    assert "\n" not in str(error.value)


def test_unknown_network_lists_the_known_ones(suite_file: Path) -> None:
    with pytest.raises(ExperimentError, match=r"network 'long': allowed: short, mix"):
        league.scheme_cases(league.load(str(suite_file)), 1, only="long")


def test_settings_for_a_scheme_that_does_not_play_are_refused(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace("{ RL-TCP = { delta1 = 0.4 } }", "{ Vegas = {} }"))
    with pytest.raises(ExperimentError, match=r"params = 'Vegas': allowed: CUBIC, Kernel CUBIC"):
        league.load(str(suite_file))


def test_the_papers_league_names_scenarios_controllers_and_links_that_exist() -> None:
    suite = league.load(str(ROOT / "data/suites" / "papers.toml"))
    for scheme_case in league.scheme_cases(suite, 1):
        resolved = scheme_case.cells[0].scenario().canonical()
        assert 'recovery = "sack"' in resolved


def test_the_papers_league_counts_packets_by_size_for_all_but_the_row_that_says_otherwise() -> None:
    suite = league.load(str(ROOT / "data/suites" / "papers.toml"))
    for scheme_case in league.scheme_cases(suite, 1):
        own = {"mss_bytes", "on_timeout"} & dict(scheme_case.cells[0].assignments[0].params).keys()
        assert bool(own) == (scheme_case.scheme.label == "LearningCC (as run)")


def test_the_papers_league_takes_lp_tcp_s_thresholds_from_the_policies() -> None:
    suite = league.load(str(ROOT / "data/suites" / "papers.toml"))
    lp_tcp = [
        scheme_case
        for scheme_case in league.scheme_cases(suite, 1)
        if scheme_case.scheme.label == "LP-TCP"
    ]
    assert len(lp_tcp) == len(suite.networks)
    assert all("threshold" not in dict(m.cells[0].assignments[0].params) for m in lp_tcp)


def test_loss_is_one_number_in_every_table() -> None:
    flows = pl.DataFrame(
        {"flow": ["a", "b"], "sent_packets": [1000, 10], "dropped_packets": [10, 5]}
    )
    tables = RunTables(flows, flows.clear(), flows.clear(), "*")
    assert metric_of("loss").extract(tables).item() == pytest.approx(15 / 1010)
    assert pooled_loss(flows) == pytest.approx(15 / 1010)
    assert "loss" in grid.SHOWN
    assert "loss_ratio" not in grid.SHOWN


def test_the_league_s_estimates_are_a_results_table(results: list[league.Result]) -> None:
    found = league.tables(results)
    mix = found.estimates.filter(scenario="mix", scheme="RL-TCP")
    assert set(mix["group"]) == {"Nobody 2018"}
    assert {"m_e", "throughput_share", "utilisation:bottleneck"} <= set(mix["metric"])
    own = next(r for r in results if (r.network, r.scheme) == ("mix", "RL-TCP"))
    assert mix.filter(metric="throughput_share")["estimate"].item() == own.value(grid.SHARE)
