"""Runs the missing cells of an experiment, and reads their results.

    folder = Path("runs/compare")
    run_cells(cells, folder, local(jobs=8), quiet)
    summaries = [read(folder, cell, "summary") for cell in cells]

Call it below `if __name__ == "__main__":`: controllers in Python run in processes.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ackademy import sums
from ackademy.backends import REAL_TIME
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import read_text
from ackademy.errors import AckademyError, ExperimentError, FileError
from ackademy.lazy import pl
from ackademy.runner.cells import DESCRIPTION, Cell, Files, key, store
from ackademy.runner.engines import Engine, kernel_last

TABLES = ("summary", "links", "counters")
"""of every cell"""

_readable: set[Path] = set()
"""folders of cells that this process has checked"""
_named: dict[tuple[Path, Cell], Path] = {}
"""folders of the cells that this process ran last, for a name takes longer than to read the cell"""
_fixed: dict[tuple[Path, Cell], Path] = {}
"""by cell without seed, the folder of the one run in which nothing was random"""

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
    n_fixed: int = 0
    """cells that are not run: another seed of theirs drew nothing at random; in no other count"""

    def with_more(self, other: CellsRun) -> CellsRun:
        """Both together."""
        return CellsRun(
            self.n_cells + other.n_cells,
            self.n_reused + other.n_reused,
            self.failures + other.failures,
            self.damaged + other.damaged,
            self.n_fixed + other.n_fixed,
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while cells ran; what was finished is kept."""

    def __init__(self, n_done: int, n_cells: int) -> None:
        super().__init__(f"{n_done} of {n_cells} cells are done and kept")


def quiet(n_done: int, n_cells: int) -> None:
    """A progress callback that does nothing."""


def run_cells(cells: Sequence[Cell], folder: Path, engine: Engine, progress: Progress) -> CellsRun:
    """Run every cell without a result; cells in real time run last, one at a time.

    Of cells that differ in their seeds alone the first is run before the others. If it draws no
    random number, it stands for them, and they are not run: all would be the same run.

    The next call repeats a run in real time whose emulator was late. It also repeats a cell whose
    files cannot be read.

    Args:
        cells: the experiment; equal cells are run once.
        folder: holds one folder per cell.
        engine: where to run them.
        progress: called after every cell.

    Returns:
        Counts, and the cells that failed; the others are on disk.

    Raises:
        AckademyError: before anything runs, if a scenario or a controller is wrong.
        Interrupted: on Ctrl-C; the finished cells are kept.
    """
    _named.clear()
    _named.update({(folder, cell): folder / key(cell) for cell in dict.fromkeys(cells)})
    folders = {_named[folder, cell]: cell for cell in cells}
    damaged = tuple(fault for path, cell in folders.items() if (fault := _damage(path, cell)))
    todo = {path: cell for path, cell in folders.items() if not _is_kept(path, cell)}
    run = _Run(folder, engine, progress, len(folders), len(folders) - len(todo))
    try:
        fixed = _run_groups(run, folder, folders, todo)
    except KeyboardInterrupt:
        raise Interrupted(run.done - len(run.failures), run.total) from None
    n_cells = len(folders) - len(fixed)
    return CellsRun(n_cells, len(folders) - len(todo), run.failures, damaged, len(fixed))


class _Run:
    """Cells that are being run: what is done, and what failed."""

    def __init__(
        self, folder: Path, engine: Engine, progress: Progress, total: int, done: int
    ) -> None:
        self.folder, self.engine, self.progress = folder, engine, progress
        self.total, self.done = total, done
        self.failures: list[Failure] = []
        self.tried: set[Path] = set()

    def cells(self, todo: Mapping[Path, Cell]) -> None:
        """Run these and keep their files."""
        paths = list(todo)
        self.tried.update(paths)
        scratch = self.folder / f".unfinished-{uuid.uuid4().hex[:12]}"
        outcomes = kernel_last(self.engine)(list(todo.values()))
        try:
            for outcome in outcomes:
                path = paths[outcome.index]
                if outcome.files is None:
                    self.failures.append(Failure(todo[path], outcome.error, outcome.is_users))
                else:
                    _store(path, outcome.files, scratch)
                self.done += 1
                self.progress(self.done, self.total)
        finally:
            outcomes.close() if hasattr(outcomes, "close") else None
            shutil.rmtree(scratch, ignore_errors=True)


def _run_groups(
    run: _Run, folder: Path, folders: Mapping[Path, Cell], todo: Mapping[Path, Cell]
) -> set[Path]:
    """Run the first seed of every group, then what it does not stand for; the cells left out."""
    _remove_old_scratch(folder)
    run.progress(run.done, run.total)
    _learn_fixed(folder, folders)
    firsts = {paths[0] for paths in _by_seed(folders) if len(paths) > 1}
    run.cells({path: cell for path, cell in todo.items() if path in firsts})
    _learn_fixed(folder, folders)
    fixed = {path for path, cell in todo.items() if is_repeat(folder, cell)}
    if fixed:
        run.done += len(fixed)
        run.progress(run.done, run.total)
    left = {own: cell for own, cell in todo.items() if own not in fixed and own not in run.tried}
    run.cells(left)
    return fixed


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
    folders = {folder / key(cell): cell for cell in cells}
    _learn_fixed(folder, folders)
    return [
        cell
        for path, cell in folders.items()
        if not is_repeat(folder, cell) and not _is_kept(path, cell)
    ]


def read(folder: Path, cell: Cell, table: str) -> pl.DataFrame:
    """One table of a finished cell; of a repeat, that of the run which stands for it.

    Args:
        folder: of the cells.
        cell: a cell that was run.
        table: summary, links, counters, connections, flow_series or link_series.

    Raises:
        ExperimentError: if the cell has not been run, or cannot be read; it is then removed.
    """
    return read_several(folder, cell, (table,))[0]


def read_several(folder: Path, cell: Cell, tables: Sequence[str]) -> list[pl.DataFrame]:
    """Several tables of a cell, as `read`; what names and digests take is done once."""
    path = _path(folder, cell)
    files = [path / f"{table}.parquet" for table in tables]
    for file in files:
        if not file.is_file():
            raise ExperimentError(f"{file} is not there: run the experiment first")
    found = _read(path, files)
    if isinstance(found, str):
        shutil.rmtree(path, ignore_errors=True)
        raise ExperimentError(f"{found}; it was removed: run the same command again")
    return found


def counts(folder: Path, cell: Cell) -> bool:
    """Whether a cell has been run, and in real time without delay."""
    path = _path(folder, cell)
    return path.is_dir() and (cell.backend not in REAL_TIME or _kernel_run(path).valid)


def connections(folder: Path, cell: Cell) -> pl.DataFrame | None:
    """The connections of a finished cell; `None` if none of them has several subflows.

    Raises:
        ExperimentError: if the table cannot be read.
    """
    if not (_path(folder, cell) / "connections.parquet").is_file():
        return None
    return read(folder, cell, "connections")


def has_series(folder: Path, cell: Cell) -> bool:
    """Whether a finished cell has time series: none where no flow ever starts."""
    return (_path(folder, cell) / "flow_series.parquet").is_file()


def is_finished(folder: Path, cell: Cell) -> bool:
    """Whether the cell's own results are on disk and can be read; of a repeat they are not."""
    path = _name(folder, cell)
    return path.is_dir() and not _damage(path, cell)


def is_repeat(folder: Path, cell: Cell) -> bool:
    """Whether the run of another seed stands for the cell, since nothing in it is random."""
    own = _name(folder, cell)
    return _fixed.get((folder, _without_seed(cell)), own) != own


def is_fixed(folder: Path, cells: Sequence[Cell]) -> bool:
    """Whether nothing in these cells, which differ in their seeds, is random: one was run for all.

    A single cell is not said to be so: nothing was left out for it.
    """
    return len(cells) > 1 and all(is_repeat(folder, cell) for cell in cells[1:])


def countable(folder: Path, cells: Sequence[Cell]) -> tuple[list[Cell], tuple[KernelRun, ...]]:
    """The finished cells that count in averages, and the records of the finished runs in real time.

    Raises:
        ExperimentError: if a cell's record is damaged.
    """
    finished = [cell for cell in cells if is_finished(folder, cell)]
    went = [_kernel_run(_name(folder, cell)) for cell in finished if cell.backend in REAL_TIME]
    if not went:
        return finished, ()
    return [cell for cell, run in zip(finished, went, strict=True) if run.valid], tuple(went)


def _kernel_run(path: Path) -> KernelRun:
    """The record of the real-time run in a cell's folder.

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


def _without_seed(cell: Cell) -> Cell:
    return replace(cell, seed=0, sample_interval_ms=0.0)


def _name(folder: Path, cell: Cell) -> Path:
    """The folder that is the cell's own, whether it is there or not."""
    return _named.get((folder, cell)) or folder / key(cell)


def _path(folder: Path, cell: Cell) -> Path:
    """The folder with the cell's results: its own, or that of the run which stands for it."""
    own = _name(folder, cell)
    return own if own.is_dir() else _fixed.get((folder, _without_seed(cell)), own)


def _by_seed(folders: Mapping[Path, Cell]) -> list[list[Path]]:
    """The folders of simulations that differ in their seeds alone, together."""
    same: dict[Cell, list[Path]] = {}
    for path, cell in folders.items():
        if cell.backend == "sim":
            same.setdefault(_without_seed(cell), []).append(path)
    return list(same.values())


def _learn_fixed(folder: Path, folders: Mapping[Path, Cell]) -> None:
    """Which of these cells have nothing random in them, as far as one of them is there."""
    for paths in _by_seed(folders):
        of_all_seeds = (folder, _without_seed(folders[paths[0]]))
        _fixed.pop(of_all_seeds, None)
        if len(paths) > 1 and paths[0].is_dir() and not _is_random(paths[0]):
            _fixed[of_all_seeds] = paths[0]


def _is_random(path: Path) -> bool:
    """Whether the run in a cell's folder drew a random number; it did if the cell does not say."""
    try:
        described = json.loads(sums.checked(path / DESCRIPTION, sums.read(path)))
    except (FileError, ValueError):
        return True
    return bool(described.get("random", True))


def _is_kept(path: Path, cell: Cell) -> bool:
    if not path.is_dir() or _damage(path, cell):
        return False
    return cell.backend not in REAL_TIME or _kernel_run(path).valid


def _damage(path: Path, cell: Cell) -> str:
    """What is damaged in a cell's folder, on one line; empty if nothing is, or without a folder.

    A cell without digests is damaged, too. Each process checks a folder once.
    """
    if path in _readable or not path.is_dir():
        return ""
    if cell.backend in REAL_TIME:
        try:
            _kernel_run(path)
        except ExperimentError as error:
            return str(error)
    try:
        digests = sums.read(path)
        for table in TABLES:
            sums.checked(path / f"{table}.parquet", digests)
    except FileError as error:
        return str(error)
    _readable.add(path)
    return ""


def _read(folder: Path, paths: Sequence[Path]) -> list[pl.DataFrame] | str:
    """The tables in files of a folder, or a line that says why one cannot be read.

    Digests are checked first: a damaged table may end the process, or be one with other numbers.
    """
    path = folder
    try:
        digests, found = sums.read(folder), []
        for path in paths:
            found.append(pl.read_parquet(sums.checked(path, digests)))
    except FileError as error:
        return str(error)
    except (OSError, pl.exceptions.PolarsError) as error:
        return f"{path}: {_first_line(error)}"
    return found


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
