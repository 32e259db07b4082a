"""The results of a study: one table of numbers of single runs, one of estimates over runs.

Everything that is printed, drawn or written of a study comes from these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ackademy import lookup
from ackademy.errors import AckademyError
from ackademy.lazy import pl
from ackademy.stats.intervals import Interval

VALUES: Mapping[str, type[str | int | float]] = {
    **dict.fromkeys(("study", "scenario", "group", "scheme", "backend"), str),
    "seed": int,
    "flow": str,
    "metric": str,
    "value": float,
}
"""columns of the table of single runs; `flow` is empty where a number is of a whole run"""
ESTIMATES: Mapping[str, type[str | int | float]] = {
    **dict.fromkeys(("study", "scenario", "group", "scheme", "backend"), str),
    **dict.fromkeys(("metric", "statistic"), str),
    **dict.fromkeys(("estimate", "low", "high", "level"), float),
    "method": str,
    "n": int,
}
"""columns of the table of estimates; `level` is nominal, `n` counts runs"""


class Name(NamedTuple):
    """What a row of a study is of; together with the metric it is the key of an estimate."""

    scenario: str
    scheme: str
    group: str = ""
    """a part of the study, such as the network of a league; empty where it has none"""
    backend: str = "sim"


class Value(NamedTuple):
    """A number of one run."""

    name: Name
    seed: int
    metric: str
    value: float
    flow: str = ""


class Estimate(NamedTuple):
    """A statistic over runs with its interval."""

    name: Name
    metric: str
    statistic: str
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class Results:
    """Both tables of a study."""

    values: pl.DataFrame
    """columns `VALUES`, one row per run, flow and metric"""
    estimates: pl.DataFrame
    """columns `ESTIMATES`, one row per name and metric"""

    def csv(self) -> str:
        """The estimates as the text of a file; what is not finite is empty."""
        return finite(self.estimates).write_csv()

    def wide(self) -> pl.DataFrame:
        """One row per run and a column per metric: scenario, group, scheme, backend, seed, ..."""
        whole = self.values.filter(pl.col("flow") == "")
        names = ["scenario", "group", "scheme", "backend", "seed"]
        if whole.is_empty():
            return whole.select(names)
        pivoted = whole.pivot(on="metric", index=names, values="value", maintain_order=True)
        return finite(pivoted)

    def pivot(self, metric: str) -> pl.DataFrame:
        """Estimates of one metric: a row per scenario, a column per scheme.

        Where they differ, groups and backends have rows of their own.

        Raises:
            AckademyError: if there is no such metric.
        """
        chosen = self.estimates.filter(pl.col("metric") == metric)
        if chosen.is_empty():
            known = self.estimates["metric"].unique(maintain_order=True).to_list()
            near = lookup.similar(metric, known)
            more = f"similar: {', '.join(near)}; " if near else ""
            raise AckademyError(f"metric {metric!r}: {more}allowed: {', '.join(known)}")
        several = [name for name in ("group", "backend") if chosen[name].n_unique() > 1]
        return chosen.pivot(on="scheme", index=["scenario", *several], values="estimate")


def results(study: str, values: Iterable[Value], estimates: Iterable[Estimate]) -> Results:
    """The tables of a study, in the order given."""
    of_runs = [
        (study, v.name.scenario, v.name.group, v.name.scheme, v.name.backend, v.seed, v.flow,
         v.metric, v.value)
        for v in values
    ]  # fmt: skip
    over_runs = [
        (study, e.name.scenario, e.name.group, e.name.scheme, e.name.backend, e.metric,
         e.statistic, e.interval.value, e.interval.low, e.interval.high, e.interval.level,
         e.interval.method, e.n)
        for e in estimates
    ]  # fmt: skip
    return Results(
        pl.DataFrame(of_runs, schema=dict(VALUES), orient="row"),
        pl.DataFrame(over_runs, schema=dict(ESTIMATES), orient="row"),
    )


def finite(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with null where a number is not finite, as files have it."""
    numbers = pl.col(pl.Float64)
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers))
