"""Packets of a run as files: pcapng for Wireshark, qlog for qvis."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ackademy import files
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from ackademy import _core

PCAP_ENDING, QLOG_ENDING = ".pcapng", ".sqlog"
SNAPLEN_MIN, SNAPLEN_MAX = 128, 262_144
"""the headers fit into the first; the second is that of tcpdump"""
IP_VERSIONS = (4, 6)
QLOG_BACKENDS = ("sim", "quic")
SENDER, RECEIVER, LINK = "sender", "receiver", "link:"
LINKS_SHOWN = 20
"""of a scenario, in a message"""


@dataclass(frozen=True, slots=True)
class Pcap:
    """A pcapng file that is to have the packets of a run."""

    path: Path | str
    """ends in `.pcapng`"""
    at: str = SENDER
    """where packets are seen: `sender`, `receiver`, or `link:NAME`"""
    snaplen: int = SNAPLEN_MIN
    """bytes of each packet that are kept, headers included"""
    ip: int = 4
    """version of IP: 4 or 6"""


@dataclass(frozen=True, slots=True)
class _PcapFile:
    """A `Pcap` whose file is open, as the core reads it."""

    file: files.Stream
    at: str
    snaplen: int
    ip: int


class _Opened(TypedDict, total=False):
    """Arguments of `_core.simulate`."""

    pcap: _PcapFile
    qlog: files.Stream


@dataclass(frozen=True, slots=True)
class Captures:
    """The files that are to be written of a run."""

    pcap: Pcap | None = None
    qlog: Path | None = None

    @classmethod
    def of(cls, pcap: Pcap | Path | str | None, qlog: Path | str | None) -> Captures:
        """Those that are given.

        Raises:
            AckademyError: if a field of one is wrong.
            FileError: if a name has another ending, or one file is given twice.
        """
        if isinstance(pcap, Path | str):
            pcap = Pcap(pcap)
        if pcap is not None:
            pcap = _checked(pcap)
        if qlog is not None:
            qlog = files.check_ending(Path(qlog), (QLOG_ENDING,))
        return cls(pcap, qlog)

    @property
    def paths(self) -> list[Path]:
        """The files."""
        pcap = None if self.pcap is None else Path(self.pcap.path)
        return [path for path in (pcap, self.qlog) if path is not None]

    def check(self, scenario: _core.Scenario, backend: str) -> None:
        """Find out, before the work, whether the files can be written of a run.

        Raises:
            AckademyError: if the backend does not write them, or the scenario lacks the link.
            FileError: if a file cannot be written.
        """
        if self.pcap and backend != "sim":
            raise AckademyError(f"pcap on the backend {backend}: allowed: on the backend sim")
        if self.qlog and backend not in QLOG_BACKENDS:
            allowed = " or ".join(QLOG_BACKENDS)
            raise AckademyError(f"qlog on the backend {backend}: allowed: on the backend {allowed}")
        if self.pcap and self.pcap.at not in (SENDER, RECEIVER):
            name = self.pcap.at.removeprefix(LINK)
            if name not in scenario.links:
                raise AckademyError(f"pcap at {self.pcap.at!r}: allowed: {_allowed(scenario)}")
        files.check_outputs(self.paths)

    @contextlib.contextmanager
    def opened(self) -> Iterator[_Opened]:
        """The files, open to be written: they are there when the block ends, unless it raises.

        Raises:
            FileError: if one cannot be written.
        """
        with contextlib.ExitStack() as stack:
            found = _Opened()
            if self.pcap is not None:
                given = self.pcap
                stream = stack.enter_context(files.streamed(Path(given.path)))
                found["pcap"] = _PcapFile(stream, given.at, given.snaplen, given.ip)
            if self.qlog is not None:
                found["qlog"] = stack.enter_context(files.streamed(self.qlog))
            yield found


NO_CAPTURES = Captures()


def _checked(pcap: Pcap) -> Pcap:
    """A `Pcap` with fields in range.

    Raises:
        AckademyError: if one is not.
        FileError: if the name of the file has another ending.
    """
    path = files.check_ending(Path(pcap.path), (PCAP_ENDING,))
    if not SNAPLEN_MIN <= pcap.snaplen <= SNAPLEN_MAX:
        allowed = f"a whole number from {SNAPLEN_MIN} to {SNAPLEN_MAX}"
        raise AckademyError(f"pcap snaplen = {pcap.snaplen}: allowed: {allowed}")
    if pcap.ip not in IP_VERSIONS:
        raise AckademyError(f"pcap ip = {pcap.ip}: allowed: 4, 6")
    if pcap.at not in (SENDER, RECEIVER) and not pcap.at.startswith(LINK):
        allowed = f"{SENDER}, {RECEIVER}, {LINK}NAME"
        raise AckademyError(f"pcap at {pcap.at!r}: allowed: {allowed}")
    return Pcap(path, pcap.at, pcap.snaplen, pcap.ip)


def _allowed(scenario: _core.Scenario) -> str:
    """Where packets of a scenario can be seen."""
    links = scenario.links
    more = ", ..." if len(links) > LINKS_SHOWN else ""
    names = ", ".join(f"{LINK}{name}" for name in links[:LINKS_SHOWN])
    return f"{SENDER}, {RECEIVER}, {names}{more}"
