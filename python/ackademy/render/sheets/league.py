"""The sheets of a league: rankings, a table per network, the best of each network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ackademy.render.numbers import counted, runs_told
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of, number, shaded
from ackademy.render.sheet import measured as measured_cell
from ackademy.studies.leaderboard import BREAKS, Ranking, leaders
from ackademy.studies.league import MERIT, Result

CLASSIC = "classic"
SHORT = ("throughput_mean_mbps", "delay_p50_ms", "delay_p95_ms", "loss", MERIT)
"""columns of the table of the best of each network"""


def rankings(found: Sequence[Ranking]) -> Sheet:
    """A line per scheme, the best mean rank first."""
    heads = (
        Head("mean rank", about="over the networks of each paper, then over papers; 1 is best"),
        Head("among best", about="networks"),
        Head("median gap", "M_e"),
        Head("worst gap", "M_e"),
        Head("worst on"),
        *(Head(kind, about="networks in which it does") for kind in BREAKS),
    )
    lines = tuple(
        Line((Part(own.scheme.name), Part(own.scheme.kind)), _ranked(own), note=own.scheme.family)
        for own in found
    )
    names = (Head("scheme"), Head("kind"))
    return Sheet("rankings, best mean rank in M_e first", names, heads, lines)


def _ranked(own: Ranking) -> tuple[Cell, ...]:
    counts = Counter(breakage.kind for breakage in own.breakages)
    of = len(own.ranks)
    where, worst = own.worst
    return (
        number(own.mean_rank),
        cell(f"{len(own.wins)} of {of}", len(own.wins)),
        number(own.median_gap, 2),
        number(worst, 2),
        cell(where),
        *(_count(counts[kind], of) for kind in BREAKS),
    )


def _count(count: int, of: int) -> Cell:
    shade = shaded(1.0 - count / of, 4) if count else ""
    return Cell((Part(str(count) if count else "·"),), count, shade=shade)


def network(rows: Sequence[Result]) -> Sheet:
    """A line per scheme on one network, the best first."""
    best = leaders(rows)
    own = rows[0].scheme_case.network
    heads = tuple(head_of(own.metric(column)) for column in own.shown)
    lines = tuple(
        Line(
            (Part(row.scheme, "best" if row in best else ""),),
            tuple(measured_cell(row.measured, own.metric(column)) for column in own.shown),
            note=runs_told(row.n_runs, is_fixed=row.measured.is_fixed),
            runs=counted(row.n_runs, row.measured.n_invalid, is_fixed=row.measured.is_fixed),
        )
        for row in rows
    )
    return Sheet(f"{own.paper} · {own.title}", (Head("scheme"),), heads, lines)


def column_heads(
    networks: Mapping[str, Sequence[Result]], columns: Sequence[str]
) -> tuple[Head, ...]:
    """Heads of columns that hold for all networks of a suite."""
    first = next((rows[0].scheme_case.network for rows in networks.values()), None)
    return tuple(head_of(first.headed(column) if first else column) for column in columns)


def winners(networks: dict[str, list[Result]]) -> Sheet:
    """The best schemes of each network beside its best classic one."""
    lines = []
    for name, rows in networks.items():
        best = leaders(rows)
        classic = [
            row for row in rows if row.scheme_case.scheme.kind == CLASSIC and row not in best
        ][:1]
        for row in (*best, *classic):
            shown = row.scheme if row in best else f"best classic: {row.scheme}"
            on = row.scheme_case.network
            cells = tuple(measured_cell(row.measured, on.metric(column)) for column in SHORT)
            lines.append(Line((Part(shown),), cells, name))
    heads = column_heads(networks, SHORT)
    return Sheet("the best of each network", (Head("scheme"),), heads, tuple(lines), "network")
