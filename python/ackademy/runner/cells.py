"""A cell: one scenario, controller, settings, seed and backend; what is computed once and stored.

A cell's folder is named by the hash of everything its result depends on, so an unchanged cell is
never run twice and a changed one never reused. Its files are Parquet and JSON:

    summary.parquet      one row per flow: raw totals and the numbers of a report
    connections.parquet  one row per connection, if one of them has several subflows
    links.parquet        one row per link
    counters.parquet     what the controllers counted
    flow_series.parquet  cwnd, RTT, throughput over time, if sampling was asked for
    link_series.parquet  queues over time, if sampling was asked for
    cell.json            what was run, and on the kernel how that went
    SHA256SUMS           digests of the other files
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ackademy import _core, sums, user_code
from ackademy.backends import REAL_TIME, Backend, controllers, entries, kernel, ns3
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import Progress, check_runnable, simulate
from ackademy.backends.tables import data_frame
from ackademy.errors import AckademyError, ScenarioError
from ackademy.files import write as write_file
from ackademy.lazy import pl
from ackademy.source_hash import MEASURING, source_hash
from ackademy.stats.run_metrics import measure

Files = Mapping[str, bytes]
KEY_LENGTH = 20
DESCRIPTION = "cell.json"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A controller for the flows whose `[[flow]]` entry matches a glob."""

    flows: str
    controller: str
    params: tuple[tuple[str, float | str], ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """What to run, in terms that another process or machine understands."""

    text: str
    """the scenario file's content"""
    origin: str
    """its path, for errors and for traces beside it"""
    controller: str | None
    """for every flow; `None` leaves the scenario's own"""
    seed: int
    """of every random choice; on the kernel, the number of the repetition"""
    overrides: tuple[tuple[str, str], ...] = ()
    """TOML values by dotted path"""
    params: tuple[tuple[str, float | str], ...] = ()
    """settings of the controller"""
    assignments: tuple[Assignment, ...] = ()
    """controllers of some flows only, put in place after `controller`"""
    sample_interval_ms: float = 0.0
    """between rows of the time series; 0 for none"""
    backend: Backend = "sim"

    def scenario(self) -> _core.Scenario:
        """The scenario, checked.

        Raises:
            ScenarioError: if it is wrong, or has no flow that an assignment is for.
            ControllerError: if a controller is unknown, not for this backend, or its settings
                are wrong.
        """
        parsed = _core.Scenario.parse(self.text, self.origin, dict(self.overrides))
        if self.controller is not None:
            parsed = parsed.with_controller(self.controller, dict(self.params))
        for assignment in self.assignments:
            governed = entries.named(parsed, [assignment.flows])
            if not governed:
                allowed = ", ".join(parsed.entries)
                raise ScenarioError(f"{self.origin}: flow {assignment.flows!r}: allowed: {allowed}")
            params = dict(assignment.params)
            parsed = parsed.with_controller(assignment.controller, params, governed)
        check_runnable(parsed, self.backend)
        return parsed


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a cell: its files, or the error."""

    index: int
    files: Files | None
    error: str = ""
    is_users: bool = False
    """whether the error was raised by a Python file of the user"""


def key(cell: Cell) -> str:
    """Name of the cell's folder: hash of all that its result depends on.

    Raises:
        AckademyError: if the cell's scenario or controller is wrong, or its backend is not there.
    """
    scenario = cell.scenario()
    beside = Path(scenario.origin).parent
    names = sorted(set(scenario.controllers))
    files = [found for name in names if (found := controllers.fingerprint(name, beside))]
    parts = [
        scenario.canonical(),
        str(cell.seed),
        repr(cell.sample_interval_ms),
        *_identity(cell.backend),
        measuring_hash(cell.backend),
        *files,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:KEY_LENGTH]


def compute(cell: Cell, progress: Progress | None = None) -> Files:
    """Run the cell; in virtual time, it gives the same bytes in every process and everywhere."""
    scenario = cell.scenario()
    record: KernelRun | None = None
    if cell.backend in REAL_TIME:
        tables, record = kernel.emulate_in_time(
            scenario, cell.seed, cell.sample_interval_ms, cell.backend
        )
    else:
        tables = simulate(
            scenario, cell.seed, cell.sample_interval_ms, progress, backend=cell.backend
        )
    own, new = tables.columns, measure(tables).columns
    kept = {  # of a column that both have, the core's values
        "summary": {**own["flows"], **new["flows"], **own["flows"]},
        "links": {**own["links"], "utilisation": new["links"]["utilisation"]},
        "counters": own["counters"],
    }
    if tables.is_multipath:
        goodput = new["connections"]["goodput_mbps"]
        kept["connections"] = {**own["connections"], "goodput_mbps": goodput}
    if tables.height("flow_series"):
        kept |= {name: own[name] for name in ("flow_series", "link_series")}
    files = {f"{name}.parquet": _parquet(data_frame(table)) for name, table in kept.items()}
    files[DESCRIPTION] = _description(cell, scenario, tables.is_random, record)
    return files | {sums.SUMS: sums.text(files)}


def attempt(index: int, cell: Cell, progress: Progress | None = None) -> Outcome:
    """Run the cell and return its files or its error, also for a panic of the core."""
    try:
        return Outcome(index, compute(cell, progress))
    except KeyboardInterrupt:
        raise
    except AckademyError as error:
        return Outcome(index, None, str(error))
    except BaseException as error:
        told = user_code.told(error)
        if told is not None:
            return Outcome(index, None, told, is_users=True)
        return Outcome(index, None, "".join(traceback.format_exception(error)).rstrip())


def store(folder: Path, files: Files, scratch: Path) -> None:
    """Write the files atomically: the folder has all of them or does not exist."""
    scratch.mkdir(parents=True)
    for name, content in files.items():
        write_file(scratch / name, content)
    try:
        os.rename(scratch, folder)
    except OSError:
        shutil.rmtree(scratch)
        if not folder.is_dir():
            raise


@cache
def measuring_hash(backend: Backend) -> str:
    """Hash of the sources between a backend and the files of a cell."""
    return source_hash(MEASURING[backend], _core.BINDING_HASH.encode())[:16]


def _identity(backend: Backend) -> tuple[str, ...]:
    """What a result depends on besides its scenario: the code that runs it."""
    match backend:
        case "kernel" | "quic-lab":
            return (backend, *kernel.identity())
        case "quic":
            return ("quic", _core.CODE_HASH, _core.QUIC_HASH)
        case "ns3":
            return ("ns3", *ns3.identity())
        case _:
            return (_core.CODE_HASH,)


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", compression_level=3, statistics=False)
    return buffer.getvalue()


def _description(
    cell: Cell, scenario: _core.Scenario, is_random: bool, record: KernelRun | None
) -> bytes:
    fields: dict[str, object] = {
        "scenario": scenario.name,
        "controller": cell.controller,
        "params": dict(cell.params),
        "assignments": [[a.flows, a.controller, dict(a.params)] for a in cell.assignments],
        "seed": cell.seed,
        "sample_interval_ms": cell.sample_interval_ms,
        "code": _core.CODE_HASH,
        "measuring": measuring_hash(cell.backend),
        "random": is_random,
        "resolved": scenario.canonical(),
    }
    if record is not None:
        release, program = kernel.identity()
        fields |= {"kernel_release": release, "ackademyd": program, "attempts": record.attempts}
        fields["kernel_run"] = record.report
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()
