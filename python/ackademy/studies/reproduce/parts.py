"""What the reports of all experiments of papers have: heading, claims, assumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.shapes import terms
from ackademy.render.numbers import significant
from ackademy.render.report import Item as ReportItem
from ackademy.render.report import Only, Report, Section, in_brief, in_terminal
from ackademy.render.sheet import Part, Style
from ackademy.stats.claims import Checked, CheckedCase
from ackademy.stats.metrics import metric_of
from ackademy.studies.reproduce.files import Assumption, Item, Paper

VERDICTS = {
    "holds": "holds",
    "undecided": "undecided",
    "does not hold": "fails",
    "not run": "absent",
}
"""by verdict, in order of their lists, the class of its badge"""
SIGNS = {"holds": "✓", "does not hold": "✗", "undecided": "≈", "not run": "–"}
"""by verdict, as on the page"""
STYLES: Mapping[str, Style] = {"holds": "good", "does not hold": "bad", "undecided": "warn"}
"""by verdict, in a terminal"""


def item_report(study: Item, facts: Mapping[str, str], sections: Sequence[Section]) -> Report:
    """The report of one item, with what it cites."""
    paper = study.paper
    cite = join((f"{paper.authors}: “{paper.title}”. {paper.venue}. ", doi(paper)))
    kind = f"Reproduction · {study.item}"
    return Report(kind, study.title, study.about, sections, facts, cite=cite)


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
    holding = sum(checked.verdict == "holds" for checked in claims)
    told = f"{holding} of {len(claims)} claims of the paper hold"
    items: list[ReportItem] = [
        claims_list((f"{describe(own)} ({own.claim.where})", own) for own in claims),
        Only(Part(told, "bold"), ("terminal", "brief")),
        *(in_brief(_verdict(own)) for own in sorted(claims, key=_rank)),
    ]
    for own in claims:
        if own.verdict != "holds":
            words = f"  {own.verdict}: {own.claim.text}"
            items.append(in_terminal(Part(words, STYLES.get(own.verdict, "dim"))))
            items.append(in_terminal(f"    {describe(own)}"))
        words = f"- {own.verdict}: {own.claim.text} {describe(own)} ({own.claim.where})"
        items.append(Only(words, ("markdown",)))
    lead = f"Each sentence is held against {against}."
    return [Section("claims", "What the paper says", lead, items)]


def _rank(own: Checked) -> int:
    """Its place in a list: first those that hold."""
    return list(VERDICTS).index(own.verdict)


def _verdict(own: Checked) -> Part:
    return Part(f"{SIGNS[own.verdict]} {own.claim.text}", STYLES.get(own.verdict, "dim"))


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


def assumptions_section(found: Sequence[Assumption], more: Sequence[ReportItem] = ()) -> Section:
    """Every choice behind the numbers, and who made it.

    Args:
        found: in order; a terminal has how many there are of each origin.
        more: further items.
    """
    lead = "Every choice behind these numbers, and who made it."
    counts = Counter(entry.origin for entry in found)
    origins = ", ".join(f"{count} {origin}" for origin, count in counts.items())
    words = f"{len(found)} assumptions ({origins}): --full prints them"
    told = [in_terminal(words)] if found else []
    whole = [Only(f"- {own.origin}: {own.text}", ("markdown",)) for own in found]
    items = [assumptions_list(found), *more, *told, *whole]
    return Section("assumptions", "What this rests on", lead, items)


def describe(checked: Checked) -> str:
    """What was observed and what the claim asks for, in a few words."""
    claim = checked.claim
    label = metric_of(claim.metric).label
    kind, of = claim.bound.split("_")
    what = label if of == "value" else f"{of} of {label}"
    bound = f"claimed at {'least' if kind == 'min' else 'most'} {significant(claim.limit)}"
    if len(checked.cases) == 1:
        (only,) = checked.cases
        return f"{_pair(only)}: {_seen(only, what)}; {bound}"
    order = {"does not hold": 0, "undecided": 1, "not run": 2, "holds": 3}
    shown = [case for case in checked.cases if case.verdict != "holds"]
    holding = len(checked.cases) - len(shown)
    text = f"{holding} of {len(checked.cases)} cases hold; {bound}"
    for case in sorted(shown, key=lambda case: order[case.verdict]):
        text += f"; {case.verdict}: {_pair(case)}: {_seen(case, what)}"
    if not shown and checked.observed is not None:
        text += f"; nearest to the bound: {what} {significant(checked.observed.value)}"
    return text


def _pair(checked: CheckedCase) -> str:
    row, against = checked.case.row, checked.case.against
    return f"{' '.join(row)} against {' '.join(against)}" if against else " ".join(row)


def _seen(checked: CheckedCase, what: str) -> str:
    seen = checked.observed
    if seen is None:
        return f"{what} not run"
    if seen.low == seen.high:
        return f"{what} {significant(seen.value)}"
    return (
        f"{what} {significant(seen.value)}, "
        f"nominal 95 % {significant(seen.low)} to {significant(seen.high)}"
    )
