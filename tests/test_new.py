"""What `ackademy new` writes runs as it is, by the commands that it names."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from ackademy.cli import templates
from ackademy.errors import AckademyError

QUICK = {
    "controller": ["--runs", "1", "--set", "duration_s=5"],
    "policy": ["--runs", "1", "--set", "duration_s=5"],
    "experiment": ["--runs", "1"],
    "reward": ["--set", "training.episodes=96"],
}
"""added to the first command, so that the tests are short"""


def ackademy(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    main = [sys.executable, "-c", "from ackademy.cli import main; main()"]
    return subprocess.run([*main, *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", get_args(templates.Kind))
def test_what_new_writes_runs_at_once(kind: templates.Kind, tmp_path: Path) -> None:
    if kind == "reward" and importlib.util.find_spec("jax") is None:
        pytest.skip("needs train: an extra")
    made = ackademy(["new", kind, "my_own"], tmp_path)
    assert made.returncode == 0, made.stderr
    for line in made.stdout.splitlines():
        word, _, rest = line.partition(": ") if line.startswith("next") else line.partition(" ")
        if word == "wrote":
            assert (tmp_path / rest).is_file()
    named = [line.removeprefix("next: ") for line in made.stdout.splitlines() if "next: " in line]
    assert named
    for index, command in enumerate(one for one in named if one.startswith("ackademy ")):
        words = shlex.split(command)[1:] + (QUICK.get(kind, []) if index == 0 else [])
        done = ackademy(words, tmp_path)
        assert done.returncode == 0, done.stderr


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("mine\n")
    done = ackademy(["new", "controller", "mine"], tmp_path)
    assert (done.returncode, done.stderr) == (
        2, "mine.py: it is there already; allowed: another name\n")  # fmt: skip
    assert own.read_text() == "mine\n"


@pytest.mark.parametrize("name", ["../mine", "a-b", "1st", ""])
def test_a_name_that_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(AckademyError, match="allowed: letters, digits and _"):
        templates.files("scenario", name)
