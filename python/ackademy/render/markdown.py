"""Sheets as Markdown tables, and text that Markdown takes for nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ackademy.render.sheet import Cell, Head, Sheet

SPECIAL = re.compile(r"[*|`]|<(?=[A-Za-z/!?])|\](?=[(\[:])")
"""what Markdown would take for more than text: emphasis, cells, code, HTML, links"""
BACKTICKS = re.compile("`+")


def sheet(own: Sheet) -> str:
    """The table: groups, names, then numbers on the right; a cell's lines with a slash between."""
    names = [text(own.group)] if own.group else []
    names += [_label(head) for head in own.names]
    heads = [_label(head) for head in own.heads] + (["runs"] if own.has_runs else [])
    rows = []
    for line in own.lines:
        first = [text(line.group)] if own.group else []
        cells = [_text(cell) for cell in line.cells] + ([line.runs] if own.has_runs else [])
        rows.append([*first, *(text(part.text) for part in line.names), *cells])
    return table([*names, *heads], rows, left=len(names))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Lines of cells; those after the first `left` columns on the right."""
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))


def _label(head: Head) -> str:
    return text(f"{head.label}, {head.unit}" if head.unit else head.label)


def _text(cell: Cell) -> str:
    return " / ".join(
        f"**{text(part.text)}**" if part.style in ("warn", "best") else text(part.text)
        for part in cell.parts
    )


def text(shown: str) -> str:
    """A text as one line that is nothing else: no table, emphasis, link or HTML comes from a name.

    What stands in backticks stays code.
    """
    if len(shown) > 2 and shown.startswith("`") and shown.endswith("`"):
        return code(shown[1:-1]).replace("|", "\\|")
    return SPECIAL.sub(r"\\\g<0>", " ".join(shown.splitlines()))


def code(shown: str) -> str:
    """A text as code on one line."""
    line = " ".join(shown.splitlines())
    fence = "`" * (1 + max(map(len, BACKTICKS.findall(line)), default=0))
    pad = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{fence}{pad}{line}{pad}{fence}"
