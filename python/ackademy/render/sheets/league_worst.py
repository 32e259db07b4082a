"""The sheet of the worst cases of a league."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.numbers import NONE
from ackademy.render.sheet import Head, Line, Part, Sheet, cell, head_of, number
from ackademy.studies.stress import Finding, in_words


def worst(found: Sequence[tuple[str, Sequence[Finding]]], budget: int) -> Sheet:
    """The worst network that a search found for each scheme, the smallest regret there first.

    Args:
        found: by scheme, its findings, the worst first; none where no network has any regret.
        budget: networks that the search ran for each.
    """
    heads = (
        Head("regret", "nats", "−ln share + ln(RTT over ideal), mean over four seeds"),
        head_of("fair_share"),
        head_of("rtt_over_ideal"),
        Head("loss"),
        Head("family"),
        Head("network", about="what differs from the family's plain network"),
        Head("kept", about="networks that are kept as scenario files"),
    )
    ordered = sorted(found, key=lambda own: own[1][0].tried.value if own[1] else 0.0)
    lines = tuple(_line(name, findings) for name, findings in ordered)
    title = f"worst case of {budget} searched networks each"
    return Sheet(title, (Head("scheme"),), heads, lines)


def _line(name: str, findings: Sequence[Finding]) -> Line:
    if not findings:
        return Line((Part(name),), (number(0.0), *(cell(NONE) for _ in range(5)), cell("0", 0.0)))
    tried = findings[0].tried
    return Line(
        (Part(name),),
        (
            number(tried.value),
            number(tried.own.fair_share),
            number(tried.own.rtt_over_ideal),
            number(tried.own.loss_ratio),
            cell(tried.network.family.name),
            cell(in_words(tried.network)),
            cell(str(len(findings)), len(findings)),
        ),
    )
