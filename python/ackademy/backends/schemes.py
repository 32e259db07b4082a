"""Schemes: controllers with settings, as `--cc` and `ackademy.compare` name them.

`cubic:beta=0.8,c=0.3` is CUBIC with two settings, `mine.py:Mine:gain=2` a Python controller with
one, `kernel:bbr` one of the kernel's own, `linux:bbr` a guest, `aurora_mixed` a policy. `mine.py`
is the only controller of that file. `tcp_drinc`, a controller that needs a policy, runs the policy
of its name. Several schemes are separated by commas: a word of the form `NAME=VALUE` belongs to the
scheme before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ackademy import lookup
from ackademy.backends import controllers
from ackademy.errors import ControllerError
from ackademy.folders import POLICY_FILE
from ackademy.toml_table import TomlTable

if TYPE_CHECKING:
    from ackademy._core import ControllerClass

Params: TypeAlias = Mapping[str, float | str]
Word: TypeAlias = "str | ControllerClass | tuple[str | ControllerClass, Params]"
"""how Python callers may give a scheme: text as for `--cc`, a class, or a class with settings"""

AS_WRITTEN = "as written"
"""the label of a scenario's own controllers"""

SETTING = re.compile(r"\s*\w+=")
WITH_SETTINGS = re.compile(r"(?P<cc>.+?):(?P<first>\w+=.*)")
ALLOWED = (
    "NAME, NAME:SETTING=VALUE, file.py, file.py:Class, kernel:NAME, noq:NAME, quinn:NAME, "
    "ns3:NAME, linux:NAME, s2n:NAME"
)

FOREST_KEYS = ("controller", "forest", "threshold", "features", "setup", "made")
"""of a `policy.toml` that names a forest"""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A controller with settings."""

    label: str
    """name in tables"""
    controller: str | None
    """of every flow; `None` leaves the scenario's own"""
    params: tuple[tuple[str, float | str], ...] = ()

    @property
    def words(self) -> str:
        """The scheme as a word for `ackademy run`."""
        settings = "".join(f" --param {name}={value}" for name, value in self.params)
        return f"--cc {self.controller}{settings}"


def parse(words: str, common: Params | None = None) -> list[Scheme]:
    """Schemes separated by commas, such as `cubic,cubic:beta=0.8,mine.py:Mine`.

    Args:
        words: as for `--cc`.
        common: settings of every scheme; a scheme's own settings come first.

    Raises:
        ControllerError: if a word is not understood, or names a scheme twice; one line.
    """
    groups: list[list[str]] = []
    for piece in (piece.strip() for piece in words.split(",")):
        if SETTING.match(piece) and groups:
            groups[-1].append(piece)
        elif piece:
            groups.append([piece])
    return differ([_scheme(group, common or {}) for group in groups])


def of_words(words: Iterable[Word] | Mapping[str, Word]) -> list[Scheme]:
    """Schemes from what a Python caller names; a mapping gives their labels.

    Raises:
        ControllerError: as `parse`.
    """
    if isinstance(words, Mapping):
        return [Scheme(label, *_named(word)[1:]) for label, word in words.items()]
    return differ([Scheme(*_named(word)) for word in words])


def differ(schemes: Sequence[Scheme]) -> list[Scheme]:
    """The schemes, unless one is given twice.

    Raises:
        ControllerError: if one is.
    """
    labels = [scheme.label for scheme in schemes]
    double = next((label for label in labels if labels.count(label) > 1), None)
    if double is not None:
        raise ControllerError(f"{double}: allowed: every scheme once; settings tell copies apart")
    return list(schemes)


def values(words: Sequence[str], option: str) -> dict[str, float | str]:
    """Settings from `NAME=VALUE` words; a value that looks like a number becomes one.

    Raises:
        ControllerError: if a word has no name or no `=`; the message names the option.
    """
    found: dict[str, float | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ControllerError(f"{option} {word}: allowed: NAME=VALUE")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return lookup.settings(found)


def one(word: str, common: Params | None = None) -> Scheme:
    """The only scheme of a word, as of `parse`.

    Raises:
        ControllerError: if there are several, or none.
    """
    found = parse(word, common)
    if len(found) != 1:
        raise ControllerError(f"{word!r}: allowed: one scheme; several are a list")
    return found[0]


def of_folder(
    folder: Path,
    params: Params = {},  # noqa: B006  # a mapping, not changed
) -> tuple[str, tuple[tuple[str, float | str], ...]]:
    """The controller that runs the policy in a folder, and its settings.

    Raises:
        ControllerError: if there is no policy in it.
        ExperimentError: if its `policy.toml` cannot be read.
    """
    if not (folder / POLICY_FILE).is_file():
        raise ControllerError(f"{folder}: allowed: a folder with {POLICY_FILE}, or a controller")
    described = TomlTable.read(folder / POLICY_FILE)
    if "forest" in described.values:
        name = described.only(*FOREST_KEYS).string("forest")
        if Path(name).name != name:
            raise described.error("forest", name, "the name of a file beside it")
        settings = {
            "policy": str(folder / name),
            "threshold": described.number("threshold"),
            **params,
        }
        return described.string("controller"), tuple(settings.items())
    controller = "drl_cc" if "host" in described.values else "policy"
    return controller, tuple({**params, "policy": str(folder)}.items())


def _named(
    word: Word,
    given: Params = {},  # noqa: B006  # a mapping, not changed
) -> tuple[str, str | None, tuple[tuple[str, float | str], ...]]:
    if isinstance(word, tuple):
        settings = lookup.settings(word[1])
        label, controller, params = _named(word[0], settings)
        more = {**dict(params), **settings}
        shown = ",".join(f"{name}={value}" for name, value in word[1].items())
        return f"{label}:{shown}" if shown else label, controller, tuple(more.items())
    if isinstance(word, str):
        found = one(word, given)
        return found.label, found.controller, found.params
    return controllers.label_of(word), controllers.register(word), ()


def _scheme(group: Sequence[str], common: Params) -> Scheme:
    label = ",".join(group)
    found = WITH_SETTINGS.fullmatch(group[0])
    cc = found["cc"] if found else group[0]
    own = values([found["first"], *group[1:]] if found else [], f"--cc {label}:")
    if len(group) > 1 and not found:
        raise ControllerError(f"--cc {label}: allowed: {ALLOWED}")
    name, more = _controller(cc, {**common, **own})
    if own and controllers.own_of(name):
        raise ControllerError(f"--cc {label}: allowed: no settings of a backend's own controllers")
    return Scheme(label if found else _label(cc, name), name, tuple(more.items()))


def _label(cc: str, name: str) -> str:
    """The controller's name; a policy's own where a policy is named."""
    if cc.endswith(".py"):
        return name
    return cc if name == "policy" else controllers.canonical(cc)


def _controller(cc: str, params: Params) -> tuple[str, Params]:
    """The controller that a word names and its settings: a policy's own if the word names one."""
    name = controllers.canonical(cc)
    if cc.endswith(".py"):
        return controllers.only_class(cc), params
    if ":" in cc:
        if not controllers.own_of(cc) and not controllers.is_python(cc):
            raise ControllerError(f"--cc {cc}: allowed: {ALLOWED}")
        return cc, params
    if name in lookup.controllers():
        folder = None if "policy" in params else lookup.own_policy(name)
        if folder is None:
            return name, params
    else:
        folder = lookup.policy_folder(cc)
    if folder is None:
        raise lookup.unknown_controller(cc)
    controller, settings = of_folder(folder, params)
    return controller, dict(settings)
