"""A sheet as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.sheet import Cell, Head, Sheet


def sheet(own: Sheet) -> str:
    """The table: groups, names, then numbers on the right; a cell's lines with a slash between."""
    names = [own.group] if own.group else []
    names += [_label(head) for head in own.names]
    heads = [_label(head) for head in own.heads] + (["runs"] if own.has_runs else [])
    rows = []
    for line in own.lines:
        first = [_escaped(line.group)] if own.group else []
        cells = [_text(cell) for cell in line.cells] + ([line.runs] if own.has_runs else [])
        rows.append([*first, *(_escaped(part.text) for part in line.names), *cells])
    return table([*names, *heads], rows, left=len(names))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Lines of cells; those after the first `left` columns on the right."""
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))


def _label(head: Head) -> str:
    return f"{head.label}, {head.unit}" if head.unit else head.label


def _text(cell: Cell) -> str:
    return " / ".join(
        f"**{_escaped(part.text)}**" if part.style in ("warn", "best") else _escaped(part.text)
        for part in cell.parts
    )


def _escaped(text: str) -> str:
    """Stars and bars are text, but for those of code."""
    return text if text.startswith("`") else text.replace("*", "\\*").replace("|", "\\|")
