"""Frozen controllers on drawn scenarios: who is tried, on what, and how it did.

A trial is a scenario with a seed; the flows that the distribution calls learners are put under each
entrant in turn, everything else stays. Every run is a cell, so that nothing runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ackademy import _core
from ackademy.backends import distributions, entries
from ackademy.backends.schemes import Entrant
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.stats.scores import Score, score_of


@dataclass(frozen=True, slots=True)
class Trial:
    """A scenario and the seed of its runs."""

    scenario: _core.Scenario
    seed: int
    learners: tuple[str, ...]
    """patterns of the entries that an entrant governs"""

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.scenario.name


def drawn(
    distribution: _core.Distribution, seed: int, count: int, progress: float = 1.0
) -> list[Trial]:
    """Trials of consecutive seeds; a scenario's seed is that of its runs too."""
    learners = tuple(distribution.learners)
    return [
        Trial(scenario, own, learners)
        for own, scenario in distributions.drawn(distribution, seed, count, progress)
    ]


def cell(trial: Trial, own: Entrant, folder: Path) -> Cell:
    """The run of an entrant on a trial.

    Args:
        trial: what to run.
        own: who governs the learners.
        folder: where traces that the scenario needs are put, as a file beside its own.
    """
    text, traces = trial.scenario.portable()
    origin = folder / f"{trial.name}.toml"
    if traces:
        distributions.save(trial.scenario, origin)
    patterns = [own for own in trial.learners if entries.named(trial.scenario, [own])]
    return Cell(
        text=text,
        origin=str(origin),
        controller=None,
        seed=trial.seed,
        assignments=tuple(Assignment(glob, own.controller, own.params) for glob in patterns),
    )


def score(trial: Trial, own: Cell, folder: Path) -> Score:
    """Read a finished run.

    Raises:
        ExperimentError: if it has not been run.
    """
    flows = experiments.read(folder, own, "summary")
    links = experiments.read(folder, own, "links")
    counters = experiments.read(folder, own, "counters")
    rows = flows["flow"].to_list()
    flows = flows.filter(pl.Series(entries.governed(trial.scenario, trial.learners, rows)))
    return score_of(flows, links, counters, trial.scenario.duration_s)
