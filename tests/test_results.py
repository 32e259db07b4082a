"""The results table: its columns, one definition per label, what stands where a number is none."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from ackademy.backends.schemes import parse
from ackademy.errors import AckademyError
from ackademy.render import sheet as sheets
from ackademy.render.html.sheet import sheet as to_html
from ackademy.render.markdown import sheet as to_markdown
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet
from ackademy.runner import cases, measured
from ackademy.runner.cases import Case, Plan, of_file
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, read, run_cells
from ackademy.stats.intervals import Interval, t_interval
from ackademy.stats.metric import Metric
from ackademy.stats.metrics import METRICS, METRICS_OF, metric_of
from ackademy.stats.network_metrics import MEASURES, NETWORK_METRICS, SHARED, NetworkMetric
from ackademy.stats.results import ESTIMATES, VALUES, Estimate, Name, Results, Value, results
from ackademy.stats.run_tables import COLUMNS, TP, D
from ackademy.studies import compare

DOCS = Path(__file__).parents[1] / "docs" / "reference" / "evaluation.md"
PACKAGE = Path(__file__).parents[1] / "python" / "ackademy"


@pytest.fixture
def compared(dumbbell: Path, tmp_path: Path) -> Results:
    """The tables of a small comparison."""
    rows = measured.rows([of_file(dumbbell)], parse("new_reno,cubic"), Plan(3), compare.METRICS)
    run_cells([cell for row in rows for cell in row.cells], tmp_path / "runs", local(1), quiet)
    return measured.tables("compare", measured.measure(rows, tmp_path / "runs"))


def test_a_study_gives_two_tables_with_the_documented_columns(compared: Results) -> None:
    assert compared.values.columns == list(VALUES)
    assert compared.estimates.columns == list(ESTIMATES)
    text = DOCS.read_text()
    for column in (*VALUES, *ESTIMATES):
        assert f"`{column}`" in text


def test_an_estimate_follows_from_the_numbers_of_the_runs(compared: Results) -> None:
    wide = compared.wide()
    assert wide.height == 6
    for row in compared.estimates.iter_rows(named=True):
        if row["statistic"] != "mean":
            continue
        own = wide.filter(scheme=row["scheme"])[row["metric"]].to_numpy()
        interval = t_interval(own)
        assert (row["method"], row["level"], row["n"]) == ("Student t", 0.95, 3)
        assert row["estimate"] == pytest.approx(interval.value)
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))


def test_runs_of_a_row_may_differ_in_their_number_of_flows(dumbbell: Path, tmp_path: Path) -> None:
    arrivals = 'traffic = { kind = "poisson", per_s = 3, mean_bytes = 20_000 }'
    dumbbell.write_text(dumbbell.read_text().replace("count = 2\nstart_spread_s = 0.2", arrivals))
    rows = measured.rows([of_file(dumbbell)], parse("cubic"), Plan(3), compare.METRICS)
    cells, folder = rows[0].cells, tmp_path / "runs"
    run_cells(cells, folder, local(1), quiet)
    flows = [read(folder, cell, "summary") for cell in cells]
    assert len({table.height for table in flows}) > 1
    (found,) = measured.measure(rows, folder)
    assert set(found.estimates) == set(compare.METRICS)
    means = [float(table["throughput_mbps"].to_numpy().mean()) for table in flows]
    assert found.values["throughput_mean_mbps"] == pytest.approx(means)
    assert found.value("throughput_mean_mbps") == pytest.approx(np.mean(means))


def test_cases_of_one_name_are_named_apart() -> None:
    def apart(names: str, words: str = "") -> list[str]:
        found = [Case(name, "", "") for name in names.split()]
        return [case.name for case in cases.named_apart(found, words.split())]

    assert apart("a b") == ["a", "b"]
    assert apart("a b", "x/a x/b") == ["a", "b"]
    assert apart("a b a", "a x/b gap/a") == ["a", "b", "gap/a"]
    assert apart("a b a") == ["a 1", "b", "a 2"]
    assert apart("a a", "x/a x/a") == ["x/a 1", "x/a 2"]


def test_an_estimate_of_one_run_has_no_level() -> None:
    one = Estimate(Name("path", "cubic"), "loss", "mean", t_interval(np.array([0.1])), 1)
    row = results("compare", [], [one]).estimates.row(0, named=True)
    assert (row["method"], row["level"]) == ("one run", 0.0)


def test_a_number_that_is_none_is_null() -> None:
    nothing = Value(Name("path", "cubic"), 1, "m_e", -math.inf)
    found = results("compare", [nothing], [])
    assert found.wide()["m_e"].to_list() == [None]
    with pytest.raises(AckademyError, match=r"metric 'speed': allowed: "):
        found.pivot("speed")


def test_groups_and_backends_that_differ_have_rows_of_their_own() -> None:
    found = results(
        "gap",
        [],
        [
            Estimate(Name("path", "cubic", backend=backend), "loss", "mean", t_interval(loss), 2)
            for backend, loss in (("sim", np.array([0.1, 0.3])), ("kernel", np.array([0.2, 0.2])))
        ],
    )
    rows = found.pivot("loss").rows()
    assert rows == [("path", "sim", pytest.approx(0.2)), ("path", "kernel", pytest.approx(0.2))]


def test_names_with_bars_and_stars_stay_in_their_cells_of_a_markdown_table() -> None:
    line = Line(names=(Part("a|b*"),), cells=(Cell((Part("1"),)),), group="c|d")
    text = to_markdown(Sheet("", (Head("scheme"),), (Head("loss"),), (line,), "scenario"))
    assert text.splitlines()[-1] == "| c\\|d | a\\|b\\* | 1 |"


def registered() -> dict[str, set[str]]:
    """Every label of the registry, with the names of the metrics that are called so."""
    found: dict[str, set[str]] = {}
    every: dict[str, Metric | NetworkMetric] = {**METRICS, **NETWORK_METRICS}
    every |= {f"{base}:a/b": make("a/b") for base, make in METRICS_OF.items()}
    for key, metric in every.items():
        for label in {metric.label, getattr(metric, "name", metric.label)}:
            found.setdefault(label, set()).add(key)
    return found


def test_no_two_metrics_have_one_label() -> None:
    assert {label: keys for label, keys in registered().items() if len(keys) > 1} == {}
    assert not METRICS.keys() & NETWORK_METRICS.keys()
    assert all(metric.about for own in (METRICS, NETWORK_METRICS) for metric in own.values())


def test_a_metric_of_the_steady_state_says_so_and_shares_no_name() -> None:
    assert {metric.window for metric in METRICS.values()} == {"whole"}
    for key, metric in NETWORK_METRICS.items():
        base = key.removeprefix("steady_")
        if base != key:
            assert metric.window == "steady", key
            assert metric.label.startswith("steady-state "), key
    assert NETWORK_METRICS["steady_loss"].label != METRICS["loss"].name == "loss"


def test_what_a_card_shares_with_every_study_is_the_same_metric() -> None:
    assert MEASURES.keys() - NETWORK_METRICS.keys() == set(SHARED)
    for name in SHARED:
        ours, theirs = MEASURES[name], metric_of(name)
        assert (ours.label, ours.unit, ours.about) == (theirs.name, theirs.unit, theirs.about)


OF_ONE = {
    ("studies/run.py", "utilisation"),
    ("stress/report.py", "regret"),
    ("stress/report.py", "loss"),
}
"""headings that are written out: the registry's metric, of the one link or network of the line"""


def test_a_heading_that_is_a_metrics_label_is_that_metric() -> None:
    labels, written = registered(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Head":
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and first.value in labels:
                written.add((f"{path.parent.name}/{path.name}", str(first.value)))
    assert written <= OF_ONE


def test_every_metric_is_documented_with_its_name_unit_and_definition() -> None:
    text = DOCS.read_text()
    for key, metric in METRICS.items():
        line = f"| `{key}` | {metric.name} | {metric.unit} | {metric.better} | {metric.about} |"
        assert line in text


def samples(*delays: list[float]) -> np.ndarray:
    """Runs of flows with these delays and 1 Mb/s each."""
    found = np.ones((len(delays), len(delays[0]), len(COLUMNS)))
    found[..., D] = delays
    found[..., TP] = 1.0
    return found


def test_a_flow_that_has_not_started_leaves_delay_and_merit_defined() -> None:
    runs = samples([10.0, math.nan], [20.0, math.nan])
    assert metric_of("delay_mean_ms").estimate(runs).value == pytest.approx(15.0)
    assert metric_of("m_e").estimate(runs).value == pytest.approx(-0.1 * math.log(15.0))


def test_a_run_in_which_nothing_is_delivered_leaves_delay_and_merit_undefined() -> None:
    runs = samples([10.0, 10.0], [math.nan, math.nan])
    assert math.isnan(metric_of("delay_mean_ms").estimate(runs).value)
    assert math.isnan(metric_of("m_e").estimate(runs).value)


SHEET = Sheet(
    "numbers",
    (Head("scheme"),),
    (Head("rate", "Mb/s", "what arrives"),),
    (
        Line((Part("cubic"),), (sheets.estimated(Interval(2.0, 1.5, 2.5)),), "path", 1, "3 runs"),
        Line((Part("a<b", "best"),), (Cell((Part("1", "was"), Part("2", "warn"))),), "path", 2),
    ),
    "scenario",
)


def test_a_sheet_is_the_same_table_in_html_and_markdown() -> None:
    html, markdown = to_html(SHEET), to_markdown(SHEET)
    assert markdown.splitlines() == [
        "| scenario | scheme | rate, Mb/s |",
        "| --- | --- | ---: |",
        "| path | cubic | 2.000 ± 0.50 |",
        "| path | a\\<b | 1 / **2** |",
    ]
    assert html.count('class="group"') == 1
    for text in ("2.000<small>± 0.50</small>", "a&lt;b", "3 runs", 'title="what arrives"', "s1"):
        assert text in html
    assert "sortable" not in html
