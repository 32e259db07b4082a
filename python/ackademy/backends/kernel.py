"""The backends `kernel` and `quic-lab`: a scenario over real TCP or QUIC, in real time.

The program `ackademyd` makes namespaces, emulates the links, runs the flows and prints the
simulator's tables as JSON, with how well it kept time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ackademy import _core
from ackademy.backends import Backend, printed
from ackademy.backends.programs import ackademyd
from ackademy.backends.tables import Tables
from ackademy.errors import KernelError

Report = printed.Report
T = TypeVar("T")

MARGIN_S = 60.0
"""time beyond the scenario's duration, to create and remove the namespaces"""
REPEATS_MAX = 3
"""maximum repetitions of a run whose emulator was late"""
LATENESS = ("p50", "p99", "p99_9", "max")
DECISION = ("p50", "p90", "p99")


@dataclass(frozen=True, slots=True)
class Governed:
    """Counters of the daemon for one flow."""

    flow: str
    samples: int
    """that reached the controller"""
    decisions: int
    """that the kernel applied"""
    fallbacks: int
    """times the kernel fell back to CUBIC because no decision arrived"""
    refused: int
    """samples dropped because the ring to the daemon was full"""
    invalid: int
    """invalid decisions, such as a window of zero"""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """Record of a run in real time, besides its tables."""

    release: str
    """of the kernel"""
    lateness_us: Mapping[str, float]
    """by quantile: lateness of packets that leave the emulator"""
    scheduler: str
    """of the emulator's thread: `fifo`, or `other` without the right to it"""
    spin_us: float
    """that it waited for awake before each packet"""
    tun_drops: int
    """packets that the kernel lost before the emulator saw them"""
    packets: int
    """that the emulator carried"""
    interval_ms: float
    """between samples of a flow; `nan` where the kernel's own controllers ran alone"""
    decision_us: Mapping[str, float]
    """by quantile: from a sample to its decision; `nan` without decisions"""
    policy_decisions: int
    """that networks of policies made"""
    policy_answer_us: Mapping[str, float]
    """by quantile: from a sample to the writing of a policy's decision on it; `nan` without"""
    policy_cpu_us: Mapping[str, float]
    """by quantile: processor time of one of them; `nan` without"""
    policy_fallbacks: int
    """flows that fell back to the daemon's CUBIC because their policy gave no valid action"""
    governed: tuple[Governed, ...]
    """the flows under our controllers"""
    assumptions: tuple[str, ...]
    """where the run differs from what the scenario says"""
    valid: bool
    """whether the emulator kept time"""
    why_invalid: str
    attempts: int
    """runs until this one, itself included"""
    report: Report = field(repr=False, compare=False)
    """as the program printed it, without tables"""

    @classmethod
    def parse(cls, report: Report, attempts: int) -> KernelRun:
        """From what the program printed.

        Raises:
            KernelError: if something is missing or of the wrong type.
        """
        agent: Report = _get(report, "agent", dict) if report.get("agent") is not None else {}
        emulator = _get(report, "emulator", dict)
        lateness = _get(emulator, "lateness_us", dict)
        decision, answer, thought = (
            _get(agent, name, dict) if agent.get(name) else {}
            for name in ("decision_us", "policy_answer_us", "policy_cpu_us")
        )
        return cls(
            release=_get(_get(report, "kernel", dict), "release", str),
            lateness_us={name: _number(lateness, name) for name in LATENESS},
            scheduler=_get(emulator, "scheduler", str),
            spin_us=_number(emulator, "spin_us"),
            tun_drops=_get(emulator, "tun_drops", int),
            packets=_get(emulator, "packets", int),
            interval_ms=_number(agent, "interval_ms") if agent else math.nan,
            decision_us={n: _number(decision, n) if decision else math.nan for n in DECISION},
            policy_decisions=_get(agent, "policy_decisions", int) if agent else 0,
            policy_answer_us={n: _number(answer, n) if answer else math.nan for n in DECISION},
            policy_cpu_us={n: _number(thought, n) if thought else math.nan for n in DECISION},
            policy_fallbacks=_get(agent, "policy_fallbacks", int) if agent else 0,
            governed=tuple(
                _governed(entry) for entry in (_get(agent, "flows", list) if agent else ())
            ),
            assumptions=tuple(str(line) for line in _get(report, "assumptions", list)),
            valid=_get(report, "valid", bool),
            why_invalid=str(report.get("why_invalid") or ""),
            attempts=attempts,
            report={key: value for key, value in report.items() if key != "tables"},
        )

    @property
    def decisions(self) -> int:
        """Of all flows."""
        return sum(flow.decisions for flow in self.governed)

    @property
    def fallbacks(self) -> int:
        """Of all flows."""
        return sum(flow.fallbacks for flow in self.governed)


def emulate(
    scenario: _core.Scenario, seed: int, sample_interval_ms: float, backend: Backend = "kernel"
) -> tuple[Tables, KernelRun]:
    """Run once in real time; takes the scenario's duration and a little more.

    Args:
        scenario: what to run, its controllers ours or the backend's own.
        seed: of random losses, start times and traffic; the kernel's own timing is never the same.
        sample_interval_ms: between rows of the time series; 0 for none.
        backend: `kernel` for the kernel's TCP, `quic-lab` for noq over its UDP.

    Raises:
        KernelError: if the program is missing, fails, or prints what is not a result.
        ScenarioError: if the scenario asks for what the emulator cannot do.
    """
    words = ["lab", "run", "-", "--beside", str(Path(scenario.origin).parent)]
    words += ["--seed", str(seed), "--sample-ms", repr(sample_interval_ms)]
    words += ["--over", "quic"] if backend == "quic-lab" else []
    with _machine_to_itself():
        timeout_s = scenario.duration_s + MARGIN_S
        out = ackademyd.call(words, scenario.resolved(), scenario.origin, timeout_s)
        ackademyd.check_unchanged()
    report = printed.report(out, ackademyd)
    tables = printed.tables(_get(report, "tables", dict), ackademyd)
    return tables, KernelRun.parse(report, attempts=1)


def emulate_in_time(
    scenario: _core.Scenario, seed: int, sample_interval_ms: float, backend: Backend = "kernel"
) -> tuple[Tables, KernelRun]:
    """Run, and repeat a run whose emulator was late; the last one may be invalid still.

    Raises:
        AckademyError: as `emulate`.
    """
    attempts = 1
    tables, run = emulate(scenario, seed, sample_interval_ms, backend)
    while not run.valid and attempts <= REPEATS_MAX:
        attempts += 1
        tables, run = emulate(scenario, seed, sample_interval_ms, backend)
    return tables, KernelRun.parse(run.report, attempts)


def identity() -> tuple[str, str]:
    """What a result depends on besides its scenario: release of the kernel, hash of the program.

    Raises:
        KernelError: if there is no program.
    """
    return os.uname().release, ackademyd.content_hash()


@contextmanager
def _machine_to_itself() -> Iterator[None]:
    """Hold a lock so that one run takes place at a time, across commands: two would be late.

    The lock is on the program's file, so no lock file is left behind.
    """
    import fcntl  # not on Windows, where the simulator runs

    with ackademyd.find().open("rb") as program:
        fcntl.flock(program, fcntl.LOCK_EX)
        yield


def _governed(entry: object) -> Governed:
    if not isinstance(entry, dict):
        raise KernelError(f"ackademyd printed agent.flows = {entry!r}; expected objects")
    counts = ("samples", "decisions", "fallbacks", "refused", "invalid")
    return Governed(_get(entry, "flow", str), *(_get(entry, count, int) for count in counts))


def _number(report: Report, name: str) -> float:
    value = report.get(name, "nothing")
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise KernelError(f"ackademyd printed {name} = {value}; expected a number")
    return float(value)


def _get(report: Report, name: str, kind: type[T]) -> T:
    value = report.get(name)
    if not isinstance(value, kind):
        raise KernelError(f"ackademyd printed {name} = {value!r}; expected {kind.__name__}")
    return value
