"""Guests: other people's controllers, compiled from their sources into a library by `make guests`.

`linux:bbr` is the controller `bbr` of the library `linux.so`. Libraries lie in `build/guests`, here
or above, or in the folder that `ACKADEMY_GUESTS` names.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ackademy import _core, files, installation
from ackademy.errors import ControllerError
from ackademy.folders import expanded, here_or_above, is_file

SOURCES = {"linux": "Linux's tcp_*.c, unmodified", "s2n": "s2n-quic-core, unmodified"}
"""what each library was compiled from"""
FOLDER = "build/guests"
VARIABLE = "ACKADEMY_GUESTS"
"""names another folder"""
BYTES_MAX = 1 << 28


def is_guest(cc: str) -> bool:
    """Whether a controller's name is of the form `linux:NAME` or `s2n:NAME`."""
    return cc.partition(":")[0] in SOURCES and ":" in cc


def libraries(names: list[str]) -> dict[str, Path]:
    """The libraries of the guests among these controllers, by the controllers' names."""
    return {name: library(name) for name in names if is_guest(name)}


def library(cc: str) -> Path:
    """The library that has a guest.

    Raises:
        ControllerError: if it is not built, cannot be loaded, or has no such controller; one line.
    """
    source, _, name = cc.partition(":")
    path = _built(source)
    if path is None:
        where = os.environ.get(VARIABLE) or FOLDER
        raise ControllerError(
            f"controller {cc}: no {source}.so in {where}: {installation.build_guests()}"
        )
    known = _core.guest_names(path)
    if name not in known:
        allowed = ", ".join(f"{source}:{own}" for own in sorted(known))
        raise ControllerError(f"controller {cc}: allowed with {path}: {allowed}")
    return path


def names() -> list[tuple[str, str]]:
    """The guests that are built, each with its source."""
    built = {source: _built(source) for source in SOURCES}
    return [
        (f"{source}:{name}", SOURCES[source])
        for source, path in built.items()
        if path is not None
        for name in sorted(_core.guest_names(path))
    ]


def fingerprint(cc: str) -> str:
    """Hash of the library, for names of results."""
    return hashlib.sha256(files.read_bytes(library(cc), BYTES_MAX, ControllerError)).hexdigest()


def _built(source: str) -> Path | None:
    named = os.environ.get(VARIABLE)
    folders = [expanded(named)] if named else here_or_above(FOLDER)
    paths = [folder / f"{source}.so" for folder in folders]
    return next((path.resolve() for path in paths if is_file(path)), None)
