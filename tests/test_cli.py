"""The command line as a user meets it: in a process of its own."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ackademy

COMMANDS = (
    "run",
    "compare",
    "gap",
    "reproduce",
    "report",
    "list",
    "schema",
    "draw",
    "evaluate",
    "scorecard",
    "benchmark",
    "search",
    "certify",
    "stress",
    "zoo",
    "doctor",
)


def start(*words: str | Path, cwd: Path) -> subprocess.Popen[str]:
    code = "from ackademy.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ackademy_command(*words: str | Path, cwd: Path) -> tuple[int, str, str]:
    process = start(*words, cwd=cwd)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_examples(command: str, tmp_path: Path) -> None:
    code, out, _ = ackademy_command(command, "--help", cwd=tmp_path)
    assert code == 0
    assert f"ackademy {command}" in out.split("Usage:", 1)[1].split("\n", 1)[1]


def test_version_names_the_core(tmp_path: Path) -> None:
    code, out, _ = ackademy_command("--version", cwd=tmp_path)
    assert (code, out) == (0, f"ackademy {ackademy.__version__}, core {ackademy.CODE_HASH}\n")


def test_run_prints_flows_and_links_and_writes_what_was_asked(dumbbell: Path) -> None:
    folder = dumbbell.parent
    words = ("--cc", "cubic", "--seed", "3", "--html", "run.html", "--parquet", "out")
    code, out, err = ackademy_command("run", dumbbell.name, *words, cwd=folder)
    assert (code, err) == (0, "")
    for word in ("sender", "cubic", "bottleneck", "seed 3", "run.html"):
        assert word in out
    assert (folder / "run.html").read_text().startswith("<!doctype html>")
    assert (folder / "out" / "flows.parquet").is_file()


def test_compare_prints_a_line_per_controller(dumbbell: Path, mine: str) -> None:
    folder = dumbbell.parent
    words = ("--cc", f"new_reno,{Path(mine).name}", "--runs", "3", "--jobs", "1")
    code, out, err = ackademy_command("compare", dumbbell.name, *words, cwd=folder)
    assert (code, err) == (0, "")
    assert "new_reno" in out
    assert "mine.py:Mine" in out
    assert "±" in out
    assert list((folder / "reports").glob("compare-dumbbell-new_reno-mine.py-Mine*.html"))


def test_compare_takes_schemes_of_several_options(dumbbell: Path) -> None:
    words = ("--cc", "cubic", "--cc", "cubic:beta=0.8,c=0.3", "--runs", "1", "--csv", "-")
    code, out, _ = ackademy_command("compare", dumbbell.name, *words, cwd=dumbbell.parent)
    assert code == 0
    schemes = {row["scheme"] for row in csv.DictReader(io.StringIO(out))}
    assert schemes == {"cubic", "cubic:beta=0.8,c=0.3"}


@pytest.mark.parametrize("module", ["ackademy.cli", "typer", "ackademy.exits"])
def test_ctrl_c_while_the_command_is_imported_is_exit_130_without_a_word(
    module: str,
) -> None:
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
from ackademy.__main__ import main
sys.meta_path.insert(0, Interrupt())
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_compare_tells_scenarios_of_one_name_apart(dumbbell: Path) -> None:
    folder = dumbbell.parent
    (folder / "other").mkdir()
    shorter = dumbbell.read_text().replace("duration_s = 4", "duration_s = 2")
    (folder / "other" / "dumbbell.toml").write_text(shorter)
    words = ("dumbbell.toml", "other/dumbbell.toml", "--cc", "cubic", "--runs", "2")
    code, _, err = ackademy_command("compare", *words, "--json", "c.json", cwd=folder)
    assert (code, err) == (0, "")
    runs = json.loads((folder / "c.json").read_text())["runs"]
    assert [run["scenario"] for run in runs] == ["dumbbell"] * 2 + ["other/dumbbell"] * 2


@pytest.mark.parametrize("change", ["duration_s=0.01", "flow.0.start_s=9"])
def test_compare_of_flows_without_a_delay_writes_all_that_is_asked_for(
    dumbbell: Path, change: str
) -> None:
    """The flows end before their first ACK, or never start."""
    words = ("dumbbell.toml", "--cc", "cubic", "--runs", "2", "--set", change)
    exports = ("--json", "c.json", "--csv", "c.csv")
    code, out, err = ackademy_command("compare", *words, *exports, cwd=dumbbell.parent)
    assert (code, "Traceback" in err) == (0, False)
    assert "report: reports/compare-dumbbell-cubic" in out
    for name in ("c.json", "c.csv"):
        assert (dumbbell.parent / name).is_file()


@pytest.mark.parametrize(
    ("line", "named"),
    [("duration_s = 0\n", "duration_s"), ("speed = 3\n", "speed"), ("duration_s = [\n", "")],
)
def test_bad_scenario_is_exit_2_and_one_line(tmp_path: Path, line: str, named: str) -> None:
    (tmp_path / "bad.toml").write_text(line)
    code, out, err = ackademy_command("run", "bad.toml", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("bad.toml")
    assert named in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "nowhere.toml"), "nowhere.toml: No such file"),
        (("run", "dumbbell.toml", "--cc", "cubik"), "controller cubik: no controller"),
        (("run", "dumbbell.toml", "--cc", "cubic", "-p", "beta"), "--param beta: allowed"),
        (("run", "dumbbell.toml", "-p", "beta=1"), "--param needs --cc"),
        (("run", "dumbbell.toml", "--cc", "cubic", "-p", "beta=7"), "beta"),
        (("compare", "dumbbell.toml", "--cc", "cubik"), "controller cubik"),
        (
            ("run", "dumbbell.toml", "--cc", "kernel:cubic"),
            "kernel:cubic: runs with --backend kernel alone",
        ),
        (("compare", "dumbbell.toml", "--cc", "kernel:cubic"), "--backend kernel"),
        (
            ("run", "dumbbell.toml", "--cc", "noq:cubic"),
            "runs with --backend quic or quic-lab alone",
        ),
        (("gap", "dumbbell.toml", "--cc", "kernel:cubic"), "--baselines"),
        (("gap", "dumbbell.toml", "--baselines", "cubic"), "--baselines cubic: allowed"),
        (("reproduce", "nobody/table1"), "no experiment nobody/table1"),
        (
            ("list", "cubik"),
            "controller cubik: no controller and no policy of this name; similar: cubic",
        ),
        (("evaluate", "cubic"), "SCENARIO, for a controller was trained on nothing"),
        (("evaluate", "cubic", "--card"), "evaluate --card: cubic: allowed: a policy's folder"),
        (("run", "dumbbell.toml", "--html", "-"), "cannot write -: allowed: a file"),
        (("compare", "dumbbell.toml", "--html", "-"), "cannot write -: allowed: a file"),
    ],
    ids=" ".join,
)
def test_what_the_user_can_mend_is_exit_2_and_one_line(
    dumbbell: Path, words: tuple[str, ...], message: str
) -> None:
    code, _, err = ackademy_command(*words, cwd=dumbbell.parent)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_unknown_option_is_exit_2(tmp_path: Path) -> None:
    assert ackademy_command("run", "--sede", "3", cwd=tmp_path)[0] == 2


def test_python_controller_that_raises_shows_its_own_frames_alone(dumbbell: Path) -> None:
    source = "class Mine:\n    on_ack = on_loss = print\n    def __init__(self, flow): 1 / 0\n"
    (dumbbell.parent / "mine.py").write_text(source)
    words = ("run", "dumbbell.toml", "--cc", "mine.py:Mine")
    code, _, err = ackademy_command(*words, cwd=dumbbell.parent)
    assert code == 2
    assert err.splitlines()[1:] == [
        f'  File "{dumbbell.parent / "mine.py"}", line 3, in __init__',
        "    def __init__(self, flow): 1 / 0",
        "ZeroDivisionError: division by zero",
    ]


def test_cells_that_the_users_controller_fails_are_exit_2_after_the_table(dumbbell: Path) -> None:
    source = "class Mine:\n    on_ack = on_loss = print\n    def __init__(self, flow): 1 / 0\n"
    (dumbbell.parent / "mine.py").write_text(source)
    words = ("compare", "dumbbell.toml", "--cc", "cubic,mine.py:Mine", "--runs", "2", "--jobs", "2")
    code, out, err = ackademy_command(*words, cwd=dumbbell.parent)
    assert code == 2
    assert "cubic" in out
    assert "2 of 4 cells failed" in err
    assert "ZeroDivisionError" in err


def test_interrupted_comparison_keeps_its_cells_and_says_how_to_go_on(dumbbell: Path) -> None:
    """Ctrl-C once the first cell is on disk: exit 130, and the next call reuses what is there."""
    text = dumbbell.read_text().replace("duration_s = 4", "duration_s = 2000")
    dumbbell.write_text(text)
    words = ("compare", "dumbbell.toml", "--cc", "cubic", "--runs", "500", "--jobs", "2")
    process = start(*words, cwd=dumbbell.parent)
    cells = dumbbell.parent / "runs" / "compare"
    deadline = time.monotonic() + 60.0
    while not (cells.is_dir() and [c for c in cells.iterdir() if not c.name.startswith(".")]):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 500 cells are done and kept; run the same command again to continue" in err
    assert "Traceback" not in err
    assert all((cell / "summary.parquet").is_file() for cell in cells.iterdir())


def test_schema_is_json_that_knows_the_fields(tmp_path: Path) -> None:
    code, out, _ = ackademy_command("schema", cwd=tmp_path)
    assert code == 0
    assert "duration_s" in json.loads(out)["properties"]


def test_controller_is_also_known_by_the_name_with_hyphens(dumbbell: Path) -> None:
    for command in (("run", "dumbbell.toml", "--cc", "rl-tcp"), ("list", "rl-tcp")):
        code, out, err = ackademy_command(*command, cwd=dumbbell.parent)
        assert (code, err) == (0, "")
        assert "rl_tcp" in out


def test_list_shows_every_controller_and_its_settings(tmp_path: Path) -> None:
    code, out, _ = ackademy_command("list", cwd=tmp_path)
    assert code == 0
    for entry in ackademy._core.controllers():
        assert entry["name"] in out
    code, out, _ = ackademy_command("list", "rl_tcp", cwd=tmp_path)
    assert code == 0
    assert "epsilon" in out


def test_report_without_runs_says_so(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    code, out, err = ackademy_command("report", "kong2018/table4", "--work", tmp_path, cwd=root)
    assert (code, out) == (2, "kong2018/table4: nothing has been run yet\n")
    assert "nothing to report" in err


def test_completion_is_on(tmp_path: Path) -> None:
    assert "--install-completion" in ackademy_command("--help", cwd=tmp_path)[1]


def test_a_policy_on_the_command_line_lies_beside_the_user(dumbbell: Path) -> None:
    policy = Path(__file__).parents[1] / "crates/core/tests/files/lp_tcp/policy"
    (dumbbell.parent / "forest").write_bytes(policy.read_bytes())
    words = ("run", "dumbbell.toml", "--cc", "lp-tcp", "--param")
    code, out, err = ackademy_command(*words, "policy=forest", cwd=dumbbell.parent)
    assert (code, err) == (0, "")
    assert "lp_tcp" in out
    code, _, err = ackademy_command(*words, "policy=dumbbell.toml", cwd=dumbbell.parent)
    assert (code, err.count("\n")) == (2, 1)
    assert '`policy` = "dumbbell.toml": allowed is a file with a forest' in err
