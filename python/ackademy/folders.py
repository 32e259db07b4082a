"""Where data files are, and how a policy's folder takes the place of another."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from pathlib import Path

from ackademy.errors import AckademyError
from ackademy.files import check_output_folder

POLICY_FILE = "policy.toml"
"""makes a folder a policy"""
CARD_PAGE = "CARD.md"
"""says what a policy is good for"""
TRAINED = Path("trained")
"""where policies go for which no folder is named"""
SHIPPED = Path(__file__).parent / "data"
"""what the package brings along: in a checkout, a link to `data/`"""
SCHEMAS = "schemas"
"""the folder of the JSON Schemas in `SHIPPED`"""
CHECKOUT_ONLY = "research/ is only in a source checkout"
"""why a policy that an experiment or a recipe names may be missing"""


def schema_file(kind: str) -> Path:
    """The JSON Schema of a kind of files: `scenario`, `recipe`, ..., `paper`."""
    return SHIPPED / SCHEMAS / f"{kind}.schema.json"


def here_or_above(name: str) -> list[Path]:
    """`name` in the current folder, in those above it and among what the package ships.

    Args:
        name: of a file or folder, relative, with `/` between its parts.

    Returns:
        Those that exist, nearest first, each once; none for what can be no path.
    """
    here = Path.cwd()
    near = [root / name for root in (here, *here.parents) if exists(root / name)]
    own = SHIPPED / name.removeprefix("data/")
    if exists(own):
        shipped = own.resolve()
        if shipped not in [path.resolve() for path in near]:
            near.append(shipped)
    return near


def is_left_out(path: Path) -> bool:
    """Whether a path leads to the folder `research` beside `data`, which a wheel lacks."""
    research = SHIPPED.resolve().parent / "research"
    return not exists(path) and path.resolve().is_relative_to(research)


def exists(path: Path | str) -> bool:
    """Whether a file or folder is there; not for what can be no path.

    `Path.exists`, `is_file` and `is_dir` raise for a name that is too long for the file system.
    """
    return os.path.exists(path)


def is_file(path: Path | str) -> bool:
    """Whether a regular file is there, as `exists`."""
    return os.path.isfile(path)


def is_folder(path: Path | str) -> bool:
    """Whether a folder is there, as `exists`."""
    return os.path.isdir(path)


def expanded(word: Path | str) -> Path:
    """A path, its `~` replaced by a home; unchanged if there is no such home."""
    return Path(os.path.expanduser(word))


def check_policy_folder(folder: Path, *, force: bool = False) -> None:
    """Refuse to put a policy where something else is.

    Args:
        folder: where the policy is to go.
        force: whether a policy that is there may be replaced.

    Raises:
        AckademyError: if the folder is named by dots alone, holds a policy that may not be
            replaced, is there and holds no policy, or could not be made.
    """
    check_output_folder(folder.parent)
    if folder.name in ("", ".."):
        raise AckademyError(f"{folder}: allowed: the name of a new folder")
    if not os.path.lexists(folder):
        return
    if not any((folder / name).is_file() for name in (POLICY_FILE, CARD_PAGE)):
        raise AckademyError(f"{folder}: exists and holds no policy; allowed: a new folder")
    if not force:
        raise AckademyError(
            f"{folder}: holds a policy; allowed: a new folder, or --force to replace it"
        )


def new_policy_folder(name: str) -> Path:
    """The first of `trained/NAME`, `trained/NAME-2`, `trained/NAME-3` ... that does not exist."""
    numbers = itertools.count(2)
    folder = TRAINED / name
    while os.path.lexists(folder):
        folder = TRAINED / f"{name}-{next(numbers)}"
    return folder


def work_name(folder: Path) -> str:
    """Where a training of this policy keeps what it needs: one name for one folder.

    Two folders of the same name in different places must not share checkpoints.
    """
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()
    return f"{folder.name}-{digest[:8]}"


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
