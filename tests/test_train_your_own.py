"""docs/guide/train-your-own.md: its files do what its steps say, a few episodes long."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="needs train: an extra")

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "train-your-own.md"
TEXT = PAGE.read_text(encoding="utf-8")


def files() -> dict[str, str]:
    """The document's files by the name in their first line."""
    blocks = re.findall(r"```(?:toml|python)\n(.*?)```", TEXT, re.DOTALL)
    named = ((re.match(r"# ([\w.]+)", block), block) for block in blocks)
    return {name[1]: block for name, block in named if name}


def commands(word: str) -> list[list[str]]:
    """The document's command lines that begin with `ackademy WORD`."""
    lines = re.findall(rf"^ackademy {word} .*$", TEXT, re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


def ackademy(words: list[str], folder: Path) -> str:
    """Output of a command that must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", "from ackademy.cli import main; main()", *words],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_step_before_the_kernel_runs(tmp_path: Path) -> None:
    for name, body in files().items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    assert sorted(files()) == ["link.toml", "mix.toml", "patient.py"]
    assert "cubic" in ackademy(commands("run")[0], tmp_path)
    trainings = commands("train")
    assert len(trainings) == 2
    for words in trainings:
        words[words.index("training.episodes=1500")] = "training.episodes=96"
        assert "96 episodes" in ackademy(words, tmp_path)
        assert (tmp_path / "mine" / "policy.toml").is_file()
    assert "rate_mbps" in ackademy(["draw", "mix.toml", "--seed", "7"], tmp_path)
    evaluations = commands("evaluate")
    assert len(evaluations) == 3
    for words in evaluations:
        assert "mine" in ackademy([*words, "--runs", "2"], tmp_path)


def test_a_frozen_policy_of_it_runs(tmp_path: Path) -> None:
    (tmp_path / "link.toml").write_text(files()["link.toml"], encoding="utf-8")
    policy = Path(__file__).parents[1] / "data/policies" / "aurora_mixed"
    (words,) = re.findall(r"ackademy run (link\.toml --backend kernel .*)$", TEXT, re.MULTILINE)
    given = shlex.split(words.replace("--backend kernel ", "").replace("mine", str(policy)))
    assert "policy" in ackademy(["run", *given], tmp_path)
