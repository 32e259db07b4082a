"""Where nothing is random one run stands for all seeds, and no interval has a width of zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ackademy
from ackademy.backends.schemes import parse
from ackademy.runner import measured
from ackademy.runner.cases import Case, Plan
from ackademy.runner.engines import local
from ackademy.runner.experiments import CellsRun, missing, quiet, read, run_cells
from ackademy.stats.intervals import jackknife_interval, t_interval, welch_interval
from ackademy.studies import compare

FIXED = """
duration_s = 2
[dumbbell]
rtt_ms = 20
[dumbbell.bottleneck]
rate_mbps = 5
queue = { kind = "drop_tail", packets = 20 }
[[flow]]
controller = "new_reno"
count = 2
"""
DRAWN = {
    "starts": FIXED.replace("count = 2", "count = 2\nstart_spread_s = 0.5"),
    "loss": FIXED.replace(
        "rate_mbps = 5", 'rate_mbps = 5\nloss = { kind = "bernoulli", ratio = 0.01 }'
    ),
    "red": FIXED.replace('kind = "drop_tail", packets', 'kind = "pie", packets'),
    "traffic": FIXED.replace(
        "count = 2", 'traffic = { kind = "on_off", mean_bytes = 20000, mean_off_s = 0.1 }'
    ),
    "jitter": FIXED.replace("rate_mbps = 5", "rate_mbps = 5\njitter_ms = 1"),
    "hash": FIXED.replace('kind = "drop_tail", packets', 'kind = "fq_codel", packets'),
}


def run(
    tmp_path: Path, text: str, controllers: str = "new_reno"
) -> tuple[list[measured.Measured], CellsRun]:
    rows = measured.rows(
        [Case("case", text, "case.toml")], parse(controllers), Plan(3), compare.METRICS
    )
    ran = run_cells([cell for row in rows for cell in row.cells], tmp_path, local(1), quiet)
    return measured.measure(rows, tmp_path), ran


def test_a_scenario_without_chance_is_run_once_and_said_to_be(tmp_path: Path) -> None:
    (found,), ran = run(tmp_path, FIXED)
    assert (found.n_runs, found.is_fixed, found.seeds) == (1, True, (1,))
    assert (ran.n_cells, ran.n_reused, ran.n_fixed) == (1, 0, 2)
    line = compare.sheet([found]).lines[0]
    assert (line.note, line.runs) == ("1 run: deterministic", "1: deterministic")
    assert all("±" not in own.parts[0].text for own in line.cells)
    assert all(own.level == 0.0 for own in found.estimates.values())


def test_another_call_finds_the_one_run_and_other_seeds_read_it(tmp_path: Path) -> None:
    (found,), _ = run(tmp_path, FIXED)
    cells = found.row.cells
    assert missing(tmp_path, cells) == []
    (again,), ran = run(tmp_path, FIXED)
    assert (ran.n_cells, ran.n_reused, ran.n_fixed) == (1, 1, 2)
    assert again.estimates == found.estimates
    assert read(tmp_path, cells[2], "summary").equals(read(tmp_path, cells[0], "summary"))


@pytest.mark.parametrize("name", DRAWN)
def test_what_draws_a_number_is_run_with_every_seed(tmp_path: Path, name: str) -> None:
    (found,), ran = run(tmp_path, DRAWN[name])
    assert (found.n_runs, found.is_fixed, ran.n_fixed) == (3, False, 0)


def test_a_controller_that_draws_is_random_and_its_rival_is_not(tmp_path: Path) -> None:
    found, ran = run(tmp_path, FIXED, "cubic,bbr1")
    assert [own.is_fixed for own in found] == [True, False]
    assert [own.n_runs for own in found] == [1, 3]
    assert ran.n_fixed == 2


def test_a_run_says_whether_it_drew_a_number() -> None:
    assert not ackademy.run(FIXED).is_random
    assert ackademy.run(DRAWN["loss"]).is_random


def test_seeds_change_nothing_where_no_number_is_drawn() -> None:
    one, other = (ackademy.run(FIXED, seed=seed) for seed in (1, 99))
    assert one.flows.equals(other.flows)
    assert one.links.equals(other.links)


def test_equal_runs_have_no_interval() -> None:
    equal = np.full(5, 2.5)
    for found in (
        t_interval(equal),
        welch_interval(equal, equal),
        jackknife_interval(equal, lambda runs: float(runs.mean())),
    ):
        assert (found.method, found.level) == ("equal runs", 0.0)
        assert found.low == found.high == found.value
