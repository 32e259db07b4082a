"""The tables of a league's scores: power and friendliness, regret, dominance, response, harm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ackademy.render.numbers import NONE, significant
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, estimated, number, shaded
from ackademy.stats.league_metrics import CDF_LEVELS, MARGINS
from ackademy.studies.league.harm import COMPLETION, Harm, Neighbour, neighbours
from ackademy.studies.league.scores import REFERENCE, Away, Scores, Spread

SCHEME = (Head("scheme"),)
NAMED_MAX = 3
"""schemes that a cell names"""


def sheets(found: Sequence[Scores], harms: Sequence[Harm]) -> list[Sheet]:
    """All that have a line."""
    every = [
        power(found),
        regret(found),
        oracle(found),
        dominance(found),
        away(found),
        response(found),
        *((harm(neighbours(harms)), matrix(harms)) if harms else ()),
    ]
    return [own for own in every if own.lines]


def summary(found: Sequence[Scores], harms: Sequence[Harm]) -> list[str]:
    """The ends of every table in sentences, as far as there are tables."""
    lines = []
    if ranked := [own for own in found if own.power[0.1] > 0.0]:
        lines.append("Most power (share of rounds won at 10 %): " + _ends(
            [(own.scheme, 100.0 * own.power[0.1]) for own in ranked]
        ))  # fmt: skip
    if beside := [(own.scheme, 100.0 * own.friendly) for own in found if own.windows]:
        ordered = sorted(beside, key=lambda item: -item[1])
        lines.append(f"Friendliest beside CUBIC (share of windows): {_ends(ordered)}")
        never = [name for name, rate in ordered if rate == 0.0]
        lines.append(f"Friendly in no window: {', '.join(never) or 'none'}")
    known = [own for own in found if own.regret is not None]
    most = max((own.regret.networks for own in known if own.regret), default=0)
    rows = [(own.scheme, own.regret) for own in known if own.regret]
    means = [(name, own.mean) for name, own in rows if own.networks == most]
    if means:
        lines.append(f"Least regret: {_ends(sorted(means, key=lambda item: item[1]))}")
        less = [name for name, own in rows if own.p_value < 0.05 and own.beyond_reference.high < 0]
        more = [name for name, own in rows if own.p_value < 0.05 and own.beyond_reference.low > 0]
        lines.append(f"Less regret than {REFERENCE} (Holm, 5 %): {', '.join(less) or 'none'}")
        lines.append(f"More regret than {REFERENCE} (Holm, 5 %): {', '.join(more) or 'none'}")
    abroad = [(own.scheme, own.away) for own in found if own.away is not None]
    if abroad:
        lines.append("Learned schemes that survive outside their papers: " + (
            ", ".join(name for name, own in abroad if own.survives) or "none"
        ))  # fmt: skip
    return [*lines, *(_harm_summary(neighbours(harms)) if harms else [])]


def _harm_summary(found: Sequence[Neighbour]) -> list[str]:
    passes = [own.scheme for own in found if own.passes]
    starving = sorted(found, key=lambda own: -len(own.starves))
    starved = sorted(found, key=lambda own: -len(own.starved_by))
    return [
        "Harm others no more than their own kind does (median excess at most 0, p95 at most 0.1): "
        + (", ".join(passes) or "none"),
        "Starve most schemes on some network: "
        + _ends([(own.scheme, float(len(own.starves))) for own in starving]),
        "Starved by most schemes on some network: "
        + _ends([(own.scheme, float(len(own.starved_by))) for own in starved]),
        "Starved by none: "
        + (", ".join(own.scheme for own in found if not own.starved_by) or "none"),
    ]


def _ends(ordered: Sequence[tuple[str, float]]) -> str:
    """The first five; after a semicolon the last two of more than seven."""
    shown = [f"{name} {significant(value, 3)}" for name, value in ordered]
    last = f"; last {', '.join(shown[-2:])}" if len(shown) > 7 else ""
    return ", ".join(shown[:5]) + last


def power(found: Sequence[Scores]) -> Sheet:
    """Winning rates, the largest at 10 % first."""
    heads = (
        *(
            Head(
                f"power {100 * margin:g} %",
                "%",
                f"networks and segments whose score is within {100 * margin:g} % of the best: "
                "throughput² over mean one-way delay",
            )
            for margin in MARGINS
        ),
        Head("rounds", about="networks and segments of the power league"),
        Head("friendly", "%", "windows of 30 s beside CUBIC with about half of the link"),
        Head("windows", about="of the friendliness league"),
    )
    lines = tuple(
        _line(
            own.scheme,
            *(_percent(own.power[margin]) for margin in MARGINS),
            cell(str(own.rounds), own.rounds),
            _percent(own.friendly),
            cell(str(own.windows) if own.windows else NONE, own.windows),
        )
        for own in found
    )
    return Sheet("power and friendliness leagues, rate of winning", SCHEME, heads, lines)


def regret(found: Sequence[Scores]) -> Sheet:
    """Regret to the omniscient flow, the smallest mean first, schemes of some networks last."""
    heads = (
        Head("mean", about="1 − S/S*, S* of a flow with its fair share and no queue; 0 is best"),
        Head("p90", about="over networks"),
        Head("worst"),
        Head("worst on"),
        Head("utility lost", "nats", "mean of −(ln share − ln RTT ratio); 0 is best"),
        Head(f"beyond {REFERENCE}", about="mean difference over networks, 95 % interval"),
        Head("p-value", about="of no difference, by Holm for all schemes"),
        Head("networks"),
    )
    known = [(own.scheme, own.regret) for own in found if own.regret is not None]
    most = max((own.networks for _, own in known), default=0)
    lines = tuple(
        _line(
            name,
            *_spread(own),
            number(own.utility),
            estimated(own.beyond_reference, digits=3),
            number(own.p_value, 2),
            cell(str(own.networks), own.networks),
        )
        for name, own in sorted(known, key=lambda item: (item[1].networks < most, item[1].mean))
    )
    return Sheet("regret against an omniscient flow", SCHEME, heads, lines)


def oracle(found: Sequence[Scores]) -> Sheet:
    """Regret to the run of a flow that is told rate and round trip, the smallest mean first."""
    heads = (
        Head("mean", about="1 − S/S of the BDP oracle, on networks where one flow is alone"),
        Head("p90", about="over networks"),
        Head("worst"),
        Head("worst on"),
        Head("networks"),
    )
    known = [(own.scheme, own.oracle) for own in found if own.oracle is not None]
    lines = tuple(
        _line(name, *_spread(own), cell(str(own.networks), own.networks))
        for name, own in sorted(known, key=lambda item: item[1].mean)
    )
    return Sheet("regret against the BDP oracle", SCHEME, heads, lines)


def dominance(found: Sequence[Scores]) -> Sheet:
    """Who is dominated on how many networks, the most often on the front first."""
    heads = (
        Head("on the front", "%", "networks on which no scheme dominates it"),
        Head("networks"),
        Head("dominates most"),
        Head("dominated most by"),
        Head(f"dominates {REFERENCE}", "%"),
        Head(f"dominated by {REFERENCE}", "%"),
    )
    rows = [(own.scheme, own.dominance) for own in found if own.dominance.networks]
    lines = tuple(
        _line(
            name,
            _percent(own.on_front / own.networks),
            cell(str(own.networks), own.networks),
            _most(own.dominates_most),
            _most(own.dominated_most),
            _percent(own.dominates_reference / own.networks),
            _percent(own.dominated_by_reference / own.networks),
        )
        for name, own in sorted(rows, key=lambda item: -item[1].on_front / item[1].networks)
    )
    return Sheet("Pareto dominance in share, p95 wait and loss", SCHEME, heads, lines)


def away(found: Sequence[Scores]) -> Sheet:
    """Learned schemes outside their papers, the smallest regret there first."""
    heads = (
        Head("own networks", about="mean regret on the networks of its paper"),
        Head("elsewhere", about="mean regret on all others"),
        Head(f"elsewhere beyond {REFERENCE}", about="mean difference, 95 % interval"),
        Head("survives", about=f"less regret than {REFERENCE} elsewhere, beyond doubt"),
    )
    known = [(own.scheme, own.away) for own in found if own.away is not None]
    lines = tuple(
        _line(
            name,
            number(own.home),
            number(own.away),
            estimated(own.beyond_reference, digits=3),
            _survival(own),
        )
        for name, own in sorted(known, key=lambda item: (math.isnan(item[1].away), item[1].away))
    )
    return Sheet("learned schemes outside their papers, regret", SCHEME, heads, lines)


def response(found: Sequence[Scores]) -> Sheet:
    """Distributions on links that are redrawn, the largest median use first."""
    names = [f"p{100 * level:g}" for level in CDF_LEVELS]
    heads = (
        *(Head(f"use {name}", "%", "throughput over capacity, of each draw") for name in names),
        *(Head(f"RTT {name}", about="over that of the empty path, each second") for name in names),
    )
    known = [own for own in found if own.used]
    lines = tuple(
        _line(own.scheme, *map(_percent, own.used), *(number(value) for value in own.rtt_ratio))
        for own in sorted(known, key=lambda own: -own.used[len(own.used) // 2])
    )
    return Sheet("response to links redrawn every 10 s", SCHEME, heads, lines)


def harm(found: Sequence[Neighbour]) -> Sheet:
    """What each scheme does to the others and they to it, the smallest excess at p95 first."""
    heads = (
        Head("harm", about="median harm in throughput to the others, 0 to 1"),
        Head("to delay", about="median harm in p95 round trip"),
        Head("to loss", about="median harm in loss"),
        Head("to completion", about="median harm in the median completion time of transfers"),
        Head("excess", about="median harm in throughput beyond that of the victim's own kind"),
        Head("excess p95"),
        Head("passes", about="median excess at most 0, p95 at most 0.1"),
        Head("suffers", about="median harm in throughput by the others"),
        Head("starves", about="schemes, and on how many networks: below 0.1 of half in any 10 s"),
        Head("starved by"),
    )
    lines = tuple(
        _line(
            own.scheme,
            *(number(own.done[what], 2) for what in ("throughput", "delay", "loss", COMPLETION)),
            number(own.excess_median, 2),
            number(own.excess_p95, 2),
            cell("yes" if own.passes else "no", float(own.passes)),
            number(own.suffered["throughput"], 2),
            _named(own.starves),
            _named(own.starved_by),
        )
        for own in found
    )
    return Sheet("harm to others, pair by pair", SCHEME, heads, lines)


def matrix(found: Sequence[Harm]) -> Sheet:
    """A line per scheme that does harm, a column per scheme that suffers: mean over networks."""
    names = list(dict.fromkeys(own.by for own in found))
    pairs: dict[tuple[str, str], list[Harm]] = {}
    for own in found:
        pairs.setdefault((own.by, own.to), []).append(own)
    heads = tuple(Head(name, about=f"what {name} suffers") for name in names)
    lines = tuple(_line(by, *(_pair(pairs.get((by, to), [])) for to in names)) for by in names)
    title = "harm in throughput, by line to column; ! where the column starves"
    return Sheet(title, (Head("by"),), heads, lines)


def _line(name: str, *cells: Cell) -> Line:
    return Line((Part(name),), cells)


def _spread(own: Spread) -> tuple[Cell, ...]:
    """Mean, p90 and worst, with the network of the worst."""
    return number(own.mean), number(own.p90), number(own.worst), cell(own.where)


def _pair(found: Sequence[Harm]) -> Cell:
    if not found:
        return cell(NONE)
    value = math.fsum(own.harm["throughput"] for own in found) / len(found)
    starved = sum(own.starved for own in found)
    tip = f"{found[0].by} to {found[0].to}: starved on {starved} of {len(found)} networks"
    text = f"{value:.2f}{'!' if starved else ''}"
    return Cell((Part(text),), value, tip, shaded(1.0 - value))


def _survival(own: Away) -> Cell:
    if math.isnan(own.beyond_reference.value):
        return cell(NONE)
    return cell("yes" if own.survives else "no", float(own.survives))


def _percent(part: float) -> Cell:
    return cell(NONE if math.isnan(part) else significant(100.0 * part, 3), part)


def _most(own: tuple[str, int]) -> Cell:
    name, count = own
    return cell(f"{name} ({count})" if count else NONE, count)


def _named(counts: Mapping[str, int]) -> Cell:
    """The most frequent, and how many more."""
    named = [f"{name} ({count})" for name, count in counts.items()]
    more = len(named) - NAMED_MAX
    text = ", ".join(named[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    return cell(text or NONE, len(named))
