"""The experiment files: complete, consistent with themselves, and refused when they are not."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from ackademy import ExperimentError, papers
from ackademy.runner.cells import key
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce import study as reproduce

ROOT = Path(__file__).parents[1]
ALL = [
    f"{path.parent.name}/{path.stem}"
    for path in sorted((ROOT / "data/papers").glob("*/*.toml"))
    if path.name != "paper.toml"
]
TABLES = [
    name
    for name in ALL
    if "kind" not in tomllib.loads((ROOT / f"data/papers/{name}.toml").read_text())
]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A paper of our own to spoil."""
    folder = tmp_path / "papers" / "kong2018"
    folder.mkdir(parents=True)
    for path in (ROOT / "data/papers" / "kong2018").glob("*.toml"):
        (folder / path.name).write_text(path.read_text())
    return folder


@pytest.mark.parametrize("name", ALL)
def test_every_experiment_names_scenarios_and_controllers_that_exist(name: str) -> None:
    study = papers.load(name)
    assert study.runs > 0
    assert study.steps(1) > 0


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("kong2018/")])
def test_every_run_of_kong_2018_lasts_400_s(name: str) -> None:
    for cell in reproduce.all_cells(experiment_files.load(name), 1):
        assert cell.scenario().duration_s == 400.0


@pytest.mark.parametrize("name", TABLES)
def test_published_m_e_follows_from_the_published_means(name: str) -> None:
    """The paper truncates or rounds to three decimals (its equation 5 holds in every row)."""
    for row in experiment_files.load(name).rows:
        if {"m_e", "throughput_mean_mbps"} <= row.published.keys():
            tp, d = row.published["throughput_mean_mbps"], row.published["delay_mean_ms"]
            expected = math.log(tp) - 0.1 * math.log(d)
            assert row.published["m_e"] == pytest.approx(expected, abs=1.01e-3)


@pytest.mark.parametrize("name", TABLES)
def test_every_assumption_says_who_made_it(name: str) -> None:
    experiment = experiment_files.load(name)
    assert {assumption.origin for assumption in experiment.assumptions} >= {"paper", "proposed"}


def test_no_row_of_kong_2018_is_missing() -> None:
    counts = {"table3": 30, "table4": 8, "table5": 21, "table6": 7, "table7": 7, "table8": 12}
    for name, count in counts.items():
        rows = experiment_files.load(f"kong2018/{name}").rows
        assert len(rows) == count
        assert not [row.name for row in rows if row.missing]


READINGS = ("M", "R")
"""of RL-TCP beside the default, by the names that the files give them"""


def settings_of(row: experiment_files.Row) -> dict[str, float | str]:
    """A row's settings, whichever flows they are for, less what the item and its network fix."""
    fixed = {"delta1", "delta2", "buffer_packets", "flows"}
    given = dict(row.params) | {k: v for own in row.assignments for k, v in own.params}
    return {name: value for name, value in given.items() if name not in fixed}


@pytest.mark.parametrize("item", ["table4", "table5", "table6", "table7", "table8"])
def test_readings_of_rl_tcp_stand_beside_its_default_and_are_marked(item: str) -> None:
    """M and R are the same settings wherever they stand, marked as fitted; nothing else is."""
    sensitivity = experiment_files.load("kong2018/sensitivity").rows
    readings = {
        reading: next(
            settings_of(row) for row in sensitivity if row.scheme == f"RL-TCP, reading {reading}"
        )
        for reading in READINGS
    }
    assert readings["M"]["tp_from"] == "acks"
    assert readings["M"].items() < readings["R"].items()
    experiment = experiment_files.load(f"kong2018/{item}")
    for row in experiment.rows:
        found = [reading for reading in READINGS if f"reading {reading}" in " ".join(row.name)]
        assert row.fitted == ("chosen by the published numbers" if found else "")
        if found:
            assert settings_of(row) == readings[found[0]]
        elif row.scheme.endswith("RL-TCP"):
            assert settings_of(row) == {}
    for default in experiment.rows:
        if default.scheme.endswith("RL-TCP") and not default.fitted:
            beside = [row for row in experiment.rows if row.published == default.published]
            assert len(beside) == 1 + len(READINGS)
    assert "timeouts" in experiment.metrics
    (told,) = [a.text for a in experiment.assumptions if "Reading M of RL-TCP" in a.text]
    assert "chosen by the published numbers" in told


@pytest.mark.parametrize("item", ["sensitivity", "sensitivity_four", "sensitivity_mix"])
def test_rows_that_take_a_part_from_reading_r_put_one_setting_back(item: str) -> None:
    rows = {row.scheme: row for row in experiment_files.load(f"kong2018/{item}").rows}
    whole = settings_of(rows["RL-TCP, reading R"])
    parts = {name: row for name, row in rows.items() if name.startswith("Reading R but ")}
    assert len(parts) >= 7
    for name, row in parts.items():
        setting, _, value = name.removeprefix("Reading R but ").partition(" = ")
        changed = dict(settings_of(row).items() ^ whole.items()).keys()
        assert changed == {setting}
        assert str(settings_of(row)[setting]) == value


@pytest.mark.parametrize("name", ["fig3", "table1", "sensitivity", "ns3"])
def test_every_run_of_xiao_2019_lasts_500_s_on_a_link_redrawn_ten_times_a_second(name: str) -> None:
    users = {"one user": 1, "two users": 2}
    experiment = experiment_files.load(f"xiao2019/{name}")
    for row in experiment.rows:
        (cell,) = reproduce.cells_of(experiment, row, 1)
        assert cell.scenario().duration_s == 500.0
        assert len(cell.scenario().controllers) == users.get(row.group, 5)
        assert cell.scenario().canonical().count("hz = 10") == 2


def test_both_items_of_xiao_2019_are_of_the_same_hundred_runs() -> None:
    fig3, table1 = (experiment_files.load(f"xiao2019/{name}") for name in ("fig3", "table1"))
    assert fig3.runs == table1.runs == 100
    keys = [{key(cell) for cell in reproduce.all_cells(item, 2)} for item in (fig3, table1)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 7 * 4 * 2


def test_the_four_readings_of_xiao_2019_are_four_networks() -> None:
    experiment = experiment_files.load("xiao2019/fig3")
    rows = {row.group: row for row in experiment.rows if row.scheme == "Drinc"}
    networks = {
        group: reproduce.cells_of(experiment, row, 1)[0].scenario().canonical()
        for group, row in rows.items()
    }
    for group, text in networks.items():
        assert ("low_ms = 30" in text) == group.startswith("round trip")
        assert ("keep_order = false" in text) == group.endswith("overtaking")


def test_published_intervals_of_xiao_2019_are_about_their_means() -> None:
    """Every printed span is the distance of the printed ends, and every mean lies in the middle."""
    for row in experiment_files.load("xiao2019/table1").rows:
        if not row.published:
            assert row.scheme == "Westwood+"
            continue
        low, high = row.published["jain_throughput_low"], row.published["jain_throughput_high"]
        assert row.published["jain_throughput_span"] == pytest.approx(high - low, abs=1.01e-4)
        assert row.published["jain_throughput"] == pytest.approx((low + high) / 2.0, abs=1.01e-4)


def test_a_scheme_may_have_settings_of_its_own_in_each_group() -> None:
    rows = {row.name: row for row in experiment_files.load("kong2018/table5").rows}
    policies = {rows["LP-TCP", f"L = {packets}"].params["policy"] for packets in (5, 50, 150)}
    assert len(policies) == 3
    assert "policy" not in rows["NewReno", "L = 5"].params


def test_learners_know_the_buffer_of_their_group() -> None:
    rows = {row.name: row for row in experiment_files.load("kong2018/table5").rows}
    assert rows["RL-TCP", "L = 5"].params["buffer_packets"] == 5
    assert rows["RL-TCP", "L = 5"].overrides == {"dumbbell.bottleneck.queue.packets": "5"}
    assert rows["NewReno", "L = 5"].params == {}


def test_unknown_experiment_lists_the_known_ones() -> None:
    with pytest.raises(ExperimentError, match=r"table9; similar: .*kong2018/table5"):
        experiment_files.find("kong2018/table9")


def test_paper_itself_is_not_an_experiment() -> None:
    assert "kong2018/paper" not in experiment_files.available()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 100", "runs = -1", r"runs = -1.*a whole number from 1"),
        ("runs = 100", "", r"runs = absent"),
        ('["NewReno", "L = 5", 7.490, ', '["NewReno", "L = 5", ', r"scheme, group and 7 numbers"),
        ('["NewReno", "L = 5"', '["OldReno", "L = 5"', r"OldReno.*NewReno, Q-TCP"),
        ('origin = "paper"', 'origin = "guess"', r"guess.*paper, source, derived, proposed"),
        ("min_ratio = 1.09", "", r"exactly one of min_ratio"),
        ('row = ["RL-TCP", "L = 50"]', 'row = ["RL-TCP", "L = 9"]', r"no such row"),
        ('metric = "rtt_mean_ms"', 'metric = "rtt"', r"rtt.*throughput_mean_mbps"),
        ('"loss_ratio", "m_e"', '"losses", "m_e"', r"losses.*loss_ratio"),
        ('title = "One', "title = One", r"table5\.toml"),
    ],
)
def test_wrong_experiment_names_file_and_field(
    copy: Path, old: str, new: str, message: str
) -> None:
    path = copy / "table5.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ExperimentError, match=message) as caught:
        experiment_files.load(str(path))
    assert "table5.toml" in str(caught.value)
