"""What the command line prints of a league."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ackademy.console import Console
from ackademy.render.numbers import significant, with_interval
from ackademy.render.terminal import fitting, headed_table
from ackademy.studies.leaderboard import Standing, leaders, ranked, standings
from ackademy.studies.league import Result, heading


def tables(found: Sequence[Result], console: Console) -> Group:
    """Every network's table, then the standings."""
    parts: list[Table | Text] = []
    for rows in ranked(found).values():
        best = {result.scheme for result in leaders(rows)}
        network = rows[0].match.network
        names = {
            "scheme": [
                Text(row.scheme, style="bold green" if row.scheme in best else "") for row in rows
            ]
        }
        numbers = {
            "\n".join(heading(metric)).rstrip(): [
                with_interval(row.estimates[metric]) for row in rows
            ]
            for metric in network.shown
        } | {"runs": [str(row.n_runs) for row in rows]}
        parts += fitting(f"{network.paper} · {network.title}", names, numbers, console)
    return Group(*parts, _standings(standings(found)))


def _standings(found: Sequence[Standing]) -> Table:
    heads = ["mean rank over papers", "among best", "worst gap in M_e"]
    table = headed_table("standings, best mean rank in M_e first", ["scheme"], heads)
    table.add_column("on")
    table.add_column("breaks")
    for standing in found:
        where, gap = standing.worst
        counts = Counter(breakage.kind for breakage in standing.breakages)
        table.add_row(
            standing.scheme.name,
            significant(standing.mean_rank, 3),
            f"{len(standing.wins)} of {len(standing.ranks)}",
            significant(gap, 2),
            where,
            ", ".join(f"{kind} {count}" for kind, count in counts.items()),
        )
    return table
