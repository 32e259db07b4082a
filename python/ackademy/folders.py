"""Where data files are, and how a policy's folder takes the place of another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ackademy.errors import AckademyError

POLICY_FILE = "policy.toml"
"""makes a folder a policy"""
SHIPPED = Path(__file__).parent / "data"
"""what the package brings along: in a checkout, links to the folders of the repository"""


def here_or_above(name: str) -> list[Path]:
    """`name` in the current folder, in those above it and among what the package ships.

    Args:
        name: of a file or folder, relative, with `/` between its parts.

    Returns:
        Those that exist, nearest first, each once.
    """
    here = Path.cwd()
    near = [root / name for root in (here, *here.parents) if (root / name).exists()]
    shipped = (SHIPPED / name).resolve()
    if shipped.exists() and shipped not in [path.resolve() for path in near]:
        near.append(shipped)
    return near


def check_policy_folder(folder: Path) -> None:
    """Refuse to put a policy where something else is.

    Raises:
        AckademyError: if the folder is there and holds no policy, or is named by dots alone.
    """
    is_other = folder.exists() and not (folder / POLICY_FILE).is_file()
    if is_other or folder.name in ("", ".."):
        raise AckademyError(f"{folder}: allowed: a new folder, or a policy's, to be replaced")


def put_policy_folder(made: Path, folder: Path) -> None:
    """Give a folder that was made beside it its name; what is there goes only then.

    Raises:
        OSError: if it cannot be renamed.
    """
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
