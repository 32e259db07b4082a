"""Where cells run: processes of this machine, or a Ray cluster. Same cells, same bytes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeVar

from ackademy.errors import EngineError
from ackademy.runner.cells import Cell, Outcome, attempt

Engine = Callable[[Sequence[Cell]], Iterator[Outcome]]
"""Yields one outcome per cell, in any order; closing it early ends what is running."""


Task = TypeVar("Task")


def core_count() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Local:
    """Processes of this machine; with one job, this process itself."""

    jobs: int

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Run the cells; a worker that dies takes one with it, and another takes its place."""
        if self.jobs == 1 or len(cells) <= 1:
            return (attempt(index, cell) for index, cell in enumerate(cells))
        return _run_in_workers(cells, min(self.jobs, len(cells)))


def local(jobs: int) -> Local:
    """Processes of this machine.

    Raises:
        EngineError: if there would be none.
    """
    if jobs < 1:
        raise EngineError(f"--jobs {jobs}: allowed is a whole number from 1")
    return Local(jobs)


def jobs_of(engine: Engine) -> int:
    """Processes for work beside cells: as many as the engine has here, or one per core."""
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


def kernel_last(simulated: Engine) -> Engine:
    """Cells of the simulator wherever `simulated` puts them, then those of the kernel, here.

    They share the machine's clock with everything else that runs on it: one at a time.
    """

    def run(cells: Sequence[Cell]) -> Iterator[Outcome]:
        inside = [index for index, cell in enumerate(cells) if cell.backend == "sim"]
        outcomes = simulated([cells[index] for index in inside]) if inside else iter(())
        try:
            for outcome in outcomes:
                yield replace(outcome, index=inside[outcome.index])
        finally:
            outcomes.close() if hasattr(outcomes, "close") else None
        for index, cell in enumerate(cells):
            if cell.backend == "kernel":
                yield attempt(index, cell)

    return run


def ray_cluster(address: str | None) -> Engine:
    """A Ray cluster at `address`, or one of this machine's cores if there is no address.

    Every node needs the same version of this package, and traces at the same paths.

    Raises:
        EngineError: if Ray is not installed or the cluster cannot be reached.
    """
    _need_ray()

    def run(cells: Sequence[Cell]) -> Iterator[Outcome]:
        with ray_session(address):
            yield from _run_on_ray(cells)

    return run


@contextmanager
def ray_session(address: str | None) -> Iterator[None]:
    """Connected to the cluster of `ray_cluster`, unless this process is connected to one already.

    Raises:
        EngineError: if Ray is not installed or the cluster cannot be reached.
    """
    _need_ray()
    import ray

    started = not ray.is_initialized()
    if started:
        if address is not None:
            _check_reachable(address)
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EngineError(f"--address {address}: no Ray cluster there: {error}") from error
    try:
        yield
    finally:
        if started:
            ray.shutdown()


def _need_ray() -> None:
    """Refuse to go on without Ray.

    Raises:
        EngineError: if it is not installed.
    """
    try:
        # Started by `uv run`, Ray would build a copy of the project for each worker.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        import ray  # noqa: F401
    except ImportError as error:
        raise EngineError(
            "--engine ray needs Ray: install the extra with `pip install 'ackademy[ray]'`"
        ) from error


def _check_reachable(address: str) -> None:
    """Refuse a host that does not answer; Ray itself would try for minutes.

    Raises:
        EngineError: if nothing listens at `host:port`.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # `auto` and the like: Ray looks for itself
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(f"--address {address}: no Ray cluster there: {error}") from error


def _run_on_ray(cells: Sequence[Cell]) -> Iterator[Outcome]:
    import ray

    remote = ray.remote(num_cpus=1, max_retries=2)(attempt)
    indices = {remote.remote(index, cell): index for index, cell in enumerate(cells)}
    try:
        while indices:
            done, _ = ray.wait(list(indices), num_returns=1)
            index = indices.pop(done[0])
            try:
                outcome: Outcome = ray.get(done[0])
            except ray.exceptions.RayError as error:
                outcome = Outcome(index, None, f"the worker was lost: {error}")
            yield outcome
    finally:
        for reference in indices:
            ray.cancel(reference, force=True)


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


def _run_in_workers(cells: Sequence[Cell], jobs: int) -> Iterator[Outcome]:
    todo = iter(enumerate(cells))
    workers: list[_Worker] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker())
            workers[-1].give(*next(todo))
        while workers:
            ready = wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in ready]:
                outcome = worker.take()
                workers.remove(worker)
                following = next(todo, None)
                if outcome is None:
                    worker.end()
                    code = worker.process.exitcode
                    outcome = Outcome(worker.index, None, f"the worker process died ({code})")
                    worker = _Worker() if following else worker
                if following:
                    worker.give(*following)
                    workers.append(worker)
                else:
                    worker.end()
                yield outcome
    finally:
        for worker in workers:
            worker.end()


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
    """While a worker starts: Ctrl-C is for the parent alone, and one core is for one worker."""
    threads = os.environ.get("POLARS_MAX_THREADS")
    os.environ["POLARS_MAX_THREADS"] = "1"
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        if threads is None:
            del os.environ["POLARS_MAX_THREADS"]
        else:
            os.environ["POLARS_MAX_THREADS"] = threads
