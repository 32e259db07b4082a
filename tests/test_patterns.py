"""One pattern match, the core's, wherever a name is chosen by a pattern."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ackademy import _core
from ackademy.backends import entries, schemes
from ackademy.backends.runs import simulate
from ackademy.runner import cases
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_metrics import measure
from ackademy.stats.run_tables import RunTables, per_flow
from ackademy.studies.evaluate.sources import of_scenario
from ackademy.studies.league import grid
from ackademy.studies.league import suite as league

NETWORK = """\
duration_s = 2
[dumbbell]
rtt_ms = 20
bottleneck = { rate_mbps = 4, queue = { kind = "drop_tail", packets = 10 } }
"""
TWO_PATHS = """\
duration_s = 2
[two_path]
first = { rate_mbps = 4, delay_ms = 10 }
second = { rate_mbps = 2, delay_ms = 20 }
"""


def scenario(*flows: str) -> _core.Scenario:
    text = NETWORK + "".join(f"[[flow]]\n{flow}\n" for flow in flows)
    return _core.Scenario.parse(text, "network.toml")


@pytest.mark.parametrize(
    ("pattern", "name", "fit"),
    [
        ("a[1]", "a[1]", True),
        ("a[1]", "a1", False),
        ("a[!1]", "a2", False),
        ("a*", "abc", True),
        ("a?c", "abc", True),
        ("A", "a", False),
        ("", "", True),
        ("*" * 30 + "x", "a" * 30, False),
    ],
)
def test_brackets_are_characters_like_others(pattern: str, name: str, fit: bool) -> None:
    assert _core.fits(pattern, name) is fit
    assert entries.fits([pattern], name) is fit


def test_a_flow_whose_name_has_brackets_is_evaluated(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(NETWORK + '[[flow]]\nname = "a[1]"\n[[flow]]\nname = "a1"\n')
    source = of_scenario(path, tmp_path, 1, 1, "a[1]")
    (cell,) = cases.cells(source.cases[0], schemes.one("cubic"), cases.Plan(1))
    assert cell.scenario().controllers == ["cubic", "new_reno"]
    link = metric_of("throughput_ratio:a[1]/a1")
    tables = simulate(cell.scenario(), 1, 0.0)
    flows = tables.flows.with_columns(measure(tables).flows["throughput_mbps"])
    assert link.extract(RunTables(flows, tables.links, tables.counters)).shape == (2,)


def test_an_entry_has_its_own_copies_and_no_other_flow() -> None:
    """`me` is neither `mellow` nor the entry `me_2`, though its own copies are `me_0`, `me_1`."""
    parsed = scenario('name = "me"\ncount = 2', 'name = "me_2"', 'name = "mellow"')
    rows = simulate(parsed, 1, 0.0).flows["flow"].to_list()
    assert rows == ["me_0", "me_1", "me_2", "mellow"]
    assert entries.governed(parsed, ["me"], rows) == [True, True, False, False]
    assert entries.governed(parsed, ["me_2"], rows) == [False, False, True, False]


def test_arrivals_of_a_poisson_source_are_of_its_entry() -> None:
    parsed = scenario(
        'name = "web"\ntraffic = { kind = "poisson", per_s = 5, mean_bytes = 1e4 }', 'name = "me"'
    )
    rows = simulate(parsed, 3, 0.0).flows["flow"].to_list()
    assert len(rows) > 2
    assert entries.governed(parsed, ["me"], rows) == [row == "me" for row in rows]
    assert entries.governed(parsed, ["web"], rows) == [row != "me" for row in rows]


def test_subflows_are_counted_and_not_connections() -> None:
    text = TWO_PATHS + '[[flow]]\nname = "both"\nmultipath = true\n[[flow]]\n'
    parsed = _core.Scenario.parse(text, "network.toml")
    assert parsed.subflows == [2, 1]
    assert entries.learning(parsed, ["both"]) == 2
    assert entries.learning(parsed, ["*"]) == 3
    rows = simulate(parsed, 1, 0.0).flows["flow"].to_list()
    assert entries.governed(parsed, ["both"], rows) == [True, True, False]


SUITE = """\
title = "A suite"
about = "Two schemes."
runs = 1
kernel_duration_s = 5
[[scheme]]
name = "CUBIC"
controller = "cubic"
kind = "classic"
family = "TCP"
[[network]]
name = "mixed"
title = "Mixed"
paper = "nobody"
scenario = "network.toml"
link = "bottleneck"
full_delay_ms = 30
flows = "me"
"""


def test_a_league_measures_the_entries_under_the_scheme_alone(tmp_path: Path) -> None:
    flows = ('name = "me"', 'name = "me_0"', 'name = "mellow"')
    text = NETWORK + "".join(f"[[flow]]\n{flow}\n" for flow in flows)
    (tmp_path / "network.toml").write_text(text)
    (tmp_path / "suite.toml").write_text(SUITE)
    suite = league.load(str(tmp_path / "suite.toml"))
    (match,) = league.scheme_cases(suite, 1)
    parsed = match.cells[0].scenario()
    assert parsed.controllers == ["cubic", "new_reno", "new_reno"]
    from ackademy.runner.engines import local
    from ackademy.runner.experiments import quiet, read, run_cells

    folder = tmp_path / "runs"
    run_cells(match.cells, folder, local(1), quiet)
    (result,) = league.results([match], folder)
    summary = read(folder, match.cells[0], "summary")
    own = summary.filter(pl.col("flow") == "me")["throughput_mbps"][0]
    assert result.value("throughput_mean_mbps") == pytest.approx(own)
    share = own / summary["throughput_mbps"].to_numpy().mean()
    assert result.value(grid.SHARE) == pytest.approx(share)
    chosen = RunTables(summary, summary.clear(), summary.clear(), (True, False, False))
    assert per_flow(chosen).shape[0] == 1
