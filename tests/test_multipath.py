"""Connections of several subflows: their table, what `run` prints, and what a cell keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import ackademy
from ackademy.runner.cells import Cell, compute
from ackademy.stats import formulas
from ackademy.studies import run as runs

ROOT = Path(__file__).parent.parent
TWO_PATHS = """
duration_s = 5
two_path = { first = { rate_mbps = 8, delay_ms = 10 }, second = { rate_mbps = 4, delay_ms = 20 } }
"""
MULTIPATH = TWO_PATHS + '[[flow]]\nname = "both"\nmultipath = true\n[[flow]]\nname = "one"\n'
SINGLE = TWO_PATHS + '[[flow]]\nname = "one"\n'


def cell(text: str) -> Cell:
    return Cell(text, "network.toml", None, 1)


def test_a_connection_has_one_row_whatever_its_subflows() -> None:
    run = runs.run(MULTIPATH)
    assert run.flows["flow"].to_list() == ["both.0", "both.1", "one"]
    assert run.connections["connection"].to_list() == ["both", "one"]
    assert run.connections["subflows"].to_list() == [2, 1]
    assert run.connections["scheduler"].to_list() == ["min_rtt", ""]


def test_the_goodput_of_a_connection_is_what_its_application_read() -> None:
    run = runs.run(MULTIPATH)
    read = run.connections["goodput_bytes"].to_list()
    subflows = run.flows["goodput_bytes"].to_list()
    assert 0.9 * sum(subflows[:2]) < read[0] <= sum(subflows[:2])
    assert read[1] == subflows[2]
    measured = run.metrics()
    assert measured.connections["goodput_mbps"].to_list() == pytest.approx(
        [8e-6 * value / 5 for value in read]
    )
    jain = formulas.jain_index(measured.connections["goodput_mbps"].to_numpy())
    assert measured.jain_goodput == pytest.approx(jain)


def test_run_prints_and_exports_connections_only_where_one_has_several_subflows(
    tmp_path: Path,
) -> None:
    for name, text, shown in (("many", MULTIPATH, True), ("single", SINGLE, False)):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        page, export = tmp_path / f"{name}.html", tmp_path / f"{name}.json"
        words = ("run", path.name, "--html", page.name, "--json", export.name)
        command = [sys.executable, "-c", "from ackademy.cli import main; main()", *words]
        out = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert ("reinjected" in out.stdout) == shown, out.stdout
        assert ("Reinjected bytes" in page.read_text(encoding="utf-8")) == shown
        assert ("connections" in json.loads(export.read_text(encoding="utf-8"))) == shown


def test_a_cell_keeps_its_connections_only_where_one_has_several_subflows() -> None:
    assert "connections.parquet" not in compute(cell(SINGLE))
    found = pl.read_parquet(compute(cell(MULTIPATH))["connections.parquet"])
    assert found["connection"].to_list() == ["both", "one"]
    assert found["goodput_mbps"].to_list()[0] > 8.0


def test_the_schedulers_differ_in_what_comes_twice() -> None:
    came_twice = {
        scheduler: runs.run(MULTIPATH.replace("= true", f'= true\nmptcp.scheduler = "{scheduler}"'))
        .connections["duplicate_bytes"]
        .to_list()[0]
        for scheduler in ("min_rtt", "round_robin", "redundant")
    }
    assert came_twice["min_rtt"] == came_twice["round_robin"] == 0
    assert came_twice["redundant"] > 1_000_000


@pytest.mark.parametrize("name", ["two_wifi", "shared_bottleneck", "multipath_beside_tcp"])
def test_a_preset_of_several_subflows_runs(name: str) -> None:
    run = ackademy.run(ROOT / "data/scenarios" / f"{name}.toml", cc="new_reno")
    many = run.connections.filter(pl.col("subflows") > 1)
    assert many.height >= 1
    assert (many["goodput_bytes"] > 1_000_000).all()
