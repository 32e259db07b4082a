"""Sets controllers side by side: every scenario under every controller, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ackademy.backends import Backend
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import AS_WRITTEN, Scheme
from ackademy.runner import experiments
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray, jain_index, m_e, pooled_loss
from ackademy.stats.intervals import Interval, jackknife_interval, t_interval

MERIT = "m_e"


@dataclass(frozen=True, slots=True)
class Column:
    """A number of the comparison, of one run."""

    key: str
    label: str
    unit: str
    about: str


COLUMNS = (
    Column("throughput_mbps", "throughput", "Mb/s", "mean over flows, headers included"),
    Column("goodput_mbps", "goodput", "Mb/s", "mean over flows, new payload only"),
    Column("delay_ms", "delay", "ms", "mean over flows of RTT above the empty path"),
    Column("loss_ratio", "loss", "", "packets dropped over packets sent, all flows together"),
    Column("utilisation", "utilisation", "", "of the busiest link"),
    Column("jain", "Jain", "", "fairness of the flows' throughputs"),
    Column(
        "m_e",
        "M_e",
        "",
        "ln throughput − 0.1 ln delay, each a mean over runs (Kong 2018, equation 5)",
    ),
)


@dataclass(frozen=True, slots=True)
class SchemeCase:
    """One scenario under one controller, over all its seeds."""

    scenario: str
    controller: str
    """label of the scheme"""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CaseScore:
    """A scheme on a network with what was measured."""

    scheme_case: SchemeCase
    estimates: Mapping[str, Interval]
    """by column; empty if every run failed"""
    delay_ms: FloatArray
    """per run, mean over flows"""
    throughput_mbps: FloatArray
    """per run, mean over flows"""
    samples: Mapping[str, FloatArray]
    """per run, by column"""
    n_runs: int
    """that count"""
    drawn: Cell | None
    """the cell with a time series"""
    kernel_runs: tuple[KernelRun, ...]
    """how the runs on the kernel went, those that do not count included"""

    @property
    def n_invalid(self) -> int:
        """Runs whose emulator was late; they are in no number."""
        return sum(not run.valid for run in self.kernel_runs)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario to compare schemes on."""

    name: str
    text: str
    origin: str
    """its path, for errors and for traces beside it"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How each scheme is run on each case."""

    runs: int = 5
    """seeds 1, 2, ..."""
    sample_interval_ms: float = 0.0
    """between rows of the time series of the first seed; 0 for none"""
    overrides: tuple[tuple[str, str], ...] = ()
    """TOML values by dotted path, for every case"""
    backend: Backend = "sim"


def case_of(path: Path) -> Case:
    """The case of a scenario file.

    Raises:
        ScenarioError: if it cannot be read.
    """
    return Case(path.stem, read_text(path), str(path))


def scheme_cases(
    cases: Sequence[Case], schemes: Sequence[Scheme], plan: Plan = Plan()
) -> list[SchemeCase]:
    """Every case under every scheme, or under its own controllers if there is no scheme."""
    return [
        SchemeCase(
            case.name,
            scheme.label,
            tuple(
                Cell(
                    text=case.text,
                    origin=case.origin,
                    controller=scheme.controller,
                    seed=seed,
                    overrides=plan.overrides,
                    params=scheme.params,
                    sample_interval_ms=plan.sample_interval_ms if seed == 1 else 0.0,
                    backend=plan.backend,
                )
                for seed in range(1, plan.runs + 1)
            ),
        )
        for case in cases
        for scheme in schemes or [Scheme(AS_WRITTEN, None)]
    ]


def case_scores(found: Sequence[SchemeCase], folder: Path) -> list[CaseScore]:
    """Measure what is on disk."""
    return [_case_score(scheme_case, folder) for scheme_case in found]


def _case_score(scheme_case: SchemeCase, folder: Path) -> CaseScore:
    finished, kernel_runs = experiments.countable(folder, scheme_case.cells)
    flows = [experiments.read(folder, cell, "summary") for cell in finished]
    links = [experiments.read(folder, cell, "links") for cell in finished]
    rows = [_one_run(flow, link) for flow, link in zip(flows, links, strict=True)]
    per_run = [column.key for column in COLUMNS if column.key != MERIT]
    values = {key: np.array([row[key] for row in rows]) for key in per_run}
    merits = m_e(values["throughput_mbps"], values["delay_ms"])
    return CaseScore(
        scheme_case=scheme_case,
        estimates=_estimates(values) if rows else {},
        delay_ms=values["delay_ms"],
        throughput_mbps=values["throughput_mbps"],
        samples={**values, MERIT: merits},
        n_runs=len(finished),
        drawn=next((cell for cell in finished if cell.sample_interval_ms > 0.0), None),
        kernel_runs=kernel_runs,
    )


def _estimates(values: Mapping[str, FloatArray]) -> dict[str, Interval]:
    """Student's intervals of means; M_e is one number of all runs, as in every other table."""
    means = {key: t_interval(array) for key, array in values.items()}
    runs = np.column_stack([values["throughput_mbps"], values["delay_ms"]])
    return {**means, MERIT: jackknife_interval(runs, _merit)}


def _merit(runs: FloatArray) -> float:
    throughput_mbps, delay_ms = runs.mean(axis=0)
    return float(m_e(throughput_mbps, delay_ms))


def _one_run(flows: pl.DataFrame, links: pl.DataFrame) -> dict[str, float]:
    throughput = flows["throughput_mbps"].to_numpy()
    delay = flows["delay_ms"].drop_nans().mean()
    mean_delay = float(delay) if isinstance(delay, float) else math.nan
    mean_throughput = float(throughput.mean()) if throughput.size else math.nan
    busiest = links["utilisation"].max()
    return {
        "throughput_mbps": mean_throughput,
        "goodput_mbps": float(flows["goodput_mbps"].to_numpy().mean()) if flows.height else 0.0,
        "delay_ms": mean_delay,
        "loss_ratio": pooled_loss(flows),
        "utilisation": float(busiest) if isinstance(busiest, float) else math.nan,
        "jain": jain_index(throughput) if throughput.size else math.nan,
    }
