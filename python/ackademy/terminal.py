"""What the command line prints: tables and progress, plain lines where there is no terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import polars as pl
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ackademy import experiments
from ackademy.compare import COLUMNS, Standing
from ackademy.measures import METRICS
from ackademy.report.numbers import percent, significant, with_interval
from ackademy.report.paper import VERDICTS, describe
from ackademy.reproduce import Measured, Reproduction, difference_ratio
from ackademy.run import Run

STYLES = {"holds": "green", "fails": "red", "undecided": "yellow", "absent": "dim"}


@contextmanager
def progress_bar(console: Console, label: str) -> Iterator[experiments.Progress]:
    """A bar in a terminal; elsewhere a line for about every tenth of the cells."""
    if not console.is_terminal:
        yield _lines(console, label)
        return
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(n_done: int, n_cells: int) -> None:
            bar.update(task, completed=n_done, total=n_cells)

        yield update


def reproduction(result: Reproduction, console: Console) -> Group:
    """Published, ours with its interval, difference; then claims and assumptions."""
    parts: list[Table | Text] = [*_published_tables(result, console)]
    for measured in result.rows:
        if measured.row.missing:
            name, why = " ".join(measured.row.name), measured.row.missing
            parts.append(Text(f"{name}: not in this table yet: {why}", style="dim"))
        elif measured.row.deterministic:
            why = measured.row.deterministic
            parts.append(Text(f"{' '.join(measured.row.name)}: one run: {why}", style="dim"))
    if result.claims:
        parts.append(_claims(result))
    parts.append(_assumptions(result))
    return Group(*parts)


def run_tables(result: Run) -> Group:
    """One run: its flows and its links."""
    measured = result.metrics()
    flows = _table(
        f"{result.scenario.name}, seed {result.seed}, {result.scenario.duration_s:g} s",
        ["flow", "controller"],
        ["Mb/s", "goodput", "delay ms", "one-way ms", "loss", "time-outs", "M_e"],
    )
    for row in measured.flows.iter_rows(named=True):
        keys = ["throughput_mbps", "goodput_mbps", "delay_ms", "owd_ms", "loss_ratio"]
        numbers = [significant(row[key]) for key in keys]
        flows.add_row(
            row["flow"],
            row["controller"],
            *numbers,
            str(int(row["timeouts"])),
            significant(row["m_e"]),
        )
    links = _table("links", ["link"], ["utilisation", "wait ms", "loss", "queue drops", "marked"])
    busy = result.links.filter(pl.col("arrived_packets") > 0)
    for row, totals in zip(
        measured.links.join(busy.select("link"), on="link", maintain_order="left").iter_rows(
            named=True
        ),
        busy.iter_rows(named=True),
        strict=True,
    ):
        links.add_row(
            row["link"],
            *(significant(row[key]) for key in ("utilisation", "wait_ms", "loss_ratio")),
            str(totals["queue_drops"]),
            str(totals["marked_packets"]),
        )
    jain = Text(f"Jain's index of throughput {significant(measured.jain_throughput)}", style="dim")
    return Group(flows, jain, links)


def comparison(standings: Sequence[Standing]) -> Table:
    """One row per scenario and controller, means with half their 95 % interval."""
    heads = [f"{column.label}\n{column.unit}".rstrip() for column in COLUMNS]
    table = _table(
        "mean ± half the 95 % interval over runs", ["scenario", "controller"], [*heads, "runs"]
    )
    last = ""
    for standing in standings:
        contender = standing.contender
        if last and contender.scenario != last:
            table.add_section()
        last = contender.scenario
        numbers = [
            with_interval(standing.estimates[column.key]) if standing.estimates else "failed"
            for column in COLUMNS
        ]
        table.add_row(contender.scenario, contender.controller, *numbers, str(standing.n_runs))
    return table


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for label in left:
        table.add_column(label)
    for label in right:
        table.add_column(label, justify="right")
    return table


def _published_tables(result: Reproduction, console: Console) -> list[Table]:
    """As few tables as the width of the terminal allows."""
    metrics = result.experiment.metrics
    for n_tables in range(1, len(metrics) + 1):
        size = math.ceil(len(metrics) / n_tables)
        parts = [metrics[start : start + size] for start in range(0, len(metrics), size)]
        tables = [_published_table(result, part) for part in parts]
        unbounded = console.options.update(max_width=1000)
        widths = [console.measure(table, options=unbounded).maximum for table in tables]
        if max(widths, default=0) <= console.width:
            return tables
    return [_published_table(result, [metric]) for metric in metrics]


def _published_table(result: Reproduction, metrics: Sequence[str]) -> Table:
    experiment = result.experiment
    heads = [f"{METRICS[metric].label} {METRICS[metric].unit}".rstrip() for metric in metrics]
    title = f"{experiment.item}: {experiment.title}"
    table = _table(title, ["scheme", "", ""], heads)
    group = ""
    for measured in result.rows:
        if group and measured.row.group != group:
            table.add_section()
        group = measured.row.group
        table.add_row(
            measured.row.scheme,
            group,
            "published\nours\ndifference",
            *(_cell(measured, metric) for metric in metrics),
        )
    return table


def _cell(measured: Measured, metric: str) -> Text:
    published = measured.row.published[metric]
    ours = measured.estimates.get(metric)
    if ours is None:
        return Text(f"{significant(published)}\n–\n–", style="dim")
    if metric == "m_e":
        gap = ours.value - published
        difference = f"{'+' if gap >= 0 else ''}{significant(gap, 3)}"
    else:
        difference = percent(difference_ratio(metric, published, ours.value))
    text = Text(f"{significant(published)}\n", style="dim")
    text.append(with_interval(ours), style="bold not dim")
    text.append(f"\n{difference}", style="green not dim" if ours.contains(published) else "not dim")
    return text


def _claims(result: Reproduction) -> Table:
    table = _table("claims of the paper", ["", "claim", "observed"], [])
    for checked in result.claims:
        style = STYLES[VERDICTS[checked.verdict]]
        table.add_row(Text(checked.verdict, style=style), checked.claim.text, describe(checked))
    return table


def _assumptions(result: Reproduction) -> Table:
    table = _table("assumptions", ["origin", "what"], [])
    for assumption in result.experiment.assumptions:
        table.add_row(assumption.origin, assumption.text)
    return table


def _lines(console: Console, label: str) -> experiments.Progress:
    printed = -1

    def update(n_done: int, n_cells: int) -> None:
        nonlocal printed
        tenth = 10 * n_done // n_cells if n_cells else 10
        if tenth > printed:
            printed = tenth
            console.print(f"{label}: {n_done} of {n_cells} cells", highlight=False)

    return update
