"""The command `ackademy peers`: the cases of docs/results/peers.md, or points that a seed draws."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ackademy import files
from ackademy.console import Console
from ackademy.studies import drawn_peers
from ackademy.studies.peers import PEERS, ROWS, PeersError, Row, cases, compare, ours


def table(rows: Sequence[Row]) -> Table:
    """One line per case and quantity, one column per simulator, and ours over each peer's."""
    found = Table(title="The same scenarios in ns-2, ns-3 and here")
    found.add_column("case")
    found.add_column("quantity")
    for name in ("ns-2", "ns-3", "ours", "ours/ns-2", "ours/ns-3"):
        found.add_column(name, justify="right")
    for row in rows:
        for label, values in _lines(row):
            found.add_row(*label, *values)
        found.add_section()
    return found


def _lines(row: Row) -> Iterator[tuple[tuple[str, str], list[str]]]:
    names: dict[str, None] = {}
    for quantities in row.quantities.values():
        names |= dict.fromkeys(quantities)
    title = row.case.name if row.runs == 1 else f"{row.case.name} ({row.runs} seeds)"
    for position, name in enumerate(sorted(names, key=ROWS.index)):
        values = [row.quantities.get(who, {}).get(name) for who in ("ns-2", "ns-3", "ours")]
        own = values[2]
        ratios = [own / peer if own is not None and peer else None for peer in values[:2]]
        yield (title if position == 0 else "", name), [_text(value) for value in values + ratios]


def _text(value: float | None) -> str:
    """Four significant digits; a dash for what was not measured."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.4g}" if value == 0.0 or abs(value) >= 1e-3 else f"{value:.3e}"


def write_json(rows: Sequence[Row], out: Path) -> None:
    """Writes cases and their mean quantities; units are in the names."""
    content = [
        {"case": asdict(row.case), "runs": row.runs, "quantities": row.quantities} for row in rows
    ]
    files.write(out, json.dumps(content, indent=2) + "\n")


def peers(
    quick: Annotated[bool, typer.Option(help="Few cases, 60 simulated seconds.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Seeds of a random case.")] = 5,
    out: Annotated[Path, typer.Option(help="Where the numbers go, as JSON.")] = Path(
        "reports/peers.json"
    ),
    random: Annotated[
        int, typer.Option(min=0, max=200, help="Draw so many points instead of the cases.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Of the points; with --random.")] = 1,
    record: Annotated[
        Path | None, typer.Option(help="Where drawn points' peer values go; with --random.")
    ] = None,
) -> None:
    """Run ns-2, ns-3 and this simulator on the same scenarios and print them side by side.

    Examples:
        ackademy peers --quick

        ackademy peers --runs 10 --out peers.json

        ackademy peers --random 24 --seed 1
    """
    console = Console()
    try:
        files.check_output(record if random and record is not None else out)
        if random:
            drawn_peers.report(random, seed, record, console)
            return
        rows = compare(cases(quick=quick), PEERS, runs, ours, console)
    except PeersError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from error
    console.print(table(rows))
    write_json(rows, out)
    console.print(f"written to {out}", markup=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs `peers` from a list of command-line words, by default those of this process."""
    app = typer.Typer(add_completion=False)
    app.command()(peers)
    app(args=list(argv) if argv is not None else sys.argv[1:])


if __name__ == "__main__":
    main()
