"""Progress of a training: a bar per stage in a terminal, elsewhere a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ackademy.console import Console, counting_bar
from ackademy.runner import experiments

if TYPE_CHECKING:
    from ackademy.learn.lp_tcp.training import Stage
    from ackademy.learn.running_reward import RunningReward


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
