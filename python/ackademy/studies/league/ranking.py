"""Who wins where in a league, by how much, and where each scheme breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.studies.league.grid import JAIN, MERIT, SHARE
from ackademy.studies.league.suite import LeagueScheme, Result

BREAKS = ("starves", "fills the buffer", "unfair", "loses")
NETWORKS_MAX = 40
"""networks that reports show one by one; of more, those that the suite lists"""
STARVED = 0.5
"""starves: less than this part of the best throughput in that network, or of its fair share"""
BUFFER_FULL = 0.75
"""fills the buffer: median delay above this part of the delay of a full one"""
UNFAIR = 0.9
"""unfair: Jain's index below this"""
LOSSY = 0.02
"""loses: this much more of what it sends than the link loses at random"""


@dataclass(frozen=True, slots=True)
class Breakage:
    """A network in which a scheme fails at something, and by how much."""

    network: str
    kind: str
    """one of `BREAKS`"""
    detail: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """How a scheme did over all networks that it was run on."""

    scheme: LeagueScheme
    papers: Mapping[str, str]
    """by network: whose it is"""
    ranks: Mapping[str, int]
    """by network, 1 for the largest figure of merit; equal ones share a rank"""
    wins: tuple[str, ...]
    """networks in which nobody is better beyond doubt"""
    gaps: Mapping[str, float]
    """by network: the best figure of merit minus its own"""
    breakages: tuple[Breakage, ...]

    @property
    def mean_rank(self) -> float:
        """Over the networks of each paper, then over the papers, which count alike."""
        by_paper: dict[str, list[int]] = {}
        for network, rank in self.ranks.items():
            by_paper.setdefault(self.papers[network], []).append(rank)
        means = [float(np.mean(ranks)) for ranks in by_paper.values()]
        return float(np.mean(means)) if means else math.nan

    @property
    def median_gap(self) -> float:
        """The middle one, the upper of two."""
        gaps = sorted(self.gaps.values())
        return gaps[len(gaps) // 2] if gaps else math.nan

    @property
    def worst(self) -> tuple[str, float]:
        """The network with the largest gap, and the gap."""
        return max(self.gaps.items(), key=lambda item: item[1], default=("", math.nan))


def rankings(found: Sequence[Result]) -> list[Ranking]:
    """Every scheme's ranks, wins, gaps and breakages, the best mean rank first."""
    by_network = ranked(found)
    schemes = {result.scheme: result.scheme_case.scheme for result in found}
    table = [_ranking(scheme, by_network) for scheme in schemes.values()]
    return sorted(table, key=lambda ranking: (math.isnan(ranking.mean_rank), ranking.mean_rank))


def ranked(found: Sequence[Result]) -> dict[str, list[Result]]:
    """Results with runs by network, in the suite's order; the best figure of merit first."""
    by_network: dict[str, list[Result]] = {}
    for result in found:
        if result.n_runs:
            by_network.setdefault(result.network, []).append(result)
    for rows in by_network.values():
        rows.sort(key=lambda result: -result.merit)
    return by_network


def listed(networks: Mapping[str, list[Result]]) -> dict[str, list[Result]]:
    """The networks whose tables are shown: all, or without the drawn ones if they are many."""
    if len(networks) <= NETWORKS_MAX:
        return dict(networks)
    return {name: rows for name, rows in networks.items() if not rows[0].scheme_case.network.role}


def leaders(rows: Sequence[Result]) -> list[Result]:
    """Those of one network that nobody beats beyond doubt: their interval reaches the best's.

    Nobody leads where nobody delivers anything.
    """
    best = max(rows, key=lambda result: result.merit)
    if best.merit == -math.inf:
        return []
    floor = best.interval(MERIT).low
    return [result for result in rows if result is best or result.interval(MERIT).high >= floor]


def _ranking(scheme: LeagueScheme, by_network: Mapping[str, Sequence[Result]]) -> Ranking:
    papers, ranks, gaps, wins, breakages = {}, {}, {}, [], []
    for network, rows in by_network.items():
        for result in rows:
            if result.scheme != scheme.label:
                continue
            papers[network] = result.scheme_case.network.source
            ranks[network] = 1 + sum(other.merit > result.merit for other in rows)
            gaps[network] = 0.0 if ranks[network] == 1 else rows[0].merit - result.merit
            breakages += _breakages(result, rows)
            if result in leaders(rows):
                wins.append(network)
    return Ranking(scheme, papers, ranks, tuple(wins), gaps, tuple(breakages))


def _breakages(result: Result, rows: Sequence[Result]) -> list[Breakage]:
    network = result.scheme_case.network
    found = []
    rate = result.value("throughput_mean_mbps")
    if result.merit == -math.inf:
        found.append(
            ("starves", "delivers nothing" if not rate > 0.0 else "a run delivers nothing")
        )
    else:
        best = max(row.value("throughput_mean_mbps") for row in rows if row.merit > -math.inf)
        target = rate / result.value(SHARE) if network.is_mixed else best
        if rate < STARVED * target:
            found.append(("starves", f"{rate:.3g} of {target:.3g} Mb/s"))
    delay = result.value("delay_p50_ms")
    if network.full_delay_ms and delay > BUFFER_FULL * network.full_delay_ms:
        found.append(("fills the buffer", f"{delay:.3g} of {network.full_delay_ms:.3g} ms"))
    jain = result.value(JAIN)
    if jain < UNFAIR:
        found.append(("unfair", f"Jain {jain:.2f}"))
    excess = result.value("loss") - network.random_loss
    if excess > LOSSY:
        found.append(("loses", f"{100 * result.value('loss'):.2g} %"))
    return [Breakage(network.name, kind, detail) for kind, detail in found]
