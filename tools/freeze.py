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
OUTPUTS = ("--html", "o/page.html")
CASES = {
    "run": ("run", "net.toml", "--cc", "cubic", "--json", "o/run.json", "--csv", "o/run.csv",
            *OUTPUTS),
    "compare": ("compare", "net.toml", "net2.toml", "--cc", "cubic,new_reno", "--runs", "3",
                "--json", "o/c.json", "--csv", "o/c.csv", *OUTPUTS),
    "league": ("compare", "--suite", "suites/small.toml", "--json", "o/l.json", "--csv", "o/l.csv",
               "--markdown", "o/l.md", *OUTPUTS),
    "gap": ("gap", "net.toml", "--cc", "cubic", "--baselines", "kernel:cubic", "--runs", "2",
            "--markdown", "o/gap.md", *OUTPUTS),
    "eval": ("eval", "aurora_mixed", "--runs", "3", "--against", "cubic", *OUTPUTS),
    "eval_scenario": ("eval", "cubic", "--scenario", "net.toml", "--runs", "3", "--against",
                      "new_reno", *OUTPUTS),
    "generalise": ("generalise", "cubic", "--links", "6", "--against", "new_reno", "--markdown",
                   "o/g.md", "--worst", "o/worst", *OUTPUTS),
    "judge": ("judge", "cubic", "--networks", "3", "--against", "new_reno,copa", "--markdown",
              "o/j.md", *OUTPUTS),
    "scorecard": ("scorecard", "cubic", "--quick", "--row", "C3", "--row", "S9", "--against",
                  "new_reno", "--reports", "o"),
    "stress": ("stress", "cubic", "--budget", "32", "--keep", "2", "--markdown", "o/s.md",
               "--worst", "o/worst", *OUTPUTS),
    "certify": ("certify", "flagship", "--states", "256", "--json", "o/c.json", "--markdown",
                "o/c.md"),
    "zoo": ("zoo",),
    "list": ("list",),
    **{
        f"paper {item}": ("reproduce", item, "--runs", "2", "--reports", "o", "--full",
                          "--assumptions")
        for item in ("kong2018/table5", "kong2018/fig1c", "learningcc/fluid", "learningcc/fig4",
                     "xiao2019/table1", "xu2019/s1")
    },
    "beta": ("reproduce", "learn/learning", "--runs", "1", "--reports", "o", "--full"),
}  # fmt: skip
"""by name of what is frozen: the words of a command, whose files are those in `o`"""
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
                found |= frozen(name, words, Path(scratch) / name.replace("/", "-"), asked.folder)
    lines = [f"{digest}  {name}" for name, digest in sorted(found.items())]
    (asked.folder / "HASHES").write_text("\n".join(lines) + "\n")
    if asked.check:
        compare(asked.check, found, asked.only)


def frozen(name: str, words: tuple[str, ...], place: Path, kept: Path) -> dict[str, str]:
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
    paper = ROOT / "papers" / "knott2023"
    (place / "papers" / "learn" / "paper.toml").write_text((paper / "paper.toml").read_text())
    learner = "[[learner]]\nrecipe = { episodes = 404, decay_start = 20, steps = 2 }"
    learning = (paper / "learning.toml").read_text().replace("[[learner]]", learner)
    (place / "papers" / "learn" / "learning.toml").write_text(learning)
    (place / "scenarios").symlink_to(ROOT / "scenarios")
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
