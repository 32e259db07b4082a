"""Cells on this machine: in threads, or in processes where a controller is in Python.

The simulator runs without the interpreter's lock, so threads of this process simulate at once. A
controller in Python holds that lock, and may end its process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeVar

from ackademy.errors import EngineError
from ackademy.runner.cells import Cell, Outcome, attempt
from ackademy.runner.engines.engine import Engine

Task = TypeVar("Task")


def core_count() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Local:
    """Runs cells on this machine, `jobs` at a time; one job runs them in the calling thread."""

    jobs: int

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Run the cells; a process that dies takes one with it, and another takes its place."""
        with kept(self) as engine:
            yield from engine(cells)


def local(jobs: int) -> Local:
    """The engine that runs `jobs` cells at a time on this machine.

    Raises:
        EngineError: if there would be none.
    """
    if jobs < 1:
        raise EngineError(f"--jobs {jobs}: allowed is a whole number from 1")
    return Local(jobs)


def jobs_of(engine: Engine) -> int:
    """Jobs for work beside cells: those of the engine, or one per core."""
    return engine.jobs if isinstance(engine, Local) else core_count()


def call_each(
    jobs: int, function: Callable[[Task], None], tasks: Sequence[Task]
) -> Generator[None, None, None]:
    """Call a function of a module on every task, in processes; yields when a call is done.

    Closed early, it waits for the calls that are running and begins no other.

    Raises:
        EngineError: if a process dies.
    """
    if jobs == 1 or len(tasks) <= 1:
        for task in tasks:
            function(task)
            yield
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context)
    try:
        with _worker_environment():
            futures = [pool.submit(function, task) for task in tasks]
        for future in as_completed(futures):
            future.result()
            yield
    except BrokenProcessPool:
        raise EngineError("a worker process died; what is finished is kept") from None
    finally:
        pool.shutdown(cancel_futures=True)


class _Worker:
    """A process that computes one cell at a time, and the pipe to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.index = -1
        with _worker_environment():
            self.process.start()
        theirs.close()

    def give(self, index: int, cell: Cell) -> None:
        self.index = index
        self.connection.send((index, cell))

    def take(self) -> Outcome | None:
        """The outcome of the cell given last; `None` if the process is dead."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        return outcome

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


class Workers:
    """Processes that live for several batches of cells; close them with `end`."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._idle: list[_Worker] = []

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Run the cells; a worker that dies takes one with it, and another takes its place."""
        todo = iter(enumerate(cells))
        busy: list[_Worker] = []
        try:
            for following in islice(todo, self._jobs):
                busy.append(self._idle.pop() if self._idle else _Worker())
                busy[-1].give(*following)
            while busy:
                ready = wait([worker.connection for worker in busy])
                for worker in [worker for worker in busy if worker.connection in ready]:
                    busy.remove(worker)
                    outcome, alive = self._taken(worker)
                    next_cell = next(todo, None)
                    if next_cell:
                        busy.append(alive or _Worker())
                        busy[-1].give(*next_cell)
                    elif alive:
                        self._idle.append(alive)
                    yield outcome
        finally:
            for worker in busy:
                worker.end()

    def end(self) -> None:
        """End the processes."""
        while self._idle:
            self._idle.pop().end()

    def _taken(self, worker: _Worker) -> tuple[Outcome, _Worker | None]:
        """What a worker has computed, and the worker, unless it is dead."""
        outcome = worker.take()
        if outcome is not None:
            return outcome, worker
        worker.end()
        code = worker.process.exitcode
        return Outcome(worker.index, None, f"the worker process died ({code})"), None


@contextmanager
def kept(engine: Engine) -> Iterator[Engine]:
    """The same engine with processes that live until the end of the block.

    A process takes a second to start, which counts where there are many small batches.
    """
    if not isinstance(engine, Local):
        yield engine
        return
    workers = Workers(engine.jobs)
    try:
        yield partial(_run, engine.jobs, workers)
    finally:
        workers.end()


def _run(jobs: int, workers: Workers, cells: Sequence[Cell]) -> Iterator[Outcome]:
    """Cells without Python code in threads, then the others in processes."""
    if jobs == 1 or len(cells) <= 1:
        yield from (attempt(index, cell) for index, cell in enumerate(cells))
        return
    yield from _in_threads(
        jobs, [(index, cell) for index, cell in enumerate(cells) if not _has_python(cell)]
    )
    outside = [index for index, cell in enumerate(cells) if _has_python(cell)]
    for outcome in workers([cells[index] for index in outside]):
        yield replace(outcome, index=outside[outcome.index])


def _has_python(cell: Cell) -> bool:
    """Whether a controller of a cell is in Python, or its text looks as if one were."""
    changed = (value for _, value in cell.overrides)
    named = (own.controller for own in cell.assignments)
    return any(".py:" in text for text in (cell.text, cell.controller or "", *changed, *named))


def _in_threads(jobs: int, cells: Sequence[tuple[int, Cell]]) -> Iterator[Outcome]:
    """Run cells in threads. Closed early, it ends what they simulate."""
    is_over = threading.Event()

    def check(simulated_s: float) -> None:
        if is_over.is_set():
            raise InterruptedError

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(attempt, *own, check) for own in cells]):
                yield done.result()
        finally:
            is_over.set()
            pool.shutdown(cancel_futures=True)


def _serve(connection: Connection) -> None:
    """A worker's life: take cells until the pipe closes."""
    while True:
        try:
            index, cell = connection.recv()
        except EOFError:
            return
        connection.send(attempt(index, cell))


@contextmanager
def _worker_environment() -> Iterator[None]:
    """While a worker starts: Ctrl-C is for the parent alone, and one core is for one worker.

    A process inherits the signals that its parent's thread blocks. The parent gets a Ctrl-C once
    the process has started: any of its threads may get it, so blocking it in one is not enough.
    """
    threads = os.environ.get("POLARS_MAX_THREADS")
    os.environ["POLARS_MAX_THREADS"] = "1"
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handler = (
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number)) if main else None
    )
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if threads is None:
            del os.environ["POLARS_MAX_THREADS"]
        else:
            os.environ["POLARS_MAX_THREADS"] = threads
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)
