"""The report of schemes on a fixed list of networks."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.html.page import Head as PageHead
from ackademy.render.html.page import Section, document, repeat_section
from ackademy.render.html.sheet import sheet
from ackademy.render.sheets import judgement as sheets
from ackademy.studies import judgement
from ackademy.studies.judgement import Network, Study

LEAD = (
    "A scheme dominates another on a network if nothing is worse by more than 2 % of the fair "
    "share, 2 % of the round trip or 1 ms of queueing delay, and 0.1 % of loss, and something is "
    "better by more. A network counts once. Intervals are 95 % over networks: by the bootstrap for "
    "means and parts, by order statistics for medians."
)


def page(study: Study, found: Sequence[Network], command: str) -> str:
    """The HTML file.

    Args:
        study: what was to be run.
        found: the networks on which every scheme has run.
        command: what the user typed.
    """
    judged = study.schemes[0].name
    head = PageHead(
        kicker="Judgement",
        title=f"{judged} on a fixed list of networks",
        about=study.about,
        cite="",
        facts={
            "networks": str(len(found)),
            "schemes": str(len(study.schemes)),
            "list": study.origin,
            "digest": study.digest[:12],
        },
    )
    all_of_them = sheets.verdicts("all networks", judgement.verdicts(study, found), study.reference)
    kinds = sheets.by_kind(judgement.by_kind(study, found), study.reference)
    pairs = sheets.dominance(judgement.dominance(study, found))
    return document(
        head,
        [
            Section("all", "All networks", LEAD, sheet(all_of_them)),
            Section("pairs", "Who dominates whom", "Per cent of the networks.", sheet(pairs)),
            Section("kinds", "By class of networks", "Without intervals.", sheet(kinds)),
            repeat_section(command),
        ],
    )
