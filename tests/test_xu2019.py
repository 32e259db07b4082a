"""The experiments of Xu 2019: what the files say, and the metrics of connections they use."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

from ackademy import _core
from ackademy.errors import ExperimentError
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import RunTables
from ackademy.studies.reproduce import files as experiment_files
from commands import ackademy_command

ROOT = Path(__file__).resolve().parents[1]
GOODPUT = "connection_goodput_mbps:multipath*"
BASELINES = ("LIA", "BALIA", "OLIA", "wVegas")
SCENARIOS = [f"s{number}" for number in range(1, 9)]


def tables(connections: pl.DataFrame | None) -> RunTables:
    empty = pl.DataFrame()
    return RunTables(empty, empty, empty, "*", 10.0, connections)


def test_metrics_of_connections_are_of_what_their_applications_read() -> None:
    run = tables(
        pl.DataFrame(
            {
                "connection": ["multipath_0", "multipath_1", "tcp"],
                "goodput_mbps": [1.0, 3.0, 9.0],
                "goodput_bytes": [1_000_000, 3_000_000, 5],
            }
        )
    )

    def value(name: str) -> float:
        return metric_of(f"{name}:multipath*").of_run(metric_of(f"{name}:multipath*").extract(run))

    assert value("connection_goodput_mbps") == pytest.approx(2.0)
    assert value("connections_total_mbps") == pytest.approx(3.2)
    assert value("jain_connections") == pytest.approx(16 / 20)


def test_metrics_of_connections_without_any_are_one_line() -> None:
    with pytest.raises(ExperimentError, match="only where one has several subflows"):
        metric_of(GOODPUT).extract(tables(None))
    named = pl.DataFrame({"connection": ["other"], "goodput_mbps": [1.0], "goodput_bytes": [1]})
    with pytest.raises(ExperimentError, match=r"allowed: other"):
        metric_of(GOODPUT).extract(tables(named))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_has_every_baseline_twice_and_room_for_the_agent(name: str) -> None:
    experiment = experiment_files.load(f"xu2019/{name}")
    for group in {row.group for row in experiment.rows}:
        schemes = [row.scheme for row in experiment.rows if row.group == group]
        linux = [f"{scheme} of Linux" for scheme in BASELINES]
        assert schemes == ["DRL-CC", *BASELINES, *linux]


@pytest.mark.parametrize(
    ("name", "group", "gains"),
    [("s1", "8 MB", (313, 279, 272, 198)), ("s2", "8 Mb/s", (325, 280, 269, 181))],
)
def test_published_goodputs_follow_from_the_printed_gains(
    name: str, group: str, gains: tuple[int, ...]
) -> None:
    rows = {row.name: row for row in experiment_files.load(f"xu2019/{name}").rows}
    assert rows["DRL-CC", group].published[GOODPUT] == 3.2
    for scheme, gain in zip(BASELINES, gains, strict=True):
        implied = rows[scheme, group].published[GOODPUT]
        assert implied == pytest.approx(3.2 / (1 + gain / 100), abs=5e-4)


@pytest.mark.parametrize(
    ("draw", "end"), [("1", 150), ("2", 150), ("3", 150), ("few", 150), ("training", 300)]
)
def test_connections_that_come_and_go_live_for_half_a_minute(draw: str, end: int) -> None:
    path = ROOT / f"data/scenarios/xu2019_arrivals_{draw}.toml"
    flows = tomllib.loads(path.read_text())["flow"]
    starts = [flow["start_s"] for flow in flows]
    assert starts == sorted(starts)
    assert starts[-1] < end
    for flow in flows:
        assert flow["stop_s"] == pytest.approx(min(flow["start_s"] + 30, end))
    assert len(_core.Scenario.parse(path.read_text(), str(path)).flows) == len(flows)


def test_the_agent_for_arrivals_was_not_trained_on_those_of_its_test() -> None:
    def starts(draw: str) -> set[float]:
        text = (ROOT / f"data/scenarios/xu2019_arrivals_{draw}.toml").read_text()
        return {flow["start_s"] for flow in tomllib.loads(text)["flow"]}

    trained = starts("training")
    assert all(len(trained & starts(draw)) <= 1 for draw in ("1", "2", "3", "few"))
    made = tomllib.loads((ROOT / "data/policies/drl_cc/s5/policy.toml").read_text())["made"]
    assert made["trained_on"] == "xu2019_arrivals_training.toml"


def test_ten_arrivals_a_second_are_300_connections_at_a_time() -> None:
    path = ROOT / "data/scenarios/xu2019_arrivals_many.toml"
    flows = tomllib.loads(path.read_text())["flow"]
    assert len(flows) == 150
    assert sum(flow["count"] for flow in flows) == pytest.approx(1500, abs=3 * 1500**0.5)
    for flow in flows:
        assert flow["stop_s"] == min(flow["start_s"] + 30.5, 150), (
            "30 s, half a second more or less"
        )
    there = [
        sum(own["count"] for own in flows if own["start_s"] <= now < own["stop_s"] - 0.5)
        for now in range(30, 150)
    ]
    assert 300 - 60 < min(there) <= max(there) < 300 + 90


def test_each_network_has_both_its_own_agent_and_the_one_for_all() -> None:
    rows = experiment_files.load("xu2019/agents").rows
    groups = list(dict.fromkeys(row.group for row in rows))
    assert {group[0] for group in groups} == set("12345678")
    for group in groups:
        paths = {row.scheme: Path(str(row.params["policy"])) for row in rows if row.group == group}
        made = tomllib.loads((paths["DRL-CC"] / "policy.toml").read_text())["made"]
        assert "networks" not in made, "of one network"
        policies = {name: str(path).split("policies/drl_cc/")[1] for name, path in paths.items()}
        assert policies.pop("DRL-CC for all") == "all"
        own = policies.pop("DRL-CC")
        if group[0] in "56":
            assert own == f"s{group[0]}"
            assert policies == {
                "DRL-CC of scenario 1": "s1",
                "DRL-CC, seed 2": f"choices/{own}_seed2",
                "DRL-CC, seed 3": f"choices/{own}_seed3",
            }


def test_what_was_found_by_looking_at_the_published_numbers_is_marked() -> None:
    rows = experiment_files.load("xu2019/baselines").rows
    for row in rows:
        found = "loss twice" in row.group or "40 ms more" in row.group
        assert bool(row.fitted) == found, row.group


def test_a_scenario_is_reproduced_with_totals_over_time(tmp_path: Path) -> None:
    item = str(ROOT / "data/papers/xu2019/s6.toml")
    code, out, err = ackademy_command("reproduce", item, "--runs", "2", cwd=tmp_path)
    assert code in (0, 1), err
    assert "LIA of Linux" in out
    report = next(tmp_path.glob("reports/*s6.html")).read_text()
    assert "total over time" in report
    assert 'data-unit="Mb/s"' in report
    css = (ROOT / "python/ackademy/render/html/style.css").read_text()
    keys = re.findall(r'class="key s(\d+)"', report)
    assert {str(index) for index in range(9)} <= set(keys), "nine schemes, nine colours"
    assert all(f".s{key} {{" in css for key in keys)
