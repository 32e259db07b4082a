"""`ackademy train ablations`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ackademy.cli import judged_training
from ackademy.cli.bounds import named_as
from ackademy.cli.options import REPORTS, Markdown
from ackademy.cli.running import command, file_here, lacks_training
from ackademy.console import Console
from ackademy.errors import TrainingError
from ackademy.files import check_output_folder, check_outputs, write
from ackademy.runner.engines import core_count

if TYPE_CHECKING:
    from ackademy.learn.ablations import Line, Variant

RECIPE = "recipes/flagship_ablations.toml"


def ablations_command(
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Name of a variant; all by default.", metavar="NAME", show_default=False),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(help="Another file of variants.", metavar="FILE", show_default=False),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="Trainings of a variant; seeds follow on --seed.")
    ] = 1,
    seed: judged_training.Seed = None,
    decisions: judged_training.Decisions = None,
    networks: judged_training.NetworkList = None,
    links: judged_training.Links = None,
    quick: judged_training.Quick = False,
    csv: Annotated[
        Path,
        typer.Option(help="Write every judgement to this CSV file.", callback=named_as(".csv")),
    ] = REPORTS / "ablations.csv",
    markdown: Markdown = None,
    jobs: judged_training.Jobs = None,
    work: judged_training.Work = Path("runs"),
) -> None:
    """Train and judge variants of the flagship's recipe that each differ in one part of it.

    Each is trained and judged as `ackademy train flagship --stop-after 0` does; the law without a
    network is judged beside them. What is finished is kept, by that command too: an interrupted
    command continues where it stopped, and several with other --variant options share the work.

    Examples:
        ackademy train ablations --decisions 3000000

        ackademy train ablations --quick --links 11

        ackademy train ablations --variant flagship --variant no_drain --decisions 3000000 --jobs 1
    """
    check_outputs([csv, markdown])
    check_output_folder(work)
    try:
        from ackademy.learn import ablations, deep, recipe_source, selection
        from ackademy.learn import seeds as learn_seeds
    except ImportError as error:
        raise lacks_training(error) from None
    read = ablations.read(recipe or file_here(RECIPE, "a file with --recipe"), quick=quick)
    chosen = [ablations.with_changes(own, seed, decisions) for own in _named(read, variant or [])]
    judged = judged_training.judged_networks(networks, links)
    place, threads = work / "train" / "flagship", jobs or core_count()
    make, plan = deep.Here(threads), learn_seeds.Plan(seeds, stop_after=0)
    for own in chosen:
        learn_seeds.entering_of(own.recipe, make)  # none is trained before all are checked
    console, start, found = Console(), time.monotonic(), {}
    try:
        with judged_training.shown_stages(console) as stage:
            for own in chosen:
                source = recipe_source.read(own.recipe)
                patterns = deep.patterns(source, own.recipe)
                judge = selection.Judge(own.recipe, patterns, judged, threads, place / "judged")

                def of_variant(name: str, variant: str = own.name) -> selection.Told:
                    return stage(f"{variant}, {name}")

                found[own.name] = learn_seeds.train(
                    own.recipe, plan, make, judge, place, of_variant
                )
    except KeyboardInterrupt:
        raise judged_training.interrupted(place) from None
    lines = ablations.lines(found)
    console.print(_table(lines))
    write(csv, ablations.frame(found).write_csv(float_precision=4))
    took = f"{time.monotonic() - start:.0f} s"
    console.say(f"{took}; every policy: {csv}")
    if markdown:
        write(markdown, _markdown(lines, seeds, command()))
        console.say(f"table: {markdown}")


def _named(listed: Sequence[Variant], names: Sequence[str]) -> list[Variant]:
    known = {own.name: own for own in listed}
    for name in names:
        if name not in known:
            raise TrainingError(f"--variant {name}: allowed: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(listed)


def _table(lines: Sequence[Line]) -> Table:
    table = judged_training.judgement_table("variant", "mean", *lines[0].of_classes)
    for line in lines:
        values = judged_training.short(line.of_classes.values())
        table.add_row(line.name, f"{line.mean:.3f}", *values)
    return table


def _markdown(lines: Sequence[Line], seeds: int, made: str) -> str:
    from ackademy.render.markdown import table

    rows = [
        [line.name, f"{line.mean:.3f}", f"{line.least:.3f} to {line.most:.3f}",
         *(f"{value:.2f}" for value in line.of_classes.values())]
        for line in lines
    ]  # fmt: skip
    heads = ["variant", "mean", "of the seeds", *lines[0].of_classes]
    shown = table(heads, rows, left=1)
    return f"`{made}` printed this table; seeds of each variant: {seeds}.\n\n{shown}\n"
