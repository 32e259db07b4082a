"""The page of a scorecard, to be attached to an Internet-Draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, repeat_section
from ackademy.render.html.shapes import bullets, fold
from ackademy.render.html.sheet import sheet
from ackademy.render.sheets import scorecard as sheets
from ackademy.stats.network_metrics import MEASURES
from ackademy.studies.scorecard.study import CheckResult, Plan, RowResult

CLASSES = {"pass": "holds", "fail": "fails", "reported": "undecided"}
"""of marks; the others are absent"""


def page(
    plan: Plan,
    found: Sequence[RowResult],
    command: str,
    facts: Sequence[str],
    repeat: Callable[[str], str],
) -> str:
    """The HTML file.

    Args:
        plan: what was to be run.
        found: what was measured.
        command: what the user typed.
        facts: lines about how it was run.
        repeat: the command that repeats a row.
    """
    counts: Counter[str] = Counter(own.mark.verdict for own in found)
    head = Head(
        kicker=f"Scorecard · {plan.card.document}",
        title=plan.title,
        about=plan.card.about,
        cite="",
        facts={
            word: str(counts[verdict])
            for verdict, word in (
                ("pass", "rows pass"),
                ("fail", "rows fail"),
                ("reported", "rows are reported without a mark"),
                ("not measured", "rows are not measured"),
                ("not applicable", "rows do not apply"),
            )
        },
    )
    lead = (
        "Each row is one demand of the document. Its mark is decided by all its measures; the "
        "reason names those that fail."
    )
    numbers = (
        "The mean over the networks of the measure that decided each row's mark, the first "
        "where several did, the same for the rivals on the "
        "same networks and seeds, and the mean paired difference to the first rival with its 95 % "
        "interval."
    )
    sections = [
        Section("summary", "All rows", lead, _summary(found)),
        Section("numbers", "What decided", numbers, sheet(sheets.summary(plan, list(found)))),
        Section("rows", "Row by row", "", join([_row(plan, own, repeat) for own in found])),
        Section("marks", "How the marks are decided", "", _rules()),
        Section("run", "How it was run", "", bullets(facts)),
        repeat_section(command),
    ]
    return document(head, sections)


def _summary(found: Sequence[RowResult]) -> Markup:
    """A line per row: mark, demand, why."""
    lines = []
    for own in found:
        anchor = element("a", f"{own.row.id} {own.row.name}", href=f"#row-{own.row.id}")
        badge = element(
            "span", own.mark.verdict, class_=f"badge {CLASSES.get(own.mark.verdict, 'absent')}"
        )
        text = element(
            "p", anchor, f" (section {own.row.section}, {own.row.word}): {own.row.about}"
        )
        why = element("p", own.mark.why, class_="hint") if own.mark.why else None
        lines.append(element("li", badge, text, why))
    return element("ul", join(lines), class_="claims")


def _row(plan: Plan, own: RowResult, repeat: Callable[[str], str]) -> Markup:
    verdict = own.mark.verdict
    head = element(
        "h3",
        f"{own.row.id} {own.row.name} ",
        element("span", verdict, class_=f"badge {CLASSES.get(verdict, 'absent')}"),
        id=f"row-{own.row.id}",
    )
    where = f"Section {own.row.section}, {own.row.word}. {own.row.about}"
    parts: list[Markup] = [head, element("p", where)]
    if own.mark.why:
        parts.append(element("p", own.mark.why, class_="hint"))
    parts += [element("p", note, class_="hint") for note in (own.row.note, *own.notes) if note]
    if own.checks:
        parts.append(sheet(sheets.checks(plan, own)))
        parts += [_networks(plan, check) for check in own.checks]
        parts.append(element("pre", element("code", repeat(own.row.id))))
    return element("article", join(parts))


def _networks(plan: Plan, own: CheckResult) -> Markup:
    about = MEASURES[own.check.measure].about
    durations = sorted({network.duration_s for network in own.networks})
    length = f"{durations[0]:g} s" if durations else ""
    length += f" to {durations[-1]:g} s" if len(durations) > 1 else ""
    hint = f"{len(own.values.networks)} networks, runs of {length}"
    body = (element("p", about, class_="hint"), sheet(sheets.networks(plan, own)))
    return fold(sheets.unit(own), *body, hint=hint)


def _rules() -> Markup:
    lines = (
        "RFC 9743 sets no thresholds and leaves the judgement to the community. Every bound here "
        "is a proposal of Ackademy.",
        "A bound holds if it holds on every network of the row, seeds averaged, unless the reason "
        "says p95, median or mean over networks.",
        "As good as a rival: the 95 % interval of the mean ratio to it, network by network, ends "
        "at most 5 % on the worse side. Student's t of the logarithms; a network is one "
        "observation. Where a value may be 0, the difference takes the place of the ratio. An "
        "interval that reaches farther fails the check: few networks may not suffice to show it.",
        "A row fails if one of its checks fails. Not applicable: the row asks for what this "
        "controller or backend does not have. Not measured: the runs are missing. Reported: "
        "no mark is proposed.",
    )
    return bullets(lines)
