"""`ackademy gap`."""

from __future__ import annotations

from typing import Annotated

import typer

from ackademy.backends import controllers
from ackademy.cli import completion
from ackademy.cli.bounds import RUNS_MAX, finite
from ackademy.cli.options import RUNS, Jobs, Markdown, Page, Params, RunsFolder, page_of

CC = "new_reno,cubic,cubic_rfc9438,rl_tcp"


def gap_command(
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
    param: Params = None,
    baselines: Annotated[
        str,
        typer.Option(
            help="The kernel's own controllers to compare with, as kernel:NAME, by commas."
        ),
    ] = "",
    runs: Annotated[
        int, typer.Option(min=1, max=RUNS_MAX, help="Runs of each controller, on each side.")
    ] = 5,
    duration_s: Annotated[
        float | None,
        typer.Option(
            min=0.1, callback=finite, help="Duration of a run, instead of the scenarios' own."
        ),
    ] = None,
    html: Page = None,
    markdown: Markdown = None,
    jobs: Jobs = None,
    out: RunsFolder = RUNS,
) -> None:
    """Run scenarios in the simulator and on this machine's TCP, and print the differences.

    Runs on the kernel take real time, one after the other; finished ones are kept.

    Examples:
        ackademy gap scenarios/gap/*.toml --cc new_reno,cubic,rl-tcp

        ackademy gap scenarios/gap/*.toml --cc cubic --baselines kernel:cubic --runs 10

        ackademy gap gap/deep_buffer --cc cubic,cubic:beta=0.8,c=0.3 --baselines kernel:cubic

        ackademy gap scenarios/gap/*.toml --cc tcp-drinc --param policy=policies/tcp_drinc
    """
    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, check_outputs, write
    from ackademy.render.html import gap as report
    from ackademy.render.markdown import gap as gap_markdown
    from ackademy.render.terminal import gap as terminal_gap
    from ackademy.runner import engines, experiments
    from ackademy.studies import gap

    console = Console()
    check_output_folder(out)
    words = ",".join(cc) if cc else CC
    ours = schemes.parse(words, running.settings(param, words))
    scenarios_named = lookup.scenarios_of(scenarios)
    files = [path for _, path in scenarios_named]
    named = [controllers.canonical(word.strip()) for word in baselines.split(",") if word.strip()]
    labels = [own.label for own in ours] + named
    settled = [*(param or ()), *([f"duration_s={duration_s}"] if duration_s is not None else [])]
    html = html or page_of("gap", [word for word, _ in scenarios_named], labels, settled)
    check_outputs([html, markdown])
    found = gap.pairs(files, ours, named, runs, duration_s)
    folder = out / "gap"
    simulated = [cell for pair in found for cell in pair.sim]
    emulated = [cell for pair in found for cell in pair.kernel]
    engine = engines.local(jobs or engines.core_count())
    before = experiments.missing(folder, emulated)
    ran = running.run(simulated, folder, engine, console, "gap, simulating")
    if before:
        console.print(terminal_gap.forecast(before), highlight=False)
    ran = ran.with_more(running.run(emulated, folder, engine, console, "gap, on the kernel"))
    gaps = gap.measure(found, folder)
    console.print(terminal_gap.tables(gaps, console))
    write(html, report.page(gaps, folder, running.command()))
    console.print(f"report: {html}", highlight=False)
    if markdown:
        write(markdown, gap_markdown.tables(gaps, running.command()))
        console.print(f"tables: {markdown}", highlight=False)
    running.report_failures(ran)
