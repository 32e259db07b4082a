"""Modules import downwards only, in the order of docs/design.md, and never in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "ackademy"

LAYERS = (
    "backends",
    "stats",
    "runner",
    "render",
    "policies",
    "envs",
    "learn",
    "studies",
    "papers",
    "cli",
)
"""Packages from the lowest up. Modules directly in `ackademy` are below all of them."""

EXCEPTIONS = {
    ("ackademy.__main__", "ackademy.cli"): "`python -m ackademy` is the command",
}
"""Imports that go upwards on purpose, with the reason."""


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "data":
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join(("ackademy", *parts))] = path
    return found


MODULES = modules()


def for_types_only(node: ast.AST) -> bool:
    """Whether a block is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a module that run at some time, those inside functions included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not for_types_only(node):
            yield from statements(node)


def imported(text: str) -> set[str]:
    """Modules of the package that a module's text imports."""
    names: set[str] = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            base = node.module or ""
            names |= {
                full if (full := f"{base}.{alias.name}") in MODULES else base
                for alias in node.names
            }
    return {name for name in names if name in MODULES}


def level(module: str) -> int:
    """The place of a module's package in the order; -1 for what is below all packages."""
    package = f"{module}.".split(".")[1]
    return LAYERS.index(package) if package in LAYERS else -1


IMPORTS = {name: imported(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
ROOT = "ackademy"


def upwards() -> set[tuple[str, str]]:
    """Imports from a lower package to a higher one."""
    return {
        (module, name)
        for module, names in IMPORTS.items()
        for name in names
        if level(name) > level(module) and module != ROOT
    }


def test_every_package_has_a_place_in_the_order() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(LAYERS)


def test_modules_import_downwards_only() -> None:
    assert sorted(upwards() - EXCEPTIONS.keys()) == []


def test_every_exception_is_still_needed() -> None:
    assert sorted(EXCEPTIONS.keys() - upwards()) == []


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module: {name for name in names if name != ROOT and (module, name) not in EXCEPTIONS}
        for module, names in IMPORTS.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_an_import_inside_a_function_counts_and_one_for_types_does_not() -> None:
    text = """
if TYPE_CHECKING:
    from ackademy import files
def read():
    from ackademy.stats import formulas
"""
    assert imported(text) == {"ackademy.stats.formulas"}
