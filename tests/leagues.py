"""Small leagues for tests: the tables of a suite, its file, and its results."""

from __future__ import annotations

from pathlib import Path

from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.studies.league import suite as league


def head(about: str, *settings: str) -> str:
    """The first lines of a suite: two runs, one second each on the kernel, the modern sender."""
    lines = [
        'title = "A small league"',
        f'about = "{about}"',
        "runs = 2",
        "kernel_duration_s = 1",
        *settings,
        "",
        "[sender]",
        'recovery = "sack"',
    ]
    return "\n".join(lines) + "\n"


def scheme(name: str, controller: str, family: str, *, learns: bool = False, more: str = "") -> str:
    """A table of a scheme; `more` are further lines."""
    lines = [
        "",
        "[[scheme]]",
        f'name = "{name}"',
        f'controller = "{controller}"',
        f'family = "{family}"',
    ]
    lines += ["learns = true", 'kind = "learned"'] if learns else ['kind = "classic"']
    return "\n".join(lines) + "\n" + more


def network(
    name: str, title: str, paper: str, full_delay_ms: int, *, settings: str = "", more: str = ""
) -> str:
    """A table of a network on the scenario of the suite; `settings`, `more`: further lines."""
    return f"""
[[network]]
name = "{name}"
title = "{title}"
paper = "{paper}"
scenario = "../net.toml"
{settings}link = "bottleneck"
full_delay_ms = {full_delay_ms}
{more}"""


def write_suite(folder: Path, scenario: str, suite: str) -> Path:
    """The file of a suite in `folder`, whose networks are all `scenario`."""
    (folder / "net.toml").write_text(scenario)
    path = folder / "suites" / "small.toml"
    path.parent.mkdir()
    path.write_text(suite)
    return path


def played(suite_file: Path, folder: Path) -> list[league.Result]:
    """The results of two runs of every scheme on every network, whose cells lie in `folder`."""
    found = league.scheme_cases(league.load(str(suite_file)), 2)
    cells = [cell for scheme_case in found for cell in scheme_case.cells]
    run_cells(cells, folder, local(1), quiet)
    return league.results(found, folder)
