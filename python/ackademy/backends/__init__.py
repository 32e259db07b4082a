"""Names of the backends that run a scenario."""

from __future__ import annotations

from typing import Literal, get_args

from ackademy.errors import AckademyError

Backend = Literal["sim", "quic", "kernel", "ns3"]
"""`sim`: the simulator; `quic`: QUIC in virtual time; `kernel`: this machine's TCP in real time;
`ns3`: ns-3's TCP"""
REAL_TIME: tuple[Backend, ...] = ("kernel",)
"""where a run takes its duration, and a machine to itself"""


def check_backend(backend: str) -> None:
    """Refuse a backend that there is not.

    Raises:
        AckademyError: with those that there are.
    """
    if backend not in get_args(Backend):
        raise AckademyError(f"backend = {backend!r}: allowed: {', '.join(get_args(Backend))}")
