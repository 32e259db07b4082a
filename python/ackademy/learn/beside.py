"""What a policy does beside known controllers, on draws of what it was trained on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ackademy import _core
from ackademy.backends.schemes import Scheme
from ackademy.envs.opening import Source
from ackademy.errors import TrainingError
from ackademy.lazy import pl
from ackademy.runner import cases, engines, experiments, measured
from ackademy.runner.cases import Plan
from ackademy.runner.measured import Measured

RIVALS = ("cubic", "new_reno")
N_SEEDS = 24
FIRST_SEED = 1_000_001
"""of the runs: episodes of a training have seeds of 64 random bits"""
METRICS = {
    "throughput_mbps": "throughput_mean_mbps",
    "utilisation": "utilisation",
    "delay_ms": "delay_mean_ms",
    "loss_ratio": "loss",
    "jain": "jain_throughput",
}
"""by column, a mean over runs; the metric of the flows that learn, or that stand for them"""
COLUMNS = ("scenario", "controller", "runs", *METRICS, "fallbacks")


def evaluate(
    source: Source, learners: tuple[str, ...], folder: Path, *, seeds: int = N_SEEDS
) -> pl.DataFrame:
    """Run a policy and its rivals on the same scenarios.

    Args:
        source: a distribution, drawn from at the end of training; or a scenario.
        learners: patterns of the entries that the controllers govern.
        folder: of the policy.
        seeds: how many scenarios are drawn, or how often the one is run.

    Returns:
        A row per name of scenario and controller, columns `COLUMNS`; Jain's index only of several
        flows.

    Raises:
        TrainingError: if a run fails.
    """
    schemes = [Scheme("policy", "policy", (("policy", str(folder)),))]
    schemes += [Scheme(name, name) for name in RIVALS]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        drawn = []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            is_drawn = isinstance(source, _core.Distribution)
            own = source.draw(seed, 1.0) if isinstance(source, _core.Distribution) else source
            name = own.name.rpartition("-")[0] if is_drawn else own.name
            drawn.append(cases.of_scenario(own, place, learners, seed, name))
        metrics = (*METRICS.values(), "fallbacks")
        rows = measured.rows(drawn, schemes, Plan(1), metrics)
        every = [cell for row in rows for cell in row.cells]
        ran = experiments.run_cells(every, place, engines.local(1), experiments.quiet)
        if ran.failures:
            raise TrainingError(ran.failures[0].error)
        return _table(measured.measure(rows, place))


def _table(found: list[Measured]) -> pl.DataFrame:
    groups: dict[tuple[str, str], list[Measured]] = {}
    for own in found:
        groups.setdefault((own.row.name.group, own.row.name.scheme), []).append(own)
    rows = []
    for (group, scheme), members in groups.items():
        row: dict[str, object] = {"scenario": group, "controller": scheme, "runs": len(members)}
        for column, metric in METRICS.items():
            values = np.array([own.values[metric][0] for own in members if own.n_runs])
            if column == "jain" and all(len(own.flows[0]) < 2 for own in members if own.flows):
                values = values[:0]
            known = values[np.isfinite(values)]
            row[column] = float(known.mean()) if known.size else None
        fell = sum(float(own.values["fallbacks"][0]) for own in members if own.n_runs)
        rows.append({**row, "fallbacks": round(fell)})
    floats = dict.fromkeys(METRICS, pl.Float64())
    table = pl.DataFrame(rows, schema_overrides=floats)
    return table.sort("scenario", maintain_order=True).select(COLUMNS)
