"""The numbered examples run as they stand."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(example: Path) -> None:
    missing = [name for name in sorted(imports(example)) if importlib.util.find_spec(name) is None]
    if missing:
        extra = "torch" if "torch" in imports(example) else "train"
        pytest.skip(f"needs {extra}: no {', '.join(missing)} here")
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 9


def test_only_the_examples_of_the_extra_torch_may_be_skipped() -> None:
    needs = {path.stem for path in EXAMPLES if "torch" in imports(path)}
    assert needs == {"08_stable_baselines3", "09_rllib"}


def imports(example: Path) -> set[str]:
    """Names of the packages that an example imports."""
    found = set()
    for node in ast.walk(ast.parse(example.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    return found
