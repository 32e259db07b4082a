"""The page of a search: how the score grew, the best candidates, and where the best comes from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ackademy.render.html.markup import Markup, element
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import panel
from ackademy.render.numbers import padded, significant, with_interval
from ackademy.render.report import Report, Section
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet
from ackademy.stats.metrics import metric_of
from ackademy.studies.search.grammar import expression
from ackademy.studies.search.search import MEASURED, Candidate, Search, difference

SHOWN = 10
"""of the best candidates"""


def report(
    own: Search, references: Mapping[str, Candidate], command: str, benchmark: str
) -> Report:
    """What a search has found so far."""
    best, task = own.best, own.task
    failed = sum(one.score is None for one in own.found)
    facts = {
        "candidates": str(len(own.found)),
        "of them failed": str(failed),
        "networks": str(len(task.networks)),
    }
    if best:
        facts["best score"] = significant(best[0].score or 0.0)
    sections = [
        Section("best", "The best", f"Score: mean {metric_of(task.score).name}.", [_best(own)]),
    ]
    if best:
        against = [_against(best[0], references)] if references else []
        lead = (
            "Mean over the networks of the search of the best candidate's number minus the "
            "other's, with its 95 % interval. The search has chosen it by these networks, so this "
            f"is no judgement: `{benchmark}` is one."
        )
        sections += [
            *([Section("against", "Against others", lead, against)] if against else []),
            Section("rule", "The rule", "", [element("pre", element("code", own.text(best[0])))]),
            Section("lineage", "Where it comes from", "Its first parents.", [_lineage(own)]),
            Section("curve", "The search", "", [_curve(own)]),
        ]
    return Report(
        kind="Search",
        title=task.folder.name,
        about=f"Controllers from {task.template.name}, on {len(task.networks)} networks.",
        facts=facts,
        sections=sections,
        command=command,
    )


def _best(own: Search) -> Sheet:
    metrics = list(dict.fromkeys((own.task.score, *MEASURED)))
    lines = [
        Line(
            (Part(one.digest),),
            tuple(
                Cell((Part(significant(float(np.nanmean(one.values(name))), 4)),))
                for name in metrics
            ),
            note=f"generation {one.generation}",
        )
        for one in own.best[:SHOWN]
    ]
    heads = tuple(
        Head(metric_of(name).name, metric_of(name).unit, metric_of(name).about) for name in metrics
    )
    return Sheet("best candidates", (Head("candidate"),), heads, tuple(lines))


def _against(best: Candidate, references: Mapping[str, Candidate]) -> Sheet:
    lines = [
        Line(
            (Part(f"minus {name}"),),
            tuple(
                Cell((Part(with_interval(difference(best, other, metric), 3)),))
                for metric in MEASURED
            ),
        )
        for name, other in references.items()
    ]
    heads = tuple(Head(metric_of(name).name, metric_of(name).unit) for name in MEASURED)
    return Sheet("against others", (Head("difference"),), heads, tuple(lines))


def _lineage(own: Search) -> Sheet:
    """The best candidate and its ancestors, with the holes that each has changed."""
    line = own.lineage(own.best[0])
    lines = []
    for one, parent in zip(line, [*line[1:], None], strict=True):
        cells = (
            Cell((Part(significant(one.score or 0.0)),)),
            Cell(tuple(Part(text) for text in _changes(one, parent)) or (Part(""),)),
        )
        lines.append(Line((Part(one.digest),), cells, note=f"generation {one.generation}"))
    return Sheet(
        "lineage", (Head("candidate"),), (Head("score"), Head("what it has changed")), tuple(lines)
    )


def _changes(one: Candidate, parent: Candidate | None) -> list[str]:
    before = parent.holes if parent and parent.holes else {}
    return [
        f"{name} = {expression(tree)}"
        for name, tree in (one.holes or {}).items()
        if before.get(name) != tree
    ]


def _curve(own: Search) -> Markup:
    scores = np.array([np.nan if c.score is None else c.score for c in own.found], np.float64)
    sign = own.task.sign
    filled = np.where(np.isnan(scores), -np.inf, sign * scores)
    so_far = sign * np.maximum.accumulate(filled)
    known = scores[np.isfinite(scores)]
    low, high = np.quantile(known, 0.1 if sign > 0 else 0.0), known.max()
    x = np.arange(1, len(scores) + 1, dtype=np.float64)
    frame = Frame(
        Axis(0.0, float(len(scores)), "candidates"),
        Axis(*padded(float(low), float(high)), metric_of(own.task.score).name),
    )
    drawing = frame.draw(
        [
            element("path", class_="run", d=frame.dots(x, scores)),
            element("path", class_="line", d=frame.line(x, so_far)),
        ],
        label="score of every candidate, and the best so far",
    )
    return panel("score", element("div", drawing, class_="s1"))
