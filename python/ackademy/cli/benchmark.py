"""`ackademy benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ackademy.cli import completion, options
from ackademy.cli.studies import Study, study
from ackademy.errors import AckademyError

if TYPE_CHECKING:
    from ackademy.studies.benchmark.entries import Entry

TABLE = "table"
RESULTS = Path("benchmarks")


@study(without=("runs", "backend"))
def benchmark_command(
    own: Study,
    entry: Annotated[
        str,
        typer.Argument(
            help="Policy, file.py:Class, controller or NAME:SETTING=VALUE; or `table`.",
            metavar="ENTRY",
            autocompletion=completion.controllers,
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(help="After `table`: the folder of the results.", metavar="[DIR]"),
    ] = None,
    param: options.Params = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: two networks of each kind.")
    ] = False,
    development: Annotated[
        bool,
        typer.Option("--development", help="On networks for tuning, the same for every entry."),
    ] = False,
    results: Annotated[
        Path, typer.Option(help="Folder that the result goes to.", metavar="DIR")
    ] = RESULTS,
    sign: Annotated[
        Path | None, typer.Option(help="Sign the result with this SSH key.", metavar="KEY")
    ] = None,
) -> None:
    """Run an entry on networks that follow from it, so that it cannot be tuned to them.

    The result is a file with every number, for `ackademy benchmark table`. Finished runs are kept:
    an interrupted command continues. The same entry gives the same bytes.

    Examples:
        ackademy benchmark cubic --quick

        ackademy benchmark policies/mine --development

        ackademy benchmark mine.py:Mine --sign ~/.ssh/id_ed25519

        ackademy benchmark table benchmarks --csv entries.csv
    """
    from ackademy.backends import schemes
    from ackademy.cli import running
    from ackademy.studies.benchmark import entries

    if entry == TABLE:
        _table(own, folder or results)
        return
    if folder is not None:
        raise AckademyError(f"benchmark {entry} {folder}: allowed: one entry, or `table DIR`")
    scheme = schemes.one(entry, running.settings(param, entry))
    _enter(own, entries.entry(scheme, is_quick=quick, is_development=development), results, sign)


def _enter(own: Study, entry: Entry, results: Path, key: Path | None) -> None:
    """Run an entry, and write its result."""
    from ackademy import _core
    from ackademy.cli import running
    from ackademy.files import check_output, write
    from ackademy.studies.benchmark import entries, report, result_file
    from ackademy.studies.benchmark import study as benchmark

    stem = options.stem("-".join([entry.name, entry.digest[:12], *entry.marks]))
    target = results / f"{stem}.json"
    own.begin(f"benchmark-{stem}")
    check_output(target)
    cases = entries.drawn(entry, own.folder)
    rows = benchmark.rows(entry, cases)
    own.run([cell for row in rows for cell in row.cells], "benchmark")
    networks = benchmark.networks(entry, cases, rows, own.folder)
    if own.ran.failures or not networks:
        running.report_failures(own.ran)
        raise AckademyError(f"benchmark {entry.name}: no result: runs are missing")
    found = benchmark.Result(
        entry.name, entry.digest, entry.marks, tuple(networks), _core.CODE_HASH
    )
    text = result_file.text(entry, found, entries.networks_digest(cases))
    write(target, text)
    signed = [str(result_file.sign(target, key))] if key else []
    own.deliver(
        report.of_entry(found, running.command()),
        csv=lambda: report.csv_lines([found]),
        json=lambda: text,
    )
    own.console.say(f"result: {', '.join([str(target), *signed])}")


def _table(own: Study, folder: Path) -> None:
    """The table of the results in a folder."""
    from ackademy.cli import running
    from ackademy.studies.benchmark import report, result_file

    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise AckademyError(f"benchmark table {folder}: allowed: a folder with results")
    own.begin(f"benchmark-table-{options.stem(folder.name)}")
    found = [result_file.read(path) for path in files]
    own.deliver(report.of_table(found, running.command()), csv=lambda: report.csv_lines(found))
