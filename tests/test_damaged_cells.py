"""Cells that are on disk and cannot be read are run again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from ackademy import sums
from ackademy.errors import ExperimentError, FileError
from ackademy.papers.knott2023 import training as beta_training
from ackademy.runner import experiments
from ackademy.runner.cells import Cell, key
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def hollow(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4] + bytes(len(content) - 300) + content[-296:])


def flipped(path: Path) -> None:
    """One bit differs, in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "truncated": truncated,
    "hollow": hollow,
    "empty": lambda path: path.open("wb").close(),
    "flipped": flipped,
    "pipe": piped,
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("table", experiments.TABLES)
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_cell_is_run_again_to_the_same_bytes(
    dumbbell: Path, how: str, table: str
) -> None:
    folder = dumbbell.parent / "runs"
    cell = Cell(dumbbell.read_text(), str(dumbbell), "cubic", 1)
    assert run_cells([cell], folder, local(1), quiet).damaged == ()
    path = folder / key(cell) / f"{table}.parquet"
    content = path.read_bytes()
    DAMAGE[how](path)
    experiments._readable.clear()  # another process
    assert not experiments.is_finished(folder, cell)
    batch = run_cells([cell], folder, local(1), quiet)
    assert (batch.n_reused, batch.failures) == (0, [])
    (fault,) = batch.damaged
    assert fault.startswith(str(path))
    assert "\n" not in fault
    assert path.read_bytes() == content
    assert experiments.is_finished(folder, cell)


@pytest.mark.parametrize("table", experiments.TABLES)
def test_a_cell_is_what_its_digests_say_at_every_bit(dumbbell: Path, table: str) -> None:
    """Polars takes some flipped bits for other numbers, and ends the process at others."""
    folder = dumbbell.parent / "runs"
    cell = Cell(dumbbell.read_text(), str(dumbbell), "cubic", 1)
    run_cells([cell], folder, local(1), quiet)
    place = folder / key(cell)
    path, digests = place / f"{table}.parquet", sums.read(place)
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 97):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(FileError, match="not what its SHA-256 in SHA256SUMS says"):
            sums.checked(path, digests)


@pytest.mark.parametrize("how", ["missing", "empty", "pipe", "flipped"])
def test_a_cell_without_digests_is_run_again(dumbbell: Path, how: str) -> None:
    """As those of earlier versions are."""
    folder = dumbbell.parent / "runs"
    cell = Cell(dumbbell.read_text(), str(dumbbell), "cubic", 1)
    run_cells([cell], folder, local(1), quiet)
    path = folder / key(cell) / sums.SUMS
    content = path.read_bytes()
    DAMAGE[how](path)
    experiments._readable.clear()  # another process
    batch = run_cells([cell], folder, local(1), quiet)
    assert (batch.n_reused, len(batch.damaged)) == (0, 1)
    assert "\n" not in batch.damaged[0]
    assert path.read_bytes() == content


def test_what_is_damaged_while_it_is_read_is_one_line_and_gone(dumbbell: Path) -> None:
    folder = dumbbell.parent / "runs"
    cell = Cell(dumbbell.read_text(), str(dumbbell), "cubic", 1, sample_interval_ms=100.0)
    run_cells([cell], folder, local(1), quiet)
    place = folder / key(cell)
    truncated(place / "flow_series.parquet")
    with pytest.raises(ExperimentError, match="run the same command again") as caught:
        experiments.read(folder, cell, "flow_series")
    assert "\n" not in str(caught.value)
    assert not place.exists()


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_training_counts_as_not_there(tmp_path: Path, how: str) -> None:
    frames = [pl.DataFrame({"a": range(100)}) for _ in beta_training.Training.__slots__]
    place = tmp_path / "one"
    beta_training.save(beta_training.Training(*frames), place)
    assert beta_training.read(place) is not None
    DAMAGE[how](place / f"{beta_training.Training.__slots__[-1]}.parquet")
    assert beta_training.read(place) is None
    assert beta_training.read(tmp_path / "none") is None
