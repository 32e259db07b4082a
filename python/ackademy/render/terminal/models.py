"""Models and curves of papers in the terminal: one table, then what is assumed."""

from __future__ import annotations

from rich.console import Group

from ackademy.console import Console
from ackademy.papers.kong2018.f1_curves import CurveStudy
from ackademy.papers.learningcc.fluid_study import FluidFindings
from ackademy.render.html.f1_curves import HEADS, numbers
from ackademy.render.terminal import assumptions_table, fitting, headed_table


def f1_curves(study: CurveStudy) -> Group:
    """The maxima, published and ours."""
    table = headed_table(f"{study.item}: {study.title}", ["(L, K)"], [*HEADS])
    for curve in study.curves:
        table.add_row(curve.name, *numbers(curve))
    return Group(table, assumptions_table(study.assumptions))


def fluid(findings: FluidFindings, console: Console) -> Group:
    """A line per group and scheme."""
    names = {
        "scheme": [point.scheme for point in findings.points],
        "": [point.group for point in findings.points],
    }
    shares = {
        "measured": [f"{point.measured:.3f}" for point in findings.points],
        "fluid model": [f"{point.model:.3f}" for point in findings.points],
        "square-root law": [
            "–" if point.law is None else f"{point.law:.3f}" for point in findings.points
        ],
    }
    title = f"{findings.study.item}: {findings.study.title}"
    tables = fitting(title, names, shares, console)
    return Group(*tables, assumptions_table(findings.study.assumptions))
