"""The same cells on a Ray cluster of two nodes in this process group: the same bytes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ackademy import EngineError
from ackademy.runner.cells import Cell
from ackademy.runner.engines import local, ray_cluster
from ackademy.runner.experiments import quiet, run_cells


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_cluster_leaves_the_same_bytes(dumbbell: Path, tmp_path: Path, address: str) -> None:
    cell = Cell(dumbbell.read_text(), str(dumbbell), "rl_tcp", seed=1, sample_interval_ms=100.0)
    cells = [cell, *(replace(cell, seed=seed) for seed in range(2, 7))]
    bad = replace(cell, controller=f"{tmp_path}/bad.py:Bad")
    (tmp_path / "bad.py").write_text("class Bad:\n    on_ack = on_loss = print\n")
    run_cells(cells, tmp_path / "here", local(1), quiet)
    batch = run_cells([*cells, bad], tmp_path / "ray", ray_cluster(address), quiet)
    assert [failure.cell for failure in batch.failures] == [bad]
    assert "too many positional arguments" in batch.failures[0].error
    here, there = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "here", tmp_path / "ray")
    )
    assert here == there
    assert len(here) == 6 * 6


@pytest.mark.usefixtures("ray")
@pytest.mark.filterwarnings("ignore")
def test_address_without_a_cluster_is_one_line(dumbbell: Path, tmp_path: Path) -> None:
    cell = Cell(dumbbell.read_text(), str(dumbbell), None, seed=1)
    with pytest.raises(EngineError, match="no Ray cluster there"):
        run_cells([cell], tmp_path, ray_cluster("127.0.0.1:1"), quiet)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
@pytest.mark.filterwarnings("ignore")
def test_ray_without_an_address_is_a_cluster_of_this_process(
    dumbbell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # that of a cluster which is gone
    cell = Cell(dumbbell.read_text(), str(dumbbell), "cubic", seed=1)
    assert not run_cells([cell], tmp_path, ray_cluster(None), quiet).failures


def test_missing_ray_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError, match="make build EXTRAS=ray"):
        ray_cluster(None)
