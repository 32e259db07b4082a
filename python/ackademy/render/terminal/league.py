"""What the command line prints of a league."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group

from ackademy.console import Console
from ackademy.render.sheets import league as sheets
from ackademy.render.terminal import sheet
from ackademy.studies.leaderboard import ranked, rankings
from ackademy.studies.league import Result


def tables(found: Sequence[Result], console: Console) -> Group:
    """Every network's table, then the rankings."""
    shown = [sheets.network(rows) for rows in ranked(found).values()]
    shown.append(sheets.rankings(rankings(found)))
    return Group(*(table for own in shown for table in sheet(own, console)))
