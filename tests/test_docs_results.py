"""Pages of results: their tables are those of the CSV files, each file has a source, sizes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = sorted(RESULTS.rglob("*.md"))


@pytest.fixture(scope="module")
def results() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module("results")


@pytest.fixture(scope="module")
def result_tables(results: ModuleType) -> ModuleType:
    made: ModuleType = results.result_tables
    return made


def test_tables_are_those_of_their_csv_files(results: ModuleType) -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    stale = [page.name for page in pages if results.drawn(text := page.read_text("utf-8")) != text]
    assert stale == []


def test_every_csv_file_has_a_command_with_its_hours(results: ModuleType) -> None:
    names = [name for entry in results.sources() for name in results.names_of(entry)]
    assert sorted(names) == sorted(file.stem for file in results.DATA.glob("*.csv"))
    made = results.made_tables()
    for entry in results.sources():
        assert entry["command"]
        assert entry["hours"] > 0
        assert "program" in entry or set(results.names_of(entry)) <= set(made)


def test_a_made_file_has_the_columns_that_its_page_shows(results: ModuleType) -> None:
    pages = [page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")]
    markers = [found[2] for text in pages for found in results.BLOCK.finditer(text)]
    for marker in markers:
        name, asked = results.fields(marker)
        columns = results.read(name)[0].keys()
        shown = {one.split(" = ")[-1] for one in asked["columns"]}
        assert shown <= {*columns}, marker


def test_a_table_of_markdown_has_its_intervals_in_columns(
    result_tables: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text(
        "### Other\n\n| a |\n| --- |\n| 1 |\n\n"
        "### This one, by line\n\n| of | n |\n| --- | ---: |\n| `x` | **−1.5 ± 0.2** |\n"
        "| y \\| z | 2 [1, 3] |\n"
    )
    rows = result_tables.rows_of(tmp_path, {"file": "page.md", "below": "This one"})
    assert rows == [
        {"of": "x", "n": "-1.5", "n ±": "0.2"},
        {"of": "y | z", "n": "2", "n low": "1", "n high": "3"},
    ]
    result_tables.write_rows(tmp_path / "out.csv", rows)
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "of,n,n ±,n low,n high"


def test_files_of_several_words_are_one_table(result_tables: ModuleType, tmp_path: Path) -> None:
    for word, text in (("a", "k,v\nx,1\ny,3\n"), ("b", "k,v\nx,2\ny,4\n")):
        (tmp_path / f"{word}.csv").write_text(text)
    spec = {"file": "{each}.csv", "stack": "of", "sort": "v", "heads": {"k": "key"}}
    rows = result_tables.rows_of(tmp_path, spec, ["a", "b"])
    assert [(row["of"], row["key"], row["v"]) for row in rows] == [
        ("b", "y", "4"), ("a", "y", "3"), ("b", "x", "2"), ("a", "x", "1"),
    ]  # fmt: skip
    wide = {"file": "a.csv", "across": {"lines": ["v"], "columns": "k", "cells": ["v", "v"]}}
    assert result_tables.rows_of(tmp_path, wide)[0] == {"v": "1", "x": "1 · 1"}


def test_a_grid_has_ours_and_the_published_numbers(
    result_tables: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text(
        "row,metric,published,ours,ci_low,ci_high,runs\n"
        "A one,m:l,1,2,1.5,2.5,5\nA two,m:l,,3,3,3,1\nB one,m:l,4,5,nan,nan,1\n"
    )
    spec = {"columns": ["one", "two"], "cell": "{m:l:.1f?} | {m:l:.1f±}"}
    assert result_tables.rows_of(tmp_path, {"file": "r.csv", "grid": spec}) == [
        {"scheme": "A", "one": "1.0 | 2.0 ± 0.5", "two": "– | 3.0"},
        {"scheme": "B", "one": "4.0 | 5.0"},
    ]
    swapped = {"columns": ["one"], "cell": "{m:l:.1f±}", "head": "what", "swap": ["B", "A"]}
    assert result_tables.rows_of(tmp_path, {"file": "r.csv", "grid": swapped}) == [
        {"what": "one", "B": "5.0", "A": "2.0", "A ±": "0.5"}
    ]


def test_gains_are_over_the_bases_of_a_group_or_of_the_first(
    result_tables: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text(
        "row,metric,published,ours,ci_low,ci_high,runs\n"
        "D one,m,,3,2.9,3.1,5\nL one,m,,2,2,2,5\nD so two,m,,4,4,4,5\nD two,m,,9,9,9,5\n"
    )
    spec = {"metric": "m", "own": ["D so", "D"], "bases": {"L": "L"}}
    spec["groups"] = {"first": "one", "second": "two"}
    assert result_tables.rows_of(tmp_path, {"file": "r.csv", "gains": spec}) == [
        {"choice": "first", "D": "3.00", "D ±": "0.10", "L": "50"},
        {"choice": "second", "D": "4.00", "L": "100"},
    ]


def test_a_gap_has_both_sides_and_the_kernels_own(
    result_tables: ModuleType, tmp_path: Path
) -> None:
    head = "| scenario | controller | simulator | kernel |\n| --- | --- | ---: | ---: |\n"
    (tmp_path / "gap.md").write_text(
        f"### Loss\n\n{head}| fast | cubic | 1 ± 0.1 | 2 |\n| fast | kernel:cubic | – | 3 |\n"
    )
    spec = {"controller": "cubic", "baseline": "kernel:cubic", "metrics": {"loss": "### Loss"}}
    (row,) = result_tables.rows_of(tmp_path, {"file": "gap.md", "beside": spec})
    assert row == {
        "scenario": "fast", "loss, simulator": "1", "loss, simulator ±": "0.1",
        "loss, daemon": "2", "loss, kernel:cubic": "3",
    }  # fmt: skip


def test_cards_are_one_table(result_tables: ModuleType, tmp_path: Path) -> None:
    for name, mean in (("cubic", "0.12345"), ("vegas", "")):
        (tmp_path / f"{name}.csv").write_text(
            f"row,name,row_mark,measure,unit,{name}_mean\nC1,collapse,pass,loss,ms,{mean}\n"
            f"C1,collapse,pass,other,,3\nC2,blind,fail,x,,7\n"
        )
    spec = {"file": "{each}.csv", "cards": True}
    rows = result_tables.rows_of(tmp_path, spec, ["cubic", "vegas"])
    assert rows[0] == {
        "row": "C1 collapse", "first measure": "loss, ms", "cubic": "pass 0.123", "vegas": "pass",
    }  # fmt: skip
    assert rows[-1]["vegas"] == "1 pass, 1 fail"


def test_sources_with_needs_run_only_if_a_table_is_named(
    results: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {"command": "a {each}", "each": ["1", "2"], "hours": 1, "tables": {"x": {}, "y": {}}}
    rooted = {"command": "b", "hours": 2, "needs": "root", "tables": {"z": {}}}
    monkeypatch.setattr(results, "sources", lambda: [plain, rooted])
    made = {"x": ["a {each}", "now"]}
    assert [list(entry["tables"]) for entry in results.due([], made, "now")] == [["y"]]
    assert [list(entry["tables"]) for entry in results.due(["z"], made, "now")] == [["z"]]
    assert results.due(["x"], made, "now") == []
    assert results.commands_of(plain) == ["a 1", "a 2"]


def test_a_table_has_intervals_chosen_columns_and_lines(
    results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "DATA", tmp_path)
    (tmp_path / "wide.csv").write_text("a,b,b ±,c low,c high,c\nx,-1.5,0.1,2,4,3\ny,2,,,,1|2\n")
    (tmp_path / "long.csv").write_text(
        "row,metric,published,ours,ci_low,ci_high\nx,m,1,2,1.5,2.5\nx,n,,3,3,3\n"
    )
    assert results.table("wide; where: a = x; columns: B = b | c") == (
        "| B | c |\n| --- | ---: |\n| −1.5 ± 0.1 | 3 [2, 4] |\n"
    )
    assert results.table("wide; columns: a | c").splitlines()[3] == "| y | 1\\|2 |"
    (tmp_path / "twice.csv").write_text("k,v\nx,1\ny,2\ny,3\nx,4\n")
    assert results.table("twice; one: k; columns: v").splitlines()[2:] == ["| 1 |", "| 2 |"]
    assert results.table("long; metrics: M = m | N = n").splitlines()[2] == (
        "| x | 1 | 2 ± 0.5 | 3 |"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_at_most_12_kb(page: Path) -> None:
    assert page.stat().st_size <= 12_288


def test_all_pages_have_at_most_150_kb() -> None:
    assert sum(page.stat().st_size for page in PAGES) <= 150_000
