"""`ackademy sweep`."""

from __future__ import annotations

from typing import Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.studies import Study, study


@study(runs="Runs of each scheme at each value, with seeds 1, 2, ...; 5 by default.")
def sweep_command(
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
        str, typer.Option(help="Schemes, as of `compare`; a range as cubic:beta=0.5..0.9.")
    ] = "",
    settings: options.Overrides = None,
) -> None:
    """Run schemes at several values of one setting, or of one field of the scenarios.

    A range is LOW..HIGH, of five values, LOW..HIGH/N, or a list A|B|C.

    Examples:
        ackademy sweep deep_buffer --cc 'cubic:beta=0.5..0.9'

        ackademy sweep deep_buffer --cc cubic,bbr3 --set dumbbell.rtt_ms=20..200/10
    """
    from dataclasses import replace

    from ackademy import lookup
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.runner import measured
    from ackademy.runner.cases import Plan, named_apart, of_file
    from ackademy.studies import compare, sweep

    name, values = sweep.spread([cc, *(settings or ())])
    named = lookup.scenarios_of(scenarios)
    words = [word for word, _ in named]
    own.begin(options.stem_of("sweep", words, [cc], [*(settings or ()), own.backend]))
    cases = named_apart([of_file(path) for _, path in named], words)
    lines: dict[str, list[tuple[float, measured.Row]]] = {}
    for value, (word, *texts) in values:
        at = f"{name}={value:g}"
        plan = Plan(own.runs or 5, 0.0, tuple(options.overrides(texts).items()), own.backend)
        is_field = texts != list(settings or ())
        for case in cases:
            called = replace(case, name=f"{case.name}, {at}") if is_field else case
            for row in measured.rows([called], schemes.parse(word), plan, compare.METRICS):
                line = f"{row.name.scheme.replace(at, name)}, {case.name}"
                lines.setdefault(line, []).append((value, row))
    rows = {row.name: row for line in lines.values() for _, row in line}
    own.run([cell for row in rows.values() for cell in row.cells], "sweeping")
    done = dict(zip(rows, measured.measure(rows.values(), own.folder), strict=True))
    found = {key: [(at, done[row.name]) for at, row in line] for key, line in lines.items()}
    report = sweep.report(name, found, list(done.values()), running.command())
    own.deliver(report, measured.tables(sweep.STUDY, list(done.values())))
