"""Programs of backends: where they are, which builds they are, and calling them."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ackademy import installation
from ackademy.errors import AckademyError, KernelError, Ns3Error, ScenarioError

ROOT = installation.ROOT
"""below which `make` builds programs"""
BAD_INPUT, INTERRUPTED = 2, 130
CLEAN_UP_S = 30.0
"""time in which an interrupted program cleans up"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs scenarios."""

    name: str
    variable: str
    """environment variable with its path; without it, the program is searched for"""
    built: tuple[str, ...]
    """patterns of its path in a checkout"""
    how_to_build: Callable[[], str]
    error: type[AckademyError]
    """raised if it is missing, fails, or prints what is not a result"""
    how_to_clean: str = ""
    """what removes the leftovers of one that was killed"""

    def find(self) -> Path:
        """The program: as the variable says, else on the PATH, else built in this checkout.

        Raises:
            AckademyError: if there is none.
        """
        named = os.environ.get(self.variable)
        if named:
            if not os.access(named, os.X_OK) or not Path(named).is_file():
                allowed = "allowed is a program that can be run"
                raise self.error(f"{self.variable} = {named}: {allowed}")
            return Path(named)
        installed = shutil.which(self.name)
        if installed:
            return Path(installed)
        built = [path for pattern in self.built for path in ROOT.glob(pattern)]
        if built:
            return max(built, key=lambda path: path.stat().st_mtime_ns)
        raise self.error(
            f"{self.name} is not on the PATH, not built in {ROOT}, and {self.variable} is not set; "
            f"{self.how_to_build()}"
        )

    def content_hash(self) -> str:
        """Hash of the program, for the names of results.

        Raises:
            AckademyError: if there is no program.
        """
        return _first_seen(self.find())

    def check_unchanged(self) -> None:
        """Refuse to run if the program was rebuilt since its hash was first taken.

        Raises:
            AckademyError: if it was rebuilt or is gone.
        """
        path = self.find()
        if _look(path) != _first_seen(path):
            again = "was built anew while the command ran: run the command again"
            raise self.error(f"{path} {again}")

    def call(
        self,
        words: Sequence[str],
        text: str,
        origin: str,
        timeout_s: float | None = None,
        folder: Path | None = None,
    ) -> str:
        """Standard output of the program for `text` on its standard input.

        Args:
            words: its arguments.
            text: for its standard input.
            origin: what errors call that text.
            timeout_s: after which it is ended as by Ctrl-C; `None` for never.
            folder: where it runs; by default this process's.

        Raises:
            AckademyError: if it is missing, fails, or takes too long.
            ScenarioError: if it refuses its input.
            KeyboardInterrupt: on Ctrl-C, once the program has cleaned up behind itself.
        """
        program = self.find().absolute()
        try:
            process = subprocess.Popen(
                [program, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=folder,
                process_group=0,  # Ctrl-C in the terminal reaches it once, from here
            )
        except OSError as error:
            reason = error.strerror or error
            raise self.error(f"{program} cannot be run: {reason}") from error
        try:
            out, err = process.communicate(text, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._end(process)
            late = f"was not done after {timeout_s:.0f} s and was ended"
            raise self.error(f"{origin}: {self.name} {late}") from None
        except KeyboardInterrupt:
            self._end(process)
            raise
        self._check(process.returncode, err, origin)
        return out

    def _check(self, status: int, err: str, origin: str) -> None:
        """Raise what an exit status other than 0 stands for."""
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            lines = err.strip().splitlines() or ["it says nothing"]
            line = lines[-1].removeprefix(f"{self.name}: ")
            if status == BAD_INPUT:
                # The text came by standard input, which the program calls `-`.
                raise ScenarioError(f"{origin}{line[1:] if line.startswith('-:') else f': {line}'}")
            raise self.error(f"{origin}: {self.name} ended with {status}: {line}")

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Interrupt the program and wait until it has cleaned up."""
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise self.error(
                f"{self.name} did not clean up in {CLEAN_UP_S:.0f} s and was killed"
                f"{self.how_to_clean}"
            ) from None


ackademyd = Program(
    name="ackademyd",
    variable="ACKADEMYD",
    built=("target/*/release/ackademyd", "target/release/ackademyd"),
    how_to_build=installation.build_daemon,
    error=KernelError,
    how_to_clean="; `ackademyd lab clean` removes what it left",
)
ackademy_ns3 = Program(
    name="ackademy-ns3",
    variable="ACKADEMY_NS3",
    built=("build/ns3/ackademy-ns3",),
    how_to_build=installation.build_ns3,
    error=Ns3Error,
)


@cache
def _first_seen(path: Path) -> str:
    """Hash of the program, taken once per process so that all cells of a command agree."""
    return _look(path)


def _look(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
