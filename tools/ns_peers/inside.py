"""Our controllers in the simulator and inside ns-3's TCP, on the same drop-tail scenarios.

    PYTHONPATH=tools python -m ns_peers.inside --out reports/peers-inside.csv

A second table has what tells the causes of differences apart: the simulator's sender without what
ns-3's lacks, and ns-3's own controllers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import ackademy
from ackademy import files
from ackademy.backends import Backend

CONTROLLERS = ("cubic", "new_reno", "own_queue")
OTHERS = ("bbr3", "rl_tcp", "learningcc", "flagship")
DURATION_S = 60
WITHOUT_RACK = "rack = false\ntlp = false"
"""lines of `[sender]`: losses are found as in ns-3"""
LATE_TIMER = "rto_min_ms = 2000"
"""so late that ns-3's does not expire while a recovery goes on"""


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """A dumbbell."""

    rate_mbps: float
    rtt_ms: float
    queue: str
    """the limit, as in a scenario"""
    flows: int = 1
    loss: float = 0.0

    @property
    def name(self) -> str:
        """As tables have it."""
        limit = self.queue.replace(" = ", " ").replace("packets", "L").replace("bdp", "BDP")
        parts = [f"{self.rate_mbps:g} Mb/s", f"{self.rtt_ms:g} ms", limit]
        parts += [f"{self.flows} flows"] if self.flows > 1 else []
        parts += [f"loss {self.loss:g}"] if self.loss else []
        return ", ".join(parts)

    def text(self, sender: str = "") -> str:
        """As a scenario file.

        Args:
            sender: lines of the table `[sender]`.
        """
        loss = f', loss = {{ kind = "bernoulli", ratio = {self.loss} }}' if self.loss else ""
        queue = f'queue = {{ kind = "drop_tail", {self.queue} }}'
        return f"""\
duration_s = {DURATION_S}
[dumbbell]
rtt_ms = {self.rtt_ms}
bottleneck = {{ rate_mbps = {self.rate_mbps}, {queue}{loss} }}
[sender]
{sender}
[[flow]]
count = {self.flows}
start_step_s = 1
"""


PATHS = (
    Dumbbell(10, 80, "packets = 51"),
    Dumbbell(20, 40, "bdp = 0.5"),
    Dumbbell(20, 40, "bdp = 1"),
    Dumbbell(20, 40, "bdp = 4"),
    Dumbbell(50, 20, "bdp = 1"),
    Dumbbell(5, 150, "bdp = 1"),
    Dumbbell(100, 10, "bdp = 1"),
    Dumbbell(20, 40, "bdp = 2", flows=4),
)
LOSSY = (Dumbbell(20, 40, "bdp = 1", loss=0.001), Dumbbell(20, 40, "bdp = 1", loss=0.01))
SEEDS = 5
"""of the paths with random loss"""


@dataclass(frozen=True, slots=True)
class Found:
    """All flows of a run, or the means over several runs."""

    mbps: float
    """delivered in order, on the wire"""
    rtt_ms: float
    """mean of the samples"""
    drops: float
    recoveries: float
    timeouts: float

    @classmethod
    def of(cls, run: ackademy.Run) -> Found:
        """The numbers of a run."""

        def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.asarray(run.floats("flows", name))

        samples = column("rtt_samples")
        return cls(
            mbps=float(8e-6 * column("delivered_bytes").sum() / DURATION_S),
            rtt_ms=float((column("rtt_mean_ms") * samples).sum() / samples.sum()),
            drops=float(column("dropped_packets").sum()),
            recoveries=float(column("recoveries").sum()),
            timeouts=float(column("timeouts").sum()),
        )


def measure(path: Dumbbell, cc: str, backend: Backend, sender: str = "") -> Found:
    """One run of a path, or the means over the seeds of one with random loss."""
    seeds = range(1, 1 + (SEEDS if path.loss else 1))
    each = [
        Found.of(
            ackademy.run(path.text(sender), cc=cc, seed=seed, backend=backend, sample_interval_ms=0)
        )
        for seed in seeds
    ]
    names = Found.__dataclass_fields__
    return Found(**{name: float(np.mean([getattr(own, name) for own in each])) for name in names})


Line = dict[str, str]


def agreement(paths: Sequence[Dumbbell] = PATHS) -> Iterator[Line]:
    """A line per path and controller: simulator beside ns-3."""
    for path in paths:
        for cc in CONTROLLERS:
            ours, theirs = (measure(path, cc, backend) for backend in ("sim", "ns3"))
            yield {
                "path": path.name,
                "controller": cc,
                "Mb/s": f"{ours.mbps:.3f}",
                "Mb/s, ns-3": f"{theirs.mbps:.3f}",
                "RTT ms": f"{ours.rtt_ms:.2f}",
                "RTT ms, ns-3": f"{theirs.rtt_ms:.2f}",
                "drops": f"{ours.drops:.0f}",
                "drops, ns-3": f"{theirs.drops:.0f}",
                "recoveries": f"{ours.recoveries:.0f}",
                "recoveries, ns-3": f"{theirs.recoveries:.0f}",
                "time-outs, ns-3": f"{theirs.timeouts:.0f}",
            }


def causes() -> Iterator[Line]:
    """A line per path and controller: the simulator, ns-3, and both with another sender."""
    timed_out = [(PATHS[3], "new_reno"), (PATHS[5], "new_reno")]
    lossy = [(path, cc) for path in LOSSY for cc in ("cubic", "new_reno")]
    for path, cc in [*timed_out, *((PATHS[0], cc) for cc in OTHERS), *lossy]:
        runs = {
            "simulator": measure(path, cc, "sim"),
            "without RACK-TLP": measure(path, cc, "sim", WITHOUT_RACK),
            "in ns-3": measure(path, cc, "ns3"),
            "with a late timer": measure(path, cc, "ns3", LATE_TIMER),
        }
        if cc in ("cubic", "new_reno"):
            runs["ns-3's own"] = measure(path, f"ns3:{cc}", "ns3")
        yield {"path": path.name, "controller": cc} | {
            name: f"{own.mbps:.3f} / {own.rtt_ms:.1f} / {own.timeouts:g}"
            for name, own in runs.items()
        }


def written(lines: Sequence[Line]) -> str:
    """Lines as CSV."""
    out = io.StringIO()
    heads = list(dict.fromkeys(head for line in lines for head in line))
    writer = csv.DictWriter(out, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def main(
    out: Annotated[Path, typer.Option(help="CSV file of the agreement.")] = Path(
        "reports/peers-inside.csv"
    ),
    why: Annotated[Path, typer.Option(help="CSV file of the causes.")] = Path(
        "reports/peers-causes.csv"
    ),
) -> None:
    """Run our controllers in the simulator and inside ns-3's TCP, and write both tables."""
    for path, lines in ((out, agreement()), (why, causes())):
        files.check_output(path)
        text = written(list(lines))
        files.write(path, text)
        typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
