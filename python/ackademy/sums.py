"""SHA-256 digests of files that are kept on disk to be read by a later command.

A folder's digests are in its file `SHA256SUMS`, which `sha256sum --check` reads, too. What differs
from its digest is damaged: a reader of tables may accept it with other numbers, or end the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ackademy import files
from ackademy.errors import FileError

SUMS = "SHA256SUMS"


def text(contents: Mapping[str, bytes]) -> bytes:
    """The file of digests of files, by name."""
    lines = [f"{hashlib.sha256(own).hexdigest()}  {name}\n" for name, own in contents.items()]
    return "".join(lines).encode()


def read(folder: Path) -> dict[str, str]:
    """The digests of a folder's files, by name.

    Raises:
        FileError: if there are none, or they cannot be read; one line.
    """
    lines = files.read_text(folder / SUMS).splitlines()
    pairs = [line.partition("  ") for line in lines]
    return {name: digest for digest, _, name in pairs}


def checked(path: Path, digests: Mapping[str, str]) -> bytes:
    """The content of a regular file that is what its digest says.

    Args:
        path: the file.
        digests: of its folder, as `read` returns them.

    Raises:
        FileError: if it has no digest, cannot be read or differs; one line.
    """
    try:
        size = path.stat().st_size
    except OSError as fault:
        raise FileError(f"{path}: {fault.strerror or fault}") from fault
    content = files.read_bytes(path, size)
    if path.name not in digests:
        raise FileError(f"{path}: not in {SUMS}")
    if hashlib.sha256(content).hexdigest() != digests[path.name]:
        raise FileError(f"{path}: not what its SHA-256 in {SUMS} says")
    return content
