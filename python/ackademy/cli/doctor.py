"""`ackademy doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer
from rich.table import Table
from rich.text import Text

from ackademy.backends import doctor
from ackademy.cli import options
from ackademy.console import Console

STYLES: dict[doctor.Status, str] = {"ok": "green", "absent": "yellow", "broken": "red"}


def doctor_command(json_file: options.Json = None, work: options.RunsFolder = options.RUNS) -> None:
    """Show what is installed and what this machine can do, with the command that adds the rest.

    `absent` is optional. The exit status is 1 if something is `broken`.

    Examples:
        ackademy doctor

        ackademy doctor --json -
    """
    options.check_exports(json_file, None)
    found = doctor.checks(work)
    if not options.is_stdout(json_file):
        Console().print(_table(found))
    if json_file is not None:
        options.export(json_file, json.dumps([asdict(check) for check in found], indent=2) + "\n")
    if any(check.status == "broken" for check in found):
        raise typer.Exit(1)


def _table(found: list[doctor.Check]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("what", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("found; needed for; what to do", overflow="fold")
    group = ""
    for check in found:
        if check.group != group:
            group = check.group
            table.add_row(Text(group, "bold"))
        told = Text(check.found)
        if check.status != "ok":
            about = f"; for {check.needed_for}" if check.needed_for else ""
            told = Text(f"{check.found}{about}: {check.fix}")
        table.add_row(f"  {check.name}", Text(check.status, STYLES[check.status]), told)
    return table
