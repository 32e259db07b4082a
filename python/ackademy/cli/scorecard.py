"""`ackademy scorecard`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion
from ackademy.cli.bounds import RUNS_MAX
from ackademy.cli.options import (
    REPORTS,
    RUNS,
    Address,
    BackendName,
    Engine,
    Jobs,
    RunsFolder,
    engine_of,
    stem,
)
from ackademy.errors import AckademyError, ControllerError

if TYPE_CHECKING:
    from rich.table import Table

    from ackademy.console import Console
    from ackademy.runner.experiments import CellsRun
    from ackademy.studies.scorecard.card import Card, Limits
    from ackademy.studies.scorecard.study import Plan, RowResult

CARD = "rfc9743"


def scorecard_command(
    controller: Annotated[
        str,
        typer.Argument(
            help="Controller, policy, file.py:Class or NAME:SETTING=VALUE.",
            metavar="CONTROLLER",
            autocompletion=completion.controllers,
        ),
    ],
    row: Annotated[
        list[str] | None, typer.Option(help="Only this row, as C3; repeatable.", metavar="ID")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: few networks, one seed, short runs.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="Rivals separated by commas; the first is the one that marks compare with.",
            autocompletion=completion.controllers,
        ),
    ] = None,
    card: Annotated[str, typer.Option(help="The rows: a file of scorecards/.")] = CARD,
    backend: BackendName = "sim",
    runs: Annotated[
        int | None, typer.Option(min=1, max=RUNS_MAX, help="Seeds per network; the card's number.")
    ] = None,
    jobs: Jobs = None,
    engine: Engine = "local",
    address: Address = None,
    out: Annotated[
        Path, typer.Option("--reports", help="Folder of the page and the CSV file.")
    ] = REPORTS,
    cells: RunsFolder = RUNS / "scorecard",
) -> None:
    """Judge a controller by the evaluations of RFC 9743, beside other controllers.

    Finished runs are kept: an interrupted command continues where it stopped, and the next card
    finds the runs of the rivals.

    Examples:
        ackademy scorecard cubic --quick

        ackademy scorecard policies/aurora_mixed --reports cards

        ackademy scorecard mine.py:Mine --row C3 --row S9
    """
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, check_outputs, write
    from ackademy.render import scorecard_csv, terminal
    from ackademy.render.html import scorecard as report
    from ackademy.runner import engines, experiments
    from ackademy.studies.scorecard import card as cards
    from ackademy.studies.scorecard import study

    began, console = time.monotonic(), Console()
    found = schemes.parse(controller)
    if len(found) != 1:
        raise ControllerError(f"scorecard: {controller}: allowed: one controller")
    loaded = cards.chosen(cards.load(card), row or [])
    words = loaded.rivals if against is None else [*filter(None, against.split(","))]
    rivals, unknown = study.rivals(words)
    if unknown and against is not None:
        raise AckademyError(f"--against {unknown[0]}: allowed: controllers of `ackademy list`")
    plan = study.Plan(
        loaded, found[0], tuple(rivals), _limits(loaded, runs, backend, quick=quick), backend
    )
    name = "-".join(["scorecard", *_name_parts(plan, row or [])])
    page, csv = out / f"{name}.html", out / f"{name}.csv"
    check_output_folder(cells)
    check_outputs([page, csv])
    rows = study.planned(plan)
    todo = [cell for own in rows for cell in own.cells]
    own_engine = engine_of(engine, address, jobs)
    left = experiments.missing(cells, todo)
    at_once = 1 if backend == "kernel" else engines.jobs_of(own_engine)
    spent_s = study.expected_s(plan, rows, left) / at_once
    console.print(_expected(len(set(todo)), len(set(left)), spent_s), highlight=False)
    ran = running.run(todo, cells, own_engine, console, "scorecard")
    results = study.results(plan, rows, cells, ran.failures)
    for line in _summary(plan, results, console):
        console.print(line, highlight=False)
    for own in results:
        if own.mark.why:
            console.print(f"{own.row.id} {own.mark.verdict}: {own.mark.why}", highlight=False)
    for name in unknown:
        console.print(f"rival {name}: not registered, left out", highlight=False)

    def repeat(row_id: str) -> str:
        words = ["ackademy", "scorecard", controller, "--row", row_id]
        words += [] if card == CARD else ["--card", card]
        words += [] if against is None else ["--against", against]
        words += ["--quick"] if quick else []
        words += ["--backend", backend] if backend != "sim" else []
        return shlex.join(words)

    facts = [*_facts(plan, ran, unknown), f"{time.monotonic() - began:.0f} s of computing for this"]
    write(page, report.page(plan, results, running.command(), facts, repeat))
    write(csv, scorecard_csv.text(plan, results, repeat))
    console.print(terminal.effort(ran, time.monotonic() - began), highlight=False)
    console.print(f"report: {page}", highlight=False)
    console.print(f"numbers: {csv}", highlight=False)
    if backend == "sim":
        running.report_failures(ran)


def _expected(n_runs: int, n_left: int, spent_s: float) -> str:
    """What the command is about to do, and how long that takes."""
    found = f"{n_runs} runs, {n_runs - n_left} of them found finished"
    if n_left == 0:
        return found
    about = f"{spent_s:.0f} s" if spent_s < 90.0 else f"{spent_s / 60.0:.0f} min"
    return f"{found}: about {about} for the others if the machine is idle"


def _summary(plan: Plan, results: list[RowResult], console: Console) -> list[Table | str]:
    """One table if the terminal is wide enough, else one per group of rows."""
    from ackademy.render import terminal
    from ackademy.render.sheets import scorecard as sheets

    tables = terminal.sheet(sheets.summary(plan, results), console)
    if len(tables) == 1:
        return [*tables]
    rivals = [own.label for own in plan.schemes[1:]]
    for n_rivals in range(len(rivals), -1, -1):
        drawn = [terminal.sheet(own, console) for own in sheets.narrow(plan, results, n_rivals)]
        tables = [table for own in drawn for table in own]
        if len(tables) == len(drawn):
            break
    left_out = ", ".join(rivals[n_rivals:])
    more = [f"{left_out}: in the report, or in a wider terminal"] if left_out else []
    return [*tables, *more]


def _limits(card: Card, runs: int | None, backend: str, *, quick: bool) -> Limits:
    from dataclasses import replace

    own = card.kernel if backend == "kernel" else card.quick if quick else card.full
    return own if runs is None else replace(own, runs=runs)


def _name_parts(plan: Plan, rows: list[str]) -> list[str]:
    """What tells the files of cards apart."""
    kept = stem(plan.scheme.label.split("/")[-1])
    backend = [plan.backend] if plan.backend != "sim" else []
    quick = plan.limits.quick_words
    return [kept, *backend, *rows, *(["-".join(quick.replace(",", "").split())] if quick else [])]


def _facts(plan: Plan, ran: CellsRun, unknown: list[str]) -> list[str]:
    """Lines about how a card was run."""
    from ackademy import _core
    from ackademy.runner.cells import measuring_hash

    rivals = ", ".join(own.label for own in plan.schemes[1:]) or "none"
    lines = [
        f"backend: {plan.backend}; {plan.limits.runs} seeds per network; rivals: {rivals}",
        f"{ran.n_cells} runs, {ran.n_reused} of them found finished: a run is kept in a folder "
        "named by the hash of its scenario, seed and of the source code that computes it",
        f"core {_core.CODE_HASH}, measuring code {measuring_hash(plan.backend)}",
        "The grid of networks is thinned: every value of every axis is used about equally often "
        "(studies/scorecard/grid.py). Runs on fast links are shorter than 60 s; the first sixth of "
        "a run is a warm-up where a measure says so.",
    ]
    if unknown:
        lines.append(f"not registered and left out: {', '.join(unknown)}")
    return lines
