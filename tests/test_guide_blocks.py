"""Every block of code of the pages to learn from is run by a test, or says why not."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*(DOCS / "guide").glob("*.md"), DOCS / "which-controller.md", DOCS / "gallery.md"])
ELSEWHERE = {"tutorial": "test_tutorial.py", "train-your-own": "test_train_your_own.py"}
"""pages whose blocks have a test of their own"""
BLOCK = re.compile(r"(<!-- not run: \S[^>]*-->\n)?^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"^<!-- no block of this page is run by a test: \S[^>]* -->$", re.MULTILINE)
QUICK = {
    "run": ["--set", "duration_s=5"],
    "compare": ["--set", "duration_s=5"],
    "scorecard": ["--row", "C3"],
}
VALUES = {"--runs": "1", "--out": ""}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the blocks that are run."""
    text = page.read_text(encoding="utf-8")
    if NOT_RUN.search(text):
        return []
    return [(language, own) for reason, language, own in BLOCK.findall(text) if not reason]


def quick(words: list[str]) -> list[str]:
    """A command with less to do."""
    following = [VALUES.get(option) or word for option, word in pairwise(["", *words])]
    runs = ["--runs", "1"] if words[1] == "compare" and "--runs" not in words else []
    return [*following, *QUICK.get(words[1], []), *runs]


def ackademy(words: list[str], folder: Path) -> None:
    main = [sys.executable, "-c", "from ackademy.cli import main; main()"]
    done = subprocess.run(
        [*main, *words[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize(
    "page", [own for own in PAGES if own.stem not in ELSEWHERE], ids=lambda page: page.stem
)
def test_the_blocks_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    found = blocks(page)
    for word, module, extra in (
        ("gymnasium", "jax", "train"),
        ("onnx", "onnxruntime", "onnx"),
        ("ackademy record", "h5py", "record"),
    ):
        if any(word in text for _, text in found) and not importlib.util.find_spec(module):
            pytest.skip(f"needs {extra}: an extra")
    for language, text in found:
        if language == "toml" and (name := re.match(r"# ([\w.]+\.toml)", text)):
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            subprocess.run([sys.executable, "-W", "error", "-c", text], cwd=tmp_path, check=True)
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] == "ackademy":
                    ackademy(quick(words) if words[1] in QUICK else words, tmp_path)
                else:
                    assert not words, f"{page.name}: nothing runs {line!r}"
        else:
            pytest.fail(f"{page.name}: nothing runs this block of {language or 'no language'}")


def test_pages_with_a_test_of_their_own_have_it() -> None:
    for name, test in ELSEWHERE.items():
        assert f"{name}.md" in (Path(__file__).parent / test).read_text(encoding="utf-8")


def test_a_block_without_a_reason_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: why -->\n```sh\nls\n```\n\n```sh\nrm\n```\n")
    assert blocks(page) == [("sh", "rm\n")]
