"""Harm pair by pair: every scheme beside every other and beside its own kind, on a few networks.

The harm of A to B on a network compares a flow of B alone with a flow of B beside one flow of A
(`ackademy.stats.harm`). Both flows of a pair start within the same second.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ackademy.backends import controllers
from ackademy.lazy import pl
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.harm import excess_harm, harm, is_starved
from ackademy.studies.league.grid import Network
from ackademy.studies.league.suite import LeagueScheme, Suite

FIRST, SECOND, ALONE = "first", "second", "flow"
ALONE_FILE = "link.toml"
"""the scenario of one flow, beside that of two"""
EXCESS_P95_MAX = 0.1
"""a scheme passes with a median excess harm of at most 0, and this at most at p95"""
WARM_UP_S = 10.0
"""from when on a flow may be starved"""
SAMPLE_MS = 1000.0
HARMED: Mapping[str, tuple[str, bool]] = {
    "throughput": ("throughput_mbps", True),
    "delay": ("rtt_p95_ms", False),
    "loss": ("loss_ratio", False),
}
"""by what is harmed: the column of a run, and whether more is better"""
COMPLETION = "completion"
"""what else is harmed, where a suite has transfers: the median completion time, less is better"""
OF_BULK, OF_TRANSFERS = "transfers.toml", "transfers_alone.toml"
"""the scenarios of transfers beside a bulk flow and alone"""
TRANSFER_BYTES, LOAD = 1e5, 0.1
"""mean size of a transfer, and the part of the link that all of them offer"""
EDGE_S = 10.0
"""at both ends of a run: transfers that start there do not count"""


Means: TypeAlias = Mapping[str, float]
"""by column of a run"""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two flows on a network, of two schemes or of one; or one flow alone."""

    network: Network
    first: LeagueScheme
    second: LeagueScheme | None
    """none for `first` alone"""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Transfers:
    """Short transfers of a scheme on a network, beside a bulk flow of another, or of its own."""

    network: Network
    by: LeagueScheme | None
    """of the bulk flow; none for the transfers alone"""
    to: LeagueScheme
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Harm:
    """What A does to B on one network, averaged over seeds."""

    network: str
    by: str
    """A"""
    to: str
    """B"""
    harm: Mapping[str, float]
    """by what is harmed, in [0, 1]"""
    excess: Mapping[str, float]
    """beyond the harm of B to B, in [-1, 1]"""
    share: float
    """of B, over half of what the two flows could carry"""
    starved: bool
    """whether B got less than a tenth of its half in any 10 s, in some run"""


def pairings(suite: Suite) -> list[Pairing]:
    """Every pair of the suite's schemes on every network for pairs, and each scheme alone.

    Kernel controllers, and schemes that a pattern keeps to some networks, are left out.
    """
    if suite.pairs is None:
        return []
    schemes = _schemes(suite)
    found = []
    for network in suite.pairs.networks:
        for first, second in itertools.combinations_with_replacement(schemes, 2):
            cells = _cells(network, (first, second), suite.pairs.runs)
            found.append(Pairing(network, first, second, cells))
        for own in schemes:
            found.append(Pairing(network, own, None, _cells(network, (own,), suite.pairs.runs)))
    return found


def transfers(suite: Suite) -> list[Transfers]:
    """Transfers of every scheme alone and beside every scheme, where the suite asks for them."""
    if suite.pairs is None or not suite.pairs.transfers:
        return []
    schemes = _schemes(suite)
    return [
        Transfers(network, by, to, _transfer_cells(network, by, to, suite.pairs.runs))
        for network in suite.pairs.networks
        for to in schemes
        for by in (None, *schemes)
    ]


def completion_ms(summary: pl.DataFrame, duration_s: float) -> float:
    """Median completion time of the transfers of a run.

    Args:
        summary: of the run's flows: `flow`, `start_s`, `transfers`, `fct_mean_ms`.
        duration_s: of the run.

    Returns:
        ms, > 0. A transfer that does not finish counts as infinite, so the median is infinite where
        half of them do not. `nan` if none starts between `EDGE_S` and `EDGE_S` before the end.
    """
    inside = pl.col("start_s").is_between(EDGE_S, duration_s - EDGE_S)
    own = summary.filter(pl.col("flow").str.starts_with(SECOND) & inside)
    done = own["transfers"].to_numpy() > 0
    times = np.where(done, own["fct_mean_ms"].cast(pl.Float64).to_numpy(), math.inf)
    return float(np.quantile(times, 0.5, method="lower")) if times.size else math.nan


def measure(met: Sequence[Pairing], folder: Path, short: Sequence[Transfers] = ()) -> list[Harm]:
    """What every scheme does to every other, from the cells on disk; missing ones are left out.

    Args:
        met: pairs of flows, and flows alone.
        folder: of the cells.
        short: transfers, of which the completion time is harmed; without them it is unknown.
    """
    completion = _completions(short, folder)
    alone: dict[tuple[str, str], Means] = {}
    beside: dict[tuple[str, str, str], tuple[Means, bool]] = {}
    rate: dict[str, float] = {}
    for own in met:
        finished, _ = experiments.countable(folder, own.cells)
        if not finished:
            continue
        rate[own.network.name] = own.network.rates_mbps[0][1]
        summary = pl.concat([experiments.read(folder, cell, "summary") for cell in finished])
        if own.second is None:
            alone[own.network.name, own.first.label] = _means(summary)
            continue
        fair = rate[own.network.name] / 2.0
        starved = {
            flow: any(_starved(folder, cell, flow, fair) for cell in finished)
            for flow in (FIRST, SECOND)
        }
        sides = ((own.first, own.second, SECOND), (own.second, own.first, FIRST))
        for by, to, flow in sides if own.first != own.second else sides[:1]:
            flows = summary if by == to else summary.filter(pl.col("flow") == flow)
            suffers = any(starved.values()) if by == to else starved[flow]
            beside[own.network.name, by.label, to.label] = (_means(flows), suffers)
    found = _harms(alone, beside, rate)
    return [_with_completion(own, completion) for own in found] if short else found


def _completions(short: Sequence[Transfers], folder: Path) -> dict[tuple[str, str, str], float]:
    """By network, scheme of the bulk flow (empty without one) and of the transfers, in ms."""
    found = {}
    for own in short:
        finished, _ = experiments.countable(folder, own.cells)
        times = [
            completion_ms(experiments.read(folder, cell, "summary"), cell.scenario().duration_s)
            for cell in finished
        ]
        known = [time for time in times if not math.isnan(time)]
        if known:
            by = own.by.label if own.by else ""
            found[own.network.name, by, own.to.label] = float(np.mean(known))
    return found


def _with_completion(own: Harm, found: Mapping[tuple[str, str, str], float]) -> Harm:
    """The same, and what A does to the completion times of B, and beyond what B itself does."""
    before, beside, kind = (
        found.get((own.network, by, own.to), math.nan) for by in ("", own.by, own.to)
    )
    done, usual = (harm(before, time, more_is_better=False) for time in (beside, kind))
    return replace(
        own,
        harm={**own.harm, COMPLETION: done},
        excess={**own.excess, COMPLETION: excess_harm(done, usual)},
    )


def _harms(
    alone: Mapping[tuple[str, str], Means],
    beside: Mapping[tuple[str, str, str], tuple[Means, bool]],
    rate: Mapping[str, float],
) -> list[Harm]:
    found = []
    for (network, by, to), (flows, suffers) in beside.items():
        own_kind = beside.get((network, to, to))
        if (network, to) not in alone or own_kind is None:
            continue
        before = alone[network, to]
        done = {what: _harm(what, before, flows) for what in HARMED}
        usual = {what: _harm(what, before, own_kind[0]) for what in HARMED}
        excess = {what: excess_harm(done[what], usual[what]) for what in HARMED}
        share = flows["throughput_mbps"] / (rate[network] / 2.0)
        found.append(Harm(network, by, to, done, excess, share, suffers))
    return found


def _harm(what: str, alone: Means, beside: Means) -> float:
    column, more_is_better = HARMED[what]
    x, y = alone[column], beside[column]
    if math.isnan(y) and not math.isnan(x):
        return 1.0  # nothing arrived beside the other, so there is no delay to compare
    return harm(x, y, more_is_better)


def _means(flows: pl.DataFrame) -> Means:
    """Means over flows and runs of the columns in `HARMED`; `nan` where none has a number."""
    columns = [column for column, _ in HARMED.values()]
    arrays = (flows[column].cast(pl.Float64).drop_nans().to_numpy() for column in columns)
    means = (float(known.mean()) if known.size else math.nan for known in arrays)
    return dict(zip(columns, means, strict=True))


def _starved(folder: Path, cell: Cell, flow: str, fair_mbps: float) -> bool:
    table = experiments.read(folder, cell, "flow_series").filter(pl.col("flow") == flow)
    later = table.filter(pl.col("time_s") >= WARM_UP_S)
    rates: FloatArray = np.diff(later["delivered_bytes"].cast(pl.Float64).to_numpy()) * 8e-6
    return is_starved(rates / (SAMPLE_MS / 1e3), fair_mbps, SAMPLE_MS / 1e3)


def _cells(network: Network, schemes: Sequence[LeagueScheme], runs: int) -> tuple[Cell, ...]:
    flows = (FIRST, SECOND) if len(schemes) == 2 else (ALONE,)
    scenario = network.scenario if len(schemes) == 2 else network.scenario.with_name(ALONE_FILE)
    overrides = network.overrides if len(schemes) == 2 else _to_itself(network)
    assignments = tuple(
        Assignment(flow, scheme.controller, tuple(_params(network, scheme, len(schemes)).items()))
        for flow, scheme in zip(flows, schemes, strict=True)
    )
    own = replace(
        experiments.of_file(scenario),
        overrides=tuple(overrides.items()),
        assignments=assignments,
        sample_interval_ms=SAMPLE_MS,
    )
    return experiments.seeded(own, runs)


def _transfer_cells(
    network: Network, by: LeagueScheme | None, to: LeagueScheme, runs: int
) -> tuple[Cell, ...]:
    scenario = network.scenario.with_name(OF_BULK if by else OF_TRANSFERS)
    per_s = LOAD * network.rates_mbps[0][1] * 1e6 / (8.0 * TRANSFER_BYTES)
    governed = ((SECOND, to), *(((FIRST, by),) if by else ()))
    own = replace(
        experiments.of_file(scenario),
        overrides=(*network.overrides.items(), ("flow.0.traffic.per_s", repr(per_s))),
        assignments=tuple(
            Assignment(flow, scheme.controller, tuple(_params(network, scheme, 2).items()))
            for flow, scheme in governed
        ),
    )
    return experiments.seeded(own, runs)


def _schemes(suite: Suite) -> list[LeagueScheme]:
    return [
        own
        for own in suite.schemes
        if own.networks == "*" and not controllers.own_of(own.controller)
    ]


def _to_itself(network: Network) -> dict[str, str]:
    """The settings of the same link in the scenario of one flow, which has schedules."""
    own = dict(network.overrides)
    rate, delay = own.pop("link.0.rate_mbps"), own.pop("link.0.delay_ms")
    return {
        **own,
        "link.0.rate_schedule": f"[[0, {rate}]]",
        "link.0.delay_schedule": f"[[0, {delay}]]",
    }


def _params(network: Network, scheme: LeagueScheme, flows: int) -> dict[str, float | str]:
    own = {**(network.learner_params if scheme.learns else {}), **dict(scheme.params)}
    return {key: flows if key == "flows" else value for key, value in own.items()}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What a scheme does to all others, and what is done to it, over networks and schemes."""

    scheme: str
    done: Mapping[str, float]
    """median harm to others, by what is harmed"""
    excess_median: float
    """of the harm in throughput to others beyond that of their own kind"""
    excess_p95: float
    suffered: Mapping[str, float]
    """median harm by others"""
    starves: Mapping[str, int]
    """by scheme: networks on which it does"""
    starved_by: Mapping[str, int]

    @property
    def passes(self) -> bool:
        """Whether others lose no more beside it than beside their own kind."""
        return self.excess_median <= 0.0 and self.excess_p95 <= EXCESS_P95_MAX


def neighbours(found: Sequence[Harm]) -> list[Neighbour]:
    """Every scheme, the one with the smallest median excess harm first."""
    table = [_neighbour(name, found) for name in dict.fromkeys(own.by for own in found)]
    return sorted(table, key=lambda own: (math.isnan(own.excess_p95), own.excess_p95))


def _neighbour(name: str, found: Sequence[Harm]) -> Neighbour:
    does = [own for own in found if own.by == name != own.to]
    has = [own for own in found if own.to == name != own.by]
    excess = np.array([own.excess["throughput"] for own in does])
    return Neighbour(
        scheme=name,
        done=_medians(does),
        excess_median=_quantile(excess, 0.5),
        excess_p95=_quantile(excess, 0.95),
        suffered=_medians(has),
        starves=_counted(own.to for own in does if own.starved),
        starved_by=_counted(own.by for own in has if own.starved),
    )


def _medians(found: Sequence[Harm]) -> dict[str, float]:
    return {
        what: _quantile([own.harm.get(what, math.nan) for own in found], 0.5)
        for what in (*HARMED, COMPLETION)
    }


def _quantile(values: Sequence[float] | FloatArray, level: float) -> float:
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    return float(np.quantile(known, level)) if known.size else math.nan


def _counted(names: Iterable[str]) -> dict[str, int]:
    """How often each occurs, the most frequent first, then by name."""
    counts = Counter(names)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
