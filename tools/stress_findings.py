"""Measure the first table of docs/results/stress.md: the findings kept in data/scenarios/stress.

python tools/stress_findings.py     writes docs/results/data/stress-findings.csv
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import ackademy
from ackademy import lookup
from ackademy.stats import omniscient

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "results" / "data" / "stress-findings.csv"


def about(name: str) -> str:
    """The first line of a scenario's file, which says why it is kept."""
    return lookup.find(name, "scenario").read_text(encoding="utf-8").splitlines()[0][2:]


def main() -> None:
    """Run each kept scenario once; its first line says what happens."""
    lines = []
    for name in lookup.names("scenario"):
        if not name.startswith("stress/"):
            continue
        run = ackademy.run(name)
        own = omniscient.behind(run.scenario, run.flows, ["own"])
        ratio = own.rtt_over_ideal
        lines.append(
            {
                "scenario": name,
                "regret": f"{own.regret:.2f}",
                "fair share": f"{100 * own.fair_share:.1f} %",
                "RTT over ideal": "–" if math.isnan(ratio) else f"{ratio:.2f}",
                "loss": f"{100 * own.loss_ratio:.1f} %",
                "what happens": about(name),
            }
        )
    lines.sort(key=lambda line: -float(line["regret"]))
    with OUT.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
