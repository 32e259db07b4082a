"""`ackademy certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy.cli import completion
from ackademy.cli.bounds import SEED_MAX
from ackademy.cli.studies import OUTPUTS_ALONE, Study, study

STATES_MAX = 1_000_000


@study(without=OUTPUTS_ALONE)
def certify_command(
    own: Study,
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy over own_queue, by folder or name.",
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
    card: Annotated[
        bool, typer.Option("--card", help="Write the table into the CARD.md of the policy, too.")
    ] = False,
) -> None:
    """Prove properties of a policy for boxes of observations, or find counterexamples.

    A share is certified if interval arithmetic proves it, and refuted if a drawn point breaks it;
    the rest is neither.

    Examples:
        ackademy certify flagship

        ackademy certify trained/flagship --states 2000 --json certificates.json
    """
    from ackademy import lookup
    from ackademy.backends import distributions
    from ackademy.cli import running
    from ackademy.errors import ExchangeError
    from ackademy.policies import cards
    from ackademy.policies.certificates import WITHOUT_JITTER
    from ackademy.render.markdown import sheet

    try:
        from ackademy.studies import certify
    except ImportError as error:
        raise running.lacks_training(error) from None
    folder = lookup.find(policy, "policy", ExchangeError)
    own.begin(f"certify-{folder.name}", folder / cards.PAGE if card else None)
    with own.console.status("reading") as status:
        found = certify.certify(
            folder,
            distributions.read(distribution),
            states,
            seed,
            lambda work: status.update(f"certifying: {work}"),
        )
    report = certify.report(folder.name, found, running.command())
    own.deliver(report, csv=found.csv, json=found.json)
    if card:
        text = (
            f"`ackademy certify {policy} --states {states} --seed {seed} --card` printed this\n"
            f"table; {len(found.absent)} further properties need features that it lacks. The page "
            f'"Certificates"\nof the documentation defines them.\n'
            f"{WITHOUT_JITTER}\n\n{sheet(certify.sheet(folder.name, found))}"
        )
        cards.put_section(folder, "certify", "Certificates", text)
