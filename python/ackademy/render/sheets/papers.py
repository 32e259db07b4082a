"""The sheets of experiments that one paper alone has."""

from __future__ import annotations

from ackademy.papers.knott2023.study import METRICS, BetaFindings, Outcome, estimate, group_of
from ackademy.papers.kong2018.f1_curves import CurveStudy
from ackademy.papers.learningcc.fluid_study import FluidFindings
from ackademy.render.numbers import NONE, significant, with_interval
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell


def f1_maxima(study: CurveStudy) -> Sheet:
    """The threshold with the largest F1, published and ours."""
    labels = ("th₀ published", "th₀ ours", "F1", "precision", "recall")
    lines = []
    for curve in study.curves:
        th0 = curve.th0
        ours = [f"{value:.3f}" for value in (th0.f1, th0.precision, th0.recall)]
        texts = (f"{curve.published:g}", f"{th0.threshold:g}", *ours)
        lines.append(Line((Part(curve.name),), tuple(map(cell, texts))))
    title = f"{study.item}: {study.title}"
    return Sheet(title, (Head("(L, K)"),), tuple(map(Head, labels)), tuple(lines))


def fluid(findings: FluidFindings) -> Sheet:
    """A line per case and scheme: measured, by the model, and by the square-root law."""
    lines = tuple(
        Line(
            (Part(point.scheme), Part(point.group)),
            tuple(
                cell(NONE if share is None else f"{share:.3f}")
                for share in (point.measured, point.model, point.law)
            ),
        )
        for point in findings.points
    )
    heads = tuple(map(Head, ("measured", "fluid model", "square-root law")))
    title = f"{findings.study.item}: {findings.study.title}"
    return Sheet(title, (Head("scheme"), Head("group")), heads, lines)


def beta(findings: BetaFindings) -> Sheet:
    """A group per rate: the published numbers, then a line per learner."""
    study = findings.study
    lines = []
    for rate in study.rates_mbps:
        group = group_of(rate)
        printed = study.published.get(group, {})
        if printed:
            was = [significant(printed[m]) if m in printed else NONE for m in study.columns]
            cells = tuple(Cell((Part(text, "was"),)) for text in was)
            lines.append(Line((Part("published"),), cells, group))
        lines += [
            Line(
                (Part(outcome.learner.name),),
                tuple(_estimate(outcome, metric, printed.get(metric)) for metric in study.columns),
                group,
                note=f"{len(outcome.trainings)} runs",
                runs=str(len(outcome.trainings)),
            )
            for outcome in findings.outcomes
            if outcome.rate_mbps == rate
        ]
    heads = tuple(Head(METRICS[metric].label, METRICS[metric].unit) for metric in study.columns)
    title = f"{study.item}: {study.title}"
    return Sheet(title, (Head("learner"),), heads, tuple(lines), "rate")


def _estimate(outcome: Outcome, metric: str, printed: float | None) -> Cell:
    ours = estimate(outcome, metric)
    if ours is None:
        return cell(NONE)
    inside = printed is not None and ours.contains(printed)
    return Cell((Part(with_interval(ours), "good" if inside else ""),))
