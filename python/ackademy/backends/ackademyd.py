"""The program `ackademyd`: where it is, which build it is, and calling it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ackademy import installation
from ackademy.errors import KernelError, ScenarioError

VARIABLE = "ACKADEMYD"
"""environment variable with the path of the program; without it, the program is searched for"""
BAD_INPUT, INTERRUPTED = 2, 130
CLEAN_UP_S = 30.0
"""time in which an interrupted program cleans up"""


def find() -> Path:
    """The program: `$ACKADEMYD`, else on the PATH, else built in this checkout.

    Raises:
        KernelError: if there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise KernelError(f"{VARIABLE} = {named}: allowed is a program that can be run")
        return Path(named)
    installed = shutil.which("ackademyd")
    if installed:
        return Path(installed)
    target = Path(__file__).parents[3] / "target"
    built = [*target.glob("*/release/ackademyd"), *target.glob("release/ackademyd")]
    if built:
        return max(built, key=lambda path: path.stat().st_mtime_ns)
    raise KernelError(
        f"ackademyd is not on the PATH, not in {target}, and {VARIABLE} is not set; "
        f"{installation.build_daemon()}"
    )


def content_hash() -> str:
    """Hash of the program, for the names of results.

    Raises:
        KernelError: if there is no program.
    """
    return _first_seen(find())


def check_unchanged() -> None:
    """Refuse to run if the program was rebuilt since its hash was first taken.

    Raises:
        KernelError: if it was rebuilt or is gone.
    """
    path = find()
    if _look(path) != _first_seen(path):
        raise KernelError(f"{path} was built anew while the command ran: run the command again")


def call(words: Sequence[str], text: str, origin: str, timeout_s: float) -> str:
    """Standard output of the program for `text` on its standard input.

    Args:
        words: its arguments.
        text: for its standard input.
        origin: what errors call that text.
        timeout_s: after which it is ended as by Ctrl-C.

    Raises:
        KernelError: if it is missing, fails, or takes too long.
        ScenarioError: if it refuses its input.
        KeyboardInterrupt: on Ctrl-C, once the program has cleaned up behind itself.
    """
    program = find()
    try:
        process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C in the terminal reaches it once, from here
        )
    except OSError as error:
        raise KernelError(f"{program} cannot be run: {error.strerror or error}") from error
    try:
        out, err = process.communicate(text, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(process)
        raise KernelError(
            f"{origin}: ackademyd was not done after {timeout_s:.0f} s and was ended"
        ) from None
    except KeyboardInterrupt:
        _end(process)
        raise
    if process.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if process.returncode:
        line = _last_line(err)
        if process.returncode == BAD_INPUT:
            # The text came by standard input, which the program calls `-`.
            raise ScenarioError(f"{origin}{line[1:] if line.startswith('-:') else f': {line}'}")
        raise KernelError(f"{origin}: ackademyd ended with {process.returncode}: {line}")
    return out


def _last_line(err: str) -> str:
    lines = err.strip().splitlines()
    return lines[-1].removeprefix("ackademyd: ") if lines else "it says nothing"


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupt the program and wait until it has cleaned up."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=CLEAN_UP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise KernelError(
            f"ackademyd did not clean up in {CLEAN_UP_S:.0f} s and was killed; "
            "`ackademyd lab clean` removes what it left"
        ) from None


@cache
def _first_seen(path: Path) -> str:
    """Hash of the program, taken once per process so that all cells of a command agree."""
    return _look(path)


def _look(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
