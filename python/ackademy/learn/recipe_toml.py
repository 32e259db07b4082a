"""Reads the TOML of recipes, whatever they train: fields, changes of them, and faults in a line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from ackademy import files
from ackademy.errors import TrainingError

Changes: TypeAlias = Mapping[str, object]
"""values by dotted path, as `training.episodes`; `None` removes a field"""
NONE: Changes = MappingProxyType({})
WHOLE_MAX = 100_000_000
"""largest whole number of a learner"""


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
