"""Ctrl-C for trainings, which have to end between two batches.

A `KeyboardInterrupt` at any line is lost where Python calls a function of its own accord: JAX has
one for the garbage collector, in which a training spends some of its first seconds. So a training
asks, at places where it may end, whether Ctrl-C was pressed. Pressed again it ends the process at
once, whatever runs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pressed = threading.Event()


@contextmanager
def between_batches() -> Iterator[None]:
    """Within it, Ctrl-C raises where `check` is called and nowhere else; also a decorator.

    Only the main thread gets signals; elsewhere, and where Ctrl-C is ignored, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not is_main or before in (signal.SIG_IGN, None):
        yield
        return
    _pressed.clear()
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _pressed.clear()


def check() -> None:
    """To be called where a training may end.

    Raises:
        KeyboardInterrupt: if Ctrl-C was pressed.
    """
    if _pressed.is_set():
        raise KeyboardInterrupt


def _press(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _pressed.set()
