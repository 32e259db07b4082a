"""The registry of metrics: what every number of a results table is called, and how it is computed.

One label has one definition, in every study, report and file (docs/reference/evaluation.md lists
them). `network_metrics` has those that need the values and the time series of a network. A metric
is named as `power`, or with what it is of, as `utilisation:bottleneck` or
`throughput_ratio:learner*/reno*`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ackademy.backends import entries
from ackademy.errors import ExperimentError
from ackademy.lazy import pl
from ackademy.stats.formulas import FloatArray, jain_index, pooled_loss
from ackademy.stats.formulas import m_e as figure_of_merit
from ackademy.stats.intervals import mean, variance
from ackademy.stats.metric import Metric
from ackademy.stats.run_tables import (
    BASE,
    COLUMNS,
    GOODPUT,
    OWD,
    P50,
    P95,
    TIMEOUTS,
    TP,
    D,
    P,
    RunTables,
    mean_over_runs,
    of_all_flows,
    per_connection,
)
from ackademy.stats.scores import fair_bytes, score_of

NORMAL_95 = 1.96
"""standard deviations to either side of the mean that hold 95 % of normally distributed values"""


def metric_of(name: str, where: str = "") -> Metric:
    """The metric that an experiment file calls so.

    Raises:
        ExperimentError: if there is none; the message starts with `where`, if it is given.
    """
    base, colon, of = name.partition(":")
    if not colon and base in METRICS:
        return METRICS[base]
    if colon and of and base in METRICS_OF:
        return METRICS_OF[base](of)
    allowed = ", ".join([*METRICS, *(f"{base}:..." for base in METRICS_OF)])
    prefix = f"{where}: " if where else ""
    raise ExperimentError(f"{prefix}metric = {name!r}: allowed: {allowed}")


def _mean_of(label: str, unit: str, about: str, column: int, words: str = "") -> Metric:
    return Metric(label, unit, about, lambda s: mean(s[..., column]), is_mean=True, words=words)


def _variance_of(label: str, unit: str, about: str, column: int) -> Metric:
    return Metric(
        label,
        unit,
        about,
        lambda s: variance(of_all_flows(s, column)),
        is_positive=True,
        over_runs="variance",
    )


def _delay_quantile(name: str, about: str, column: int) -> Metric:
    return Metric(
        f"d {name}",
        "ms",
        about,
        lambda s: mean(s[..., column] - s[..., BASE]),
        is_mean=True,
        words=f"delay {name}",
    )


def _per_run(label: str, unit: str, about: str, value: Callable[[RunTables], float]) -> Metric:
    """A mean over runs of one number per run."""
    return Metric(
        label, unit, about, mean, is_mean=True, extract=lambda run: np.array([value(run)])
    )


def _higher(metric: Metric) -> Metric:
    return replace(metric, better="higher")


def _lower(metric: Metric) -> Metric:
    return replace(metric, better="lower")


def _spread(metric: Metric) -> Metric:
    """The variance over runs of a number per run."""
    return Metric(
        f"V({metric.label})",
        metric.unit,
        f"variance over runs of {metric.about}",
        variance,
        is_positive=True,
        extract=metric.extract,
        over_runs="variance",
    )


def _interval_end(metric: Metric, sign: int) -> Metric:
    """The mean of a number per run plus or minus 1.96 standard deviations over runs."""

    def end(samples: FloatArray) -> float:
        return mean(samples) + sign * NORMAL_95 * math.sqrt(variance(samples))

    return Metric(
        f"{metric.label} {'−' if sign < 0 else '+'} 1.96 σ",
        metric.unit,
        f"mean {'minus' if sign < 0 else 'plus'} 1.96 standard deviations over runs of "
        f"{metric.about}: an end of the range of 95 % of normal runs, not of their mean's interval",
        end,
        extract=metric.extract,
        over_runs="mean and deviation",
    )


def _interval_span(metric: Metric) -> Metric:
    """The distance between the two ends of `_interval_end`."""
    return Metric(
        f"2 · 1.96 σ({metric.label})",
        metric.unit,
        "width of the range of 95 % of normal runs: 3.92 standard deviations over runs of "
        f"{metric.about}",
        lambda samples: 2.0 * NORMAL_95 * math.sqrt(variance(samples)),
        is_positive=True,
        extract=metric.extract,
        over_runs="deviation",
    )


def _jain(column: int, label: str, about: str, glob: str = "") -> Metric:
    def index(run: RunTables) -> float:
        flows = run.of(glob or run.chosen)
        shares = flows[COLUMNS[column]].cast(pl.Float64).to_numpy()
        return jain_index(shares) if np.all(shares >= 0.0) else math.nan

    named = f"{label} of {glob}" if glob else label
    metric = _higher(_per_run(named, "", f"Jain's index of the flows' {about}", index))
    words = "Jain" if column == TP else "Jain of delays"
    return replace(metric, words=f"{words} of {'all' if glob == '*' else glob}" if glob else words)


def _ratio(names: str) -> Metric:
    first, _, second = names.partition("/")

    def both(run: RunTables) -> FloatArray:
        pair = [run.of(glob)["throughput_mbps"].to_numpy().mean() for glob in (first, second)]
        return np.array(pair, np.float64)

    def statistic(samples: FloatArray) -> float:
        ours, other = samples.mean(axis=0)
        return float(ours / other) if other else math.nan

    about = f"mean throughput of {first} over that of {second}"
    label = f"x({first}) / x({second})"
    return Metric(label, "", about, statistic, is_positive=True, extract=both)


def _share() -> Metric:
    def both(run: RunTables) -> FloatArray:
        pair = [run.of(own)["throughput_mbps"].to_numpy().mean() for own in (run.chosen, "*")]
        return np.array(pair, np.float64)

    def statistic(samples: FloatArray) -> float:
        ours, all_flows = samples.mean(axis=0)
        return float(ours / all_flows) if all_flows else math.nan

    about = "mean throughput of the row's flows over that of all flows"
    return Metric("share", "", about, statistic, extract=both)


def _utilisation(link: str = "") -> Metric:
    def used(run: RunTables) -> float:
        if not link:
            busiest = run.links["utilisation"].max()
            return float(busiest) if isinstance(busiest, float) else math.nan
        found = _links(run, link)
        capacity = float(found["capacity_bytes"].sum())
        return float(found["delivered_bytes"].sum()) / capacity if capacity else 0.0

    about = "bytes delivered over what the link could carry"
    about = about if link else f"{about}, of the busiest link"
    metric = _higher(_per_run(f"utilisation {link}".rstrip(), "", about, used))
    return replace(metric, words=f"utilisation of {link}" if link else "")


def _goodput_share(link: str) -> Metric:
    def used(run: RunTables) -> float:
        capacity = float(_links(run, link)["capacity_bytes"].sum())
        return float(run.flows["goodput_bytes"].sum()) / capacity if capacity else 0.0

    about = "payload that reached the applications of all flows over what the link could carry"
    return _per_run(f"goodput share of {link}", "", about, used)


def _link_loss(link: str) -> Metric:
    def lost(run: RunTables) -> float:
        found = _links(run, link)
        arrived = float(found["arrived_packets"].sum())
        dropped = float((found["queue_drops"] + found["random_losses"]).sum())
        return dropped / arrived if arrived else 0.0

    return _per_run(f"loss on {link}", "", "packets lost over packets offered to the link", lost)


def _connection_goodput(glob: str) -> Metric:
    def goodput(run: RunTables) -> float:
        return float(run.connected(glob)["goodput_mbps"].cast(pl.Float64).to_numpy().mean())

    about = "what a connection's application read over the time it is active; mean over connections"
    metric = _higher(_per_run(f"goodput({glob})", "Mb/s", about, goodput))
    return replace(metric, words=f"goodput of {glob}")


def _connections_total(glob: str) -> Metric:
    def total(run: RunTables) -> float:
        read = float(run.connected(glob)["goodput_bytes"].sum())
        return 8e-6 * read / run.duration_s

    about = "what the applications of the connections read together over the whole run"
    metric = _higher(_per_run(f"Σ goodput({glob})", "Mb/s", about, total))
    return replace(metric, words=f"total of {glob}")


def _jain_connections(glob: str) -> Metric:
    def index(run: RunTables) -> float:
        return jain_index(run.connected(glob)["goodput_mbps"].cast(pl.Float64).to_numpy())

    about = "Jain's index of the connections' goodputs"
    metric = _higher(_per_run(f"Jain({glob})", "", about, index))
    return replace(metric, words=f"Jain of connections {glob}")


def _counter(name: str) -> Metric:
    def counted(run: RunTables) -> float:
        flows = run.of(run.chosen)["flow"].implode()
        rows = run.counters.filter((pl.col("name") == name) & pl.col("flow").is_in(flows))
        return float(rows["value"].to_numpy().mean()) if rows.height else math.nan

    return _per_run(name, "", f"the controller's counter {name}, mean over flows", counted)


def _counted(name: str) -> Metric:
    def counted(run: RunTables) -> float:
        flows = run.of(run.chosen)["flow"].implode()
        rows = run.counters.filter((pl.col("name") == name) & pl.col("flow").is_in(flows))
        return float(rows["value"].sum())

    return _per_run(f"all {name}", "", f"the controller's counter {name}, sum over flows", counted)


def _fair_total(run: RunTables) -> float:
    own = run.flows["flow"].is_in(run.of(run.chosen)["flow"].implode()).to_list()
    capacity = float(run.links["capacity_bytes"].cast(pl.Float64).to_numpy().min())
    active = zip(run.flows["start_s"].to_list(), run.flows["active_s"].to_list(), strict=True)
    return 8e-6 * fair_bytes(list(active), own, capacity, run.duration_s) / run.duration_s


def _longest_stall(run: RunTables) -> float:
    longest = run.of(run.chosen)["stall_max_ms"].drop_nans().max()
    return float(longest) if isinstance(longest, float) else math.nan


def _links(run: RunTables, glob: str) -> pl.DataFrame:
    names = run.links["link"].to_list()
    found = run.links.filter(
        pl.Series([entries.fits([glob], name) for name in names], dtype=pl.Boolean)
    )
    if found.is_empty():
        raise ExperimentError(f"link {glob!r}: allowed: {', '.join(names[:20])}")
    return found


def _delay(samples: FloatArray) -> float:
    """Mean over flows and runs; a flow without a sample is left out, a run without one is not."""
    if np.isfinite(samples).all():
        return mean(samples)
    known = np.isfinite(samples)
    counts = known.sum(axis=-1)
    sums = np.where(known, samples, 0.0).sum(axis=-1)
    return mean(np.where(counts > 0, sums / np.maximum(counts, 1), math.nan))


def _sender_rtt(run: RunTables) -> float:
    mean_ms = run.of(run.chosen)["rtt_mean_ms"].drop_nans().to_numpy()
    return float(mean_ms.mean()) if mean_ms.size else math.nan


def _queue_wait(run: RunTables) -> float:
    links = run.links.sort("delivered_bytes", descending=True, maintain_order=True)
    return float(links["wait_mean_ms"][0]) if links.height else math.nan


def _equal_share(glob: str) -> Metric:
    """Throughput of the row's flows over their part of a link that all flows share."""

    def share(run: RunTables) -> float:
        own, everyone = run.of(run.chosen), run.flows
        capacity = float(_links(run, glob)["capacity_bytes"].cast(pl.Float64).sum())
        fair = capacity * own.height / everyone.height
        return float(own["delivered_bytes"].cast(pl.Float64).sum()) / fair if fair else math.nan

    about = f"bytes delivered over the flows' equal part of what {glob} could carry"
    return _higher(_per_run(f"equal share of {glob}", "", about, share))


def _wait_ratio(run: RunTables) -> float:
    flows = run.of(run.chosen).select("rtt_p95_ms", "base_rtt_ms").drop_nans()
    ratios = (flows["rtt_p95_ms"] / flows["base_rtt_ms"]).to_numpy() - 1.0
    return float(ratios.mean()) if ratios.size else math.nan


def _queue_loss(run: RunTables) -> float:
    flows = run.of(run.chosen)
    sent = float(flows["sent_packets"].sum())
    return float(flows["queue_drops"].sum()) / sent if sent else 0.0


def _of_score(label: str, unit: str, about: str, field: str) -> Metric:
    """A field of `Score`; a mean over the runs that have it."""

    def value(run: RunTables) -> float:
        score = score_of(run.of(run.chosen), run.links, run.counters, run.duration_s)
        return float(getattr(score, field))

    return _per_run(label, unit, about, value)


def _of_two_runs(run: RunTables) -> float:
    raise ExperimentError("metric = 'gain', 'won': allowed: in `evaluate` alone")


def _of_stress(run: RunTables) -> float:
    raise ExperimentError("metric = 'regret', ...: allowed: in `stress` alone")


def _merit(samples: FloatArray) -> float:
    throughput = mean_over_runs(samples, lambda s: mean(s[..., TP]))
    delay = mean_over_runs(samples, lambda s: _delay(s[..., D]))
    return float(figure_of_merit(np.array(throughput), np.array(delay)))


def _power(samples: FloatArray) -> float:
    rtt_s = 1e-3 * mean_over_runs(samples, lambda s: mean(s[..., D] + s[..., BASE]))
    throughput = mean_over_runs(samples, lambda s: mean(s[..., TP]))
    return throughput / rtt_s if rtt_s > 0.0 else math.nan


def _connection_mean(name: str, unit: str, about: str, column: int) -> Metric:
    return Metric(
        name, unit, about, lambda s: mean(s[..., column]), is_mean=True, extract=per_connection
    )


def _connection_merit(samples: FloatArray) -> float:
    means = np.array(mean(samples[..., 0])), np.array(mean(samples[..., 1]))
    return float(figure_of_merit(*means))


def _connection_power(samples: FloatArray) -> float:
    rtt_s = 1e-3 * mean(samples[..., 1] + samples[..., 2])
    return mean(samples[..., 0]) / rtt_s if rtt_s > 0.0 else math.nan


def _connection_share(samples: FloatArray) -> float:
    everyone = mean(samples[..., 3])
    return mean(samples[..., 0]) / everyone if everyone else math.nan


JAIN_TP = _jain(TP, "Jain(tp)", "throughputs")
JAIN_D = _jain(D, "Jain(d)", "delays")

METRICS: Mapping[str, Metric] = {
    "throughput_mean_mbps": _higher(
        _mean_of(
            "E(tp)",
            "Mb/s",
            "mean throughput: bytes delivered, headers included, over the time a flow is active; "
            "mean over flows",
            TP,
            "throughput",
        )
    ),
    "throughput_share": _share(),
    "throughput_variance": _variance_of(
        "V(tp)", "(Mb/s)²", "variance of throughput: over flows and runs", TP
    ),
    "throughput_sum_mbps": _higher(
        Metric(
            "Σ tp",
            "Mb/s",
            "throughput of the row's flows together, each over the time it is active",
            lambda s: float(s[..., TP].sum(axis=-1).mean()),
            is_mean=True,
        )
    ),
    "throughput_total_mbps": _higher(
        _of_score(
            "total throughput",
            "Mb/s",
            "of the scheme's flows together, over the whole run, headers included",
            "throughput_mbps",
        )
    ),
    "fair_total_mbps": _per_run(
        "fair total",
        "Mb/s",
        "what the row's flows get over the whole run if at any time all active flows have equal "
        "parts of the narrowest link",
        _fair_total,
    ),
    "link_share": _higher(
        _of_score(
            "link share",
            "",
            "total throughput over what the narrowest link could carry, at most 1",
            "share",
        )
    ),
    "goodput_mean_mbps": _higher(
        _mean_of(
            "goodput",
            "Mb/s",
            "mean goodput: new payload over the time a flow is active; mean over flows",
            GOODPUT,
        )
    ),
    "delay_mean_ms": _lower(
        Metric(
            "E(d)",
            "ms",
            "mean of RTT − RTT_min: RTT_min is that of the empty path; mean over the flows with a "
            "sample, then over runs",
            lambda s: _delay(s[..., D]),
            is_mean=True,
            words="delay",
        )
    ),
    "delay_variance": _variance_of("V(d)", "ms²", "variance of delay: over flows and runs", D),
    "delay_p50_ms": _lower(
        _delay_quantile("p50", "median RTT of a flow − RTT_min, mean over flows", P50)
    ),
    "delay_p95_ms": _lower(
        _delay_quantile("p95", "95th percentile of a flow's RTT − RTT_min, mean over flows", P95)
    ),
    "owd_mean_ms": _lower(
        _mean_of("one-way delay", "ms", "mean time from sender to receiver", OWD)
    ),
    "queue_wait_ms": _lower(
        _per_run("queue wait", "ms", "mean wait at the link that carries most", _queue_wait)
    ),
    "loss_ratio": _lower(
        _mean_of("p", "", "packets dropped over packets sent of a flow, mean over flows", P)
    ),
    "loss": _lower(
        _per_run(
            "loss",
            "",
            "packets dropped over packets sent, all flows together",
            lambda run: pooled_loss(run.of(run.chosen)),
        )
    ),
    "queue_loss": _lower(
        _per_run(
            "loss in queues",
            "",
            "packets that queues dropped over packets sent, all flows together: no random loss",
            _queue_loss,
        )
    ),
    "wait_p95_ratio": _lower(
        _per_run(
            "p95 wait ratio",
            "",
            "95th percentile of RTT over that of the empty path, minus 1: mean over flows",
            _wait_ratio,
        )
    ),
    "m_e": _higher(
        Metric(
            "M_e",
            "",
            "ln E(tp) − 0.1 ln E(d), each a mean over flows and runs (Kong 2018, equation 5)",
            _merit,
        )
    ),
    "power": _higher(
        Metric("power", "Mb/s per s", "mean throughput over mean RTT", _power, is_positive=True)
    ),
    "rtt_mean_ms": _lower(
        Metric(
            "RTT",
            "ms",
            "mean round-trip time: of the packets that are delivered, mean over flows",
            lambda s: mean(s[..., D] + s[..., BASE]),
            is_mean=True,
        )
    ),
    "rtt_sender_ms": _lower(
        _per_run(
            "sender's RTT",
            "ms",
            "mean of the round-trip samples that a sender takes, mean over flows",
            _sender_rtt,
        )
    ),
    "rtt_ratio": _lower(
        _of_score(
            "RTT ratio",
            "",
            "mean round trip over that of the empty path, from 1; mean over flows",
            "rtt_ratio",
        )
    ),
    "rtt_base_ms": _mean_of("RTT_min", "ms", "round trip of the empty path, mean over flows", BASE),
    "rtt_p50_ms": _lower(_mean_of("RTT p50", "ms", "median RTT of a flow, mean over flows", P50)),
    "rtt_p95_ms": _lower(
        _mean_of("RTT p95", "ms", "95th percentile of a flow's RTT, mean over flows", P95)
    ),
    "timeouts": _lower(_mean_of("time-outs", "", "per flow and run", TIMEOUTS)),
    "fallbacks": _lower(
        _of_score("fallbacks", "", "flows that a policy's guard handed over to CUBIC", "fallbacks")
    ),
    "utility": _higher(
        _of_score(
            "utility",
            "",
            "ln link share − ln RTT ratio: 0 at best, at least ln 0.001",
            "utility",
        )
    ),
    "won": _per_run(
        "wins", "", "part of the runs on which the policy's utility is higher", _of_two_runs
    ),
    "gain": _per_run(
        "utility gain", "", "the policy's utility minus the other's, run by run", _of_two_runs
    ),
    "fair_share": _higher(
        _per_run(
            "fair share",
            "",
            "throughput over what an omniscient flow would get there, at most 1; mean over flows",
            _of_stress,
        )
    ),
    "rtt_over_ideal": _lower(
        _per_run(
            "RTT over ideal",
            "",
            "mean round trip over that of an omniscient flow, from 1; mean over flows",
            _of_stress,
        )
    ),
    "regret": _lower(
        _per_run(
            "regret",
            "",
            "−ln fair share + ln RTT over ideal: 0 for an omniscient flow, at most −ln 0.001; mean "
            "over flows",
            _of_stress,
        )
    ),
    "regret_gap": _lower(
        _per_run(
            "regret gap",
            "",
            "regret minus that of the other scheme on the same network",
            _of_stress,
        )
    ),
    "jain_throughput": JAIN_TP,
    "jain_throughput_variance": _spread(JAIN_TP),
    "jain_throughput_low": _interval_end(JAIN_TP, -1),
    "jain_throughput_high": _interval_end(JAIN_TP, +1),
    "jain_throughput_span": _interval_span(JAIN_TP),
    "jain_delay": JAIN_D,
    "jain_delay_variance": _spread(JAIN_D),
    "utilisation": _utilisation(),
    "connection_mean_mbps": _higher(
        _connection_mean(
            "goodput of a connection",
            "Mb/s",
            "mean goodput of the row's connections: what the application read over the time the "
            "connection is active",
            0,
        )
    ),
    "connection_delay_ms": _lower(
        _connection_mean(
            "delay of a connection",
            "ms",
            "mean of RTT − RTT_min over the delivered packets of all subflows of a connection: "
            "RTT_min is that of the packet's empty path; mean over connections",
            1,
        )
    ),
    "connection_m_e": _higher(
        Metric(
            "M_e of connections",
            "",
            "ln goodput − 0.1 ln delay: of connections, each a mean over connections and runs",
            _connection_merit,
            extract=per_connection,
        )
    ),
    "connection_power": _higher(
        Metric(
            "power of connections",
            "Mb/s per s",
            "mean goodput over mean RTT of connections",
            _connection_power,
            is_positive=True,
            extract=per_connection,
        )
    ),
    "connection_share": Metric(
        "share of connections",
        "",
        "mean goodput of the row's connections over that of all connections",
        _connection_share,
        extract=per_connection,
    ),
    "stall_max_ms": _lower(
        _per_run(
            "longest stall",
            "ms",
            "longest time in which a flow of the row with something to send delivered nothing in "
            "order",
            _longest_stall,
        )
    ),
}
"""Metrics of a row's flows, by the name that experiment files use."""

METRICS_OF: Mapping[str, Callable[[str], Metric]] = {
    "equal_share": _equal_share,
    "throughput_ratio": _ratio,
    "jain_throughput": lambda glob: _jain(TP, "Jain(tp)", "throughputs", glob),
    "jain_delay": lambda glob: _jain(D, "Jain(d)", "delays", glob),
    "utilisation": _utilisation,
    "goodput_share": _goodput_share,
    "link_loss_ratio": _link_loss,
    "connection_goodput_mbps": _connection_goodput,
    "connections_total_mbps": _connections_total,
    "jain_connections": _jain_connections,
    "counter": _counter,
    "counted": _counted,
}
"""Metrics that are of something named after a colon, whatever flows the row is about."""
