"""`ackademy record`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy import installation
from ackademy.cli import completion, options
from ackademy.cli.bounds import RUNS_MAX, SEED_MAX
from ackademy.console import Console
from ackademy.errors import AckademyError
from ackademy.interrupts import between_batches

DATA = Path("datasets")


def record_command(
    schemes: Annotated[
        list[str],
        typer.Argument(
            help="Policies and controllers.",
            metavar="SCHEME...",
            autocompletion=completion.controllers,
        ),
    ],
    on: Annotated[
        list[str],
        typer.Option(help="Networks: a distribution, a list, or scenarios.", metavar="WHERE"),
    ],
    observation: Annotated[
        str,
        typer.Option(
            help="What is observed: aurora, drinc, a policy, a recipe, a TOML file, or features "
            "separated by commas.",
        ),
    ] = "drinc",
    every: Annotated[
        str,
        typer.Option(
            help="When decisions are: srtt, min_rtt, or a time as in 20ms.", metavar="TIME"
        ),
    ] = "",
    reward: Annotated[
        str, typer.Option(help="Name of a reward, or file.py:function.", metavar="REWARD")
    ] = "flagship",
    flows: Annotated[
        str,
        typer.Option(
            help="Flows under a scheme, as in 'learner*'; by default those that the source names."
        ),
    ] = "",
    param: options.Params = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, max=RUNS_MAX, help="Draws, seeds of a scenario, networks of a list."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEED_MAX, help="Seed of the first run; the others count up."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the data set, whose name ends in -v0.", show_default=False),
    ] = None,
    jobs: options.Jobs = None,
) -> None:
    """Record what schemes observe, do and get on networks, as a data set that Minari reads.

    An episode is a flow of a run. Its action is what the scheme did to its window from one decision
    to the next. infos have the interval's metrics and what only the simulator knows.

    Examples:
        ackademy record cubic vegas own_queue --on mixed --runs 20

        ackademy record flagship bbr3 --on cellular --observation flagship --every 20ms

        ackademy record cubic --on deep_buffer --observation srtt,throughput --reward aurora
    """
    from ackademy.backends import schemes as all_schemes
    from ackademy.cli import running
    from ackademy.render import terminal
    from ackademy.runner import engines
    from ackademy.studies.evaluate import sources

    try:
        from ackademy.envs import rewards
        from ackademy.studies import record
    except ImportError as error:
        add = installation.add_extra("record")
        raise AckademyError(f"{error}: record needs the extra record: {add}") from None
    console = Console()
    given = all_schemes.parse(",".join(schemes), running.settings(param, schemes[0]))
    function = rewards.find(reward)
    own = record.settings(observation, every)
    where = "-".join(Path(word).stem for word in on)
    target = out or DATA / f"{options.stem(where)}-v0"
    record.check_name(target)
    first = sources.FIRST_SEED if seed is None else seed
    found = sources.source(on, None, options.RUNS / "record", flows=flows, runs=runs, seed=first)
    todo = record.tasks(found.cases, given)
    about = {
        "description": f"{', '.join(one.label for one in given)} on {', '.join(on)}",
        "reward": reward,
        "networks_digest": found.digest,
    }
    threads = jobs or engines.core_count()
    try:
        with between_batches(), terminal.progress_bar(console, "recording") as progress:
            n, steps = record.write(target, todo, own, function, threads, progress, about)
    except KeyboardInterrupt:
        raise running.stopped("interrupted: nothing is kept") from None
    console.say(f"data set: {target} ({n} episodes, {steps} decisions)")
