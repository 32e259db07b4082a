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
from ackademy.studies.leaderboard import Ranking, leaders, ranked, rankings
from ackademy.studies.league import Result, heading


def tables(found: Sequence[Result], console: Console) -> Group:
    """Every network's table, then the rankings."""
    parts: list[Table | Text] = []
    for rows in ranked(found).values():
        best = {result.scheme for result in leaders(rows)}
        network = rows[0].scheme_case.network
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
    return Group(*parts, _rankings(rankings(found)))


def _rankings(found: Sequence[Ranking]) -> Table:
    heads = ["mean rank over papers", "among best", "worst gap in M_e"]
    table = headed_table("rankings, best mean rank in M_e first", ["scheme"], heads)
    table.add_column("on")
    table.add_column("breaks")
    for ranking in found:
        where, gap = ranking.worst
        counts = Counter(breakage.kind for breakage in ranking.breakages)
        table.add_row(
            ranking.scheme.name,
            significant(ranking.mean_rank, 3),
            f"{len(ranking.wins)} of {len(ranking.ranks)}",
            significant(gap, 2),
            where,
            ", ".join(f"{kind} {count}" for kind, count in counts.items()),
        )
    return table
