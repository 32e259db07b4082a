"""`ackademy gap`."""

from __future__ import annotations

from typing import Annotated

import typer

from ackademy.backends import REAL_TIME, controllers, several
from ackademy.cli import completion, options
from ackademy.cli.bounds import finite
from ackademy.cli.studies import Study, study

CC = "new_reno,cubic,cubic_rfc9438,rl_tcp"
COLUMNS = "sim,kernel"
SET_UP_S = 1.0
"""of namespaces, per run in real time"""


@study(runs="Runs of each controller, on each backend; 5 by default.", without=("backend",))
def gap_command(
    own: Study,
    scenarios: Annotated[
        list[str],
        typer.Argument(
            help="Scenarios, by file or name.",
            metavar="SCENARIO...",
            autocompletion=completion.scenarios,
        ),
    ],
    cc: Annotated[
        list[str] | None,
        typer.Option(
            help="Controllers, separated by commas; NAME:SETTING=VALUE gives settings; repeatable.",
            autocompletion=completion.controllers,
            show_default=CC,
        ),
    ] = None,
    param: options.Params = None,
    baselines: Annotated[
        str,
        typer.Option(
            help="Controllers of a backend's own to compare with, as kernel:NAME, noq:NAME or "
            "quinn:NAME, by commas."
        ),
    ] = "",
    backends: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Columns of the table, by commas; the others are measured by the first.",
        ),
    ] = COLUMNS,
    duration_s: Annotated[
        float | None,
        typer.Option(
            min=0.1, callback=finite, help="Duration of a run, instead of the scenarios' own."
        ),
    ] = None,
) -> None:
    """Run scenarios on several backends, and print how far apart they are.

    Each backend is a column: the simulator and this machine's TCP by default. Runs of `kernel` and
    `quic-lab` take real time, one after the other; finished ones are kept. A scenario or a
    controller that one of them cannot run is refused before the first run.

    Examples:
        ackademy gap 'gap/*' --cc new_reno,cubic,rl-tcp

        ackademy gap 'gap/*' --cc cubic --baselines kernel:cubic --runs 10

        ackademy gap gap/deep_buffer --cc cubic --backends sim,kernel,quic --baselines noq:cubic

        ackademy gap gap/deep_buffer --cc cubic,cubic:beta=0.8,c=0.3 --baselines kernel:cubic

        ackademy gap 'gap/*' --cc tcp-drinc --param policy=tcp_drinc
    """
    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.runner import experiments
    from ackademy.studies.gap import report as gap_report
    from ackademy.studies.gap import study as gap

    words = ",".join(cc) if cc else CC
    ours = schemes.parse(words, running.settings(param, words))
    scenarios_named = lookup.scenarios_of(scenarios)
    named = [controllers.canonical(word.strip()) for word in baselines.split(",") if word.strip()]
    labels = [one.label for one in ours] + named
    columns = several(backends, "--backends")
    settled = [*(param or ()), *([f"duration_s={duration_s}"] if duration_s is not None else [])]
    settled += [] if backends == COLUMNS else [backends]
    own.begin(options.stem_of("gap", [word for word, _ in scenarios_named], labels, settled))
    plan = gap.Plan(columns, own.runs or 5, duration_s)
    found = gap.entries_of([path for _, path in scenarios_named], ours, named, plan)
    cells = [cell for entry in found for column in entry.cells.values() for cell in column]
    virtual = [cell for cell in cells if cell.backend not in REAL_TIME]
    real = [cell for cell in cells if cell.backend in REAL_TIME]
    before = experiments.missing(own.folder, cells)
    if virtual:
        own.run(virtual, "gap, simulating")
    if real:
        left = [cell for cell in before if cell.backend in REAL_TIME]
        seconds = sum(cell.scenario().duration_s + SET_UP_S for cell in left)
        shown = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
        own.console.say(f"{len(left)} runs in real time take about {shown}")
        own.run(real, "gap, in real time")
    gaps = gap.measure(found, own.folder, columns[0])
    own.deliver(gap_report.report(gaps, own.folder, running.command()), gap.tables(gaps))
