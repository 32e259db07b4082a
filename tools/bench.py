"""Speed of the simulator beside ns-2 and ns-3, measured in one run.

Builds and runs `crates/core/benches/sim.rs`, times the installed peers on S1 to S3 and on S5 with
1000 flows, prints a table and writes rows {name, value, unit, peer, peer_value, ratio} to
bench/results.json. The start of commands is timed, too (`bench_commands`).
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
from bench_commands import rows as commands
from ns_peers import speed as peer_speed
from ns_peers.peers import Peer

RESULTS = Path("bench/results.json")
PACKETS = "packets/core-s"
PEER_RUNS = 3
TARGETS = {"S1": 5e6, "S2": 4e6, "S3": 3e6, "S5/1000": 8e6, "S5/10000": 4e6, "P1": 6e6}
"""data packets per core-second"""
CONTROLLER_OVER_CUBIC = {"bbr1": 1.5, "bbr3": 1.5, "copa": 1.5}
"""cost of a packet under a controller, over that under CUBIC"""
SUBFLOWS_OVER_FLOWS = 1.3
"""cost of a packet of a connection with two subflows, over that of one of two plain flows"""
IDLE_FLOW_BYTES = 1536.0
"""what a flow may take before it starts"""


PEER_CASES = tuple(peer_speed.SPEED_CASES)


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
        progress.update(task, description="peers", total=len(PEER_CASES) * 2, completed=0)
        theirs: dict[tuple[str, str], float] = {}
        for case in PEER_CASES:
            for peer in ("ns-2", "ns-3"):
                speed = _theirs(case, peer, console)
                if speed is not None:
                    theirs[case, peer] = speed
                progress.advance(task)
    rows = _rows(ours, theirs)
    console.print(_table(rows))
    console.print(
        "Rows with `over` compare the cost of a packet; with a target there, less is better.\n"
        "Ours: CUBIC, SACK, RACK-TLP, PRR, delayed ACKs, delivery-rate samples; medians of 5 runs."
    )
    for case in PEER_CASES:
        console.print(f"Peers: {peer_speed.SPEED_CASES[case].name}", highlight=False)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    console.print(f"rows: {RESULTS}", highlight=False)


def _ours() -> list[dict[str, float | str]]:
    """Each case in a process of its own, so that its peak memory is its own."""
    cases = _program("list").split()
    return [json.loads(line) for case in cases for line in _program(case).splitlines()]


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
            add("memory per idle flow", float(row["bytes"]), "bytes", "target", IDLE_FLOW_BYTES)
            continue
        speed = speeds[case] = float(row["packets_per_s"])
        if case in TARGETS:
            add(case, speed, PACKETS, "target", TARGETS[case])
            for peer in ("ns-2", "ns-3"):
                if (case, peer) in theirs:
                    add(case, speed, PACKETS, peer, theirs[case, peer])
        else:
            add(case, speed, PACKETS, None, None)
        if "cost_over_two_flows" in row:
            ratio = float(row["cost_over_two_flows"])
            name = f"{case}: subflows over flows"
            add(name, ratio, "times", "target", SUBFLOWS_OVER_FLOWS)
        add(f"{case}, memory", float(row["peak_mib"]), "MiB", None, None)
    for case, speed in speeds.items():
        if case.startswith("C/") and "C/cubic_rfc9438" in speeds:
            name = case.removeprefix("C/")
            target = CONTROLLER_OVER_CUBIC.get(name)
            beside = None if target is None else "target"
            add(
                f"{name} over CUBIC",
                speeds["C/cubic_rfc9438"] / speed,
                "times",
                beside,
                target,
            )
    for what, value, unit, target in commands():
        add(what, value, unit, "target", target)
    for flows, target in (("1000", 2.0), ("10000", None)):
        if {"S5/1", f"S5/{flows}"} <= speeds.keys():
            growth = speeds["S5/1"] / speeds[f"S5/{flows}"]
            beside = None if target is None else "target"
            add(f"S5: {flows} flows over 1", growth, "times", beside, target)
    return rows


def _table(rows: list[ResultRow]) -> Table:
    table = Table(title="Speed; packets are data packets per core-second")
    for name in ("what", "ours", "unit", "beside", "theirs", "ratio"):
        table.add_column(
            name, justify="right" if name in {"ours", "theirs", "ratio"} else "left", no_wrap=True
        )
    for row in rows:
        peer_value, ratio = row["peer_value"], row["ratio"]
        unit = "M packets" if row["unit"] == PACKETS else row["unit"]
        scale = 1e6 if row["unit"] == PACKETS else 1.0
        table.add_row(
            row["name"],
            _number(row["value"] / scale),
            unit,
            row["peer"] or "",
            "" if peer_value is None else _number(peer_value / scale),
            "" if ratio is None else _number(ratio),
        )
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e3 else f"{value:.3g}"


if __name__ == "__main__":
    main()
