"""What the command line prints of a league."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from ackademy.console import Console
from ackademy.render.sheets import league as sheets
from ackademy.render.sheets import league_scores
from ackademy.render.terminal import sheet
from ackademy.studies.harm_matrix import Harm
from ackademy.studies.leaderboard import listed, ranked, rankings
from ackademy.studies.league import Result
from ackademy.studies.league_scores import Scores


def tables(
    found: Sequence[Result],
    console: Console,
    scores: Sequence[Scores] = (),
    harms: Sequence[Harm] = (),
) -> Group:
    """The networks' tables, then the rankings, scores and harm."""
    shown = [sheets.network(rows) for rows in listed(ranked(found)).values()]
    shown.append(sheets.rankings(rankings(found)))
    shown += league_scores.sheets(scores, harms)
    return Group(*(table for own in shown for table in sheet(own, console)))
