"""Pages of results: their tables are those of the CSV files, each file has a source, sizes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = sorted(RESULTS.rglob("*.md"))


@pytest.fixture(scope="module")
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_tables_are_those_of_their_csv_files(results: ModuleType) -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    stale = [page.name for page in pages if results.drawn(text := page.read_text("utf-8")) != text]
    assert stale == []


def test_every_csv_file_has_a_command_with_its_hours(results: ModuleType) -> None:
    sources = results.sources()
    assert set(sources) == {file.stem for file in results.DATA.glob("*.csv")}
    assert all(entry["command"] and entry["hours"] > 0 for entry in sources.values())
    assert all(("writes" in entry) or entry["program"] for entry in sources.values())


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
    assert results.table("long; metrics: M = m | N = n").splitlines()[2] == (
        "| x | 1 | 2 ± 0.5 | 3 |"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_at_most_12_kb(page: Path) -> None:
    assert page.stat().st_size <= 12_288


def test_all_pages_have_at_most_150_kb() -> None:
    assert sum(page.stat().st_size for page in PAGES) <= 150_000
