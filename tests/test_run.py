"""One simulation from Python: what it returns, and how it refuses."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ackademy
from ackademy import AckademyError, ControllerError, Scenario, ScenarioError

Write = Callable[[str], str]


def test_same_seed_gives_the_same_tables(dumbbell: Path) -> None:
    first, again = (ackademy.run(dumbbell, seed=3, sample_interval_ms=50) for _ in range(2))
    assert first.flows.equals(again.flows)
    assert first.flow_series.equals(again.flow_series)
    assert first.link_series.equals(again.link_series)


def test_another_seed_starts_the_flows_at_other_times(dumbbell: Path) -> None:
    first, other = (ackademy.run(dumbbell, seed=seed) for seed in (1, 2))
    assert not first.flows["start_s"].equals(other.flows["start_s"])


def test_throughputs_of_the_flows_fit_into_the_link(dumbbell: Path) -> None:
    measured = ackademy.run(dumbbell).metrics()
    assert 3.0 < measured.flows["throughput_mbps"].to_numpy().sum() <= 4.4
    assert 0.5 <= measured.jain_throughput <= 1.0
    bottleneck = measured.links.filter(pl.col("link") == "bottleneck")
    assert 0.8 < bottleneck["utilisation"].item() <= 1.0


def test_cc_puts_every_flow_under_that_controller(dumbbell: Path) -> None:
    result = ackademy.run(dumbbell, cc="cubic")
    assert result.flows["controller"].to_list() == ["cubic", "cubic"]


def test_text_of_a_scenario_runs_like_its_file(dumbbell: Path) -> None:
    from_text = ackademy.run(dumbbell.read_text())
    assert from_text.flows.equals(ackademy.run(dumbbell).flows)


def test_series_have_500_rows_unless_asked_otherwise(dumbbell: Path) -> None:
    assert ackademy.run(dumbbell, sample_interval_ms=0).flow_series.is_empty()
    times = ackademy.run(dumbbell).flow_series["time_s"]
    assert times.max() == 4.0  # the end of the scenario
    assert times.unique().sort().diff().drop_nulls().round(9).unique().to_list() == [4.0 / 500]
    series = ackademy.run(dumbbell, sample_interval_ms=500).flow_series
    assert series["time_s"].unique().len() in (8, 9)
    assert set(series["flow"]) == set(ackademy.run(dumbbell).flows["flow"])


def test_written_tables_are_read_by_polars_alone(dumbbell: Path, tmp_path: Path) -> None:
    result = ackademy.run(dumbbell, sample_interval_ms=500)
    result.write_parquet(tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out" / "flows.parquet").equals(result.flows)
    assert (tmp_path / "out" / "link_series.parquet").is_file()


def test_python_controller_fills_the_link(dumbbell: Path, mine: str) -> None:
    result = ackademy.run(dumbbell, cc=mine)
    assert result.metrics().flows["throughput_mbps"].to_numpy().sum() > 3.0
    assert result.flows["controller"].to_list() == [mine, mine]


def test_python_controller_of_a_scenario_is_found_beside_it(dumbbell: Path, mine: str) -> None:
    dumbbell.write_text(dumbbell.read_text() + f'controller = "{Path(mine).name}"\n')
    by_name = ackademy.run(dumbbell).flows.drop("controller")
    assert by_name.equals(ackademy.run(dumbbell, cc=mine).flows.drop("controller"))


def test_python_controller_that_raises_stops_the_run_with_its_own_traceback(
    dumbbell: Path, controller: Write
) -> None:
    cc = controller(
        textwrap.dedent("""\
        class Mine:
            def __init__(self, flow):
                self.cwnd_bytes = 3000.0

            def on_ack(self, ack):
                raise ZeroDivisionError("my own mistake")

            def on_loss(self, loss):
                pass
        """)
    )
    with pytest.raises(ZeroDivisionError, match="my own mistake") as caught:
        ackademy.run(dumbbell, cc=cc)
    assert any(Path(entry.path).name == "mine.py" for entry in caught.traceback)


@pytest.mark.parametrize("value", ["float('nan')", "0", "-1.5", "float('inf')"])
def test_python_controller_with_an_impossible_window_is_refused(
    dumbbell: Path, controller: Write, value: str
) -> None:
    source = f"class Mine:\n    cwnd_bytes = {value}\n    on_ack = on_loss = print\n"
    cc = controller(source + "    def __init__(self, flow): pass\n")
    with pytest.raises(ControllerError, match=r"Mine\.cwnd_bytes = .* above 0"):
        ackademy.run(dumbbell, cc=cc)


def test_python_controller_whose_window_is_in_packets_gets_one_warning(
    dumbbell: Path, controller: Write
) -> None:
    source = "class Mine:\n    cwnd_bytes = 10\n    on_ack = on_loss = lambda self, record: None\n"
    cc = controller(source + "    def __init__(self, flow): pass\n")
    with pytest.warns(UserWarning, match=r"Mine\.cwnd_bytes = 10: the unit is bytes") as caught:
        ackademy.run(dumbbell, cc=cc)
    assert len(caught) == 1


def test_python_controller_that_cannot_be_made_says_why(dumbbell: Path, controller: Write) -> None:
    cc = controller("class Mine:\n    on_ack = on_loss = print\n")
    with pytest.raises(
        ControllerError, match=r":Mine: too many positional arguments; allowed: Mine\(flow\)"
    ):
        ackademy.run(dumbbell, cc=cc)


def test_python_controller_without_methods_is_refused(dumbbell: Path, controller: Write) -> None:
    with pytest.raises(ControllerError, match="lacks on_ack and on_loss"):
        ackademy.run(dumbbell, cc=controller("class Mine:\n    pass\n"))


def test_missing_class_lists_the_ones_there_are(dumbbell: Path, mine: str) -> None:
    with pytest.raises(ControllerError, match=r"no class Other.*it has: Mine"):
        ackademy.run(dumbbell, cc=mine.replace(":Mine", ":Other"))


def test_missing_file_of_a_controller_is_named(dumbbell: Path) -> None:
    with pytest.raises(ControllerError, match=r"no file nowhere\.py"):
        ackademy.run(dumbbell, cc="nowhere.py:Mine")


def test_unknown_controller_lists_the_known_ones(dumbbell: Path) -> None:
    with pytest.raises(ControllerError, match=r"cubik.*similar: cubic, "):
        ackademy.run(dumbbell, cc="cubik")


def test_setting_out_of_range_names_the_range(dumbbell: Path) -> None:
    with pytest.raises(ControllerError, match=r"epsilon.*7.*\[0, 1\]"):
        ackademy.run(dumbbell, cc="rl_tcp", params={"epsilon": 7.0})


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("duration_s = 4", "duration_s = -4", "duration_s"),
        ("rate_mbps = 4", "rate_mbps = nan", "rate_mbps"),
        ("rate_mbps = 4", "rate_mbsp = 4", "rate_mbsp"),
        ("count = 2", "count = 1000000000000", "count"),
        ("rtt_ms = 20", 'rtt_ms = "long"', "rtt_ms"),
    ],
    ids=["negative", "nan", "unknown", "too many", "wrong type"],
)
def test_wrong_scenario_is_one_line_with_file_line_and_field(
    dumbbell: Path, old: str, new: str, named: str
) -> None:
    text = dumbbell.read_text().replace(old, new)
    line = text[: text.index(new)].count("\n") + 1
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "wrong.toml")
    message = str(caught.value)
    assert message.startswith(f"wrong.toml:{line}: ")
    assert named in message
    assert "\n" not in message


def test_scenario_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="byte 0 is not UTF-8"):
        ackademy.run(path)


def test_trace_that_never_ends_is_refused(dumbbell: Path) -> None:
    text = dumbbell.read_text().replace("rate_mbps = 4", 'trace = "/dev/zero"')
    with pytest.raises(ScenarioError, match="/dev/zero"):
        Scenario.parse(text, str(dumbbell))


def test_override_by_dotted_path_changes_what_it_names(dumbbell: Path) -> None:
    parsed = Scenario.parse(dumbbell.read_text(), "x.toml", {"flow.0.count": "3"})
    assert len(parsed.flows) == 3


def test_canonical_text_parses_to_the_same_scenario(dumbbell: Path) -> None:
    canonical = Scenario.parse(dumbbell.read_text(), "dumbbell.toml").canonical()
    assert Scenario.parse(canonical, "dumbbell.toml").canonical() == canonical


def test_ack_shows_what_happened(dumbbell: Path, controller: Write, tmp_path: Path) -> None:
    """The records cross the border with sensible values."""
    cc = controller(
        textwrap.dedent(f"""\
        class Mine:
            def __init__(self, flow):
                assert flow.mss_bytes == 1500 and flow.seed >= 0
                self.cwnd_bytes = float(flow.initial_cwnd_bytes)
                self.pacing_bps = None

            def on_ack(self, ack):
                assert ack.now_ns >= ack.sent_at_ns
                assert ack.acked_bytes > 0 and ack.delivered_bytes >= ack.acked_bytes
                assert ack.rtt_ns == 0 or ack.rtt_ns >= ack.min_rtt_ns >= 20_000_000
                assert isinstance(ack.app_limited, bool) and "Ack" in repr(ack)
                self.pacing_bps = 1e6
                open({str(tmp_path / "seen")!r}, "w").close()

            def on_loss(self, loss):
                assert loss.kind in ("gap", "more", "timeout", "deflate", "idle", "spurious")
        """)
    )
    result = ackademy.run(dumbbell, cc=cc)
    assert (tmp_path / "seen").exists()
    assert result.metrics().flows["throughput_mbps"].to_numpy().max() < 1.2


def test_python_controller_is_told_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "told.py"
    file.write_text(
        "class Told:\n"
        "    def __init__(self, flow):\n"
        "        self.cwnd_bytes = flow.params['packets'] * flow.mss_bytes\n"
        "    def on_ack(self, ack): pass\n"
        "    def on_loss(self, loss): pass\n"
    )
    scenario = (
        "duration_s = 2\nsample_interval_ms = 1000\n"
        "[dumbbell]\nrtt_ms = 10\nbottleneck = { rate_mbps = 10 }\n[[flow]]\n"
    )
    run = ackademy.run(scenario, cc=f"{file}:Told", params={"packets": 7}, sample_interval_ms=1000)
    assert set(run.flow_series["cwnd_packets"]) == {7.0}


def test_settings_without_a_controller_are_refused(dumbbell: Path) -> None:
    with pytest.raises(ControllerError, match="params: beta: allowed: beside cc"):
        ackademy.run(dumbbell, params={"beta": 0.8})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("seed", -1, "a whole number from 0 to 18446744073709551615"),
        ("seed", 2**64, "a whole number from 0 to 18446744073709551615"),
        ("seed", 1.5, "a whole number from 0 to 18446744073709551615"),
        ("sample_interval_ms", -1, r"a number from 0 to 1e\+09"),
        ("sample_interval_ms", float("nan"), r"a number from 0 to 1e\+09"),
        ("backend", "kernal", "sim, quic, kernel, quic-lab, ns3"),
    ],
)
def test_a_wrong_argument_is_one_line_with_what_is_allowed(
    dumbbell: Path, name: str, value: object, allowed: str
) -> None:
    with pytest.raises(AckademyError, match=rf"^{name} = .*: allowed: {allowed}$"):
        ackademy.run(dumbbell, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (None, "scenario of type NoneType: allowed: a file"),
        (5, "scenario of type int: allowed: a file"),
        ("", "'': allowed: the path or the name of a scenario"),
    ],
)
def test_what_is_no_scenario_is_refused_by_its_type(scenario: object, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        ackademy.run(scenario)  # type: ignore[arg-type]


def link(**changes: object) -> dict[str, object]:
    """The fields of a scenario."""
    queue = {"kind": "drop_tail", "bdp": 1}
    bottleneck = {"rate_mbps": 12, "queue": queue}
    fields = {"duration_s": 2, "dumbbell": {"rtt_ms": 40, "bottleneck": bottleneck}}
    return fields | {"flow": [{"name": "one"}]} | changes


def test_numbers_of_numpy_and_tuples_are_fields_like_any_other() -> None:
    plain = ackademy.run(link(duration_s=2.5))
    flows = ({"name": np.str_("one"), "count": np.int64(1)},)
    for number in (np.float64(2.5), np.float32(2.5), np.array(2.5)):
        numpy = ackademy.run(link(duration_s=number, flow=flows), seed=np.uint8(1))  # type: ignore[arg-type]
        assert numpy.flows.equals(plain.flows)
        assert numpy.seed == 1


@pytest.mark.parametrize("value", [None, object(), {1, 2}, b"2", 2j, np.array([1, 2])])
def test_a_field_that_toml_has_no_value_for_is_named(value: object) -> None:
    name = type(value).__name__
    said = rf"^flow\[0\]\.count: a value of type {name}: allowed: a number"
    with pytest.raises(ScenarioError, match=said):
        ackademy.run(link(flow=[{"count": value}]))


FORKED = """\
import multiprocessing, sys
import numpy as np
import polars as pl
import ackademy

def measured(seed):
    return ackademy.run(sys.argv[1], seed=seed).metrics().flows.rows()

pl.DataFrame({"a": [1, 2], "b": [3, 4]}).lazy().select(pl.col("a") + 1, pl.col("b")).collect()
own = [measured(seed) for seed in (1, 2)]
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map(measured, (1, 2)) == own
"""


def test_a_forked_process_measures_what_its_parent_does(dumbbell: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, str(dumbbell)], check=True, timeout=300)
