"""Experiments that one paper alone has, in the terminal: numbers, claims, assumptions."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ackademy.console import Console
from ackademy.papers.knott2023.study import BetaFindings
from ackademy.papers.kong2018.f1_curves import CurveStudy
from ackademy.papers.learningcc.fluid_study import FluidFindings
from ackademy.render.sheets import papers as sheets
from ackademy.render.terminal import assumptions_table, claims_table, sheet
from ackademy.stats.intervals import NOMINAL


def f1_curves(study: CurveStudy, console: Console) -> Group:
    """The maxima, published and ours."""
    tables = sheet(sheets.f1_maxima(study), console)
    return Group(*tables, assumptions_table(study.assumptions))


def fluid(findings: FluidFindings, console: Console) -> Group:
    """A line per group and scheme."""
    tables = sheet(sheets.fluid(findings), console)
    return Group(*tables, assumptions_table(findings.study.assumptions))


def beta(findings: BetaFindings, console: Console) -> Group:
    """Published and learners' numbers by rate, then what is claimed and what is assumed."""
    study = findings.study
    runs = max((len(outcome.trainings) for outcome in findings.outcomes), default=0)
    note = f"Mean ± half the {NOMINAL} over {runs} learners, each with a seed of its own."
    parts: list[RenderableType] = [
        Text(study.about, style="dim"),
        *sheet(sheets.beta(findings), console),
        Text(note, style="dim"),
    ]
    if findings.claims:
        parts.append(claims_table(findings.claims))
    return Group(*parts, assumptions_table(study.assumptions))
