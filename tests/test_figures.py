"""Results in Python: what is printed, shown in a notebook, drawn and saved."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import cast
from xml.dom import minidom

import numpy as np
import polars as pl
import pytest

import ackademy
from ackademy.errors import AckademyError
from ackademy.installation import add_extra
from ackademy.render.figures import write_all
from ackademy.render.html import svg
from ackademy.render.html.charts import panels
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.svg import Width
from ackademy.stats.run_metrics import Metrics
from ackademy.studies.compare import Comparison
from ackademy.studies.run import Run
from commands import ackademy_command

RATE_MBPS = 10.0
SEED = 20261128
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
    (title,) = re.findall(r'strip-title"><b>(throughput[^<]*)</b>, Mb/s', page)
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
    for page in (run.plot().page, comparison.plot().page):
        assert "How to repeat it" not in page
        assert "(...)" not in page


def test_a_figure_is_saved_by_the_ending_of_its_file(run: Run, tmp_path: Path) -> None:
    figure = run.plot()
    figure.save(tmp_path / "run.html")
    figure.save(str(tmp_path / "run.SVG"))
    assert (tmp_path / "run.html").read_text() == figure.page
    assert (tmp_path / "run.SVG").read_text() == figure.svg


@pytest.mark.parametrize("name", ["run.csv", "run.jpeg", "run.svg.gz"])
def test_an_ending_of_another_kind_is_refused_and_nothing_is_written(
    run: Run, tmp_path: Path, name: str
) -> None:
    with pytest.raises(
        AckademyError, match=r"allowed: a file that ends in .*\.svg or \.png or \.pdf$"
    ):
        run.plot().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unknown_width_is_refused_with_those_that_are_known(
    run: Run, comparison: Comparison, tmp_path: Path
) -> None:
    wrong = cast("Width", "narrow")
    for call in (
        lambda: run.plot(wrong),
        lambda: comparison.plot(wrong),
        lambda: run.plot().save(tmp_path / "run.svg", width=wrong),
    ):
        with pytest.raises(
            AckademyError, match=r"^width = 'narrow': allowed: screen, column, page$"
        ):
            call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("width", "points"), [("column", 252.0), ("page", 516.0)])
def test_a_figure_for_a_paper_is_as_wide_as_its_columns(
    run: Run, comparison: Comparison, width: Width, points: float
) -> None:
    for figure in (run.plot(width), comparison.plot(width)):
        (drawing,) = minidom.parseString(figure.svg).getElementsByTagName("svg")[:1]
        assert drawing.getAttribute("width") == f"{points:g}pt"
        assert drawing.getAttribute("viewBox").split()[2] == f"{points:g}"
        assert float(drawing.getAttribute("font-size")) == 7.5


def test_png_and_pdf_have_the_size_of_the_figure_and_their_own_fonts(
    run: Run, comparison: Comparison, tmp_path: Path
) -> None:
    pytest.importorskip("typst", reason="needs figures: PNG and PDF")
    for figure in (run.plot("column"), comparison.plot("column")):
        for form in ("png", "pdf"):
            figure.save(tmp_path / f"one.{form}")
            figure.save(tmp_path / f"two.{form}")
            assert (tmp_path / f"one.{form}").read_bytes() == (
                tmp_path / f"two.{form}"
            ).read_bytes()
        png, pdf = ((tmp_path / f"one.{form}").read_bytes() for form in ("png", "pdf"))
        assert struct.unpack(">I", png[16:20])[0] == 252 * 300 // 72  # 3.5 inches
        assert b"Roboto" in pdf
        assert b"/MediaBox[0 0 252 " in pdf


def test_without_the_extra_png_and_pdf_are_refused_with_the_command_that_adds_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    for form in ("png", "pdf"):
        with pytest.raises(AckademyError) as told:
            run.plot().save(tmp_path / f"run.{form}")
        assert add_extra("figures") in str(told.value)
        assert "\n" not in str(told.value)
    run.plot().save(tmp_path / "run.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["run.svg"]


def test_a_chart_of_a_page_becomes_a_file_with_its_labels_legend_and_marks() -> None:
    rng = random.Random(SEED)
    for _ in range(20):
        names = [f"scheme {rng.randrange(10**6)} < & >" for _ in range(rng.randint(1, 6))]
        clouds = [
            Cloud(name, index, np.array([rng.uniform(0, 99)]), np.array([rng.uniform(0, 99)]))
            for index, name in enumerate(names)
        ]
        page = legend([(one.name, one.colour) for one in clouds], published=True) + plane(
            "A_b", clouds
        )
        (found,) = panels(page)
        assert found.title == "A_b"
        assert [key.name for key in found.shown_keys()] == [*names, "95 % of the runs"]
        drawing = minidom.parseString(svg.figure([found])).documentElement
        assert drawing is not None
        texts = [str(one.firstChild.nodeValue) for one in drawing.getElementsByTagName("text")]  # type: ignore[union-attr]
        assert {*names, "A_b", "throughput, Mb/s", "delay above the empty path, ms"} <= set(texts)
        fills = [one.getAttribute("fill") for one in drawing.getElementsByTagName("path")]
        assert {svg.COLOURS[index] for index in range(len(names))} <= set(fills)


def test_a_legend_in_a_file_names_only_what_is_drawn() -> None:
    cloud = Cloud("shown", 1, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    keys = legend([("shown", 1), ("elsewhere", 2)], published=True)
    (found,) = panels(keys + plane("", [cloud]))
    assert [key.name for key in found.shown_keys()] == ["shown", "95 % of the runs"]


def test_every_mark_of_the_pages_has_a_look_in_files() -> None:
    style = (files("ackademy.render.html") / "style.css").read_text(encoding="utf-8")
    marks = set(re.findall(r"\.plot \.([a-z]+) \{ ?[^}]*stroke", style)) - {"hit", "faint"}
    assert marks
    assert marks <= svg.LOOKS.keys()


def test_every_chart_of_a_report_is_written_with_a_name_of_its_own(
    comparison: Comparison, tmp_path: Path
) -> None:
    written = write_all(comparison.plot().report, tmp_path / "figures", ["svg"])
    found = sorted(path.name for path in (tmp_path / "figures").iterdir())
    schemes = [
        f"time-{one}-{cc}.svg" for one in ("deep-buffer", "outage") for cc in ("cubic", "vegas")
    ]
    assert found == sorted(["plane-deep-buffer.svg", "plane-outage.svg", *schemes])
    assert len(set(written)) == len(written) == len(found)
    for path in written:
        assert minidom.parse(str(path)).getElementsByTagName("path")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "deep_buffer"), "--figure-format gif: allowed: svg, png, pdf"),
        (("compare", "deep_buffer"), "--figure-format gif: allowed: svg, png, pdf"),
        (("certify", "flagship"), "--figure-format gif: allowed: svg, png, pdf"),
    ],
)
def test_a_study_refuses_an_unknown_format_before_the_work(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    more = ("--figures", "figures", "--figure-format", "gif")
    status, _, errors = ackademy_command(*words, *more, cwd=tmp_path)
    assert (status, errors.strip()) == (2, message)
    assert not list(tmp_path.iterdir())


def test_a_run_writes_its_charts_to_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    status, out, errors = ackademy_command(
        "run", "deep_buffer", "--figures", "figures", cwd=tmp_path
    )
    assert (status, errors) == (0, "")
    assert "figures: figures (1 files)" in out
    assert "Jain" not in out  # of one flow
    (drawn,) = folder.iterdir()
    names = re.findall(r">([a-z:A-Z ]+), [a-zA-Z/]+</text>", drawn.read_text())
    assert names[:4] == ["throughput: arrivals", "RTT", "lost so far", "queue"]


def test_tables_become_frames_of_pandas(run: Run) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: to_pandas")
    for name in ("flows", "flow_series", "links"):
        found, ours = run.to_pandas(name), run.frame(name)
        assert isinstance(found, pandas.DataFrame)
        assert list(found.columns) == ours.columns
        for column in ours.columns:
            assert repr(found[column].to_list()) == repr(ours[column].to_list())
    assert "throughput_mbps" in run.metrics().to_pandas()
    with pytest.raises(AckademyError, match=r"^to_pandas: 'flow': allowed: flows, .*links"):
        run.to_pandas("flow")


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


def test_every_block_of_the_guide_to_figures_runs(tmp_path: Path) -> None:
    for module, extra in {"typst": "figures", "pandas": "pandas"}.items():
        pytest.importorskip(module, reason=f"needs {extra}: the guide uses it")
    page = (Path(__file__).parents[1] / "docs" / "guide" / "figures.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        words = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in commands.splitlines():
        status, _, errors = ackademy_command(*line.split()[1:], cwd=tmp_path)
        assert status == 0, errors
    for name in ("comparison.svg", "comparison.html", "run.svg", "column.pdf", "page.pdf"):
        assert (tmp_path / name).is_file()
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".pdf"}
    pattern = tmp_path / re.findall(r"'(runs/compare/\*/summary\.parquet)'", page)[0]
    assert {"controller", "throughput_mbps", "delay_ms"} <= set(pl.read_parquet(pattern).columns)


def test_a_paper_of_several_items_has_a_folder_of_charts_for_each(tmp_path: Path) -> None:
    assert ackademy_command("new", "experiment", "own", cwd=tmp_path)[0] == 0
    paper = tmp_path / "papers" / "own"
    second = (paper / "table1.toml").read_text(encoding="utf-8").replace("Table 1", "Table 2")
    (paper / "table2.toml").write_text(second, encoding="utf-8")
    words = ("reproduce", "own", "--runs", "1", "--figures", "charts")
    status, _, errors = ackademy_command(*words, cwd=tmp_path)
    assert (status, errors) == (0, "")
    names = [
        {path.name for path in (tmp_path / "charts" / one).iterdir()}
        for one in ("table1", "table2")
    ]
    assert names[0] == names[1]
    assert {"plane-short.svg", "plane-long.svg"} <= names[0]
