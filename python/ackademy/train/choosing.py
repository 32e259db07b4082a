"""The threshold of a setup: the candidate with the best M_e over simulations (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ackademy import experiments
from ackademy.cells import Cell
from ackademy.engines import Engine
from ackademy.measures import COLUMNS, METRICS
from ackademy.metrics import FloatArray
from ackademy.run import read_text
from ackademy.train.setups import Setup

CANDIDATES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""the paper's; th₀ comes on top"""


@dataclass(frozen=True, slots=True)
class Tried:
    """What LP-TCP did with one threshold; means over runs and over the flows that are LP-TCP."""

    threshold: float
    throughput_mbps: float
    delay_ms: float
    loss_ratio: float
    m_e: float


def cells(setup: Setup, policy: str, threshold: float, runs: int, scenarios: Path) -> list[Cell]:
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
    path = scenarios / f"{_network(setup)}.toml"
    params = (("policy", policy), ("threshold", threshold))
    overrides = {"dumbbell.bottleneck.queue.packets": str(setup.buffer_packets)}
    if setup.mix:
        overrides["flow.0.controller"] = '"lp_tcp"'
        overrides["flow.0.params"] = f'{{ policy = "{policy}", threshold = {threshold} }}'
        overrides["flow.1.count"] = str(setup.senders - 1)
    else:
        overrides["flow.0.count"] = str(setup.senders)
    return [
        Cell(
            text=read_text(path),
            origin=str(path),
            controller=None if setup.mix else "lp_tcp",
            seed=seed,
            overrides=tuple(overrides.items()),
            params=() if setup.mix else params,
        )
        for seed in range(1, (1 if setup.senders == 1 else runs) + 1)
    ]


def measure(threshold: float, found: Sequence[Cell], folder: Path) -> Tried:
    """The numbers of finished cells.

    Raises:
        ExperimentError: if a cell has not been run.
    """
    tables = [experiments.read(folder, cell, "summary") for cell in found]
    learners = [table.filter(pl.col("controller") == "lp_tcp") for table in tables]
    samples: FloatArray = np.stack(
        [table.select(pl.col(COLUMNS).cast(pl.Float64)).to_numpy() for table in learners]
    )
    names = ("throughput_mean_mbps", "delay_mean_ms", "loss_ratio", "m_e")
    return Tried(threshold, *(METRICS[name].statistic(samples) for name in names))


def run(
    found: Sequence[Sequence[Cell]], folder: Path, engine: Engine, progress: experiments.Progress
) -> experiments.Batch:
    """Run the cells of all candidates that are not there yet."""
    flat = [cell for candidate in found for cell in candidate]
    return experiments.run_cells(flat, folder, engine, progress)


def best(tried: Sequence[Tried]) -> Tried:
    """The candidate with the largest M_e; of equal ones the largest threshold, the mildest gate."""
    return max(tried, key=lambda candidate: (candidate.m_e, candidate.threshold))


def _network(setup: Setup) -> str:
    if setup.mix:
        return "kong2018_four_mix"
    return "kong2018_one_sender" if setup.senders == 1 else "kong2018_four_always_on"
