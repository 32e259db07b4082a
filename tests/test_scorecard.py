"""`ackademy scorecard`: cards end to end, and what is refused."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ackademy import lookup
from ackademy.backends.schemes import parse
from ackademy.console import Console
from ackademy.errors import ExperimentError
from ackademy.render import terminal
from ackademy.render.report import Only
from ackademy.render.sheet import Sheet
from ackademy.studies.scorecard import card as cards
from ackademy.studies.scorecard import grid, report, study
from ackademy.studies.scorecard.marks import Mark, Verdict
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
TINY = """
title = "tiny"
document = "a document"
about = "Two rows."
runs = 2
rivals = ["cubic", "not_registered_yet"]
quick = { runs = 1, networks = 1, duration_s = 2 }
kernel = { runs = 1, networks = 1, duration_s = 2 }

[[row]]
id = "A1"
name = "use"
section = "1"
word = "MUST"
about = "The link is used."

[[row.part]]
name = "a clean link"
duration_s = 2
axes = { rate_mbps = [5, 10], rtt_ms = [20, 40] }
scenario.dumbbell.rtt_ms = "$rtt_ms"
scenario.dumbbell.bottleneck.rate_mbps = "$rate_mbps"
scenario.dumbbell.bottleneck.queue = { kind = "drop_tail", bdp = 1 }
scenario.flow = [{ name = "own", controller = "cubic" }]
check = [
    { measure = "steady_use", at_least = 0.5 },
    { measure = "steady_wait_p95", at_most = 1e-6 },
]

[[row]]
id = "A2"
name = "harm"
section = "2"
word = "should"
about = "A victim keeps its share."

[[row.part]]
name = "beside one victim"
duration_s = 2
axes = { victim = ["new_reno", "not_registered_yet"], rtt_ms = [20] }
values = { rate_mbps = 8 }
variants = [{ name = "alone", without = "own*" }, { name = "beside" }]
scenario.dumbbell.rtt_ms = "$rtt_ms"
scenario.dumbbell.bottleneck.rate_mbps = "$rate_mbps / 2"
scenario.dumbbell.bottleneck.queue = { kind = "drop_tail", bdp = 1 }
scenario.flow = [
  { name = "victim", controller = "$victim" },
  { name = "own", controller = "cubic" },
]
check = [{ measure = "harm_throughput", excess_over = "cubic", at_most = 0.5 }]

[[row]]
id = "A3"
name = "paths"
section = "3"
word = "MUST"
about = "Several paths."
not_applicable = "one path"
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


def write_controller(path: Path, on_ack: str) -> None:
    path.write_text(
        "class Mine:\n"
        "    def __init__(self, flow):\n"
        "        self.cwnd_bytes = 30000.0\n"
        "    def on_ack(self, ack):\n"
        f"        {on_ack}\n"
        "    def on_loss(self, loss):\n"
        "        pass\n",
        encoding="utf-8",
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_a_card_has_a_line_per_row_a_page_and_numbers(tmp_path: Path, tiny: Path) -> None:
    words = ("scorecard", "new_reno", "--card", tiny, "--jobs", "1", "--csv", "card.csv")
    status, out, err = ackademy_command(*words, cwd=tmp_path)
    assert status == 0, err
    assert "A1 use" in out
    assert "A3 not applicable: one path" in out
    assert "rival not_registered_yet: not registered, left out" in out
    lines = rows_of(tmp_path / "card.csv")
    assert [line["row"] for line in lines] == ["A1", "A1", "A2", "A3"]
    assert [line["mark"] for line in lines[:2]] == ["pass", "fail"]
    assert lines[0]["row_mark"] == "fail"
    assert lines[0]["command"] == f"ackademy scorecard new_reno --row A1 --card {tiny}"
    assert float(lines[0]["new_reno_mean"]) > 0.5
    assert float(lines[0]["cubic_difference_low"]) <= float(lines[0]["cubic_difference_high"])
    page = (tmp_path / "reports" / "scorecard-new_reno.html").read_text(encoding="utf-8")
    assert "The link is used." in page
    assert "http://" not in page
    assert "https://" not in page


def test_the_next_card_finds_the_runs_of_the_first(tmp_path: Path, tiny: Path) -> None:
    common = ("--card", tiny, "--jobs", "1", "--row", "a1")
    ackademy_command("scorecard", "cubic", *common, "--against", "new_reno", cwd=tmp_path)
    status, out, _ = ackademy_command("scorecard", "new_reno", *common, cwd=tmp_path)
    assert status == 0
    # 4 networks, 2 seeds, 2 controllers; the two have changed places.
    assert "0 simulations run, 8 found finished, 8 more seeds not run" in out


def test_a_card_says_beforehand_how_long_it_takes(tmp_path: Path, tiny: Path) -> None:
    loaded = cards.load(str(tiny))
    plan = study.Plan(loaded, parse("cubic")[0], (), loaded.full)
    rows = study.planned(plan)
    part = rows[0].parts[0]
    cells = list(part.cells.values())
    mbit = sum(2.0 * part.networks[index].number("rate_mbps") for _, index, _, _ in part.cells)
    expected = len(cells) * study.RUN_S + mbit * study.MBIT_S
    assert study.expected_s(plan, rows, cells) == pytest.approx(expected)
    assert study.expected_s(plan, rows, []) == 0.0
    kernel = study.Plan(loaded, parse("cubic")[0], (), loaded.full, "kernel")
    assert study.expected_s(kernel, rows, cells) == 2.0 * len(cells)
    words = ("scorecard", "cubic", "--card", tiny, "--row", "A1", "--against", "")
    _, first, _ = ackademy_command(*words, cwd=tmp_path)
    assert first.startswith("8 runs, 0 of them found finished: about 0 s for the others")
    _, again, _ = ackademy_command(*words, cwd=tmp_path)
    assert again.startswith("8 runs, 8 of them found finished\n")


def test_a_quick_card_runs_a_part_of_the_networks(tmp_path: Path, tiny: Path) -> None:
    words = ("scorecard", "cubic", "--card", tiny, "--row", "A1", "--quick", "--against", "")
    status, out, err = ackademy_command(*words, "--jobs", "1", cwd=tmp_path)
    assert status == 0, err
    assert "1 simulations run" in out
    assert "cubic (quick, one seed)" in " ".join(out.split())
    page = tmp_path / "reports" / "scorecard-cubic-A1-quick-one-seed.html"
    assert "cubic (quick, one seed)" in page.read_text(encoding="utf-8")


def test_the_summary_shows_the_measure_that_decided_the_mark() -> None:
    marks = (Mark("pass"), Mark("fail", "why"), Mark("fail"))
    row: Any = SimpleNamespace()
    checks: Any = tuple(SimpleNamespace(mark=mark) for mark in marks)

    def decisive(verdict: Verdict) -> object:
        return study.RowResult(row, checks, Mark(verdict)).decisive

    assert decisive("fail") is checks[1]
    assert decisive("pass") is checks[0]
    assert decisive("reported") is checks[0]
    assert study.RowResult(row, (), Mark("fail")).decisive is None


def test_a_python_controller_is_judged(tmp_path: Path, tiny: Path) -> None:
    write_controller(tmp_path / "mine.py", on_ack="pass")
    words = ("scorecard", tmp_path / "mine.py:Mine", "--card", tiny, "--row", "A2", "--jobs", "1")
    status, out, err = ackademy_command(*words, cwd=tmp_path)
    assert status == 0, err
    assert "A2 harm" in out


def test_a_run_that_ends_with_an_error_fails_its_row(tmp_path: Path, tiny: Path) -> None:
    write_controller(tmp_path / "bad.py", on_ack="raise ValueError('lost my way')")
    words = ("scorecard", tmp_path / "bad.py:Mine", "--card", tiny, "--row", "A1", "--jobs", "1")
    status, out, _ = ackademy_command(*words, cwd=tmp_path)
    assert status == 2
    assert "A1 fail: 8 runs ended with an error" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("cubik",), "controller cubik: no controller and no policy of this name"),
        (("cubic", "--row", "Z9"), "--row Z9: allowed: C1"),
        (("cubic", "--against", "nonsense"), "--against nonsense: allowed: controllers of"),
        (("cubic", "--card", "nothing"), "nothing: No such file, and no scorecard of this name"),
        (("cubic,vegas",), "scorecard: cubic,vegas: allowed: one controller"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    status, out, err = ackademy_command("scorecard", *words, cwd=tmp_path)
    assert status == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert expected in err


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            'measure = "steady_use"',
            'measure = "usage"',
            "measure = 'usage': allowed: steady_wait_p50",
        ),
        ('id = "A2"', 'id = "A1"', "row.id = 'A1': allowed: an id that is used once"),
        ("at_most = 1e-6", "atmost = 1", "atmost = 1: allowed: no such key, only measure"),
        ("at_most = 1e-6", 'over = "all"', "over = 'all': allowed: worst, mean"),
        ("[5, 10]", "5", "axes.rate_mbps = 5: allowed: a list of values"),
        ('not_applicable = "one path"', "", "part = 0: allowed: parts, not_applicable"),
        ('name = "beside" }', 'name = "near" }', "in a part with the variants alone, beside"),
        ('name = "beside" }', 'name = "alone" }', "variants.name = ['alone', 'alone']: allowed"),
    ],
)
def test_a_fault_in_a_card_is_named(tiny: Path, old: str, new: str, expected: str) -> None:
    tiny.write_text(TINY.replace(old, new), encoding="utf-8")
    with pytest.raises(ExperimentError) as found:
        cards.load(str(tiny))
    assert expected in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('[{ name = "own", controller = "cubic" }]', "1e7", "flow = 10000000.0: allowed: a list"),
        ('[{ name = "own", controller = "cubic" }]', "[1e7]", "scenario: flow"),
        ('name = "own"', 'name = "mine"', "flow: allowed: a flow own* in the variant run"),
        ("[20, 40]", "[-1]", "scenario: dumbbell.rtt_ms = -1: allowed is"),
        ("[5, 10]", "[1" + "0" * 400 + "]", "bottleneck.rate_mbps = inf: allowed is a"),
        ('"$rate_mbps / 2"', '"$rate_mbps / 0"', "$rate_mbps / 0: float division by zero"),
        ('"$rate_mbps / 2"', '"$rate_mbps /"', "$rate_mbps /: allowed: $name, then * or /"),
    ],
)
def test_a_wrong_scenario_of_a_card_is_one_line_before_any_run(
    tmp_path: Path, tiny: Path, old: str, new: str, expected: str
) -> None:
    tiny.write_text(TINY.replace(old, new, 1), encoding="utf-8")
    words = ("scorecard", "new_reno", "--card", tiny, "--jobs", "1", "--csv", "card.csv")
    status, out, err = ackademy_command(*words, cwd=tmp_path)
    assert (status, out, len(err.splitlines())) == (2, "", 1), err
    assert f"{tiny}: row[" in err
    assert expected in err
    assert not (tmp_path / "runs").exists()


def test_a_placeholder_without_a_value_is_named(tiny: Path) -> None:
    tiny.write_text(TINY.replace('"$rate_mbps / 2"', '"$rate / 2"'), encoding="utf-8")
    part = cards.load(str(tiny)).rows[1].parts[0]
    network = grid.networks(part, cards.load(str(tiny)).full)[0]
    with pytest.raises(ExperimentError, match=r"\$rate: allowed: \$rate_mbps"):
        grid.text(part, network, part.variants[0])


def test_a_victim_that_is_not_registered_is_left_out_and_said_so(tiny: Path) -> None:
    part = cards.load(str(tiny)).rows[1].parts[0]
    assert grid.absent(part) == ["not_registered_yet"]
    labels = [own.label for own in grid.networks(part, cards.load(str(tiny)).full)]
    assert labels == ["victim new_reno, rtt_ms 20"]


def test_the_run_of_a_victim_alone_is_the_same_for_all_controllers(tiny: Path) -> None:
    loaded = cards.load(str(tiny))
    plan = study.Plan(loaded, parse("cubic")[0], tuple(parse("vegas")), loaded.quick)
    cells = study.planned(plan)[1].parts[0].cells
    assert cells["cubic", 0, 1, "alone"] == cells["vegas", 0, 1, "alone"]
    assert cells["cubic", 0, 1, "beside"] != cells["vegas", 0, 1, "beside"]


def test_every_scenario_of_the_card_can_be_run() -> None:
    loaded = cards.load("rfc9743")
    plan = study.Plan(loaded, parse("cubic")[0], (), loaded.full)
    faults = [part.fault for row in study.planned(plan) for part in row.parts if part.fault]
    assert faults == []


def test_rows_have_the_sections_of_the_document() -> None:
    loaded = cards.load("rfc9743")
    assert all(row.section[0] in "3567 8" for row in loaded.rows)
    assert all(row.about.endswith(".") for row in loaded.rows)
    assert [row.id for row in loaded.rows][:10] == [f"C{number}" for number in range(1, 11)]


def test_the_docs_name_every_row_and_every_measure() -> None:
    page = (ROOT / "docs" / "reference" / "scorecard.md").read_text(encoding="utf-8")
    for row in cards.load("rfc9743").rows:
        assert f"| {row.id} | " in page
        assert row.about in page
    assert "scorecard" in lookup.FOLDERS


@pytest.mark.parametrize("controller", ["cubic", "learningcc"])
def test_the_quick_card_of_a_controller_is_complete(tmp_path: Path, controller: str) -> None:
    words = ("scorecard", controller, "--quick", "--against", "cubic", "--csv", "card.csv")
    status, out, err = ackademy_command(*words, cwd=tmp_path)
    assert status == 0, err
    lines = rows_of(tmp_path / "card.csv")
    known = {row.id for row in cards.load("rfc9743").rows}
    assert {line["row"] for line in lines} == known
    assert "error" not in out


def fabricated(loaded: cards.Card, plan: study.Plan) -> list[study.RowResult]:
    """Results of every row with numbers that were not measured."""
    rng = np.random.default_rng(1)
    found = []
    for row in loaded.rows:
        checks = []
        for part in row.parts[:1]:
            planned = study.PlannedPart(part, tuple(grid.networks(part, plan.limits)), {})
            shape = (len(planned.networks), plan.limits.runs)
            runs = {own.label: rng.lognormal(0.0, 3.0, shape) for own in plan.schemes}
            checks = [study._check(plan, planned, part.checks[0], runs)]
        mark = checks[0].mark if checks else Mark("not applicable", row.not_applicable)
        found.append(study.RowResult(row, tuple(checks), mark))
    return found


@pytest.mark.parametrize("rivals", [["cubic", "new_reno"], ["cubic", "new_reno", "bbr1", "bbr3"]])
def test_a_narrow_terminal_shows_one_table_per_group_of_rows(rivals: list[str]) -> None:
    loaded = cards.load("rfc9743")
    known, _ = study.rivals(rivals)
    plan = study.Plan(loaded, parse("learningcc")[0], tuple(known), loaded.quick)
    found = fabricated(loaded, plan)
    out = io.StringIO()
    shown = Console(file=out, width=80)
    for own in report._printed(plan, found, shown):
        assert isinstance(own, Only)
        assert isinstance(own.item, Sheet | str)
        for line in terminal.sheet(own.item, shown) if isinstance(own.item, Sheet) else [own.item]:
            shown.print(line)
    lines = [f" {line}" for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= 81
    titles = [
        line.strip()
        for line in lines
        if line.startswith(" RFC 9743: learningcc (quick, one seed), ")
    ]
    ranges = [title.removeprefix("RFC 9743: learningcc (quick, one seed), ") for title in titles]
    assert ranges == ["C1 to C10", "P1", "G1 to G4", "S1 to S11", "D1"]
    for row in loaded.rows:
        named = [line for line in lines if f" {row.id} " in line and line.strip() not in titles]
        assert len(named) == 1, row.id
