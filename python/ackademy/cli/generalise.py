"""`ackademy generalise`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ackademy import lookup
from ackademy.backends import distributions, schemes
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.cli import completion, options, running
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX
from ackademy.console import Console
from ackademy.errors import AckademyError
from ackademy.files import check_output_folder, check_outputs, write
from ackademy.render import exports, terminal
from ackademy.render.html import generalise as report
from ackademy.render.markdown.sheet import code, sheet, text
from ackademy.render.sheets import evaluation as sheets
from ackademy.runner import cases, engines
from ackademy.studies import generalise, scored
from ackademy.studies.generalise import Study, Worst
from ackademy.studies.scored import Summary


def generalise_command(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy, by folder or name, or a controller.",
            metavar="POLICY",
            autocompletion=completion.policies,
        ),
    ] = "",
    cc: Annotated[str, typer.Option(help="The controller, instead of POLICY.")] = "",
    param: options.PolicyParams = None,
    against: options.Against = options.AGAINST,
    distribution: Annotated[
        Path,
        typer.Option(help="Distribution of dumbbells with one bottleneck."),
    ] = Path("generalise"),
    links: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="Number of links.")] = 200,
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Seed of the first link; the others count up.")
    ] = 1,
    html: options.Page = None,
    markdown: options.Markdown = None,
    worst: Annotated[
        Path | None, typer.Option(help="Folder for the scenarios of the worst links.")
    ] = None,
    jobs: options.Processes = None,
    out: options.RunsFolder = options.RUNS,
) -> None:
    """Evaluate a frozen policy on links it was not trained on, and list where it fails.

    Finished runs are kept: an interrupted command continues where it stopped.

    Examples:
        ackademy generalise policies/tcp_drinc

        ackademy generalise --cc policy --param policy=policies/tcp_drinc --links 400 --seed 9

        ackademy generalise rl-tcp --against cubic,new_reno,policies/tcp_drinc
    """
    console = Console()
    if bool(policy) == bool(cc):
        raise AckademyError("generalise: allowed: a policy's folder or --cc NAME, and not both")
    own = schemes.evaluated(policy or cc, running.settings(param, policy or cc))
    study = _study(own, against, distribution, (seed, links))
    folder = out / "generalise"
    stem = f"generalise-{study.policy.name.replace(' ', '-').replace('/', '-')}"
    page = html or options.REPORTS / f"{stem}.html"
    folder_of_worst = worst or page.parent / f"{page.stem}-worst"
    check_outputs([page, page.with_suffix(".csv"), page.with_suffix(".json"), markdown])
    check_output_folder(folder_of_worst)
    check_output_folder(out)
    engine = engines.local(jobs or engines.core_count())
    ran = running.run(study.cells(folder), folder, engine, console, "links")
    found = generalise.rows(study, folder)
    gathered = generalise.bins(study, found)
    listed = generalise.worst(study, found, folder_of_worst)
    command = running.command()
    _print(study, gathered, listed, console)
    console.say(f"worst links: {folder_of_worst}")
    write(page, report.page(study, found, gathered, listed, command))
    results = scored.tables("generalise", found, gathered)
    write(page.with_suffix(".csv"), generalise.csv(results, found))
    described = {
        "command": command,
        "policy": study.policy.words,
        "against": [own.words for own in study.against],
        "distribution": {"file": study.origin, "digest": study.digest, "seed": study.seed},
        "worst": generalise.worst_in_json(listed),
    }
    write(page.with_suffix(".json"), exports.results_json(results, described))
    console.say(f"numbers: {page.with_suffix('.csv')}, {page.with_suffix('.json')}")
    console.say(f"report:  {page}")
    if markdown:
        write(markdown, _markdown(study, gathered, listed, command))
        console.say(f"tables:  {markdown}")
    running.report_failures(ran)


def _study(policy: EvaluatedScheme, against: str, file: Path, drawn: tuple[int, int]) -> Study:
    others = tuple(schemes.evaluated(own.strip()) for own in against.split(",") if own.strip())
    schemes.names_differ((policy, *others))
    distribution = distributions.read(file)
    seed, links = drawn
    found = tuple(cases.drawn(distribution, seed, links))
    for case in found:
        generalise.link_of(case)  # refused now, not when all of them have run
    return Study(
        policy=policy,
        against=others,
        origin=str(lookup.find(file, "distribution")),
        digest=distribution.digest,
        about=" ".join(distribution.about.split()),
        seed=seed,
        cases=found,
    )


def _print(
    study: Study, gathered: Sequence[Summary], listed: Sequence[Worst], console: Console
) -> None:
    """A table for all links and one per axis, then the worst links."""
    policy = study.policy.name
    by_axis: dict[str, list[Summary]] = {}
    for summary in gathered:
        title = summary.axis or f"{policy} on {len(study.cases)} links"
        by_axis.setdefault(title, []).append(summary)
    shown = [sheets.means(title, rows, policy) for title, rows in by_axis.items()]
    terminal.show([*shown, sheets.worst(listed, policy)], console)


def _markdown(
    study: Study, gathered: Sequence[Summary], listed: Sequence[Worst], command: str
) -> str:
    """The tables for a document."""
    parts = [
        f"# {text(study.policy.name)} on links that it was not trained on",
        f"This report compares a policy with other controllers on {len(study.cases)} drawn links. "
        f"{code(command)} printed it.",
        sheet(sheets.means("", gathered, study.policy.name, named=True)),
        "## Worst links",
        sheet(sheets.worst(listed, study.policy.name, commands=True)),
    ]
    return "\n\n".join(parts) + "\n"
