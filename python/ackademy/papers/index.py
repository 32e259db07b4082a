"""The page of a whole paper: its items, how their claims went, and links to their reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ackademy.papers import Findings, Study
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.report import Report, Section, in_text
from ackademy.render.sheet import Head, Line, Part, Sheet, cell
from ackademy.stats.claims import PLURAL, claims_in_words
from ackademy.studies.reproduce.parts import claims_list, describe, doi


def report(
    paper: str, found: Sequence[tuple[Study, Findings]], spent_s: float, command: str
) -> Report:
    """The report of a paper.

    Args:
        paper: its name on the command line.
        found: its items with what was found, at least one.
        spent_s: how long the command took, in real time.
        command: what the user typed.
    """
    about = found[0][0].paper
    every = [checked for _, findings in found for checked in findings.claims]
    verdicts = Counter(checked.verdict for checked in every)
    facts = {"items": str(len(found)), "claims checked": str(len(every))}
    facts |= {f"claims {PLURAL[verdict]}": str(n) for verdict, n in verdicts.items()}
    repeat = join(
        (
            element("pre", element("code", command)),
            element("p", f"It took {spent_s:.0f} s; what was finished before is not in that time."),
        )
    )
    beside = "Each has a report of its own beside this file."
    return Report(
        kind=f"Reproduction · {paper}",
        title=about.title,
        about=f"{about.authors}. {about.venue}.",
        sections=[
            Section("items", "Items", beside, [_items(found), in_text(_sheet(found))]),
            Section("claims", "What the paper says", "", [_claims(found)]),
            Section("repeat", "How to repeat it", "", [repeat]),
        ],
        facts=facts,
        cite=doi(about),
    )


def _sheet(found: Sequence[tuple[Study, Findings]]) -> Sheet:
    lines = tuple(
        Line((Part(study.item), Part(study.title)), (cell(claims_in_words(findings.claims)),))
        for study, findings in found
    )
    return Sheet("items", (Head("item"), Head("what")), (Head("claims"),), lines)


def _items(found: Sequence[tuple[Study, Findings]]) -> Markup:
    heads = join([element("th", text) for text in ("item", "what", "claims")])
    body = [
        element(
            "tr",
            element("td", element("a", study.item, href=f"{study.name.replace('/', '-')}.html")),
            element("td", study.title),
            element("td", "nothing run" if findings.is_empty else claims_in_words(findings.claims)),
        )
        for study, findings in found
    ]
    head = element("thead", element("tr", heads))
    table = element("table", head, element("tbody", join(body)), class_="words")
    return element("div", table, class_="scroll")


def _claims(found: Sequence[tuple[Study, Findings]]) -> Markup:
    return claims_list(
        (f"{study.item}, {checked.claim.where}: {describe(checked)}", checked)
        for study, findings in found
        for checked in findings.claims
    )
