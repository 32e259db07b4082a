"""Networks of a league that a suite draws in place of listing: grids of the sizes in use.

A `[[grid]]` of a suite has a kind and a number of networks. The kind's full grid, a product of
rates, delays and buffers, is thinned to that number by a seed: the networks with the smallest
hashes of seed and name stay. So one more network changes none of the others, and no random
number generator's version matters.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from ackademy.toml_table import TomlTable, toml_value

Role = Literal["", "alone", "beside", "redraw"]
"""what the networks of a grid test: power alone, friendliness beside CUBIC, response to change"""

By = Literal["flow", "connection"]
"""what the numbers are of: a flow, or an MPTCP connection with all its subflows"""

GRID_KEYS = ("kind", "paper", "seed", "networks")
RATES_MBPS = (12.0, 24.0, 48.0, 96.0, 192.0)
ONE_WAY_MS = (5.0, 10.0, 20.0, 40.0, 80.0)
BUFFERS_BDP = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
BESIDE_BDP = (1.0, 2.0, 4.0, 8.0, 16.0)
FACTORS = (1.0, 2.0, 4.0, 0.5, 0.25)
"""of the rate after `STEP_S`"""
STEP_S = 7.0
RATE_MAX_MBPS = 192.0
"""no step leads above it"""
SEGMENTS_S = ((0.0, 3.0), (3.0, 10.0), (10.0, 17.0), (17.0, 24.0))
"""of a network alone: who wins is asked in each"""
WINDOW_S = 30.0
"""of a network beside CUBIC"""
ALONE_S, BESIDE_S, REDRAW_S, PAIR_S = 30.0, 120.0, 300.0, 60.0
REDRAW_EVERY_S = 10.0
REDRAW_RATES_MBPS, REDRAW_RTTS_MS = (1.0, 100.0), (20.0, 200.0)
ACK_DELAY_MS = 5.0
"""of the return path where the delay is redrawn"""
PACKET_BYTES = 1500
PACKETS_MIN = 4
SAMPLE_MS: Mapping[Role, float] = {"": 0.0, "alone": 100.0, "beside": 1000.0, "redraw": 200.0}
"""between rows of the time series of a run"""


Steps = tuple[tuple[float, float], ...]
"""times in s, each with the value from then on"""


MERIT = "m_e"
"""the metric that decides a network: it weighs throughput against delay"""

UTILISATION, JAIN, SHARE = "utilisation", "jain_throughput:*", "throughput_share"
"""of the network's named link; among all flows; of the scheme's flows beside others"""

OF_CONNECTIONS: Mapping[str, str] = {
    "throughput_mean_mbps": "connection_mean_mbps",
    "delay_mean_ms": "connection_delay_ms",
    "power": "connection_power",
    MERIT: "connection_m_e",
    JAIN: "jain_connections:*",
    SHARE: "connection_share",
}
"""by column: its metric where the numbers are of connections; other columns are the same"""

JUDGED = ("throughput_sum_mbps", "owd_mean_ms", "rtt_ratio", "wait_p95_ratio", "queue_loss")
"""metrics beside the share of the link; `ackademy.studies.league.scores` judges them"""

SHOWN = (
    "throughput_mean_mbps",
    "delay_p50_ms",
    "delay_p95_ms",
    "loss",
    JAIN,
    MERIT,
    "power",
    UTILISATION,
)
"""columns, in order; fairness is among all flows, the others are of the scheme's"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One path and its flows."""

    name: str
    """short, a column of the matrix"""
    title: str
    paper: str = ""
    """whose network it is; after a colon, what is special about it"""
    scenario: Path
    overrides: Mapping[str, str]
    link: str = "data"
    """the bottleneck, whose utilisation is shown"""
    full_delay_ms: float
    """queueing delay of a full buffer; 0 if its queue management keeps it from filling"""
    random_loss: float = 0.0
    """part of the packets that the link loses at random"""
    learner_params: Mapping[str, float | str]
    scheme_params: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    """by scheme"""
    flows: str = "*"
    """pattern of the `[[flow]]` entries under the scheme; others stay as the scenario has them"""
    by: By = "flow"
    """what its numbers are of"""
    offered_ratio: float = 1.0
    """what the scheme's applications offer at most, over what the link could carry"""
    role: Role = ""
    """what a network of a grid tests; empty for one that the suite lists"""
    rates_mbps: Steps = ()
    """of a grid's network: from second, Mb/s"""
    rtts_ms: Steps = ()
    """of a grid's network: from second, round trip of the empty path"""

    @property
    def source(self) -> str:
        """The paper alone: ranks are averaged within each."""
        return self.paper.partition(":")[0]

    @property
    def is_mixed(self) -> bool:
        """Whether flows of something else share the path."""
        return self.flows != "*"

    @property
    def shown(self) -> tuple[str, ...]:
        """Columns of its table."""
        return (*SHOWN, SHARE) if self.is_mixed else SHOWN

    @property
    def judged(self) -> tuple[str, ...]:
        """Metrics that regret, power and dominance are computed of; none of connections."""
        return (f"equal_share:{self.link}", *JUDGED) if self.by == "flow" else ()

    def metric(self, column: str) -> str:
        """What a column is as a metric of its runs."""
        return f"{UTILISATION}:{self.link}" if column == UTILISATION else self.headed(column)

    def headed(self, column: str) -> str:
        """The metric that a column of several networks is headed by, whose links differ."""
        return OF_CONNECTIONS.get(column, column) if self.by == "connection" else column


def drawn(table: TomlTable, thin: int = 1) -> list[Network]:
    """The networks of a `[[grid]]`, or one of so many of them, at least one.

    Raises:
        ExperimentError: if a field is wrong.
    """
    kind = table.only(*GRID_KEYS).string("kind")
    if kind not in _GRIDS:
        raise table.error("kind", kind, ", ".join(own for own in get_args(Role) if own))
    seed = table.whole("seed", 0)
    if kind == "redraw":
        count = math.ceil(table.whole("networks", 1, 1000) / thin)
        return [_redraw(seed, index) for index in range(count)]
    full = _GRIDS[kind]()
    return thinned(full, seed, math.ceil(table.whole("networks", 1, len(full)) / thin))


def pair_networks(seed: int, count: int) -> list[Network]:
    """Networks for two flows, thinned from rates up to 48 Mb/s, all delays and buffers."""
    return thinned(_pairs(), seed, count)


def thinned(full: Sequence[Network], seed: int, count: int) -> list[Network]:
    """So many of them, chosen by a seed, in their order."""

    def rank(own: Network) -> str:
        return hashlib.sha256(f"{seed}\0{own.name}".encode()).hexdigest()

    kept = {own.name for own in sorted(full, key=rank)[:count]}
    return [own for own in full if own.name in kept]


def value_at(schedule: Sequence[tuple[float, float]], time_s: float) -> float:
    """The value of a schedule at a time."""
    return next((value for start, value in reversed(schedule) if start <= time_s), math.nan)


def mean_between(schedule: Sequence[tuple[float, float]], low_s: float, high_s: float) -> float:
    """The mean of a schedule over an interval of time of some length."""
    ends = [start for start, _ in schedule[1:]] + [math.inf]
    total = 0.0
    for (start, value), end in zip(schedule, ends, strict=True):
        total += value * max(0.0, min(end, high_s) - max(start, low_s))
    return total / (high_s - low_s)


def alone_grid() -> list[Network]:
    """Every network of the power league: rate, one-way delay, buffer, and what happens at 7 s."""
    return [
        _alone(*point)
        for point in itertools.product(RATES_MBPS, ONE_WAY_MS, BUFFERS_BDP, FACTORS)
        if point[0] * point[3] <= RATE_MAX_MBPS
    ]


def beside_grid() -> list[Network]:
    """Every network of the friendliness league: rate, one-way delay, buffer."""
    rates = [rate for rate in RATES_MBPS if rate <= 96.0]
    return [
        _two_flows("beside", *point) for point in itertools.product(rates, ONE_WAY_MS, BESIDE_BDP)
    ]


def _pairs() -> list[Network]:
    rates = [rate for rate in RATES_MBPS if rate <= 48.0]
    return [_two_flows("", *point) for point in itertools.product(rates, ONE_WAY_MS, BUFFERS_BDP)]


_GRIDS: Mapping[str, Callable[[], list[Network]]] = {
    "alone": alone_grid,
    "beside": beside_grid,
    "redraw": list,
}


def _packets(rate_mbps: float, rtt_ms: float, bdp: float) -> int:
    return max(PACKETS_MIN, round(bdp * rate_mbps * rtt_ms * 125.0 / PACKET_BYTES))


def _full_delay_ms(packets: int, rate_mbps: float) -> float:
    return packets * PACKET_BYTES / (125.0 * rate_mbps)


def _learner(rate_mbps: float, rtt_ms: float, packets: int, flows: int) -> dict[str, float | str]:
    return {
        "bandwidth_mbps": rate_mbps,
        "rtt_min_ms": rtt_ms,
        "buffer_packets": packets,
        "flows": flows,
    }


def _varying(
    duration_s: float, rates: Steps, rtts: Steps, packets: int, ack_delay_ms: float
) -> dict[str, str]:
    """Fields of `link.toml`: the delay of acknowledgements is constant, that of data the rest."""
    fields = {
        "duration_s": duration_s,
        "link.0.rate_schedule": [list(own) for own in rates],
        "link.0.delay_schedule": [[start, rtt - ack_delay_ms] for start, rtt in rtts],
        "link.0.queue.packets": packets,
        "link.1.delay_ms": ack_delay_ms,
    }
    return {key: toml_value(value) for key, value in fields.items()}


def _alone(rate: float, one_way: float, bdp: float, factor: float) -> Network:
    rtt, packets = 2.0 * one_way, _packets(rate, 2.0 * one_way, bdp)
    schedule = ((0.0, rate), (STEP_S, rate * factor)) if factor != 1.0 else ((0.0, rate),)
    change = "" if factor == 1.0 else f", × {factor:g}"
    step = "" if factor == 1.0 else f", {rate * factor:g} Mb/s from {STEP_S:g} s"
    return Network(
        name=f"{rate:g} Mb/s, {rtt:g} ms, {bdp:g} BDP{change}",
        title=f"Alone: {rate:g} Mb/s{step}, round trip {rtt:g} ms, buffer {packets} packets",
        role="alone",
        scenario=Path("link.toml"),
        overrides=_varying(ALONE_S, schedule, ((0.0, rtt),), packets, one_way),
        full_delay_ms=_full_delay_ms(packets, rate * factor),
        learner_params=_learner(rate, rtt, packets, 1),
        rates_mbps=schedule,
        rtts_ms=((0.0, rtt),),
    )


def _two_flows(role: Role, rate: float, one_way: float, bdp: float) -> Network:
    rtt, packets = 2.0 * one_way, _packets(rate, 2.0 * one_way, bdp)
    beside = role == "beside"
    return Network(
        name=f"{'+ CUBIC, ' if beside else ''}{rate:g} Mb/s, {rtt:g} ms, {bdp:g} BDP",
        title=f"{'Beside CUBIC' if beside else 'Two flows'}: {rate:g} Mb/s, round trip {rtt:g} ms, "
        f"buffer {packets} packets",
        role=role,
        scenario=Path("beside.toml" if beside else "pair.toml"),
        overrides={
            "duration_s": repr(BESIDE_S if beside else PAIR_S),
            "link.0.rate_mbps": repr(rate),
            "link.0.delay_ms": repr(one_way),
            "link.0.queue.packets": repr(packets),
            "link.1.delay_ms": repr(one_way),
        },
        full_delay_ms=_full_delay_ms(packets, rate),
        learner_params=_learner(rate, rtt, packets, 2),
        rates_mbps=((0.0, rate),),
        rtts_ms=((0.0, rtt),),
        flows="flow" if beside else "*",
    )


def _redraw(seed: int, index: int) -> Network:
    starts = [own * REDRAW_EVERY_S for own in range(int(REDRAW_S / REDRAW_EVERY_S))]
    rates, rtts = (
        tuple(
            (start, round(low + (high - low) * _uniform(seed, index, name, start), 3))
            for start in starts
        )
        for name, (low, high) in (("rate", REDRAW_RATES_MBPS), ("rtt", REDRAW_RTTS_MS))
    )
    mean = sum(rate for _, rate in rates) / len(rates)
    middle = sum(rtt for _, rtt in rtts) / len(rtts)
    packets = _packets(mean, middle, 1.0)
    return Network(
        name=f"redraw {index + 1}",
        title=f"Alone: 1 to 100 Mb/s and 20 to 200 ms redrawn every 10 s, {packets} packets",
        role="redraw",
        scenario=Path("link.toml"),
        overrides=_varying(REDRAW_S, rates, rtts, packets, ACK_DELAY_MS),
        full_delay_ms=_full_delay_ms(packets, mean),
        learner_params=_learner(mean, min(rtt for _, rtt in rtts), packets, 1),
        rates_mbps=rates,
        rtts_ms=rtts,
    )


def _uniform(seed: int, index: int, name: str, start_s: float) -> float:
    """A number in [0, 1) that only depends on the arguments."""
    digest = hashlib.sha256(f"{seed}\0{index}\0{name}\0{start_s:g}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2.0**56
