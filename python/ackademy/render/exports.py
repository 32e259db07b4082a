"""Results as JSON and CSV, for other programs. Numbers that are not finite are null or empty."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ackademy import _core
from ackademy.backends.runs import Run
from ackademy.lazy import pl
from ackademy.stats.completion_times import QUANTILES, completion_times, quantiles
from ackademy.stats.formulas import FloatArray
from ackademy.stats.results import Results


def run_json(run: Run) -> str:
    """One run: what was run, fairness, flows, links, and connections of several subflows."""
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
            **({"connections": _rows(measured.connections)} if run.is_multipath else {}),
            "links": _rows(measured.links),
        }
    )


def run_csv(run: Run) -> str:
    """The flows of a run, one row each."""
    flows = run.metrics().flows
    return flows.with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv()


def results_json(results: Results, more: Mapping[str, object] | None = None) -> str:
    """A study: its estimates, and the numbers of single runs.

    Args:
        results: of the study.
        more: entries to put before them.
    """
    return _json(
        {
            **({"code": _core.CODE_HASH} if more is None else more),
            "estimates": _rows(results.estimates),
            "runs": _rows(results.wide()),
        }
    )


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


def _quantiles(values: FloatArray) -> dict[str, float | None]:
    found = quantiles(values)
    return {
        f"p{100 * part:g}": _number(float(own)) for part, own in zip(QUANTILES, found, strict=True)
    }


def _rows(frame: pl.DataFrame) -> list[dict[str, object]]:
    return [
        {key: _number(value) if isinstance(value, float) else value for key, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
