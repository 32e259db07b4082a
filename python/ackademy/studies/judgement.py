"""Controllers and policies on a fixed list of networks: who dominates whom, and by how much (M5).

Every scheme takes the place of the learners on every network of the list. Its point on
a network is its share of what is fair, its queueing delay and the losses that it causes;
docs/reference/evaluation.md defines them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ackademy.backends import entries, link_lists
from ackademy.backends.link_lists import Link, LinkList
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.errors import ExperimentError
from ackademy.runner import cases, experiments
from ackademy.runner.cases import Case
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, median_interval, network_interval
from ackademy.stats.league_metrics import ParetoPoint, dominates

USED = 0.95
"""share of what is fair from which on a scheme's delay counts as that of one that uses the link"""


@dataclass(frozen=True, slots=True)
class Study:
    """What is run."""

    schemes: tuple[EvaluatedScheme, ...]
    """the judged one first"""
    reference: str
    """name of the scheme that dominance is counted over"""
    origin: str
    about: str
    digest: str
    """of the whole list"""
    cases: tuple[Case, ...]
    kinds: tuple[str, ...]
    """class of each network"""

    def cells(self, folder: Path) -> list[Cell]:
        """Every run."""
        return [cases.cell(case, own, folder) for case in self.cases for own in self.schemes]


@dataclass(frozen=True, slots=True)
class Network:
    """A network on which every scheme has run."""

    name: str
    kind: str
    rtt_ms: float
    """of the empty path, mean over the judged flows"""
    points: Mapping[str, ParetoPoint]
    """by scheme"""


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
    """How often guards decided in place of the judged policy, over all networks."""

    decisions: int
    outside: int
    """of these, those that the guard of unfamiliar networks left to the law"""
    calm: int
    """of these, those without contention; 0 for a policy that acts at all times"""
    fallbacks: int
    """flows that were handed over to CUBIC"""

    def share(self, left: int) -> float:
        """Which part of the decisions so many are."""
        return left / self.decisions if self.decisions else 0.0


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run delivered to the judged flows, and what would have been fair."""

    delivered: float
    fair: float
    wait: float
    loss: float
    rtt_ms: float


def study(
    file: Path, schemes: Sequence[EvaluatedScheme], flows: str = "", count: int | None = None
) -> Study:
    """Of a list of networks, or of `count` of them, those whose names have the smallest hashes.

    Args:
        file: of the list.
        schemes: the judged one first; the second is the reference.
        flows: pattern of the entries that a scheme governs, all where none is called so; by default
            those that the list names.
        count: of networks, >= 1; all by default.

    Raises:
        ExperimentError: if there is one scheme only, or the list is wrong.
    """
    if len(schemes) < 2:
        raise ExperimentError("--against '': allowed: one controller or more")
    found: LinkList = link_lists.read(file)
    kept = sorted(found.links, key=lambda own: hashlib.sha256(own.name.encode()).hexdigest())[
        :count
    ]
    names = {own.name for own in kept}
    links = [own for own in found.links if own.name in names]
    chosen = tuple(Case(own.scenario, 1, _judged(own, flows)) for own in links)
    return Study(
        schemes=tuple(schemes),
        reference=schemes[1].name,
        origin=str(file),
        about=found.about,
        digest=found.digest,
        cases=chosen,
        kinds=tuple(own.kind for own in links),
    )


def networks(study: Study, folder: Path) -> list[Network]:
    """The networks on which every scheme has run.

    What is fair on a network must not depend on who is judged, but when flows are active does:
    it is the mean over the schemes.
    """
    found = []
    for case, kind in zip(study.cases, study.kinds, strict=True):
        own = {scheme.name: cases.cell(case, scheme, folder) for scheme in study.schemes}
        if not all(experiments.is_finished(folder, cell) for cell in own.values()):
            continue
        runs = {name: _run(case, cell, folder) for name, cell in own.items()}
        fair = float(np.mean([run.fair for run in runs.values()]))
        points = {
            name: ParetoPoint(run.delivered / fair if fair else math.nan, run.wait, run.loss)
            for name, run in runs.items()
        }
        rtt_ms = float(np.mean([run.rtt_ms for run in runs.values()]))
        found.append(Network(case.name, kind, rtt_ms, points))
    return found


def guarded(study: Study, folder: Path) -> Guarded:
    """Of the judged policy, on the networks on which it has run."""
    counts = dict.fromkeys(("decisions", "decisions_outside", "decisions_calm", "fallbacks"), 0)
    for case in study.cases:
        own = cases.cell(case, study.schemes[0], folder)
        if not experiments.is_finished(folder, own):
            continue
        flows = experiments.read(folder, own, "summary")["flow"].to_list()
        judged = entries.governed(case.scenario, case.learners, flows)
        names = [flow for flow, is_own in zip(flows, judged, strict=True) if is_own]
        counters = experiments.read(folder, own, "counters").filter(pl.col("flow").is_in(names))
        for name in counts:
            counts[name] += int(counters.filter(pl.col("name") == name)["value"].sum())
    return Guarded(*counts.values())


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


def verdicts(study: Study, found: Sequence[Network]) -> list[Verdict]:
    """Of every scheme, the judged one first."""
    return [_verdict(own.name, study.reference, found) for own in study.schemes]


def dominance(study: Study, found: Sequence[Network]) -> dict[str, dict[str, float]]:
    """Part of the networks on which a scheme dominates another, by both names."""
    names = [own.name for own in study.schemes]
    return {
        ours: {
            other: float(np.mean([_dominates(own, ours, other) for own in found]))
            for other in names
            if other != ours
        }
        for ours in names
    }


def by_kind(study: Study, found: Sequence[Network]) -> dict[str, list[Verdict]]:
    """As `verdicts`, of each class of networks."""
    kinds = sorted({own.kind for own in found})
    return {kind: verdicts(study, [own for own in found if own.kind == kind]) for kind in kinds}


def table(study: Study, found: Sequence[Network]) -> pl.DataFrame:
    """A row per network and scheme."""
    rows = [
        {
            "network": own.name,
            "class": own.kind,
            "scheme": scheme.name,
            "share": own.points[scheme.name].share,
            "wait_p95_ratio": own.points[scheme.name].wait_ratio,
            "queue_loss": own.points[scheme.name].loss,
            "base_rtt_ms": own.rtt_ms,
            "dominates_reference": _dominates(own, scheme.name, study.reference),
            "dominated": _is_dominated(own, scheme.name),
        }
        for own in found
        for scheme in study.schemes
    ]
    return pl.DataFrame(rows)


def _judged(link: Link, flows: str) -> tuple[str, ...]:
    """Patterns of the entries that a scheme governs."""
    wanted = (flows,) if flows else link.flows
    return wanted if entries.named(link.scenario, list(wanted)) else ("*",)


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
        dominated=part(lambda own: _is_dominated(own, name)),
        share=median_interval(values(lambda own: share(own, name))),
        share_to_best=median_interval(values(to_best)),
        wait=median_interval(values(lambda own: own.points[name].wait_ratio)),
        wait_beyond=median_interval(values(beyond)),
        loss=network_interval(values(lambda own: own.points[name].loss)).interval,
    )


def _dominates(own: Network, ours: str, other: str) -> bool:
    return ours != other and dominates(own.points[ours], own.points[other], own.rtt_ms)


def _is_dominated(own: Network, name: str) -> bool:
    return any(_dominates(own, other, name) for other in own.points)


def _run(case: Case, cell: Cell, folder: Path) -> _Run:
    summary = experiments.read(folder, cell, "summary")
    links = experiments.read(folder, cell, "links")
    own = entries.governed(case.scenario, case.learners, summary["flow"].to_list())
    judged = summary.filter(pl.Series(own, dtype=pl.Boolean))
    capacity = float(links["capacity_bytes"].cast(pl.Float64).to_numpy().min())
    active = zip(summary["start_s"].to_list(), summary["active_s"].to_list(), strict=True)
    waits = judged.select("rtt_p95_ms", "base_rtt_ms").drop_nans()
    ratios = (waits["rtt_p95_ms"] / waits["base_rtt_ms"]).to_numpy() - 1.0
    sent = float(judged["sent_packets"].sum())
    return _Run(
        delivered=float(judged["delivered_bytes"].cast(pl.Float64).sum()),
        fair=fair_bytes(list(active), own, capacity, case.scenario.duration_s),
        wait=float(ratios.mean()) if ratios.size else math.nan,
        loss=float(judged["queue_drops"].sum()) / sent if sent else 0.0,
        rtt_ms=float(judged["base_rtt_ms"].to_numpy().mean()),
    )
