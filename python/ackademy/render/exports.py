"""Results as JSON and CSV, for other programs. Numbers that are not finite are null or empty."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ackademy import _core
from ackademy.backends.runs import Run
from ackademy.stats.completion_times import QUANTILES, completion_times
from ackademy.stats.formulas import FloatArray
from ackademy.studies.comparison import COLUMNS, CaseScore


def run_json(run: Run) -> str:
    """One run: what was run, fairness, its flows and its links."""
    measured = run.metrics()
    return _json(
        {
            "scenario": run.scenario.name,
            "duration_s": run.scenario.duration_s,
            "seed": run.seed,
            "backend": "sim" if run.kernel is None else "kernel",
            "code": run.code_hash,
            "jain_throughput": _number(measured.jain_throughput),
            "jain_delay": _number(measured.jain_delay),
            "completion": _completion(run),
            "flows": _rows(measured.flows),
            "links": _rows(measured.links),
        }
    )


def run_csv(run: Run) -> str:
    """The flows of a run, one row each."""
    flows = run.metrics().flows
    return flows.with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv()


def estimates(case_scores: Sequence[CaseScore]) -> pl.DataFrame:
    """What a comparison estimates, one row per scenario, scheme and metric.

    Returns:
        Columns scenario, scheme, metric, unit, mean, low, high (the 95 % interval), runs; nothing
        for a scheme without a finished run.
    """
    rows = [
        (
            case_score.scheme_case.scenario,
            case_score.scheme_case.controller,
            column.key,
            column.unit,
            *map(_number, (interval.value, interval.low, interval.high)),
            case_score.n_runs,
        )
        for case_score in case_scores
        for column in COLUMNS
        for interval in [case_score.estimates.get(column.key)]
        if interval is not None
    ]
    schema = {
        **dict.fromkeys(("scenario", "scheme", "metric", "unit"), pl.String()),
        **dict.fromkeys(("mean", "low", "high"), pl.Float64()),
        "runs": pl.Int64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def samples(case_scores: Sequence[CaseScore]) -> pl.DataFrame:
    """The numbers of single runs: scenario, scheme, run (from 1) and a column per metric."""
    frames = [
        pl.DataFrame({key: values for key, values in case_score.samples.items()}).select(
            pl.lit(case_score.scheme_case.scenario).alias("scenario"),
            pl.lit(case_score.scheme_case.controller).alias("scheme"),
            (pl.int_range(pl.len()) + 1).alias("run"),
            pl.all(),
        )
        for case_score in case_scores
        if case_score.n_runs
    ]
    return pl.concat(frames) if frames else pl.DataFrame()


def comparison_json(case_scores: Sequence[CaseScore]) -> str:
    """A comparison: its estimates, and the numbers of single runs."""
    return _json(
        {
            "code": _core.CODE_HASH,
            "estimates": _rows(estimates(case_scores)),
            "runs": _rows(samples(case_scores)),
        }
    )


def comparison_csv(case_scores: Sequence[CaseScore]) -> str:
    """The estimates of a comparison, one row per scenario, scheme and metric."""
    return estimates(case_scores).write_csv()


def _completion(run: Run) -> list[dict[str, object]]:
    """Quantiles of completion times, all and by size; empty for few transfers."""
    times = completion_times(run, run.scenario.duration_s)
    return [
        {
            "transfers": name,
            "count": int(own.fct_ms.size),
            "fct_ms": _quantiles(own.fct_ms),
            "slowdown": _quantiles(own.slowdown),
        }
        for name, own in (times.groups() if times is not None else [])
    ]


def _quantiles(values: FloatArray) -> dict[str, float]:
    return {f"p{100 * part:g}": float(np.quantile(values, part)) for part in QUANTILES}


def _rows(frame: pl.DataFrame) -> list[dict[str, object]]:
    return [
        {key: _number(value) if isinstance(value, float) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
