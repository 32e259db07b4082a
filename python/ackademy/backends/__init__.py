"""Names of the backends that run a scenario."""

from __future__ import annotations

from typing import Literal

Backend = Literal["sim", "kernel"]
"""`sim`: the simulator; `kernel`: TCP of this machine's kernel, in real time"""
