"""Options that several commands have. Imports nothing that takes time: completion reads it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ackademy.backends import Backend
from ackademy.backends.captures import PCAP_ENDING, QLOG_ENDING, SNAPLEN_MAX, SNAPLEN_MIN, Pcap
from ackademy.cli.bounds import JOBS_MAX, named_as
from ackademy.errors import AckademyError, ScenarioError
from ackademy.files import PAGE_ENDINGS
from ackademy.toml_table import toml_value

if TYPE_CHECKING:
    from ackademy.console import Console
    from ackademy.render.report import Report
    from ackademy.runner import engines

EngineName = Literal["local", "ray"]
FigureWidthName = Literal["screen", "column", "page"]
RUNS, REPORTS = Path("runs"), Path("reports")
PAGE_LETTERS = 80
"""of the name of a report that is made from those of scenarios and schemes"""

Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="Setting of the controllers."),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=JOBS_MAX, help="Simulations at a time; one per core by default."),
]
Engine = Annotated[EngineName, typer.Option(help="This machine, or a Ray cluster.")]
BackendName = Annotated[
    Backend,
    typer.Option(
        help="Simulator, QUIC in virtual time, ns-3's TCP, or on this machine (Linux, root) its "
        "TCP, or QUIC."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Address of a running Ray cluster; by default one is started here."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Another value for a field of the scenarios, as in dumbbell.rtt_ms=80; repeatable.",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the numbers as JSON; - for stdout.",
        callback=named_as(".json"),
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        help="Write the numbers as CSV; - for stdout.",
        callback=named_as(".csv"),
    ),
]
STDOUT = "-"
Page = Annotated[
    Path | None, typer.Option("--html", help="Report file.", callback=named_as(*PAGE_ENDINGS))
]
PcapPath = Annotated[
    Path | None,
    typer.Option(
        "--pcap",
        metavar="FILE",
        help="Write the packets to this pcapng file.",
        callback=named_as(PCAP_ENDING),
    ),
]
PcapAt = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE", help="Where --pcap sees packets: sender (default), receiver, link:NAME."
    ),
]
PcapSnaplen = Annotated[
    int | None,
    typer.Option(
        min=SNAPLEN_MIN,
        max=SNAPLEN_MAX,
        help=f"Bytes of each packet that --pcap keeps; {SNAPLEN_MIN} by default.",
    ),
]
PcapIp = Annotated[
    int | None, typer.Option(min=4, max=6, help="Version of IP in --pcap: 4 (default) or 6.")
]
QlogPath = Annotated[
    Path | None,
    typer.Option(
        "--qlog",
        metavar="FILE",
        help="Write what senders do to this qlog file.",
        callback=named_as(QLOG_ENDING),
    ),
]
MARKDOWN_ENDINGS = (".md", ".markdown")
Markdown = Annotated[
    Path | None,
    typer.Option(
        help="Write the tables to this Markdown file.", callback=named_as(*MARKDOWN_ENDINGS)
    ),
]
Figures = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write every chart of the report to this folder."),
]
FigureFormat = Annotated[
    str,
    typer.Option(metavar="FORMATS", help="Of these files: svg, png, pdf, or several with commas."),
]
FigureWidth = Annotated[
    FigureWidthName, typer.Option(help="Of these files: a screen, or columns of a paper.")
]
RunsFolder = Annotated[
    Path, typer.Option("--work", help="Folder of finished work, found again by the next command.")
]
ReportsFolder = Annotated[Path, typer.Option(help="Folder of the reports.")]


def engine_of(name: EngineName, address: str | None, jobs: int | None) -> engines.Engine:
    """The engine that `--engine`, `--address` and `--jobs` name.

    Raises:
        AckademyError: if there is an address without Ray, or Ray is not installed.
    """
    from ackademy.runner import engines

    if name == "local" and address is not None:
        raise AckademyError("--address: allowed: with --engine ray")
    if name == "ray":
        return engines.ray_cluster(address)
    return engines.local(jobs or engines.core_count())


def overrides(words: Sequence[str] | None) -> dict[str, str]:
    """TOML values by dotted path, from `--set PATH=VALUE`; a bare word is a text.

    `flow.0.cc` is short for `flow.0.controller`.

    Raises:
        ScenarioError: if a word has no path or no value; one line.
    """
    found: dict[str, str] = {}
    for word in words or ():
        path, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not path or not value:
            raise ScenarioError(f"--set {word}: allowed: PATH=VALUE, as in dumbbell.rtt_ms=80")
        entry, dot, field = path.rpartition(".")
        path = (
            f"{entry}.controller" if dot and entry.startswith("flow.") and field == "cc" else path
        )
        found[path] = value if _is_toml(value) else toml_value(value)
    return found


def words_of(options: Mapping[str, object]) -> list[str]:
    """Options as words of a command line; those that are `None` are left out."""
    given = ((name, str(value)) for name, value in options.items() if value is not None)
    return [word for pair in given for word in pair]


def stem(name: str) -> str:
    """A name as a part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)


def stem_of(
    study: str, scenarios: Sequence[str], labels: Sequence[str], settled: Sequence[str]
) -> str:
    """Of the name of a report that is given none: another study has another file.

    Args:
        study: `compare` or `gap`.
        scenarios: words that name them.
        labels: of the schemes.
        settled: what else decides its numbers, but for the number of runs: more runs of one study
            replace its report.
    """
    what = "-".join([study, *scenarios, *labels])
    short = stem(what)[:PAGE_LETTERS]
    whole = "\0".join([*scenarios, "", *labels, "", *settled])
    mark = f"-{hashlib.sha256(whole.encode()).hexdigest()[:8]}" if settled or short != what else ""
    return f"{short}{mark}"


def pcap(path: Path | None, at: str | None, snaplen: int | None, ip: int | None) -> Pcap | None:
    """The file of `--pcap`, with what the options beside it say.

    Raises:
        AckademyError: if there is one of them without it.
    """
    if path is None:
        for name, value in (("at", at), ("snaplen", snaplen), ("ip", ip)):
            if value is not None:
                raise AckademyError(f"--pcap-{name}: allowed: with --pcap")
        return None
    usual = Pcap(path)
    return Pcap(path, at or usual.at, snaplen or usual.snaplen, ip or usual.ip)


def export(path: Path, text: str) -> None:
    """Write text for other programs to a file, or to stdout for `-`."""
    from ackademy.files import write

    if str(path) == STDOUT:
        typer.echo(text, nl=False)
    else:
        write(path, text)


def check_exports(json: Path | None, csv: Path | None, *pages: Path | None) -> None:
    """Find out before the work whether `export` and `write` could write to these.

    Args:
        json: for `export`, which takes `-` for stdout.
        csv: likewise.
        pages: for `write`, which takes files alone.

    Raises:
        FileError: if not.
    """
    from ackademy.files import check_outputs

    check_outputs([*pages, *(path for path in (json, csv) if str(path) != STDOUT)])


def check_figures(folder: Path | None, formats: str) -> None:
    """Find out before the work whether `write_figures` could write.

    Raises:
        AckademyError: if not.
    """
    from ackademy.files import check_output_folder
    from ackademy.render import figures

    check_output_folder(folder)
    figures.formats_of(formats)


def write_figures(
    report: Report, folder: Path | None, formats: str, width: FigureWidthName, console: Console
) -> None:
    """Write the charts of a report, if a folder is given, and tell how many."""
    from ackademy.render import figures

    if folder:
        written = figures.write_all(report, folder, figures.formats_of(formats), width)
        console.say(f"figures: {folder} ({len(written)} files)")


def is_stdout(*paths: Path | None) -> bool:
    """Whether one of these outputs is stdout, where nothing else may then be printed.

    Raises:
        AckademyError: if several are.
    """
    given = [path for path in paths if path is not None and str(path) == STDOUT]
    if len(given) > 1:
        raise AckademyError("--json - and --csv -: allowed: one of them on stdout")
    return bool(given)


def _is_toml(value: str) -> bool:
    try:
        return list(tomllib.loads(f"value = {value}")) == ["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
