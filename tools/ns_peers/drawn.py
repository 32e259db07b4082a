"""Compares with ns-2 and ns-3 on points that a seed draws and nobody picked.

A point is a rate, a round trip, a buffer, a random loss and a number of flows. Every scheme runs on
every point in each simulator that has it. Ours agrees in a quantity if it lies in the peers'
interval, widened by a stated tolerance (docs/results/peers.md).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Literal, TypeAlias

from ackademy import files
from ackademy.console import Console, counting_bar
from ns_peers import peers
from ns_peers.peers import (
    Algorithm,
    Case,
    Peer,
    PeerResult,
    PeersError,
    Queue,
    Rules,
    Simulators,
)

Quantity: TypeAlias = Literal["throughput, Mb/s", "queue wait, ms", "p"]

QUANTITIES: tuple[Quantity, ...] = ("throughput, Mb/s", "queue wait, ms", "p")
PACKETS_MAX = 25_000
"""data packets of a run at full rate, which bounds what a point costs in ns-3"""
SEEDS = 3
"""runs of a peer where losses are random; ours runs twice as many"""


@dataclass(frozen=True, slots=True)
class Scheme:
    """What sends, over which queue, and which peers have it."""

    label: str
    algorithm: Algorithm
    peers: tuple[Peer, ...]
    rules: Rules = ""
    queue: Queue = "drop_tail"


SCHEMES: tuple[Scheme, ...] = (
    Scheme("NewReno as ns-2", "newreno", ("ns-2",)),
    Scheme("NewReno+SACK", "newreno-sack", ("ns-2", "ns-3")),
    Scheme("CUBIC", "cubic", ("ns-2", "ns-3")),
    Scheme("Vegas as ns-3", "vegas", ("ns-3",), rules="ns3"),
    Scheme("NewReno as ns-2, RED", "newreno", ("ns-2",), queue="red"),
)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far outside the peers' interval still counts as inside: the larger of the two."""

    share: float
    """of the nearer end"""
    least: float
    """in the quantity's own unit; of the wait in transmission times of a packet"""


TOLERANCES: Mapping[Quantity, Tolerance] = {
    "throughput, Mb/s": Tolerance(0.03, 0.0),
    "queue wait, ms": Tolerance(0.10, 0.5),
    "p": Tolerance(0.15, 2e-4),
}


@dataclass(frozen=True, slots=True)
class Interval:
    """The least and the most that the peers' runs gave."""

    low: float
    high: float

    def holds(self, value: float, tolerance: Tolerance, unit: float) -> bool:
        """Whether `value` lies inside, or outside by no more than the tolerance.

        Args:
            value: of ours.
            tolerance: of its quantity.
            unit: what `tolerance.least` counts.
        """
        least = tolerance.least * unit
        below = max(tolerance.share * self.low, least)
        above = max(tolerance.share * self.high, least)
        return self.low - below <= value <= self.high + above


def draw(count: int, seed: int) -> list[Case]:
    """Draws points; the same for the same seed, and the first of more are those of fewer.

    Args:
        count: how many, >= 1.
        seed: any whole number.

    Returns:
        Cases named `point 1` and so on, which stand for every scheme: 1 to 12 Mb/s and 10 to
        150 ms, log-uniform; a buffer of 0.1 to 2 bandwidth-delay products and at least 4 packets;
        one point in three with a random loss of 1e-4 to 1e-2; 1, 2 or 4 flows; at most
        `PACKETS_MAX` packets and 100 s.
    """
    found = []
    for number in range(1, count + 1):
        random = Random(f"{seed}:{number}")
        rate_mbps = _three_figures(_log_uniform(random, 1.0, 12.0))
        rtt_ms = _three_figures(_log_uniform(random, 10.0, 150.0))
        pipe = 1e3 * rate_mbps * rtt_ms / (8 * 1250)
        buffer = max(4, round(_log_uniform(random, 0.1, 2.0) * pipe))
        lossy = random.random() < 1 / 3
        loss = float(f"{_log_uniform(random, 1e-4, 1e-2):.2g}")
        flows = random.choice((1, 1, 2, 4))
        duration_s = min(100.0, math.floor(PACKETS_MAX * 8 * 1250 / (1e6 * rate_mbps)))
        found.append(
            Case(
                name=f"point {number}",
                algorithm="newreno-sack",
                buffer=buffer,
                flows=flows,
                loss=loss if lossy else 0.0,
                step_s=0.5 if flows > 1 else 0.0,
                duration_s=duration_s,
                rate_bps=round(1e6 * rate_mbps),
                rtt_s=round(1e-3 * rtt_ms, 7),
            )
        )
    return found


def _log_uniform(random: Random, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


def _three_figures(value: float) -> float:
    return float(f"{value:.3g}")


def case_of(point: Case, scheme: Scheme) -> Case:
    """The point under a scheme."""
    return replace(
        point,
        name=f"{point.name}, {scheme.label}",
        algorithm=scheme.algorithm,
        rules=scheme.rules,
        queue=scheme.queue,
        exact_clock=scheme.rules == "ns3",
    )


# --------------------------------------------------------------------------------- peers' runs


class Recorded:
    """What peers gave, kept in a file, so that an interrupted run goes on where it was.

    A run is known by the peer, its arguments and the peer's script.
    """

    def __init__(self, path: Path, simulators: Simulators) -> None:
        """Reads the file if it is there.

        Raises:
            PeersError: if it cannot be read.
        """
        self.path = path
        self.simulators = simulators
        self.runs: dict[str, dict[str, float]] = {}
        if path.is_file():
            try:
                self.runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise PeersError(f"{path} is not a record of peers' runs: {error}") from error

    def run(self, peer: Peer, case: Case) -> dict[str, float]:
        """The quantities of a run, from the file or from the peer, which is then kept.

        Raises:
            PeersError: if the peer is not there or fails.
        """
        arguments = peers.arguments_of(peer, case) | {"sample": 0}
        named = [peer, json.dumps(arguments, sort_keys=True), self._script(peer)]
        key = hashlib.sha256("\0".join(named).encode()).hexdigest()[:20]
        if key not in self.runs:
            self.runs[key] = _kept(self.simulators.run_with(peer, arguments))
            self._write()
        return self.runs[key]

    def _script(self, peer: Peer) -> str:
        name = "ns2/dumbbell.tcl" if peer == "ns-2" else "ns3/dumbbell.cc"
        return (self.simulators.root / "tools/ns_peers" / name).read_text(encoding="utf-8")

    def _write(self) -> None:
        files.write(self.path, json.dumps({"runs": self.runs}, indent=1) + "\n")


def _kept(result: PeerResult) -> dict[str, float]:
    quantities = result.quantities()
    return {name: quantities[name] for name in QUANTITIES if name in quantities}


# ------------------------------------------------------------------------------------ comparing


@dataclass(frozen=True, slots=True)
class Compared:
    """One point under one scheme: the peers' intervals, and ours."""

    case: Case
    scheme: str
    intervals: Mapping[str, Interval]
    """by quantity"""
    ours: Mapping[str, float]

    def inside(self, quantity: Quantity) -> bool:
        """Whether ours agrees in a quantity."""
        packet_ms = 8e3 * self.case.wire_bytes / self.case.rate_bps
        unit = packet_ms if quantity == "queue wait, ms" else 1.0
        tolerance = TOLERANCES[quantity]
        return self.intervals[quantity].holds(self.ours[quantity], tolerance, unit)


def seeds_of(case: Case, count: int) -> range:
    """The seeds of a case: one where nothing is random."""
    return range(1, 1 + (count if case.is_random else 1))


def intervals_of(
    recorded: Recorded, case: Case, scheme: Scheme, step: Callable[[], None]
) -> dict[str, Interval]:
    """Runs a case in its peers; a seed's mean over flows is one value of the interval."""
    runs: list[dict[str, float]] = []
    for peer in scheme.peers:
        for seed in seeds_of(case, SEEDS):
            runs.append(recorded.run(peer, replace(case, seed=seed)))
            step()
    return {name: _span([run[name] for run in runs if name in run]) for name in QUANTITIES}


def _span(values: Sequence[float]) -> Interval:
    return Interval(min(values), max(values))


def mean_of_ours(case: Case, run: Callable[[Case], PeerResult]) -> dict[str, float]:
    """Our quantities of a case, averaged over twice the peers' seeds."""
    each = [_kept(run(replace(case, seed=seed))) for seed in seeds_of(case, 2 * SEEDS)]
    return {name: fmean(found[name] for found in each) for name in QUANTITIES}


def compare(
    points: Sequence[Case],
    recorded: Recorded,
    run: Callable[[Case], PeerResult],
    console: Console,
) -> list[Compared]:
    """Runs every scheme on every point, with a progress bar.

    Raises:
        PeersError: if a peer is missing or fails.
    """
    pairs = [(case_of(point, scheme), scheme) for point in points for scheme in SCHEMES]
    total = sum(len(scheme.peers) * len(seeds_of(case, SEEDS)) for case, scheme in pairs)
    found = []
    with counting_bar(console) as drawn:
        bar = drawn.add_task("", total=total)
        for case, scheme in pairs:
            drawn.update(bar, description=case.name)
            intervals = intervals_of(recorded, case, scheme, lambda: drawn.advance(bar))
            found.append(Compared(case, scheme.label, intervals, mean_of_ours(case, run)))
    return found


# -------------------------------------------------------------------------------------- records


def write_record(rows: Sequence[Compared], seed: int, out: Path) -> None:
    """Writes points, schemes and the peers' intervals: what the core's test of agreement reads.

    Args:
        rows: in any order; what ours gave is left out.
        seed: of the points.
        out: a line per row, its fields separated by `|`.
    """
    lines = [
        f"# Drawn from seed {seed}; the least and the most of the peers' runs.",
        "# scheme|rate_bps|rtt_s|buffer|loss|flows|step_s|duration_s|"
        "mbps low|high|wait_ms low|high|p low|high",
    ]
    for row in rows:
        case = row.case
        point = (case.rate_bps, case.rtt_s, case.buffer, case.loss, case.flows, case.step_s)
        spans = [row.intervals[name] for name in QUANTITIES]
        ends = [f"{end:.6g}" for span in spans for end in (span.low, span.high)]
        fields = [row.scheme, *(f"{value:.9g}" for value in (*point, case.duration_s)), *ends]
        lines.append("|".join(fields))
    files.write(out, "\n".join(lines) + "\n")


# -------------------------------------------------------------------------------------- wording


def describe(case: Case) -> str:
    """The point in words."""
    loss = f", loss {case.loss:g}" if case.loss else ""
    flows = f"{case.flows} flows" if case.flows > 1 else "1 flow"
    rate, rtt = case.rate_bps / 1e6, 1e3 * case.rtt_s
    return f"{rate:g} Mb/s, {rtt:g} ms, {case.buffer} packets, {flows}{loss}"


def known_reason(row: Compared, quantity: Quantity) -> str:
    """Why ours differs from the peers in a quantity (docs/results/peers.md), or "open"."""
    case = row.case
    if row.scheme == "CUBIC" and case.loss > 0.0:
        return "beta is 0.8 in ns-2; ns-3 has no Reno-friendly region"
    if row.scheme == "Vegas as ns-3" and case.flows > 1:
        return "ns-3's SYN meets the queue of the others, ours an idle path"
    if row.scheme in ("NewReno+SACK", "CUBIC") and quantity == "p":
        return "RACK's timer resends between two ACKs, into a full queue; the peers have no RACK"
    if case.loss > 0.0 and quantity == "queue wait, ms":
        return "few seeds: losses decide how often the queue builds"
    return "open"
