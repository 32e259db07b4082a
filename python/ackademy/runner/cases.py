"""Fixed schemes on drawn scenarios: cases, cells and scores.

A case is a scenario with a seed; the flows that the distribution calls learners are put under each
scheme in turn, everything else stays. Every run is a cell, so that nothing runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ackademy import _core
from ackademy.backends import distributions, entries
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.files import file_name
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.stats.scores import Score, score_of


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario and the seed of its runs."""

    scenario: _core.Scenario
    seed: int
    learners: tuple[str, ...]
    """patterns of the entries that a scheme governs"""

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.scenario.name


def drawn(
    distribution: _core.Distribution, seed: int, count: int, progress: float = 1.0
) -> list[Case]:
    """Cases of consecutive seeds; each seed draws a scenario and seeds its runs."""
    learners = tuple(distribution.learners)
    return [
        Case(scenario, own, learners)
        for own, scenario in distributions.drawn(distribution, seed, count, progress)
    ]


def cell(case: Case, own: EvaluatedScheme, folder: Path) -> Cell:
    """The run of a scheme on a case.

    Args:
        case: what to run.
        own: who governs the learners.
        folder: where traces that the scenario needs are put, as a file beside its own.
    """
    text, traces = case.scenario.portable()
    origin = folder / f"{file_name(case.name)}.toml"
    if traces:
        distributions.save(case.scenario, origin)
    patterns = [own for own in case.learners if entries.named(case.scenario, [own])]
    return Cell(
        text=text,
        origin=str(origin),
        controller=None,
        seed=case.seed,
        assignments=tuple(Assignment(glob, own.controller, own.params) for glob in patterns),
    )


def score(case: Case, own: Cell, folder: Path) -> Score:
    """Read a finished run.

    Raises:
        ExperimentError: if it has not been run.
    """
    flows = experiments.read(folder, own, "summary")
    links = experiments.read(folder, own, "links")
    counters = experiments.read(folder, own, "counters")
    rows = flows["flow"].to_list()
    flows = flows.filter(pl.Series(entries.governed(case.scenario, case.learners, rows)))
    return score_of(flows, links, counters, case.scenario.duration_s)
