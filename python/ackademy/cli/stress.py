"""`ackademy stress`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy import _core
from ackademy.backends import controllers, schemes
from ackademy.backends.schemes import Scheme
from ackademy.cli import completion, options, running
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.cli.studies import Study as Session
from ackademy.cli.studies import study as session
from ackademy.errors import ControllerError, ScenarioError
from ackademy.files import check_output_folder, file_name, write
from ackademy.render import markdown, terminal
from ackademy.runner import engines, experiments
from ackademy.studies.stress import report as stress_report
from ackademy.studies.stress import search as stress
from ackademy.studies.stress import space as stress_space
from ackademy.studies.stress.search import Finding, Method, Network, Study, Tried
from ackademy.studies.stress.space import Space

if TYPE_CHECKING:
    from ackademy.studies.league.suite import Suite

KEEP_MAX = 100
LEAGUE_KEPT = 8
"""worst networks of a scheme of a league that are kept as scenarios"""
SPACE = Path("stress")


@session(without=("runs", "backend"))
def stress_command(
    own: Session,
    controller: Annotated[
        str,
        typer.Argument(
            help="A controller, NAME:SETTING=VALUE, a policy, or file.py:Class.",
            metavar="CONTROLLER",
            autocompletion=completion.controllers,
        ),
    ],
    param: options.Params = None,
    against: Annotated[
        str,
        typer.Option(
            help="Look for the largest regret above that of this scheme on the same network.",
            autocompletion=completion.controllers,
        ),
    ] = "",
    space: Annotated[
        Path, typer.Option(help="Distribution whose draws are the dimensions of the search.")
    ] = SPACE,
    budget: Annotated[
        int, typer.Option(min=1, max=RUNS_MAX, help="Number of networks that are tried.")
    ] = 640,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            callback=finite,
            help="Begin no further generation after this time, whatever is left of the budget.",
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="An evolution strategy, or independent draws.")
    ] = "evolution",
    keep: Annotated[
        int, typer.Option(min=1, max=KEEP_MAX, help="Number of scenarios to keep.")
    ] = 8,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Seed of the search.")] = 1,
    worst: Annotated[Path | None, typer.Option(help="Folder for the kept scenarios.")] = None,
) -> None:
    """Search for the networks on which a controller does worst, and keep them as scenarios.

    The same seed and budget find the same networks with any --jobs. Finished runs are
    kept: an interrupted command continues where it stopped.

    Examples:
        ackademy stress cubic

        ackademy stress aurora_mixed --against cubic --budget 2000 --jobs 8

        ackademy stress mine.py:Mine --minutes 5 --keep 3 --worst failures/

        ackademy stress vegas --space mine/space.toml --method random --seed 7
    """
    searched = stress_space.read(space)
    other = _scheme(against, None, searched) if against else None
    study = Study(_scheme(controller, param, searched), other, searched, seed, budget, method, keep)
    schemes.differ(study.schemes)
    own.begin(f"stress-{options.stem(study.scheme.label)}")
    folder = worst or own.page.parent / f"{own.page.stem}-worst"
    check_output_folder(folder)
    with ExitStack() as stack:
        if own.engine == "ray":
            stack.enter_context(engines.ray_session(own.address))
        engine = stack.enter_context(engines.kept(own.runner()))
        stack.enter_context(running.resumable())
        tried, found = search(study, Runner(study, own.folder, engine, own), minutes)
    keep_findings(study, found, folder)
    own.console.say(f"tried {len(tried)} networks; scenarios: {folder}")
    described = {
        "command": running.command(),
        "controller": study.scheme.words,
        "against": study.against.words if study.against else None,
        "space": {"file": study.space.origin, "digest": study.space.digest},
        "seed": study.seed,
        "networks": len(tried),
        "worst": [stress_report.described(study, one, folder) for one in found],
    }
    own.deliver(
        stress_report.report(study, tried, found, folder, running.command()),
        stress.tables(study, found),
        csv=lambda: stress.csv(tried),
        described=described,
    )


def of_league(own: Session, suite: Suite, budget: int) -> Sequence[tuple[str, Sequence[Finding]]]:
    """Search for the worst case of every scheme of a league, and print the table (metric M8).

    Schemes that a pattern keeps to some networks, and the kernel's, are left out. The table is
    written beside the scenarios that are kept, in the folder `league-SUITE-worst`.

    Args:
        own: the command.
        suite: whose schemes are searched, with their own settings.
        budget: networks per scheme, >= 1.

    Returns:
        By scheme: its findings, the worst first.
    """
    folder = own.work / f"league-{suite.name}-worst"
    space, found = stress_space.read(SPACE), []
    with engines.kept(own.runner()) as engine, running.resumable():
        for scheme in suite.schemes:
            if scheme.networks != "*" or controllers.own_of(scheme.controller):
                continue
            study = Study(scheme, None, space, 1, budget, "evolution", LEAGUE_KEPT)
            _, findings = search(study, Runner(study, own.work / "stress", engine, own), None)
            keep_findings(study, findings, folder / file_name(scheme.label))
            found.append((scheme.label, findings))
    shown = stress_report.worst(found, budget)
    terminal.show([shown], own.console)
    write(folder / "worst.md", f"# {markdown.text(shown.title)}\n\n{markdown.sheet(shown)}\n")
    own.console.say(f"worst networks: {folder}")
    return found


def keep_findings(study: Study, found: Sequence[Finding], folder: Path) -> None:
    """Write a scenario file per finding."""
    for own in found:
        network = own.tried.network
        text = study.space.text(network.family, network.settings, study.scheme)
        file = stress_report.kept_file(own, folder)
        write(file, stress_report.about(study, own, file) + text)


@dataclass(slots=True)
class Runner:
    """Runs networks, shows how far the work is, and ends the command if a run fails."""

    study: Study
    folder: Path
    engine: engines.Engine
    session: Session
    total: int = 0
    done: int = 0
    seeds: Sequence[int] = (stress.SEED,)
    progress: experiments.Progress = field(default=experiments.quiet)

    def __call__(self, networks: Sequence[Network]) -> list[Tried]:
        """Run networks with every seed, and read what they left."""
        cells = [
            cell
            for own in networks
            for seed in self.seeds
            for cell in self.study.cells(own, self.folder, seed)
        ]
        per_network = len(self.study.schemes) * len(self.seeds)

        def update(n_done: int, _: int) -> None:
            self.progress(min(self.done + n_done // per_network, self.total), self.total)

        ran = experiments.run_cells(cells, self.folder, self.engine, update)
        running.report_failures(ran)
        self.session.ran = self.session.ran.with_more(ran)
        self.done += len(networks)
        return [self.study.read(own, self.folder, self.seeds) for own in networks]


def search(
    study: Study, runner: Runner, minutes: float | None
) -> tuple[list[Tried], list[Finding]]:
    """All networks that were tried, and what is kept of them."""
    began, console = time.monotonic(), runner.session.console
    tried: list[Tried] = []
    runner.total = study.budget
    with terminal.progress_bar(console, "networks") as runner.progress:
        for generation in stress.search(study, runner):
            tried += generation
            if minutes is not None and time.monotonic() - began >= 60.0 * minutes:
                break
    runner.seeds = stress.SEEDS
    runner.total, runner.done = stress.CANDIDATES * study.worst, 0
    with terminal.progress_bar(console, "with other seeds, at most") as runner.progress:
        found = stress.confirmed(study, tried, runner)
    runner.total, runner.done = stress.steps_max(found), 0
    with terminal.progress_bar(console, "simplifying, at most") as runner.progress:
        simple = stress.simplify(found, runner)
    return tried, stress.findings(study, list(zip(simple, found, strict=True)))


def _scheme(word: str, param: Sequence[str] | None, space: Space) -> Scheme:
    """The scheme that a word names.

    Raises:
        ControllerError: if it is none, or several, or one that the simulator does not run.
    """
    found = schemes.parse(word, running.settings(list(param or ()), word))
    if len(found) != 1:
        raise ControllerError(f"stress {word}: allowed: one scheme")
    own = found[0]
    controllers.check([str(own.controller)], "sim")
    family = space.families[0]
    text = space.text(family, (None,) * len(family.dimensions), own)
    try:
        _core.Scenario.parse(text, word, {})
    except ScenarioError as error:
        reason = str(error).partition(": ")[2]
        raise ControllerError(f"stress {word}: {reason}") from error
    return own
