"""Speed of the simulator beside ns-2 and ns-3, measured in one run.

Builds and runs `crates/core/benches/sim.rs`, times the installed peers on S1 to S3, prints a
table and writes rows {name, value, unit, peer, peer_value, ratio} to bench/results.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import TypedDict

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ackademy.errors import AckademyError
from ackademy.studies import peer_speed
from ackademy.studies.peers import Peer

RESULTS = Path("bench/results.json")
PEER_RUNS = 3
TARGETS = {"S1": 5e6, "S2": 4e6, "S3": 3e6}
"""data packets per core-second"""


class ResultRow(TypedDict):
    """One line of bench/results.json; peer fields are None without a peer."""

    name: str
    value: float
    unit: str
    peer: str | None
    peer_value: float | None
    ratio: float | None


def main() -> None:
    """Measure, print, write."""
    console = Console()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("our simulator", total=None)
        ours = _ours()
        progress.update(task, description="peers", total=len(TARGETS) * 2, completed=0)
        theirs: dict[tuple[str, str], float] = {}
        for case in TARGETS:
            for peer in ("ns-2", "ns-3"):
                speed = _theirs(case, peer, console)
                if speed is not None:
                    theirs[case, peer] = speed
                progress.advance(task)
    rows = _rows(ours, theirs)
    console.print(_table(rows))
    console.print(
        "Ours: CUBIC, SACK, RACK-TLP, PRR, delayed ACKs, delivery-rate samples; medians of 5 runs."
    )
    for case in TARGETS:
        console.print(f"Peers: {peer_speed.SPEED_CASES[case].name}", highlight=False)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    console.print(f"rows: {RESULTS}", highlight=False)


def _ours() -> list[dict[str, float | str]]:
    """Each case in a process of its own, so that its peak memory is its own."""
    return [json.loads(_program(case)) for case in _program("list").split()]


def _program(argument: str) -> str:
    command = ["cargo", "bench", "--quiet", "--bench", "sim", "--", argument]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _theirs(case: str, peer: str, console: Console) -> float | None:
    """Packets per CPU second, the median of a few runs; None if the peer is not installed."""
    try:
        name: Peer = "ns-2" if peer == "ns-2" else "ns-3"
        runs = PEER_RUNS if peer == "ns-2" else 1  # ns-3 takes minutes, and its spread is 4 %
        timed = [peer_speed.speed(case, name) for _ in range(runs)]
    except AckademyError as error:
        console.print(f"{case} without {peer}: {error}", highlight=False)
        return None
    return statistics.median(packets / cpu_s for packets, cpu_s in timed)


def _rows(
    ours: list[dict[str, float | str]], theirs: dict[tuple[str, str], float]
) -> list[ResultRow]:
    rows: list[ResultRow] = []

    def add(name: str, value: float, unit: str, peer: str | None, peer_value: float | None) -> None:
        ratio = value / peer_value if peer_value else None
        rows.append(
            ResultRow(
                name=name, value=value, unit=unit, peer=peer, peer_value=peer_value, ratio=ratio
            )
        )

    speeds: dict[str, float] = {}
    for row in ours:
        case = str(row["case"])
        if case == "forest":
            add("one answer of 100 trees", float(row["answer_us"]), "µs", "target", 10.0)
            continue
        if case == "idle flow":
            add("memory per idle flow", float(row["bytes"]), "bytes", "design", 2048.0)
            continue
        speed = speeds[case] = float(row["packets_per_s"])
        if case in TARGETS:
            add(case, speed, "packets/core-s", "target", TARGETS[case])
            for peer in ("ns-2", "ns-3"):
                if (case, peer) in theirs:
                    add(case, speed, "packets/core-s", peer, theirs[case, peer])
        else:
            add(case, speed, "packets/core-s", None, None)
        add(f"{case}, peak memory", float(row["peak_mib"]), "MiB", None, None)
    if {"S5/1", "S5/1000"} <= speeds.keys():
        growth = speeds["S5/1"] / speeds["S5/1000"]
        add("cost per packet, 1000 flows over 1", growth, "times", "target", 2.0)
    return rows


def _table(rows: list[ResultRow]) -> Table:
    table = Table(title="Data packets per core-second")
    for name in ("what", "ours", "unit", "beside", "theirs", "ratio"):
        table.add_column(
            name, justify="right" if name in {"ours", "theirs"} else "left", no_wrap=True
        )
    for row in rows:
        peer_value, ratio = row["peer_value"], row["ratio"]
        table.add_row(
            row["name"],
            f"{row['value']:,.4g}" if row["value"] < 1e4 else f"{row['value']:,.0f}",
            row["unit"],
            row["peer"] or "",
            "" if peer_value is None else f"{peer_value:,.0f}",
            "" if ratio is None else f"{ratio:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
