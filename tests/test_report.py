"""The HTML files: whole, self-contained, well-formed; the numbers in them."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ackademy
from ackademy.backends.schemes import parse
from ackademy.console import Console
from ackademy.render import report as render
from ackademy.render.html.markup import Markup, element, math_label, stacked
from ackademy.render.html.plane import Cloud, plane
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.series import Strip, strips
from ackademy.render.numbers import (
    even_ticks,
    log_ticks,
    percent,
    significant,
    ticks,
    with_interval,
)
from ackademy.runner.cases import Plan, of_file
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.runner.measured import measure, rows
from ackademy.stats.intervals import Interval
from ackademy.studies import compare
from ackademy.studies import run as of_run
from ackademy.studies.reproduce import report as reproduce_report
from ackademy.studies.reproduce.files import Paper
from ackademy.studies.reproduce.parts import doi
from ackademy.studies.reproduce.report import agrees
from ackademy.studies.reproduce.study import Reproduction
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
VOID = {"meta", "input", "br", "hr"}


class Page(HTMLParser):
    """Checks nesting and collects what a page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.words = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See what it loads."""
        self.loads += [str(v) for k, v in attrs if k in ("src", "srcset", "data", "xlink:href")]
        self.loads += [str(v) for k, v in attrs if k == "href" and tag != "a"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Nothing to close."""

    def handle_endtag(self, tag: str) -> None:
        """Must close what was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect what a reader sees."""
        self.words += data


def page_of(result: Reproduction) -> str:
    return render.page(reproduce_report.report(result))


def test_reproduction_page_is_whole_and_loads_nothing(result: Reproduction) -> None:
    text = page_of(result)
    page = Page(text)
    assert page.loads == []
    assert "@import" not in text
    assert "url(" not in text
    for word in (
        "All of it.",
        "proposed",
        "not in this table yet",
        "1 run: deterministic",
        "RL-TCP gets a throughput at all.",
        "Nobody & <Sons>",
    ):
        assert word in page.words


def test_a_reproduction_begins_with_what_holds_and_has_a_line_per_row(
    result: Reproduction,
) -> None:
    text = io.StringIO()
    console = Console(width=80, file=text)
    render.show(reproduce_report.report(result), console)
    printed = text.getvalue().splitlines()
    holding = sum(checked.verdict == "holds" for checked in result.claims)
    assert printed[0] == f"{holding} of {len(result.claims)} claims of the paper hold"
    rows = [own.printed for own in result.rows if not own.printed.missing]
    assert len(printed) <= 6 * (len(result.claims) - holding) + len(rows) + 20
    for row in rows:
        assert any(row.scheme in line and " | " in line for line in printed)
    page = page_of(result).partition("</header>")[0]
    assert re.search(r"<dl[^>]*><div><dd>\d+ of \d+</dd><dt>claims that hold</dt>", page)


def test_a_brief_reproduction_has_a_line_per_claim_those_that_hold_first(
    result: Reproduction,
) -> None:
    text = io.StringIO()
    render.show(reproduce_report.report(result), Console(width=200, file=text), "brief")
    printed = text.getvalue().splitlines()
    signs = [line[0] for line in printed if line[:2] in ("✓ ", "≈ ", "✗ ", "– ")]
    assert len(signs) == len(result.claims)
    assert signs.count("✓") == sum(one.verdict == "holds" for one in result.claims)
    assert signs == sorted(signs, key="✓≈✗–".index)
    schemes = {own.printed.scheme for own in result.rows if not own.printed.fitted}
    for scheme in schemes:
        assert any(scheme in line and " | " in line for line in printed)


def test_the_demo_ends_in_thirty_lines_of_a_terminal(tmp_path: Path) -> None:
    words = ("reproduce", "kong2018/table5", "--brief", "--runs", "1")
    status, out, errors = ackademy_command(*words, cwd=tmp_path)
    assert (status, errors) == (0, "")
    printed = [line for line in out.splitlines() if not re.match("Table 5 of kong2018: ", line)]
    assert len(printed) <= 30
    assert max(map(len, printed)) <= 80
    assert printed[-1] == "report: reports/kong2018-table5.html"
    assert (tmp_path / "reports" / "kong2018-table5.html").is_file()
    demo = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "ackademy reproduce kong2018/table5 --brief" in demo


def test_reproduction_page_is_the_same_bytes_each_time(result: Reproduction) -> None:
    assert page_of(result) == page_of(result)


def test_page_fits_a_phone_and_follows_the_reader_into_the_dark(
    result: Reproduction,
) -> None:
    text = page_of(result)
    assert "width=device-width" in text
    assert "prefers-color-scheme: dark" in text


def test_comparison_page_shows_every_controller(dumbbell: Path, tmp_path: Path) -> None:
    found = rows([of_file(dumbbell)], parse("new_reno,cubic"), Plan(2, 100.0), compare.METRICS)
    run_cells([cell for one in found for cell in one.cells], tmp_path / "r", local(1), quiet)
    own = compare.report(measure(found, tmp_path / "r"), tmp_path / "r", "ackademy x")
    page = Page(render.page(own))
    assert page.loads == []
    assert "new_reno · cubic" in page.words
    assert "2 runs" in page.words


def test_page_of_one_run_shows_its_flows(dumbbell: Path) -> None:
    run = ackademy.run(dumbbell, sample_interval_ms=50)
    page = Page(render.page(of_run.report(run, "ackademy run")))
    assert "bottleneck" in page.words
    assert page.loads == []


def test_text_is_escaped_and_markup_is_not() -> None:
    assert element("p", "a < b & c", Markup("<br/>")) == "<p>a &lt; b &amp; c<br/></p>"
    assert element("i", title='"x"') == '<i title="&quot;x&quot;"></i>'
    assert element("input", checked=True, disabled=False) == "<input checked/>"
    assert math_label("M_e") == "M<sub>e</sub>"
    assert math_label("tcp_drinc") == "tcp_drinc"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9.7623, "9.762"),
        (0.0, "0"),
        (2.6e-4, "2.60e−4"),
        (-0.541, "−0.5410"),
        (1234.5, "1234"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (0.001430, "0.001430"),
        (3e7, "3.00e7"),
    ],
)
def test_numbers_have_four_digits_that_count(value: float, text: str) -> None:
    assert significant(value) == text


def test_interval_is_left_out_where_there_is_one_run() -> None:
    assert with_interval(Interval(7.5, 7.5, 7.5)) == "7.500"
    assert with_interval(Interval(7.5, 7.4, 7.6)) == "7.500 ± 0.10"


def test_large_differences_are_factors() -> None:
    assert percent(0.018) == "+1.8 %"
    assert percent(-0.5) == "−50.0 %"
    assert percent(84.4) == "× 85.4"


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0.3, 10.2) == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert even_ticks(43.0) == pytest.approx([-30.0, 0.0, 30.0])


def test_thinned_line_keeps_its_extremes() -> None:
    time = np.arange(10_000.0)
    values = np.sin(time / 700.0)
    values[1234] = 9.0
    thin_time, thin_values = thin(time, values, 100)
    assert thin_time.size <= 200
    assert thin_values.max() == 9.0
    assert np.all(np.diff(thin_time) > 0.0)


def test_line_breaks_where_there_is_no_value() -> None:
    frame = Frame(Axis(0.0, 2.0), Axis(0.0, 1.0))
    path = frame.line(np.array([0.0, 1.0, 2.0]), np.array([0.0, np.nan, 1.0]))
    assert re.findall("[ML]", path) == ["M", "M"]


def test_ticks_of_a_logarithmic_axis_are_round_and_inside() -> None:
    assert log_ticks(3.0, 130.0) == [5.0, 10.0, 20.0, 50.0, 100.0]
    assert log_ticks(4e-4, 0.3) == [0.001, 0.01, 0.1]


def test_logarithmic_axis_puts_equal_factors_at_equal_distances() -> None:
    part = Axis(1.0, 100.0, is_log=True).part(np.array([1.0, 10.0, 100.0]))
    assert part == pytest.approx([0.0, 0.5, 1.0])


@pytest.mark.parametrize("whole", [True, False])
def test_plane_reaches_to_the_last_dot_if_it_is_to_be_whole(*, whole: bool) -> None:
    """Of 101 runs one lies ten deviations away, far outside the ellipse."""
    near = np.linspace(-1.0, 1.0, 100)
    cloud = Cloud("Vegas", 0, np.append(250.0 + near, 260.0), np.append(0.5 + near**2, 0.5))
    drawn = str(plane("one way", [cloud], whole=whole))
    (run,) = re.findall(r'class="run" d="([^"]+)"', drawn)
    across = [int(x) for x in re.findall(r"M(-?\d+) -?\d+h0", run)]
    assert len(across) == 101
    assert (max(across) <= 1000) == whole
    assert min(across) >= 0


def test_an_axis_of_delays_that_are_above_zero_does_not_reach_below() -> None:
    wide = Cloud("wide", 1, np.array([1.0, 2.0, 300.0]), np.array([5.0, 5.1, 4.0]))
    drawn = str(plane("title", [wide]))
    ticks = [float(t.replace("−", "-")) for t in re.findall(r'tick tick-x"[^>]*>([^<]+)<', drawn)]
    assert min(ticks) >= 0.0


def test_flows_of_one_run_have_colours_of_their_own_and_a_legend() -> None:
    time_s = [0.0, 1.0, 2.0]
    numbers = ("cwnd_packets", "srtt_ms", "lost_packets", "delivered_bytes", "arrived_bytes")
    flows = pl.concat(
        pl.DataFrame(
            {"time_s": time_s, "flow": [name] * 3, **{n: [1.0, 2.0, 3.0] for n in numbers}}
        )
        for name in ("first", "second")
    )
    links = pl.DataFrame({"time_s": time_s, "link": ["l"] * 3, "queue_packets": [0, 1, 2]})
    drawn = str(strips([Strip("run", "", 1, flows, links)]))
    assert drawn.count('class="line s0"') == drawn.count('class="line s1"') == 4
    assert re.search(r'class="legend".*first.*second', drawn)
    for title in ("cwnd", "RTT", "queue", "lost so far", "throughput: arrivals"):
        assert f"<b>{title}</b>" in drawn


def test_an_interval_stands_below_its_number() -> None:
    assert stacked("1.5 ± 0.2") == "1.5<small>± 0.2</small>"
    assert stacked("1.5 [0.1, 9]") == "1.5<small>[0.1, 9]</small>"
    assert stacked("–") == "–"


def test_a_lopsided_interval_shows_both_ends() -> None:
    assert with_interval(Interval(1.84, 0.35, 9.7)) == "1.840 [0.35, 9.7]"
    assert with_interval(Interval(1.84, 1.64, 2.04)) == "1.840 ± 0.20"


def test_a_number_six_times_the_published_one_is_not_green() -> None:
    wide = Interval(6.18, 0.5, 11.9)
    assert not agrees("delay_mean_ms", 1.0, wide)
    assert agrees("delay_mean_ms", 6.0, wide)


def test_a_paper_without_a_doi_has_no_link() -> None:
    assert doi(Paper("A", "B", "C", "not assigned")) == ""
    assert 'href="https://doi.org/10.1145/1"' in doi(Paper("A", "B", "C", "10.1145/1"))


def test_every_chart_tip_can_be_reached_by_keyboard() -> None:
    script = (files("ackademy.render.html") / "script.js").read_text()
    tips = script.split("[data-tip]")[1].split("// A heading sorts")[0]
    assert 'setAttribute("tabindex", "0")' in tips
    assert 'addEventListener("focus"' in tips


def test_a_plane_leaves_out_schemes_without_a_delay() -> None:
    silent = Cloud("silent", 0, np.array([np.nan, np.nan]), np.zeros(2))
    acked = Cloud("acked", 1, np.array([1.0, 2.0, 3.0]), np.array([5.0, 5.1, 4.0]))
    drawn = str(plane("title", [silent, acked]))
    assert drawn.count('class="oval"') == 1
    assert "↖ better" in drawn


def test_a_plane_of_runs_without_a_delay_is_an_empty_panel() -> None:
    silent = Cloud("silent", 0, np.array([np.nan]), np.zeros(1))
    drawn = str(plane("title", [silent]))
    assert 'class="oval"' not in drawn
    assert "nothing to draw" in drawn
    printed = replace(silent, published=(10.0, 2.0))
    assert "silent, published" in str(plane("title", [printed]))
