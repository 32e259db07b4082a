"""Benchmark every shipped scheme, and write the data of docs/results/benchmark.md and its figures.

    python tools/benchmark_table.py --run [--quick] [FOLDER]    runs the entries without a result
    python tools/benchmark_table.py [--quick] [FOLDER]          only writes; all must have one

It goes by the entries of the present program: results of another one, whose digests differ, are
left alone. FOLDER is `benchmarks`. `python tools/results.py` then draws the tables.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import front_figure
import result_tables
from ackademy import _core
from ackademy.backends import schemes
from ackademy.errors import AckademyError
from ackademy.render.numbers import with_interval
from ackademy.studies.benchmark import entries, report, result_file
from ackademy.studies.benchmark.study import NUMBERS, Result

ROOT = Path(__file__).parents[1]
OUT = front_figure.DATA
LEFT_OUT = ("cubic_ns3", "q_tcp_ca", "qa_tcp_ca", "rl_tcp_no_ca")
"""variants that replicate another program or a part of a paper"""
MORE = (
    "aurora_mixed",
    "flagship",
    "graduate",
    "lp_tcp/L50_K1",
    "tcp_drinc",
    "examples/search/found.py",
)
"""policies of single flows, of LP-TCP's forests the one for its first setup; the searched rule"""


def names() -> list[str]:
    """Every controller of one flow that needs no policy, and the policies."""
    plain = [
        own["name"]
        for own in _core.controllers()
        if own["scope"] == "subflow"
        and own["name"] not in LEFT_OUT
        and all(param["default"] is not None for param in own["params"])
    ]
    return [*plain, *MORE]


def shown(name: str) -> str:
    """An entry in the table."""
    return Path(name).name if name.endswith(".py") else name


def files(folder: Path, *, is_quick: bool) -> dict[str, Path | None]:
    """The result of every entry of this program, or none."""
    found: dict[str, Path | None] = {}
    for name in names():
        own = entries.entry(schemes.one(name), is_quick=is_quick)
        end = "-".join([own.digest[:12], *own.marks])
        found[name] = next(folder.glob(f"*-{end}.json"), None)
    return found


def run(folder: Path, *, is_quick: bool) -> None:
    """Run the entries that have no result."""
    for name, file in files(folder, is_quick=is_quick).items():
        if file is None:
            more = ["--quick"] if is_quick else []
            words = ["benchmark", name, "--results", str(folder), *more]
            print("ackademy", *words, flush=True)
            subprocess.run([sys.executable, "-m", "ackademy", *words], cwd=ROOT, check=True)


def rows(found: dict[str, Result]) -> list[dict[str, str]]:
    """A line per entry, the most power wins first."""
    results = list(found.values())
    fronts = report.fronts(results)
    lines = []
    for index, (name, own) in enumerate(found.items()):
        line = {"entry": shown(name)}
        line |= {title: "●" if index in front else "" for title, front in fronts.items()}
        for number in NUMBERS:
            value = with_interval(own.estimate(number).times(number.factor), 3)
            unit = f", {number.unit}" if number.unit else ""
            line |= {f"{number.label}{unit}": "" if value == "nan" else value}
        program = {"networks": str(len(own.networks)), "run": " ".join(own.marks) or "full"}
        lines.append(line | program | {"program": own.core[:12]})
    wins = [own.estimate(NUMBERS[0]).value for own in results]
    order = sorted(range(len(lines)), key=lambda index: (-wins[index], index))
    return [result_tables.with_intervals(lines[index]) for index in order]


def main() -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "benchmarks")
    asked = parser.parse_args()
    if asked.run:
        run(asked.folder.resolve(), is_quick=asked.quick)
    found = files(asked.folder, is_quick=asked.quick)
    missing = [name for name, file in found.items() if file is None]
    if missing:
        sys.exit(f"{asked.folder}: no result of {', '.join(missing)}; allowed: after --run")
    try:
        read = {name: result_file.read(file) for name, file in found.items() if file}
    except AckademyError as error:
        sys.exit(str(error))
    result_tables.write_rows(OUT, rows(read))
    front_figure.draw()


if __name__ == "__main__":
    main()
