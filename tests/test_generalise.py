"""A controller on drawn links: numbers that can be run again, ranges that hold every link once."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import ackademy
from ackademy.backends import distributions, schemes
from ackademy.cli import app
from ackademy.errors import ControllerError, ScenarioError
from ackademy.render.html.generalise import axis_ends
from ackademy.runner import cases, experiments
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet
from ackademy.stats import scores
from ackademy.studies import generalise
from ackademy.studies.generalise import AXES, Link, Study

ROOT = Path(__file__).parent.parent
LINKS = 8


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped distribution, a few seconds long."""
    text = (ROOT / "distributions" / "generalise.toml").read_text()
    path = tmp_path_factory.mktemp("short") / "short.toml"
    path.write_text(text.replace("duration_s = 60", "duration_s = 4"))
    return path


@pytest.fixture(scope="module")
def ran(short: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    """A study whose cells are done."""
    distribution = distributions.read(short)
    study = Study(
        policy=schemes.evaluated("rl-tcp"),
        against=(schemes.evaluated("cubic"), schemes.evaluated("new_reno")),
        origin=str(short),
        digest=distribution.digest,
        about=distribution.about,
        seed=1,
        cases=tuple(cases.drawn(distribution, 1, LINKS)),
    )
    folder = tmp_path_factory.mktemp("cells")
    batch = experiments.run_cells(study.cells(folder), folder, local(jobs=1), quiet)
    assert (batch.n_cells, batch.n_reused, batch.failures) == (3 * LINKS, 0, [])
    return study, folder


def test_nothing_runs_twice(ran: tuple[Study, Path]) -> None:
    study, folder = ran
    assert experiments.missing(folder, study.cells(folder)) == []


def test_scores_are_those_of_a_run_by_itself(ran: tuple[Study, Path]) -> None:
    study, folder = ran
    for row in generalise.rows(study, folder)[:3]:
        run = ackademy.run(row.case.scenario, seed=row.case.seed, cc="cubic")
        flow = run.metrics().flows.row(0, named=True)
        score = row.scores["cubic"]
        # The whole run counts, and the flow is there from its beginning.
        assert score.throughput_mbps == pytest.approx(flow["throughput_mbps"])
        assert score.share == pytest.approx(flow["throughput_mbps"] / row.link.rate_mbps)
        assert score.delay_ms == pytest.approx(flow["delay_ms"])
        base = run.flows["base_rtt_ms"][0]
        assert score.rtt_ratio == pytest.approx(1.0 + flow["delay_ms"] / base)
        assert score.utility == pytest.approx(math.log(score.share / score.rtt_ratio))


def test_every_link_is_in_one_range_of_each_axis(ran: tuple[Study, Path]) -> None:
    study, folder = ran
    gathered = generalise.bins(study, generalise.rows(study, folder))
    for axis in ("", *(axis.label for axis in AXES)):
        for name in ("rl_tcp", "cubic", "new_reno"):
            own = [b for b in gathered if b.axis == axis and b.scheme == name]
            assert sum(b.n_runs for b in own) == LINKS
    overall = {b.scheme: b for b in gathered if not b.axis}
    assert overall["rl_tcp"].estimates["gain"].value == 0.0
    difference = (
        overall["rl_tcp"].estimates["utility"].value - overall["cubic"].estimates["utility"].value
    )
    assert overall["cubic"].estimates["gain"].value == pytest.approx(difference)


def test_an_end_of_a_range_belongs_to_the_range_above() -> None:
    rate, rtt, loss, buffer = AXES
    for axis in AXES:
        assert len(axis.names) == len(axis.edges) + 1
    assert rate.names[rate.bin(Link(5.0, 10.0, 0.0, 0.2))] == "5 – 10"
    assert rtt.names[rtt.bin(Link(5.0, 300.0, 0.0, 0.2))] == "200 and more"
    assert loss.names[loss.bin(Link(5.0, 10.0, 0.0, 0.2))] == "none"
    assert loss.names[loss.bin(Link(5.0, 10.0, 1e-4, 0.2))] == "to 1"
    assert buffer.names[buffer.bin(Link(5.0, 10.0, 0.0, 4.0))] == "2 and more"


def test_the_outer_ranges_are_open() -> None:
    """A link of 0.8 Mb/s is in none that begins at 2, one of 226 Mb/s in none that ends at 100."""
    for axis in AXES:
        first = "none" if axis.key == "loss" else f"below {axis.edges[0]:g}"
        assert axis.names[0] == first
        assert axis.names[-1] == f"{axis.scale * axis.edges[-1]:g} and more"


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize(("low", "high"), [(0.03, 0.03), (1.0, 3.0)])
def test_an_axis_has_room_around_its_values(low: float, high: float, *, is_log: bool) -> None:
    start, end = axis_ends(low, high, is_log=is_log)
    assert start < low <= high < end


def test_an_axis_of_zeros_begins_with_them() -> None:
    assert axis_ends(0.0, 0.0, is_log=False) == (0.0, 1.0)


def test_a_kept_worst_link_gives_its_numbers_again(ran: tuple[Study, Path], tmp_path: Path) -> None:
    study, folder = ran
    found = generalise.rows(study, folder)
    listed = generalise.worst(study, found, tmp_path)
    kinds = {own.kind for own in listed}
    assert len(kinds) == 4
    for own in listed[:3]:
        words = shlex.split(own.command)
        assert words[:3] == ["ackademy", "run", str(own.file)]
        assert f"# Same numbers: {own.command}\n" in own.file.read_text()
        result = CliRunner().invoke(app, [*words[1:], "--parquet", str(tmp_path / "tables")])
        assert result.exit_code == 0, result.output
        flows = pl.read_parquet(tmp_path / "tables" / "flows.parquet")
        score = own.row.scores["rl_tcp"]
        rate = 8e-6 * flows["delivered_bytes"][0] / own.row.case.scenario.duration_s
        assert rate == score.throughput_mbps
    behind = [own.row for own in listed if own.kind.startswith("largest gap")]
    gaps = [
        row.scores["rl_tcp"].utility - max(row.scores[o].utility for o in ("cubic", "new_reno"))
        for row in found
    ]
    first = behind[0].scores
    assert min(gaps) == first["rl_tcp"].utility - max(
        first["cubic"].utility, first["new_reno"].utility
    )


def test_utility_is_zero_at_best_and_has_a_floor() -> None:
    assert scores.utility(1.0, 1.0) == 0.0
    assert scores.utility(0.5, 2.0) == pytest.approx(math.log(0.25))
    floor = math.log(scores.SHARE_FLOOR)
    assert scores.utility(0.0, 1.0) == floor
    assert scores.utility(1e-9, 5.0) == floor
    assert scores.utility(0.3, math.nan) == floor


def test_the_command_writes_its_tables_and_repeats(short: Path, tmp_path: Path) -> None:
    words = ["generalise", "new-reno", "--against", "cubic", "--distribution", str(short)]
    words += ["--links", "3", "--jobs", "1", "--work", str(tmp_path / "runs")]
    words += ["--worst", str(tmp_path / "worst")]
    pages = []
    for name in ("one", "two"):
        page = tmp_path / f"{name}.html"
        result = CliRunner().invoke(
            app, [*words, "--html", str(page), "--markdown", str(page.with_suffix(".md"))]
        )
        assert result.exit_code == 0, result.output
        pages.append(page)
    one, two = pages
    assert one.with_suffix(".csv").read_bytes() == two.with_suffix(".csv").read_bytes()
    numbers = json.loads(one.with_suffix(".json").read_text())
    assert numbers["policy"] == "--cc new_reno"
    assert {own["scheme"] for own in numbers["estimates"]} == {"new_reno", "cubic"}
    assert "| all links | 3 | new_reno |" in one.with_suffix(".md").read_text()
    assert "<script src" not in one.read_text()


def test_what_cannot_be_tried_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match=r"allowed: a folder with policy\.toml"):
        schemes.evaluated(str(tmp_path))
    with pytest.raises(ControllerError, match="cubic: allowed: every controller or policy once"):
        schemes.names_differ([schemes.evaluated("cubic"), schemes.evaluated("cubic")])
    redrawn = distributions.read(ROOT / "distributions" / "drinc_train.toml")
    with pytest.raises(ScenarioError, match=r"allowed: \[dumbbell\] with rtt_ms"):
        generalise.link_of(cases.drawn(redrawn, 1, 1)[0])
    words = ["generalise", "cubic", "--against", "", "--links", "1", "--jobs", "1"]
    words += ["--distribution", str(ROOT / "distributions" / "drinc_train.toml")]
    result = CliRunner().invoke(app, [*words, "--work", str(tmp_path / "runs")])
    assert isinstance(result.exception, ScenarioError)
    assert not (tmp_path / "runs").exists()
