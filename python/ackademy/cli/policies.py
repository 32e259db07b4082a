"""`ackademy eval` and `ackademy zoo`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from ackademy import files, folders, lookup
from ackademy.backends import schemes
from ackademy.cli import completion, options, running
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX, finite
from ackademy.console import Console
from ackademy.errors import AckademyError
from ackademy.files import write
from ackademy.policies import cards, zoo
from ackademy.policies.cards import FixedSet
from ackademy.render import exports, terminal
from ackademy.render.html import evaluation as report
from ackademy.render.sheets import evaluation as sheets
from ackademy.runner import engines
from ackademy.studies import evaluate, scored
from ackademy.studies.evaluate import FIRST_SEED, Source
from ackademy.studies.scored import Summary
from ackademy.toml_table import TomlTable

CARD_S = 20.0
"""of each run of a card (proposed)"""


def eval_command(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy, by folder or name, or a controller with --scenario or --distribution.",
            autocompletion=completion.policies,
        ),
    ],
    scenario: Annotated[Path | None, typer.Option(help="Evaluate on this scenario.")] = None,
    flows: Annotated[
        str, typer.Option(help="Flows of --scenario that the policy controls, as in 'learner*'.")
    ] = "*",
    distribution: Annotated[
        Path | None,
        typer.Option(
            help="Evaluate on draws from this; by default the distribution of its training."
        ),
    ] = None,
    against: options.Against = options.AGAINST,
    param: options.PolicyParams = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, max=RUNS_MAX, help="Draws or seeds; 40 by default, 4 for a card."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Seed of the first run; the others count up.")
    ] = FIRST_SEED,
    card: Annotated[
        bool,
        typer.Option("--card", help="Run the fixed set and write card.toml and CARD.md instead."),
    ] = False,
    card_s: Annotated[
        float,
        typer.Option(min=1.0, callback=finite, help="Seconds of each run of a new card."),
    ] = CARD_S,
    html: options.Page = None,
    jobs: options.Processes = None,
    out: options.RunsFolder = options.RUNS,
) -> None:
    """Evaluate a frozen policy beside other controllers, on its training scenarios or others.

    Examples:
        ackademy eval policies/tcp_drinc

        ackademy eval policies/tcp_drinc --distribution distributions/mixed.toml --runs 100

        ackademy eval policies/tcp_drinc --scenario scenarios/fair_share.toml --against cubic,vegas

        ackademy eval policies/tcp_drinc --card
    """
    console = Console()
    if scenario and distribution:
        raise AckademyError("eval: allowed: --scenario or --distribution, and not both")
    if flows != "*" and not (scenario or card):
        raise AckademyError("eval: --flows: allowed: with --scenario or --card")
    known = lookup.policy_folder(policy)
    folder = known or Path(policy)
    if card:
        if known is None:
            raise AckademyError(f"eval --card: {policy}: allowed: a policy's folder")
        files.check_outputs([folder / cards.CARD, folder / cards.PAGE])
        fixed = _fixed_set(
            folder, scenario, flows, distribution, (tuple(range(1, 1 + (runs or 4))), card_s)
        )
        cards.write(folder, cards.make(folder, fixed, Path()))
        console.print(f"card: {folder / cards.CARD}, {folder / cards.PAGE}", highlight=False)
        return
    runs = runs or 40
    own = schemes.evaluated(policy, running.settings(param, policy))
    if scenario:
        source = evaluate.of_scenario(scenario, seed, runs, flows)
    elif distribution:
        source = evaluate.of_distribution(distribution, seed, runs)
    elif known is None:
        raise AckademyError(
            f"eval {policy}: a controller was trained on nothing; allowed: with --scenario or "
            "--distribution"
        )
    else:
        source = evaluate.trained_on(folder, seed, runs)
    others = tuple(schemes.evaluated(word.strip()) for word in against.split(",") if word.strip())
    compared = (own, *others)
    schemes.names_differ(compared)
    named = f"eval-{own.name}-{Path(source.origin).stem}.html".replace(" ", "-").replace("/", "-")
    page = html or options.REPORTS / named
    files.check_outputs([page, page.with_suffix(".csv"), page.with_suffix(".json")])
    files.check_output_folder(out)
    cells = out / "eval"
    engine = engines.local(jobs or engines.core_count())
    ran = running.run(evaluate.cells(source, compared, cells), cells, engine, console, "runs")
    scores = scored.scored(source.cases, compared, cells)
    found = evaluate.results(source, compared, scores)
    _print(source, found, console)
    if evaluate.has_changed(folder, source):
        console.print(f"{source.origin} has changed since this policy was trained on it")
    described = folder / folders.POLICY_FILE
    made = TomlTable.read(described).table("made").values if described.is_file() else {}
    curve = folder / "curve.csv"
    text = report.page(source, found, made, curve if curve.is_file() else None, running.command())
    write(page, text)
    results = scored.tables("eval", scores, found)
    write(page.with_suffix(".csv"), results.wide().write_csv(float_precision=6))
    tried = {
        "command": running.command(),
        "compared": {own.name: own.words for own in compared},
        "tried_on": {"file": source.origin, "digest": source.digest},
    }
    write(page.with_suffix(".json"), exports.results_json(results, tried))
    numbers = f"numbers: {page.with_suffix('.csv')}, {page.with_suffix('.json')}"
    console.say(numbers)
    console.say(f"report:  {page}")
    running.report_failures(ran)


def zoo_command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of policies; by default policies/ here and above, and the shipped ones."
        ),
    ] = None,
) -> None:
    """List the policies, with what their cards say, and run each for two seconds.

    The exit status is 1 if one cannot be run.

    Examples:
        ackademy zoo
    """
    console = Console()
    if folder is not None and not folder.is_dir():
        raise AckademyError(f"{folder}: allowed: a folder with policies in it")
    roots = [folder] if folder is not None else folders.here_or_above("policies")
    found = [model for root in roots for model in zoo.models(root)]
    title = f"policies in {', '.join(map(str, roots))}"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("name", no_wrap=True)
    table.add_column("runs")
    table.add_column("what it is", overflow="fold")
    for model in found:
        runs = Text("no", "red") if model.fault else Text("yes", "green")
        table.add_row(model.name, runs, _described(model))
        table.add_section()
    console.print(table)
    for model in found:
        if model.fault:
            running.fail(f"{model.name}: {model.fault}")
    if any(model.fault for model in found):
        raise typer.Exit(1)


def _described(model: zoo.Model) -> str:
    """A policy in a few lines that fit beside its name in 80 columns, or wrap there."""
    size = f"{model.parameters:,} numbers, {model.size_bytes / 1024:.0f} KiB"
    parts = {
        model.controller: model.about,
        "observes": model.observes,
        "acts": model.acts,
        "size": size,
        "trained by": model.trained,
        "card": _headline(model).replace("\n", "; "),
    }
    return "\n".join(f"{label}: {text}" for label, text in parts.items() if text)


def _headline(model: zoo.Model) -> str:
    if model.card is None:
        return "no card.toml"
    return "\n".join(
        f"{name}: {100 * own['share']:.0f} %, RTT × {own['rtt_ratio']:.2f}"
        for name, own in model.card.headline.items()
    )


def _fixed_set(
    folder: Path,
    scenario: Path | None,
    flows: str,
    distribution: Path | None,
    how: tuple[tuple[int, ...], float],
) -> FixedSet:
    """The fixed set of a new card: the old card's, unless the options name another."""
    old = cards.read(folder)
    if distribution:
        return FixedSet(str(distribution), True, flows, *how)
    if scenario:
        return FixedSet(str(scenario), False, flows, *how)
    if old is not None:
        return old.fixed
    source = evaluate.trained_on(folder, 1, 1)
    learners = source.cases[0].learners
    if not source.digest and flows == "*" and len(learners) > 1:
        raise AckademyError(f"eval --card: allowed: --flows, one of {', '.join(learners)}")
    governed = learners[0] if flows == "*" and not source.digest else flows
    return FixedSet(source.origin, bool(source.digest), governed, *how)


def _print(source: Source, found: Sequence[Summary], console: Console) -> None:
    """A table for all runs, and one per scenario of a distribution."""
    shown = []
    for group in dict.fromkeys(own.group for own in found):
        rows = [own for own in found if own.group == group]
        title = f"{group or source.origin}, {rows[0].n_runs} runs"
        shown.append(sheets.evaluated(title, rows, {}))
    terminal.show(shown, console)
