"""`ackademy certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import SEED_MAX

STATES_MAX = 1_000_000


def certify_command(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy over the law own_queue, by folder or name.",
            autocompletion=completion.policies,
        ),
    ],
    distribution: Annotated[
        Path, typer.Option(help="Distribution whose networks the states come from.")
    ] = Path("flagship"),
    states: Annotated[
        int, typer.Option(min=64, max=STATES_MAX, help="Number of recorded states.")
    ] = 10_000,
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Seed of the networks and of drawn points.")
    ] = 1,
    json: options.Json = None,
    markdown: options.Markdown = None,
    card: Annotated[
        bool, typer.Option("--card", help="Write the table into the CARD.md of the policy, too.")
    ] = False,
) -> None:
    """Prove properties of a policy for boxes of observations, or find counterexamples.

    A share is certified if interval arithmetic proves it, and refuted if a drawn point breaks it;
    the rest is neither.

    Examples:
        ackademy certify policies/flagship

        ackademy certify trained/flagship --states 2000 --json certificates.json
    """
    from ackademy import lookup
    from ackademy.backends import distributions
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.errors import ExchangeError
    from ackademy.files import write
    from ackademy.policies import cards
    from ackademy.policies.certificates import WITHOUT_JITTER
    from ackademy.render import terminal
    from ackademy.render.markdown.sheet import sheet
    from ackademy.render.sheets import certify as sheets

    try:
        from ackademy.studies import certify
    except ImportError as error:
        raise running.lacks_training(error) from None
    console = Console(stderr=options.is_stdout(json))
    folder = lookup.find(policy, "policy", ExchangeError)
    options.check_exports(json, None, markdown, folder / cards.PAGE if card else None)
    with console.status("reading") as status:
        found = certify.certify(
            folder,
            distributions.read(distribution),
            states,
            seed,
            lambda work: status.update(f"certifying: {work}"),
        )
    own = sheets.certificates(folder.name, found)
    terminal.show([own], console)
    console.print(WITHOUT_JITTER)
    for name in found.absent:
        console.print(f"{name} does not apply: the policy lacks a feature of it")
    if json:
        options.export(json, found.json())
    if markdown:
        write(markdown, f"{sheet(own)}\n")
    if card:
        text = (
            f"`ackademy certify {policy} --states {states} --seed {seed} --card` printed this\n"
            f"table; {len(found.absent)} further properties need features that it lacks. The page "
            f'"Certificates"\nof the documentation defines them.\n'
            f"{WITHOUT_JITTER}\n\n{sheet(own)}"
        )
        cards.put_section(folder, "certify", "Certificates", text)
