"""The worst case of every scheme of a league: a search as of `ackademy stress` each (metric M8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ackademy.backends.schemes import EvaluatedScheme
from ackademy.cli import running, stress
from ackademy.console import Console
from ackademy.files import file_name, write
from ackademy.render import terminal
from ackademy.render.markdown.sheet import sheet, text
from ackademy.render.sheets import league_worst as sheets
from ackademy.runner import engines
from ackademy.studies import stress_space
from ackademy.studies.league import Suite
from ackademy.studies.stress import Finding, Study

SPACE = Path("stress")
SEED = 1
KEPT = 8
"""worst networks of a scheme that are kept as scenarios"""


def report(
    console: Console, suite: Suite, budget: int, out: Path, engine: engines.Engine
) -> Sequence[tuple[str, Sequence[Finding]]]:
    """Search, print the table, and write it beside the scenarios that are kept.

    Schemes that a pattern keeps to some networks, and the kernel's, are left out.

    Args:
        console: where the table is printed.
        suite: whose schemes are searched, with their own settings.
        budget: networks per scheme, >= 1.
        out: folder of the cells, and of the folder `league-SUITE-worst`.
        engine: where cells run.

    Returns:
        By scheme: its findings, the worst first.
    """
    folder = out / f"league-{suite.name}-worst"
    with engines.kept(engine) as own, running.resumable():
        found = [
            (scheme.name, _searched(console, scheme, budget, (out, folder), own))
            for scheme in _schemes(suite)
        ]
    shown = sheets.worst(found, budget)
    terminal.show([shown], console)
    write(folder / "worst.md", f"# {text(shown.title)}\n\n{sheet(shown)}\n")
    console.print(f"worst networks: {folder}", highlight=False)
    return found


def _schemes(suite: Suite) -> list[EvaluatedScheme]:
    return [
        EvaluatedScheme(own.name, own.controller, tuple(own.params.items()))
        for own in suite.schemes
        if own.networks == "*" and not own.controller.startswith("kernel:")
    ]


def _searched(
    console: Console,
    scheme: EvaluatedScheme,
    budget: int,
    folders: tuple[Path, Path],
    engine: engines.Engine,
) -> Sequence[Finding]:
    cells, kept = folders
    study = Study(scheme, None, stress_space.read(SPACE), SEED, budget, "evolution", KEPT)
    runner = stress.Runner(study, cells / "stress", engine, console)
    _, findings = stress.search(study, runner, None)
    stress.keep_findings(study, findings, kept / file_name(scheme.name))
    return findings
