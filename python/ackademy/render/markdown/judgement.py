"""What the card of a policy has of a judgement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ackademy.render.markdown.sheet import sheet
from ackademy.render.sheet import Sheet
from ackademy.studies.judgement import Guarded, Study


def card(study: Study, sheets: Sequence[Sheet], guarded: Guarded) -> str:
    """The section: verdicts, who dominates whom, and the judged scheme by class.

    Args:
        study: what was run.
        sheets: in this order.
        guarded: how often guards decided.
    """
    verdicts, dominance, kinds = sheets
    own = study.schemes[0].name
    others = ",".join(scheme.name for scheme in study.schemes[1:])
    outside, calm = (100 * guarded.share(left) for left in (guarded.outside, guarded.calm))
    kept = [line for line in kinds.lines if line.names[1].text == own]
    return f"""\
{study.about.strip()}

{len(study.cases)} networks, one seed each. The list's digest:

    {study.digest}

Intervals are 95 % over networks. The page "Evaluating policies" of the
documentation defines the numbers, which this command printed:

    ackademy judge {own} --links {study.origin} --against {others} --card

{sheet(verdicts)}

Of {guarded.decisions} decisions the guard of unfamiliar networks left {outside:.1f} % to the law,
and {calm:.1f} % were without contention, where a policy that acts under it alone does nothing.
Flows handed over to CUBIC: {guarded.fallbacks or "none"}.

{sheet(dominance)}

The line's scheme dominates the column's on so many per cent of the networks. This policy by class:

{sheet(replace(kinds, lines=tuple(kept)))}
"""
