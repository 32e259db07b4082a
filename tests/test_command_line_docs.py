"""docs/reference/command-line.md: its Python runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cubic:beta=0.8" in done.stdout
    assert "Fixed" in done.stdout
