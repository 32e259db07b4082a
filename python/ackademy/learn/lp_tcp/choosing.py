"""The threshold of a setup: the candidate with the best M_e over simulations (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ackademy.learn.lp_tcp.setups import Setup
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.runner.engines import Engine
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_tables import RunTables

CANDIDATES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""the paper's; th₀ comes on top"""
TABLES = ("summary", "links", "counters")
METRICS = ("throughput_mean_mbps", "delay_mean_ms", "loss_ratio", "m_e")


@dataclass(frozen=True, slots=True)
class Tried:
    """Results of LP-TCP with one threshold; means over runs and over its LP-TCP flows."""

    threshold: float
    throughput_mbps: float
    delay_ms: float
    loss_ratio: float
    m_e: float


def cells(
    setup: Setup, policy: str, threshold: float, runs: int, scenarios: Path
) -> tuple[Cell, ...]:
    """Runs of LP-TCP in a setup, seeds from 1; one sender draws nothing at random: one run.

    Args:
        setup: one sender, several, or a mix.
        policy: path of the forest.
        threshold: of the decision.
        runs: of a setup with several senders.
        scenarios: the folder of Kong 2018's networks.

    Raises:
        ScenarioError: if the scenario cannot be read.
    """
    path = scenarios / f"{network(setup)}.toml"
    overrides = {"dumbbell.bottleneck.queue.packets": str(setup.buffer_packets)}
    overrides["flow.1.count" if setup.mix else "flow.0.count"] = str(setup.senders - setup.mix)
    params = (("policy", policy), ("threshold", threshold))
    own = replace(
        experiments.of_file(path),
        overrides=tuple(overrides.items()),
        assignments=(Assignment("sender", "lp_tcp", params),),
    )
    return experiments.seeded(own, 1 if setup.senders == 1 else runs)


def measure(threshold: float, found: Sequence[Cell], folder: Path, flows: str = "sender*") -> Tried:
    """The metrics of finished cells, of the flows that a pattern names.

    Raises:
        ExperimentError: if a cell has not been run.
    """
    runs = []
    for cell in found:
        summary, links, counters = (experiments.read(folder, cell, name) for name in TABLES)
        runs.append(RunTables(summary, links, counters, flows))
    metrics = [metric_of(name) for name in METRICS]
    numbers = [m.statistic(np.stack([m.extract(run) for run in runs])) for m in metrics]
    return Tried(threshold, *numbers)


def run(
    found: Sequence[Sequence[Cell]], folder: Path, engine: Engine, progress: experiments.Progress
) -> experiments.CellsRun:
    """Run the missing cells of all candidates."""
    flat = [cell for candidate in found for cell in candidate]
    return experiments.run_cells(flat, folder, engine, progress)


def best(tried: Sequence[Tried]) -> Tried:
    """The candidate with the largest M_e; of equal ones the largest threshold."""
    return max(tried, key=lambda candidate: (candidate.m_e, candidate.threshold))


def network(setup: Setup) -> str:
    """Name of the scenario that has this setup's senders."""
    if setup.mix:
        return "kong2018_four_mix"
    return "kong2018_one_sender" if setup.senders == 1 else "kong2018_four_always_on"
