"""Schemes, overrides and exports: on the command line and in Python."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import ackademy
from ackademy.backends import schemes
from ackademy.cli.options import overrides
from ackademy.errors import AckademyError, ControllerError, ScenarioError

MAIN = "from ackademy.cli import main; main()"


class Gentle:
    """Four packets, always."""

    def __init__(self, flow: ackademy._core.Flow) -> None:
        self.cwnd_bytes = 4.0 * flow.mss_bytes * float(flow.params.get("gain", 1.0))

    def on_ack(self, ack: ackademy._core.Ack) -> None:
        """Keep the window."""

    def on_loss(self, loss: ackademy._core.Loss) -> None:
        """Keep the window."""


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("cubic", [("cubic", "cubic", {})]),
        ("rl-tcp", [("rl_tcp", "rl_tcp", {})]),
        (
            "cubic,cubic:beta=0.8,c=0.3,vegas",
            [
                ("cubic", "cubic", {}),
                ("cubic:beta=0.8,c=0.3", "cubic", {"beta": 0.8, "c": 0.3}),
                ("vegas", "vegas", {}),
            ],
        ),
        ("mine.py:Mine", [("mine.py:Mine", "mine.py:Mine", {})]),
        ("mine.py:Mine:gain=2", [("mine.py:Mine:gain=2", "mine.py:Mine", {"gain": 2.0})]),
        ("kernel:bbr", [("kernel:bbr", "kernel:bbr", {})]),
        ("cubic:hystart=off", [("cubic:hystart=off", "cubic", {"hystart": "off"})]),
    ],
)
def test_words_name_schemes(words: str, found: list[tuple[str, str, dict[str, object]]]) -> None:
    parsed = schemes.parse(words)
    assert [(s.label, s.controller, dict(s.params)) for s in parsed] == found


def test_settings_of_a_scheme_come_before_the_common_ones() -> None:
    plain, own = schemes.parse("cubic,cubic:beta=0.8", {"beta": 0.5, "c": 0.3})
    assert dict(plain.params) == {"beta": 0.5, "c": 0.3}
    assert dict(own.params) == {"beta": 0.8, "c": 0.3}


def test_a_policy_is_a_scheme() -> None:
    (scheme,) = schemes.parse("aurora_mixed")
    assert (scheme.label, scheme.controller) == ("aurora_mixed", "policy")
    assert dict(scheme.params)["policy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cubic,cubic", "every scheme once"),
        ("cubic:beta", "allowed: NAME, NAME:SETTING=VALUE"),
        ("cubik", "similar: cubic"),
        ("kernel:bbr:beta=1", "no settings"),
        ("cubic,beta=1", "allowed: NAME, NAME:SETTING=VALUE"),
    ],
)
def test_a_word_that_names_no_scheme_is_one_line(words: str, message: str) -> None:
    with pytest.raises(ControllerError, match=r"^[^\n]*$") as raised:
        schemes.parse(words)
    assert message in str(raised.value)


def test_set_values_are_toml_or_words() -> None:
    words = ["dumbbell.rtt_ms=80", "flow.0.cc=cubic", 'flow.0.name="a"', "x=[1, 2]"]
    assert overrides(words) == {
        "dumbbell.rtt_ms": "80",
        "flow.0.controller": '"cubic"',
        "flow.0.name": '"a"',
        "x": "[1, 2]",
    }
    with pytest.raises(ScenarioError, match="--set rtt: allowed: PATH=VALUE"):
        overrides(["rtt"])


def test_run_prints_pure_json_with_overrides(dumbbell: Path) -> None:
    words = ("--cc", "cubic:beta=0.5", "--set", "flow.0.count=3", "--set", "duration_s=2")
    outputs = ("--json", "-", "--csv", "x.csv")
    done = command("run", dumbbell.name, *words, *outputs, cwd=dumbbell.parent)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["scenario"], content["duration_s"], content["seed"]) == ("dumbbell", 2.0, 1)
    assert len(content["flows"]) == 3
    assert content["flows"][0]["controller"] == "cubic"
    flows = pl.read_csv(dumbbell.parent / "x.csv")
    assert flows["flow"].to_list() == [flow["flow"] for flow in content["flows"]]
    assert "throughput" in done.stderr  # the table, beside the numbers


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("dumbbell.rtt=80", "dumbbell.rtt"),
        ("dumbbell.rtt_ms=-1", "dumbbell.rtt_ms = -1"),
        ("flow.7.cc=cubic", "flow.7.controller"),
        ("nothing", "--set nothing"),
    ],
)
@pytest.mark.parametrize("name", ["run", "compare"])
def test_a_wrong_set_is_one_line_with_its_path(
    dumbbell: Path, name: str, setting: str, named: str
) -> None:
    done = command(name, dumbbell.name, "--set", setting, cwd=dumbbell.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


def test_compare_has_copies_of_a_controller_as_rows(dumbbell: Path) -> None:
    words = ("--cc", "cubic,cubic:beta=0.3,c=0.1", "--runs", "2", "--jobs", "1", "--csv", "-")
    done = command("compare", dumbbell.name, *words, "--json", "c.json", cwd=dumbbell.parent)
    assert done.returncode == 0, done.stderr
    frame = pl.read_csv(io.StringIO(done.stdout))
    assert frame["scheme"].unique(maintain_order=True).to_list() == [
        "cubic",
        "cubic:beta=0.3,c=0.1",
    ]
    one, other = frame.filter(pl.col("metric") == "throughput_mean_mbps")["estimate"]
    assert one != other
    content = json.loads((dumbbell.parent / "c.json").read_text())
    assert len(content["runs"]) == 4


def test_json_and_csv_cannot_share_stdout(dumbbell: Path) -> None:
    done = command("run", dumbbell.name, "--json", "-", "--csv", "-", cwd=dumbbell.parent)
    assert done.returncode == 2
    assert "one of them on stdout" in done.stderr


FIELDS = {
    "duration_s": 3,
    "dumbbell": {
        "rtt_ms": 20,
        "bottleneck": {"rate_mbps": 4, "queue": {"kind": "drop_tail", "packets": 10}},
    },
    "flow": [{"name": "one"}],
}


def test_python_runs_mappings_and_classes() -> None:
    run = ackademy.run(FIELDS, cc=Gentle)
    assert run.scenario.flows == ["one"]
    wide = ackademy.run(FIELDS, cc=Gentle, params={"gain": 2.0})
    narrow_mbps, wide_mbps = (r.metrics().flows["throughput_mbps"][0] for r in (run, wide))
    assert wide_mbps > 1.2 * narrow_mbps


def test_python_compares_classes_settings_and_mappings() -> None:
    found = ackademy.compare(
        [FIELDS, "outage"],
        ["cubic", ("cubic", {"beta": 0.3}), Gentle],
        runs=2,
        overrides={"duration_s": 2},
    )
    table = found.table("delay_mean_ms")
    assert table.columns == ["scenario", "cubic", "cubic:beta=0.3", "Gentle"]
    assert table["scenario"].to_list() == ["scenario", "outage"]
    # Nothing is random under CUBIC, which runs once; of Python controllers it is not known.
    assert found.runs.height == 8
    assert set(found.estimates.filter(scheme="Gentle")["n"]) == {2}
    assert set(found.estimates.filter(pl.col("scheme") != "Gentle")["n"]) == {1}
    assert "Gentle" in found._repr_html_()


def test_python_takes_labels_and_words() -> None:
    found = ackademy.compare(
        FIELDS, {"steep": "cubic:c=0.9", "flat": ("cubic", {"c": 0.1})}, runs=1
    )
    assert found.table().columns == ["scenario", "steep", "flat"]
    assert ackademy.compare(FIELDS, "cubic,vegas", runs=1).runs.height == 2


def test_python_refuses_what_is_no_controller() -> None:
    with pytest.raises(ControllerError, match="lacks on_ack and on_loss"):
        ackademy.run(FIELDS, cc=int)
    with pytest.raises(AckademyError, match="metric 'speed': allowed: throughput_mean_mbps"):
        ackademy.compare(FIELDS, "cubic", runs=1).table("speed")


def test_a_run_draws_itself() -> None:
    run = ackademy.run(FIELDS, cc="cubic", sample_interval_ms=0)
    assert run.flow_series.is_empty()
    figure = run.plot()
    assert figure.page.startswith("<!doctype html>")
    assert "<path" in figure.page
    assert figure._repr_html_().startswith("<svg ")
    assert "one" in run._repr_html_()
    assert "seed 1" in repr(run)
