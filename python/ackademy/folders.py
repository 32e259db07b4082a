"""Where the files of the repository are."""

from __future__ import annotations

from pathlib import Path


def here_or_above(name: str) -> list[Path]:
    """`name` in the current folder, in those above it and in the source checkout, if it is there.

    Args:
        name: of a file or folder, relative, with `/` between its parts.

    Returns:
        Those that exist, nearest first, each once.
    """
    here = Path.cwd()
    roots = (here, *here.parents, Path(__file__).resolve().parents[2])
    found = (root / name for root in roots if (root / name).exists())
    return list(dict.fromkeys(found))
