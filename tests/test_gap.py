"""From one backend to others: what a difference is, and what the command does with it."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ackademy import Scenario, run
from ackademy.backends import schemes
from ackademy.render import report as render
from ackademy.runner import engines
from ackademy.runner.experiments import quiet, run_cells
from ackademy.runner.measured import Measured, Row
from ackademy.stats.intervals import Interval
from ackademy.stats.results import Name
from ackademy.studies.gap import report as gap_report
from ackademy.studies.gap import study as gap
from ackademy.studies.gap.study import Claim, Difference, Entry, Gap, Plan, difference

TP = "throughput_mean_mbps"
ROW = Row(Name("path", "cubic"), (), gap.METRICS)
GAP_SCENARIOS = sorted((Path(__file__).parents[1] / "data/scenarios" / "gap").glob("*.toml"))


def gap_command(*words: str, folder: Path, fault: str = "") -> tuple[int, str, str]:
    process = start(*words, folder=folder, fault=fault)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def start(*words: str, folder: Path, fault: str = "") -> subprocess.Popen[str]:
    code = "from ackademy.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "gap", *words],
        cwd=folder,
        env={
            **os.environ,
            **{"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"},
            **{"FAKE": fault, "FAKE_START": "linux"},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def side(values: list[float], seeds: tuple[int, ...] = ()) -> Measured:
    everywhere = {metric: np.array(values) for metric in gap.METRICS}
    return Measured(ROW, seeds or tuple(range(1, len(values) + 1)), everywhere, {})


def apart(kernel: list[float], sim: list[float]) -> Difference:
    found = difference(side(kernel), side(sim), "rtt_sender_ms")
    assert found is not None
    return found


def test_difference_is_kernel_less_simulator_over_the_simulator() -> None:
    found = apart(kernel=[10.9, 11.1], sim=[10.0, 10.0])
    assert found.absolute.value == pytest.approx(1.0)
    assert found.relative.value == pytest.approx(0.1)
    # Student's quantile for 1 degree of freedom times 0.1414 / sqrt(2).
    assert found.absolute.half_width == pytest.approx(12.7062 * 0.1, rel=1e-4)
    assert found.relative.half_width == pytest.approx(12.7062 * 0.01, rel=1e-4)
    assert found.is_large
    assert not found.is_significant


def test_difference_is_taken_seed_by_seed() -> None:
    """What a seed does to both sides is not in the interval of their difference."""
    found = apart(kernel=[1.1, 10.2, 100.15], sim=[1.0, 10.0, 100.0])
    assert found.absolute.value == pytest.approx(0.15)
    assert found.absolute.half_width == pytest.approx(4.302653 * 0.05 / math.sqrt(3), rel=1e-4)
    assert found.is_significant
    assert not found.is_large


def test_difference_is_of_the_seeds_that_both_sides_have() -> None:
    kernel, sim = side([11.0, 33.0], seeds=(1, 3)), side([10.0, 77.0, 30.0])
    found = difference(kernel, sim, "rtt_sender_ms")
    assert found is not None
    assert found.absolute.value == pytest.approx(2.0)
    assert found.relative.value == pytest.approx(0.1)
    assert difference(side([]), sim, "rtt_sender_ms") is None


def test_difference_of_one_kernel_run_has_no_interval() -> None:
    found = apart(kernel=[12.0], sim=[10.0, 10.0])
    assert math.isnan(found.absolute.low)
    assert (found.absolute.method, found.absolute.level) == ("one run", 0.0)
    assert found.is_large
    assert not found.is_significant


def test_the_table_counts_the_seeds_that_a_difference_is_of() -> None:
    kernel, sim = side([11.0, 33.0, 44.0], seeds=(1, 3, 4)), side([10.0, 77.0, 30.0])
    found = difference(kernel, sim, TP)
    assert found is not None
    entry = Entry("path", "cubic", {})
    measured = Gap(entry, 1, {"sim": sim, "kernel": kernel}, {"kernel": {TP: found}})
    (row,) = gap.tables([measured]).estimates.filter(backend="kernel - sim").to_dicts()
    assert row["n"] == 2


@pytest.mark.parametrize(("kernel", "relative"), [(0.0, 0.0), (0.1, math.inf)])
def test_difference_from_nothing_is_nothing_or_infinite(kernel: float, relative: float) -> None:
    found = apart(kernel=[kernel] * 3, sim=[0.0] * 3)
    assert found.relative.value == relative
    assert found.is_large == (kernel > 0.0)


def test_claim_compares_ours_with_the_kernels_own_of_that_name() -> None:
    seeds, slow = (1, 2), np.array([111.0, 111.0])
    fast, rtt_ms = np.array([10.0, 10.0]), "rtt_sender_ms"
    ours = Measured(ROW, seeds, {TP: 0.98 * fast, rtt_ms: slow}, {})
    theirs = Measured(ROW, seeds, {TP: fast, rtt_ms: slow / 1.11}, {})
    gaps = [
        Gap(Entry("path", name, {}), 1, {"kernel": measured}, {})
        for name, measured in (("cubic", ours), ("new_reno", ours), ("kernel:cubic", theirs))
    ]
    throughput, rtt = gap.claims(gaps)
    assert (throughput.ours, throughput.metric) == ("cubic", TP)
    assert throughput.observed.value == pytest.approx(-0.02)
    assert throughput.verdict == "holds"
    assert rtt.observed.value == pytest.approx(0.11)
    assert rtt.verdict == "does not hold"
    assert gap.claims(gaps[:2]) == []


@pytest.mark.parametrize(
    ("observed", "verdict"),
    [
        (Interval(0.01, -0.01, 0.029), "holds"),
        (Interval(0.01, -0.03, 0.05), "undecided"),
        (Interval(-0.05, -0.06, -0.02), "undecided"),
        (Interval(-0.05, -0.06, -0.04), "does not hold"),
        (Interval(0.01, math.nan, math.nan), "holds"),
        (Interval(0.04, math.nan, math.nan), "does not hold"),
    ],
)
def test_claim_is_undecided_where_its_interval_reaches_over_the_bound(
    observed: Interval, verdict: str
) -> None:
    claim = Claim("path", "kernel", "cubic", "kernel:cubic", TP, 0.03, observed)
    assert claim.verdict == verdict


def test_the_simulators_side_starts_as_linux_does(dumbbell: Path) -> None:
    (entry,) = gap.entries_of([dumbbell], schemes.parse("cubic"), [], Plan(runs=1, duration_s=9.0))
    (sim,), (kernel,) = entry.cells.values()
    assert (sim.backend, kernel.backend) == ("sim", "kernel")
    assert sim.overrides == (*kernel.overrides, gap.HANDSHAKE, *gap.LINUX_START)


def test_scenarios_of_one_name_are_told_apart(dumbbell: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / dumbbell.name
    other.parent.mkdir()
    other.write_text(dumbbell.read_text())
    found = gap.entries_of([dumbbell, other], schemes.parse("cubic"), [], Plan(runs=1))
    assert [entry.scenario for entry in found] == [str(dumbbell), str(other)]


def test_each_scheme_has_settings_of_its_own_on_both_sides(dumbbell: Path) -> None:
    words = "new_reno,cubic,cubic:beta=0.8,c=0.3"
    found = gap.entries_of([dumbbell], schemes.parse(words), ["kernel:cubic"], Plan(runs=1))
    labels = [entry.controller for entry in found]
    assert labels == ["new_reno", "cubic", "cubic:beta=0.8,c=0.3", "kernel:cubic"]
    settings = {"beta": 0.8, "c": 0.3}
    for entry in found:
        for (cell,) in entry.cells.values():
            assert dict(cell.params) == (settings if entry is found[2] else {})
    assert [cell.controller for (cell,) in found[2].cells.values()] == ["cubic", "cubic"]


def test_command_takes_settings_per_controller(dumbbell: Path, fake: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic,cubic:beta=0.8", "--runs", "1", "--duration-s", "2")
    code, out, err = gap_command(*words, folder=dumbbell.parent)
    assert (code, err) == (0, "")
    assert "cubic:beta=0.8" in out
    code, _, err = gap_command("dumbbell.toml", "--cc", "cubic:bta=1", folder=dumbbell.parent)
    assert code == 2
    assert "bta" in err
    assert err.count("\n") == 1


def test_gap_is_measured_from_the_tables_of_both_sides(
    dumbbell: Path, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "scaled=90")
    monkeypatch.setenv("FAKE_START", "linux")
    found = gap.entries_of([dumbbell], schemes.parse("cubic"), [], Plan(runs=2))
    folder = dumbbell.parent / "runs"
    cells = [cell for entry in found for column in entry.cells.values() for cell in column]
    run_cells(cells, folder, engines.local(1), quiet)
    (one,) = gap.measure(found, folder, "sim")
    (apart,) = one.differences.values()
    sim = one.columns["sim"]
    assert apart[TP].relative.value == pytest.approx(-0.1, abs=1e-3)
    assert apart["rtt_sender_ms"].absolute.value == 0.0
    assert one.n_flows == 2
    summary = pl.read_parquet(next(folder.glob("*/summary.parquet")))
    assert summary["rtt_mean_ms"].mean() in sim.values["rtt_sender_ms"]
    links = pl.read_parquet(next(folder.glob("*/links.parquet")))
    bottleneck = links.filter(pl.col("link") == "bottleneck")
    assert bottleneck["wait_mean_ms"].item() in sim.values["queue_wait_ms"]
    assert [found[1:3] for found in gap.large([one])] == [("kernel", TP)]


def test_command_prints_both_sides_and_writes_the_report(dumbbell: Path, fake: Path) -> None:
    folder = dumbbell.parent
    words = ("dumbbell.toml", "--cc", "cubic,rl-tcp", "--baselines", "kernel:cubic", "--runs", "2")
    more = ("--duration-s", "2", "--markdown", "gap.md")
    code, out, err = gap_command(*words, *more, folder=folder, fault="scaled=90")
    assert (code, err) == (0, "")
    assert "6 runs in real time take about 18 s" in out
    for word in ("rl_tcp", "kernel:cubic", "simulator", "difference", "−10.0 ± ", "holds"):
        assert word in out
    assert "2 differences above 5 %" in out
    assert "emulator late by 40 µs at p99" in out
    page = next((folder / "reports").glob("gap-*.html")).read_text()
    for link in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{link}"' in page
    assert len(re.findall(r'<td [^>]*class="large"', page)) == 2
    markdown = (folder / "gap.md").read_text()
    assert "| dumbbell | cubic |" in markdown
    assert "| 80 | 41.0 / 60.0 / 99.0 | 30.0 / 90.0 / 200 | 9.50 / 12.0 / 21.0 | 2 |" in markdown, (
        "decisions of policies"
    )
    assert "**−10." in markdown


def test_command_goes_on_where_it_was(dumbbell: Path, fake: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic", "--runs", "3")
    process = start(*words, folder=dumbbell.parent, fault="hang=2")
    deadline = time.monotonic() + 300.0  # a busy machine takes a minute to import what it needs
    while not (fake.exists() and "waits" in fake.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "2 of 3 cells are done and kept; run the same command again to continue" in err
    assert "Traceback" not in err
    code, out, _ = gap_command(*words, folder=dumbbell.parent)
    assert code == 0
    assert "1 runs in real time take about 5 s" in out
    assert fake.read_text().count("start") == 4


def test_invalid_runs_are_shown_and_in_no_number(dumbbell: Path, fake: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic", "--runs", "2", "--markdown", "gap.md")
    code, out, _ = gap_command(*words, folder=dumbbell.parent, fault="late=4")
    assert code == 0
    assert "1 + 1 invalid" in out
    assert "1 of 2 runs are invalid: late by 5000.0 us at p99" in out
    assert "1 + 1 invalid" in (dumbbell.parent / "gap.md").read_text()
    assert (
        "invalid runs, left out"
        in next((dumbbell.parent / "reports").glob("gap-*.html")).read_text()
    )


def test_report_without_a_valid_run_still_says_what_was_tried(dumbbell: Path, fake: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic", "--runs", "1", "--markdown", "gap.md")
    code, out, _ = gap_command(*words, folder=dumbbell.parent, fault="late=99")
    assert code == 0
    assert "0 + 1 invalid" in out
    assert "this run is invalid" in out


def test_missing_program_stops_before_anything_runs(dumbbell: Path, tmp_path: Path) -> None:
    os_environ = {**os.environ, "ACKADEMYD": str(tmp_path / "nothing")}
    code = "from ackademy.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "gap", "dumbbell.toml"],
        cwd=tmp_path,
        env=os_environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("ACKADEMYD = ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_report_of_no_gaps_says_so() -> None:
    report = gap_report.report([], Path())
    assert "0 scenarios" in render.page(report)
    assert render.text(report) == "# \n"


def test_every_backend_is_a_column_measured_by_the_first(dumbbell: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic", "--baselines", "noq:cubic", "--runs", "2")
    more = ("--backends", "sim,quic", "--csv", "gap.csv", "--markdown", "gap.md")
    code, out, err = gap_command(*words, *more, folder=dumbbell.parent)
    assert (code, err) == (0, "")
    head = next(line for line in out.splitlines() if "controller" in line)
    assert head.index("metric") < head.index("simulator") < head.index("QUIC")
    assert "in real time" not in out
    rows = pl.read_csv(dumbbell.parent / "gap.csv").filter(pl.col("metric") == TP)
    found = [(row["scheme"], row["backend"]) for row in rows.to_dicts()]
    assert found == [("cubic", "sim"), ("cubic", "quic"), ("noq:cubic", "quic"),
                     ("cubic", "quic - sim")]  # fmt: skip
    sim, quic, _, apart = rows["estimate"]
    assert apart == pytest.approx(quic - sim)
    markdown = (dumbbell.parent / "gap.md").read_text()
    assert "| scenario | controller | simulator | QUIC | difference |" in markdown
    assert "| dumbbell | throughput of cubic within 3 % of noq:cubic, QUIC |" in markdown


def test_three_columns_have_a_difference_each(dumbbell: Path, fake: Path) -> None:
    words = ("dumbbell.toml", "--cc", "cubic", "--runs", "1", "--markdown", "gap.md")
    more = ("--backends", "quic,kernel,sim")
    code, _, err = gap_command(*words, *more, folder=dumbbell.parent, fault="scaled=90")
    assert (code, err) == (0, "")
    heads = "| QUIC | kernel | kernel, difference | simulator | simulator, difference |"
    assert heads in (dumbbell.parent / "gap.md").read_text()
    page = next((dumbbell.parent / "reports").glob("gap-*.html")).read_text()
    for link in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{link}"' in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backends", "sim,tcp"), "--backends sim,tcp: allowed: two or more of sim, quic"),
        (("--backends", "sim"), "--backends sim: allowed: two or more"),
        (("--backends", "sim,sim"), "--backends sim,sim: allowed: two or more"),
        (("--backends", "sim,quic", "--baselines", "kernel:cubic"),
         "--baselines kernel:cubic: allowed: noq:NAME, quinn:NAME"),
        (("--baselines", "noq:cubic"), "--baselines noq:cubic: allowed: kernel:NAME"),
        (("--backends", "sim,quic", "--cc", "cubic,noq:cubic"), "--cc noq:cubic: is a backend's"),
        (("--backends", "sim,quic", "--cc", "lp_tcp/L5_K1"), "controller lp_tcp: has a send hook"),
        (("--backends", "sim,quic", "small.toml"), "packet_bytes = 600: allowed with QUIC is 1228"),
    ],
)  # fmt: skip
def test_what_a_backend_cannot_run_is_refused_before_the_first_run(
    words: tuple[str, ...], said: str, dumbbell: Path
) -> None:
    small = dumbbell.read_text().replace("count = 2", "count = 2\nsender = { packet_bytes = 600 }")
    (dumbbell.parent / "small.toml").write_text(small)
    code, _, err = gap_command("dumbbell.toml", *words, "--runs", "1", folder=dumbbell.parent)
    assert (code, err.count("\n")) == (2, 1), err
    assert said in err
    assert not (dumbbell.parent / "runs").exists()


def test_scenarios_of_the_report_span_what_they_should() -> None:
    """Rates 5 to 100 Mb/s, round trips 10 to 150 ms, buffers 0.2 to 2 BDP, loss 0 to 2 %."""
    texts = [path.read_text() for path in GAP_SCENARIOS]
    assert len(texts) >= 8
    assert all(text.startswith("# ") for text in texts)
    for path in GAP_SCENARIOS:
        assert 20 <= Scenario.parse(path.read_text(), str(path)).duration_s <= 30

    def found(field: str) -> set[float]:
        return {float(v) for text in texts for v in re.findall(rf"\b{field} = ([\d.]+)", text)}

    for field, low, high in (("rate_mbps", 5, 100), ("rtt_ms", 10, 150), ("bdp", 0.2, 2)):
        assert (min(found(field)), max(found(field))) == (low, high)
    assert max(found("ratio")) == 0.02
    assert any("trace" in text for text in texts)
    assert any("count = 4" in text for text in texts)


MIXED = """\
duration_s = 1
[two_path.first]
rate_mbps = 8
delay_ms = 10
[two_path.second]
rate_mbps = 8
delay_ms = 10
[[flow]]
name = "multipath"
controller = "lia"
multipath = true
count = 2
[[flow]]
name = "tcp"
controller = "new_reno"
route = [1]
"""


@pytest.mark.parametrize("scheme", ["olia", "cubic:beta=0.8"])
def test_a_scheme_governs_the_flows_with_several_subflows_and_leaves_plain_tcp_its_controller(
    scheme: str, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED)
    (parsed,) = schemes.parse(scheme)
    found = gap.entries_of([path], [parsed], ["kernel:reno"], Plan(runs=2))
    assert [(one.scenario, one.controller, one.flows) for one in found] == [
        ("mixed", scheme, "multipath"),
        ("mixed, tcp", scheme, "tcp"),
        ("mixed", "kernel:reno", "multipath"),
        ("mixed, tcp", "kernel:reno", "tcp"),
    ]
    for entry in found:
        cc = parsed.controller if "sim" in entry.cells else "kernel:reno"
        for cell in (cell for column in entry.cells.values() for cell in column):
            assert cell.scenario().controllers == [cc, cc, "new_reno"]
    assert found[0].cells == found[1].cells


def test_numbers_of_flows_with_several_subflows_leave_plain_tcp_out(tmp_path: Path) -> None:
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED)
    found = gap.entries_of([path], schemes.parse("lia"), [], Plan(runs=1))
    simulated = [replace(one, cells={"sim": one.cells["sim"]}) for one in found]
    run_cells(found[0].cells["sim"], tmp_path, engines.local(1), quiet)
    multipath, tcp = gap.measure(simulated, tmp_path, "sim")
    assert (multipath.n_flows, tcp.n_flows) == (2, 1)
    flows = run(found[0].cells["sim"][0].scenario(), seed=1).metrics().flows["throughput_mbps"]
    assert multipath.columns["sim"].value(TP) == pytest.approx(flows[:4].mean())
    assert tcp.columns["sim"].value(TP) == pytest.approx(flows[4])


def test_a_recovery_on_the_cellular_trace_is_followed_by_the_kernels_second() -> None:
    """Linux: ssthresh 333, then 166 packets from second 3.8 on, 353 drops, no time-out."""
    path = Path(__file__).parents[1] / "data/scenarios" / "gap" / "cellular.toml"
    result = run(path, cc="new_reno", seed=1, sample_interval_ms=100)
    flow = result.flows.row(0, named=True)
    assert (flow["recoveries"], flow["timeouts"]) == (2, 0)
    assert flow["dropped_packets"] == pytest.approx(353, rel=0.05)
    at = result.flow_series.filter(pl.col("time_s") > 4.0).row(0, named=True)
    assert at["ssthresh_packets"] == pytest.approx(166, abs=2)
