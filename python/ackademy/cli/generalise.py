"""`ackademy generalise`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from ackademy import lookup
from ackademy.backends import distributions, schemes
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.cli import completion, running
from ackademy.cli.bounds import JOBS_MAX, RUNS_MAX, SEED_MAX
from ackademy.console import Console
from ackademy.errors import AckademyError
from ackademy.files import check_output_folder, check_outputs, write
from ackademy.render.html import generalise as report
from ackademy.runner import cases, engines
from ackademy.stats.scores import NUMBERS
from ackademy.studies import generalise
from ackademy.studies.generalise import Bin, Study, Worst, in_words

SHORT = {
    "share": "share\n%",
    "delay_ms": "delay\nms",
    "rtt_ratio": "RTT\nratio",
    "loss_ratio": "loss\n%",
    "utility": "utility",
}
"""heads of columns in the terminal"""
RUNS, REPORTS = Path("runs"), Path("reports")


def generalise_command(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy, by folder or name, or a controller.",
            metavar="POLICY",
            autocompletion=completion.policies,
        ),
    ] = "",
    cc: Annotated[str, typer.Option(help="The controller, instead of POLICY.")] = "",
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help="Setting of the policy."),
    ] = None,
    against: Annotated[
        str, typer.Option(help="Controllers or policies beside it, separated by commas.")
    ] = "cubic,cubic_rfc9438,new_reno",
    distribution: Annotated[
        Path,
        typer.Option(help="What dumbbells of one bottleneck are drawn from."),
    ] = Path("generalise"),
    links: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="How many are drawn.")] = 200,
    seed: Annotated[
        int, typer.Option(min=0, max=SEED_MAX, help="Of the first link; the others follow.")
    ] = 1,
    html: Annotated[Path | None, typer.Option(help="Where the report goes.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the tables to this file, for a document.")
    ] = None,
    worst: Annotated[
        Path | None, typer.Option(help="Folder for the scenarios of the worst links.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=JOBS_MAX, help="Processes; one per core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where cells are kept.")] = RUNS,
) -> None:
    """Run a frozen policy on links it was not trained for, and list where it fails.

    Finished runs are kept: an interrupted command goes on where it was.

    Examples:
        ackademy generalise policies/tcp_drinc

        ackademy generalise --cc policy --param policy=policies/tcp_drinc --links 400 --seed 9

        ackademy generalise rl-tcp --against cubic,new_reno,policies/tcp_drinc
    """
    console = Console()
    if bool(policy) == bool(cc):
        raise AckademyError("generalise: allowed: a policy's folder or --cc NAME, and not both")
    own = schemes.evaluated(policy or cc, running.settings(param, policy or cc))
    study = _study(own, against, distribution, (seed, links))
    folder = out / "generalise"
    stem = f"generalise-{study.policy.name.replace(' ', '-').replace('/', '-')}"
    page = html or REPORTS / f"{stem}.html"
    folder_of_worst = worst or page.parent / f"{page.stem}-worst"
    check_outputs([page, page.with_suffix(".csv"), page.with_suffix(".json"), markdown])
    check_output_folder(folder_of_worst)
    check_output_folder(out)
    engine = engines.local(jobs or engines.core_count())
    ran = running.run(study.cells(folder), folder, engine, console, "links")
    found = generalise.rows(study, folder)
    gathered = generalise.bins(study, found)
    listed = generalise.worst(study, found, folder_of_worst)
    command = running.command()
    console.print(_tables(study, gathered, listed))
    console.print(f"worst links: {folder_of_worst}", highlight=False, soft_wrap=True)
    write(page, report.page(study, found, gathered, listed, command))
    write(page.with_suffix(".csv"), generalise.csv(found))
    write(page.with_suffix(".json"), generalise.as_json(study, gathered, listed, command))
    console.print(
        f"numbers: {page.with_suffix('.csv')}, {page.with_suffix('.json')}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"report:  {page}", highlight=False, soft_wrap=True)
    if markdown:
        write(markdown, tables_markdown(study, gathered, listed, command))
        console.print(f"tables:  {markdown}", highlight=False, soft_wrap=True)
    running.report_failures(ran)


def _study(policy: EvaluatedScheme, against: str, file: Path, drawn: tuple[int, int]) -> Study:
    others = tuple(schemes.evaluated(own.strip()) for own in against.split(",") if own.strip())
    schemes.names_differ((policy, *others))
    distribution = distributions.read(file)
    seed, links = drawn
    found = tuple(cases.drawn(distribution, seed, links))
    for case in found:
        generalise.link_of(case)  # refused now, not when all of them have run
    return Study(
        policy=policy,
        against=others,
        origin=str(lookup.find(file, "distribution")),
        digest=distribution.digest,
        about=" ".join(distribution.about.split()),
        seed=seed,
        cases=found,
    )


def _tables(study: Study, gathered: Sequence[Bin], listed: Sequence[Worst]) -> Group:
    parts: list[Table | str] = []
    title = f"{study.policy.name} on {len(study.cases)} links"
    for axis, label in (("all", title), *((own.key, own.label) for own in generalise.AXES)):
        # Without frames it fits into 80 columns, and no number is cut.
        table = Table(title=label, title_justify="left", title_style="bold", box=SIMPLE_HEAD,
                      show_edge=False, pad_edge=False, padding=(0, 0))  # fmt: skip
        for head in ("links", "controller"):
            table.add_column(head, no_wrap=True)
        for head in (*SHORT.values(), "gain of\npolicy", "wins\n%"):
            table.add_column(head, justify="right", no_wrap=True)
        previous = ""
        for own in (own for own in gathered if own.axis == axis):
            is_first = own.range != previous
            if is_first:
                table.add_section()
            table.add_row(*_words(study, own, f"{own.range} ({own.n_links})" if is_first else ""))
            previous = own.range
        parts += [table, ""]
    failures = Table(title="worst links", title_justify="left", title_style="bold")
    failures.add_column("how")
    failures.add_column("link")
    for head in ("share\n%", "RTT\nratio", "loss\n%"):
        failures.add_column(head, justify="right", no_wrap=True)
    previous = ""
    for worst in listed:
        link = f"{worst.file.stem}: {in_words(worst.row.link)}"
        failures.add_row(
            worst.kind if worst.kind != previous else "", link, *_failing(study, worst)
        )
        previous = worst.kind
    return Group(*parts, failures)


def _failing(study: Study, worst: Worst) -> list[str]:
    score = worst.row.scores[study.policy.name]
    return [report.shown(key, getattr(score, key)) for key in ("share", "rtt_ratio", "loss_ratio")]


def _words(study: Study, own: Bin, first: str) -> list[str]:
    numbers = [report.shown(key, getattr(own, key).value) for key in SHORT]
    is_policy = own.scheme == study.policy.name
    compared = (
        ["–", "–"]
        if is_policy
        else [report.shown("utility", own.gain.value), f"{100 * own.won:.0f}"]
    )
    return [first, own.scheme, *numbers, *compared]


def tables_markdown(
    study: Study, gathered: Sequence[Bin], listed: Sequence[Worst], command: str
) -> str:
    """The tables for a document."""
    heads = ["links", "n", "controller"]
    for key in NUMBERS:
        label, unit = report.heading(key)
        heads.append(f"{label}, {unit}" if unit else label)
    heads += ["gain of the policy", "it wins, %"]
    lines = [
        f"Made by `{command}`.",
        "",
        _line(heads),
        _line(["---"] * 3 + ["---:"] * (len(heads) - 3)),
    ]
    labels = {"all": "", **{axis.key: f"{axis.label}: " for axis in generalise.AXES}}
    for own in gathered:
        words = _words(study, own, f"{labels[own.axis]}{own.range}")
        lines.append(_line([words[0], str(own.n_links), *words[1:]]))
    lines += [
        "",
        "Worst links:",
        "",
        _line(["how", "link", "share, %", "RTT / empty RTT", "loss, %", "again"]),
    ]
    lines.append(_line(["---"] * 2 + ["---:"] * 3 + ["---"]))
    for worst in listed:
        numbers = _failing(study, worst)
        lines.append(_line([worst.kind, in_words(worst.row.link), *numbers, f"`{worst.command}`"]))
    return "\n".join([*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
