"""How this package is installed, and what adds an extra to it or builds a program."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
"""of the source checkout, if this is one"""


def is_checkout() -> bool:
    """Whether the package is used from its sources, where `make` builds what is missing."""
    return (ROOT / "Makefile").is_file() and (ROOT / "crates").is_dir()


def add_extra(extra: str) -> str:
    """What adds an extra to this installation; a command is between backquotes."""
    if is_checkout():
        return f"`make build EXTRAS={extra}` in {ROOT}"
    url = _origin()
    if url.startswith("file:") and not Path(unquote(urlsplit(url).path)).exists():
        return f"pip, with [{extra}] after the path of the wheel ({url} is gone)"
    if not url:  # from a folder or an index, whose options are not known
        return f"pip as before, with ackademy[{extra}] in place of ackademy"
    return f"`pip install 'ackademy[{extra}] @ {url}'`"


def add_package(package: str) -> str:
    """The command that adds a package of the index to this environment, between backquotes."""
    tool = "uv pip install --python .venv" if is_checkout() else "pip install"
    return f"`{tool} '{package}'`"


def again() -> str:
    """What to do where this installation is not whole."""
    if is_checkout():
        return f"`make build` in {ROOT}"
    return "install ackademy again, in a new environment"


def build_daemon() -> str:
    """What to do where the program `ackademyd` is missing."""
    if is_checkout():
        return f"build it with `make ackademyd` in {ROOT}"
    return (
        "a wheel has no ackademyd: it is another file of the same release, or built in a checkout"
    )


def build_ns3() -> str:
    """What to do where the program `ackademy-ns3` is missing."""
    if is_checkout():
        return f"build it with `make ns3` in {ROOT}"
    return "a wheel has no ackademy-ns3: it is built in a checkout of the sources, `make ns3`"


def build_guests() -> str:
    """What to do where a library of guests is missing."""
    if is_checkout():
        return f"build it with `make guests` in {ROOT}"
    return "a wheel has no guests: they are built in a checkout of the sources, `make guests`"


def site() -> Path:
    """The folder of the built documentation."""
    return ROOT / "site"


def build_site() -> str:
    """What to do where the documentation is not built."""
    if is_checkout():
        return f"build them with `make docs` in {ROOT}"
    return "a wheel has no pages: they are built in a checkout of the sources"


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
