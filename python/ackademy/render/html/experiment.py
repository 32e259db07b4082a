"""What the reports of all experiments of papers have: heading, claims, assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ackademy.render.claims import VERDICTS, describe
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section
from ackademy.render.html.shapes import terms
from ackademy.stats.claims import Checked
from ackademy.studies.experiment_files import Assumption, Item, Paper


def reproduction_head(study: Item, facts: Mapping[str, str]) -> Head:
    """The heading of one item, with what it cites."""
    paper = study.paper
    cite = join((f"{paper.authors}: “{paper.title}”. {paper.venue}. ", doi(paper)))
    return Head(f"Reproduction · {study.item}", study.title, study.about, cite, facts)


def doi(paper: Paper) -> Markup:
    """A link to a paper; nothing for one without a DOI."""
    if not paper.doi.startswith("10."):
        return join(())
    return element("a", f"doi:{paper.doi}", href=f"https://doi.org/{paper.doi}")


def claims_section(claims: Sequence[Checked], against: str) -> list[Section]:
    """Each claim with its verdict; nothing without claims.

    Args:
        claims: checked.
        against: what each sentence is held against.
    """
    if not claims:
        return []
    lead = f"Each sentence is held against {against}."
    listed = claims_list((f"{describe(own)} ({own.claim.where})", own) for own in claims)
    return [Section("claims", "What the paper says", lead, listed)]


def claims_list(claims: Iterable[tuple[str, Checked]]) -> Markup:
    """Claims, each with what is said below it."""
    entries = [
        element(
            "li",
            element("span", checked.verdict, class_=f"badge {VERDICTS[checked.verdict]}"),
            element("p", checked.claim.text),
            element("span", below, class_="hint"),
        )
        for below, checked in claims
    ]
    return element("ul", join(entries), class_="claims")


def assumptions_list(found: Iterable[Assumption]) -> Markup:
    """Each with its origin as the term and as the class, in the order given."""
    return terms((element("dt", own.origin, class_=own.origin), own.text) for own in found)


def assumptions_section(found: Iterable[Assumption]) -> Section:
    """Every choice behind the numbers, and who made it."""
    lead = "Every choice behind these numbers, and who made it."
    return Section("assumptions", "What this rests on", lead, assumptions_list(found))
