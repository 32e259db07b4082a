"""What the command line prints: tables and progress, plain lines where there is no terminal."""

from __future__ import annotations

import math
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from ackademy.backends.runs import Progress as RunProgress
from ackademy.console import Console, task_label
from ackademy.render.sheet import Cell, Head, Line, Sheet, Style, wrapped

if TYPE_CHECKING:
    from ackademy.runner import experiments

NAME_WIDTH = 24
"""characters of a name before it is wrapped"""
FITTED_WIDTH = 18
"""characters, so that the remark below a scheme takes the two lines that its numbers take anyway"""
BAR_AFTER_S = 0.5
"""that a simulation takes before its bar appears"""


@contextmanager
def progress_bar(console: Console, label: str) -> Iterator[experiments.Progress]:
    """A bar in a terminal; elsewhere a line for about every tenth of the cells."""
    if not console.is_terminal:
        yield _lines(console, label)
        return
    columns = (task_label(), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # The time left is estimated from the last ten minutes: a cell may take one of them.
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600.0) as bar:
        task = bar.add_task(label, total=None)

        def update(n_done: int, n_cells: int) -> None:
            bar.update(task, completed=n_done, total=n_cells)

        yield update


@contextmanager
def waiting(console: Console, real_s: float) -> Iterator[None]:
    """While a run takes real time: a bar with the time left in a terminal."""
    if not real_s or not console.is_terminal:
        yield
        return
    columns = (task_label(), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"in real time, {real_s:.0f} s", total=real_s)
        over = threading.Event()
        ticking = threading.Thread(target=_tick, args=(bar, task, over), daemon=True)
        ticking.start()
        try:
            yield
        finally:
            over.set()
            ticking.join()


@contextmanager
def simulating(console: Console, duration_s: float) -> Iterator[RunProgress | None]:
    """A bar of simulated time with the time left, in a terminal and for a run that takes a while.

    Args:
        console: where the bar is drawn.
        duration_s: simulated seconds of the whole run.

    Yields:
        What `runs.run` is to tell its progress; nothing where there is no terminal.
    """
    if not console.is_terminal:
        yield None
        return
    # Without a bar at first: of a short run, it would only flicker.
    columns = (task_label(), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, speed_estimate_period=600.0)
    task, began = bar.add_task("", total=duration_s), time.monotonic()

    def update(over_s: float) -> None:
        if time.monotonic() - began >= BAR_AFTER_S:
            bar.start()
        label = f"simulated {over_s:.4g} of {duration_s:.4g} s"
        bar.update(task, completed=over_s, description=label)

    try:
        yield update
    finally:
        bar.stop()


def _tick(bar: Progress, task: TaskID, over: threading.Event) -> None:
    """Move a bar with the clock until an event is set."""
    began = time.monotonic()
    while not over.wait(0.2):
        bar.update(task, completed=time.monotonic() - began)


def effort(ran: experiments.CellsRun, spent_s: float) -> str:
    """How much was computed, and how long that took."""
    computed = ran.n_cells - ran.n_reused
    repeats = (
        f", {ran.n_fixed} more seeds not run: nothing in them is random" if ran.n_fixed else ""
    )
    return f"{spent_s:.1f} s: {computed} simulations run, {ran.n_reused} found finished{repeats}"


Columns = Mapping[str, Sequence[str | Text]]
"""cells by heading, all of one length"""


PART_STYLES: Mapping[Style, str] = {
    "was": "dim",
    "ours": "bold not dim",
    "good": "green not dim",
    "warn": "yellow",
    "dim": "dim",
    "best": "bold green",
    "bad": "red",
    "bold": "bold",
}


def sheets(found: Sequence[Sheet], console: Console) -> list[Table]:
    """Several sheets, with frames around all tables or around none."""
    tables = [table for own in found for table in sheet(own, console)]
    if all(table.show_edge for table in tables):
        return tables
    return [table for own in found for table in sheet(own, console, is_framed=False)]


def show(found: Sequence[Sheet], console: Console) -> None:
    """Print several sheets."""
    for table in sheets(found, console):
        console.print(table)


def sheet(own: Sheet, console: Console, *, is_framed: bool = True) -> list[Table]:
    """A sheet as few tables as the width of the terminal allows; groups and names on the left."""
    names: dict[str, list[str | Text]] = {}
    if own.group:
        before = ["", *(line.group for line in own.lines)]
        names[own.group] = [
            "" if line.group == previous else line.group
            for line, previous in zip(own.lines, before, strict=False)
        ]
    for index, head in enumerate(own.names):
        names[head.label] = [_name(line, index) for line in own.lines]
    numbers = {
        _heading(head): [_lines_of(line.cells[index]) for line in own.lines]
        for index, head in enumerate(own.heads)
    }
    if own.has_runs:
        numbers["runs"] = [Text(line.runs) for line in own.lines]
    return fitting(own.title, names, numbers, console, is_framed=is_framed)


def _heading(head: Head) -> str:
    return "\n".join((*wrapped(head.label), head.unit)).rstrip()


def _name(line: Line, index: int) -> Text:
    part = line.names[index]
    text = Text(part.text, style=PART_STYLES.get(part.style, ""))
    for below in textwrap.wrap(line.remark, FITTED_WIDTH) if index == 0 else []:
        text.append(f"\n{below}", style="dim")
    return text


def _lines_of(cell: Cell) -> Text:
    lines = [Text(part.text, style=PART_STYLES.get(part.style, "")) for part in cell.parts]
    return Text("\n").join(lines)


def fitting(
    title: str, names: Columns, numbers: Columns, console: Console, *, is_framed: bool = True
) -> list[Table]:
    """As few tables as the width of the terminal allows, each with the names on the left.

    Args:
        title: of each of them.
        names: the first column may hold groups: an empty cell repeats the one above.
        numbers: as many cells each.
        console: how wide it may be.
        is_framed: whether frames are drawn, unless there are fewer tables without.
    """
    headings = list(numbers)
    if not headings:
        return [_filled(title, names, {})]
    for n_tables in range(1, len(headings) + 1):
        size = math.ceil(len(headings) / n_tables)
        parts = [headings[start : start + size] for start in range(0, len(headings), size)]
        for has_frame in (True, False) if is_framed else (False,):
            tables = [
                _filled(title, names, {heading: numbers[heading] for heading in part})
                for part in parts
            ]
            if not has_frame:
                for table in tables:
                    _remove_frame(table)
            if _widest(tables, console) <= console.width:
                return tables
    return tables


def _filled(title: str, names: Columns, numbers: Columns) -> Table:
    table = headed_table(title, list(names), list(numbers))
    for column, texts in zip(table.columns, names.values(), strict=False):
        if max((cell_len(str(text)) for text in texts), default=0) > NAME_WIDTH:
            column.max_width, column.no_wrap = NAME_WIDTH, False
    groups = next(iter(names.values()))
    is_grouped = "" in groups
    for index, cells in enumerate(zip(*names.values(), *numbers.values(), strict=True)):
        if is_grouped and index and groups[index]:
            table.add_section()
        table.add_row(*cells)
    return table


def _remove_frame(table: Table) -> None:
    table.box, table.show_edge, table.pad_edge, table.padding = SIMPLE_HEAD, False, False, (0, 0)


def _widest(tables: Sequence[Table], console: Console) -> int:
    unbounded = console.options.update(max_width=1000)
    return max(console.measure(table, options=unbounded).maximum for table in tables)


def headed_table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    """An empty table: names on the left, numbers on the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for label in left:
        table.add_column(label, no_wrap=True)
    for label in right:
        table.add_column(label, justify="right")
    return table


def _lines(console: Console, label: str) -> experiments.Progress:
    printed, begun, n_before = -1, 0.0, -1

    def update(n_done: int, n_cells: int) -> None:
        nonlocal printed, begun, n_before
        if (
            n_before < 0
        ):  # What was found finished, and the search for it, tell nothing of the rest.
            begun, n_before = time.monotonic(), n_done
        tenth = 10 * n_done // n_cells if n_cells else 10
        if tenth > printed:
            printed = tenth
            per_cell = (time.monotonic() - begun) / max(n_done - n_before, 1)
            left_min = (n_cells - n_done) * per_cell / 60.0
            more = f", about {left_min:.0f} min left" if left_min > 1.0 else ""
            console.print(f"{label}: {n_done} of {n_cells} cells{more}", highlight=False)

    return update
