"""What the command line imports before it has something to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ackademy.cli import COMMANDS, load

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "polars", "rich", "jax", "sklearn", "gymnasium", "ray", "multiprocessing")
PROBE = """\
import atexit, json, sys
from ackademy.__main__ import main
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
main()
"""


def imported(*words: str, **environment: str) -> set[str]:
    """Modules that the command has imported when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_help_and_version_import_no_heavy_module(word: str) -> None:
    assert not imported(word) & set(HEAVY)


def test_the_version_imports_no_parser() -> None:
    assert not imported("--version") & {"typer", "pydantic", "ackademy.cli"}


def test_a_run_imports_no_data_frames_and_no_processes(tmp_path: Path) -> None:
    assert not imported("run", "deep_buffer", "--set", "duration_s=2") & {
        "polars",
        "multiprocessing",
    }
    exported = imported(
        "run", "deep_buffer", "--set", "duration_s=2", "--csv", str(tmp_path / "x.csv")
    )
    assert "polars" in exported


@pytest.mark.parametrize("command", ["run", "compare", "gap", "reproduce", "report", "list"])
def test_help_of_the_common_commands_imports_neither_numpy_nor_polars(command: str) -> None:
    assert not imported(command, "--help") & {"numpy", "polars", "jax"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_list_loads_and_says_what_it_does(name: str) -> None:
    command = load(name)
    assert command.help
    about = COMMANDS[name][1]
    assert about.endswith(".")
    assert len(about) <= 62  # one line of a terminal of 80 columns


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ackademy run deep", "deep_buffer"),
        ("ackademy run data/scenarios/deep", "data/scenarios/deep_buffer.toml"),
        ("ackademy run deep_buffer --cc cubic,new_", "cubic,new_reno"),
        ("ackademy compare deep_buffer --cc aurora", "aurora_mixed"),
        ("ackademy compare --suite pa", "papers"),
        ("ackademy reproduce kong2018/table", "kong2018/table5"),
        ("ackademy evaluate tcp_", "tcp_drinc"),
        ("ackademy list rl_", "rl_tcp"),
        ("ackademy eval", "evaluate"),
    ],
)
def test_the_shell_completes_names(typed: str, offered: str) -> None:
    words = {"_ACKADEMY_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'ackademy'\n" + PROBE],
        env={**os.environ, **words, "COMP_CWORD": str(typed.count(" "))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert offered in done.stdout.split()
    if "eval" not in typed:
        assert not set(json.loads(done.stderr.splitlines()[-1])) & {"numpy", "polars", "jax"}


WITHOUT_EXTRAS = """\
import sys
from ackademy.cli import COMMANDS, load

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS = sys.argv[1].split(",")
sys.meta_path.insert(0, Blocked())
for name in COMMANDS:
    command = load(name)
    for own in (command, *getattr(command, "commands", {}).values()):
        own.main(["--help"], prog_name=name, standalone_mode=False)
        print("shown:", name, own.name or "")
"""


def test_the_help_of_every_command_needs_no_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    names = {re.split(r"[>\[]", word)[0] for words in extras.values() for word in words}
    modules = {"scikit-learn": "sklearn", "tensorboardx": "tensorboardX"}
    blocked = ",".join(modules.get(name, name.replace("-", "_")) for name in sorted(names))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, blocked], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("shown: ")]
    assert {words[0] for words in shown} == set(COMMANDS)
