"""`ackademy search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import SEED_MAX, finite
from ackademy.cli.studies import Study, study
from ackademy.errors import ExperimentError

SEARCHES = Path("searches")
NETWORKS = 40
"""draws of a distribution"""


@study(
    runs=f"Networks: draws of a distribution ({NETWORKS} by default), or of a list.",
    without=("backend", "engine", "address", "work"),
)
def search_command(
    own: Study,
    template: Annotated[
        Path,
        typer.Option(help="A controller's file with holes: `name = EXPRESSION  # hole: NAME`."),
    ],
    grammar: Annotated[
        Path | None, typer.Option(help="What expressions are made of, for evolution.")
    ] = None,
    proposer: Annotated[
        str,
        typer.Option(
            help="A command that reads the best so far as JSON and prints a new file.",
            metavar="COMMAND",
        ),
    ] = "",
    on: Annotated[
        str,
        typer.Option(help="Networks: a distribution, a list or a scenario.", metavar="WHERE"),
    ] = "benchmark",
    against: Annotated[
        str,
        typer.Option(
            help="Schemes to compare the best candidate with.",
            autocompletion=completion.controllers,
        ),
    ] = "cubic,vegas",
    candidates: Annotated[int, typer.Option(min=1, max=1_000_000, help="In all.")] = 320,
    score: Annotated[
        str, typer.Option(help="Metric whose mean over networks is the score.", metavar="METRIC")
    ] = "utility",
    limit_s: Annotated[
        float,
        typer.Option(
            min=1.0, max=3600.0, callback=finite, help="Seconds of a core for one candidate."
        ),
    ] = 60.0,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of every choice.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the search; a repeated command continues there.")
    ] = None,
) -> None:
    """Search for a controller: short files, proposed, judged on networks, bred by their scores.

    A candidate runs in a process of its own that may not open files. The best one is best.py in the
    search's folder.

    Examples:
        ackademy search --template rule.py --grammar rule.toml --on benchmark

        ackademy search --template rule.py --proposer ./ask.sh --candidates 100
    """
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.files import check_output_folder, write
    from ackademy.render import terminal
    from ackademy.runner import engines
    from ackademy.stats.metrics import metric_of
    from ackademy.studies.evaluate import sources
    from ackademy.studies.search import report as reports
    from ackademy.studies.search import search as searches

    if (grammar is None) == (not proposer):
        raise ExperimentError("search: allowed: --grammar FILE or --proposer COMMAND, one of them")
    metric_of(score, "--score")
    folder = out or SEARCHES / options.stem(template.stem)
    own.begin(f"search-{options.stem(folder.name)}")
    check_output_folder(folder)
    rivals = schemes.parse(against) if against else []
    networks = sources.source([on], None, folder / "networks", runs=own.runs or NETWORKS)
    task = searches.Task(
        folder=folder,
        template=template,
        networks=networks.cases,
        score=score,
        seed=seed,
        limit_s=limit_s,
        grammar=grammar,
        proposer=proposer,
    )
    found = searches.Search(task)
    references = {scheme.label: found.judge(scheme) for scheme in rivals}
    done = len(found.found)
    jobs = engines.jobs_of(own.runner())
    try:
        with terminal.progress_bar(own.console, "search") as progress:
            for index, _ in enumerate(found.run(candidates, jobs)):
                progress(done + index + 1, candidates)
    except KeyboardInterrupt:
        told = f"interrupted: {len(found.found)} candidates are kept in {folder}"
        raise running.stopped(f"{told}; run the same command again to continue") from None
    best = folder / searches.BEST
    if found.best:
        write(best, found.text(found.best[0]))
    benchmark = f"ackademy benchmark {best}"
    own.deliver(reports.report(found, references, running.command(), benchmark))
    own.console.say(f"best: {best}; to judge it: {benchmark}" if found.best else "no candidate ran")
