"""`ackademy compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import RUNS_MAX
from ackademy.cli.studies import Study, study
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from ackademy.studies.league.report import Played
    from ackademy.studies.league.suite import Suite


@study(runs="Runs of each scheme, with seeds 1, 2, ...; 5, or the suite's number.")
def compare_command(
    own: Study,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            help="Scenarios, by file or name.",
            metavar="SCENARIO...",
            autocompletion=completion.scenarios,
        ),
    ] = None,
    cc: Annotated[
        list[str] | None,
        typer.Option(
            help="Schemes separated by commas: controllers, NAME:SETTING=VALUE,SETTING=VALUE, "
            "policies, file.py:Class, kernel:NAME, noq:NAME, quinn:NAME, ns3:NAME; by default the "
            "files' own; repeat it.",
            autocompletion=completion.controllers,
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            help="Run a league: every scheme on every network of a suite.",
            autocompletion=completion.suites,
        ),
    ] = "",
    only: Annotated[
        str | None,
        typer.Option(help="Only networks of the suite whose name matches, as in 'L =*'."),
    ] = None,
    thin: Annotated[
        int | None,
        typer.Option(min=1, help="Of the networks that a suite draws, run one of so many."),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=RUNS_MAX,
            help="Search so many networks for the largest regret of each scheme of the suite.",
        ),
    ] = None,
    param: options.Params = None,
    settings: options.Overrides = None,
) -> None:
    """Compare controllers on the same scenarios, with nominal 95 % intervals.

    Examples:
        ackademy compare 'kong2018_*' --cc new_reno,cubic

        ackademy compare deep_buffer --cc cubic,cubic:beta=0.8,c=0.3,mine.py:Mine --runs 20

        ackademy compare deep_buffer --cc cubic,vegas --set dumbbell.rtt_ms=80 --csv numbers.csv

        ackademy compare gap/fast gap/steps --backend kernel --cc cubic,kernel:cubic

        ackademy compare --suite papers

        ackademy compare --suite all --thin 10 --runs 1
    """
    if bool(suite) == bool(scenarios):
        raise AckademyError("compare: allowed: scenarios, or --suite NAME, and not both")
    for option, value in {"--only": only, "--thin": thin, "--worst": worst}.items():
        if value is not None and not suite:
            raise AckademyError(f"compare: {option}: allowed: with --suite")
    if suite:
        if cc or settings:
            raise AckademyError("compare: allowed beside --suite: no --cc, --set")
        _league(own, suite, only, thin or 1, worst)
        return
    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.runner import measured
    from ackademy.runner.cases import Plan, named_apart, of_file
    from ackademy.studies import compare

    words = ",".join(cc or [])
    named = lookup.scenarios_of(scenarios or [])
    found = schemes.parse(words, running.settings(param, words))
    settled = [*(settings or ()), *(param or ()), *([own.backend] if own.backend != "sim" else [])]
    labels = [one.label for one in found]
    own.begin(options.stem_of("compare", [word for word, _ in named], labels, settled))
    cases = named_apart([of_file(path) for _, path in named], [word for word, _ in named])
    changes = tuple(options.overrides(settings).items())
    plan = Plan(own.runs or 5, compare.SAMPLE_MS, changes, own.backend)
    rows = measured.rows(cases, found, plan, compare.METRICS)
    own.run([cell for row in rows for cell in row.cells], "comparing")
    measures = measured.measure(rows, own.folder)
    report = compare.report(measures, own.folder, running.command())
    own.deliver(report, measured.tables(compare.STUDY, measures))


def _league(own: Study, name: str, only: str | None, thin: int, worst: int | None) -> None:
    """Run the missing cells of a league and report it."""
    from ackademy.cli import running, stress
    from ackademy.studies.league import report as league_report
    from ackademy.studies.league import suite as league

    suite = league.load(name, thin)
    own.begin(f"league-{suite.name}-{own.backend}")
    played = _played(own, suite, only or "*")
    own.deliver(league_report.report(played, running.command()), league.tables(played.results))
    if worst is not None:
        stress.of_league(own, suite, worst)


def _played(own: Study, suite: Suite, only: str) -> Played:
    from ackademy.studies.league import harm as harm_matrix
    from ackademy.studies.league import scores as league_scores
    from ackademy.studies.league import suite as league
    from ackademy.studies.league.report import Played

    runs, is_sim = own.runs or suite.runs, own.backend == "sim"
    cases = league.scheme_cases(suite, runs, own.backend, only)
    pairings = harm_matrix.pairings(suite) if only == "*" and is_sim else []
    transfers = harm_matrix.transfers(suite) if pairings else []
    oracle = league.oracle_cases(suite, runs, only) if is_sim else []
    folder = own.work / f"league-{suite.name}"
    cells = [cell for one in (*cases, *oracle) for cell in one.cells]
    cells += [cell for one in pairings for cell in one.cells]
    cells += [cell for one in transfers for cell in one.cells]
    own.run(cells, f"league {suite.name}", folder)
    results = league.results(cases, folder)
    scores = league_scores.scores(results, folder, league.results(oracle, folder))
    return Played(suite, results, scores, harm_matrix.measure(pairings, folder, transfers))
