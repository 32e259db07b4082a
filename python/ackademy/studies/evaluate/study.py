"""Schemes on networks: where they were trained, on a distribution, a list, or a scenario.

Every scheme takes the place of the learners of a network. The first scheme is the evaluated one,
the second the reference that dominance is counted over. What is measured of a run are the metrics
`METRICS`; its point on a network is its share of what is fair, its queueing delay and the losses
that it causes (docs/reference/evaluation.md).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ackademy.backends import distributions
from ackademy.backends.schemes import Scheme
from ackademy.lazy import pl
from ackademy.runner.cases import Case
from ackademy.runner.measured import Measured
from ackademy.runner.measured import tables as measured_tables
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import (
    NO_METHOD,
    Interval,
    mean_interval,
    median_interval,
    network_interval,
    t_interval,
)
from ackademy.stats.league_metrics import ParetoPoint, dominates
from ackademy.stats.metrics import metric_of
from ackademy.stats.results import Estimate, Name, Results, results
from ackademy.studies.evaluate.sources import Bottleneck, Source, bottleneck_of

STUDY = "evaluate"
SCORED = (
    "throughput_total_mbps",
    "link_share",
    "delay_mean_ms",
    "rtt_ratio",
    "loss",
    "jain_throughput",
    "fallbacks",
    "utility",
)
"""what tables and files have of every run"""
METRICS = (*SCORED, "fair_total_mbps", "wait_p95_ratio", "queue_loss", "rtt_base_ms")
COUNTED = ("decisions", "decisions_outside", "decisions_uncontended", "fallbacks")
"""counters of the evaluated policy, which guards change"""
GAIN, WON = "gain", "won"
"""of the evaluated scheme over another"""
USED = 0.95
"""share of what is fair from which on a scheme's delay counts as that of one that uses the link"""
WORST = 4
"""networks of each kind of failure"""


@dataclass(frozen=True, slots=True)
class Network:
    """A network on which every scheme has run, with one seed."""

    case: Case
    seed: int
    values: Mapping[str, Mapping[str, float]]
    """by scheme and metric"""
    points: Mapping[str, ParetoPoint]
    """by scheme"""
    rtt_ms: float
    """of the empty path, mean over the flows in question"""
    bottleneck: Bottleneck | None
    """of a dumbbell with a constant rate and a limit in BDP"""

    def utility(self, scheme: str) -> float:
        """What a scheme gets out of the network."""
        return self.values[scheme]["utility"]


@dataclass(frozen=True, slots=True)
class Summary:
    """One scheme on a group of networks."""

    group: str
    """empty for all together"""
    scheme: str
    networks: tuple[Network, ...]
    estimates: Mapping[str, Interval]
    """mean over networks by metric, `GAIN` and `WON` among them"""
    axis: str = ""
    """what the groups are ranges of; empty if they are not"""

    @property
    def full_group(self) -> str:
        """The group by its axis, too."""
        return f"{self.axis}: {self.group}" if self.axis else self.group

    @property
    def n_runs(self) -> int:
        """Runs behind the numbers."""
        return len(self.networks)

    def per_run(self, metric: str) -> FloatArray:
        """Shape (n_runs,)."""
        return np.array([own.values[self.scheme][metric] for own in self.networks], np.float64)

    def n(self, metric: str) -> int:
        """Runs behind one number: those that have a finite value of it."""
        known = metric in SCORED
        return int(np.isfinite(self.per_run(metric)).sum()) if known else self.n_runs


@dataclass(frozen=True, slots=True)
class Verdict:
    """A scheme over all networks; a part is in [0, 1], a wait in round trips of the empty path."""

    scheme: str
    networks: int
    dominates_reference: Interval
    """part of the networks"""
    dominated_by_reference: Interval
    dominated: Interval
    """part of the networks on which any other scheme dominates it"""
    share: Interval
    """median share of what is fair, at most 1"""
    share_to_best: Interval
    """median share over the largest of the others'"""
    wait: Interval
    """median 95th percentile of the queueing delay"""
    wait_beyond: Interval
    """median wait beyond the shortest of the others with a share of `USED` and more"""
    loss: Interval
    """mean part of the packets that queues dropped"""


@dataclass(frozen=True, slots=True)
class Guarded:
    """How often guards decided in place of the evaluated policy, over all networks."""

    decisions: int
    outside: int
    """of these, those that the guard of unfamiliar networks left to own_queue"""
    calm: int
    """of these, those without contention; 0 for a policy that acts at all times"""
    fallbacks: int
    """flows that were handed over to CUBIC"""

    def share(self, left: int) -> float:
        """Which part of the decisions so many are."""
        return left / self.decisions if self.decisions else 0.0


@dataclass(frozen=True, slots=True)
class Worst:
    """A network on which the evaluated scheme fails, and how."""

    kind: str
    network: Network
    file: Path
    """the scenario, to run again"""
    command: str
    """which prints its numbers"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A property of networks, cut into ranges."""

    key: str
    label: str
    edges: tuple[float, ...]
    """inner ends of the ranges; one belongs to the range above it"""
    names: tuple[str, ...]
    """of the ranges, one more than edges"""
    is_log: bool
    scale: float = 1.0
    """of what is drawn: 100 for per cent"""

    def value(self, network: Network) -> float:
        """Of a network with a bottleneck."""
        return float(getattr(network.bottleneck, self.key))

    def bin(self, network: Network) -> int:
        """The number of the range that a network is in."""
        return int(np.searchsorted(self.edges, self.value(network), side="right"))


AXES = (
    Axis(
        "rate_mbps",
        "rate, Mb/s",
        (5.0, 10.0, 20.0, 50.0),
        ("below 5", "5 – 10", "10 – 20", "20 – 50", "50 and more"),
        is_log=True,
    ),
    Axis(
        "rtt_ms",
        "empty round trip, ms",
        (20.0, 50.0, 100.0, 200.0),
        ("below 20", "20 – 50", "50 – 100", "100 – 200", "200 and more"),
        is_log=True,
    ),
    Axis(
        "loss",
        "random loss, %",
        (1e-9, 0.01, 0.02),
        ("none", "to 1", "1 – 2", "2 and more"),
        is_log=False,
        scale=100.0,
    ),
    Axis(
        "buffer_bdp",
        "buffer, BDP",
        (0.5, 1.0, 2.0),
        ("below 0.5", "0.5 – 1", "1 – 2", "2 and more"),
        is_log=True,
    ),
)
"""ranges for 2 to 100 Mb/s, 10 to 300 ms, to 3 % loss and 0.2 to 4 BDP; the outer ones are open,
as a distribution may reach further"""


def networks(own: Source, schemes: Sequence[Scheme], found: Sequence[Measured]) -> list[Network]:
    """The networks on which every scheme has run.

    What is fair on a network must not depend on who is judged, but when flows are active does: it
    is the mean over the schemes.

    Args:
        own: their source.
        schemes: the evaluated one first.
        found: of `measured.rows` over the cases and schemes, in that order.
    """
    size, listed = len(schemes), []
    for index, case in enumerate(own.cases):
        rows = found[size * index : size * (index + 1)]
        if not all(row.n_runs for row in rows) or all(row.is_fixed for row in rows):
            continue  # of a network in which nothing is random the first seed stands for all
        values = {
            row.row.name.scheme: {key: float(of[0]) for key, of in row.values.items()}
            for row in rows
        }
        rtt = float(np.mean([one["rtt_base_ms"] for one in values.values()]))
        network = (values, points(values), rtt, bottleneck_of(case))
        listed.append(Network(case, rows[0].seeds[0], *network))
    return listed


def points(values: Mapping[str, Mapping[str, float]]) -> dict[str, ParetoPoint]:
    """Where every scheme is on a network, by scheme.

    Args:
        values: by scheme and metric, of `throughput_total_mbps`, `fair_total_mbps`,
            `wait_p95_ratio` and `queue_loss`. What is fair is the mean over the schemes.
    """
    fair = float(np.mean([one["fair_total_mbps"] for one in values.values()]))
    return {
        name: ParetoPoint(
            one["throughput_total_mbps"] / fair if fair else math.nan,
            one["wait_p95_ratio"],
            one["queue_loss"],
        )
        for name, one in values.items()
    }


def guarded(found: Sequence[Measured], scheme: str) -> Guarded:
    """Of the evaluated policy, on the networks on which it has run."""
    own = [row for row in found if row.row.name.scheme == scheme and row.n_runs]
    sums = [sum(float(row.values[f"counted:{name}"][0]) for row in own) for name in COUNTED]
    return Guarded(*map(round, sums))


def summaries(
    group: str, members: Sequence[Network], schemes: Sequence[Scheme], axis: str = ""
) -> list[Summary]:
    """One per scheme over networks that all have run on."""
    found = []
    for scheme in schemes:
        own = Summary(group, scheme.label, tuple(members), {}, axis)
        gains = np.array(
            [one.utility(schemes[0].label) - one.utility(scheme.label) for one in members]
        )
        estimates = {metric: mean_interval(own.per_run(metric)) for metric in SCORED}
        estimates[GAIN] = t_interval(gains)
        estimates[WON] = Interval(float((gains > 0.0).mean()), math.nan, math.nan, NO_METHOD, 0.0)
        found.append(replace(own, estimates=estimates))
    return found


def by_group(found: Sequence[Network], schemes: Sequence[Scheme]) -> list[Summary]:
    """All networks together, then each group, if there are several."""
    groups: dict[str, list[Network]] = {}
    for own in found:
        groups.setdefault(own.case.group, []).append(own)
    shown = {"": list(found), **(groups if len(groups) > 1 else {})} if found else {}
    return [one for name, own in shown.items() for one in summaries(name, own, schemes)]


def by_axis(found: Sequence[Network], schemes: Sequence[Scheme]) -> list[Summary]:
    """Each range of each axis; nothing if a network is no dumbbell, or all are the same."""
    if any(own.bottleneck is None for own in found) or len({own.bottleneck for own in found}) < 2:
        return []
    gathered = []
    for axis in AXES:
        by_bin: list[list[Network]] = [[] for _ in axis.names]
        for own in found:
            by_bin[axis.bin(own)].append(own)
        for name, members in zip(axis.names, by_bin, strict=True):
            gathered += summaries(name, members, schemes, axis.label) if members else []
    return gathered


def verdicts(found: Sequence[Network], schemes: Sequence[Scheme]) -> list[Verdict]:
    """Of every scheme, the evaluated one first; the second is the reference."""
    return [_verdict(own.label, schemes[1].label, found) for own in schemes]


def dominance(found: Sequence[Network], schemes: Sequence[Scheme]) -> dict[str, dict[str, float]]:
    """Part of the networks on which a scheme dominates another, by both names."""
    names = [own.label for own in schemes]
    return {
        ours: {
            other: float(np.mean([_dominates(own, ours, other) for own in found]))
            for other in names
            if other != ours
        }
        for ours in names
    }


def worst(found: Sequence[Network], schemes: Sequence[Scheme], folder: Path) -> list[Worst]:
    """The networks on which the evaluated scheme fails most, by each kind of failure.

    A network may fail in several ways; it is then listed in each. Each is written to `folder`.

    Raises:
        AckademyError: if a scenario cannot be written.
    """
    name, others = schemes[0].label, [own.label for own in schemes[1:]]

    def value(metric: str, sign: float = 1.0) -> Callable[[Network], float]:
        return lambda own: _finite(sign * own.values[name][metric])

    def behind(own: Network) -> float:
        return own.utility(name) - max(own.utility(other) for other in others)

    kinds: Mapping[str, Callable[[Network], float]] = {
        **({"largest gap to the best other": behind} if others else {}),
        "smallest share of the link": value("link_share"),
        "longest queue for its path": value("rtt_ratio", -1.0),
        "most loss in queues": value("queue_loss", -1.0),
    }
    listed = []
    for kind, how_well in kinds.items():
        for own in sorted(found, key=how_well)[:WORST]:
            file = folder / Path(own.case.origin).name
            command = f"ackademy run {shlex.quote(str(file))} {schemes[0].words} --seed {own.seed}"
            listed.append(Worst(kind, own, file, command))
    for one in {own.file: own for own in listed}.values():
        failures = ", ".join(other.kind for other in listed if other.file == one.file)
        what = one.network.bottleneck.words if one.network.bottleneck else one.network.case.name
        about = f"{name} on {what}: {failures}.\nSame numbers: {one.command}"
        distributions.save(one.network.case.scenario, one.file, about)
    return listed


def tables(found: Sequence[Measured], summed: Sequence[Summary]) -> Results:
    """The two tables: a scenario per network, a group of estimates per group of networks."""
    kept = [
        replace(row, values={key: row.values[key] for key in SCORED if key in row.values})
        for row in found
    ]
    whole = measured_tables(STUDY, kept)
    return Results(whole.values, results(STUDY, (), _estimates(summed)).estimates)


def csv(own: Results, found: Sequence[Network]) -> str:
    """One row per network and scheme: what the network is, its scores and its point."""
    rows = [
        {
            "scenario": one.case.name,
            "seed": one.seed,
            "scheme": scheme,
            "fair_share": point.share,
            "wait_p95_ratio": point.wait_ratio,
            "queue_loss": point.loss,
            "base_rtt_ms": one.rtt_ms,
            **(
                {f"link_{key}": value for key, value in asdict(one.bottleneck).items()}
                if one.bottleneck
                else {}
            ),
        }
        for one in found
        for scheme, point in one.points.items()
    ]
    wide = own.wide()
    if not rows or wide.is_empty():
        return wide.write_csv(float_precision=6)
    keys = ["scenario", "seed", "scheme"]
    joined = wide.join(pl.DataFrame(rows), on=keys, how="left", maintain_order="left")
    return joined.write_csv(float_precision=6)


def worst_in_json(listed: Sequence[Worst]) -> list[dict[str, object]]:
    """The worst networks, for programs."""
    return [
        {
            "kind": own.kind,
            "file": str(own.file),
            "command": own.command,
            **(asdict(own.network.bottleneck) if own.network.bottleneck else {}),
        }
        for own in listed
    ]


def _estimates(summed: Sequence[Summary]) -> Iterator[Estimate]:
    for own in summed:
        for metric, interval in own.estimates.items():
            statistic = metric_of(metric).statistic_name
            name = Name("", own.scheme, own.full_group)
            yield Estimate(name, metric, statistic, interval, own.n(metric))


def _verdict(name: str, reference: str, found: Sequence[Network]) -> Verdict:
    def part(holds: Callable[[Network], bool]) -> Interval:
        return network_interval(np.array([float(holds(own)) for own in found])).interval

    def values(of: Callable[[Network], float]) -> FloatArray:
        return np.array([of(own) for own in found], np.float64)

    def share(own: Network, scheme: str) -> float:
        return min(own.points[scheme].share, 1.0)

    def others(own: Network) -> list[str]:
        return [other for other in own.points if other != name]

    def to_best(own: Network) -> float:
        best = max(share(own, other) for other in others(own))
        return share(own, name) / best if best > 0.0 else math.nan

    def beyond(own: Network) -> float:
        using = [own.points[key].wait_ratio for key in others(own) if share(own, key) >= USED]
        known = [wait for wait in using if not math.isnan(wait)]
        return own.points[name].wait_ratio - min(known) if known else math.nan

    return Verdict(
        scheme=name,
        networks=len(found),
        dominates_reference=part(lambda own: _dominates(own, name, reference)),
        dominated_by_reference=part(lambda own: _dominates(own, reference, name)),
        dominated=part(lambda own: any(_dominates(own, other, name) for other in own.points)),
        share=median_interval(values(lambda own: share(own, name))),
        share_to_best=median_interval(values(to_best)),
        wait=median_interval(values(lambda own: own.points[name].wait_ratio)),
        wait_beyond=median_interval(values(beyond)),
        loss=network_interval(values(lambda own: own.points[name].loss)).interval,
    )


def _dominates(own: Network, ours: str, other: str) -> bool:
    return ours != other and dominates(own.points[ours], own.points[other], own.rtt_ms)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else -math.inf
