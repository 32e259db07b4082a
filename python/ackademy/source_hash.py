"""Hash of Python sources by what they compute: imports, docstrings, comments and layout aside."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent

SIMULATED = (
    "runner/cells.py",
    "backends/entries.py",
    "stats/formulas.py",
    "backends/runs.py",
    "stats/run_metrics.py",
    "backends/tables.py",
)
PRINTED = (*SIMULATED, "backends/printed.py", "backends/programs.py")
MEASURING: Mapping[str, tuple[str, ...]] = {
    "sim": SIMULATED,
    "quic": SIMULATED,
    "kernel": (*PRINTED, "backends/kernel.py"),
    "quic-lab": (*PRINTED, "backends/kernel.py"),
    "ns3": (*PRINTED, "backends/ns3.py"),
}
"""the sources between a backend and the files of a cell"""

LEARNING_BETA = (
    "papers/knott2023/training.py",
    "learn/q_table.py",
    "learn/recipe.py",
    "papers/knott2023/environment.py",
    "papers/knott2023/transfers.py",
)
"""the sources between transfers and what a learner of CUBIC's beta found"""


def source_hash(names: Iterable[str], more: bytes = b"") -> str:
    """Hash of the package's files of these names, for what is kept on disk under it.

    A module that moves, and a docstring that says the same in other words, change no number. So
    they change no hash, and what was computed before stays valid.

    Args:
        names: paths below the package, such as `stats/formulas.py`; their order counts.
        more: anything else that the results depend on.

    Returns:
        64 hexadecimal digits.
    """
    sources = [canonical((ROOT / name).read_text(encoding="utf-8")).encode() for name in names]
    return hashlib.sha256(b"\0".join([*sources, more])).hexdigest()


def canonical(source: str) -> str:
    """The code of a module without its imports, docstrings, comments and layout."""
    return ast.unparse(_Strip().visit(ast.parse(source)))


class _Strip(ast.NodeTransformer):
    """Removes imports, and strings that stand alone. A block may be empty afterwards."""

    def visit_Import(self, node: ast.Import) -> None:
        """Remove it."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remove it."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        """Remove a docstring."""
        value = node.value
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        return None if is_text else node
