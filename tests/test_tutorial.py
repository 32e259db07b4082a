"""docs/guide/tutorial.md: its commands run in their order, the long ones shortened."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "tutorial.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]
SHORTER = {"--runs": "1"}
"""values of options that take minutes as they stand"""


def quick(words: list[str]) -> list[str]:
    """A command with less to do; the training ends with the first update."""
    following = [
        "training.episodes=96"
        if word.startswith("training.episodes=")
        else SHORTER.get(option, word)
        for option, word in pairwise(words)
    ]
    more = ["--set", "duration_s=5"] if words[1] in ("run", "compare") else []
    return [words[0], *following, *more]


def run(words: list[str], folder: Path) -> None:
    """A command that must succeed."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr[-3000:]}"


def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("training needs the extra `train`")
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        if named := re.match(r"# ([\w.]+\.py)\n", block):
            (tmp_path / named[1]).write_text(block, encoding="utf-8")
        else:
            run([sys.executable, "-W", "error", "-c", block], tmp_path)
    main = [sys.executable, "-c", "from ackademy.cli import main; main()"]
    commands = [quick(words) for words in COMMANDS if words[0] == "ackademy"]
    for words in commands:
        run([*main, *words[1:]], tmp_path)
    for made in ("run.html", "cubic.html", "mine.py", "my_reward.py", "mine/policy.toml"):
        assert (tmp_path / made).is_file(), made
    assert [words[1] for words in commands] == [
        "list", "run", "run", "compare", "run", "reproduce", "compare", "new", "train", "compare",
    ]  # fmt: skip


def test_other_commands_of_the_tutorial_are_those_of_the_readme() -> None:
    readme = (PAGE.parents[2] / "README.md").read_text(encoding="utf-8")
    others = [words for words in COMMANDS if words[0] != "ackademy"]
    assert [words[:2] for words in others] == [["make", "build"], ["source", ".venv/bin/activate"]]
    assert all(" ".join(words[:2]) in readme for words in others)
