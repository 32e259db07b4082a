"""How flows did in one run: the numbers that evaluations and cards show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ackademy.lazy import pl
from ackademy.stats.formulas import jain_index, pooled_loss

SHARE_FLOOR = 1e-3
"""a share below this counts as this in the utility, whose logarithm has no other end"""


@dataclass(frozen=True, slots=True)
class Score:
    """How a scheme's flows did in one run."""

    throughput_mbps: float
    """of its flows together, headers included"""
    share: float
    """of what the narrowest link could carry, [0, 1]"""
    delay_ms: float
    """mean round trip above that of the empty path, mean over flows; `nan` without a sample"""
    rtt_ratio: float
    """mean round trip over that of the empty path, from 1; `nan` without a sample"""
    loss_ratio: float
    """its packets that were dropped over those sent, [0, 1]"""
    jain: float
    """fairness of its flows' throughputs, (0, 1]; 1 for one flow"""
    fallbacks: int
    """of its flows, those that a guard of their policy handed over to another controller"""
    utility: float
    """ln share − ln rtt_ratio: 0 for the whole link at the empty path's round trip, else below"""


def score_of(
    flows: pl.DataFrame, links: pl.DataFrame, counters: pl.DataFrame, duration_s: float
) -> Score:
    """From the tables of a run, its flows chosen and measured."""
    capacity_mbps = float(links["capacity_bytes"].cast(pl.Float64).min() or 0.0)  # type: ignore[arg-type]
    capacity_mbps *= 8e-6 / duration_s
    delivered = float(flows["delivered_bytes"].sum())
    throughput = 8e-6 * delivered / duration_s
    share = min(throughput / capacity_mbps, 1.0) if capacity_mbps > 0.0 else math.nan
    delays = flows.select("delay_ms", "base_rtt_ms").drop_nans()
    delay = _mean(delays["delay_ms"])
    ratio = _mean(1.0 + delays["delay_ms"] / delays["base_rtt_ms"])
    fell = (pl.col("name") == "fallbacks") & pl.col("flow").is_in(flows["flow"].implode())
    return Score(
        throughput_mbps=throughput,
        share=share,
        delay_ms=delay,
        rtt_ratio=ratio,
        loss_ratio=pooled_loss(flows),
        jain=jain_index(flows["throughput_mbps"].to_numpy()) if flows.height else math.nan,
        fallbacks=int(counters.filter(fell)["value"].sum()),
        utility=utility(share, ratio),
    )


def utility(share: float, rtt_ratio: float) -> float:
    """Ln share − ln RTT / empty RTT, a flow without a sample having the floor's.

    TCP-Drinc's ln throughput − ln RTT, up to what the link makes of it for everybody.
    """
    floor = math.log(SHARE_FLOOR)
    if math.isnan(rtt_ratio) or math.isnan(share):
        return floor
    return max(math.log(max(share, SHARE_FLOOR)) - math.log(rtt_ratio), floor)


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else math.nan


def fair_bytes(
    flows: Sequence[tuple[float, float]], own: Sequence[bool], capacity_bytes: float, end_s: float
) -> float:
    """What a link gives to some of its flows if at any time all active ones get equal parts.

    Args:
        flows: of each flow, when it becomes active and for how long it is, in s.
        own: which of them are meant.
        capacity_bytes: of the link until `end_s`, of which every second gets the same part.
        end_s: of the run, > 0.
    """
    spans = [(start, min(start + active, end_s)) for start, active in flows]
    times = sorted({time for span in spans for time in span} | {0.0, end_s})
    total = 0.0
    for low, high in itertools.pairwise(times):
        active = [start <= low and high <= end for start, end in spans]
        if any(active):
            part = sum(is_on and is_own for is_on, is_own in zip(active, own, strict=True))
            total += (high - low) * part / sum(active)
    return capacity_bytes * total / end_s
