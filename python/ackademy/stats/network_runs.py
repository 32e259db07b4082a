"""What the runs of one controller on one network with one seed left, as measures read it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ackademy.backends.entries import fits
from ackademy.lazy import pl
from ackademy.stats.formulas import FloatArray
from ackademy.stats.run_tables import RunTables

BOTTLENECK = "bottleneck"
"""the link that measures are of; `bottleneck`, or `bottleneck_0` and so on"""
WARM_UP = 1.0 / 6.0
"""part of a run before its steady state: 10 s of 60"""


@dataclass(frozen=True)
class RunData:
    """One run."""

    tables: RunTables
    """with the tested controller's flows chosen"""
    flow_series: pl.DataFrame
    link_series: pl.DataFrame

    @property
    def duration_s(self) -> float:
        """Of the run."""
        return self.tables.duration_s

    @property
    def warm_s(self) -> float:
        """When the steady state is taken to begin."""
        return WARM_UP * self.duration_s

    @cached_property
    def own(self) -> pl.DataFrame:
        """The tested controller's flows."""
        return self.tables.of(self.tables.chosen)

    def flows(self, glob: str) -> pl.DataFrame:
        """The flows that a pattern names; none if there is none."""
        return self.tables.flows.filter(_fitting(self.tables.flows["flow"], glob))

    @cached_property
    def bottleneck(self) -> pl.DataFrame:
        """The bottleneck's row of the table of links."""
        return self.tables.links.filter(pl.col("link") == BOTTLENECK)

    def delivered(self, names: pl.Series, at_s: FloatArray) -> FloatArray:
        """Bytes that arrived until these times.

        Args:
            names: of the flows, shape (n_flows,).
            at_s: shape (n,), increasing.

        Returns:
            Shape (n, n_flows); 0 before a flow starts.
        """
        return self._at("delivered_bytes", names, at_s)

    def lost(self, names: pl.Series, at_s: FloatArray) -> FloatArray:
        """Packets dropped until these times, shape (n, n_flows)."""
        return self._at("lost_packets", names, at_s)

    def rates(self, names: pl.Series, edges_s: FloatArray) -> FloatArray:
        """Throughput between consecutive times.

        Args:
            names: of the flows, shape (n_flows,).
            edges_s: shape (n + 1,), increasing.

        Returns:
            Shape (n, n_flows); Mb/s, headers included.
        """
        bits = 8e-6 * np.diff(self.delivered(names, edges_s), axis=0)
        rates: FloatArray = bits / np.diff(edges_s)[:, None]
        return rates

    def waits_ms(self, rate_mbps: float) -> tuple[FloatArray, FloatArray]:
        """Times of samples and what the bottleneck's queue would take to drain then.

        Args:
            rate_mbps: of the bottleneck.

        Returns:
            Seconds and milliseconds, shape (n,) each.
        """
        own = self.link_series.filter(pl.col("link") == BOTTLENECK)
        queue = own["queue_bytes"].cast(pl.Float64).to_numpy()
        return own["time_s"].to_numpy(), 8e-3 * queue / rate_mbps

    def _at(self, column: str, names: pl.Series, at_s: FloatArray) -> FloatArray:
        found = np.zeros((at_s.size, len(names)))
        for index, name in enumerate(names):
            series = self._by_flow.get(name)
            if series is None:
                continue
            times, values = series["time_s"].to_numpy(), series[column].cast(pl.Float64).to_numpy()
            found[:, index] = np.interp(at_s, times, values, left=0.0)
        return found

    @cached_property
    def _by_flow(self) -> dict[str, pl.DataFrame]:
        parts = self.flow_series.partition_by("flow", as_dict=True)
        return {str(key[0]): frame for key, frame in parts.items()}


@dataclass(frozen=True, slots=True)
class Ran:
    """The runs on one network with one seed."""

    values: Mapping[str, object]
    """of the network, by placeholder"""
    runs: Mapping[str, RunData]
    """by variant"""

    @property
    def run(self) -> RunData:
        """The run that is measured: the last variant's."""
        return self.runs[list(self.runs)[-1]]

    def number(self, name: str) -> float:
        """A value of the network; `nan` if it is none or no number."""
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) else math.nan


def _fitting(names: pl.Series, glob: str) -> pl.Series:
    return pl.Series([fits([glob], name) for name in names], dtype=pl.Boolean)
