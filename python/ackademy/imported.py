"""The Python files that a user's file imports, found without running any of them.

Kept results depend on them as on the file itself. Found are the modules that `import` names, in the
file and in those that it imports, wherever the statement stands. The standard library and installed
packages are left out, and so is this one, which has hashes of its own. What is imported by other
means (`importlib.import_module`), or read as data, is not found.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from ackademy import files

INSTALLED = ("site-packages", "dist-packages")
"""folders of packages that somebody else changes"""
STANDARD = Path(os.__file__).parent
"""of the standard library"""


def sources(path: Path) -> list[Path]:
    """The files that a Python file imports, and those that they import.

    Args:
        path: of the file.

    Returns:
        Sorted, each once, without the file itself. Modules that cannot be found, and those of a
        file that is no Python, are left to the run, which says so.

    Raises:
        FileError: if one cannot be read.
    """
    own = path.resolve()
    found: set[Path] = {own}
    waiting = [(own, "")]
    while waiting:
        file, package = waiting.pop()
        for name in _names(files.read_bytes(file), package):
            for spec in _specs(name):
                origin = Path(spec.origin or "").resolve()
                if origin.suffix != ".py" or origin in found:
                    continue
                found.add(origin)
                waiting.append((origin, spec.parent or ""))
    return sorted(found - {own})


@lru_cache(maxsize=1024)
def _names(content: bytes, package: str) -> tuple[str, ...]:
    """The full names of what a file imports: modules, and what may be one in a package.

    Args:
        content: of the file.
        package: that the file is in, where relative imports start; empty if it is in none.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            found += [f"{base}.{alias.name}" for alias in node.names] if base else []
    return tuple(dict.fromkeys(found))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """What `from ... import` is from; empty if it leaves the package."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - node.level + 1] if node.level <= len(parts) else []
    return ".".join([*kept, *([node.module] if node.module else [])]) if kept else ""


def _specs(name: str) -> Iterator[ModuleSpec]:
    """A module and the packages around it, outermost first, as far as they are the user's."""
    parts = name.split(".")
    if parts[0] == "ackademy":
        return
    places: list[str] | None = None
    for end in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:end]), places)
        if spec is None or _is_installed(Path(spec.origin or "")):
            return
        yield spec
        if spec.submodule_search_locations is None:
            return
        places = list(spec.submodule_search_locations)


def _is_installed(path: Path) -> bool:
    return path.is_relative_to(STANDARD) or any(part in INSTALLED for part in path.parts)
