"""The tables of a league as Markdown, for a document."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.markdown.sheet import sheet
from ackademy.render.sheets import league as sheets
from ackademy.studies.leaderboard import ranked, rankings
from ackademy.studies.league import Result


def tables(found: Sequence[Result], command: str) -> str:
    """Rankings, then each network's best schemes beside its best classic one."""
    both = (sheets.rankings(rankings(found)), sheets.winners(ranked(found)))
    return "\n\n".join([f"Made by `{command}`.", *map(sheet, both)]) + "\n"
