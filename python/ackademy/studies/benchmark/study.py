"""The numbers of a benchmark: of every run, of every scheme over the networks, and in pairs.

A network is one observation. A number of a scheme is a mean or a median over networks; two schemes
differ by the mean of their differences network by network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ackademy.runner import experiments, measured
from ackademy.runner.cases import Case, Plan
from ackademy.runner.cells import Cell
from ackademy.runner.measured import Measured, Row
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, median_interval, network_interval
from ackademy.stats.league_metrics import ParetoPoint, dominates, power_score, power_winners
from ackademy.stats.network_metrics import MEASURES
from ackademy.stats.network_runs import Ran, RunData
from ackademy.studies.benchmark.entries import Entry, classes
from ackademy.studies.evaluate.study import points

METRICS = (
    "throughput_total_mbps",
    "fair_total_mbps",
    "link_share",
    "owd_mean_ms",
    "wait_p95_ratio",
    "queue_loss",
    "rtt_base_ms",
    "timeouts",
)
"""of every run"""
SAMPLE_MS = 250.0
"""between rows of the series of the panels that need them"""
SAMPLED = ("own kind", "beside", "cross traffic", "l4s")
JOINED_S = 20.0
"""when the late comer starts, as the distribution has it"""
POWER_MARGIN = 0.1
"""a score of at least 90 % of the best one wins (proposed, as in Sage's league)"""
Values = Mapping[str, float]
Statistic = Literal["mean", "median"]


@dataclass(frozen=True, slots=True)
class Network:
    """A network with what every scheme made of it."""

    name: str
    kind: str
    panel: str
    values: Mapping[str, Values]
    """by scheme and number"""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a scheme over networks."""

    key: str
    label: str
    about: str
    where: str
    """a panel or a kind of networks"""
    of: str
    """the value of a run that it is taken over"""
    statistic: Statistic = "mean"
    lower_is_better: bool = False
    unit: str = ""
    factor: float = 1.0
    """of the unit"""

    def takes(self, own: Network) -> bool:
        """Whether a network counts."""
        return self.where in (own.panel, own.kind)


def _number(key: str, label: str, about: str, where: str, of: str, how: str = "") -> Number:
    words = how.split()
    return Number(
        key=key,
        label=label,
        about=about,
        where=where,
        of=of,
        statistic="median" if "median" in words else "mean",
        lower_is_better="low" in words,
        unit="%" if "percent" in words else "s" if "seconds" in words else "",
        factor=100.0 if "percent" in words else 1.0,
    )


BESIDE = ("cubic", "bbr1", "bbr3", "copa")
NUMBERS = (
    _number(
        "wins",
        "power wins",
        "alone: networks on which its throughput² over one-way delay is within 10 % of the best",
        "alone",
        "wins",
        "percent",
    ),
    _number("use", "use", "alone: part of the link that it used", "alone", "use", "median percent"),
    _number(
        "wait",
        "p95 wait",
        "alone: 95th percentile of the RTT over that of the empty path, minus 1",
        "alone",
        "wait",
        "median low",
    ),
    _number(
        "loss",
        "loss",
        "alone: packets that queues dropped over packets sent",
        "alone",
        "loss",
        "percent low",
    ),
    _number(
        "dominated",
        "dominated",
        "alone: networks on which one of the others is better in something and worse in nothing",
        "alone",
        "dominated",
        "percent low",
    ),
    _number(
        "jain",
        "Jain, equals",
        "own kind: Jain's index of 2 to 64 flows, mean over seconds",
        "equals",
        "jain",
    ),
    _number(
        "jain_paths",
        "Jain, unequal RTTs",
        "own kind: Jain's index over paths whose round trips differ up to tenfold",
        "unequal_paths",
        "jain",
    ),
    _number(
        "late_s",
        "late comer",
        "own kind: time until all are within 20 % of the fair share after one more has come",
        "late_comer",
        "late_s",
        "median low seconds",
    ),
    *(
        _number(
            f"share_{other}",
            f"share beside {other}",
            f"part of what both flows get, beside one of {other}; 50 % is fair",
            f"beside_{other}",
            "share",
            "median percent",
        )
        for other in BESIDE
    ),
    _number(
        "beside_wait",
        "p95 wait beside",
        "beside others: its p95 wait, as alone",
        "beside",
        "wait",
        "median low",
    ),
    _number(
        "harm",
        "harm",
        "beside others: what the other flow loses of its throughput beyond what a CUBIC flow in "
        "this one's place takes from it",
        "beside",
        "harm",
        "percent low",
    ),
    _number(
        "short",
        "short transfers",
        "99th percentile of the completion times of short transfers beside it, over that beside "
        "CUBIC; 1 is as beside CUBIC",
        "short_transfers",
        "short_ratio",
        "median low",
    ),
    _number(
        "l4s_share",
        "share, dual queue",
        "in a dual queue: part of what it and one CUBIC flow get",
        "l4s",
        "share",
        "median percent",
    ),
    _number(
        "l4s_wait", "p95 wait, dual queue", "in a dual queue: p95 wait", "l4s", "wait", "median low"
    ),
)
"""the headline, in the order of the tables"""


@dataclass(frozen=True, slots=True)
class Result:
    """An entry with what it and the others made of its networks."""

    name: str
    digest: str
    """of the entry"""
    marks: tuple[str, ...]
    """`quick`, `development`"""
    networks: tuple[Network, ...]
    core: str
    """hash of the code that ran it"""
    signer: str = ""
    """fingerprint of the key; empty without a signature"""
    _known: dict[tuple[str, ...], Interval] = field(default_factory=dict, compare=False)

    @property
    def schemes(self) -> list[str]:
        """The entry first."""
        return list(self.networks[0].values)

    @property
    def title(self) -> str:
        """Its name and its marks."""
        return f"{self.name} ({', '.join(self.marks)})" if self.marks else self.name

    def estimate(self, number: Number, scheme: str = "") -> Interval:
        """A number of the entry, or of another scheme, with its 95 % interval over networks."""
        key = (number.key, scheme or self.name)
        if key not in self._known:
            values = _values(number, key[1], self.networks)
            is_median = number.statistic == "median"
            self._known[key] = (
                median_interval(values) if is_median else network_interval(values).interval
            )
        return self._known[key]

    def difference(self, number: Number, other: str) -> Interval:
        """Mean over networks of the entry's value minus the other's, with its 95 % interval."""
        key = (number.key, self.name, other)
        if key not in self._known:
            ours, theirs = (_values(number, name, self.networks) for name in key[1:])
            self._known[key] = network_interval(ours - theirs).interval
        return self._known[key]


def rows(own: Entry, found: Sequence[Case]) -> list[Row]:
    """The runs: every scheme on every network, with one seed."""
    panels = classes()
    return [
        replace(row, cells=tuple(_sampled(cell, panels[row.name.group]) for cell in row.cells))
        for row in measured.rows(found, own.schemes, Plan(1), METRICS)
    ]


def networks(own: Entry, found: Sequence[Case], ran: Sequence[Row], folder: Path) -> list[Network]:
    """What is on disk; networks with a run that is missing are left out.

    Args:
        own: the entry.
        found: its networks.
        ran: of `rows` for these, in their order.
        folder: of the cells.
    """
    names = [own.name if scheme == own.scheme else scheme.label for scheme in own.schemes]
    panels, listed = classes(), []
    for index, case in enumerate(found):
        mine = [
            measured.measured(row, folder)
            for row in ran[len(names) * index : len(names) * (index + 1)]
        ]
        if not all(row.n_runs for row in mine):
            continue
        panel = panels[case.group]
        measures = {
            name: {key: float(of[0]) for key, of in row.values.items()}
            for name, row in zip(names, mine, strict=True)
        }
        plain = {name: _of_run(own) for name, own in measures.items()}
        if panel in SAMPLED:
            for name, row in zip(names, mine, strict=True):
                plain[name] |= _of_series(row, case, folder)
        compared = _compared(plain, points(measures))
        listed.append(Network(case.name, case.group, panel, compared))
    return listed


def _values(number: Number, scheme: str, found: Sequence[Network]) -> FloatArray:
    own = [one.values[scheme].get(number.of, math.nan) for one in found if number.takes(one)]
    return np.array(own, np.float64)


def _sampled(cell: Cell, panel: str) -> Cell:
    return replace(cell, sample_interval_ms=SAMPLE_MS if panel in SAMPLED else 0.0)


def _of_run(own: Values) -> dict[str, float]:
    """The values of one run that its metrics give."""
    return {
        "throughput_mbps": own["throughput_total_mbps"],
        "fair_mbps": own["fair_total_mbps"],
        "rtt_ms": own["rtt_base_ms"],
        "use": own["link_share"],
        "wait": own["wait_p95_ratio"],
        "loss": own["queue_loss"],
        "timeouts": own["timeouts"],
        "power": power_score(own["throughput_total_mbps"], own["owd_mean_ms"]),
    }


def _of_series(row: Measured, case: Case, folder: Path) -> dict[str, float]:
    """The values that need the time series or flows of others."""
    cell = row.row.cells[0]
    tables = measured.run_tables(folder, cell, cell.scenario(), row.row)
    series = experiments.read_several(folder, cell, ("flow_series", "link_series"))
    data = RunData(tables, *series)
    values = {"joined_s": JOINED_S} if case.group == "late_comer" else {"settle_s": 5.0}
    ran = Ran(values, {"run": data})
    if case.group == "late_comer":
        return {"late_s": MEASURES["convergence_s"].of(ran)}
    if case.group in ("equals", "unequal_paths"):
        return {"jain": MEASURES["steady_jain"].of(ran)}
    if case.group == "short_transfers":
        return {"short_p99_ms": MEASURES["completion_p99_ms"].of(ran)}
    edges = np.array([data.warm_s, data.duration_s])
    ours, other = (
        float(data.rates(flows["flow"], edges).sum()) for flows in (data.own, data.flows("other*"))
    )
    both = ours + other
    return {"share": ours / both if both > 0.0 else math.nan, "other_mbps": other}


def _compared(
    plain: Mapping[str, dict[str, float]], at: Mapping[str, ParetoPoint]
) -> dict[str, Values]:
    """The values of every scheme, and those that depend on the others'."""
    winners = power_winners({name: own["power"] for name, own in plain.items()}, POWER_MARGIN)
    cubic = plain["cubic"]
    found: dict[str, Values] = {}
    for name, own in plain.items():
        others = [point for other, point in at.items() if other != name]
        is_dominated = any(dominates(other, at[name], own["rtt_ms"]) for other in others)
        more = {"wins": float(name in winners), "dominated": float(is_dominated)}
        if "other_mbps" in own and cubic["other_mbps"] > 0.0:
            more["harm"] = max(0.0, 1.0 - own["other_mbps"] / cubic["other_mbps"])
        if "short_p99_ms" in own:
            more["short_ratio"] = own["short_p99_ms"] / cubic["short_p99_ms"]
        found[name] = {**own, **more}
    return found
