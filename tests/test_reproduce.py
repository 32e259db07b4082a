"""From cells to a table beside the published one."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest

from ackademy import reproduce
from ackademy.measures import COLUMNS
from ackademy.papers import Claim, Experiment, Row
from ackademy.reproduce import Measured, Reproduction, check, difference_ratio


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
    assert measured.samples.shape == (4, 2, len(COLUMNS))
    mean = measured.estimates["throughput_mean_mbps"].value
    assert mean == pytest.approx(measured.samples[..., 0].mean())


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


def measured(name: str, throughput: float, spread: float) -> Measured:
    samples = np.ones((30, 1, len(COLUMNS)))
    samples[:, 0, 0] = np.random.default_rng(1).normal(throughput, spread, 30)
    return Measured(Row(name, "g", {}), samples, {}, None)


@pytest.mark.parametrize(
    ("throughput", "spread", "verdict"),
    [(12.0, 0.1, "holds"), (10.0, 0.1, "does not hold"), (10.9, 1.0, "undecided")],
)
def test_claim_holds_when_its_whole_interval_is_beyond_the_bound(
    throughput: float, spread: float, verdict: str
) -> None:
    rows = {("a", "g"): measured("a", throughput, spread), ("b", "g"): measured("b", 10.0, 0.1)}
    claim = Claim("", "", "throughput_mean_mbps", ("a", "g"), ("b", "g"), min_ratio=1.09)
    assert check(claim, rows).verdict == verdict


def test_upper_bound_of_a_claim_is_read_from_the_other_side() -> None:
    rows = {("a", "g"): measured("a", 5.0, 0.1), ("b", "g"): measured("b", 10.0, 0.1)}
    claim = Claim("", "", "throughput_mean_mbps", ("a", "g"), ("b", "g"), max_ratio=0.6)
    assert check(claim, rows).verdict == "holds"
    claim = Claim("", "", "throughput_mean_mbps", ("b", "g"), ("a", "g"), max_ratio=0.6)
    assert check(claim, rows).verdict == "does not hold"


def test_variances_are_compared_as_standard_deviations() -> None:
    assert difference_ratio("throughput_variance", 4.0, 9.0) == pytest.approx(0.5)
    assert difference_ratio("throughput_mean_mbps", 4.0, 9.0) == pytest.approx(1.25)
    assert math.isnan(difference_ratio("throughput_variance", 0.0, 1.0))
