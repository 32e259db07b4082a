"""What the parsers of TOML files read, recorded while they read, as JSON Schema.

A parser reads tables by the methods of `TomlTable`, each of which has a type and a range. While
`recording` is on they are recorded, so that a schema says what the parser says.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Schema = dict[str, Any]


@dataclass(slots=True)
class TableSchema:
    """What was read of a table, of all tables at its place."""

    fields: dict[str, list[Schema]] = field(default_factory=dict)
    tables: dict[str, TableSchema] = field(default_factory=dict)
    lists: dict[str, TableSchema] = field(default_factory=dict)
    allowed: dict[str, None] | None = None
    """keys, if there are no others"""
    needed: set[str] = field(default_factory=set)
    about: dict[str, str] = field(default_factory=dict)

    def note(self, key: str, schema: Schema) -> None:
        """That a field was read as this."""
        known = self.fields.setdefault(key, [])
        if schema not in known:
            known.append(schema)

    def close(self, allowed: Collection[str]) -> None:
        """That no other keys are allowed."""
        self.allowed = {**(self.allowed or {}), **dict.fromkeys(allowed)}

    def schema(self) -> Schema:
        """As JSON Schema. A table whose keys nobody checks is one of entries with names."""
        if self.allowed is None and not self.fields and not self.lists:
            merged = self.merged()
            more = merged.schema() if merged else True
            return {"type": "object", "additionalProperties": more}
        names = [*(self.allowed or {}), *self.fields, *self.tables, *self.lists]
        found: Schema = {
            "type": "object",
            "properties": {name: self._property(name) for name in dict.fromkeys(names)},
            "additionalProperties": self.allowed is None,
        }
        return {**found, "required": sorted(self.needed)} if self.needed else found

    def merged(self) -> TableSchema | None:
        """The tables below as one; `None` if there are none."""
        found: TableSchema | None = None
        for own in self.tables.values():
            found = own if found is None else found.with_more(own)
        return found

    def with_more(self, other: TableSchema) -> TableSchema:
        """What was read of either."""
        both = TableSchema(about={**self.about, **other.about})
        for own in (self, other):
            for key, schemas in own.fields.items():
                for schema in schemas:
                    both.note(key, schema)
            for mine, theirs in ((both.tables, own.tables), (both.lists, own.lists)):
                for key, table in theirs.items():
                    mine[key] = mine[key].with_more(table) if key in mine else table
            if own.allowed is not None:
                both.close(own.allowed)
        both.needed = self.needed & other.needed
        return both

    def _property(self, name: str) -> Schema:
        kinds = [*self.fields.get(name, [])]
        if name in self.tables:
            kinds.append(self.tables[name].schema())
        if name in self.lists:
            kinds.append({"type": "array", "items": self.lists[name].schema()})
        about = {"description": self.about[name]} if name in self.about else {}
        if len(kinds) > 1:
            return {**about, "anyOf": kinds}
        return {**about, **(kinds[0] if kinds else {})}


_recorded: dict[Path, TableSchema] | None = None


@contextmanager
def recording() -> Iterator[Mapping[Path, TableSchema]]:
    """Record what is read of every file that is opened meanwhile, by its path."""
    global _recorded
    found: dict[Path, TableSchema] = {}
    _recorded = found
    try:
        yield found
    finally:
        _recorded = None


def opened(path: Path) -> TableSchema | None:
    """The record of a file that is opened, if there is to be one."""
    return None if _recorded is None else _recorded.setdefault(path.resolve(), TableSchema())


def described(kind: type) -> dict[str, str]:
    """What the texts below the fields of a class say of them."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found: dict[str, str] = {}
    name = ""
    for node in getattr(tree, "body", ()):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and name:
            found[name] = " ".join(value.value.split())
        target = node.target if isinstance(node, ast.AnnAssign) else None
        name = target.id if isinstance(target, ast.Name) else ""
    return found
