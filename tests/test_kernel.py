"""The backend `kernel`, seen from Python: calling `ackademyd`, reading what it prints, cells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ackademy
from ackademy import ControllerError, KernelError, ScenarioError
from ackademy.backends import programs
from ackademy.backends.kernel import REPEATS_MAX
from ackademy.backends.programs import ackademyd
from ackademy.backends.tables import NAMES
from ackademy.render.kernel_notes import notes
from ackademy.runner import engines
from ackademy.runner.cells import Cell, key
from ackademy.runner.experiments import Interrupted, countable, quiet, read, run_cells

ROOT = Path(__file__).parents[1]
OVERFLOWING = """\
format = 1
about = "Finite weights, and no finite answer"
observation = { features = ["rtt_ratio"], history = 1 }
decision = { every = "srtt" }
action = { map = "cwnd_factor" }
layers = [
    { kind = "dense", units = 2 },
    { kind = "dense", units = 2 },
    { kind = "dense", units = 1 },
]
"""


@pytest.fixture
def cell(dumbbell: Path) -> Cell:
    return Cell(dumbbell.read_text(), str(dumbbell), "cubic", seed=1, backend="kernel")


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_run_on_the_kernel_has_the_simulators_tables(dumbbell: Path, fake: Path) -> None:
    ours = ackademy.run(dumbbell, cc="cubic", seed=3, sample_interval_ms=50)
    theirs = ackademy.run(dumbbell, cc="cubic", seed=3, sample_interval_ms=50, backend="kernel")
    for table in NAMES:
        assert theirs.frame(table).equals(ours.frame(table)), table
    assert theirs.is_random
    assert calls(fake) == ["start 3"]


def test_run_on_the_kernel_says_how_it_went(dumbbell: Path, fake: Path) -> None:
    run = ackademy.run(dumbbell, cc="cubic", backend="kernel").kernel
    assert run is not None
    assert (run.lateness_us["p99"], run.scheduler, run.valid) == (40.0, "fifo", True)
    assert (len(run.governed), run.decisions, run.fallbacks) == (2, 160, 2)
    assert (run.policy_decisions, run.policy_fallbacks) == (40, 1)
    assert run.policy_answer_us == {"p50": 41.0, "p90": 60.0, "p99": 99.0}
    assert run.policy_cpu_us == {"p50": 9.5, "p90": 12.0, "p99": 21.0}
    assert run.release == os.uname().release
    assert run.assumptions == ("the fake's kernel is the simulator",)
    assert ackademy.run(dumbbell, cc="cubic").kernel is None


def test_kernels_own_controller_runs_on_the_kernel_alone(dumbbell: Path, fake: Path) -> None:
    run = ackademy.run(dumbbell, cc="kernel:cubic", backend="kernel")
    assert run.kernel is not None
    assert run.kernel.governed == ()
    with pytest.raises(ControllerError, match=r"kernel:cubic.*--backend kernel"):
        ackademy.run(dumbbell, cc="kernel:cubic")


def test_python_controller_is_refused_on_the_kernel(dumbbell: Path, mine: str, fake: Path) -> None:
    with pytest.raises(ControllerError, match=r"mine\.py:Mine.*allowed with --backend kernel"):
        ackademy.run(dumbbell, cc=mine, backend="kernel")
    assert calls(fake) == []


def test_missing_program_is_one_line_that_says_what_builds_it(
    dumbbell: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ACKADEMYD", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    with pytest.raises(KernelError, match="make ackademyd") as caught:
        ackademy.run(dumbbell, backend="kernel")
    assert "\n" not in str(caught.value)


def test_program_of_another_machine_is_one_line(dumbbell: Path, fake: Path) -> None:
    Path(os.environ["ACKADEMYD"]).write_bytes(b"\x7fELF of elsewhere")
    with pytest.raises(KernelError, match="cannot be run: Exec format error"):
        ackademy.run(dumbbell, backend="kernel")


def test_program_is_found_by_name_then_on_the_path_then_in_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    places = [tmp_path / "target" / "triple" / "release", tmp_path / "path", tmp_path / "named"]
    monkeypatch.delenv("ACKADEMYD", raising=False)
    monkeypatch.setenv("PATH", str(places[1]))
    for place in places:
        place.mkdir(parents=True)
        (place / "ackademyd").touch(mode=0o755)
        if place.name == "named":
            monkeypatch.setenv("ACKADEMYD", str(place / "ackademyd"))
        assert ackademyd.find() == place / "ackademyd"
    monkeypatch.setenv("ACKADEMYD", str(tmp_path))
    with pytest.raises(KernelError, match=r"ACKADEMYD = .*allowed is a program"):
        ackademyd.find()


@pytest.mark.parametrize(
    ("line", "told"), [("flow x: no such thing", ": flow x: no such thing"), ("-:3: no", ":3: no")]
)
def test_line_of_a_program_that_refuses_its_input_is_passed_on(
    dumbbell: Path, fake: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    monkeypatch.setenv("FAKE", f"exit=2={line}")
    with pytest.raises(ScenarioError) as caught:
        ackademy.run(dumbbell, backend="kernel")
    assert str(caught.value) == f"{dumbbell}{told}"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("exit=1=no such thing", "ackademyd ended with 1: no such thing"),
        ("silent", "ackademyd ended with 1: it says nothing"),
        ("garbage=hello", "not JSON"),
        ("garbage=[]", "expected an object"),
        ("garbage={}", "tables"),
        ("without=flows.rtt_mean_ms", "no column rtt_mean_ms in table flows"),
        ("without=tables", "tables"),
        ("without=emulator", "emulator"),
        ("without=valid", "valid"),
        ("misshapen", "wrong table flows"),
    ],
)
def test_what_is_not_a_result_is_one_line(
    dumbbell: Path, fake: Path, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setenv("FAKE", fault)
    with pytest.raises(KernelError) as caught:
        ackademy.run(dumbbell, backend="kernel")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_program_that_takes_too_long_is_interrupted_and_cleans_up(
    dumbbell: Path, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "hang=0")
    monkeypatch.setattr("ackademy.backends.kernel.MARGIN_S", 0.0)
    with pytest.raises(KernelError, match="not done after 4 s"):
        ackademy.run(dumbbell, backend="kernel")
    assert calls(fake)[-1] == "cleaned up"


def test_name_of_a_kernel_cell_is_that_of_its_kernel_program_and_repetition(
    cell: Cell, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path(os.environ["ACKADEMYD"])
    names = {key(cell), key(replace(cell, seed=2)), key(replace(cell, backend="sim"))}
    other = program.with_name("another_build")
    other.write_text(program.read_text() + "# another build\n")
    other.chmod(0o755)
    monkeypatch.setenv("ACKADEMYD", str(other))
    names.add(key(cell))
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "", "9.9", "", "")))
    names.add(key(cell))
    assert len(names) == 5


def test_result_of_a_program_built_anew_during_the_command_is_refused(
    cell: Cell, fake: Path, tmp_path: Path
) -> None:
    program = Path(os.environ["ACKADEMYD"])
    named = key(cell)
    program.write_text(program.read_text() + "# another build\n")
    assert key(cell) == named
    batch = run_cells([cell], tmp_path / "runs", engines.local(1), quiet)
    assert [failure.cell for failure in batch.failures] == [cell]
    assert "was built anew while the command ran" in batch.failures[0].error


def test_name_of_a_kernel_cell_outlives_changes_of_the_simulator(
    cell: Cell, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(cell), key(replace(cell, backend="sim"))
    monkeypatch.setattr("ackademy._core.CODE_HASH", "another")
    assert key(cell) == before[0]
    assert key(replace(cell, backend="sim")) != before[1]


def test_kernel_cell_keeps_how_it_went(cell: Cell, fake: Path, tmp_path: Path) -> None:
    run_cells([cell], tmp_path / "runs", engines.local(1), quiet)
    _, (run,) = countable(tmp_path / "runs", [cell])
    assert (run.attempts, run.valid, run.lateness_us["p99"]) == (1, True, 40.0)
    described = json.loads((tmp_path / "runs" / key(cell) / "cell.json").read_text())
    assert described["kernel_release"] == os.uname().release
    assert read(tmp_path / "runs", cell, "summary").height == 2


def test_kernel_cells_run_one_at_a_time_after_the_simulated_ones(
    cell: Cell, fake: Path, tmp_path: Path
) -> None:
    simulated = [replace(cell, backend="sim", seed=seed) for seed in range(3)]
    emulated = [replace(cell, seed=seed) for seed in range(3)]
    mixed = [cell for pair in zip(emulated, simulated, strict=True) for cell in pair]
    seen: list[tuple[int, int]] = []

    def watch(n_done: int, _n_cells: int) -> None:
        seen.append((n_done, len(calls(fake))))

    run_cells(mixed, tmp_path / "runs", engines.local(2), watch)
    assert seen == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 2), (6, 3)]


def test_second_run_on_the_machine_waits_for_the_first(dumbbell: Path, fake: Path) -> None:
    runs = [
        threading.Thread(target=ackademy.run, args=(dumbbell,), kwargs={"backend": "kernel"})
        for _ in range(2)
    ]
    from ackademy.backends.kernel import _machine_to_itself

    with _machine_to_itself():
        for run in runs:
            run.start()
        time.sleep(0.5)
        assert calls(fake) == []
    for run in runs:
        run.join(60.0)
    assert len(calls(fake)) == 2


@pytest.mark.parametrize("n_late", [1, REPEATS_MAX])
def test_late_run_is_repeated_until_it_is_in_time(
    cell: Cell, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_late: int
) -> None:
    monkeypatch.setenv("FAKE", f"late={n_late}")
    run_cells([cell], tmp_path / "runs", engines.local(1), quiet)
    (kept,), (run,) = countable(tmp_path / "runs", [cell])
    assert kept == cell
    assert (run.valid, run.attempts) == (True, n_late + 1)


def test_run_that_stays_late_is_marked_left_out_and_tried_again_by_the_next_call(
    cell: Cell, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "late=99")
    batch = run_cells([cell], tmp_path / "runs", engines.local(1), quiet)
    assert batch.failures == []
    kept, (run,) = countable(tmp_path / "runs", [cell])
    assert (kept, run.valid, run.attempts) == ([], False, 1 + REPEATS_MAX)
    assert run.why_invalid == "late by 5000.0 us at p99"
    monkeypatch.delenv("FAKE")
    batch = run_cells([cell], tmp_path / "runs", engines.local(1), quiet)
    assert batch.n_reused == 0
    kept, (run,) = countable(tmp_path / "runs", [cell])
    assert (kept, run.valid, run.attempts) == ([cell], True, 1)


def test_failing_kernel_cell_is_one_line_and_the_rest_go_on(
    cell: Cell, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE", "exit=1=no such thing")
    simulated = replace(cell, backend="sim")
    batch = run_cells([cell, simulated], tmp_path / "runs", engines.local(1), quiet)
    (failure,) = batch.failures
    assert failure.cell == cell
    assert failure.error.endswith("ackademyd ended with 1: no such thing")
    assert read(tmp_path / "runs", simulated, "summary").height == 2


def test_interrupted_kernel_cells_keep_what_is_done_and_go_on_from_there(
    cell: Cell, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    todo = [replace(cell, seed=seed) for seed in range(1, 5)]
    monkeypatch.setenv("FAKE", "hang=2")

    def interrupt() -> None:
        wait_for(lambda: any(line.startswith("waits") for line in calls(fake)))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted, match="2 of 4 cells are done and kept"):
        run_cells(todo, tmp_path / "runs", engines.local(1), quiet)
    thread.join()
    assert calls(fake)[-1] == "cleaned up"
    monkeypatch.delenv("FAKE")
    assert run_cells(todo, tmp_path / "runs", engines.local(1), quiet).n_reused == 2


def test_interrupt_of_the_command_waits_for_the_program_to_clean_up(
    dumbbell: Path, fake: Path
) -> None:
    code = "from ackademy.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", str(dumbbell), "--backend", "kernel"],
        env={**os.environ, "FAKE": "hang=0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: any(line.startswith("waits") for line in calls(fake)))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted; nothing was written\n")
    assert calls(fake)[-1] == "cleaned up"


def test_comparison_on_the_kernel_leaves_late_runs_out_and_says_so(
    dumbbell: Path, fake: Path
) -> None:
    code = "from ackademy.cli import main; main()"
    words = ["compare", str(dumbbell), "--backend", "kernel", "--cc", "rl-tcp,kernel:cubic"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--runs", "2", "--jobs", "2"],
        env={**os.environ, "FAKE": "late=4", "COLUMNS": "160", "TERM": "dumb", "NO_COLOR": "1"},
        cwd=dumbbell.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 + 1 invalid" in done.stdout
    assert "1 of 4 runs are invalid" in done.stdout
    assert "assumed: the fake's kernel is the simulator" in done.stdout
    report = next((dumbbell.parent / "reports").glob("compare-*.html")).read_text()
    assert "1 + 1 invalid runs" in report
    assert "emulator late by" in report


def lacking() -> str:
    """What this machine lacks for a run on its kernel; nothing if it can."""
    if os.geteuid() != 0:
        return "a run on the kernel needs root"
    for path in ("/sys/kernel/btf/vmlinux", "/dev/net/tun"):
        if not Path(path).exists():
            return f"a run on the kernel needs {path}"
    try:
        ackademyd.find()
    except KernelError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(lacking()), reason=f"needs kernel: {lacking()}")
@pytest.mark.parametrize("cc", ["cubic", "kernel:cubic"])
def test_real_flows_fill_the_emulated_link(dumbbell: Path, cc: str) -> None:
    """Bounds that hold on a busy machine: half the link, and no round trip below the path's."""
    text = dumbbell.read_text().replace("duration_s = 4", "duration_s = 3")
    result = ackademy.run(text, cc=cc, sample_interval_ms=100, backend="kernel")
    assert result.kernel is not None
    measured = result.metrics()
    assert 2.0 < measured.flows["throughput_mbps"].to_numpy().sum() < 5.0
    assert (result.flows["rtt_mean_ms"] > 20.0).all()
    assert result.flows["base_rtt_ms"].to_list() == [20.0, 20.0]
    assert result.kernel.packets > 500
    assert len(result.kernel.governed) == (2 if cc == "cubic" else 0)
    assert (result.kernel.decisions > 0) == (cc == "cubic")
    assert result.flow_series["time_s"].n_unique() >= 25


@pytest.mark.skipif(bool(lacking()), reason=f"needs kernel: {lacking()}")
@pytest.mark.parametrize(
    ("cc", "folder"),
    [
        ("policy", "crates/core/tests/files/policy/policy"),
        ("tcp_drinc", "data/policies/tcp_drinc"),
        ("policy", "data/policies/aurora_mixed"),
    ],
)
def test_policy_of_a_folder_decides_for_real_flows(dumbbell: Path, cc: str, folder: str) -> None:
    text = dumbbell.read_text().replace("duration_s = 4", "duration_s = 3")
    params = {"policy": str(ROOT / folder)}
    result = ackademy.run(text, cc=cc, params=params, backend="kernel")
    assert result.kernel is not None
    counters = result.counters.filter(pl.col("name") == "decisions")["value"]
    # Each flow decides about once per round trip of 20 ms and more.
    assert 20 < counters.sum() <= result.kernel.policy_decisions
    assert result.kernel.policy_decisions < 2 * 3.0 / 0.02
    assert (result.kernel.policy_fallbacks, result.kernel.fallbacks) == (0, 0)
    thought, answered = result.kernel.policy_cpu_us, result.kernel.policy_answer_us
    assert 0.0 < thought["p50"] <= thought["p90"] <= thought["p99"]
    assert thought["p50"] < answered["p50"], "the wake-up comes before the thought"
    assert (result.metrics().flows["throughput_mbps"] > 0.2).all()


@pytest.mark.skipif(bool(lacking()), reason=f"needs kernel: {lacking()}")
def test_policy_that_answers_nan_leaves_real_flows_to_cubic(dumbbell: Path) -> None:
    """Weights that are finite and sums that are not: infinity less infinity."""
    safetensors = pytest.importorskip("safetensors.numpy", reason="needs train: an extra")
    folder = dumbbell.parent / "nan"
    folder.mkdir()
    (folder / "policy.toml").write_text(OVERFLOWING)
    largest = np.finfo(np.float32).max
    weights = {
        "layers.0.kernel": np.zeros((1, 2), np.float32),
        "layers.0.bias": np.full(2, largest, np.float32),
        "layers.1.kernel": np.array([[2, 0], [0, 2]], np.float32),
        "layers.1.bias": np.zeros(2, np.float32),
        "layers.2.kernel": np.array([[1], [-1]], np.float32),
        "layers.2.bias": np.zeros(1, np.float32),
    }
    safetensors.save_file(weights, folder / "weights.safetensors")
    params = {"policy": str(folder)}
    result = ackademy.run(dumbbell, cc="policy", params=params, backend="kernel")
    assert result.kernel is not None
    counted = {
        name: result.counters.filter(pl.col("name") == name)["value"].to_list()
        for name in ("decisions", "fallbacks", "not_finite", "out_of_range")
    }
    assert counted == {
        "decisions": [0.0, 0.0],
        "fallbacks": [1.0, 1.0],
        "not_finite": [1.0, 1.0],
        "out_of_range": [0.0, 0.0],
    }
    assert (result.kernel.policy_fallbacks, result.kernel.fallbacks) == (2, 0)
    # CUBIC of the daemon fills the link of 5 Mb/s all the same.
    assert result.metrics().flows["throughput_mbps"].sum() > 2.0
    assert any("2 flows without an answer" in line for line in notes([result.kernel]))


def test_folder_that_is_no_policy_starts_nothing(dumbbell: Path, fake: Path) -> None:
    (dumbbell.parent / "mine").mkdir()
    (dumbbell.parent / "mine" / "policy.toml").write_text("format = 7")
    params = {"policy": str(dumbbell.parent / "mine")}
    with pytest.raises(ControllerError, match=r"`policy`.*weights\.safetensors"):
        ackademy.run(dumbbell, cc="policy", params=params, backend="kernel")
    assert calls(fake) == []
