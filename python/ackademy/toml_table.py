"""TOML tables that know where they are, so that what is wrong in them is one line."""

from __future__ import annotations

import contextlib
import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ackademy import files, table_schema
from ackademy.errors import ExperimentError, ScenarioError

T = TypeVar("T", bound=str)
if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Fields = TypeVar("Fields", bound=DataclassInstance)
else:
    Fields = TypeVar("Fields")
SHOWN_MAX = 200
"""characters of a value in an error"""


@dataclass(frozen=True, slots=True)
class TomlTable:
    """A table of an experiment file; reading a field checks it."""

    values: Mapping[str, object]
    where: str
    seen: table_schema.TableSchema | None = field(default=None, repr=False, compare=False)
    """what is read of it, while that is recorded"""

    @classmethod
    def read(cls, path: Path) -> TomlTable:
        """The whole file.

        Raises:
            ExperimentError: if it cannot be read or is not TOML.
        """
        text = files.read_text(path, error=ExperimentError)
        try:
            return cls(tomllib.loads(text), str(path), table_schema.opened(path))
        except tomllib.TOMLDecodeError as error:
            raise ExperimentError(f"{path}: {error}") from error
        except RecursionError:
            raise ExperimentError(f"{path}: allowed: tables that are less deep") from None

    def only(self, *allowed: str) -> TomlTable:
        """Refuse every key that is not one of these.

        Raises:
            ExperimentError: naming the first that is not.
        """
        if self.seen is not None:
            self.seen.close(allowed)
        for key, value in self.values.items():
            if key not in allowed:
                raise self.error(key, value, f"no such key, only {', '.join(allowed)}")
        return self

    def into(self, kind: type[Fields], *more: str, **given: Any) -> Fields:  # noqa: ANN401
        """A dataclass from a table whose keys are its fields, each read by its type.

        A text, one of a `Literal`, a number from 0, a switch, a list of texts, a table. A field
        with a default may be absent.

        Args:
            kind: the dataclass.
            more: keys that are read elsewhere.
            given: fields that are not read here.

        Raises:
            ExperimentError: if a key is unknown, or a field is missing or not allowed.
        """
        own = [field for field in fields(kind) if field.name not in given]
        self.only(*more, *(field.name for field in own))
        types, found = get_type_hints(kind), dict(given)
        if self.seen is not None:
            self.seen.about |= table_schema.described(kind)
        for each in own:
            is_needed = each.default is MISSING and each.default_factory is MISSING
            if self.seen is not None and is_needed:
                self.seen.needed.add(each.name)
            if is_needed or each.name in self.values:
                found[each.name] = self._typed(each.name, types[each.name])
            elif self.seen is not None:
                with contextlib.suppress(ExperimentError):
                    self._typed(each.name, types[each.name])
        return kind(**found)

    def _typed(self, key: str, kind: object) -> object:
        if get_origin(kind) is Literal:
            return self.choice(key, get_args(kind))
        if get_origin(kind) is tuple:
            return tuple(self.strings(key))
        if kind in (str, float):
            return self.string(key) if kind is str else self.number(key)
        if kind is bool:
            return self.switch(key)
        return self.table(key).values

    def string(self, key: str, default: str | None = None) -> str:
        """A text; the default if the key is absent."""
        self._note(key, {"type": "string"})
        return self._text(key, default)

    def _text(self, key: str, default: str | None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, value, "a text")
        return value

    def choice(self, key: str, allowed: Collection[T], default: T | None = None) -> T:
        """One of some texts; the default if the key is absent."""
        self._note(key, {"enum": list(allowed)})
        value = self._text(key, default)
        for own in allowed:
            if own == value:
                return own
        raise self.error(key, value, ", ".join(allowed))

    def number(
        self, key: str, default: float | None = None, most: float = sys.float_info.max
    ) -> float:
        """A finite number from 0, perhaps with a largest one; the default if the key is absent."""
        has_most = most < sys.float_info.max
        self._note(key, {"type": "number", "minimum": 0, **({"maximum": most} if has_most else {})})
        allowed = f"a number from 0 to {most:g}" if has_most else "a finite number from 0"
        return self._number(key, default, 0.0, most, allowed)

    def whole(self, key: str, low: int, high: int = 2**63 - 1) -> int:
        """A whole number in a range, both ends allowed."""
        self._note(key, {"type": "integer", "minimum": low, "maximum": high})
        value = self.values.get(key)
        if type(value) is not int or not low <= value <= high:
            raise self.error(key, value, f"a whole number from {low} to {high}")
        return value

    def switch(self, key: str, *, default: bool | None = None) -> bool:
        """True or false; the default if the key is absent."""
        self._note(key, {"type": "boolean"})
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, value, "true, false")
        return value

    def any_number(self, key: str) -> float:
        """A finite number of either sign."""
        self._note(key, {"type": "number"})
        most = sys.float_info.max
        return self._number(key, None, -most, most, "a finite number")

    def strings(self, key: str, default: list[str] | None = None) -> list[str]:
        """A list of texts; the default if the key is absent."""
        self._note(key, {"type": "array", "items": {"type": "string"}})
        value = self.values.get(key, default)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.error(key, value, "a list of texts")
        return value

    def lists(self, key: str, default: list[list[object]] | None = None) -> list[list[object]]:
        """A list of lists; the default if the key is absent."""
        self._note(key, {"type": "array", "items": {"type": "array"}})
        value = self.values.get(key, default)
        if not isinstance(value, list) or not all(isinstance(entry, list) for entry in value):
            raise self.error(key, value, "a list of lists")
        return value

    def keys(self, key: str) -> list[str]:
        """Names of the tables below this one."""
        return list(self.table(key).values)

    def table(self, *keys: str) -> TomlTable:
        """The table below these keys; an empty one if there is none."""
        here: object = self.values
        seen = self.seen
        for key in keys:
            here = here.get(key, {}) if isinstance(here, Mapping) else None
            seen = (
                seen.tables.setdefault(key, table_schema.TableSchema())
                if seen is not None
                else None
            )
        where = ".".join(keys)
        if not isinstance(here, Mapping):
            raise self.error(where, here, "a table")
        return TomlTable(here, f"{self.where}: {where}", seen)

    def tables(self, key: str) -> list[TomlTable]:
        """The tables of an array of them."""
        entries = self.values.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
            raise self.error(key, entries, "a list of tables")
        seen = self.seen
        below = seen.lists.setdefault(key, table_schema.TableSchema()) if seen is not None else None
        return [
            TomlTable(entry, f"{self.where}: {key}[{i}]", below) for i, entry in enumerate(entries)
        ]

    def _note(self, key: str, schema: table_schema.Schema) -> None:
        if self.seen is not None:
            self.seen.note(key, schema)

    def _number(
        self, key: str, default: float | None, least: float, most: float, allowed: str
    ) -> float:
        value = self.values.get(key, default)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not least <= value <= most
        ):
            raise self.error(key, value, allowed)
        return float(value)

    def error(self, key: str, value: object, allowed: str) -> ExperimentError:
        """That the value of a field is not allowed, on one line; `None` is one that is absent."""
        shown = "absent" if value is None else repr(value)
        shown = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}..."
        name = key if key.isprintable() else repr(key)
        return ExperimentError(f"{self.where}: {name} = {shown}: allowed: {allowed}")


def toml_value(value: object, where: str = "value") -> str:
    """A number, a switch, a text, a list or a table as TOML; NumPy's numbers are numbers.

    Args:
        value: what to write; a tuple is a list, a path a text.
        where: name of the field, for errors.

    Raises:
        ScenarioError: if TOML has no such value; one line with the field.
    """
    if getattr(value, "shape", None) == () and callable(item := getattr(value, "item", None)):
        value = item()  # a number of NumPy, without importing it
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        entries = (toml_value(entry, f"{where}[{i}]") for i, entry in enumerate(value))
        return f"[{', '.join(entries)}]"
    if isinstance(value, Mapping):
        entries = (
            f"{toml_value(k, where)} = {toml_value(v, f'{where}.{k}')}" for k, v in value.items()
        )
        return f"{{ {', '.join(entries)} }}"
    if not isinstance(value, str | PurePath):
        name, allowed = type(value).__name__, "a number, true, false, a text, a list, a table"
        raise ScenarioError(f"{where}: a value of type {name}: allowed: {allowed}")
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    # Control characters stand in no text of a single line.
    escaped = "".join(f"\\u{ord(c):04x}" if c < " " or c == "\x7f" else c for c in escaped)
    return f'"{escaped}"'
