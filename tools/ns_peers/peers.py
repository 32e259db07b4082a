"""Runs ns-2 and ns-3 on our scenarios and prints the three simulators side by side.

The peers run through our own scripts in `ns2/` and `ns3/`; docs/results/peers.md states the
conventions they share, what differs between them, and where a peer is at fault.
"""

from __future__ import annotations

import importlib
import json
import math
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol, TypeAlias, cast

from ackademy.console import Console, counting_bar
from ackademy.errors import AckademyError

Peer: TypeAlias = Literal["ns-2", "ns-3"]
Algorithm: TypeAlias = Literal[
    "newreno", "newreno-sack", "cubic", "bbr", "hybla", "illinois", "vegas", "westwood_plus"
]
Rules: TypeAlias = Literal["", "ns3", "linux"]
Setting: TypeAlias = Literal["remy", "plain"]
Traffic: TypeAlias = Literal["always", "onoff"]
Queue: TypeAlias = Literal["drop_tail", "red"]

PEERS: tuple[Peer, ...] = ("ns-2", "ns-3")
CPU_ROW = "CPU, us/packet"
ROWS = ("throughput, Mb/s", "d, ms", "queue wait, ms", "p", "time-outs", "Jain index", CPU_ROW)
"""what the table shows of a case, in this order"""


class PeersError(AckademyError):
    """A peer is missing, does not build, or failed; the message is one line and says what to do."""


# ------------------------------------------------------------------------------------- cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One dumbbell that every simulator can run: K senders behind one drop-tail link."""

    name: str
    """as printed in the table"""
    algorithm: Algorithm
    """`newreno` is the one of ns-2 without SACK; ns-3 has only the one with SACK"""
    buffer: int
    """packets in the bottleneck, the one in service included; >= 2"""
    setting: Setting = "plain"
    """`remy`: 1260 B on the wire, 0.1 ms clock, 100 Mb/s access; `plain`: 1250 B, 1 Gb/s access"""
    flows: int = 1
    """senders, all with the same algorithm"""
    loss: float = 0.0
    """probability that the link loses a data packet behind its queue"""
    traffic: Traffic = "always"
    """`onoff`: exponential transfers, mean 10 MB, and pauses, mean 0.5 s, on one connection"""
    spread_s: float = 0.0
    """flows start uniformly in [0, spread_s)"""
    step_s: float = 0.0
    """flow i starts at i * step_s"""
    queue: Queue = "drop_tail"
    """`red`: thresholds at a fifth and three fifths of the buffer, drops spaced as in its paper"""
    exact_clock: bool = False
    """ns-3 measures round trips by its clock, not by timestamps of whole milliseconds"""
    duration_s: float = 400.0
    """simulated seconds"""
    rate_bps: float = 10e6
    """bottleneck, bits per second"""
    rtt_s: float = 0.150
    """round-trip propagation, all of it on the bottleneck"""
    rules: Rules = ""
    """`variant` of a controller that has one: whose rules ours follows, and so which peer it is
    held against; ns-2 runs modules of Linux"""
    seed: int = 1
    """of start times, transfers, pauses and random losses"""

    @property
    def is_random(self) -> bool:
        """Whether another seed gives another result."""
        drawn = self.loss > 0.0 or self.spread_s > 0.0 or self.queue == "red"
        return drawn or self.traffic == "onoff"

    @property
    def peers(self) -> tuple[Peer, ...]:
        """The peers whose rules ours follows in this case."""
        if self.algorithm == "bbr":
            return ("ns-3",)  # Debian's ns-2 has no module of it
        of_rules: Mapping[Rules, tuple[Peer, ...]] = {"ns3": ("ns-3",), "linux": ("ns-2",)}
        return of_rules.get(self.rules, PEERS)

    @property
    def wire_bytes(self) -> int:
        """Size of a data packet on the bottleneck."""
        return 1260 if self.setting == "remy" else 1250


def cases(*, quick: bool = False) -> list[Case]:
    """Cases of docs/results/peers.md: NewReno as Remy ran it, SACK NewReno, CUBIC, and others.

    The rest are the controllers that TCP-Drinc is compared with, by the rules of ns-3 and of Linux.

    Args:
        quick: one buffer and one loss ratio each, 60 simulated seconds.

    Returns:
        Cases with distinct names, seed 1.
    """
    found = [
        Case(name=f"NewReno, L={size}", algorithm="newreno", buffer=size, setting="remy")
        for size in (5, 50, 150)
    ]
    four = replace(found[1], name="4 NewReno, L=50", flows=4, spread_s=1.0)
    found += [four, replace(four, name="4 NewReno on-off, L=50", traffic="onoff")]
    labels: dict[Algorithm, str] = {"newreno-sack": "NewReno+SACK", "cubic": "CUBIC"}
    for algorithm, label in labels.items():
        for size in (5, 50, 150):
            found.append(Case(name=f"{label}, L={size}", algorithm=algorithm, buffer=size))
        deep = found[-1]
        for loss in (1e-4, 1e-3, 1e-2):
            found.append(replace(deep, name=f"{deep.name}, loss {loss:g}", loss=loss))
    found += _bbr()
    found += _baselines()
    if not quick:
        return found
    few = [case for case in found if case.buffer == 50 or case.loss == 1e-3]
    return [replace(case, duration_s=60.0) for case in few]


def _bbr() -> Iterator[Case]:
    """BBR version 1 against ns-3's, whose faults docs/results/peers.md lists."""
    plain = Case(name="BBR, L=150", algorithm="bbr", buffer=150, duration_s=100.0)
    yield replace(plain, name="BBR, L=50", buffer=50)
    yield plain
    yield replace(plain, name="BBR, L=600", buffer=600)
    short = replace(plain, name="BBR, L=50, 50 ms", buffer=50, rtt_s=0.050)
    yield short
    yield replace(short, name="2 BBR, L=150, 50 ms", buffer=150, flows=2, step_s=10.0)
    for loss in (1e-3, 1e-2):
        yield replace(plain, name=f"{plain.name}, loss {loss:g}", loss=loss)


def _baselines() -> Iterator[Case]:
    """Hybla, Illinois, Vegas and Westwood+, each against the peer whose rules it follows."""
    labels: Mapping[Algorithm, str] = {
        "hybla": "Hybla",
        "illinois": "Illinois",
        "vegas": "Vegas",
        "westwood_plus": "Westwood+",
    }
    of_rules: Mapping[Rules, str] = {"ns3": "as ns-3", "linux": "as Linux"}
    for algorithm, label in labels.items():
        for rules, whose in of_rules.items():
            name = f"{label} {whose}, L=50"
            # ns-3's Vegas judges by single packets, which its timestamps of whole ms blur.
            exact = (algorithm, rules) == ("vegas", "ns3")
            case = Case(name=name, algorithm=algorithm, rules=rules, buffer=50, exact_clock=exact)
            yield replace(case, name=f"{name}, 50 ms", rtt_s=0.050)
            if (algorithm, rules) == ("hybla", "linux"):
                continue  # ns-2's loses a third of what it sends at 150 ms
            yield case
            deep = replace(case, name=f"{label} {whose}, L=150", buffer=150)
            yield from (deep, replace(deep, name=f"{deep.name}, loss 0.01", loss=1e-2))


# ------------------------------------------------------------------------------------ results


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one sender achieved; `None` where the run did not measure it."""

    active_s: float
    """from the first byte offered to the last acknowledged, summed over transfers"""
    delivered_bytes: int
    """in order at the receiver, headers of the wire packet included"""
    sent: int
    """data packets, retransmissions included"""
    retransmits: int
    """of those, packets sent before"""
    timeouts: int
    """ns-3: entries into the loss state, so time-outs in a row count once"""
    drops: int | None = None
    """data packets refused by the bottleneck's queue; random losses are not in it"""
    wait_ms: float | None = None
    """mean time in the bottleneck's queue, own transmission excluded"""
    d_ms: float | None = None
    """the sender's newest RTT sample at every delivery, averaged, minus the base RTT"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """One run of one case in one simulator."""

    flows: tuple[Flow, ...]
    """one per sender, in order of the case"""
    wire_bytes: int
    """of a data packet"""
    cpu_s: float
    """user and system time of the run, start-up included"""

    @property
    def packets(self) -> int:
        """Data packets delivered in order, over all flows."""
        return round(sum(flow.delivered_bytes for flow in self.flows) / self.wire_bytes)

    def quantities(self) -> dict[str, float]:
        """What the table shows, by the name of its row, without what was not measured."""
        rates = [_ratio(8e-6 * flow.delivered_bytes, flow.active_s) for flow in self.flows]
        found = {"throughput, Mb/s": fmean(rates)}
        for name, values in (
            ("d, ms", [flow.d_ms for flow in self.flows]),
            ("queue wait, ms", [flow.wait_ms for flow in self.flows]),
        ):
            known = [value for value in values if value is not None]
            if known:
                found[name] = fmean(known)
        drops = [flow.drops for flow in self.flows if flow.drops is not None]
        if drops:
            found["p"] = _ratio(sum(drops), sum(flow.sent for flow in self.flows))
        found["time-outs"] = float(sum(flow.timeouts for flow in self.flows))
        if len(rates) > 1:
            found["Jain index"] = _jain(rates)
        found[CPU_ROW] = _ratio(1e6 * self.cpu_s, self.packets)
        return found


def _jain(rates: Sequence[float]) -> float:
    """Jain's index, in [1 / n, 1]; 1.0 when nothing was sent."""
    squares = len(rates) * sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / squares if squares > 0.0 else 1.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 0.0


def mean_quantities(results: Sequence[PeerResult]) -> dict[str, float]:
    """Averages every quantity over runs with different seeds.

    Args:
        results: shape (n_runs,); at least one.

    Returns:
        The names of `PeerResult.quantities`, in its order.
    """
    each = [result.quantities() for result in results]
    return {name: fmean(run[name] for run in each if name in run) for name in each[0]}


def parse_result(text: str, cpu_s: float) -> PeerResult:
    """Reads the line of JSON that the programs of both simulators print last.

    Args:
        text: everything the peer printed; ns-2 prints remarks of its own before the line.
        cpu_s: seconds of processor time the run took.

    Raises:
        PeersError: if there is no such line or a field is missing.
    """
    line = next((part for part in reversed(text.splitlines()) if part.startswith("{")), None)
    if line is None:
        raise PeersError("the peer printed no result line")
    try:
        fields = json.loads(line)
        names = Flow.__dataclass_fields__
        flows = tuple(
            Flow(**{name: flow[name] for name in names if name in flow}) for flow in fields["flows"]
        )
        return PeerResult(flows=flows, wire_bytes=fields["wire_bytes"], cpu_s=cpu_s)
    except (ValueError, KeyError, TypeError) as error:
        raise PeersError(f"the peer's result line cannot be read: {error!r}") from error


# ------------------------------------------------------------------------------ the two peers

NS2_AGENT: Mapping[Algorithm, str] = {
    "newreno": "TCP/Newreno",
    "newreno-sack": "TCP/Sack1",
    "cubic": "TCP/Linux cubic",
    "hybla": "TCP/Linux hybla",
    "illinois": "TCP/Linux illinois",
    "vegas": "TCP/Linux vegas",
    "westwood_plus": "TCP/Linux westwood",
}
NS3_AGENT: Mapping[Algorithm, str] = {
    "newreno": "TcpNewReno",
    "newreno-sack": "TcpNewReno",
    "cubic": "TcpCubic",
    "bbr": "TcpBbr",
    "hybla": "TcpHyblaRated",
    "illinois": "TcpIllinois",
    "vegas": "TcpVegas",
    "westwood_plus": "TcpWestwoodPlus",
}
OURS: Mapping[Algorithm, str] = {
    "newreno": "new_reno",
    "newreno-sack": "new_reno",
    "cubic": "cubic_rfc9438",
    "bbr": "bbr1",
}
"""our controllers where they have another name; ns-2's CUBIC has no HyStart"""
INSTALL_HINT = "install the peers: apt-get install ns2 libns3-dev g++"


def arguments_of(peer: Peer, case: Case) -> dict[str, object]:
    """Arguments of a peer's script for a case, by name."""
    return ns2_arguments(case) if peer == "ns-2" else ns3_arguments(case)


def red_thresholds(buffer: int) -> tuple[int, int]:
    """Packets at which RED begins to drop, and at which it drops a tenth."""
    low = max(2, buffer // 5)
    return low, 3 * low


def ns2_arguments(case: Case) -> dict[str, object]:
    """Arguments of `tools/ns_peers/ns2/dumbbell.tcl` for a case, by name."""
    found = {"agent": NS2_AGENT[case.algorithm]} | _shared_arguments(case)
    if case.queue == "red":
        low, high = red_thresholds(case.buffer)
        found |= {"queue": "RED", "red_min": low, "red_max": high}
    if case.setting == "remy":
        return found
    # The Linux agents need timestamps, which take 10 bytes: fewer of payload, the same on the wire.
    stamped = NS2_AGENT[case.algorithm].startswith("TCP/Linux")
    found |= {"tick": 0.01, "timestamps": int(stamped), "payload": 1200 if stamped else 1210}
    return found


def ns3_arguments(case: Case) -> dict[str, object]:
    """Arguments of the program built from `tools/ns_peers/ns3/dumbbell.cc` for a case, by name."""
    headers = 54  # 2 PPP, 20 IP, 20 TCP, 12 timestamps
    found = {"agent": NS3_AGENT[case.algorithm]} | _shared_arguments(case)
    if case.exact_clock:
        headers -= 12
        found["timestamps"] = 0
    found["payload"] = case.wire_bytes - headers
    if case.loss > 0.0:
        found["socket"] = 64e6  # ns-3.37 crashes when the advertised window binds during recovery
    return found


def _shared_arguments(case: Case) -> dict[str, object]:
    starts = [f"{flow * case.step_s:g}" for flow in range(case.flows)]
    given = {"starts": ",".join(starts)} if case.step_s > 0.0 else {}
    return given | {
        "flows": case.flows,
        "rate": case.rate_bps,
        "rtt": case.rtt_s,
        "buffer": case.buffer,
        "duration": case.duration_s,
        "loss": case.loss,
        "traffic": case.traffic,
        "spread": case.spread_s,
        "seed": case.seed,
        "access": 100e6 if case.setting == "remy" else 1e9,
        "sample": int(case.setting == "remy"),
    }


class Simulators:
    """The peers of this machine, found and built on first use."""

    def __init__(self, root: Path | None = None) -> None:
        """Looks for nothing yet.

        Args:
            root: the checkout; by default the one this module stands in.
        """
        self.root = root if root is not None else Path(__file__).resolve().parents[2]
        self._ns3_program: Path | None = None

    def run(self, peer: Peer, case: Case) -> PeerResult:
        """Runs one case once.

        Raises:
            PeersError: if the peer is not installed or fails.
        """
        return self.run_with(peer, arguments_of(peer, case))

    def run_bare(self, peer: Peer, case: Case) -> PeerResult:
        """Runs one case without counting drops, waits and delays, for the CPU time alone."""
        return self.run_with(peer, arguments_of(peer, case) | {"sample": 0, "monitor": 0})

    def run_with(self, peer: Peer, arguments: Mapping[str, object]) -> PeerResult:
        """Runs a peer with arguments of its script, which are checked there."""
        text = [f"{name}={value}" for name, value in arguments.items()]
        before = _children_cpu_s()
        done = subprocess.run(
            [*self._command(peer), *text], capture_output=True, text=True, check=False
        )
        cpu_s = _children_cpu_s() - before
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PeersError(f"{peer} failed with status {done.returncode}: {reason}")
        return parse_result(done.stdout, cpu_s)

    def prepare(self, peers: Sequence[Peer]) -> None:
        """Finds and builds the peers, so that a missing one is told before the first long run."""
        for peer in peers:
            self._command(peer)

    def _command(self, peer: Peer) -> list[str]:
        if peer == "ns-2":
            program = shutil.which("ns")
            if program is None:
                raise PeersError(f"ns-2 is not on this machine; {INSTALL_HINT}")
            return [program, str(self._source("ns2/dumbbell.tcl"))]
        if self._ns3_program is None:
            self._ns3_program = self._build_ns3()
        return [str(self._ns3_program)]

    def _source(self, name: str) -> Path:
        path = self.root / "tools/ns_peers" / name
        if not path.is_file():
            raise PeersError(f"{path} is missing; run from a checkout")
        return path

    def _build_ns3(self) -> Path:
        """Compiles the ns-3 program into build/peers, unless it is newer than its source."""
        source = self._source("ns3/dumbbell.cc")
        program = self.root / "build" / "peers" / "ns3-dumbbell"
        if program.is_file() and program.stat().st_mtime > source.stat().st_mtime:
            return program
        compiler = shutil.which("g++")
        if compiler is None or not Path("/usr/include/ns3/core-module.h").is_file():
            raise PeersError(f"ns-3's headers or g++ are not on this machine; {INSTALL_HINT}")
        program.parent.mkdir(parents=True, exist_ok=True)
        # Debian's ns-3 pkg-config files carry a broken include path, so the flags are given here.
        command = [compiler, "-O2", "-std=c++17", str(source), "-o", str(program)]
        command += [f"-lns3-{part}" for part in ("core", "network", "internet", "point-to-point")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise PeersError(f"the ns-3 program does not build: {reason}")
        return program


def _children_cpu_s() -> float:
    """User and system seconds of all children that have ended."""
    import resource  # not on Windows, where neither peer runs

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# --------------------------------------------------------------------------------------- ours

Ours: TypeAlias = Callable[[Case], PeerResult]


def scenario_toml(case: Case) -> str:
    """The case as one of our scenario files; the seed is not part of one."""
    lines = [
        f"name = {json.dumps(case.name)}",
        f"duration_s = {case.duration_s:g}",
        "",
        "[dumbbell]",
        f"rtt_ms = {1e3 * case.rtt_s:g}",
        f"access_mbps = {100 if case.setting == 'remy' else 1000}",
        "",
        "[dumbbell.bottleneck]",
        f"rate_mbps = {1e-6 * case.rate_bps:g}",
        f"queue = {_queue(case)}",
    ]
    if case.loss > 0.0:
        lines.append(f'loss = {{ kind = "bernoulli", ratio = {case.loss:g} }}')
    lines += ["", "[sender]", *_sender_lines(case), "", "[[flow]]", f"count = {case.flows}"]
    lines.append(f'controller = "{OURS.get(case.algorithm, case.algorithm)}"')
    if case.algorithm == "cubic":
        lines.append('params = { rules = "linux" }')  # both peers count whole packets
    if case.rules:
        lines.append(f'params = {{ variant = "{case.rules}" }}')
    lines += [f"start_spread_s = {case.spread_s:g}", f"start_step_s = {case.step_s:g}"]
    if case.traffic == "onoff":
        lines.append('traffic = { kind = "on_off", mean_bytes = 10e6, mean_off_s = 0.5 }')
    return "\n".join(lines) + "\n"


def _queue(case: Case) -> str:
    if case.queue == "drop_tail":
        return f'{{ kind = "drop_tail", packets = {case.buffer} }}'
    low, high = red_thresholds(case.buffer)
    return (
        f'{{ kind = "red", min_packets = {low}, max_packets = {high}, max_ratio = 0.1, '
        f"weight = 0.002, packets = {case.buffer} }}"
    )


def _sender_lines(case: Case) -> list[str]:
    """Both recoveries as the peers run them: a window of 2, an ACK for every packet."""
    if case.algorithm != "newreno":
        # ns-3's ACK without timestamps has 2 bytes of PPP besides.
        ack_bytes = 42 if case.exact_clock else 40
        sizes = [f"packet_bytes = {case.wire_bytes}", f"ack_bytes = {ack_bytes}"]
        # The peers know neither RACK nor tail probes; NewReno's and CUBIC's cases keep ours.
        plain = ["rack = false", "tlp = false", "rescue = true"] if case.rules else []
        # A SYN comes first, and its round trip is the first sample.
        window = ["initial_cwnd_packets = 2", "handshake = true"]
        return ['recovery = "sack"', *sizes, "ack_every = 1", *window, *plain]
    if case.setting == "remy":
        return ['recovery = "ns2"']
    sizes = [f"packet_bytes = {case.wire_bytes}", "header_bytes = 40"]
    return ['recovery = "ns2"', *sizes, "timestamps = false", "rto_tick_ms = 10"]


class _Frame(Protocol):
    """The part of a data frame that is used here."""

    def to_dicts(self) -> list[dict[str, Any]]: ...


class _Outcome(Protocol):
    """What a run of ours leaves: a row per flow and per link."""

    flows: _Frame
    links: _Frame


class _Runner(Protocol):
    """The part of the package `ackademy` that runs a scenario text."""

    def run(self, scenario: str, *, seed: int) -> _Outcome: ...


def ours(case: Case) -> PeerResult:
    """Runs the case in our simulator, in this process."""
    runner = cast(_Runner, importlib.import_module("ackademy"))
    scenario = scenario_toml(case)
    before = time.process_time()
    outcome = runner.run(scenario, seed=case.seed)
    cpu_s = time.process_time() - before
    (bottleneck,) = (row for row in outcome.links.to_dicts() if row["link"] == "bottleneck")
    return result_of_rows(case, outcome.flows.to_dicts(), bottleneck, cpu_s)


def result_of_rows(
    case: Case,
    flows: Sequence[Mapping[str, Any]],
    bottleneck: Mapping[str, Any],
    cpu_s: float,
) -> PeerResult:
    """Our rows in the peers' words.

    Args:
        case: what was run.
        flows: one row per flow, by the names of the summary.
        bottleneck: the row of the shared link; its wait stands for every flow's.
        cpu_s: seconds of processor time the run took.
    """
    found = []
    for row in flows:
        sampled = case.setting == "remy" and not math.isnan(row["rtt_at_delivery_ms"])
        found.append(
            Flow(
                active_s=row["active_s"],
                delivered_bytes=row["delivered_bytes"],
                sent=row["sent_packets"],
                retransmits=row["retransmitted_packets"],
                timeouts=row["timeouts"],
                drops=row["queue_drops"],
                wait_ms=bottleneck["wait_mean_ms"],
                d_ms=row["rtt_at_delivery_ms"] - row["base_rtt_ms"] if sampled else None,
            )
        )
    return PeerResult(flows=tuple(found), wire_bytes=case.wire_bytes, cpu_s=cpu_s)


# ------------------------------------------------------------------------------------ running


@dataclass(frozen=True, slots=True)
class Row:
    """One case in every simulator, averaged over its runs."""

    case: Case
    runs: int
    quantities: Mapping[str, Mapping[str, float]]
    """by simulator, then by name of the quantity"""


def compare(
    chosen: Sequence[Case], peers: Sequence[Peer], runs: int, ours: Ours | None, console: Console
) -> list[Row]:
    """Runs every case in every simulator, one process at a time, with a progress bar.

    Args:
        chosen: the cases, seeds ignored.
        peers: the peers to run; may be empty.
        runs: seeds of a random case, >= 1; a deterministic one runs once.
        ours: our simulator, or `None` to leave its column empty.
        console: where the bar is drawn.

    Raises:
        PeersError: if a peer is missing or fails.
    """
    simulators = Simulators()
    simulators.prepare(peers)
    runners: dict[str, Ours] = {peer: _peer_runner(simulators, peer) for peer in peers}
    if ours is not None:
        runners["ours"] = ours

    def kinds_of(case: Case) -> list[str]:
        return [name for name in runners if name == "ours" or name in case.peers]

    total = sum(_runs_of(case, runs) * len(kinds_of(case)) for case in chosen)
    found = []
    with counting_bar(console) as drawn:
        bar = drawn.add_task("", total=total)
        for case in chosen:
            count = _runs_of(case, runs)
            quantities = {}
            for name in kinds_of(case):
                drawn.update(bar, description=f"{name}: {case.name}")
                results = []
                for seed in range(1, count + 1):
                    results.append(runners[name](replace(case, seed=seed)))
                    drawn.advance(bar)
                quantities[name] = mean_quantities(results)
            found.append(Row(case, count, quantities))
    return found


def _runs_of(case: Case, runs: int) -> int:
    return runs if case.is_random else 1


def _peer_runner(simulators: Simulators, peer: Peer) -> Ours:
    """Runs a case; where counting is dear, the CPU time is that of a second run without it."""

    def run(case: Case) -> PeerResult:
        result = simulators.run(peer, case)
        if peer == "ns-3":
            return result
        return replace(result, cpu_s=simulators.run_bare(peer, case).cpu_s)

    return run
