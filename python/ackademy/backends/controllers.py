"""Python controllers: a class in a user's file, named as `mine.py:Mine`.

class Mine:
def __init__(self, flow):
self.cwnd_bytes = float(flow.initial_cwnd_bytes)

def on_ack(self, ack):
self.cwnd_bytes += 1250 * ack.acked_bytes / self.cwnd_bytes

def on_loss(self, loss):
self.cwnd_bytes /= 2
"""

from __future__ import annotations

import hashlib
import inspect
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from ackademy import files, imported, user_code
from ackademy.backends import guests
from ackademy.errors import ControllerError
from ackademy.folders import expanded, is_file

if TYPE_CHECKING:
    from ackademy._core import Ack, ControllerClass, Flow, Loss
    from ackademy.backends import Backend

OWN: Mapping[str, tuple[Backend, ...]] = {
    "kernel:": ("kernel",),
    "noq:": ("quic", "quic-lab"),
    "quinn:": ("quic", "quic-lab"),
    "ns3:": ("ns3",),
    **dict.fromkeys((f"{source}:" for source in guests.SOURCES), ("sim",)),
}
"""backends of controllers that not every backend has, by what begins their names"""


@runtime_checkable
class Controller(Protocol):
    """What the simulator calls and reads. Optional: `pacing_bps: float`, bits per second."""

    cwnd_bytes: float
    """congestion window, bytes; read after every call and raised to one packet if smaller"""

    def on_ack(self, ack: Ack) -> None:
        """Something was delivered."""

    def on_loss(self, loss: Loss) -> None:
        """Something was lost."""


@runtime_checkable
class CoupledController(Protocol):
    """Governs all subflows of a connection. Optional: `pacing_bps(subflow)`, bit/s or None.

    One is made per connection, without arguments. Every method takes the number of a subflow.
    """

    def subflow_added(self, subflow: int, flow: Flow) -> None:
        """A subflow joined; called before any other method that names it."""

    def subflow_removed(self, subflow: int) -> None:
        """A subflow left."""

    def on_ack(self, subflow: int, ack: Ack) -> None:
        """Something was delivered."""

    def on_loss(self, subflow: int, loss: Loss) -> None:
        """Something was lost."""

    def cwnd_bytes(self, subflow: int) -> float:
        """Congestion window, bytes; asked of every subflow after every call."""


CALLS: Mapping[str, tuple[str, ...]] = {"on_ack": ("ack",), "on_loss": ("loss",)}
"""methods of a controller and the arguments that they are called with"""
COUPLED_CALLS: Mapping[str, tuple[str, ...]] = {
    "on_ack": ("subflow", "ack"),
    "on_loss": ("subflow", "loss"),
    "subflow_added": ("subflow", "flow"),
    "subflow_removed": ("subflow",),
    "cwnd_bytes": ("subflow",),
}
"""of one that governs several subflows"""


def _calls(cls: type) -> Mapping[str, tuple[str, ...]]:
    return COUPLED_CALLS if hasattr(cls, "subflow_added") else CALLS


def _missing(cls: type) -> list[str]:
    """The methods that a controller's class lacks; several subflows need more of them."""
    return [method for method in _calls(cls) if not callable(getattr(cls, method, None))]


def _check_class(cls: type, where: str) -> None:
    """Refuse a class that the simulator could not make or call.

    Raises:
        ControllerError: naming the method; one line.
    """
    if missing := _missing(cls):
        raise ControllerError(f"{where}: it lacks {' and '.join(missing)}")
    calls = _calls(cls)
    user_code.check_call(cls, () if calls is COUPLED_CALLS else ("flow",), where, ControllerError)
    for method, arguments in calls.items():
        has_self = inspect.isfunction(inspect.getattr_static(cls, method))
        called = ("self", *arguments) if has_self else arguments
        user_code.check_call(getattr(cls, method), called, f"{where}.{method}", ControllerError)


def canonical(cc: str) -> str:
    """A controller's name with underscores: `rl-tcp`, which `ackademyd` takes too, is `rl_tcp`."""
    return cc if ":" in cc else cc.replace("-", "_")


def own_of(cc: str) -> tuple[Backend, ...]:
    """The backends whose own controller this is, as `kernel:cubic`; none for one of ours."""
    return next((backends for prefix, backends in OWN.items() if cc.startswith(prefix)), ())


def check(names: Sequence[str], backend: Backend) -> None:
    """Refuse controllers that a backend cannot run.

    Raises:
        ControllerError: for the first of them.
    """
    for name in names:
        own = own_of(name)
        if own and backend not in own:
            where = " or ".join(own)
            raise ControllerError(f"controller {name}: runs with --backend {where} alone")
        if backend != "sim" and is_python(name):
            raise ControllerError(
                f"controller {name}: is Python's; allowed with --backend {backend}: a name from "
                "`ackademy list`, or one of its own"
            )
        if guests.is_guest(name):
            guests.library(name)


def is_python(cc: str) -> bool:
    """Whether a controller's name is of the form `file.py:Class`."""
    return cc.rpartition(":")[0].endswith(".py")


_CLASSES: dict[str, ControllerClass] = {}
"""registered classes by the names that scenarios use"""
_SOURCE_HASHES: dict[str, str] = {}
"""hashes of their sources, which name results"""


def register(cls: ControllerClass) -> str:
    """The name by which scenarios of this process refer to a class; it needs no file.

    Raises:
        ControllerError: if it is not a class, or lacks a method of `Controller`.
    """
    if not isinstance(cls, type):
        raise ControllerError(f"cc = {cls!r}: allowed: a name, a class, or one with settings")
    _check_class(cls, f"controller {cls.__qualname__}")
    name = f"{cls.__module__}.py:{cls.__qualname__}"
    if _CLASSES.get(name) is not cls:
        _CLASSES[name] = cls
        _SOURCE_HASHES[name] = _source_hash(cls)
    return name


def label_of(cls: ControllerClass) -> str:
    """Name of a class in tables."""
    return cls.__qualname__ if isinstance(cls, type) else repr(cls)


def is_registered(cc: str) -> bool:
    """Whether a name stands for a class of this process, which other processes do not know."""
    return cc in _CLASSES


def load(cc: str, beside: Path) -> ControllerClass:
    """The class that `file.py:Class` names; the file is executed, as `import` would.

    Args:
        cc: the name.
        beside: the scenario's folder, where the file is looked for after the current one.

    Raises:
        ControllerError: if the file or the class is missing or lacks a method.
        Exception: whatever the file itself raises.
    """
    if cc in _CLASSES:
        return _CLASSES[cc]
    path, name = _split(cc, beside)
    module = user_code.load(path, "controller", ControllerError)
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise ControllerError(
            f"controller {cc}: no class {name} in {path}; it has: {', '.join(classes) or 'none'}"
        )
    _check_class(found, f"controller {cc}")
    return cast("ControllerClass", found)


def only_class(file: str) -> str:
    """The name `file.py:Class` of the one controller that a file has; the file is executed.

    Raises:
        ControllerError: if there is no such file, or it has none or several.
        Exception: whatever the file itself raises.
    """
    path, _ = _split(f"{file}:", Path())
    module = user_code.load(path, "controller", ControllerError)
    own = {k: v for k, v in vars(module).items() if isinstance(v, type)}
    classes = [k for k, v in own.items() if v.__module__ == module.__name__]
    found = [name for name in classes if not _missing(own[name])]
    if len(found) != 1:
        names = [f"{file}:{name}" for name in found or classes]
        listed = " or ".join(names) or "a class with on_ack and on_loss"
        raise ControllerError(f"controller {file}: allowed: {listed}")
    return f"{file}:{found[0]}"


def fingerprint(cc: str, beside: Path) -> str:
    """Hash of the file behind `file.py:Class` or a guest, for names of results; empty if built in.

    What the file imports counts, as far as `imported.sources` finds it. Of a class of this process,
    its own source alone counts.
    """
    if guests.is_guest(cc):
        return guests.fingerprint(cc)
    if not is_python(cc):
        return ""
    if cc in _CLASSES:
        return _SOURCE_HASHES[cc]
    path, _ = _split(cc, beside)
    own = hashlib.sha256(files.read_bytes(path, error=ControllerError))
    for source in imported.sources(path):
        own.update(hashlib.sha256(files.read_bytes(source, error=ControllerError)).digest())
    return own.hexdigest()


def _split(cc: str, beside: Path) -> tuple[Path, str]:
    file, _, name = cc.rpartition(":")
    for path in (expanded(file), beside / file):
        if is_file(path):
            return path.resolve(), name
    raise ControllerError(f"controller {cc}: no file {file}, neither here nor in {beside}")


def _source_hash(cls: type) -> str:
    """Hash of a class's source; a random one if there is no source, as after `exec`."""
    try:
        text = inspect.getsource(cls)
    except (OSError, TypeError):
        text = uuid.uuid4().hex
    return hashlib.sha256(text.encode()).hexdigest()
