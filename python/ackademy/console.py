"""The console that commands print on: what it prints is text, never markup.

Names come from files: `a[b]`, `:bug:` and `a[/b]` are names, which Rich would take for markup or
emoji. What is to be styled is a `rich.text.Text`.
"""

from __future__ import annotations

from typing import IO

import rich.console
import rich.progress


class Console(rich.console.Console):
    """Rich's, that parses no markup and no emoji."""

    def __init__(
        self, *, stderr: bool = False, width: int | None = None, file: IO[str] | None = None
    ) -> None:
        super().__init__(stderr=stderr, width=width, file=file, markup=False, emoji=False)

    def say(self, text: str) -> None:
        """Print a line whose words stay as they are, so that paths in it can be copied."""
        self.print(text, highlight=False, soft_wrap=True)


def counting_bar(
    console: rich.console.Console, *more: rich.progress.ProgressColumn
) -> rich.progress.Progress:
    """A bar with counts, the time that it took, and more columns; gone when it is done."""
    columns = (
        task_label(),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    return rich.progress.Progress(*columns, *more, console=console, transient=True)


def task_label() -> rich.progress.TextColumn:
    """The column of a progress bar that shows a task's description."""
    return rich.progress.TextColumn("{task.description}", markup=False)


def task_field(name: str) -> rich.progress.TextColumn:
    """The column of a progress bar that shows a field which the task was added with."""
    return rich.progress.TextColumn(f"{{task.fields[{name}]}}", markup=False)
