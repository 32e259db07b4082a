"""Cases of docs/results/peers.md in ns-2, ns-3 and here, or points that a seed draws."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ackademy import files
from ackademy.console import Console
from ackademy.render import terminal
from ns_peers import drawn as drawn_peers
from ns_peers import sheets
from ns_peers.peers import PEERS, PeersError, Row, Simulators, cases, compare, ours


def write_json(rows: Sequence[Row], out: Path) -> None:
    """Writes cases and their mean quantities; units are in the names."""
    content = [
        {"case": asdict(row.case), "runs": row.runs, "quantities": row.quantities} for row in rows
    ]
    files.write(out, json.dumps(content, indent=2) + "\n")


def peers(
    quick: Annotated[
        bool, typer.Option(help="Only a few cases, 60 simulated seconds each.")
    ] = False,
    runs: Annotated[int, typer.Option(min=1, help="Runs of a random case.")] = 5,
    out: Annotated[Path, typer.Option(help="JSON file of the numbers.")] = Path(
        "reports/peers.json"
    ),
    random: Annotated[
        int, typer.Option(min=0, max=200, help="Draw this many points instead of the cases.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the points; with --random.")] = 1,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Write the drawn points and the peers' values to this file; with --random."
        ),
    ] = None,
) -> None:
    """Run ns-2, ns-3 and this simulator on the same scenarios and print them side by side.

    Examples:
        python -m ns_peers --quick

        python -m ns_peers --runs 10 --out peers.json

        python -m ns_peers --random 24 --seed 1
    """
    console = Console()
    try:
        files.check_output(record if random and record is not None else out)
        if random:
            _drawn(random, seed, record, console)
            return
        rows = compare(cases(quick=quick), PEERS, runs, ours, console)
    except PeersError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(1) from error
    terminal.show([sheets.cases(rows)], console)
    write_json(rows, out)
    console.print(f"written to {out}", markup=False)


def _drawn(count: int, seed: int, record: Path | None, console: Console) -> None:
    """Draw points, run everything on them, print how many agree and which do not.

    Raises:
        PeersError: if a peer is missing or fails.
    """
    simulators = Simulators()
    simulators.prepare(PEERS)
    recorded = drawn_peers.Recorded(simulators.root / "build" / "peers" / "runs.json", simulators)
    console.print(f"{count} points drawn from seed {seed}; peers' runs are kept in {recorded.path}")
    rows = drawn_peers.compare(drawn_peers.draw(count, seed), recorded, ours, console)
    terminal.show([sheets.counts(rows), sheets.outside(rows)], console)
    if record is not None:
        drawn_peers.write_record(rows, seed, record)
        console.print(f"written to {record}", markup=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs `peers` from a list of command-line words, by default those of this process."""
    app = typer.Typer(add_completion=False)
    app.command()(peers)
    app(args=list(argv) if argv is not None else sys.argv[1:])


if __name__ == "__main__":
    main()
