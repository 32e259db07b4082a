"""Results in Python: what is printed, shown in a notebook, drawn and saved."""

from __future__ import annotations

import re
from pathlib import Path
from xml.dom import minidom

import polars as pl
import pytest

import ackademy
from ackademy.errors import AckademyError
from ackademy.render.notebook import Figure
from ackademy.stats.run_metrics import Metrics
from ackademy.studies.compare import Comparison
from ackademy.studies.run import Run
from commands import ackademy_command

RATE_MBPS = 10.0
FULL = {
    "duration_s": 10,
    "dumbbell": {
        "rtt_ms": 60,
        "bottleneck": {"rate_mbps": RATE_MBPS, "queue": {"kind": "drop_tail", "packets": 100}},
    },
    "flow": [{}],
}


@pytest.fixture(scope="module")
def run() -> Run:
    """One flow that fills a queue, and whose receiver then waits for gaps to be filled."""
    return ackademy.run(FULL, cc="cubic", sample_interval_ms=50)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """Two schemes in two scenarios."""
    short = {"duration_s": 2}
    return ackademy.compare(["deep_buffer", "outage"], ["cubic", "vegas"], runs=2, overrides=short)


def test_the_throughput_of_a_time_series_is_never_above_the_link(run: Run) -> None:
    series = run.flow_series.with_columns(
        in_order=8e-6 * pl.col("delivered_bytes").diff() / pl.col("time_s").diff()
    )
    packet = 8e-6 * 1500 / 0.05  # that a sample may have begun in the interval before
    assert series["throughput_mbps"].drop_nans().max() <= RATE_MBPS + packet  # type: ignore[operator]
    assert series["in_order"].max() > 1.2 * RATE_MBPS  # type: ignore[operator]  # a filled gap
    last = series.row(-1, named=True)
    assert 0 <= last["arrived_bytes"] - last["delivered_bytes"] < 200_000


def test_the_page_draws_arrivals(run: Run) -> None:
    page = run.plot().page
    (title,) = re.findall(r'strip-title"><b>(throughput[^<]*)</b> Mb/s', page)
    assert title == "throughput: arrivals"
    (top,) = re.findall(r'data-y="0,([\d.]+)"[^>]*>(?:(?!</svg>).)*throughput: arr', page)
    assert float(top) <= 1.08 * RATE_MBPS * 1.1


def test_the_headline_of_one_flow_has_no_fairness(run: Run) -> None:
    page = run.plot().page
    assert "throughput, Mb/s</dt>" in page
    assert "Jain" not in page.partition("</header>")[0]
    two = ackademy.run({**FULL, "flow": [{"count": 2}]}, cc="cubic").plot().page
    assert "Jain" in two.partition("</header>")[0]


def test_what_is_printed_has_every_column(run: Run) -> None:
    measured = run.metrics()
    for shown in (repr(measured), repr(run), measured._repr_html_(), run._repr_html_()):
        for column in (*measured.flows.columns, *measured.links.columns):
            assert column in shown
    assert isinstance(measured, Metrics)


def test_a_figure_prints_as_one_line(run: Run, comparison: Comparison) -> None:
    for figure in (run.plot(), comparison.plot()):
        assert re.fullmatch(r"Figure of [^\n]{1,120}", repr(figure))


def test_a_comparison_in_a_notebook_has_every_metric(comparison: Comparison) -> None:
    shown = comparison._repr_html_()
    for metric in comparison.estimates["metric"].unique():
        assert metric in shown
    assert "<svg" in shown
    assert "<iframe" not in shown


def test_a_notebook_gets_an_svg_that_needs_nothing_else(run: Run, comparison: Comparison) -> None:
    for figure in (run.plot(), comparison.plot()):
        drawing = minidom.parseString(figure._repr_html_())
        assert drawing.documentElement is not None
        assert drawing.documentElement.tagName == "svg"
        assert len(drawing.getElementsByTagName("path")) > 4
        assert "class=" not in figure.svg
    names = [node.firstChild for node in drawing.getElementsByTagName("text")]
    assert {"cubic", "vegas"} <= {str(name.nodeValue) for name in names if name is not None}


def test_a_page_from_python_shows_no_command_that_does_not_run(
    run: Run, comparison: Comparison
) -> None:
    for page in (run.plot().page, comparison.page):
        assert "How to repeat it" not in page
        assert "(...)" not in page


def test_a_figure_is_saved_by_the_ending_of_its_file(run: Run, tmp_path: Path) -> None:
    figure = run.plot()
    figure.save(tmp_path / "run.html")
    figure.save(str(tmp_path / "run.SVG"))
    assert (tmp_path / "run.html").read_text() == figure.page
    assert (tmp_path / "run.SVG").read_text() == figure.svg


@pytest.mark.parametrize("name", ["run.png", "run.pdf", "run.csv"])
def test_an_ending_of_another_kind_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str
) -> None:
    figure = Figure("<!doctype html>", "<svg/>", "nothing")
    with pytest.raises(AckademyError, match=r"run\.\w+: allowed: .* \.html or \.htm or \.svg$"):
        figure.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("run", "deep_buffer", "--html", "page.png"), ".html or .htm"),
        (("run", "deep_buffer", "--json", "page.csv"), ".json"),
        (("run", "deep_buffer", "--csv", "page.html"), ".csv"),
        (("compare", "deep_buffer", "--html", "page.md"), ".html or .htm"),
        (("evaluate", "cubic", "--markdown", "page.html"), ".md or .markdown"),
        (("stress", "cubic", "--html", "page.pdf"), ".html or .htm"),
        (("certify", "flagship", "--json", "page.csv"), ".json"),
    ],
)
def test_an_option_refuses_a_file_of_another_kind_before_the_work(
    tmp_path: Path, words: tuple[str, ...], allowed: str
) -> None:
    status, _, errors = ackademy_command(*words, cwd=tmp_path)
    assert status == 2
    assert errors.strip() == f"{words[-1]}: allowed: a file that ends in {allowed}"
    assert not list(tmp_path.iterdir())


def test_another_comparison_has_another_report(dumbbell: Path) -> None:
    shared = ("compare", "dumbbell.toml", "--runs", "1", "--jobs", "1")
    for more in (("--cc", "cubic"), ("--cc", "vegas"), ("--cc", "cubic", "--set", "duration_s=3")):
        status, _, errors = ackademy_command(*shared, *more, cwd=dumbbell.parent)
        assert status == 0, errors
    names = sorted(path.name for path in (dumbbell.parent / "reports").iterdir())
    assert names[1:] == ["compare-dumbbell-cubic.html", "compare-dumbbell-vegas.html"]
    assert re.fullmatch(r"compare-dumbbell-cubic-[0-9a-f]{8}\.html", names[0])


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (("compare", "deep_buffer", "--out", "x"), "compare --out: allowed: --work"),
        (("scorecard", "cubic", "--cells=x"), "scorecard --cells: allowed: --work"),
        (("scorecard", "cubic", "--out", "x"), "scorecard --out: allowed: --work"),
    ],
)
def test_an_option_of_another_name_is_told_the_name(
    tmp_path: Path, words: tuple[str, ...], now: str
) -> None:
    status, _, errors = ackademy_command(*words, cwd=tmp_path)
    assert (status, errors.strip()) == (2, now)
