"""Runs the missing cells of an experiment, and reads their results.

    folder = Path("runs/compare")
    run_cells(cells, folder, local(jobs=8), quiet)
    summaries = [read(folder, cell, "summary") for cell in cells]

Call it below `if __name__ == "__main__":`, as every program that starts processes must.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from ackademy import sums
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import read_text
from ackademy.errors import AckademyError, ExperimentError, FileError
from ackademy.runner.cells import DESCRIPTION, Cell, Files, key, store
from ackademy.runner.engines import Engine, kernel_last

TABLES = ("summary", "links", "counters")
"""of every cell"""

_readable: set[Path] = set()
"""folders of cells that this process has checked"""

Progress = Callable[[int, int], None]
"""Called with the number of cells done and their total, first before any is run."""
SCRATCH_S = 3600.0
"""age from which an unfinished folder counts as left by a killed command"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A cell without a result."""

    cell: Cell
    error: str
    """the exception with its traceback, or what ended the worker"""
    is_users: bool = False
    """whether it was raised by a Python file of the user"""


@dataclass(frozen=True, slots=True)
class CellsRun:
    """Outcome of running the cells of an experiment."""

    n_cells: int
    n_reused: int
    failures: list[Failure]
    damaged: tuple[str, ...] = ()
    """damage of existing cells, a line each; these cells were run again"""

    def with_more(self, other: CellsRun) -> CellsRun:
        """Both together."""
        return CellsRun(
            self.n_cells + other.n_cells,
            self.n_reused + other.n_reused,
            self.failures + other.failures,
            self.damaged + other.damaged,
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while cells ran; what was finished is kept."""

    def __init__(self, n_done: int, n_cells: int) -> None:
        super().__init__(f"{n_done} of {n_cells} cells are done and kept")


def quiet(n_done: int, n_cells: int) -> None:
    """A progress callback that does nothing."""


def run_cells(cells: Sequence[Cell], folder: Path, engine: Engine, progress: Progress) -> CellsRun:
    """Run every cell without a result; cells on the kernel run last, one at a time.

    The next call repeats a run on the kernel whose emulator was late. It also repeats a cell whose
    files cannot be read.

    Args:
        cells: the experiment; equal cells are run once.
        folder: holds one folder per cell.
        engine: where to run them.
        progress: told after every cell.

    Returns:
        Counts, and the cells that failed; the others are on disk.

    Raises:
        AckademyError: before anything runs, if a scenario or a controller is wrong.
        Interrupted: on Ctrl-C; the finished cells are kept.
    """
    folders = {folder / key(cell): cell for cell in cells}
    damaged = tuple(fault for path, cell in folders.items() if (fault := _damage(path, cell)))
    todo = [(path, cell) for path, cell in folders.items() if not _is_kept(path, cell)]
    done = len(folders) - len(todo)
    failures: list[Failure] = []
    scratch = folder / f".unfinished-{uuid.uuid4().hex[:12]}"
    _remove_old_scratch(folder)
    progress(done, len(folders))
    outcomes = kernel_last(engine)([cell for _, cell in todo])
    try:
        for outcome in outcomes:
            path, cell = todo[outcome.index]
            if outcome.files is None:
                failures.append(Failure(cell, outcome.error, outcome.is_users))
            else:
                _store(path, outcome.files, scratch)
            done += 1
            progress(done, len(folders))
    except KeyboardInterrupt:
        raise Interrupted(done - len(failures), len(folders)) from None
    finally:
        outcomes.close() if hasattr(outcomes, "close") else None
        shutil.rmtree(scratch, ignore_errors=True)
    return CellsRun(len(folders), len(folders) - len(todo), failures, damaged)


def of_file(path: Path) -> Cell:
    """The run of a scenario file as it is, with seed 1.

    Raises:
        ScenarioError: if it cannot be read.
    """
    return Cell(text=read_text(path), origin=str(path), controller=None, seed=1)


def seeded(cell: Cell, runs: int) -> tuple[Cell, ...]:
    """A cell with so many seeds, from 1."""
    return tuple(replace(cell, seed=seed) for seed in range(1, runs + 1))


def missing(folder: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that `run_cells` would run."""
    return [cell for cell in cells if not _is_kept(folder / key(cell), cell)]


def read(folder: Path, cell: Cell, table: str) -> pl.DataFrame:
    """One table of a finished cell.

    Args:
        folder: of the cells.
        cell: a cell that was run.
        table: summary, links, counters, connections, flow_series or link_series.

    Raises:
        ExperimentError: if the cell has not been run, or cannot be read; it is then removed.
    """
    path = folder / key(cell) / f"{table}.parquet"
    if not path.is_file():
        raise ExperimentError(f"{path} is not there: run the experiment first")
    found = _read(path)
    if isinstance(found, str):
        shutil.rmtree(path.parent, ignore_errors=True)
        raise ExperimentError(f"{found}; it was removed: run the same command again")
    return found


def read_several(folder: Path, cell: Cell, tables: Sequence[str]) -> list[pl.DataFrame] | None:
    """Several tables of a cell, its name computed once; `None` if it has not been run.

    Args:
        folder: of the cells.
        cell: what was to be run.
        tables: as for `read`.

    Raises:
        ExperimentError: if one cannot be read; the cell is then removed.
    """
    path = folder / key(cell)
    if not path.is_dir() or (cell.backend == "kernel" and not _kernel_run(path).valid):
        return None
    found = []
    for table in tables:
        own = _read(path / f"{table}.parquet")
        if isinstance(own, str):
            shutil.rmtree(path, ignore_errors=True)
            raise ExperimentError(f"{own}; it was removed: run the same command again")
        found.append(own)
    return found


def connections(folder: Path, cell: Cell) -> pl.DataFrame | None:
    """The connections of a finished cell; `None` if none of them has several subflows.

    Raises:
        ExperimentError: if the table cannot be read.
    """
    if not (folder / key(cell) / "connections.parquet").is_file():
        return None
    return read(folder, cell, "connections")


def has_series(folder: Path, cell: Cell) -> bool:
    """Whether a finished cell has time series: none where no flow ever starts."""
    return (folder / key(cell) / "flow_series.parquet").is_file()


def is_finished(folder: Path, cell: Cell) -> bool:
    """Whether the cell's results are on disk and can be read."""
    path = folder / key(cell)
    return path.is_dir() and not _damage(path, cell)


def countable(folder: Path, cells: Sequence[Cell]) -> tuple[list[Cell], tuple[KernelRun, ...]]:
    """The finished cells that count in averages, and the records of the finished kernel runs.

    Raises:
        ExperimentError: if a cell's record is damaged.
    """
    finished = [cell for cell in cells if is_finished(folder, cell)]
    went = [_kernel_run(folder / key(cell)) for cell in finished if cell.backend == "kernel"]
    if not went:
        return finished, ()
    return [cell for cell, run in zip(finished, went, strict=True) if run.valid], tuple(went)


def _kernel_run(path: Path) -> KernelRun:
    """The record of the kernel run in a cell's folder.

    Raises:
        ExperimentError: if the cell does not say.
    """
    try:
        described = json.loads(sums.checked(path / DESCRIPTION, sums.read(path)))
        return KernelRun.parse(described["kernel_run"], described["attempts"])
    except FileError as error:
        raise ExperimentError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, AckademyError) as error:
        raise ExperimentError(f"{path / DESCRIPTION}: {_first_line(error)}") from error


def _is_kept(path: Path, cell: Cell) -> bool:
    if not path.is_dir() or _damage(path, cell):
        return False
    return cell.backend == "sim" or _kernel_run(path).valid


def _damage(path: Path, cell: Cell) -> str:
    """What is damaged in a cell's folder, on one line; empty if nothing is, or without a folder.

    A cell without digests is damaged, too. Each process checks a folder once.
    """
    if path in _readable or not path.is_dir():
        return ""
    if cell.backend == "kernel":
        try:
            _kernel_run(path)
        except ExperimentError as error:
            return str(error)
    for table in TABLES:
        found = _read(path / f"{table}.parquet")
        if isinstance(found, str):
            return found
    _readable.add(path)
    return ""


def _read(path: Path) -> pl.DataFrame | str:
    """The table in a file, or a line that says why it cannot be read.

    Its digest is checked first: a damaged table may end the process, or be one with other numbers.
    """
    try:
        return pl.read_parquet(sums.checked(path, sums.read(path.parent)))
    except FileError as error:
        return str(error)
    except (OSError, pl.exceptions.PolarsError) as error:
        return f"{path}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _remove_old_scratch(folder: Path) -> None:
    """Remove unfinished folders older than an hour: the commands that wrote them were killed."""
    for path in folder.glob(".unfinished-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > SCRATCH_S:
                shutil.rmtree(path)


def _store(path: Path, files: Files, scratch: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)  # damaged, or invalid and tried again
        store(path, files, scratch / path.name)
    except OSError as error:
        raise ExperimentError(f"cannot write {path}: {error.strerror or error}") from error
