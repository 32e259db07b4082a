"""Times the start of commands: processor time, and what two jobs gain over one.

python tools/bench_commands.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

RUNS = 5
"""of each command; the least counts, since other programs only add"""
COMMAND = [sys.executable, "-m", "ackademy"]
CELLS = ["compare", "random_loss", "--cc", "cubic,new_reno,bbr3,own_queue", "--runs", "20"]
"""80 cells"""
LONG = ["--set", "duration_s=600"]
"""cells that take long enough for two jobs to gain"""
TARGETS = {"--version": 0.15, "run deep_buffer": 0.5, "compare, 80 kept cells": 0.5}
"""at most, seconds of processor time"""
TWO_JOBS = "compare, 80 cells: two jobs over one"
GAIN = 1.7
"""at least"""


def rows() -> list[tuple[str, float, str, float]]:
    """What, value, unit, target."""
    found = {name: _least(name.split())[0] for name in list(TARGETS)[:2]}
    with tempfile.TemporaryDirectory() as folder:
        _time(CELLS, folder)
        found["compare, 80 kept cells"] = _least(CELLS, folder)[0]
    one, two = (_least([*CELLS, *LONG, "--jobs", jobs])[1] for jobs in ("1", "2"))
    seconds = [(name, value, "s", TARGETS[name]) for name, value in found.items()]
    return [*seconds, (TWO_JOBS, one / two, "times", GAIN)]


def _least(words: list[str], folder: str = "") -> tuple[float, float]:
    """The least processor time and real time of a command, by default in an empty folder."""
    taken = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as own:
            taken.append(_time(words, folder or own))
    return min(cpu for cpu, _ in taken), min(real for _, real in taken)


def _time(words: list[str], folder: str) -> tuple[float, float]:
    """Processor time and real time, s."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([*COMMAND, *words], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.monotonic() - began


if __name__ == "__main__":
    for what, value, unit, target in rows():
        print(f"{what:<40}{value:.3g} {unit} (target {target:g})")
