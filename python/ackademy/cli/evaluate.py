"""`ackademy evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.bounds import SEED_MAX, finite
from ackademy.cli.studies import Study, study
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ackademy.backends.schemes import Scheme
    from ackademy.policies.cards import FixedSet
    from ackademy.studies.evaluate.report import Evaluated
    from ackademy.studies.evaluate.sources import Source

RIVALS = ("cubic", "new_reno", "bbr3")
CARD_S = 20.0
"""of each run of a card (proposed)"""


@study(runs="Draws, or seeds of a scenario (40 by default); networks of a list (all by default).")
def evaluate_command(
    own: Study,
    schemes: Annotated[
        list[str],
        typer.Argument(
            help="Policies and controllers: the evaluated one first, then the reference and "
            f"others; beside {', '.join(RIVALS)} if it is alone.",
            metavar="SCHEME...",
            autocompletion=completion.controllers,
        ),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="Networks: training, a distribution, a list, or scenarios (repeatable); what the "
            "policy was trained on by default.",
            metavar="WHERE",
        ),
    ] = None,
    param: options.Params = None,
    flows: Annotated[
        str,
        typer.Option(
            help="Flows under a scheme, as in 'learner*'; by default those that the source names, "
            "all of a scenario.",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEED_MAX, help="Seed of the first run; the others count up."),
    ] = None,
    worst: Annotated[
        Path | None,
        typer.Option(
            help="Keep the scenarios of the worst networks in this folder, and list them."
        ),
    ] = None,
    card: Annotated[
        bool,
        typer.Option(
            "--card",
            help="Write a card of the policy: of a list a section of CARD.md, else card.toml of "
            "its fixed set.",
        ),
    ] = False,
    card_s: Annotated[
        float,
        typer.Option(min=1.0, callback=finite, help="Seconds of each run of a new card.toml."),
    ] = CARD_S,
) -> None:
    """Evaluate policies and controllers on networks: those of a training, or others.

    It prints what each scheme gets, on what part of the networks it dominates the reference, and
    how that depends on the networks. Finished runs are kept: an interrupted command continues.

    Examples:
        ackademy evaluate tcp_drinc

        ackademy evaluate tcp_drinc cubic vegas --on mixed --runs 100

        ackademy evaluate rl_tcp cubic --on generalise --runs 200 --worst failures

        ackademy evaluate bbr3 cubic copa --on flagship_validation --runs 32

        ackademy evaluate mine.py:Mine cubic --on fair_share --flows 'learner*'

        ackademy evaluate policies/mine cubic --on mine.links --card
    """
    from ackademy import lookup
    from ackademy.backends import schemes as all_schemes
    from ackademy.cli import running
    from ackademy.policies import cards
    from ackademy.studies.evaluate import report as evaluate_report
    from ackademy.studies.evaluate import sources
    from ackademy.studies.evaluate import study as evaluate

    words = [*schemes, *(RIVALS if len(schemes) == 1 else ())]
    given = running.settings(param, schemes[0])
    first = all_schemes.one(schemes[0], given)
    others = all_schemes.parse(",".join(words[1:]))
    compared = all_schemes.differ([first, *(one for one in others if one.label != first.label)])
    policy = lookup.policy_folder(schemes[0])
    if card and policy is None:
        raise AckademyError(f"evaluate --card: {schemes[0]}: allowed: a policy's folder")
    page = policy / cards.PAGE if card and policy else None
    first_seed = sources.FIRST_SEED if seed is None else seed
    own.begin(_stem(first.label, on or []), page)
    found = sources.source(
        on or [], policy, own.folder, flows=flows, runs=own.runs, seed=first_seed
    )
    chose = sources.that_chose(policy, found) if policy else []
    told = f"{len(chose)} of {len(found.cases)} networks of {found.origin} chose this policy"
    if chose and card and found.is_list:
        raise AckademyError(f"evaluate --card: {told}: allowed: networks that did not")
    if card and policy and not found.is_list:
        _fixed_card(own, policy, found, flows, card_s, is_named=bool(on))
        return
    evaluated = _evaluated(own, found, compared, policy, worst)
    if evaluated.networks:
        command = running.command()
        results = evaluate.tables(evaluated.rows, (*evaluated.groups, *evaluated.axes))
        described = {
            "command": command,
            "compared": {one.label: one.words for one in compared},
            "on": {"file": found.origin, "digest": found.digest},
            "worst": evaluate.worst_in_json(evaluated.listed),
        }
        report = evaluate_report.report(evaluated, command)
        if card and policy:
            text, stem = evaluate_report.card(evaluated, command), Path(found.origin).stem
            cards.put_section(policy, f"judge {stem}", f"On `{stem}`", text)
            own.console.say(f"card: {page}")
        own.deliver(
            report,
            results,
            csv=lambda: evaluate.csv(results, evaluated.networks),
            described=described,
        )
    if chose:
        own.console.say(f"{told}: what it gets there is no judgement")
    if policy and sources.has_changed(policy, found):
        own.console.say(f"{found.origin} has changed since this policy was trained on it")
    running.report_failures(own.ran)


def _evaluated(
    own: Study, source: Source, compared: Sequence[Scheme], policy: Path | None, worst: Path | None
) -> Evaluated:
    from ackademy import folders
    from ackademy.runner import measured
    from ackademy.runner.cases import Plan
    from ackademy.studies.evaluate import study as evaluate
    from ackademy.studies.evaluate.report import Evaluated
    from ackademy.toml_table import TomlTable

    metrics = (*evaluate.METRICS, *(f"counted:{name}" for name in evaluate.COUNTED))
    plan = Plan(1, backend=own.backend)
    rows = measured.rows(source.cases, compared, plan, metrics)
    own.run([cell for row in rows for cell in row.cells], "networks")
    found = measured.measure(rows, own.folder)
    networks = evaluate.networks(source, compared, found)
    described = policy / folders.POLICY_FILE if policy else None
    is_there = described is not None and described.is_file()
    made = TomlTable.read(described).table("made").values if described and is_there else {}
    curve = policy / "curve.csv" if policy else None
    return Evaluated(
        source=source,
        schemes=compared,
        networks=networks,
        rows=found,
        groups=evaluate.by_group(networks, compared),
        axes=evaluate.by_axis(networks, compared),
        listed=evaluate.worst(networks, compared, worst) if worst else (),
        guarded=evaluate.guarded(found, compared[0].label),
        made=made,
        curve=curve if curve and curve.is_file() else None,
    )


def _stem(label: str, on: Sequence[str]) -> str:
    """Of the page's name."""
    where = "-".join(Path(word).stem for word in on) or "training"
    return options.stem(f"evaluate-{label}-{where}")[: options.PAGE_LETTERS]


def _fixed_card(
    own: Study, policy: Path, source: Source, flows: str, seconds: float, *, is_named: bool
) -> None:
    """Run the fixed set of a policy: the old card's, unless the options name another."""
    from ackademy.policies import cards

    old = None if is_named else cards.read(policy)
    seeds = tuple(range(1, 1 + (own.runs or 4)))
    fixed = old.fixed if old else _fixed_set(source, flows, seeds, seconds)
    cards.write(policy, cards.make(policy, fixed, Path()))
    own.console.say(f"card: {policy / cards.CARD}, {policy / cards.PAGE}")


def _fixed_set(source: Source, flows: str, seeds: tuple[int, ...], seconds: float) -> FixedSet:
    from ackademy.policies.cards import FixedSet

    learners = source.cases[0].flows
    if not source.digest and not flows and len(learners) > 1:
        raise AckademyError(f"evaluate --card: allowed: --flows, one of {', '.join(learners)}")
    governed = flows or (learners[0] if not source.digest else "*")
    return FixedSet(source.origin, bool(source.digest), governed, seeds, seconds)
