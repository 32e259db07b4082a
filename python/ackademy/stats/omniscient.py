"""What an omniscient flow would get in a scenario with one bottleneck, and the regret of a run.

The scenario is a dumbbell whose bottleneck has a constant or a scheduled rate. Its flows are bulk
transfers, sources of a constant rate, or datagrams.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ackademy import _core
from ackademy.backends import entries
from ackademy.errors import ScenarioError
from ackademy.lazy import pl
from ackademy.stats.formulas import pooled_loss
from ackademy.stats.regret import Demand, Stretch, omniscient, regret

PACKET_BYTES = 1500
"""on the wire, the default of a sender"""
JITTER_DRAWS = 20_000
"""packets of which the mean delay of a jittered path that keeps their order is computed"""


@dataclass(frozen=True, slots=True)
class Behind:
    """How the flows of a scheme did in a run, measured by the omniscient flows."""

    fair_share: float
    """mean over flows of throughput over the omniscient flow's, each at most 1"""
    rtt_over_ideal: float
    """mean over flows of the mean round trip over the omniscient flow's; `nan` without a sample"""
    loss_ratio: float
    """packets dropped over packets sent, [0, 1]"""
    regret: float
    """mean over flows, [0, -ln 0.001]"""
    throughput_mbps: float
    """of the flows together over the run, headers included"""


def behind(scenario: _core.Scenario, flows: pl.DataFrame, patterns: Sequence[str]) -> Behind:
    """The regret of the flows whose entries match, from the table `summary` of a run.

    Raises:
        ScenarioError: if the scenario is not of the kind that this module knows.
    """
    ideals = omniscient(stretches(scenario), _demands(scenario, flows))
    rows = flows["flow"].to_list()
    own = [
        (ideal, row)
        for ideal, row, chosen in zip(
            ideals,
            flows.iter_rows(named=True),
            entries.governed(scenario, patterns, rows),
            strict=True,
        )
        if chosen and ideal.mbit > 0.0
    ]
    shares = [min(8e-6 * row["delivered_bytes"] / ideal.mbit, 1.0) for ideal, row in own]
    ratios = [row["rtt_at_delivery_ms"] / ideal.rtt_ms for ideal, row in own]
    named = flows.filter(pl.Series(entries.governed(scenario, patterns, rows), dtype=pl.Boolean))
    known = [max(ratio, 1.0) for ratio in ratios if not math.isnan(ratio)]
    return Behind(
        fair_share=float(np.mean(shares)) if shares else math.nan,
        rtt_over_ideal=float(np.mean(known)) if known else math.nan,
        loss_ratio=pooled_loss(named),
        regret=float(np.mean([regret(a, b) for a, b in zip(shares, ratios, strict=True)]))
        if own
        else 0.0,
        throughput_mbps=8e-6 * float(named["delivered_bytes"].sum()) / scenario.duration_s,
    )


def check(scenario: _core.Scenario) -> None:
    """Refuse a scenario whose omniscient flow is not known.

    Raises:
        ScenarioError: if it is no dumbbell with one rate at a time, or has other kinds of traffic.
    """
    stretches(scenario)
    _wanted(scenario)


def stretches(scenario: _core.Scenario) -> list[Stretch]:
    """The bottleneck's rate and the round trip of a packet that never waits, over the run.

    Raises:
        ScenarioError: if the scenario is no dumbbell with a constant or scheduled rate.
    """
    fields = tomllib.loads(scenario.resolved())
    dumbbell = fields.get("dumbbell") or {}
    link = dumbbell.get("bottleneck") or {}
    if "rtt_ms" not in dumbbell or not {"rate_mbps", "rate_schedule"} & link.keys():
        allowed = "[dumbbell] with rtt_ms, and a bottleneck with rate_mbps or rate_schedule"
        raise ScenarioError(f"{scenario.origin}: {scenario.name}: allowed: {allowed}")
    if "delay_random" in link or "access_mbps" in dumbbell:
        allowed = "neither delay_random nor access_mbps"
        raise ScenarioError(f"{scenario.origin}: {scenario.name}: allowed: {allowed}")
    rates = link.get("rate_schedule") or [[0.0, link["rate_mbps"]]]
    forward = link.get("delay_schedule") or [[0.0, dumbbell["rtt_ms"] / 2.0]]
    outages = link.get("outages", [])
    ends = [time for step in (*rates, *forward) for time in step[:1]]
    times = sorted({0.0, *ends, *(time for pair in outages for time in pair)})
    times = [time for time in times if time < scenario.duration_s]
    found = []
    for start, end in zip(times, [*times[1:], scenario.duration_s], strict=True):
        is_out = any(low <= start < high for low, high in outages)
        rate = 0.0 if is_out else _at(rates, start)
        one_way = _one_way_ms(link, _at(forward, start), rate)
        found.append(Stretch(start, end, rate, one_way + dumbbell["rtt_ms"] / 2.0))
    return found


def _one_way_ms(link: Mapping[str, Any], delay_ms: float, rate_mbps: float) -> float:
    """From a sender at the bottleneck to the receiver: time on the wire, propagation, jitter."""
    wire_ms = PACKET_BYTES * 8e-3 / rate_mbps if rate_mbps else 0.0
    jitter_ms = float(link.get("jitter_ms", 0.0))
    if not jitter_ms or not link.get("keep_order"):
        return wire_ms + delay_ms
    return wire_ms + _ordered_ms(delay_ms, jitter_ms, wire_ms)


def _ordered_ms(delay_ms: float, jitter_ms: float, spacing_ms: float) -> float:
    """Mean delay of evenly spaced packets whose delays are normal, and which keep their order.

    A packet that would overtake another arrives with it, so the mean is above `delay_ms`. The
    deviation is cut at the delay, as the simulator does.
    """
    rng = np.random.default_rng(1)
    deviation = np.clip(jitter_ms * rng.standard_normal(JITTER_DRAWS), -delay_ms, delay_ms)
    sent = spacing_ms * np.arange(JITTER_DRAWS)
    return float(np.mean(np.maximum.accumulate(sent + delay_ms + deviation) - sent))


def _at(steps: Sequence[Sequence[float]], time_s: float) -> float:
    """The value of a schedule at a time."""
    return float([value for start, value in steps if start <= time_s][-1])


def _demands(scenario: _core.Scenario, flows: pl.DataFrame) -> list[Demand]:
    """What each row of a run's table of flows wants.

    Raises:
        ScenarioError: if a flow has another kind of traffic, or several subflows.
    """
    return [
        Demand(float(start_s), stop_s, mbps, yields)
        for start_s, (stop_s, mbps, yields) in zip(
            flows["start_s"].to_list(), _wanted(scenario), strict=True
        )
    ]


def _wanted(scenario: _core.Scenario) -> list[tuple[float, float, bool]]:
    """Per flow: when it stops, its rate in Mb/s (infinite for bulk), whether it yields."""
    described = tomllib.loads(scenario.resolved())["flow"]
    found = []
    for owner, subflows in zip(scenario.owners, scenario.subflows, strict=True):
        entry = described[owner]
        where = f"{scenario.origin}: flow {entry['name']}"
        kind = entry["traffic"]["kind"]
        if kind not in ("bulk", "app_limited", "cbr"):
            raise ScenarioError(
                f"{where}: traffic.kind = {kind!r}: allowed: bulk, app_limited, cbr"
            )
        if subflows > 1:
            raise ScenarioError(f"{where}: {subflows} subflows: allowed: one path")
        mbps = math.inf if kind == "bulk" else float(entry["traffic"]["rate_mbps"])
        stop_s = min(float(entry.get("stop_s", math.inf)), scenario.duration_s)
        found.append((stop_s, mbps, kind != "cbr"))
    return found
