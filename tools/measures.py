"""Print how large the project is and how fast its first second, beside the aims.

    python tools/measures.py

Times are processor times of this machine, the least of three runs.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = ("run", "deep_buffer")


def lines(files: Iterable[Path]) -> int:
    """Lines of text files."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository that match; links to folders are left out."""
    out = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in out.splitlines() if (ROOT / name).is_file()]


def kilobytes(*patterns: str) -> float:
    """Size of files."""
    return sum(file.stat().st_size for file in tracked(*patterns)) / 1000


def processor_s(*words: str) -> float:
    """User and system time of a command, without the kept results of others."""
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "ackademy", *words], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def main() -> None:
    """Print the measures."""
    studies = ROOT / "python/ackademy/studies"
    units = [one for one in studies.iterdir() if one.name[0] not in "_." and one.suffix != ".pyc"]
    measures = [
        ("lines of the package", lines(tracked("python/ackademy/*.py")), 31000),
        ("lines of its tests", lines(tracked("tests/*.py")), 16000),
        ("studies", len(units), 15),
        ("docs, kB of Markdown", kilobytes("docs/*.md"), 450),
        ("docs/results, kB of Markdown", kilobytes("docs/results/*.md"), 150),
        ("largest page of results, KiB", max(map(_kib, tracked("docs/results/*.md"))), 12),
        ("ackademy --version, s", processor_s("--version"), 0.15),
        ("ackademy run deep_buffer, s", processor_s(*RUN), 0.5),
    ]
    for name, value, aim in measures:
        shown = f"{value:.3g}" if isinstance(value, float) else str(value)
        print(f"{name:32} {shown:>8}  aim {aim:<8} {'met' if value <= aim else 'missed'}")


def _kib(file: Path) -> float:
    return file.stat().st_size / 1024


if __name__ == "__main__":
    main()
