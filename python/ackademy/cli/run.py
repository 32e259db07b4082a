"""`ackademy run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy.backends import REAL_TIME, schemes
from ackademy.cli import completion, options
from ackademy.cli.bounds import SAMPLE_MS_MAX, SEED_MAX, finite
from ackademy.errors import ControllerError

SAMPLES_PER_RUN = 2000
"""rows of a time series that is drawn and nothing else"""


def run_command(
    scenario: Annotated[
        str,
        typer.Argument(
            help="A scenario, by file or name.",
            metavar="SCENARIO",
            autocompletion=completion.scenarios,
        ),
    ],
    cc: Annotated[
        str | None,
        typer.Option(
            help="Controller of every flow: a name from `list`, NAME:SETTING=VALUE, a policy, "
            "file.py:Class, a backend's own: kernel:NAME, noq:NAME, quinn:NAME, ns3:NAME, or a "
            "guest: linux:NAME, s2n:NAME.",
            autocompletion=completion.controllers,
        ),
    ] = None,
    backend: options.BackendName = "sim",
    param: options.Params = None,
    settings: options.Overrides = None,
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Seed of every random choice.")
    ] = 1,
    sample_ms: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=SAMPLE_MS_MAX,
            callback=finite,
            help="Milliseconds between rows of the time series; 0 for none.",
        ),
    ] = 0.0,
    html: options.Page = None,
    figures: options.Figures = None,
    figure_format: options.FigureFormat = "svg",
    figure_width: options.FigureWidth = "screen",
    parquet: Annotated[Path | None, typer.Option(help="Write tables to this folder.")] = None,
    json: options.Json = None,
    csv: options.Csv = None,
    pcap: options.PcapPath = None,
    pcap_at: options.PcapAt = None,
    pcap_snaplen: options.PcapSnaplen = None,
    pcap_ip: options.PcapIp = None,
    qlog: options.QlogPath = None,
) -> None:
    """Run a scenario once and print its flows and links.

    Examples:
        ackademy run deep_buffer

        ackademy run deep_buffer --cc cubic --seed 3 --html run.html

        ackademy run deep_buffer --cc cubic:beta=0.8 --set dumbbell.rtt_ms=80 --json -

        ackademy run my/path.toml --cc mine.py:Mine --set flow.0.count=3 --parquet out/

        ackademy run deep_buffer --cc cubic --pcap out.pcapng --qlog out.sqlog

        ackademy run gap/random_loss --backend kernel --cc kernel:cubic

        ackademy run random_loss --backend quic --cc noq:cubic

        ackademy run random_loss --backend ns3 --cc ns3:cubic
    """
    from ackademy.backends.captures import Captures
    from ackademy.backends.runs import read_scenario
    from ackademy.cli import running
    from ackademy.console import Console
    from ackademy.files import check_output_folder, write
    from ackademy.render import report as render
    from ackademy.render import terminal
    from ackademy.studies import run as runs

    console = Console(stderr=options.is_stdout(json, csv))
    options.check_exports(json, csv, html, pcap, qlog)
    options.check_figures(figures, figure_format)
    captured = Captures.of(options.pcap(pcap, pcap_at, pcap_snaplen, pcap_ip), qlog)
    check_output_folder(parquet)
    given = running.settings(param, cc)
    scheme = only(schemes.parse(cc, given)) if cc else None
    parsed = read_scenario(scenario, overrides=options.overrides(settings))
    if scheme is not None:
        parsed = parsed.with_controller(str(scheme.controller), dict(scheme.params))
    running.warn_of_idle([parsed])
    captured.check(parsed, backend)
    if (html or figures) and not sample_ms:
        sample_ms = 1e3 * parsed.duration_s / SAMPLES_PER_RUN
    try:
        if backend in REAL_TIME:
            with terminal.waiting(console, parsed.duration_s):
                result = runs.run(parsed, seed=seed, sample_interval_ms=sample_ms, backend=backend)
        else:
            with terminal.simulating(console, parsed.duration_s) as progress:
                result = runs.run(
                    parsed,
                    seed=seed,
                    sample_interval_ms=sample_ms,
                    backend=backend,
                    progress=progress,
                    pcap=captured.pcap,
                    qlog=captured.qlog,
                )
    except KeyboardInterrupt:
        running.fail("interrupted; nothing was written")
        raise typer.Exit(running.INTERRUPTED) from None
    report = runs.report(result, running.command())
    render.show(report, console)
    if parquet:
        result.write_parquet(parquet)
        console.print(f"tables: {parquet}", highlight=False)
    if html:
        write(html, render.page(report))
        console.print(f"report: {html}", highlight=False)
    options.write_figures(report, figures, figure_format, figure_width, console)
    for path in captured.paths:
        console.print(f"packets: {path}", highlight=False)
    if json:
        options.export(json, runs.run_json(result))
    if csv:
        options.export(csv, runs.run_csv(result))


def only(found: list[schemes.Scheme]) -> schemes.Scheme:
    """The one scheme of a run.

    Raises:
        ControllerError: if there are several.
    """
    if len(found) != 1:
        raise ControllerError("run --cc: allowed: one scheme; `compare` takes several")
    return found[0]
