"""Python files of the user: loaded by path, and the faults in them, shown by their own frames.

A controller or a reward that raises is the user's to fix. The frames of this project around it
say nothing to them, so `told` leaves them out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from ackademy import files
from ackademy.errors import AckademyError

FRAMES_MAX = 6
"""of a message: the first, where the file was entered, and the last ones"""

_loaded: set[str] = set()
"""paths of the files that `load` has executed, or tried to"""


def load(path: Path, kind: str, error: type[AckademyError]) -> ModuleType:
    """Execute a Python file as `import` would, once.

    Args:
        path: of the file.
        kind: what it is loaded for, a part of the module's name.
        error: the class of what is raised if it cannot be read.

    Raises:
        AckademyError: if the file cannot be read.
        Exception: whatever the file itself raises.
    """
    path = path.resolve()
    name = f"ackademy_{kind}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    files.read_bytes(path, error=error)  # before the loader reads a pipe, which may never end
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise error(f"{path}: allowed: a Python file")
    _loaded.add(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it loads
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def check_call(
    function: Callable[..., object],
    arguments: Sequence[str],
    where: str,
    error: type[AckademyError],
) -> None:
    """Refuse a function that cannot be called with these arguments; the function is not called.

    Args:
        function: of the user; one without a signature, such as a builtin, is accepted.
        arguments: names of the positional arguments that it gets.
        where: what the message begins with.
        error: the class of what is raised.

    Raises:
        AckademyError: with what is expected; one line.
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as fault:
        name = getattr(function, "__name__", repr(function))
        expected = f"{name}({', '.join(arguments)})"
        raise error(f"{where}: {fault}; allowed: {expected}") from None
    except ValueError:
        return


def told(error: BaseException) -> str | None:
    """What went wrong in the user's file: its own frames and the error; `None` if nothing did.

    Returns:
        At most 2 * FRAMES_MAX + 3 lines as Python prints them, the error last.
    """
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.filename in _loaded), None)
    is_unreadable = isinstance(error, SyntaxError) and error.filename in _loaded
    if first is None and not is_unreadable:
        return None
    own = [] if first is None or is_unreadable else list(frames[first:])
    lines = [f"{own[0].filename}: an exception was raised"] if own else []
    if len(own) > FRAMES_MAX:
        hidden = f"  ... {len(own) - FRAMES_MAX} more frames ...\n"
        shown = [*_formatted(own[:1]), hidden, *_formatted(own[1 - FRAMES_MAX :])]
    else:
        shown = _formatted(own)
    last = traceback.format_exception_only(error)
    return "\n".join([*lines, "".join([*shown, *last]).rstrip()])


def _formatted(frames: list[traceback.FrameSummary]) -> list[str]:
    """Without the marks below a line that point into it."""
    return [
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n'
        + (f"    {frame.line}\n" if frame.line else "")
        for frame in frames
    ]
