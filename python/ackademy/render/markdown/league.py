"""The tables of a league as Markdown, for a document."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.markdown.sheet import code, sheet
from ackademy.render.sheets import league as sheets
from ackademy.render.sheets import league_scores
from ackademy.studies.harm_matrix import Harm
from ackademy.studies.leaderboard import listed, ranked, rankings
from ackademy.studies.league import Result
from ackademy.studies.league_scores import Scores


def tables(
    found: Sequence[Result], command: str, scores: Sequence[Scores] = (), harms: Sequence[Harm] = ()
) -> str:
    """Rankings, scores and harm, then each network's best schemes beside its best classic one."""
    ranking, best = sheets.rankings(rankings(found)), sheets.winners(listed(ranked(found)))
    scored = [
        f"### {own.title[0].upper()}{own.title[1:]}\n\n{sheet(own)}"
        for own in league_scores.sheets(scores, harms)
    ]
    made = f"Made by {code(command)}."
    words = "\n".join(f"- {line}" for line in league_scores.summary(scores, harms))
    parts = [made, words, sheet(ranking), *scored, sheet(best)]
    return "\n\n".join(part for part in parts if part) + "\n"
