"""`ackademy sweep`: one setting over several values."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ackademy import AckademyError
from ackademy.cli import app
from ackademy.studies import sweep


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["cubic:beta=0.5..0.9"], [0.5, 0.6, 0.7, 0.8, 0.9]),
        (["cubic:c=0.4,beta=0.5..0.9/3,bbr3"], [0.5, 0.7, 0.9]),
        (["cubic:beta=0.9|0.5"], [0.5, 0.9]),
        (["", "dumbbell.beta=1e-3..2e-3/2"], [0.001, 0.002]),
    ],
)
def test_a_range_is_several_values_of_one_setting(words: list[str], values: list[float]) -> None:
    name, found = sweep.spread(words)
    assert name.endswith("beta")
    assert [value for value, _ in found] == pytest.approx(values)
    for value, (first, *rest) in found:
        assert f"beta={value:g}" in "".join([first, *rest])
        assert ".." not in "".join([first, *rest])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cubic:beta=0.5"], "0 settings with several values; allowed: one range"),
        (["cubic:beta=0.5..0.9", "flow.0.start_s=1..2"], "2 settings with several values"),
        (["cubic:beta=0.5..0.9/1"], "allowed: 2 to 1000 values"),
    ],
)
def test_another_number_of_ranges_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(AckademyError, match=message):
        sweep.spread(words)


def test_a_sweep_has_all_outputs_and_runs_what_does_not_change_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = ["--html", "p.html", "--markdown", "p.md", "--csv", "p.csv", "--json", "p.json"]
    cc = "cubic:beta=0.5|0.9,new_reno"
    with pytest.raises(SystemExit) as ended:
        app(["sweep", "deep_buffer", "--cc", cc, "--runs", "1", "--set", "duration_s=2", *outputs])
    assert ended.value.code == 0
    with Path("p.csv").open(encoding="utf-8") as file:
        schemes = {row["scheme"] for row in csv.DictReader(file)}
    assert schemes == {"cubic:beta=0.5", "cubic:beta=0.9", "new_reno"}
    assert len(json.loads(Path("p.json").read_text(encoding="utf-8"))["runs"]) == 3
    page = Path("p.html").read_text(encoding="utf-8")
    assert "Over beta" in page
    assert "cubic:beta, deep_buffer" in page
    assert "beta=0.9" in Path("p.md").read_text(encoding="utf-8")


def test_a_field_of_a_scenario_is_swept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--set", "duration_s=2|3", "--runs", "1", "--csv", "p.csv"]
    with pytest.raises(SystemExit) as ended:
        app(["sweep", "deep_buffer", "--cc", "cubic", *words])
    assert ended.value.code == 0
    with Path("p.csv").open(encoding="utf-8") as file:
        names = {row["scenario"] for row in csv.DictReader(file)}
    assert names == {"deep_buffer, duration_s=2", "deep_buffer, duration_s=3"}
