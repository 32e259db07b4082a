"""The sheets of `python -m ns_peers`: ours beside ns-2 and ns-3."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell
from ns_peers.drawn import QUANTITIES, TOLERANCES, Compared, describe, known_reason
from ns_peers.peers import ROWS, Row


def cases(rows: Sequence[Row]) -> Sheet:
    """A group per case, a line per quantity; a column per simulator, and ours over each peer's."""
    heads = ("ns-2", "ns-3", "ours", "ours/ns-2", "ours/ns-3")
    title = "The same scenarios in ns-2, ns-3 and here"
    lines = tuple(line for row in rows for line in _lines(row))
    return Sheet(title, (Head("quantity"),), tuple(map(Head, heads)), lines, "case")


def counts(rows: Sequence[Compared]) -> Sheet:
    """Per scheme and quantity, how many drawn points lie inside the peers' interval."""
    heads = [Head("points")]
    for quantity in QUANTITIES:
        tolerance = TOLERANCES[quantity]
        unit = " packet" if quantity == "queue wait, ms" else ""
        extra = f" or {tolerance.least:g}{unit}" if tolerance.least else ""
        heads.append(Head(quantity, f"± {100 * tolerance.share:g} %{extra}"))
    lines = []
    for label in dict.fromkeys(row.scheme for row in rows):
        own = [row for row in rows if row.scheme == label]
        inside = [sum(row.inside(quantity) for row in own) for quantity in QUANTITIES]
        cells = tuple(cell(str(count)) for count in (len(own), *inside))
        lines.append(Line((Part(label),), cells))
    title = "points inside the peers' interval"
    return Sheet(title, (Head("scheme"),), tuple(heads), tuple(lines))


def outside(rows: Sequence[Compared]) -> Sheet:
    """Every quantity that lies outside, with the point and the reason if one is known."""
    lines = []
    for row in rows:
        for quantity in QUANTITIES:
            if not row.inside(quantity):
                span = row.intervals[quantity]
                texts = (f"{span.low:.4g} to {span.high:.4g}", f"{row.ours[quantity]:.4g}")
                names = (Part(describe(row.case)), Part(quantity))
                cells = tuple(map(cell, (*texts, known_reason(row, quantity))))
                lines.append(Line(names, cells, row.scheme))
    heads = tuple(map(Head, ("peers", "ours", "reason")))
    return Sheet("outside", (Head("point"), Head("quantity")), heads, tuple(lines), "scheme")


def _lines(row: Row) -> Iterator[Line]:
    names = {name for quantities in row.quantities.values() for name in quantities}
    title = row.case.name if row.runs == 1 else f"{row.case.name} ({row.runs} seeds)"
    for name in sorted(names, key=ROWS.index):
        values = [row.quantities.get(who, {}).get(name) for who in ("ns-2", "ns-3", "ours")]
        own = values[2]
        ratios = [own / peer if own is not None and peer else None for peer in values[:2]]
        yield Line((Part(name),), tuple(map(_cell, values + ratios)), title)


def _cell(value: float | None) -> Cell:
    """Four significant digits; a dash for what was not measured."""
    if value is None or math.isnan(value):
        return cell("-")
    text = f"{value:.4g}" if value == 0.0 or abs(value) >= 1e-3 else f"{value:.3e}"
    return cell(text, value)
