"""The numbers of one run: throughput, delay, loss, fairness, utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ackademy.backends.tables import Tables, frame_html, frame_text
from ackademy.stats import formulas


@dataclass(frozen=True, slots=True, repr=False)
class Metrics:
    """The numbers of a report, from `Tables`."""

    flows: pl.DataFrame
    """one row per flow: throughput_mbps, goodput_mbps, delay_ms, owd_ms, loss_ratio, m_e, ..."""
    connections: pl.DataFrame
    """one row per connection: subflows, goodput_mbps, reinjected_bytes, reorder_peak_bytes, ..."""
    links: pl.DataFrame
    """one row per link: utilisation, goodput_share, loss_ratio, wait_ms, ..."""
    jain_throughput: float
    """fairness of the flows' throughputs"""
    jain_delay: float
    """fairness of the flows' delays; `nan` if a flow has no sample"""
    jain_goodput: float
    """fairness of the connections' goodputs"""

    def __repr__(self) -> str:
        named = "".join(f"\n{name}\n{frame_text(frame)}" for name, frame in self._frames().items())
        return f"Metrics: {self._fairness()}{named}"

    def _repr_html_(self) -> str:
        shown = "".join(f"<p>{name}</p>{frame_html(own)}" for name, own in self._frames().items())
        return f"<p>{self._fairness()}</p>{shown}"

    def _frames(self) -> dict[str, pl.DataFrame]:
        """What is shown; connections only if one has several subflows."""
        several = bool((self.connections["subflows"] > 1).any())
        frames = {"flows": self.flows, "connections": self.connections, "links": self.links}
        return {name: own for name, own in frames.items() if several or name != "connections"}

    def _fairness(self) -> str:
        if self.flows.height < 2:
            return "one flow"
        return (
            f"Jain's index {self.jain_throughput:.4g} (throughput), {self.jain_delay:.4g} (delay)"
        )


def measure(tables: Tables) -> Metrics:
    """The numbers of a report, by the definitions in `stats.formulas`.

    Frames are made of whole columns, without Polars' expressions: those need its threads, which a
    forked process does not have, and would wait for them for ever.
    """
    flows, links = tables.flows, tables.links
    throughput = formulas.throughput_mbps(_column(flows, "delivered_bytes"), _active(flows))
    delay = formulas.delay_ms(_column(flows, "rtt_at_delivery_ms"), _column(flows, "base_rtt_ms"))
    per_flow = _frame(
        flows,
        ("flow", "controller"),
        throughput_mbps=throughput,
        goodput_mbps=formulas.goodput_mbps(_column(flows, "goodput_bytes"), _active(flows)),
        delay_ms=delay,
        owd_ms=_column(flows, "owd_mean_ms"),
        loss_ratio=formulas.loss_ratio(
            _column(flows, "dropped_packets"), _column(flows, "sent_packets")
        ),
        m_e=formulas.m_e(throughput, delay),
        timeouts=_column(flows, "timeouts"),
        stall_max_ms=_column(flows, "stall_max_ms"),
    )
    per_link = _frame(
        links,
        ("link",),
        utilisation=formulas.utilisation(
            _column(links, "delivered_bytes"), _column(links, "capacity_bytes")
        ),
        goodput_share=formulas.goodput_share(
            _column(links, "goodput_bytes"), _column(links, "capacity_bytes")
        ),
        loss_ratio=formulas.loss_ratio(
            _column(links, "queue_drops") + _column(links, "random_losses"),
            _column(links, "arrived_packets"),
        ),
        wait_ms=_column(links, "wait_mean_ms"),
    )
    connections = tables.connections
    goodput = formulas.goodput_mbps(_column(connections, "goodput_bytes"), _active(connections))
    names = ("connection", "controller", "subflows", "scheduler")
    counts = ("reinjected_bytes", "duplicate_bytes", "reorder_peak_bytes")
    per_connection = _frame(connections, names + counts, goodput_mbps=goodput)
    has_delay = bool(delay.size) and bool(np.all(delay >= 0.0))
    return Metrics(
        flows=per_flow,
        connections=per_connection,
        links=per_link,
        jain_throughput=formulas.jain_index(throughput) if throughput.size else float("nan"),
        jain_delay=formulas.jain_index(delay) if has_delay else float("nan"),
        jain_goodput=formulas.jain_index(goodput) if goodput.size else float("nan"),
    )


def _frame(table: pl.DataFrame, kept: Sequence[str], **more: formulas.FloatArray) -> pl.DataFrame:
    """Columns of a table, and new ones."""
    made = [pl.Series(name, values) for name, values in more.items()]
    return pl.DataFrame([*(table[name] for name in kept), *made])


def _active(flows: pl.DataFrame) -> formulas.FloatArray:
    return _column(flows, "active_s")


def _column(table: pl.DataFrame, name: str) -> formulas.FloatArray:
    return table[name].cast(pl.Float64).to_numpy()
