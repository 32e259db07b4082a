"""The sheet of `certify`: a line per property."""

from __future__ import annotations

import math

from ackademy.policies.certificates import Verdict
from ackademy.render.numbers import NONE
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, number
from ackademy.studies.certify import Certified

HEADS = (
    Head("states", "", "recorded states to which the property applies"),
    Head("coverage", "", "mean share of the bounds that lies where it should"),
    Head("certified", "%", "states without a counterexample in any slice: proved"),
    Head("refuted", "%", "states with a counterexample that was found"),
    Head("worst", "", "largest excess over the limit at a point; 0 or less: none"),
)


def certificates(name: str, found: Certified) -> Sheet:
    """A line per property that applies to the policy."""
    lines = [Line((Part(own.name),), _cells(own), remark=own.says) for own in found.verdicts]
    return Sheet(f"certificates of {name}", (Head("property"),), HEADS, tuple(lines))


def _cells(own: Verdict) -> tuple[Cell, ...]:
    return (
        cell(str(own.states)),
        _number(own.coverage, own.coverage),
        _number(100 * own.certified, own.certified),
        _number(100 * own.refuted, own.refuted),
        _number(own.worst, own.worst),
    )


def _number(shown: float, value: float) -> Cell:
    return cell(NONE) if math.isnan(value) else number(shown)
