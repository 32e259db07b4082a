"""How this package is installed, and what adds an extra to it or builds the daemon."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""of the source checkout, if this is one"""


def is_checkout() -> bool:
    """Whether the package is used from its sources, where `make` builds what is missing."""
    return (ROOT / "Makefile").is_file() and (ROOT / "crates").is_dir()


def add_extra(extra: str) -> str:
    """The command that adds an extra to this installation, between backquotes."""
    if is_checkout():
        return f"`make build EXTRAS={extra}` in {ROOT}"
    url = _origin()
    return f"`pip install 'ackademy[{extra}]{f' @ {url}' if url else ''}'`"


def build_daemon() -> str:
    """What to do where the program `ackademyd` is missing."""
    if is_checkout():
        return f"build it with `make ackademyd` in {ROOT}"
    return "a wheel has no ackademyd: build it from the source distribution, crates/net"


def build_playground() -> str:
    """What to do where the page of `ackademy play` is missing."""
    if is_checkout():
        return f"build it with `make wasm` in {ROOT}"
    return "this wheel has no playground: build it in a source checkout, `make wasm`"


def _origin() -> str:
    """The file or address that the package was installed from; empty for an index."""
    try:
        text = distribution("ackademy").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return str(json.loads(text)["url"]) if text else ""
