"""What a policy does beside known controllers, on scenarios it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ackademy import _core, interrupts
from ackademy.backends import entries
from ackademy.backends.runs import measure, simulate
from ackademy.envs.opening import Source
from ackademy.stats.formulas import jain_index, pooled_loss
from ackademy.studies.evaluate import FIRST_SEED

RIVALS = ("cubic", "new_reno")
N_SEEDS = 24
COLUMNS = ("scenario", "controller", "runs", "throughput_mbps", "utilisation", "delay_ms",
           "loss_ratio", "jain", "fallbacks")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """One run under one controller; means over the flows that learn, or that stand for them."""

    scenario: str
    controller: str
    throughput_mbps: float
    utilisation: float
    """of the busiest link, by all flows"""
    delay_ms: float
    """round trip above the empty path"""
    loss_ratio: float
    jain: float
    """of the flows' throughputs; nan for one alone"""
    fallbacks: int
    """flows that were handed over to CUBIC"""


def judge(
    source: Source, learners: tuple[str, ...], folder: Path, *, seeds: int = N_SEEDS
) -> pl.DataFrame:
    """Run a policy and its rivals on the same scenarios.

    Args:
        source: a distribution, drawn from at the end of training; or a scenario.
        learners: patterns of the entries that the controllers govern.
        folder: of the policy.
        seeds: how many scenarios are drawn, or how often the one is run.

    Returns:
        A row per name of scenario and controller, columns `COLUMNS`.
    """
    rows: list[Judged] = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        is_drawn = isinstance(source, _core.Distribution)
        scenario = source.draw(seed, 1.0) if isinstance(source, _core.Distribution) else source
        name = scenario.name.rpartition("-")[0] if is_drawn else scenario.name
        for cc in ("policy", *RIVALS):
            interrupts.check()
            rows.append(_run(name, scenario, learners, cc, folder, seed))
    return _table(rows)


def _run(
    name: str,
    scenario: _core.Scenario,
    learners: tuple[str, ...],
    cc: str,
    folder: Path,
    seed: int,
) -> Judged:
    params: dict[str, float | str] = {"policy": str(folder)} if cc == "policy" else {}
    chosen = entries.named(scenario, learners)
    governed = scenario.with_controller(cc, params, chosen)
    tables = simulate(governed, seed, 0.0)
    metrics = measure(tables)
    rows = metrics.flows["flow"].to_list()
    of_learners = pl.Series(entries.governed(scenario, learners, rows))
    flows = metrics.flows.filter(of_learners)
    throughput = flows["throughput_mbps"].to_numpy()
    counters = tables.counters.filter(pl.col("name") == "fallbacks")
    return Judged(
        scenario=name,
        controller=cc,
        throughput_mbps=float(throughput.mean()),
        utilisation=float(np.max(metrics.links["utilisation"].to_numpy())),
        delay_ms=float(np.nanmean(flows["delay_ms"].to_numpy())),
        loss_ratio=pooled_loss(tables.flows.filter(of_learners)),
        jain=jain_index(throughput) if throughput.size > 1 else float("nan"),
        fallbacks=int(counters["value"].sum()),
    )


def _table(rows: Sequence[Judged]) -> pl.DataFrame:
    fields = {name: [getattr(row, name) for row in rows] for name in Judged.__slots__}
    frame = pl.DataFrame(fields).with_columns(pl.col("jain").fill_nan(None))
    means = [pl.col(n).mean() for n in COLUMNS[3:-1]]
    grouped = frame.group_by("scenario", "controller", maintain_order=True)
    table = grouped.agg(pl.len().alias("runs"), *means, pl.col("fallbacks").sum())
    return table.sort("scenario", maintain_order=True).select(COLUMNS)
