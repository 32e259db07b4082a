"""Scores of the schemes of a league beside their mean rank: power, friendliness, regret, dominance.

What counts is the network: seeds are averaged within it, and intervals are over networks
(docs/reference/evaluation.md has the definitions, `ackademy.stats.league_metrics` the formulas).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ackademy.backends import entries
from ackademy.runner import experiments
from ackademy.stats import league_metrics, regret
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, holm, network_interval
from ackademy.stats.league_metrics import MARGINS, ParetoPoint
from ackademy.studies.league.grid import (
    BESIDE_S,
    REDRAW_EVERY_S,
    SEGMENTS_S,
    WINDOW_S,
    Network,
    mean_between,
    value_at,
)
from ackademy.studies.league.ranking import ranked
from ackademy.studies.league.suite import Result, SchemeCase

REFERENCE = "CUBIC"
"""the scheme that regret is compared with; the first one where a league lacks it"""
RTT_INTERVAL_S = 1.0
"""over which a round trip of a redrawn link is a mean; its use is one of a draw's whole time"""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a scheme is from a better one, over networks."""

    networks: int
    mean: float
    p90: float
    worst: float
    where: str
    """the network of the worst"""

    @classmethod
    def of(cls, found: Mapping[str, float]) -> Spread:
        """Of regrets by network."""
        values = np.array(list(found.values()))
        where, worst = max(found.items(), key=lambda item: item[1])
        return cls(values.size, float(values.mean()), float(np.quantile(values, 0.9)), worst, where)


@dataclass(frozen=True, slots=True)
class Regret(Spread):
    """How far a scheme is from an omniscient flow, over networks."""

    utility: float
    """mean of the utility form, nats"""
    beyond_reference: Interval
    """mean of its regret minus the reference scheme's, over the networks of both"""
    p_value: float
    """of that difference being 0, adjusted for the number of schemes; `nan` for the reference"""


@dataclass(frozen=True, slots=True)
class Away:
    """A learned scheme on its own paper's networks, and on all others."""

    home: float
    """mean regret where it comes from; `nan` where no network does"""
    away: float
    """mean regret elsewhere"""
    beyond_reference: Interval
    """its regret elsewhere minus the reference scheme's there"""

    @property
    def survives(self) -> bool:
        """Whether it is better than the reference scheme elsewhere, beyond doubt."""
        return self.beyond_reference.high < 0.0


@dataclass(frozen=True, slots=True)
class Dominance:
    """On how many networks nobody dominates a scheme, and who does where somebody does."""

    networks: int
    on_front: int
    dominates_most: tuple[str, int]
    """whom, and on how many networks"""
    dominated_most: tuple[str, int]
    """by whom, and on how many networks"""
    dominates_reference: int
    dominated_by_reference: int


@dataclass(frozen=True, slots=True)
class Scores:
    """Of one scheme, over all networks that it ran on."""

    scheme: str
    rounds: int
    """networks and segments of the power league"""
    power: Mapping[float, float]
    """winning rate by margin"""
    windows: int
    """of the friendliness league; 0 without one"""
    friendly: float
    """winning rate; `nan` without a window"""
    regret: Regret | None
    """none where no network has a known fair share"""
    oracle: Spread | None
    """1 - S / S of the run of a flow that is told its path: below 0 where the scheme has more power
    than this oracle; none where it has not run"""
    away: Away | None
    """none of a scheme that is not learned"""
    dominance: Dominance
    used: tuple[float, ...]
    """of links that are redrawn: throughput over capacity, draw by draw, at `CDF_LEVELS`; empty
    without one"""
    rtt_ratio: tuple[float, ...]
    """round trip over the empty one, second by second, likewise"""


def scores(found: Sequence[Result], folder: Path, oracle: Sequence[Result] = ()) -> list[Scores]:
    """Every scheme's scores, the largest winning rate of the power league first.

    Args:
        found: what was measured.
        folder: of the cells; time series of drawn networks are read from it.
        oracle: what the BDP oracle did on some of the networks (`ackademy.studies.league.oracle`).
    """
    networks = ranked(found)
    names = list(dict.fromkeys(row.scheme for rows in networks.values() for row in rows))
    rounds = list(_power_rounds(networks, folder))
    power = {margin: league_metrics.winning_rates(rounds, margin) for margin in MARGINS}
    windows = list(_windows(networks, folder))
    regrets = _regrets(networks, names)
    beside_oracle = _beside_oracle(networks, oracle)
    away = _away(networks)
    dominance = _dominance(networks, names)
    response = _responses(networks, folder)
    table = [
        Scores(
            scheme=name,
            rounds=sum(name in own for own in rounds),
            power={margin: rates.get(name, math.nan) for margin, rates in power.items()},
            windows=sum(name in own for own, _ in windows),
            friendly=_friendly(name, windows),
            regret=regrets.get(name),
            oracle=beside_oracle.get(name),
            away=away.get(name),
            dominance=dominance[name],
            used=response.get(name, ((), ()))[0],
            rtt_ratio=response.get(name, ((), ()))[1],
        )
        for name in names
    ]
    return sorted(table, key=_order)


def _order(own: Scores) -> tuple[bool, float, float]:
    """The largest winning rate at 10 % first, then the largest at all margins."""
    rate = own.power[0.1]
    return math.isnan(rate), -rate, -sum(own.power.values())


def fair_share(result: Result) -> float:
    """Throughput over the fair share, or over what the applications offer if that is less."""
    network = result.scheme_case.network
    if network.by != "flow":
        return math.nan
    return result.value(f"equal_share:{network.link}") / network.offered_ratio


def _power_rounds(
    networks: Mapping[str, Sequence[Result]], folder: Path
) -> Iterator[dict[str, float]]:
    """Scores by scheme, for every network and each of its segments."""
    for rows in networks.values():
        network = rows[0].scheme_case.network
        if network.role == "alone":
            series = {row.scheme: _segments(row.scheme_case, folder) for row in rows}
            for index in range(len(SEGMENTS_S)):
                yield {name: own[index] for name, own in series.items()}
        elif network.by == "flow" and not network.is_mixed:
            yield {
                row.scheme: league_metrics.power_score(
                    row.value("throughput_sum_mbps"), row.value("owd_mean_ms")
                )
                for row in rows
            }


def _segments(case: SchemeCase, folder: Path) -> list[float]:
    """The power score of each segment, throughput and delay averaged over seeds first."""
    half_rtt = case.network.rtts_ms[0][1] / 2.0
    rates, delays = [], []
    for times, delivered, rtt in _series(case, folder):
        rates.append([_rate(times, delivered, *own) for own in SEGMENTS_S])
        delays.append([_mean(rtt[(times > a) & (times <= b)]) - half_rtt for a, b in SEGMENTS_S])
    if not rates:
        return [0.0] * len(SEGMENTS_S)
    # A segment in which no acknowledgement came has no delay; it delivered nothing either.
    return [
        league_metrics.power_score(float(np.mean(rate)), _mean(np.array(delay)))
        for rate, delay in zip(zip(*rates, strict=True), zip(*delays, strict=True), strict=True)
    ]


def _windows(
    networks: Mapping[str, Sequence[Result]], folder: Path
) -> Iterator[tuple[dict[str, float], float]]:
    """Rates by scheme in Mb/s and the fair one, for every window beside CUBIC."""
    for rows in networks.values():
        network = rows[0].scheme_case.network
        if network.role != "beside":
            continue
        fair = network.rates_mbps[0][1] / 2.0
        rates = {row.scheme: _window_rates(row.scheme_case, folder) for row in rows}
        for index in range(int(BESIDE_S / WINDOW_S)):
            yield {name: own[index] for name, own in rates.items() if own}, fair


def _window_rates(case: SchemeCase, folder: Path) -> list[float]:
    starts = np.arange(0.0, BESIDE_S, WINDOW_S)
    runs = [
        [_rate(times, delivered, start, start + WINDOW_S) for start in starts]
        for times, delivered, _ in _series(case, folder)
    ]
    return [float(value) for value in np.mean(runs, axis=0)] if runs else []


def _friendly(name: str, windows: Sequence[tuple[Mapping[str, float], float]]) -> float:
    own = [name in league_metrics.friendly_winners(rates, fair) for rates, fair in windows
           if name in rates]  # fmt: skip
    return sum(own) / len(own) if own else math.nan


def _regrets(networks: Mapping[str, Sequence[Result]], names: Sequence[str]) -> dict[str, Regret]:
    """By scheme; those without a network of known fair share are left out."""
    power = _per_network(networks, _power_regret)
    utility = _per_network(networks, regret.regret)
    reference = REFERENCE if REFERENCE in names else next(iter(names), "")
    paired = {
        name: network_interval(_differences(power[name], power[reference]))
        for name in names
        if name != reference and power[name]
    }
    adjusted = holm({name: own.p_value for name, own in paired.items()})
    found = {}
    for name in names:
        if not power[name]:
            continue
        found[name] = Regret(
            **asdict(Spread.of(power[name])),
            utility=float(np.mean(list(utility[name].values()))),
            beyond_reference=paired[name].interval if name in paired else Interval(0.0, 0.0, 0.0),
            p_value=adjusted.get(name, math.nan),
        )
    return found


def _beside_oracle(
    networks: Mapping[str, Sequence[Result]], oracle: Sequence[Result]
) -> dict[str, Spread]:
    """By scheme: 1 - S / S of the oracle on the networks on which it delivered something."""
    known = {own.network: _ideal(own) for own in oracle if own.n_runs}
    values: dict[str, dict[str, float]] = {}
    for name, rows in networks.items():
        share, ratio = known.get(name, (math.nan, math.nan))
        if math.isnan(ratio):
            continue
        for row in rows:
            own_share, own_ratio = _ideal(row)
            value = regret.power_regret(own_share, own_ratio, share, ratio)
            values.setdefault(row.scheme, {})[name] = value
    return {scheme: Spread.of(own) for scheme, own in values.items()}


def _ideal(row: Result) -> tuple[float, float]:
    """Share of what is fair and ratio of round trips, neither better than an omniscient flow's."""
    ratio = row.value("rtt_ratio")
    return min(fair_share(row), 1.0), ratio if math.isnan(ratio) else max(ratio, 1.0)


def _away(networks: Mapping[str, Sequence[Result]]) -> dict[str, Away]:
    """By learned scheme."""
    regrets = _per_network(networks, _power_regret)
    reference = regrets.get(REFERENCE, {})
    source = {name: rows[0].scheme_case.network.source for name, rows in networks.items()}
    learned = {
        row.scheme: row.scheme_case.scheme.family
        for rows in networks.values()
        for row in rows
        if row.scheme_case.scheme.kind == "learned"
    }
    found = {}
    for name, family in learned.items():
        own = regrets[name]
        home = [value for network, value in own.items() if source[network] == family]
        away = {network: value for network, value in own.items() if source[network] != family}
        found[name] = Away(
            home=_mean(np.array(home)),
            away=_mean(np.array(list(away.values()))),
            beyond_reference=network_interval(_differences(away, reference)).interval,
        )
    return found


def _per_network(
    networks: Mapping[str, Sequence[Result]], of: Callable[[float, float], float]
) -> dict[str, dict[str, float]]:
    """By scheme and network; unknown ones are left out."""
    found: dict[str, dict[str, float]] = {}
    for name, rows in networks.items():
        for row in rows:
            own = found.setdefault(row.scheme, {})
            share = fair_share(row)
            if not math.isnan(share):
                own[name] = of(share, row.value("rtt_ratio"))
    return found


def _power_regret(share: float, rtt_ratio: float) -> float:
    """Of a flow with a part of its fair share: more than all of it counts as all."""
    ratio = rtt_ratio if math.isnan(rtt_ratio) else max(rtt_ratio, 1.0)
    return regret.power_regret(min(share, 1.0), ratio, 1.0, 1.0)


def _differences(ours: Mapping[str, float], other: Mapping[str, float]) -> FloatArray:
    return np.array([ours[name] - other[name] for name in ours if name in other], np.float64)


def _dominance(
    networks: Mapping[str, Sequence[Result]], names: Sequence[str]
) -> dict[str, Dominance]:
    reference = REFERENCE if REFERENCE in names else next(iter(names), "")
    over: dict[str, Counter[str]] = {name: Counter() for name in names}
    under: dict[str, Counter[str]] = {name: Counter() for name in names}
    front: Counter[str] = Counter()
    played: Counter[str] = Counter()
    for rows in networks.values():
        points = {row.scheme: _point(row) for row in rows if not math.isnan(fair_share(row))}
        if not points:
            continue
        rtt = _empty_rtt_ms(rows)
        played.update(list(points))
        front.update(league_metrics.pareto_front(points, rtt))
        for ours, other in itertools.permutations(points, 2):
            if league_metrics.dominates(points[ours], points[other], rtt):
                over[ours][other] += 1
                under[other][ours] += 1
    return {
        name: Dominance(
            networks=played[name],
            on_front=front[name],
            dominates_most=_most(over[name]),
            dominated_most=_most(under[name]),
            dominates_reference=over[name][reference],
            dominated_by_reference=under[name][reference],
        )
        for name in names
    }


def _most(counts: Counter[str]) -> tuple[str, int]:
    """The first of the largest count, by name where they are equal."""
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))


def _point(row: Result) -> ParetoPoint:
    return ParetoPoint(fair_share(row), row.value("wait_p95_ratio"), row.value("queue_loss"))


def _empty_rtt_ms(rows: Sequence[Result]) -> float:
    """Round trip of the empty path, from what is known of the runs: mean delay over its ratio."""
    network = rows[0].scheme_case.network
    if network.rtts_ms:
        return float(np.mean([value for _, value in network.rtts_ms]))
    for row in rows:
        delay, ratio = row.value("delay_mean_ms"), row.value("rtt_ratio")
        if delay > 0.0 and ratio > 1.0:
            return delay / (ratio - 1.0)
    return math.inf


def _responses(
    networks: Mapping[str, Sequence[Result]], folder: Path
) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    """By scheme: distributions of use and of round trip on redrawn links."""
    used: dict[str, list[FloatArray]] = {}
    ratios: dict[str, list[FloatArray]] = {}
    for rows in networks.values():
        if rows[0].scheme_case.network.role != "redraw":
            continue
        for row in rows:
            for run in _series(row.scheme_case, folder):
                own = _response(row.scheme_case.network, *run)
                used.setdefault(row.scheme, []).append(own[0])
                ratios.setdefault(row.scheme, []).append(own[1])
    return {
        name: (
            league_metrics.cdf_summary(np.concatenate(used[name])),
            league_metrics.cdf_summary(np.concatenate(ratios[name])),
        )
        for name in used
    }


def _response(
    network: Network, times: FloatArray, delivered: FloatArray, rtt: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Use of the link in each draw, and the ratio of round trips in each second."""
    used, _ = _ratios(network, REDRAW_EVERY_S, times, delivered, rtt)
    _, ratio = _ratios(network, RTT_INTERVAL_S, times, delivered, rtt)
    return used, ratio


def _ratios(
    network: Network,
    interval_s: float,
    times: FloatArray,
    delivered: FloatArray,
    rtt: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    ends = np.arange(interval_s, times[-1] + 1e-9, interval_s)
    rates = [_rate(times, delivered, end - interval_s, end) for end in ends]
    capacity = [mean_between(network.rates_mbps, end - interval_s, end) for end in ends]
    inside = [_mean(rtt[(times > end - interval_s) & (times <= end)]) for end in ends]
    base = [value_at(network.rtts_ms, end - interval_s) for end in ends]
    return league_metrics.response_ratios(
        np.array(rates), np.array(capacity), np.array(inside), np.array(base)
    )


def _series(case: SchemeCase, folder: Path) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Of each finished run: times in s, bytes delivered so far, newest round trip in ms; (n,)."""
    finished, _ = experiments.countable(folder, case.cells)
    for cell in finished:
        table = experiments.read(folder, cell, "flow_series")
        names = table["flow"].unique(maintain_order=True).to_list()
        governed = entries.governed(cell.scenario(), [case.network.flows], names)
        own = next(name for name, is_own in zip(names, governed, strict=True) if is_own)
        rows = table.filter(table["flow"] == own).select("time_s", "delivered_bytes", "rtt_ms")
        times, delivered, rtt = (rows[name].cast(float).to_numpy() for name in rows.columns)
        yield times, delivered, rtt


def _rate(times: FloatArray, delivered: FloatArray, low_s: float, high_s: float) -> float:
    """Mb/s between two times of the series."""
    first, last = np.interp([low_s, high_s], times, delivered)
    return float(last - first) * 8e-6 / (high_s - low_s)


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan
