"""Progress of a training: a bar per stage in a terminal, elsewhere a line per stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

from ackademy.console import Console, task_label
from ackademy.learn.lp_tcp.training import Stage
from ackademy.runner import experiments


@contextmanager
def stages(console: Console, label: str) -> Iterator[Stage]:
    """Shows the stages of one training; `label` says of which."""
    if not console.is_terminal:
        yield lambda name: _line(console, f"{label}: {name}")
        return
    columns = (task_label(), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:

        def begin(name: str) -> experiments.Progress:
            task = bar.add_task(f"{label}: {name}", total=None)

            def update(n_done: int, n_total: int) -> None:
                bar.update(task, completed=n_done, total=n_total)

            return update

        yield begin


def _line(console: Console, text: str) -> experiments.Progress:
    console.print(text, highlight=False, soft_wrap=True)
    return experiments.quiet
