"""What a finished run left, as metrics read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from ackademy.backends import entries
from ackademy.errors import ExperimentError
from ackademy.lazy import pl
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import mean

COLUMNS = (
    "throughput_mbps",
    "delay_ms",
    "loss_ratio",
    "timeouts",
    "base_rtt_ms",
    "owd_ms",
    "goodput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
)
"""What is kept of each flow of each run; the last axis of `Measured.samples`."""
TP, D, P, TIMEOUTS, BASE, OWD, GOODPUT, P50, P95 = range(len(COLUMNS))


@dataclass(frozen=True, slots=True)
class RunTables:
    """What a finished run left, as metrics read it."""

    flows: pl.DataFrame
    """all flows, `summary` of a cell"""
    links: pl.DataFrame
    counters: pl.DataFrame
    chosen: str | tuple[bool, ...] = "*"
    """pattern of the flows that the row is about, or a switch per flow"""
    duration_s: float = math.nan
    """of the run"""
    connections: pl.DataFrame | None = None
    """all connections, if one of them has several subflows"""

    def of(self, glob: str | tuple[bool, ...]) -> pl.DataFrame:
        """The flows that a pattern names, or those of the switches that are on.

        Raises:
            ExperimentError: if there is none.
        """
        names = self.flows["flow"].to_list()
        if not names:
            raise ExperimentError("no flow arrived in a run; allowed: a longer duration_s")
        own = (
            [entries.fits([glob], name) for name in names] if isinstance(glob, str) else list(glob)
        )
        if all(own):
            return self.flows
        found = self.flows.filter(pl.Series(own, dtype=pl.Boolean))
        if found.is_empty():
            raise ExperimentError(f"flows {glob!r}: allowed: {', '.join(dict.fromkeys(names))}")
        return found

    def connected(self, glob: str) -> pl.DataFrame:
        """The connections that a pattern names.

        Raises:
            ExperimentError: if there is none, or no connection of the run has several subflows.
        """
        if self.connections is None:
            raise ExperimentError(
                f"connections {glob!r}: allowed: only where one has several subflows"
            )
        names = self.connections["connection"].to_list()
        own = [entries.fits([glob], name) for name in names]
        found = self.connections.filter(pl.Series(own, dtype=pl.Boolean))
        if found.is_empty():
            raise ExperimentError(f"connections {glob!r}: allowed: {', '.join(names[:20])}")
        return found


def per_flow(run: RunTables) -> FloatArray:
    """Shape (flows, len(COLUMNS)): the row's flows."""
    own = run.of(run.chosen)
    return np.array([own[name].cast(pl.Float64).to_numpy() for name in COLUMNS]).T


def stacked(runs: Sequence[FloatArray]) -> FloatArray:
    """Samples of several runs as one array whose first axis is runs.

    Where flows arrive at random, runs differ in their number of flows. The array is then one of
    arrays, of which `mean_over_runs` and `of_all_flows` take what a statistic needs.

    Args:
        runs: what `extract` of a metric gives of each; at least one.
    """
    if all(run.shape == runs[0].shape for run in runs):
        return np.stack(runs)
    found = np.empty(len(runs), object)
    for index, run in enumerate(runs):
        found[index] = run
    return cast("FloatArray", found)


def mean_over_runs(samples: FloatArray, number: Callable[[FloatArray], float]) -> float:
    """A mean over flows and runs.

    Runs of different numbers of flows count the same: it is then the mean of the runs' means.

    Args:
        samples: as `stacked` gives them, or of runs with equally many flows, shape (runs, ...).
        number: the mean, of runs with equally many flows.
    """
    if samples.dtype != object:
        return number(samples)
    return mean(np.array([number(run[None]) for run in samples]))


def of_all_flows(samples: FloatArray, column: int) -> FloatArray:
    """One column of every flow of every run, whatever the shape.

    Args:
        samples: as `stacked` gives them; the last axis is `COLUMNS`.
        column: of `COLUMNS`.
    """
    if samples.dtype != object:
        return samples[..., column]
    return np.concatenate([run[..., column] for run in samples])


def per_connection(run: RunTables) -> FloatArray:
    """Shape (4,): means over the row's connections, and the goodput of all connections.

    The order is goodput (Mb/s), delay (ms), round trip of the empty path (ms), goodput of all
    (Mb/s). Delay and empty round trip of a connection are those of its delivered packets, on
    whatever subflow whose delay is known; a connection without any is left out of both.

    Raises:
        ExperimentError: if no connection of the run has several subflows.
    """
    table = run.connected("*")
    owner = np.repeat(np.arange(table.height), table["subflows"].to_numpy())
    chosen = run.flows["flow"].is_in(run.of(run.chosen)["flow"].implode()).to_numpy()
    delivered = run.flows["received_packets"].cast(pl.Float64).to_numpy()
    own = np.bincount(owner, chosen, table.height) > 0.0
    goodput = table["goodput_mbps"].cast(pl.Float64).to_numpy()
    means = [mean(goodput[own])]
    for column in (D, BASE):
        of_flow = run.flows[COLUMNS[column]].cast(pl.Float64).to_numpy()
        counted = np.where(np.isfinite(of_flow), delivered, 0.0)
        totals = np.bincount(owner, counted, table.height)
        sums = np.bincount(owner, np.nan_to_num(of_flow) * counted, table.height)
        known = own & (totals > 0.0)
        means.append(mean(sums[known] / totals[known]) if known.any() else math.nan)
    return np.array([*means, mean(goodput)], np.float64)
