"""The part of the registry of metrics that needs a network: one number of a run with one seed.

Each takes what the runs left (`Ran`) and says in its docstring what the network must name. `nan`
means that there is nothing to measure. Those of the window `steady` are of the time from the end
of the warm-up on, the last five sixths of a run. No label is one of `metrics.METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ackademy.lazy import pl
from ackademy.stats.formulas import FloatArray, jain_index
from ackademy.stats.harm import harm
from ackademy.stats.metric import Better, Window
from ackademy.stats.metrics import metric_of
from ackademy.stats.network_runs import Ran, RunData

WINDOW_S = 1.0
"""of shares and throughputs over time"""
SETTLED_RATIO = 0.2
"""half the width of the band around the fair share"""
SETTLED_S = 5.0
"""that a flow stays in it"""
TRIP_LOSS = 0.1
"""share of losses at which a circuit breaker counts a second (RFC 8084 leaves it open)"""
TRIP_S = 3
"""such seconds in a row, after which it trips"""
REACHED = 0.9
"""part of the new capacity that counts as found"""
QUEUE_GONE = 2.0
"""round trips of queueing below which a standing queue counts as gone"""
LATE_MS = 200.0
"""wait after which a real-time packet is too late"""
ARRIVED_BY = 0.8
"""part of the run in which transfers start that count: the others may be cut off"""


def wait_p50(ran: Ran) -> float:
    """Median over time of the bottleneck's queueing delay, in round trips of the empty path.

    From the end of the warm-up; the network names `rate_mbps` and `rtt_ms`.
    """
    return _wait_ms(ran, 0.5) / ran.number("rtt_ms")


def wait_p95(ran: Ran) -> float:
    """95th percentile over time of the bottleneck's queueing delay, in RTTs of the empty path.

    From the end of the warm-up; the network names `rate_mbps` and `rtt_ms`.
    """
    return _wait_ms(ran, 0.95) / ran.number("rtt_ms")


def use(ran: Ran) -> float:
    """Throughput of all flows over the link's rate, from the end of the warm-up on.

    In [0, 1]; the network names `rate_mbps`.
    """
    run = ran.run
    edges = np.array([run.warm_s, run.duration_s])
    return float(run.rates(run.tables.flows["flow"], edges).sum()) / ran.number("rate_mbps")


def loss(ran: Ran) -> float:
    """Packets of the tested flows that were dropped over those that arrived or were dropped.

    From the end of the warm-up on; in [0, 1]; `nan` if nothing was sent.
    """
    run = ran.run
    edges, names = np.array([run.warm_s, run.duration_s]), run.own["flow"]
    mss = run.own["mss_bytes"].cast(pl.Float64).to_numpy()
    arrived = float((np.diff(run.delivered(names, edges), axis=0)[0] / mss).sum())
    dropped = float(np.diff(run.lost(names, edges), axis=0).sum())
    return dropped / (arrived + dropped) if arrived + dropped > 0.0 else math.nan


def sent_per_rtt(ran: Ran) -> float:
    """Packets that a tested flow sends per round trip of the empty path, mean over flows."""
    own = ran.run.own.filter(pl.col("active_s") > 0.0)
    if own.is_empty():
        return math.nan
    round_trips = 1e3 * own["active_s"].to_numpy() / own["base_rtt_ms"].to_numpy()
    return float((own["sent_packets"].cast(pl.Float64).to_numpy() / round_trips).mean())


def jain(ran: Ran) -> float:
    """Jain's index of the tested flows' throughputs, mean over seconds.

    From when all flows are there: `joined_s` of the network or the end of the warm-up, plus
    `settle_s` of the network.
    """
    rates = _shares(ran)
    return float(np.mean([jain_index(row) for row in rates])) if rates.size else math.nan


def min_share(ran: Ran) -> float:
    """Throughput of the slowest tested flow over the mean of the tested flows; in [0, 1].

    Over the same time as `jain`.
    """
    totals = _shares(ran).sum(axis=0)
    return float(totals.min() / totals.mean()) if totals.size and totals.mean() > 0.0 else math.nan


def convergence_s(ran: Ran) -> float:
    """From `joined_s` until every flow is within 20 % of the fair share for 5 s.

    In windows of 1 s. A run in which that does not happen counts with the time that was left.
    """
    run, joined = ran.run, ran.number("joined_s")
    edges = np.arange(joined, run.duration_s + 1e-9, WINDOW_S)
    rates = run.rates(run.own["flow"], edges)
    fair = rates.sum(axis=1, keepdims=True) / rates.shape[1]
    inside = np.all(np.abs(rates - fair) <= SETTLED_RATIO * fair, axis=1) & (fair[:, 0] > 0.0)
    held = 0
    for index, good in enumerate(inside):
        held = held + 1 if good else 0
        if held * WINDOW_S >= SETTLED_S:
            return float((index + 1 - held) * WINDOW_S)
    return run.duration_s - joined


def rtt_bias(ran: Ran) -> float:
    """Exponent b of throughput proportional to RTT^-b, from the flows `own_near` and `own_far`.

    0 where the share does not depend on the round trip, 1 where it is inverse to it. Negative where
    the flow with the longer round trip gets more. From the end of the warm-up on.
    """
    run = ran.run
    edges = np.array([run.warm_s, run.duration_s])
    near, far = (run.flows(glob) for glob in ("own_near*", "own_far*"))
    rates = [float(run.rates(own["flow"], edges).mean()) for own in (near, far)]
    rtts = [float(own["base_rtt_ms"].to_numpy().mean()) for own in (near, far)]
    if min(rates) <= 0.0:
        return math.nan
    return -math.log(rates[0] / rates[1]) / math.log(rtts[0] / rtts[1])


def completion_p50_ms(ran: Ran) -> float:
    """Median completion time of the transfers of the flows `*short*`, in ms.

    Transfers that start in the first four fifths of the run; one that is not finished counts with
    its time until then.
    """
    return _completion_ms(ran, 0.5)


def completion_p99_ms(ran: Ran) -> float:
    """99th percentile of the completion times; otherwise as `completion_p50_ms`."""
    return _completion_ms(ran, 0.99)


def bulk_use(ran: Ran) -> float:
    """Throughput of the bulk flows over what the short transfers leave of the bottleneck.

    Flows `*bulk*` and `*short*`, the whole run.
    """
    capacity = float(ran.run.bottleneck["capacity_bytes"].sum())
    bulk, short = (
        float(ran.run.flows(glob)["delivered_bytes"].sum()) for glob in ("*bulk*", "*short*")
    )
    return bulk / (capacity - short) if capacity > short else math.nan


def own_share(ran: Ran) -> float:
    """Throughput of a tested flow over the fair share, from the end of the warm-up on.

    The fair share is the throughput of all flows over their number. Mean over the tested flows.
    """
    run = ran.run
    edges = np.array([run.warm_s, run.duration_s])
    everyone = run.rates(run.tables.flows["flow"], edges).mean()
    own = run.rates(run.own["flow"], edges).mean()
    return float(own / everyone) if everyone > 0.0 else math.nan


def harm_throughput(ran: Ran) -> float:
    """Harm to the victims' throughput (`stats/harm.py`); in [0, 1].

    The variant `alone` has the flows `victim*` alone on the link, `beside` with the tested flows.
    """
    alone, beside = (_victims_mbps(ran.runs[name]) for name in ("alone", "beside"))
    return harm(alone, beside, True)


def harm_delay(ran: Ran) -> float:
    """Harm to the victims' 95th percentile of RTT; variants as in `harm_throughput`."""
    alone, beside = (
        float(ran.runs[name].flows("victim*")["rtt_p95_ms"].to_numpy().mean())
        for name in ("alone", "beside")
    )
    return harm(alone, beside, False)


def victim_loss(ran: Ran) -> float:
    """Packets of the flows `victim*` that were dropped over those sent."""
    own = ran.run.flows("victim*")
    sent = float(own["sent_packets"].sum())
    return float(own["dropped_packets"].sum()) / sent if sent else math.nan


def victim_delay_ms(ran: Ran) -> float:
    """95th percentile over time of the wait that a packet of the victim meets at the bottleneck."""
    return _wait_ms(ran, 0.95)


def victim_late(ran: Ran) -> float:
    """Part of the time in which a packet would wait longer than 200 ms at the bottleneck; [0, 1].

    A real-time receiver would play nothing then. From the end of the warm-up on.
    """
    times, waits = ran.run.waits_ms(ran.number("rate_mbps"))
    steady = waits[times >= ran.run.warm_s]
    return float((steady > LATE_MS).mean()) if steady.size else math.nan


def rise_s(ran: Ran) -> float:
    """From `at_s` until a window carries 90 % of `to_mbps`, in s.

    Windows last 200 ms or four round trips, if that is longer. A run in which that does not happen
    counts with the time that was left, until `until_s` or its end.
    """
    run, at = ran.run, ran.number("at_s")
    until = ran.number("until_s") if "until_s" in ran.values else run.duration_s
    rtt_ms = ran.number("rtt_ms")
    width = max(0.2, 4e-3 * rtt_ms) if math.isfinite(rtt_ms) else 0.2
    edges = np.arange(at, until + 1e-9, width)
    if edges.size < 2:
        return math.nan
    total = run.rates(run.own["flow"], edges).sum(axis=1)
    found = np.flatnonzero(total >= REACHED * ran.number("to_mbps"))
    return float(edges[found[0] + 1] - at) if found.size else until - at


def rise_part(ran: Ran) -> float:
    """`rise_s` over the time allowed: 20 round trips or `allowed_s`, whichever is longer."""
    allowed_s = max(20e-3 * ran.number("rtt_ms"), ran.number("allowed_s"))
    return rise_s(ran) / allowed_s


def fall_s(ran: Ran) -> float:
    """From `at_s` until the queue stays below two round trips for a second, in s.

    At `to_mbps`, with `rtt_ms`. A run in which that does not happen counts with the time left.
    """
    run, at = ran.run, ran.number("at_s")
    times, waits = run.waits_ms(ran.number("to_mbps"))
    after = times >= at
    long = times[after & (waits > QUEUE_GONE * ran.number("rtt_ms"))]
    return _settled_after(long, at, run.duration_s)


def start_s(ran: Ran) -> float:
    """From the start until a window carries 80 % of `rate_mbps`, in s; windows of two round trips.

    A run in which that does not happen counts with its duration.
    """
    run = ran.run
    width = max(0.1, 2e-3 * ran.number("rtt_ms"))
    edges = np.arange(0.0, run.duration_s + 1e-9, width)
    total = run.rates(run.own["flow"], edges).sum(axis=1)
    found = np.flatnonzero(total >= 0.8 * ran.number("rate_mbps"))
    return float(edges[found[0] + 1]) if found.size else run.duration_s


def breaker_trips(ran: Ran) -> float:
    """How often a circuit breaker would trip: more than 10 % loss in each of 3 s.

    Over all tested flows, in windows of 1 s, the start included; windows without a packet do not
    count.
    """
    run = ran.run
    edges, names = np.arange(0.0, run.duration_s + 1e-9, WINDOW_S), run.own["flow"]
    mss = run.own["mss_bytes"].cast(pl.Float64).to_numpy()
    arrived = (np.diff(run.delivered(names, edges), axis=0) / mss).sum(axis=1)
    dropped = np.diff(run.lost(names, edges), axis=0).sum(axis=1)
    bad = dropped > TRIP_LOSS * (arrived + dropped)
    trips = held = 0
    for is_bad in bad:
        held = held + 1 if is_bad else 0
        if held == TRIP_S:
            trips, held = trips + 1, 0
    return float(trips)


def blind_packets(ran: Ran) -> float:
    """Packets sent between the ends of the runs `before` and `blind`.

    Both begin alike: the second goes on while no acknowledgement returns.
    """
    return _sent(ran.runs["blind"]) - _sent(ran.runs["before"])


def blind_excess(ran: Ran) -> float:
    """`blind_packets` minus the flow's cwnd at the end of the run `before`, in packets, at least 0.

    What remains are probes: tail loss probes and retransmissions after time-outs.
    """
    windows = ran.runs["before"].flow_series["cwnd_packets"].tail(1).to_numpy()
    return max(blind_packets(ran) - float(windows[0]), 0.0) if windows.size else math.nan


def blind_timeouts(ran: Ran) -> float:
    """Time-outs between the ends of the runs `before` and `blind`."""
    before, blind = (float(ran.runs[name].own["timeouts"].sum()) for name in ("before", "blind"))
    return blind - before


def window_ratio(ran: Ran) -> float:
    """Largest cwnd of a tested flow over what the path holds: BDP and buffer, at least 10 packets.

    The network names `hold_packets`.
    """
    own = ran.run.flow_series["cwnd_packets"]
    largest = own.max() if own.len() else None
    if not isinstance(largest, float) or not math.isfinite(largest):
        return math.inf
    return largest / max(ran.number("hold_packets"), 10.0)


def gain(ran: Ran) -> float:
    """Throughput of the flow `own_cheat` with a receiver that cheats over that with an honest one.

    From the variants `cheat` and `honest`, the whole run.
    """
    rates = [
        float(ran.runs[name].flows("own_cheat*")["delivered_bytes"].sum())
        for name in ("honest", "cheat")
    ]
    return rates[1] / rates[0] if rates[0] > 0.0 else math.nan


def kept(ran: Ran) -> float:
    """Throughput of the tested flows in the variant `changed` over that in the variant `plain`."""
    plain, changed = (
        float(ran.runs[name].own["delivered_bytes"].sum()) for name in ("plain", "changed")
    )
    return changed / plain if plain > 0.0 else math.nan


def _wait_ms(ran: Ran, part: float) -> float:
    times, waits = ran.run.waits_ms(ran.number("rate_mbps"))
    steady = waits[times >= ran.run.warm_s]
    return float(np.quantile(steady, part)) if steady.size else math.nan


def _completion_ms(ran: Ran, part: float) -> float:
    run = ran.run
    flows = run.flows("*short*").filter(pl.col("start_s") <= ARRIVED_BY * run.duration_s)
    if flows.is_empty():
        return math.nan
    done = flows["transfers"].to_numpy() > 0
    so_far = 1e3 * flows["active_s"].to_numpy()
    times = np.where(done, flows["fct_mean_ms"].to_numpy(), so_far)
    return float(np.quantile(times, part))


def _shares(ran: Ran) -> FloatArray:
    """Throughput by second and tested flow once all are there; shape (n, n_flows)."""
    run = ran.run
    joined = ran.number("joined_s")
    begin = joined if math.isfinite(joined) else run.warm_s
    settle = ran.number("settle_s")
    begin += settle if math.isfinite(settle) else 0.0
    edges = np.arange(begin, run.duration_s + 1e-9, WINDOW_S)
    return run.rates(run.own["flow"], edges) if edges.size > 1 else np.zeros((0, 0))


def _settled_after(outside_s: FloatArray, at_s: float, end_s: float) -> float:
    """From `at_s` to the end of the first second of calm after it, minus that second.

    Args:
        outside_s: times of the samples that are outside, increasing; shape (n,).
        at_s: when the clock starts.
        end_s: end of the run.
    """
    last = at_s
    for time in outside_s:
        if time - last >= WINDOW_S:
            break
        last = float(time)
    return min(last, end_s) - at_s


def _victims_mbps(run: RunData) -> float:
    edges = np.array([run.warm_s, run.duration_s])
    return float(run.rates(run.flows("victim*")["flow"], edges).mean())


def _sent(run: RunData) -> float:
    return float(run.own["sent_packets"].sum())


@dataclass(frozen=True, slots=True)
class NetworkMetric:
    """A number of one controller on one network with one seed."""

    label: str
    unit: str
    of: Callable[[Ran], float]
    better: Better = "lower"
    window: Window = "whole"
    variants: tuple[str, ...] = ()
    """that a part must have for it"""
    definition: str = ""
    """that of the function by default"""

    @property
    def about(self) -> str:
        """The definition."""
        return self.definition or (self.of.__doc__ or "").strip()

    @property
    def lower_is_better(self) -> bool:
        """The direction."""
        return self.better == "lower"


def _steady(
    label: str, unit: str, of: Callable[[Ran], float], better: Better = "lower"
) -> NetworkMetric:
    return NetworkMetric(label, unit, of, better, "steady")


NETWORK_METRICS: Mapping[str, NetworkMetric] = {
    "steady_wait_p50": _steady("steady-state median queueing delay", "RTT", wait_p50),
    "steady_wait_p95": _steady("steady-state p95 queueing delay", "RTT", wait_p95),
    "steady_use": _steady("steady-state use", "", use, "higher"),
    "steady_loss": _steady("steady-state loss", "", loss),
    "sent_per_rtt": NetworkMetric("packets per RTT", "", sent_per_rtt),
    "steady_jain": _steady("steady-state Jain", "", jain, "higher"),
    "min_share": _steady("smallest share", "", min_share, "higher"),
    "convergence_s": NetworkMetric("convergence", "s", convergence_s),
    "rtt_bias": _steady("RTT bias b", "", rtt_bias),
    "completion_p50_ms": NetworkMetric("completion p50", "ms", completion_p50_ms),
    "completion_p99_ms": NetworkMetric("completion p99", "ms", completion_p99_ms),
    "bulk_use": NetworkMetric("bulk's use of what is left", "", bulk_use, "higher"),
    "own_share": _steady("own share / fair", "", own_share, "higher"),
    "harm_throughput": NetworkMetric(
        "harm to throughput", "", harm_throughput, window="steady", variants=("alone", "beside")
    ),
    "harm_delay": NetworkMetric("harm to p95 RTT", "", harm_delay, variants=("alone", "beside")),
    "victim_loss": NetworkMetric("victim's loss", "", victim_loss),
    "victim_delay_ms": _steady("victim's p95 wait", "ms", victim_delay_ms),
    "victim_late": _steady("victim's freezes", "of the time", victim_late),
    "rise_s": NetworkMetric("time to 90 %", "s", rise_s),
    "rise_part": NetworkMetric("time to 90 % / allowed", "", rise_part),
    "fall_s": NetworkMetric("time until the queue is gone", "s", fall_s),
    "start_s": NetworkMetric("time to 80 %", "s", start_s),
    "breaker_trips": NetworkMetric("circuit breaker trips", "", breaker_trips),
    "blind_packets": NetworkMetric(
        "packets while blind", "", blind_packets, variants=("before", "blind")
    ),
    "blind_excess": NetworkMetric(
        "packets while blind beyond a window", "", blind_excess, variants=("before", "blind")
    ),
    "blind_timeouts": NetworkMetric(
        "time-outs while blind", "", blind_timeouts, variants=("before", "blind")
    ),
    "window_ratio": NetworkMetric("largest cwnd / path", "", window_ratio),
    "cheating_gain": NetworkMetric("gain by cheating", "", gain, variants=("honest", "cheat")),
    "kept": NetworkMetric("throughput kept", "", kept, "higher", variants=("plain", "changed")),
}
"""that need the values of a network, its variants or its series, by the name of a card's file"""

SHARED = (
    "loss",
    "timeouts",
    "stall_max_ms",
    "wait_p95_ratio",
    "fallbacks",
    "utilisation:bottleneck",
    "goodput_share:bottleneck",
)
"""metrics of every study that cards have, too"""


def _shared(name: str) -> NetworkMetric:
    """A metric of every study, of the tested flows of the run that is measured."""
    metric = metric_of(name)

    def value(ran: Ran) -> float:
        return metric.of_run(metric.extract(ran.run.tables))

    better = metric.better or "higher"  # neither is better: of what there is, a card asks for more
    return NetworkMetric(metric.name, metric.unit, value, better, definition=metric.about)


MEASURES: Mapping[str, NetworkMetric] = {
    **NETWORK_METRICS,
    **{name: _shared(name) for name in SHARED},
}
"""what a scorecard may demand, by the name that its file uses"""
