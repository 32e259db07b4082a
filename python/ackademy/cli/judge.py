"""`ackademy judge`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.errors import AckademyError, ExperimentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ackademy.render.sheet import Sheet
    from ackademy.studies.judgement import Network, Study

LINKS = "distributions/lists/flagship_validation.links"
AGAINST = "cubic,bbr1,bbr3,copa,vivace"


def judge_command(
    controller: Annotated[
        str,
        typer.Argument(
            help="Controller, or policy by folder or name.",
            metavar="CONTROLLER",
            autocompletion=completion.controllers,
        ),
    ],
    links: Annotated[
        str,
        typer.Option(help="List of networks, by file or name.", autocompletion=completion.lists),
    ] = LINKS,
    against: Annotated[
        str,
        typer.Option(
            help="Controllers or policies separated by commas; the first is the reference.",
            autocompletion=completion.controllers,
        ),
    ] = AGAINST,
    flows: Annotated[
        str,
        typer.Option(
            help="Flows that are judged, all where none is called so; by default those that the "
            "list names.",
            show_default=False,
        ),
    ] = "",
    networks: Annotated[
        int | None,
        typer.Option(min=1, help="So many networks, those with the smallest hashes of names."),
    ] = None,
    html: options.Page = None,
    markdown: options.Markdown = None,
    card: Annotated[
        bool, typer.Option("--card", help="Write the tables into the CARD.md of the policy, too.")
    ] = False,
    jobs: options.Jobs = None,
    engine: options.Engine = "local",
    address: options.Address = None,
    out: options.RunsFolder = options.RUNS,
) -> None:
    """Judge a controller or policy on a fixed list of networks, beside others.

    It prints on what part of the networks each scheme dominates the first of --against, and any
    other dominates it, its share of what is fair and its queueing delay, with 95 % intervals.

    Finished runs are kept: an interrupted command continues where it stopped.

    Examples:
        ackademy judge policies/aurora_mixed

        ackademy judge bbr3 --against cubic,copa --networks 32

        ackademy judge policies/mine --links mine.links --card
    """
    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, check_outputs, write
    from ackademy.policies import cards
    from ackademy.render import terminal
    from ackademy.render.html import judgement as report
    from ackademy.render.markdown import judgement as judgement_markdown
    from ackademy.studies import judgement

    console = Console()
    others = [own.strip() for own in against.split(",") if own.strip()]
    chosen = [schemes.evaluated(own) for own in (controller, *others)]
    schemes.names_differ(chosen)
    place = lookup.policy_folder(controller) if card else None
    if card and place is None:
        raise AckademyError(f"judge --card: {controller}: allowed: a policy's folder")
    listed = lookup.find(links, "list", ExperimentError)
    study = judgement.study(listed, chosen, flows, networks)
    stem = f"judge-{chosen[0].name.replace(' ', '-').replace('/', '-')}"
    page = html or options.REPORTS / f"{stem}.html"
    page_of_policy = place / cards.PAGE if place else None
    check_outputs([page, page.with_suffix(".csv"), markdown, page_of_policy])
    check_output_folder(out)
    folder = out / "judge"
    began = time.monotonic()
    runner = options.engine_of(engine, address, jobs)
    ran = running.run(study.cells(folder), folder, runner, console, "networks")
    found = judgement.networks(study, folder)
    if found:
        terminal.show(_sheets(study, found), console)
        write(page, report.page(study, found, running.command()))
        write(page.with_suffix(".csv"), judgement.table(study, found).write_csv())
        console.say(f"numbers: {page.with_suffix('.csv')}")
        console.say(f"report:  {page}")
        if markdown:
            write(markdown, _markdown(study, found, running.command()))
            console.say(f"tables:  {markdown}")
        if place:
            guarded = judgement.guarded(study, folder)
            text = judgement_markdown.card(study, _sheets(study, found), guarded)
            cards.put_section(place, f"judge {listed.stem}", f"On `{listed.stem}`", text)
            console.say(f"card:    {page_of_policy}")
    console.print(terminal.effort(ran, time.monotonic() - began), highlight=False)
    running.report_failures(ran)


def _sheets(study: Study, found: Sequence[Network]) -> list[Sheet]:
    from ackademy.render.sheets import judgement as sheets
    from ackademy.studies import judgement

    title = f"{len(found)} of {len(study.cases)} networks of {study.origin}"
    return [
        sheets.verdicts(title, judgement.verdicts(study, found), study.reference),
        sheets.dominance(judgement.dominance(study, found)),
        sheets.by_kind(judgement.by_kind(study, found), study.reference),
    ]


def _markdown(study: Study, found: Sequence[Network], command: str) -> str:
    """The tables for a document."""
    from ackademy.render.markdown.sheet import code, sheet

    tables = [sheet(own) for own in _sheets(study, found)]
    return "\n\n".join([f"{code(command)} printed these tables.", *tables]) + "\n"
