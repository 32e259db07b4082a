"""Speed cases for ns-2 and ns-3, timed beside ours by `tools/bench.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ns_peers.peers import Case, Peer, Simulators, ns2_arguments, ns3_arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedCase:
    """A case for packets per CPU second; nothing is counted on the way but what was delivered."""

    name: str
    case: Case
    access_bps: float
    """not limiting"""
    ns3_duration_s: float
    """simulated seconds in ns-3, which is too slow for all of them"""
    ns3_socket_bytes: float
    """ns-3 fills the buffer at once, which costs memory; this is just enough for the window"""
    ns2_window: int
    """packets; above this ns-2's Linux agents retransmit their whole window at start-up"""


_MANY = SpeedCase(
    name="S3: 100 CUBIC, 1 Gb/s, 40 ms, L=4000, 20 s",
    case=Case(
        name="S3",
        algorithm="cubic",
        buffer=4000,
        flows=100,
        spread_s=0.1,
        rate_bps=1e9,
        rtt_s=0.040,
        duration_s=20.0,
    ),
    access_bps=10e9,
    ns3_duration_s=4.0,
    ns3_socket_bytes=2e6,
    ns2_window=100_000,
)
SPEED_CASES: Mapping[str, SpeedCase] = {
    "S1": SpeedCase(
        name="S1: one NewReno, 10 Mb/s, 150 ms, L=50, 400 s",
        case=Case(name="S1", algorithm="newreno", buffer=50),
        access_bps=1e9,
        ns3_duration_s=400.0,
        ns3_socket_bytes=0.0,
        ns2_window=100_000,
    ),
    "S2": SpeedCase(
        name="S2: one CUBIC, 1 Gb/s, 20 ms, L=2000, 20 s",
        case=Case(
            name="S2", algorithm="cubic", buffer=2000, rate_bps=1e9, rtt_s=0.020, duration_s=20.0
        ),
        access_bps=10e9,
        ns3_duration_s=4.0,
        ns3_socket_bytes=8e6,
        ns2_window=3900,
    ),
    "S3": _MANY,
    # The peers have a node per end: with 10 000 flows their routing tables alone have 4e8 entries.
    "S5/1000": replace(
        _MANY,
        name="S5: 1000 CUBIC, 1 Gb/s, 40 ms, L=4000, 5 s",
        case=replace(_MANY.case, name="S5/1000", flows=1000, spread_s=1.0, duration_s=5.0),
        ns3_duration_s=2.0,
        ns3_socket_bytes=2e5,
    ),
}


def speed(name: str, peer: Peer, simulators: Simulators | None = None) -> tuple[int, float]:
    """Runs a speed case once.

    ns-3 runs S2 and S3 for fewer simulated seconds, so compare seconds per packet, not seconds.

    Args:
        name: a key of `SPEED_CASES`.
        peer: which simulator.
        simulators: where to find it; by default those of this checkout.

    Returns:
        Data packets delivered in order, and the CPU seconds they took, start-up included.

    Raises:
        KeyError: if the case is unknown.
        PeersError: if the peer is missing or fails.
    """
    found = SPEED_CASES[name]
    arguments = ns2_arguments(found.case) if peer == "ns-2" else ns3_arguments(found.case)
    arguments |= {"access": found.access_bps, "sample": 0, "monitor": 0}
    if peer == "ns-2":
        arguments["window"] = found.ns2_window
    else:
        arguments |= {"duration": found.ns3_duration_s, "socket": found.ns3_socket_bytes}
    result = (simulators or Simulators()).run_with(peer, arguments)
    return result.packets, result.cpu_s
