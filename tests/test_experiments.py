"""Cells: named by what they depend on, written whole or not at all, run once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from ackademy import EngineError, ExperimentError, ScenarioError
from ackademy.runner.cells import Cell, Outcome, attempt, key, store
from ackademy.runner.engines import local
from ackademy.runner.experiments import Interrupted, quiet, read, run_cells


@pytest.fixture
def cell(dumbbell: Path) -> Cell:
    return Cell(dumbbell.read_text(), str(dumbbell), "new_reno", seed=1)


def cells_of(cell: Cell, count: int) -> list[Cell]:
    first = replace(cell, sample_interval_ms=100.0)
    return [first, *(replace(cell, seed=seed) for seed in range(2, count + 1))]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_any_number_of_processes_leaves_the_same_bytes(cell: Cell, tmp_path: Path) -> None:
    found = []
    for jobs in (1, 2, 8):
        batch = run_cells(cells_of(cell, 9), tmp_path / str(jobs), local(jobs), quiet)
        assert (batch.n_cells, batch.n_reused, batch.failures) == (9, 0, [])
        found.append(content(tmp_path / str(jobs)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 9 * 5 + 2


def test_finished_cells_are_not_run_again(cell: Cell, tmp_path: Path) -> None:
    cells = cells_of(cell, 3)
    run_cells(cells[:2], tmp_path, local(1), quiet)
    assert run_cells(cells, tmp_path, local(1), quiet).n_reused == 2


def test_deleted_folder_reruns_that_cell_to_the_same_bytes(cell: Cell, tmp_path: Path) -> None:
    run_cells([cell], tmp_path / "a", local(1), quiet)
    before = content(tmp_path / "a")
    for path in (tmp_path / "a" / key(cell)).iterdir():
        path.unlink()
    (tmp_path / "a" / key(cell)).rmdir()
    assert run_cells([cell], tmp_path / "a", local(1), quiet).n_reused == 0
    assert content(tmp_path / "a") == before


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"controller": "cubic"},
        {"sample_interval_ms": 10.0},
        {"overrides": (("dumbbell.rtt_ms", "21"),)},
        {"controller": "cubic", "params": (("beta", 0.5),)},
    ],
    ids=lambda change: ", ".join(change),
)
def test_name_of_a_cell_changes_with_what_it_depends_on(
    cell: Cell, change: dict[str, object]
) -> None:
    assert key(replace(cell, **change)) != key(cell)  # type: ignore[arg-type]


def test_name_of_a_cell_ignores_comments_of_the_scenario(cell: Cell) -> None:
    assert key(replace(cell, text=f"# more words\n{cell.text}")) == key(cell)


def test_name_of_a_cell_changes_with_the_python_controller(
    cell: Cell, controller: Callable[[str], str]
) -> None:
    source = "class Mine:\n    on_ack = on_loss = print\n"
    names = []
    for text in (source, source + "# changed\n"):
        names.append(key(replace(cell, controller=controller(text))))
    assert names[0] != names[1]


def test_summary_holds_totals_and_numbers_of_a_report(cell: Cell, tmp_path: Path) -> None:
    run_cells([cell], tmp_path, local(1), quiet)
    summary = read(tmp_path, cell, "summary")
    assert summary.height == 2
    assert {"delivered_bytes", "throughput_mbps", "delay_ms", "m_e"} <= set(summary.columns)
    assert read(tmp_path, cell, "counters").schema["name"] == pl.String


def test_reading_a_cell_that_was_not_run_says_so(cell: Cell, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="run the experiment first"):
        read(tmp_path, cell, "summary")


def test_failing_cell_is_reported_and_the_rest_go_on(
    cell: Cell, tmp_path: Path, controller: Callable[[str], str]
) -> None:
    source = "class Mine:\n    on_ack = on_loss = print\n    def __init__(self, flow): 1 / 0\n"
    bad = replace(cell, controller=controller(source))
    for jobs in (1, 2):
        cells = [bad, *cells_of(cell, 4)]
        batch = run_cells(cells, tmp_path / str(jobs), local(jobs), quiet)
        assert [failure.cell for failure in batch.failures] == [bad]
        assert "ZeroDivisionError" in batch.failures[0].error
        assert "mine.py" in batch.failures[0].error
        assert len(content(tmp_path / str(jobs))) == 5 * 4 + 2


def test_worker_that_dies_takes_one_cell_with_it(
    cell: Cell, tmp_path: Path, controller: Callable[[str], str]
) -> None:
    source = "import os\nclass Mine:\n    on_ack = on_loss = print\n"
    bad = replace(cell, controller=controller(source + "    def __init__(self, f): os._exit(9)\n"))
    batch = run_cells([bad, *cells_of(cell, 5)], tmp_path, local(2), quiet)
    assert [failure.cell for failure in batch.failures] == [bad]
    assert "died (9)" in batch.failures[0].error


def test_cells_without_python_start_no_process(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ackademy.runner.engines.processes._Worker")
    assert not run_cells(cells_of(cell, 4), tmp_path, local(2), quiet).failures


def test_an_engine_that_is_closed_ends_what_it_simulates(cell: Cell) -> None:
    """Else the second and third cell would take minutes."""
    long = [replace(own, overrides=(("duration_s", "100000"),)) for own in cells_of(cell, 3)[1:]]
    outcomes = local(3)([cell, *long])
    assert next(iter(outcomes)).error == ""
    began = time.monotonic()
    cast("Generator[Outcome, None, None]", outcomes).close()
    assert time.monotonic() - began < 20.0


def test_interruption_keeps_what_was_finished(cell: Cell, tmp_path: Path) -> None:
    def engine(cells: Sequence[Cell]) -> Iterator[Outcome]:
        yield attempt(0, cells[0])
        if len(cells) > 1:  # the first seed is run by itself
            raise KeyboardInterrupt

    cells = cells_of(cell, 5)
    with pytest.raises(Interrupted, match="2 of 5 cells"):
        run_cells(cells, tmp_path, engine, quiet)
    assert run_cells(cells, tmp_path, local(1), quiet).n_reused == 2


def test_nothing_unfinished_is_left_behind(cell: Cell, tmp_path: Path) -> None:
    run_cells(cells_of(cell, 2), tmp_path, local(1), quiet)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_cell_written_twice_at_once_is_kept_once(tmp_path: Path) -> None:
    store(tmp_path / "cell", {"a": b"first"}, tmp_path / "one")
    store(tmp_path / "cell", {"a": b"second"}, tmp_path / "two")
    assert (tmp_path / "cell" / "a").read_bytes() == b"first"
    assert not (tmp_path / "two").exists()


def test_wrong_scenario_is_refused_before_anything_runs(cell: Cell, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError):
        run_cells([cell, replace(cell, text="duration_s = 0")], tmp_path, local(1), quiet)
    assert content(tmp_path) == {"dumbbell.toml": cell.text.encode()}


def test_progress_counts_from_what_is_there_to_all(cell: Cell, tmp_path: Path) -> None:
    cells, seen = cells_of(cell, 3), list[tuple[int, int]]()
    run_cells(cells[:1], tmp_path, local(1), quiet)
    run_cells(cells, tmp_path, local(1), lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_engine_without_processes_is_refused() -> None:
    with pytest.raises(EngineError, match="--jobs 0"):
        local(0)
