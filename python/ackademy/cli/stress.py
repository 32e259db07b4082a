"""`ackademy stress`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ackademy import _core
from ackademy.backends import controllers, schemes
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.cli import completion, options, running
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.console import Console
from ackademy.errors import ControllerError, ScenarioError
from ackademy.files import check_output_folder, check_outputs, write
from ackademy.render import exports, terminal
from ackademy.render.html import stress as report
from ackademy.render.markdown.sheet import code, sheet, text
from ackademy.render.sheets import stress as sheets
from ackademy.runner import engines, experiments
from ackademy.studies import stress, stress_space
from ackademy.studies.stress import Finding, Method, Network, Study, Tried
from ackademy.studies.stress_space import Space

KEEP_MAX = 100


def stress_command(
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
    ] = Path("stress"),
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
    html: options.Page = None,
    markdown: options.Markdown = None,
    worst: Annotated[Path | None, typer.Option(help="Folder for the kept scenarios.")] = None,
    jobs: options.Jobs = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    out: options.RunsFolder = options.RUNS,
) -> None:
    """Search for the networks on which a controller does worst, and keep them as scenarios.

    The same seed and budget find the same networks on any number of processes. Finished runs are
    kept: an interrupted command continues where it stopped.

    Examples:
        ackademy stress cubic

        ackademy stress aurora_mixed --against cubic --budget 2000 --jobs 8

        ackademy stress mine.py:Mine --minutes 5 --keep 3 --worst failures/

        ackademy stress vegas --space mine/space.toml --method random --seed 7
    """
    console = Console()
    searched = stress_space.read(space)
    study = Study(
        _scheme(controller, param, searched),
        _scheme(against, None, searched) if against else None,
        searched,
        seed,
        budget,
        method,
        keep,
    )
    if study.against is not None:
        schemes.names_differ(study.schemes)
    page = html or options.REPORTS / f"stress-{options.stem(study.scheme.name)}.html"
    folder_of_worst = worst or page.parent / f"{page.stem}-worst"
    check_outputs([page, page.with_suffix(".csv"), page.with_suffix(".json"), markdown])
    check_output_folder(folder_of_worst)
    check_output_folder(out)
    with ExitStack() as stack:
        if engine == "ray":
            stack.enter_context(engines.ray_session(address))
        own = stack.enter_context(engines.kept(options.engine_of(engine, address, jobs)))
        stack.enter_context(running.resumable())
        tried, found = search(study, Runner(study, out / "stress", own, console), minutes)
    keep_findings(study, found, folder_of_worst)
    terminal.show([sheets.findings(study, found, folder_of_worst)], console)
    console.say(f"tried {len(tried)} networks; scenarios: {folder_of_worst}")
    command = running.command()
    write(page, report.page(study, tried, found, folder_of_worst, command))
    write(page.with_suffix(".csv"), stress.csv(tried))
    write(page.with_suffix(".json"), _json(study, tried, found, folder_of_worst))
    console.say(f"numbers: {page.with_suffix('.csv')}, {page.with_suffix('.json')}")
    console.say(f"report:  {page}")
    if markdown:
        shown = sheets.findings(study, found, folder_of_worst, commands=True)
        title = f"# {text(shown.title)}\n\n{code(command)} printed this table."
        write(markdown, f"{title}\n\n{sheet(shown)}\n")
        console.say(f"table:   {markdown}")


def keep_findings(study: Study, found: Sequence[Finding], folder: Path) -> None:
    """Write a scenario file per finding."""
    for own in found:
        network = own.tried.network
        text = study.space.text(network.family, network.settings, study.scheme)
        file = sheets.kept_file(own, folder)
        write(file, sheets.about(study, own, file) + text)


def _json(study: Study, tried: Sequence[Tried], found: Sequence[Finding], folder: Path) -> str:
    described = {
        "command": running.command(),
        "controller": study.scheme.words,
        "against": study.against.words if study.against else None,
        "space": {"file": study.space.origin, "digest": study.space.digest},
        "seed": study.seed,
        "networks": len(tried),
        "worst": [sheets.described(study, own, folder) for own in found],
    }
    return exports.results_json(stress.tables(study, found), described)


@dataclass(slots=True)
class Runner:
    """Runs networks, shows how far the work is, and ends the command if a run fails."""

    study: Study
    folder: Path
    engine: engines.Engine
    console: Console
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
        self.done += len(networks)
        return [self.study.read(own, self.folder, self.seeds) for own in networks]


def search(
    study: Study, runner: Runner, minutes: float | None
) -> tuple[list[Tried], list[Finding]]:
    """All networks that were tried, and what is kept of them."""
    began = time.monotonic()
    tried: list[Tried] = []
    runner.total = study.budget
    with terminal.progress_bar(runner.console, "networks") as runner.progress:
        for generation in stress.search(study, runner):
            tried += generation
            if minutes is not None and time.monotonic() - began >= 60.0 * minutes:
                break
    runner.seeds = stress.SEEDS
    runner.total, runner.done = stress.CANDIDATES * study.worst, 0
    with terminal.progress_bar(runner.console, "with other seeds, at most") as runner.progress:
        found = stress.confirmed(study, tried, runner)
    runner.total, runner.done = stress.steps_max(found), 0
    with terminal.progress_bar(runner.console, "simplifying, at most") as runner.progress:
        simple = stress.simplify(found, runner)
    return tried, stress.findings(study, list(zip(simple, found, strict=True)))


def _scheme(word: str, param: Sequence[str] | None, space: Space) -> EvaluatedScheme:
    """The scheme that a word names.

    Raises:
        ControllerError: if it is none, or several, or one that the simulator does not run.
    """
    found = schemes.parse(word, running.settings(list(param or ()), word))
    if len(found) != 1:
        raise ControllerError(f"stress {word}: allowed: one scheme")
    own = EvaluatedScheme(found[0].label, str(found[0].controller), found[0].params)
    controllers.check([own.controller], "sim")
    family = space.families[0]
    text = space.text(family, (None,) * len(family.dimensions), own)
    try:
        _core.Scenario.parse(text, word, {})
    except ScenarioError as error:
        reason = str(error).partition(": ")[2]
        raise ControllerError(f"stress {word}: {reason}") from error
    return own
