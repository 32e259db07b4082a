"""`ackademy gap`."""

from __future__ import annotations

from typing import Annotated

import typer

from ackademy.backends import controllers
from ackademy.cli import completion, options
from ackademy.cli.bounds import finite
from ackademy.cli.studies import Study, study

CC = "new_reno,cubic,cubic_rfc9438,rl_tcp"
SET_UP_S = 1.0
"""of namespaces, per run on the kernel"""


@study(runs="Runs of each controller, on each side; 5 by default.", without=("backend",))
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
            help="The kernel's own controllers to compare with, as kernel:NAME, by commas."
        ),
    ] = "",
    duration_s: Annotated[
        float | None,
        typer.Option(
            min=0.1, callback=finite, help="Duration of a run, instead of the scenarios' own."
        ),
    ] = None,
) -> None:
    """Run scenarios in the simulator and on this machine's TCP, and print the differences.

    Runs on the kernel take real time, one after the other; finished ones are kept.

    Examples:
        ackademy gap 'gap/*' --cc new_reno,cubic,rl-tcp

        ackademy gap 'gap/*' --cc cubic --baselines kernel:cubic --runs 10

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
    settled = [*(param or ()), *([f"duration_s={duration_s}"] if duration_s is not None else [])]
    own.begin(options.stem_of("gap", [word for word, _ in scenarios_named], labels, settled))
    files = [path for _, path in scenarios_named]
    found = gap.pairs(files, ours, named, own.runs or 5, duration_s)
    emulated = [cell for pair in found for cell in pair.kernel]
    before = experiments.missing(own.folder, emulated)
    own.run([cell for pair in found for cell in pair.sim], "gap, simulating")
    if before:
        seconds = sum(cell.scenario().duration_s + SET_UP_S for cell in before)
        shown = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
        own.console.say(f"{len(before)} runs on the kernel take about {shown}")
    own.run(emulated, "gap, on the kernel")
    gaps = gap.measure(found, own.folder)
    own.deliver(gap_report.report(gaps, own.folder, running.command()), gap.tables(gaps))
