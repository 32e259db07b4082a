"""Claims of papers in words."""

from __future__ import annotations

from ackademy.render.numbers import significant
from ackademy.stats.claims import Checked, CheckedCase
from ackademy.stats.metrics import metric_of

VERDICTS = {
    "holds": "holds",
    "does not hold": "fails",
    "undecided": "undecided",
    "not run": "absent",
}
"""by verdict, the class of its badge"""


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
