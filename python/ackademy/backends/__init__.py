"""Names of the backends that run a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from ackademy.errors import AckademyError

Backend = Literal["sim", "quic", "kernel", "quic-lab", "ns3"]
"""`sim`: the simulator; `quic`: QUIC in virtual time; `kernel`: this machine's TCP in real time;
`quic-lab`: QUIC over this machine's network, in real time; `ns3`: ns-3's TCP"""
REAL_TIME: tuple[Backend, ...] = ("kernel", "quic-lab")
"""where a run takes its duration, and a machine to itself"""
TITLES: Mapping[str, str] = {
    "sim": "simulator",
    "quic": "QUIC",
    "quic-lab": "QUIC, lab",
    "ns3": "ns-3",
}
"""in tables, where it is not the name"""


def check_backend(backend: str) -> None:
    """Refuse a backend that there is not.

    Raises:
        AckademyError: with those that there are.
    """
    if backend not in get_args(Backend):
        raise AckademyError(f"backend = {backend!r}: allowed: {', '.join(get_args(Backend))}")


def several(words: str, option: str) -> tuple[Backend, ...]:
    """Two or more backends by commas, each once.

    Raises:
        AckademyError: if they are not; the message names the option.
    """
    found = tuple(word.strip() for word in words.split(","))
    known = get_args(Backend)
    if len(found) < 2 or len(set(found)) < len(found) or not set(found) <= set(known):
        allowed = f"two or more of {', '.join(known)}, each once, by commas"
        raise AckademyError(f"{option} {words}: allowed: {allowed}")
    return cast("tuple[Backend, ...]", found)


def title(backend: str) -> str:
    """A backend's name in tables."""
    return TITLES.get(backend, backend)
