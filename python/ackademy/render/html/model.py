"""The report of an analytic model beside what was measured: a chart per case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackademy.papers.learningcc.fluid_study import Point
from ackademy.render.html.experiment import assumptions_section, reproduction_head
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Section, document
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import legend, panel, ring
from ackademy.studies.experiment_files import Assumption, Item

LEAD = "Dots: measured. Lines: the fluid model. Rings: the square-root law."


def page(study: Item, points: Sequence[Point], assumptions: Sequence[Assumption]) -> str:
    """The HTML file."""
    head = reproduction_head(study, {})
    charts = [_chart(case, points) for case in dict.fromkeys(point.case for point in points)]
    cases = Section("cases", "Cases", LEAD, join(charts))
    return document(head, [cases, assumptions_section(assumptions)])


def _chart(case: str, points: Sequence[Point]) -> Markup:
    own = sorted((point for point in points if point.case == case), key=lambda point: point.x)
    schemes = list(dict.fromkeys(point.scheme for point in points))
    ends = own[0].x - 0.25, own[-1].x + 0.25
    frame = Frame(Axis(*ends, "random loss, %"), Axis(0.0, 1.05, "share of the link"))
    content, keys = [], []
    for index, scheme in enumerate(schemes):
        line = [point for point in own if point.scheme == scheme]
        x = np.array([point.x for point in line])
        model, measured = (
            np.array([getattr(point, name) for point in line]) for name in ("model", "measured")
        )
        content.append(
            element(
                "g",
                element("path", class_="stroke", d=frame.line(x, model)),
                element("path", class_="centre", d=frame.dots(x, measured)),
                class_=f"s{index}",
            )
        )
        keys.append((scheme, f"s{index}"))
        law = np.array([np.nan if point.law is None else point.law for point in line])
        if np.isfinite(law).any():
            content.append(element("g", ring(frame.dots(x, law)), class_=f"s{index}"))
            keys.append((f"{scheme}, law", "ring"))
    drawing = frame.draw(content, label=f"{case}: share of the link by loss", class_="figure")
    return panel(case.capitalize(), legend(keys), drawing, class_="panel drawn")
