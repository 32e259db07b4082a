"""Measure the table of docs/which-controller.md: schemes on the networks of eight uses.

    python tools/which_controller.py [--jobs 2]     writes docs/results/data/which-controller.csv

A use is a list of networks. Each scheme runs there alone, and beside one flow of another scheme
that started 5 s earlier. `harm` is the part of its throughput that the other flow loses by that.
"""

from __future__ import annotations

import argparse
import csv
import tomllib
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import ackademy

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "results" / "data" / "which-controller.csv"
SCHEMES = ("cubic", "bbr1", "bbr3", "copa", "vegas", "vivace", "own_queue", "flagship")
AHEAD_S = 5.0
"""how much earlier the other flow starts"""

Network = dict[str, Any]


def shipped(name: str) -> Network:
    """The network of a shipped scenario."""
    path = ROOT / "data/scenarios" / f"{name}.toml"
    network: Network = tomllib.loads(path.read_text(encoding="utf-8"))
    bottleneck = network["dumbbell"]["bottleneck"]
    if "trace" in bottleneck:
        bottleneck["trace"] = str(path.parent / bottleneck["trace"])
    return network


def dumbbell(rate_mbps: float, rtt_ms: float, seconds: float, **queue: float) -> Network:
    """A drop-tail link of a constant rate."""
    link = {"rate_mbps": rate_mbps, "queue": {"kind": "drop_tail", **queue}}
    return {"duration_s": seconds, "dumbbell": {"rtt_ms": rtt_ms, "bottleneck": link}}


HOME = [dumbbell(20.0, 30.0, 60.0, bdp=8.0), dumbbell(100.0, 20.0, 60.0, bdp=2.0)]
LONG = [dumbbell(50.0, 40.0, 120.0, bdp=bdp) for bdp in (0.5, 1.0, 4.0)]
CELLULAR = [shipped(f"gap/cell_{name}") for name in ("fast", "slow", "outage")]
USES: dict[str, tuple[list[Network], int, str]] = {
    "home line": (HOME, 1, "cubic"),
    "Wi-Fi": ([shipped("wifi")], 1, "cubic"),
    "cellular": ([shipped("cellular"), *CELLULAR], 1, "cubic"),
    "satellites in low orbit": ([shipped("handovers")], 1, "cubic"),
    "data centre": ([dumbbell(1000.0, 0.5, 3.0, packets=250)], 16, "cubic"),
    "32 flows of one host": ([dumbbell(100.0, 40.0, 60.0, bdp=1.0)], 32, "cubic"),
    "beside CUBIC": (LONG, 1, "cubic"),
    "beside BBRv3": (LONG, 1, "bbr3"),
}
"""Networks of each use, number of the scheme's flows, and the scheme beside them."""


def flow(name: str, scheme: str, **fields: object) -> dict[str, Any]:
    """The entry of a flow."""
    policy = ROOT / "data/policies" / scheme
    if policy.is_dir():
        fields["params"] = {"policy": str(policy)}
        scheme = "policy"
    return {"name": name, "controller": scheme, **fields}


def run(network: Network, flows: list[dict[str, Any]], seed: int) -> ackademy.Run:
    """A run of these flows on a network."""
    late = any(one.get("start_s") for one in flows)
    seconds = network["duration_s"] + (AHEAD_S if late and len(flows) > 1 else 0.0)
    fields = {"duration_s": seconds, "dumbbell": network["dumbbell"], "flow": flows}
    return ackademy.run(fields, seed=seed, sample_interval_ms=0)


def throughput(measured: ackademy.Run, name: str) -> np.ndarray:
    """Delivered bytes per second of each flow whose name starts so."""
    rows = measured.flows.filter(measured.flows["flow"].str.starts_with(name))
    return (rows["delivered_bytes"] / rows["active_s"]).to_numpy()


def values(task: tuple[str, str, Network, int]) -> dict[str, float]:
    """The metrics of a scheme on one network of a use."""
    use, scheme, network, seed = task
    _, count, other = USES[use]
    many = {"count": count, "start_spread_s": 0.1} if count > 1 else {}
    first = flow("other", other)
    alone = run(network, [flow("own", scheme, **many)], seed)
    beside = run(network, [first, flow("own", scheme, start_s=AHEAD_S, **many)], seed)
    undisturbed = run(network, [first], seed)
    shown = beside if use.startswith("beside") else alone
    link = shown.links.filter(shown.links["link"] == "bottleneck").row(0, named=True)
    own = shown.flows.filter(shown.flows["flow"].str.starts_with("own"))
    rates = throughput(alone, "own")
    pair = throughput(beside, "own").mean(), throughput(beside, "other").mean()
    return {
        "link used, %": 100.0 * link["delivered_bytes"] / link["capacity_bytes"],
        "p95 wait, ms": float((own["rtt_p95_ms"] - own["base_rtt_ms"]).to_numpy().mean()),
        "dropped, %": 100.0 * link["queue_drops"] / max(link["arrived_packets"], 1),
        "Jain": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())),
        "share beside the other, %": float(100.0 * pair[0] / sum(pair)),
        "harm to the other, %": float(
            100.0 * (1.0 - pair[1] / throughput(undisturbed, "other").mean())
        ),
    }


def main() -> None:
    """Run everything and write the file."""
    parser = argparse.ArgumentParser(description="Measure the table of docs/which-controller.md.")
    parser.add_argument("--jobs", type=int, default=1)
    jobs = parser.parse_args().jobs
    tasks = {
        (use, scheme): [(use, scheme, network, seed) for network, seed in product(nets, (1, 2, 3))]
        for use, (nets, _, _) in USES.items()
        for scheme in SCHEMES
    }
    with ProcessPoolExecutor(jobs) as pool, OUT.open("w", encoding="utf-8", newline="") as file:
        found = {key: list(pool.map(values, several)) for key, several in tasks.items()}
        names = list(found["home line", "cubic"][0])
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["use", "scheme", *names])
        for (use, scheme), several in found.items():
            means = [np.mean([one[name] for one in several]) for name in names]
            writer.writerow([use, scheme, *(f"{float(f'{mean:.3g}'):g}" for mean in means)])


if __name__ == "__main__":
    main()
