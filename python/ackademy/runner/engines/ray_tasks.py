"""Cells as tasks of a Ray cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ackademy import installation
from ackademy.errors import EngineError
from ackademy.runner.cells import Cell, Outcome, attempt
from ackademy.runner.engines.engine import Engine


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

    Without an address neither `RAY_ADDRESS` nor an earlier cluster of this machine counts.

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
            # Given no address, Ray would look for a cluster: one that was killed has left its
            # address in the temporary folder, and Ray would try that for minutes.
            ray.init(address=address or "local", log_to_driver=False, include_dashboard=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EngineError(f"--address {address}: no Ray cluster there: {error}") from error
    try:
        yield
    finally:
        if started:
            ray.shutdown()


def _need_ray() -> None:
    """Refuse to continue without Ray.

    Raises:
        EngineError: if it is not installed.
    """
    try:
        # Started by `uv run`, Ray would build a copy of the project for each worker.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        import ray  # noqa: F401
    except ImportError as error:
        add = installation.add_extra("ray")
        raise EngineError(f"--engine ray needs Ray: install the extra with {add}") from error


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
