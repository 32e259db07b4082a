"""Progress of a training: a bar per stage in a terminal, elsewhere a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ackademy.console import Console, counting_bar, task_field
from ackademy.runner import experiments

if TYPE_CHECKING:
    from ackademy.learn.lp_tcp.training import Stage
    from ackademy.learn.running_reward import RunningReward
    from ackademy.learn.training_log import Progress


@contextmanager
def stages(console: Console, elsewhere: Stage) -> Iterator[Stage]:
    """Shows the stages of a training: bars in a terminal, else what `elsewhere` prints."""
    if not console.is_terminal:
        yield elsewhere
        return
    with counting_bar(console) as bar:

        def begin(name: str) -> experiments.Progress:
            task = bar.add_task(name, total=None)

            def update(n_done: int, n_total: int) -> None:
                bar.update(task, completed=n_done, total=n_total)

            return update

        yield begin


def tenths(console: Console, name: str, what: str) -> Callable[[int, int, RunningReward], None]:
    """Prints a line per tenth of a training, with its reward; `what` is counted."""
    begun: set[int] = set()

    def line(done: int, total: int, reward: RunningReward) -> None:
        if (tenth := 10 * done // total) not in begun:
            begun.add(tenth)
            more = f", {reward}" if str(reward) else ""
            console.print(f"{name}: {done} of {total} {what}{more}", highlight=False)

    return line


def staged_lines(console: Console) -> Stage:
    """Begins a stage that prints a line per tenth of it."""

    def begin(name: str) -> experiments.Progress:
        told, start = {0}, time.monotonic()

        def line(done: int, total: int) -> None:
            if (tenth := 10 * done // total) not in told:
                told.add(tenth)
                took = time.monotonic() - start
                console.print(f"{name}: {done} of {total}, {took:.0f} s", highlight=False)

        return line

    return begin


@contextmanager
def episodes(console: Console, name: str) -> Iterator[Progress]:
    """Episodes and their reward in a bar in a terminal; elsewhere a line now and then."""
    if not console.is_terminal:
        yield tenths(console, name, "episodes")
        return
    with counting_bar(console, task_field("reward")) as bar:
        task = bar.add_task(f"{name}: episodes", total=None, reward="")

        def update(done: int, total: int, reward: RunningReward) -> None:
            bar.update(task, completed=done, total=total, reward=str(reward))

        yield update
