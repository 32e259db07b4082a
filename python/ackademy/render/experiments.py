"""Findings of an experiment of a paper: as tables for the terminal, and as an HTML page."""

from __future__ import annotations

from rich.console import RenderableType

from ackademy.console import Console
from ackademy.papers import Findings
from ackademy.papers.knott2023.study import BetaFindings
from ackademy.papers.kong2018.f1_curves import CurveStudy
from ackademy.papers.learningcc.fluid_study import FluidFindings
from ackademy.render import terminal
from ackademy.render.html import f1_curves, learning, model
from ackademy.render.html import paper as paper_page
from ackademy.render.terminal import models
from ackademy.studies.table import TableFindings


def tables(findings: Findings, console: Console) -> RenderableType:
    """Numbers beside the published ones, claims, assumptions.

    Raises:
        TypeError: if there is no renderer for this class of findings.
    """
    match findings:
        case TableFindings():
            return terminal.reproduction(findings.reproduction, console)
        case BetaFindings():
            return models.beta(findings, console)
        case CurveStudy():
            return models.f1_curves(findings, console)
        case FluidFindings():
            return models.fluid(findings, console)
    raise TypeError(f"no terminal tables for {type(findings).__name__}")


def page(findings: Findings) -> str:
    """The HTML report, complete in itself.

    Raises:
        TypeError: if there is no renderer for this class of findings.
    """
    match findings:
        case TableFindings():
            return paper_page.page(findings.reproduction)
        case BetaFindings():
            return learning.page(findings)
        case CurveStudy():
            return f1_curves.page(findings)
        case FluidFindings():
            study = findings.study
            return model.page(study, findings.points, study.assumptions)
    raise TypeError(f"no page for {type(findings).__name__}")
