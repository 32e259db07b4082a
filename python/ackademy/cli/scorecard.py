"""`ackademy scorecard`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.backends import REAL_TIME
from ackademy.cli import completion
from ackademy.cli.options import stem
from ackademy.cli.studies import Study, study
from ackademy.errors import AckademyError, ControllerError

if TYPE_CHECKING:
    from ackademy.runner.experiments import CellsRun
    from ackademy.studies.scorecard.card import Card, Limits
    from ackademy.studies.scorecard.study import Plan

CARD = "rfc9743"


@study(runs="Seeds per network; the card's number by default.")
def scorecard_command(
    own: Study,
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
) -> None:
    """Run the evaluations of RFC 9743 on a controller, beside other controllers.

    Finished runs are kept: an interrupted command continues where it stopped, and the next card
    finds the runs of the rivals.

    Examples:
        ackademy scorecard cubic --quick

        ackademy scorecard aurora_mixed --html cards/aurora.html --csv cards/aurora.csv

        ackademy scorecard mine.py:Mine --row C3 --row S9
    """
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.runner import engines, experiments
    from ackademy.studies.scorecard import card as cards
    from ackademy.studies.scorecard import report as reports
    from ackademy.studies.scorecard import study

    found = schemes.parse(controller)
    if len(found) != 1:
        raise ControllerError(f"scorecard: {controller}: allowed: one controller")
    loaded = cards.chosen(cards.load(card), row or [])
    words = loaded.rivals if against is None else [*filter(None, against.split(","))]
    rivals, unknown = study.rivals(words)
    if unknown and against is not None:
        raise AckademyError(f"--against {unknown[0]}: allowed: controllers of `ackademy list`")
    limits = _limits(loaded, own.runs, own.backend, quick=quick)
    plan = study.Plan(loaded, found[0], tuple(rivals), limits, own.backend)
    own.begin("-".join(["scorecard", *_name_parts(plan, row or [])]))
    rows = study.planned(plan)
    todo = [cell for one in rows for cell in one.cells]
    left = experiments.missing(own.folder, todo)
    at_once = 1 if own.backend in REAL_TIME else engines.jobs_of(own.runner())
    spent_s = study.expected_s(plan, rows, left) / at_once
    own.console.say(_expected(len(set(todo)), len(set(left)), spent_s))
    ran = own.run(todo, "scorecard")
    results = study.results(plan, rows, own.folder, ran.failures)
    for name in unknown:
        own.console.say(f"rival {name}: not registered, left out")
    if own.backend in REAL_TIME:
        own.ran = experiments.CellsRun(ran.n_cells, ran.n_reused, [], ran.damaged, ran.n_fixed)

    def repeat(row_id: str) -> str:
        words = ["ackademy", "scorecard", controller, "--row", row_id]
        words += [] if card == CARD else ["--card", card]
        words += [] if against is None else ["--against", against]
        words += ["--quick"] if quick else []
        words += ["--backend", own.backend] if own.backend != "sim" else []
        return shlex.join(words)

    facts = [*_facts(plan, ran, unknown), f"{own.spent_s:.0f} s of computing for this"]
    own.deliver(
        reports.report(plan, results, facts, repeat, own.console, running.command()),
        reports.tables(plan, results),
        csv=lambda: reports.csv(plan, results, repeat),
    )


def _expected(n_runs: int, n_left: int, spent_s: float) -> str:
    """What the command is about to do, and how long that takes."""
    found = f"{n_runs} runs, {n_runs - n_left} of them found finished"
    if n_left == 0:
        return found
    about = f"{spent_s:.0f} s" if spent_s < 90.0 else f"{spent_s / 60.0:.0f} min"
    return f"{found}: about {about} for the others if the machine is idle"


def _limits(card: Card, runs: int | None, backend: str, *, quick: bool) -> Limits:
    from dataclasses import replace

    own = card.kernel if backend in REAL_TIME else card.quick if quick else card.full
    return own if runs is None else replace(own, runs=runs)


def _name_parts(plan: Plan, rows: list[str]) -> list[str]:
    """What distinguishes the files of cards."""
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
