"""From cells to a table beside the published one."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ackademy.runner.measured import Row as MeasuredRow
from ackademy.stats.claims import Bound, Case, Claim
from ackademy.stats.formulas import FloatArray
from ackademy.stats.results import Name
from ackademy.stats.run_tables import COLUMNS
from ackademy.studies.reproduce import study as reproduce
from ackademy.studies.reproduce.files import Experiment, Row
from ackademy.studies.reproduce.study import Reproduced, Reproduction, check_rows, difference_ratio


def test_deterministic_row_is_run_once_and_missing_rows_never(result: Reproduction) -> None:
    assert [measured.n_runs for measured in result.rows] == [4, 4, 1, 0]


def test_first_run_of_each_row_has_a_time_series(experiment: Experiment) -> None:
    cells = reproduce.cells_of(experiment, experiment.rows[0], 4)
    assert [cell.sample_interval_ms for cell in cells] == [100.0, 0.0, 0.0, 0.0]
    assert [cell.seed for cell in cells] == [1, 2, 3, 4]


def test_csv_has_a_line_per_row_and_metric(result: Reproduction) -> None:
    lines = list(csv.DictReader(io.StringIO(reproduce.to_csv(result))))
    assert len(lines) == 4 * 5
    assert list(lines[0]) == ["row", "metric", "published", "ours", "ci_low", "ci_high", "runs"]
    by_name = {(line["row"], line["metric"]): line for line in lines}
    ours = by_name["NewReno short", "throughput_mean_mbps"]
    assert float(ours["ci_low"]) <= float(ours["ours"]) <= float(ours["ci_high"])
    assert by_name["LP-TCP short", "m_e"]["ours"] == ""
    assert by_name["LP-TCP short", "m_e"]["runs"] == "0"


def test_mean_over_runs_and_flows_is_the_mean_of_all_cells(result: Reproduction) -> None:
    measured = result.rows[0]
    assert measured.of_flows.shape == (4, 2, len(COLUMNS))
    mean = measured.estimates["throughput_mean_mbps"].value
    assert mean == pytest.approx(measured.of_flows[..., 0].mean())


def test_collecting_twice_gives_the_same_intervals(
    experiment: Experiment, result: Reproduction
) -> None:
    again = reproduce.collect(experiment, 4, result.folder)
    assert reproduce.to_csv(again) == reproduce.to_csv(result)


def test_nothing_run_yet_is_an_empty_table(experiment: Experiment, tmp_path: Path) -> None:
    empty = reproduce.collect(experiment, 4, tmp_path / "none")
    assert not any(measured.n_runs for measured in empty.rows)
    assert {checked.verdict for checked in empty.claims} == {"not run"}


def test_claims_about_rows_that_are_missing_are_not_run(result: Reproduction) -> None:
    assert [checked.verdict for checked in result.claims] == ["holds", "not run"]


def of(row: Row, samples: FloatArray) -> Reproduced:
    """A row with runs of one flow."""
    seeds = tuple(range(1, len(samples) + 1))
    own = MeasuredRow(Name("", row.scheme, row.group), (), ())
    return Reproduced(own, seeds, {}, {}, of_flows=samples, printed=row)


def measured(name: str, throughput: float, spread: float) -> Reproduced:
    samples = np.ones((30, 1, len(COLUMNS)))
    samples[:, 0, 0] = np.random.default_rng(1).normal(throughput, spread, 30)
    return of(Row(name, "g", {}), samples)


def rows_of(ours: Reproduced, other: Reproduced) -> dict[tuple[str, str], Reproduced]:
    return {row.printed.name: row for row in (ours, other)}


@pytest.mark.parametrize("bound", ["min_difference", "min_ratio"])
@pytest.mark.parametrize("metric", ["throughput_mean_mbps", "m_e"])
def test_rows_of_the_same_runs_are_compared_run_by_run(bound: Bound, metric: str) -> None:
    together = measured("a", 10.0, 3.0)
    above = of(Row("b", "g", {}), together.of_flows * 1.01)
    apart = of(Row("b", "g", {}, controller="cubic"), above.of_flows)
    limit = 0.0 if bound == "min_difference" else 1.0
    claim = Claim("", "", metric, (Case(("b", "g"), ("a", "g")),), bound, limit)
    assert check_rows(claim, rows_of(together, above)).verdict == "holds"
    assert check_rows(claim, rows_of(together, apart)).verdict == "undecided"


def test_strict_claim_does_not_hold_on_a_tie() -> None:
    same = {name: measured(name[0], 5.0, 0.0) for name in (("a", "g"), ("b", "g"))}
    claim = claim_of("min_ratio", 1.0, ("a", "b"))
    assert check_rows(claim, same).verdict == "holds"
    assert check_rows(replace(claim, strict=True), same).verdict == "does not hold"


@pytest.mark.parametrize("bound", ["min_value", "min_difference", "min_ratio"])
def test_intervals_of_means_of_five_runs_hold_the_truth_in_95_of_100_cases(bound: Bound) -> None:
    rng, cases = np.random.default_rng(7), 1000
    against = None if bound == "min_value" else "b"
    truth = {"min_value": 10.0, "min_difference": 2.0, "min_ratio": 1.25}[bound]
    held = 0
    for _ in range(cases):
        rows = {}
        for name, mean in (("a", 10.0), ("b", 8.0)):
            samples = rng.normal(mean, 1.0, (5, 1, len(COLUMNS)))
            row = Row(name, "g", {}, controller=name)
            rows[name, "g"] = of(row, samples)
        observed = check_rows(claim_of(bound, 0.0, ("a", against)), rows).observed
        assert observed is not None
        held += observed.contains(truth)
    assert 0.93 <= held / cases <= 0.975


def claim_of(bound: Bound, limit: float, *cases: tuple[str, str | None]) -> Claim:
    """That mean throughput keeps the bound in these cases, each a scheme and perhaps another."""
    named = tuple(
        Case((ours, "g"), (other, "g") if other is not None else None) for ours, other in cases
    )
    return Claim("", "", "throughput_mean_mbps", named, bound, limit)


@pytest.mark.parametrize(
    ("throughput", "spread", "verdict"),
    [(12.0, 0.1, "holds"), (10.0, 0.1, "does not hold"), (10.9, 1.0, "undecided")],
)
def test_claim_holds_when_its_whole_interval_is_beyond_the_bound(
    throughput: float, spread: float, verdict: str
) -> None:
    rows = {("a", "g"): measured("a", throughput, spread), ("b", "g"): measured("b", 10.0, 0.1)}
    assert check_rows(claim_of("min_ratio", 1.09, ("a", "b")), rows).verdict == verdict


def test_upper_bound_of_a_claim_is_read_from_the_other_side() -> None:
    rows = {("a", "g"): measured("a", 5.0, 0.1), ("b", "g"): measured("b", 10.0, 0.1)}
    assert check_rows(claim_of("max_ratio", 0.6, ("a", "b")), rows).verdict == "holds"
    assert check_rows(claim_of("max_ratio", 0.6, ("b", "a")), rows).verdict == "does not hold"


@pytest.mark.parametrize(
    ("bound", "limit", "verdict"),
    [
        ("min_value", 4.5, "holds"),
        ("min_value", 5.5, "does not hold"),
        ("max_value", 5.5, "holds"),
        ("max_value", 4.5, "does not hold"),
    ],
)
def test_claim_about_a_value_needs_no_other_row(bound: Bound, limit: float, verdict: str) -> None:
    rows = {("a", "g"): measured("a", 5.0, 0.1)}
    checked = check_rows(claim_of(bound, limit, ("a", None)), rows)
    assert checked.verdict == verdict
    assert checked.observed is not None
    assert checked.observed.value == pytest.approx(5.0, abs=0.1)


def test_difference_may_be_bounded_from_above() -> None:
    rows = {("a", "g"): measured("a", 5.0, 0.1), ("b", "g"): measured("b", 10.0, 0.1)}
    assert check_rows(claim_of("max_difference", -4.0, ("a", "b")), rows).verdict == "holds"
    assert check_rows(claim_of("max_difference", -6.0, ("a", "b")), rows).verdict == "does not hold"


def test_claim_in_all_cases_fails_with_one_of_them_and_names_it() -> None:
    rows = {(name, "g"): measured(name, rate, 0.1) for name, rate in (("a", 5.0), ("b", 3.0))}
    claim = claim_of("min_value", 4.0, ("a", None), ("b", None))
    checked = check_rows(claim, rows)
    assert checked.verdict == "does not hold"
    assert [failed.case.row for failed in checked.failures] == [("b", "g")]
    assert checked.observed is not None
    assert checked.observed.value == pytest.approx(3.0, abs=0.1)
    alone = claim_of("min_value", 4.0, ("a", None))
    assert check_rows(alone, rows).verdict == "holds"


def test_variances_are_compared_as_standard_deviations() -> None:
    assert difference_ratio("throughput_variance", 4.0, 9.0) == pytest.approx(0.5)
    assert difference_ratio("throughput_mean_mbps", 4.0, 9.0) == pytest.approx(1.25)
    assert math.isnan(difference_ratio("throughput_variance", 0.0, 1.0))


def test_the_estimates_of_a_table_are_a_results_table(result: Reproduction) -> None:
    found = reproduce.tables(result)
    own = found.estimates.filter(scheme="NewReno", group="short", metric="delay_mean_ms")
    interval = result.rows[0].estimates["delay_mean_ms"]
    assert (own["estimate"].item(), own["low"].item()) == (interval.value, interval.low)
    assert (own["n"].item(), own["statistic"].item()) == (4, "mean")
    runs = found.values.filter(scheme="NewReno", group="short", metric="delay_ms")
    assert runs["seed"].unique(maintain_order=True).to_list() == [1, 2, 3, 4]
    assert runs["flow"].n_unique() == 2
    assert runs["value"].mean() == pytest.approx(interval.value)
