"""What experiment files may say beyond a plain table: rows of some flows, holes, figures, kinds."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ackademy import ExperimentError, ScenarioError, papers
from ackademy.console import Console
from ackademy.papers import index
from ackademy.render import report as render
from ackademy.render import terminal
from ackademy.render.numbers import significant
from ackademy.runner import cells
from ackademy.runner.cells import Assignment
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.stats.metrics import metric_of
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce import report as reproduce_report
from ackademy.studies.reproduce import study as reproduce
from ackademy.studies.reproduce.figures import figures

TP, RTT = "throughput_mean_mbps", "rtt_mean_ms"

MIX = """\
duration_s = 4
[dumbbell]
rtt_ms = 20
[dumbbell.bottleneck]
rate_mbps = 4
queue = { kind = "drop_tail", packets = 10 }
[[flow]]
name = "learner"
[[flow]]
name = "reno"
count = 2
start_spread_s = 0.1
"""

PAPER = """\
title = "A paper"
authors = "Nobody"
venue = "Nowhere, 2018"
doi = "10.0/0"
scheme.Cubic.controller = "cubic"
scheme.Plain.controller = "as written"
"""

ITEM = """\
title = "One among two"
item = "Table 8"
about = "A mixture."
scenario = "../../mix.toml"
runs = 2
sample_interval_ms = 100
columns = ["throughput_mean_mbps", "delay_p95_ms", "throughput_ratio:learner/reno*"]
published = [
  ["Cubic", "short", 1.5, "-", "-"],
  ["Beside", "short", "-", 20.0, "-"],
  ["Cubic", "long", 1.5, "-", "-"],
  ["Plain", "long", "-", "-", "-"],
]

[group.short]
x = 10

[group.long]
scenario = "../../long.toml"
x = 40

[scheme.Cubic]
controllers = "learner"
params = { learner = { beta = 0.8 } }
flows = "learner"

[scheme.Beside]
like = "Cubic"
controllers = "learner"
params = { beta = 0.8 }
flows = "reno*"

[[claim]]
text = "It gets something everywhere."
where = "nowhere"
metric = "throughput_mean_mbps"
rows = "Cubic"
min_value = 0.01

[[figure]]
kind = "bars"
title = "Bars of throughput"
metric = "throughput_mean_mbps"

[[figure]]
kind = "lines"
title = "Delay over the buffer"
metric = "delay_p95_ms"
x_label = "packets"
published = [["Cubic", "long", 30]]

[[figure]]
kind = "windows"
title = "Windows over time"
schemes = ["Cubic"]
flows = ["learner", "mean:reno*"]

[[figure]]
kind = "plane"
title = "Delay across, throughput up"
metric = "throughput_mean_mbps"
across = "rtt_mean_ms"
groups = ["long"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the items of a small paper are."""
    (tmp_path / "mix.toml").write_text(MIX)
    (tmp_path / "long.toml").write_text(MIX.replace("packets = 10", "packets = 40"))
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "table8.toml").write_text(ITEM)
    return folder


@pytest.fixture
def experiment(folder: Path) -> experiment_files.Experiment:
    """Its table."""
    return experiment_files.load(str(folder / "table8.toml"))


@pytest.fixture
def result(experiment: experiment_files.Experiment, tmp_path: Path) -> reproduce.Reproduction:
    """Its table, reproduced."""
    runs = tmp_path / "runs"
    run_cells(reproduce.all_cells(experiment, 4), runs, local(1), quiet)
    return reproduce.collect(experiment, 4, runs)


@pytest.fixture
def edited(folder: Path) -> Callable[[str, str], str]:
    """Replaces a text of the item and returns its file's name."""

    def edit(old: str, new: str) -> str:
        path = folder / "table8.toml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
        return str(path)

    return edit


def test_rows_about_different_flows_of_one_network_share_its_cells(
    experiment: experiment_files.Experiment,
) -> None:
    learner, beside, long, plain = experiment.rows
    keys = [
        [cells.key(cell) for cell in reproduce.cells_of(experiment, row, 2)]
        for row in (learner, beside, long, plain)
    ]
    assert keys[0] == keys[1]
    assert len({key for row in keys for key in row}) == 6


def test_only_the_named_flows_get_the_scheme_s_controller(
    experiment: experiment_files.Experiment,
) -> None:
    cell = reproduce.cells_of(experiment, experiment.rows[0], 1)[0]
    assert cell.scenario().controllers == ["cubic", "new_reno", "new_reno"]
    plain = reproduce.cells_of(experiment, experiment.rows[3], 1)[0]
    assert plain.scenario().controllers == ["new_reno"] * 3


def page_of(result: reproduce.Reproduction) -> str:
    return render.page(reproduce_report.report(result))


def test_row_is_about_its_flows_and_ratios_are_about_all(result: reproduce.Reproduction) -> None:
    learner, beside = result.rows[:2]
    assert learner.of_flows.shape[:2] == (4, 1)
    assert beside.of_flows.shape[:2] == (4, 2)
    ratio = learner.estimates["throughput_ratio:learner/reno*"].value
    parts = [row.estimates["throughput_mean_mbps"].value for row in (learner, beside)]
    assert ratio == pytest.approx(parts[0] / parts[1])
    assert beside.estimates["throughput_ratio:learner/reno*"].value == ratio


def test_runs_of_a_row_may_differ_in_their_number_of_flows(folder: Path, tmp_path: Path) -> None:
    arrivals = 'traffic = { kind = "poisson", per_s = 3, mean_bytes = 20_000 }'
    (tmp_path / "mix.toml").write_text(f"{MIX}[[flow]]\nname = 'short'\n{arrivals}\n")
    path = folder / "table8.toml"
    path.write_text(path.read_text().replace('flows = "reno*"', 'flows = "short*"'))
    experiment = experiment_files.load(str(path))
    run_cells(reproduce.all_cells(experiment, 3), tmp_path / "runs", local(1), quiet)
    result = reproduce.collect(experiment, 3, tmp_path / "runs")
    beside = result.rows[1]
    assert len({len(own) for own in beside.of_flows}) > 1
    values = reproduce.tables(result).values.filter(metric="throughput_mbps", scheme="Beside")
    of_flows = values.group_by("seed").agg(pl.col("value").mean())
    assert beside.estimates[TP].value == pytest.approx(of_flows["value"].mean())
    assert "Beside" in page_of(result)


def test_group_may_have_a_scenario_of_its_own(result: reproduce.Reproduction) -> None:
    short, long = result.rows[0], result.rows[2]
    assert long.estimates["delay_p95_ms"].value > 1.5 * short.estimates["delay_p95_ms"].value


def test_fitted_row_is_marked_and_its_agreement_does_not_count(
    edited: Callable[[str, str], str], tmp_path: Path
) -> None:
    """A remark of a scheme or of a group stands at its rows, in the terminal and in the report."""
    remark = "chosen by the published numbers"
    name = edited('like = "Cubic"', f'like = "Cubic"\nfitted = "{remark}"')
    name = edited("[group.long]", '[group.long]\nfitted = "by <eye>"')
    experiment = experiment_files.load(name)
    assert [row.fitted for row in experiment.rows] == ["", remark, "by <eye>", "by <eye>"]
    run_cells(reproduce.all_cells(experiment, 2), tmp_path / "runs", local(1), quiet)
    result = reproduce.collect(experiment, 2, tmp_path / "runs")
    page = page_of(result)
    assert page.count(remark) == 1
    assert page.count("by &lt;eye&gt;") == 2
    # Of the three published numbers one is of a row that was not fitted.
    hold = r"Our intervals hold [01] of 1 published numbers, fitted rows left out\."
    assert re.search(hold, page)
    out = io.StringIO()
    console = Console(width=200, file=out)
    render.show(reproduce_report.report(result), console)
    printed = out.getvalue()
    assert "chosen by the" in printed
    assert "published numbers" in printed


def test_what_a_paper_does_not_print_is_measured_and_not_compared(
    result: reproduce.Reproduction,
) -> None:
    assert result.rows[0].printed.published == {"throughput_mean_mbps": 1.5}
    lines = reproduce.to_csv(result).splitlines()
    assert len(lines) == 1 + 4 * 3
    assert lines[2].startswith("Cubic short,delay_p95_ms,,")


def test_claim_about_a_scheme_is_about_all_its_rows(result: reproduce.Reproduction) -> None:
    (checked,) = result.claims
    assert [case.case.row for case in checked.cases] == [("Cubic", "short"), ("Cubic", "long")]
    assert checked.verdict == "holds"


def test_every_figure_is_in_the_report(result: reproduce.Reproduction) -> None:
    page = page_of(result)
    for title in (
        "Bars of throughput",
        "Delay over the buffer",
        "Windows over time",
        "Delay across, throughput up",
    ):
        assert title in page
    assert "mean of reno*" in page
    assert "published 30.00 ms" in page


def test_page_without_published_throughputs_has_no_empty_section_of_differences(
    result: reproduce.Reproduction,
) -> None:
    title = "How far from the published numbers"
    assert title in page_of(result)
    rows = tuple(
        replace(own, printed=replace(own.printed, published={"delay_p95_ms": 20.0}))
        for own in result.rows
    )
    page = page_of(replace(result, rows=rows))
    assert title not in page
    assert "Table 8, number by number" in page


def test_plane_has_a_dot_per_run_and_an_oval_per_scheme_of_its_groups(
    result: reproduce.Reproduction,
) -> None:
    drawn = str(figures(result, {"Cubic": 0, "Beside": 1, "Plain": 2}))
    panel = drawn[drawn.index("Delay across, throughput up") :]
    assert panel.count('class="panel"') == 1
    assert "mean round-trip time, ms" in panel
    assert "mean throughput, Mb/s" in panel
    ovals = re.findall(r'class="oval" d="([^"]+)"', panel)
    runs = re.findall(r'class="run" d="([^"]+)"', panel)
    assert [path.count("L") + 1 for path in ovals] == [72, 72]
    assert [path.count("M") for path in runs] == [4, 4]
    for oval, run in zip(ovals, runs, strict=True):
        outline, dots = (np.array(re.findall(r"(-?\d+) (-?\d+)", d), float) for d in (oval, run))
        assert outline.mean(axis=0) == pytest.approx(dots.mean(axis=0), abs=1.0)
    centres = re.findall(r'data-tip="(\S+)\n(\S+) Mb/s, (\S+) ms\n4 values', panel)
    expected = [
        (scheme, *(significant(row.estimates[name].value) for name in (TP, RTT)))
        for scheme, row in (("Cubic", result.rows[2]), ("Plain", result.rows[3]))
    ]
    assert centres == expected


def test_plane_measures_what_no_column_or_claim_asks_for(result: reproduce.Reproduction) -> None:
    assert [RTT in row.estimates for row in result.rows] == [False, False, True, True]


def test_file_setting_is_relative_to_the_experiment(edited: Callable[[str, str], str]) -> None:
    name = edited("{ learner = { beta = 0.8 } }", '{ policy = "../../net.bin" }')
    (assignment,) = experiment_files.load(name).rows[0].assignments
    expected = (Path(name).parent / "../../net.bin").resolve()
    assert assignment.params == (("policy", str(expected)),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.5, ", '"?", ', r'numbers, or "-" for none'),
        ('rows = "Cubic"', 'rows = "Vegas"', r"rows = 'Vegas': allowed: a scheme"),
        ("min_value = 0.01", "min_ratio = 0.01", r"against = absent: allowed: a row"),
        ('rows = "Cubic"', 'rows = "Cubic"\nagainst = "Plain"', r"no such row"),
        ('across = "rtt_mean_ms"', "", r"across = absent: allowed: a text"),
        ('across = "rtt_mean_ms"', 'across = "rtt"', r"metric = 'rtt': allowed: throughput_mean"),
        ('kind = "bars"', 'kind = "pie"', r"kind = 'pie': allowed: bars, lines, windows"),
        ('"delay_p95_ms", "thr', '"utilisation:", "thr', r"utilisation:.*allowed: throughput_mean"),
        ("{ learner = { beta", "{ reno = { beta", r"params = .*allowed: learner"),
        ('schemes = ["Cubic"]', 'schemes = ["Vegas"]', r"schemes = 'Vegas': allowed: Cubic"),
    ],
)
def test_wrong_field_is_named_with_what_is_allowed(
    edited: Callable[[str, str], str], old: str, new: str, message: str
) -> None:
    with pytest.raises(ExperimentError, match=message) as caught:
        experiment_files.load(edited(old, new))
    assert "table8.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('= "cubic"', "= 7", r"scheme\.Cubic: controller = 7: allowed: a text"),
        ('= "cubic"', '= "cubic"\nscheme.Cubic.learns = 1', r"learns = 1: allowed: true, false"),
        ('= "cubic"', '= "cubic"\nscheme.Cubic.fitted = 1', r"fitted = 1: allowed: a text"),
        (
            '= "cubic"',
            '= "cubic"\nscheme.Cubic.params.x = []',
            r"params\.x = \[\]: allowed: a numb",
        ),
        ('= "cubic"', '= "cubic"\nscheme.Cubic.params.x = "/\\u0000"', r"without null characters"),
        (
            "Plain.controller",
            "Plain.learns = true #",
            r"Plain: controller = absent: allowed: a text",
        ),
    ],
)
def test_a_wrong_field_of_the_paper_is_blamed_on_its_file(
    folder: Path, old: str, new: str, message: str
) -> None:
    (folder / "paper.toml").write_text(PAPER.replace(old, new, 1))
    with pytest.raises(ExperimentError, match=message) as caught:
        experiment_files.load(str(folder / "table8.toml"))
    assert str(caught.value).startswith(f"{folder / 'paper.toml'}: ")
    assert "\n" not in str(caught.value)


def test_controller_for_flows_that_are_not_there_lists_those_that_are() -> None:
    cell = cells.Cell(MIX, "mix.toml", None, 1, assignments=(Assignment("vegas*", "cubic"),))
    with pytest.raises(ScenarioError, match=r"flow 'vegas\*': allowed: learner, reno"):
        cell.scenario()


def test_metric_of_unknown_flows_lists_the_known_ones(
    experiment: experiment_files.Experiment, tmp_path: Path, edited: Callable[[str, str], str]
) -> None:
    run_cells(reproduce.all_cells(experiment, 1), tmp_path / "runs", local(1), quiet)
    wrong = experiment_files.load(edited("learner/reno*", "learner/vegas"))
    with pytest.raises(ExperimentError, match=r"flows 'vegas': allowed: learner, reno_0, reno_1"):
        reproduce.collect(wrong, 1, tmp_path / "runs")


def test_whole_paper_is_one_count_of_steps_and_computes_shared_cells_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "table9.toml").write_text(ITEM)
    monkeypatch.chdir(tmp_path)
    studies = papers.load_all("small")
    assert [study.name for study in studies] == ["small/table8", "small/table9"]
    told: list[tuple[int, int]] = []
    batch = papers.run_all(
        studies, 1, tmp_path / "runs", local(1), lambda done, total: told.append((done, total))
    )
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert (batch.n_cells, batch.n_reused) == (6, 3)
    found = [(study, study.collect(1, tmp_path / "runs")) for study in studies]
    page = render.page(index.report("small", found, 1.0, "ackademy reproduce small"))
    assert 'href="small-table8.html"' in page
    assert page.count("It gets something everywhere.") == 2


def test_unknown_kind_lists_the_known_ones(edited: Callable[[str, str], str]) -> None:
    name = edited("runs = 2", 'runs = 2\nkind = "opera"')
    with pytest.raises(ExperimentError, match=r"kind = 'opera': allowed: .*table"):
        papers.load(name)


@pytest.mark.parametrize("name", ["power:x", "utilisation:", "speed", "counter:"])
def test_unknown_metric_is_refused(name: str) -> None:
    with pytest.raises(ExperimentError, match="allowed: throughput_mean_mbps"):
        metric_of(name)


def test_a_table_without_a_column_of_numbers_has_its_names() -> None:
    (table,) = terminal.fitting("any", {"row": ["one", "two"]}, {}, Console(width=80))
    assert table.row_count == 2
