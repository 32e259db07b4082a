"""Runs the command `ackademy` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def ackademy_command(*words: str | Path, cwd: Path) -> tuple[int, str, str]:
    """Exit status, output and errors."""
    process = subprocess.run(
        [sys.executable, "-c", "from ackademy.cli import main; main()", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return process.returncode, process.stdout, process.stderr
