"""How the command ends: one line for what the user can fix, and the exit status."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

from ackademy import user_code
from ackademy.errors import AckademyError

CUT_OFF, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""exit statuses: standard output is closed; the user can fix the cause; Ctrl-C"""


def status_of(app: Callable[[], None]) -> int:
    """Run a command and return its exit status; faults that the user can fix are printed on stderr.

    Any other exception is a defect of this program and is raised to the caller.
    """
    _open_standard_streams()
    try:
        _check_words(sys.argv)
        return _outcome(app)
    except AckademyError as error:
        fail(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError as error:
        fail(f"not enough memory: {error}")
        return BAD_INPUT
    except OSError as error:
        return _unprintable(error)
    except Exception as error:
        told = user_code.told(error)
        if told is None:
            raise
        fail(told)
        return BAD_INPUT


def leave(status: int) -> NoReturn:
    """End the process with a status, after what was registered to run at its end.

    The interpreter is not taken down: that takes as long as a short command, and crashes where
    threads of JAX are still at work after an interrupt. Everything that is open has been closed on
    the way here.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def fail(message: str) -> None:
    """Say on stderr what went wrong."""
    from ackademy.console import Console

    with contextlib.suppress(OSError):  # standard error may be closed, too
        Console(stderr=True).print(message, style="red", highlight=False, soft_wrap=True)


def _outcome(app: Callable[[], None]) -> int:
    try:
        app()
        status: object = 0
    except SystemExit as stop:
        told = user_code.told(stop)
        if told is not None:
            fail(told)
            return BAD_INPUT
        status = stop.code
    sys.stdout.flush()
    return status if isinstance(status, int) else int(status is not None)


def _unprintable(error: OSError) -> int:
    """Standard output is closed or full: nothing more can be said there, at exit either.

    Raises:
        OSError: the error itself, if it is of a file.
    """
    told = user_code.told(error)
    if told is not None:
        fail(told)
        return BAD_INPUT
    if error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        return CUT_OFF
    fail(f"cannot write to standard output: {error.strerror or error}")
    return BAD_INPUT


def _check_words(words: list[str]) -> None:
    """Refuse words that are not UTF-8: they could be neither printed nor kept.

    Raises:
        AckademyError: naming the first.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise AckademyError(f"{word!a}: allowed: words in UTF-8") from None


def _open_standard_streams() -> None:
    """Give the three standard streams a place, and let them print every character in some way."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
    sys.stdout = _printing(sys.stdout, 1)
    sys.stderr = _printing(sys.stderr, 2)


def _printing(stream: TextIO | None, descriptor: int) -> TextIO:
    if stream is None:
        return os.fdopen(descriptor, "w", closefd=False)
    if hasattr(stream, "reconfigure") and stream.errors == "strict":
        stream.reconfigure(errors="replace")
    return stream
