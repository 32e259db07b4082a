"""The sheets of one run: its flows, its links, completion times of many transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ackademy.backends.runs import Run
from ackademy.render.numbers import significant
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of
from ackademy.stats.completion_times import QUANTILES, CompletionTimes, quantiles

FLOW_HEADS: Mapping[str, Head] = {
    "throughput_mbps": head_of("throughput_mean_mbps"),
    "goodput_mbps": head_of("goodput_mean_mbps"),
    "delay_ms": head_of("delay_mean_ms"),
    "owd_ms": Head("one-way", "ms"),
    "loss_ratio": head_of("loss"),
    "stall_max_ms": head_of("stall_max_ms"),
    "m_e": head_of("m_e"),
    "timeouts": head_of("timeouts"),
}
CONNECTION_HEADS: Mapping[str, Head] = {
    "subflows": Head("subflows"),
    "goodput_mbps": Head("application goodput", "Mb/s"),
    "reinjected_bytes": Head("reinjected", "bytes"),
    "duplicate_bytes": Head("duplicates", "bytes"),
    "reorder_peak_bytes": Head("reorder peak", "bytes"),
}
LINK_HEADS: Mapping[str, Head] = {
    "utilisation": Head("utilisation"),
    "goodput_share": Head("goodput share"),
    "wait_ms": Head("wait", "ms"),
    "loss_ratio": Head("link loss", about="packets lost over packets offered to the link"),
    "queue_drops": Head("queue drops"),
    "marked_packets": Head("marked"),
}


def flows(title: str, run: Run, count: int) -> Sheet:
    """The first flows of a run."""
    found = run.metrics().flows.head(count)
    return _sheet(title, found, ("flow", "controller"), FLOW_HEADS)


def connections(run: Run, count: int) -> Sheet:
    """The first connections of a run, what their applications read."""
    found = run.metrics().connections.head(count)
    return _sheet("connections", found, ("connection", "controller", "scheduler"), CONNECTION_HEADS)


def links(run: Run) -> Sheet:
    """The links that carried packets."""
    busy = run.links.filter(pl.col("arrived_packets") > 0)
    counts = busy.select("link", "queue_drops", "marked_packets")
    found = run.metrics().links.join(counts, on="link", maintain_order="left")
    return _sheet("links", found, ("link",), LINK_HEADS)


def completions(title: str, times: CompletionTimes) -> Sheet:
    """Quantiles of completion times and slowdowns, by size of the transfers."""
    parts = [f"p{100 * part:g}" for part in QUANTILES]
    heads = [Head(f"FCT {part}", "ms") for part in parts]
    heads += [Head(f"slowdown {part}") for part in parts]
    lines = []
    for name, own in times.groups():
        found = [quantiles(values) for values in (own.fct_ms, own.slowdown)]
        cells = tuple(cell(significant(float(v), 3), float(v)) for v in np.concatenate(found))
        lines.append(Line((Part(f"{name} ({own.fct_ms.size})"),), cells))
    return Sheet(title, (Head("transfers"),), tuple(heads), tuple(lines))


def unknown_slowdowns(times: CompletionTimes) -> str:
    """How many transfers have no slowdown, and why; empty if all have one."""
    count = times.n_without_slowdown
    if not count:
        return ""
    return f"{count} of {times.fct_ms.size} have no slowdown: their empty path takes no time. "


def _sheet(
    title: str, frame: pl.DataFrame, names: Sequence[str], heads: Mapping[str, Head]
) -> Sheet:
    lines = tuple(
        Line(
            tuple(Part(str(row[name])) for name in names),
            tuple(_cell(row[key]) for key in heads),
        )
        for row in frame.iter_rows(named=True)
    )
    return Sheet(title, tuple(map(Head, names)), tuple(heads.values()), lines)


def _cell(value: float) -> Cell:
    """A count as it is, else four significant digits."""
    return cell(str(value) if isinstance(value, int) else significant(value), float(value))
