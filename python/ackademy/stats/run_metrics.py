"""The numbers of one run: throughput, delay, loss, fairness, utilisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ackademy.backends.tables import Column, Columns, Frames, Tables, frame_html, frame_text
from ackademy.lazy import pl
from ackademy.stats import formulas


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Metrics(Frames):
    """The numbers of a report, from `Tables`.

    Flows have throughput_mbps, goodput_mbps, delay_ms, owd_ms, loss_ratio, m_e, ...; connections
    subflows, goodput_mbps, reinjected_bytes, reorder_peak_bytes, ...; links utilisation,
    goodput_share, loss_ratio, wait_ms, ...
    """

    jain_throughput: float
    """fairness of the flows' throughputs"""
    jain_delay: float
    """fairness of the flows' delays; `nan` if a flow has no sample"""
    jain_goodput: float
    """fairness of the connections' goodputs"""

    def __repr__(self) -> str:
        named = "".join(f"\n{name}\n{frame_text(frame)}" for name, frame in self._shown().items())
        return f"Metrics: {self._fairness()}{named}"

    def _repr_html_(self) -> str:
        shown = "".join(f"<p>{name}</p>{frame_html(own)}" for name, own in self._shown().items())
        return f"<p>{self._fairness()}</p>{shown}"

    def _shown(self) -> dict[str, pl.DataFrame]:
        """The tables, without connections if none has several subflows."""
        names = (name for name in self.columns if self.is_multipath or name != "connections")
        return {name: self.frame(name) for name in names}

    def _fairness(self) -> str:
        if self.height("flows") < 2:
            return "one flow"
        return (
            f"Jain's index {self.jain_throughput:.4g} (throughput), {self.jain_delay:.4g} (delay)"
        )


def measure(tables: Tables) -> Metrics:
    """The numbers of a report, by the definitions in `stats.formulas`."""
    flows, links = partial(tables.floats, "flows"), partial(tables.floats, "links")
    throughput = formulas.throughput_mbps(flows("delivered_bytes"), flows("active_s"))
    delay = formulas.delay_ms(flows("rtt_at_delivery_ms"), flows("base_rtt_ms"))
    per_flow = {
        **_kept(tables.columns["flows"], "flow", "controller"),
        "throughput_mbps": throughput,
        "goodput_mbps": formulas.goodput_mbps(flows("goodput_bytes"), flows("active_s")),
        "delay_ms": delay,
        "owd_ms": flows("owd_mean_ms"),
        "loss_ratio": formulas.loss_ratio(flows("dropped_packets"), flows("sent_packets")),
        "m_e": formulas.m_e(throughput, delay),
        "timeouts": flows("timeouts"),
        "stall_max_ms": flows("stall_max_ms"),
    }
    lost = links("queue_drops") + links("random_losses")
    per_link = {
        **_kept(tables.columns["links"], "link"),
        "utilisation": formulas.utilisation(links("delivered_bytes"), links("capacity_bytes")),
        "goodput_share": formulas.goodput_share(links("goodput_bytes"), links("capacity_bytes")),
        "loss_ratio": formulas.loss_ratio(lost, links("arrived_packets")),
        "wait_ms": links("wait_mean_ms"),
    }
    connections = partial(tables.floats, "connections")
    goodput = formulas.goodput_mbps(connections("goodput_bytes"), connections("active_s"))
    names = ("connection", "controller", "subflows", "scheduler")
    counts = ("reinjected_bytes", "duplicate_bytes", "reorder_peak_bytes")
    per_connection = _kept(tables.columns["connections"], *names, *counts)
    has_delay = bool(delay.size) and bool(np.all(delay >= 0.0))
    return Metrics(
        {
            "flows": per_flow,
            "connections": {**per_connection, "goodput_mbps": goodput},
            "links": per_link,
        },
        jain_throughput=formulas.jain_index(throughput) if throughput.size else float("nan"),
        jain_delay=formulas.jain_index(delay) if has_delay else float("nan"),
        jain_goodput=formulas.jain_index(goodput) if goodput.size else float("nan"),
    )


def _kept(table: Columns, *names: str) -> dict[str, Column]:
    return {name: table[name] for name in names}
