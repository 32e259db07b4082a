"""Writes what every study and paper item prints at a small size, and compares two states.

    python tools/freeze.py build/frozen            # writes outputs and build/frozen/HASHES
    python tools/freeze.py build/now --check build/frozen/HASHES

An output is a file or the text of a terminal; what names a time, a path or a version is replaced.
The second command lists the outputs that differ. Each takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = """\
duration_s = 4
[dumbbell]
rtt_ms = 20
[dumbbell.bottleneck]
rate_mbps = 4
queue = { kind = "drop_tail", packets = 10 }
[[flow]]
name = "sender"
count = 2
start_spread_s = 0.2
"""
SUITE = """\
title = "A small league"
about = "Two networks."
runs = 2
kernel_duration_s = 1
[sender]
recovery = "sack"
[[scheme]]
name = "CUBIC"
controller = "cubic"
family = "Linux"
kind = "classic"
[[scheme]]
name = "RL-TCP"
controller = "rl_tcp"
family = "Kong 2018"
learns = true
kind = "learned"
[[network]]
name = "short"
title = "A short buffer"
paper = "Kong 2018"
scenario = "../net.toml"
link = "bottleneck"
full_delay_ms = 30
learner_params = { buffer_packets = 10 }
"""
OUTPUTS = "--html o/page.html --markdown o/page.md --json o/numbers.json --csv o/numbers.csv"
PAPERS = (
    "kong2018/table5",
    "kong2018/fig1c",
    "learningcc/fluid",
    "learningcc/fig4",
    "xiao2019/table1",
    "xu2019/s1",
)
STUDIES = {
    "compare": "compare net.toml net2.toml --cc cubic,new_reno --runs 3",
    "sweep": "sweep net.toml --cc 'cubic:beta=0.5|0.9,new_reno' --runs 2",
    "league": "compare --suite suites/small.toml",
    "gap": "gap net.toml --cc cubic --baselines kernel:cubic --runs 2",
    "evaluate": "evaluate aurora_mixed cubic --runs 3",
    "evaluate_scenario": "evaluate cubic new_reno --on net.toml --runs 3",
    "evaluate_drawn": "evaluate cubic new_reno --on generalise --runs 6 --seed 1 --worst o/worst",
    "evaluate_list": "evaluate cubic new_reno copa --on flagship_validation --runs 3",
    "scorecard": "scorecard cubic --quick --row C3 --row S9 --against new_reno",
    "stress": "stress cubic --budget 32 --keep 2 --worst o/worst",
    "certify": "certify flagship --states 256",
    **{f"paper {item}": f"reproduce {item} --runs 2 --reports o" for item in PAPERS},
    "beta": "reproduce learn/learning --runs 1 --reports o",
}
CASES = {
    "run": "run net.toml --cc cubic --html o/page.html --json o/numbers.json --csv o/numbers.csv",
    "full": "reproduce kong2018/table5 --runs 2 --reports o --full",
    "zoo": "zoo",
    "list": "list",
    **{name: f"{words} {OUTPUTS}" for name, words in STUDIES.items()},
}
"""by name of what is frozen: a command line, whose files are those in `o`"""
VARIABLE = (
    (re.compile(r"core [0-9a-f]{12,}"), "core HASH"),
    (re.compile(r'("code": |measuring code )"?[0-9a-f]{12,}"?'), r"\1HASH"),
    (re.compile(r"\d+(\.\d+)? s( of computing|:)"), r"TIME\2"),
    (re.compile(r"about \d+ (s|min) for the others"), "about TIME for the others"),
)


def main() -> None:
    """Run every command, write its normalised outputs and their hashes, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", type=Path, help="HASHES of an earlier state")
    parser.add_argument("--only", default="", help="pattern of names")
    asked = parser.parse_args()
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, words in CASES.items():
            if re.search(asked.only, name):
                found |= frozen(
                    name, shlex.split(words), Path(scratch) / name.replace("/", "-"), asked.folder
                )
    lines = [f"{digest}  {name}" for name, digest in sorted(found.items())]
    (asked.folder / "HASHES").write_text("\n".join(lines) + "\n")
    if asked.check:
        compare(asked.check, found, asked.only)


def frozen(name: str, words: list[str], place: Path, kept: Path) -> dict[str, str]:
    """Hashes of the outputs of one command by their names; the outputs are kept in a folder."""
    prepare(place)
    program = place / "ackademyd"
    fake = ROOT / "tests" / "fake_ackademyd.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
    program.chmod(0o755)
    more = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb", "FAKE_START": "linux"}
    paths = {"PYTHONPATH": str(ROOT / "python"), "ACKADEMYD": str(program)}
    code = "import sys; sys.argv[0] = 'ackademy'; from ackademy.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=place,
        env={**os.environ, **more, **paths, "FAKE_LOG": str(place / "calls")},
        capture_output=True,
        text=True,
        check=False,
    )
    texts = {"terminal": f"status {process.returncode}\n{process.stdout}{process.stderr}"}
    for path in sorted((place / "o").rglob("*")):
        if path.is_file():
            texts[str(path.relative_to(place / "o"))] = path.read_text()
    found = {}
    for output, text in texts.items():
        for pattern, replacement in VARIABLE:
            text = pattern.sub(replacement, text)
        text = text.replace(str(place), "PLACE").replace(str(ROOT), "ROOT")
        target = kept / name.replace("/", "-") / output
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        found[f"{name}: {output}"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    print(f"{name}: status {process.returncode}, {len(found)} outputs", flush=True)
    return found


def prepare(place: Path) -> None:
    """The scenarios, the suite and the paper that the commands name."""
    (place / "suites").mkdir(parents=True)
    (place / "papers" / "learn").mkdir(parents=True)
    (place / "o").mkdir()
    (place / "net.toml").write_text(SMALL)
    (place / "net2.toml").write_text(SMALL.replace("rtt_ms = 20", "rtt_ms = 60"))
    (place / "suites" / "small.toml").write_text(SUITE)
    paper = ROOT / "data/papers/knott2023"
    (place / "papers" / "learn" / "paper.toml").write_text((paper / "paper.toml").read_text())
    learner = "[[learner]]\nrecipe = { episodes = 404, decay_start = 20, steps = 2 }"
    learning = (paper / "learning.toml").read_text().replace("[[learner]]", learner)
    (place / "papers" / "learn" / "learning.toml").write_text(learning)
    (place / "scenarios").symlink_to(ROOT / "data/scenarios")
    (place / "papers" / "learn" / "ns3.csv").write_text((paper / "ns3.csv").read_text())


def compare(earlier: Path, found: dict[str, str], only: str) -> None:
    """Print which outputs differ from an earlier state's; the exit status is 1 if some do."""
    lines = (line.split("  ", 1) for line in earlier.read_text().splitlines())
    known = {name: digest for digest, name in lines if re.search(only, name)}
    changed = [
        f"{'new' if name not in known else 'gone' if name not in found else 'differs'}  {name}"
        for name in sorted(known.keys() | found.keys())
        if known.get(name) != found.get(name)
    ]
    print("\n".join(changed) or "no output differs")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
