"""Reads the TOML of recipes, whatever they train: fields, changes of them, and faults in a line."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ackademy import files
from ackademy.errors import TrainingError

Changes: TypeAlias = Mapping[str, object]
"""values by dotted path, as `training.episodes`; `None` removes a field"""
NONE: Changes = MappingProxyType({})
WHOLE_MAX = 100_000_000
"""largest whole number of a learner"""
Count: TypeAlias = int
Share: TypeAlias = float
Positive: TypeAlias = float
LIMITS: Mapping[str, tuple[float, float]] = {
    "int": (1, WHOLE_MAX),
    "Count": (0, WHOLE_MAX),
    "float": (0.0, sys.float_info.max),
    "Share": (0.0, 1.0),
    "Positive": (sys.float_info.min, sys.float_info.max),
}
"""by the type of a setting"""
if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)
else:
    Settings = TypeVar("Settings")


def settings(
    usual: Settings, table: Mapping[str, object], where: str | Path, within: str = "training"
) -> Settings:
    """Settings with the values of a table, each of which the type of its field allows.

    Raises:
        TrainingError: if a key is unknown or a value not allowed.
    """
    known = {own.name: str(own.type) for own in fields(usual)}
    values = dict[str, object]()
    for key, value in table.items():
        if key not in known:
            raise TrainingError(f"{where}: {within}.{key}: allowed: {', '.join(known)}")
        if wanted := wanted_of(known[key], value):
            raise TrainingError(f"{where}: {within}.{key} = {value!r}: allowed: {wanted}")
        is_float = isinstance(value, int) and isinstance(getattr(usual, key), float)
        values[key] = float(value) if is_float else value  # type: ignore[arg-type]  # a number
    return replace(usual, **values)


def wanted_of(kind: str, value: object) -> str:
    """What a setting of a type may be; empty if it may have this value."""
    if kind in ("bool", "str"):
        fits = isinstance(value, bool if kind == "bool" else str)
        return "" if fits else "true, false" if kind == "bool" else "a text"
    least, most = LIMITS[kind]
    is_whole = kind in ("int", "Count")
    of = int if is_whole else int | float
    if isinstance(value, of) and not isinstance(value, bool) and least <= value <= most:
        return ""
    low = "above 0" if kind == "Positive" else f"from {least:g}"
    high = "" if most == sys.float_info.max else f" to {most:.0f}"
    return f"a {'whole ' * is_whole}number {low}{high}"


def load(path: Path, changes: Changes = NONE) -> dict[str, object]:
    """The fields of a TOML file, some of them changed.

    Raises:
        TrainingError: if it cannot be read, or is no TOML, or a change leads into no table.
    """
    try:
        values = tomllib.loads(files.read_text(path, error=TrainingError))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TrainingError(f"{path}: {error}") from None
    return changed(values, changes, path)


def changed(values: Mapping[str, object], changes: Changes, where: str | Path) -> dict[str, object]:
    """The fields with the changes; those of a table are changed within it.

    Raises:
        TrainingError: if a change leads into no table.
    """
    found = dict(values)
    for name, value in changes.items():
        first, dot, rest = name.partition(".")
        if dot:
            found[first] = changed(table(found, first, where), {rest: value}, where)
        elif value is None:
            found.pop(first, None)
        else:
            found[first] = value
    return found


def only(table: Mapping[str, object], allowed: Sequence[str], where: str | Path) -> None:
    """Check the keys of a table.

    Raises:
        TrainingError: if one is not among those allowed.
    """
    for key in table:
        if key not in allowed:
            raise TrainingError(f"{where}: {key}: no such key; allowed: {', '.join(allowed)}")


def text(table: Mapping[str, object], key: str, where: str | Path) -> str:
    """The text of a field.

    Raises:
        TrainingError: if it is absent, empty or no text.
    """
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise TrainingError(f"{where}: {key} = {value!r}: allowed: a text")
    return value


def listed(found: object, key: str, path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """The tables of a list with at least one, each behind its place for messages.

    Raises:
        TrainingError: if it is no such list, once the first table that is none is asked for.
    """
    if not isinstance(found, list) or not found:
        raise TrainingError(f"{path}: {key} = {found!r}: allowed: a list of tables")
    for index, entry in enumerate(found):
        where = f"{path}: {key}[{index}]"
        if not isinstance(entry, dict):
            raise TrainingError(f"{where} = {entry!r}: allowed: a table")
        yield where, entry


def whole(value: object, key: str, least: int, where: Path | str, most: int = WHOLE_MAX) -> int:
    """A whole number in these bounds.

    Raises:
        TrainingError: if it is none.
    """
    if type(value) is not int or not least <= value <= most:
        raise TrainingError(
            f"{where}: {key} = {value!r}: allowed: a whole number from {least:d} to {most}"
        )
    return value


def table(values: Mapping[str, object], key: str, where: str | Path) -> dict[str, object]:
    """The table of a field, empty if it is absent.

    Raises:
        TrainingError: if it is no table.
    """
    found = values.get(key, {})
    if not isinstance(found, dict):
        raise TrainingError(f"{where}: {key} = {found!r}: allowed: a table")
    return found
