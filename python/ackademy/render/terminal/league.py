"""What the command line prints of a league."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from ackademy.console import Console
from ackademy.render.sheets import league as sheets
from ackademy.render.sheets import league_scores
from ackademy.render.terminal import sheet
from ackademy.studies.harm_matrix import Harm
from ackademy.studies.leaderboard import ranked, rankings
from ackademy.studies.league import Result
from ackademy.studies.league_scores import Scores

NETWORKS_MAX = 40
"""networks whose tables are printed; those of more are in the report"""


def tables(
    found: Sequence[Result],
    console: Console,
    scores: Sequence[Scores] = (),
    harms: Sequence[Harm] = (),
) -> Group:
    """Every network's table unless they are many, then the rankings, scores and harm."""
    networks = ranked(found)
    few = networks if len(networks) <= NETWORKS_MAX else {}
    shown = [sheets.network(rows) for rows in few.values()]
    shown.append(sheets.rankings(rankings(found)))
    shown += league_scores.sheets(scores, harms)
    return Group(*(table for own in shown for table in sheet(own, console)))
