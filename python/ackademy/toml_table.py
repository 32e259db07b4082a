"""TOML tables that know where they are, so that what is wrong in them is one line."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ackademy.errors import ExperimentError


@dataclass(frozen=True, slots=True)
class TomlTable:
    """A table of an experiment file; reading a field checks it."""

    values: Mapping[str, object]
    where: str

    @classmethod
    def read(cls, path: Path) -> TomlTable:
        """The whole file.

        Raises:
            ExperimentError: if it cannot be read or is not TOML.
        """
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ExperimentError(f"{path}: {error}") from error
        except RecursionError:
            raise ExperimentError(f"{path}: allowed: tables that are less deep") from None

    def string(self, key: str, default: str | None = None) -> str:
        """A text; the default if the key is absent."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, value, "a text")
        return value

    def number(self, key: str) -> float:
        """A number from 0."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.error(key, value, "a number from 0")
        return float(value)

    def optional_number(self, key: str) -> float:
        """A number from 0; 0 if the key is absent."""
        return self.number(key) if key in self.values else 0.0

    def any_number(self, key: str) -> float:
        """A finite number of either sign."""
        value = self.values.get(key)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise self.error(key, value, "a finite number")
        return float(value)

    def strings(self, key: str, default: list[str] | None = None) -> list[str]:
        """A list of texts; the default if the key is absent."""
        value = self.values.get(key, default)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.error(key, value, "a list of texts")
        return value

    def lists(self, key: str, default: list[list[object]] | None = None) -> list[list[object]]:
        """A list of lists; the default if the key is absent."""
        value = self.values.get(key, default)
        if not isinstance(value, list) or not all(isinstance(entry, list) for entry in value):
            raise self.error(key, value, "a list of lists")
        return value

    def keys(self, key: str) -> list[str]:
        """Names of the tables below this one."""
        return list(cast("Mapping[str, object]", self.values.get(key, {})))

    def table(self, *keys: str) -> TomlTable:
        """The table below these keys; an empty one if there is none."""
        here: object = self.values
        for key in keys:
            here = here.get(key, {}) if isinstance(here, Mapping) else None
        where = ".".join(keys)
        if not isinstance(here, Mapping):
            raise self.error(where, here, "a table")
        return TomlTable(here, f"{self.where}: {where}")

    def tables(self, key: str) -> list[TomlTable]:
        """The tables of an array of them."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
            raise self.error(key, entries, "a list of tables")
        return [TomlTable(entry, f"{self.where}: {key}[{i}]") for i, entry in enumerate(entries)]

    def error(self, key: str, value: object, allowed: str) -> ExperimentError:
        """That the value of a field is not allowed."""
        return ExperimentError(f"{self.where}: {key} = {value!r}: allowed: {allowed}")


def toml_value(value: object) -> str:
    """A number, a switch, a text, a list or a table as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    if isinstance(value, Mapping):
        entries = ", ".join(f"{toml_value(key)} = {toml_value(v)}" for key, v in value.items())
        return f"{{ {entries} }}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    # Control characters stand in no text of a single line.
    escaped = "".join(f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c for c in escaped)
    return f'"{escaped}"'
