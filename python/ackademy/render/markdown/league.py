"""The tables of a league as Markdown, for a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ackademy.render.numbers import significant, with_interval
from ackademy.studies.leaderboard import Ranking, leaders, ranked, rankings
from ackademy.studies.league import MERIT, Result

CLASSIC = "classic"
SHOWN = ("throughput_mean_mbps", "delay_p50_ms", "delay_p95_ms", "loss")


def tables(found: Sequence[Result], command: str) -> str:
    """Rankings, then each network's best schemes beside its best classic one."""
    return "\n".join(
        [
            f"Made by `{command}`.",
            "",
            *_rankings(rankings(found)),
            "",
            *_networks(found),
            "",
        ]
    )


def _rankings(table: Sequence[Ranking]) -> list[str]:
    kinds = ("starves", "fills the buffer", "unfair", "loses")
    heads = (
        "scheme",
        "kind",
        "mean rank over papers",
        "among the best",
        "worst gap, where",
        *kinds,
    )
    lines = [_line(heads), _line(["---"] * 2 + ["---:"] * (len(heads) - 2))]
    for ranking in table:
        counts = Counter(breakage.kind for breakage in ranking.breakages)
        where, gap = ranking.worst
        lines.append(
            _line(
                [
                    ranking.scheme.name,
                    ranking.scheme.kind,
                    significant(ranking.mean_rank, 3),
                    f"{len(ranking.wins)} of {len(ranking.ranks)}",
                    f"{significant(gap, 2)}, {where}",
                    *(str(counts[kind]) if counts[kind] else "" for kind in kinds),
                ]
            )
        )
    return lines


def _networks(found: Sequence[Result]) -> list[str]:
    heads = ("network", "scheme", "Mb/s", "p50 ms", "p95 ms", "loss", "M_e")
    lines = [_line(heads), _line(["---"] * 2 + ["---:"] * 5)]
    for network, rows in ranked(found).items():
        best = leaders(rows)
        classic = [
            row for row in rows if row.scheme_case.scheme.kind == CLASSIC and row not in best
        ][:1]
        for index, row in enumerate([*best, *classic]):
            name = row.scheme if row in best else f"best classic: {row.scheme}"
            numbers = [with_interval(row.estimates[metric]) for metric in (*SHOWN, MERIT)]
            lines.append(_line([network if index == 0 else "", name, *numbers]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
