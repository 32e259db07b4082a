"""The report of F1 curves: threshold by threshold, and their maxima beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ackademy.papers.kong2018.f1_curves import Curve, CurveStudy
from ackademy.render.html.experiment import assumptions_section, reproduction_head
from ackademy.render.html.markup import Markup, element
from ackademy.render.html.page import Section, document
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import legend, ring
from ackademy.render.html.sheet import sheet
from ackademy.render.sheets.papers import f1_maxima
from ackademy.stats.formulas import FloatArray


def page(study: CurveStudy) -> str:
    """The HTML report."""
    head = reproduction_head(study, {})
    keys = legend((curve.name, f"s{index}") for index, curve in enumerate(study.curves))
    drawing = element("figure", keys, _drawn(study.curves), class_="panel drawn")
    lead = "Rings are the maxima, th₀. Packets the forest has not been fitted to."
    return document(
        head,
        [
            Section("curves", "F1 by threshold", lead, drawing),
            Section("maxima", "th₀, published and ours", "", sheet(f1_maxima(study))),
            assumptions_section(study.assumptions),
        ],
    )


def _drawn(curves: Sequence[Curve]) -> Markup:
    frame = Frame(Axis(0.0, 1.0, "threshold th"), Axis(0.0, 1.0, "F1"))
    content = []
    for index, curve in enumerate(curves):
        x: FloatArray = np.array([score.threshold for score in curve.scores])
        y: FloatArray = np.array([score.f1 for score in curve.scores])
        peak = frame.dots(np.array([curve.th0.threshold]), np.array([curve.th0.f1]))
        content.append(
            element(
                "g",
                element("path", class_="stroke", d=frame.line(x, y)),
                ring(peak),
                class_=f"s{index}",
            )
        )
    return frame.draw(content, label="F1 by threshold", class_="figure")
