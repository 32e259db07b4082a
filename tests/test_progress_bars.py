"""What a terminal shows while a command works."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ackademy
from ackademy.cli.train_progress import episodes
from ackademy.console import Console
from ackademy.learn.running_reward import EPISODES, RunningReward
from ackademy.learn.training_log import TrainingLog
from ackademy.render import terminal


class Screen(io.StringIO):
    """Takes what is printed for a terminal."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def console(*, is_terminal: bool) -> tuple[Console, Callable[[], str]]:
    out = Screen() if is_terminal else io.StringIO()
    return Console(file=out, width=160), out.getvalue


@pytest.fixture(autouse=True)
def _a_terminal_that_can_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_a_run_tells_its_simulated_time_up_to_the_end_and_gives_the_same_tables(
    dumbbell: Path,
) -> None:
    over: list[float] = []
    told = ackademy.run(dumbbell, seed=3, progress=over.append)
    assert told.flows.equals(ackademy.run(dumbbell, seed=3).flows)
    assert len(over) == 256
    assert over == sorted(set(over))
    assert over[-1] == told.scenario.duration_s


def test_what_progress_raises_ends_the_run(dumbbell: Path) -> None:
    def stop(over_s: float) -> None:
        raise ZeroDivisionError(over_s)

    with pytest.raises(ZeroDivisionError):
        ackademy.run(dumbbell, progress=stop)


def test_a_long_run_has_a_bar_of_simulated_time_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "BAR_AFTER_S", 0.0)
    shown, printed = console(is_terminal=True)
    with terminal.simulating(shown, 600.0) as progress:
        assert progress is not None
        progress(150.0)
    assert "simulated 150 of 600 s" in printed()
    assert "25%" in printed()


def test_a_short_run_and_one_without_a_terminal_have_none() -> None:
    shown, printed = console(is_terminal=True)
    with terminal.simulating(shown, 600.0) as progress:
        assert progress is not None
        progress(600.0)
    assert "simulated" not in printed()
    plain, nothing = console(is_terminal=False)
    with terminal.simulating(plain, 600.0) as progress:
        assert progress is None
    assert nothing() == ""


def test_the_running_reward_is_over_the_latest_episodes_and_remembers_its_best() -> None:
    reward = RunningReward()
    assert str(reward) == ""
    reward.add(EPISODES / 2, 9.0)
    assert str(reward) == f"mean reward of the last {EPISODES} 9", "too few for a best"
    reward.add(EPISODES, 3.0)
    assert (reward.mean, reward.best) == (6.0, 6.0)
    reward.add(2 * EPISODES, 1.0)
    assert (reward.mean, reward.best) == (1.0, 6.0)
    assert str(reward) == f"mean reward of the last {EPISODES} 1, best 6"


def test_the_best_of_negative_rewards_is_the_largest() -> None:
    reward = RunningReward()
    for row, value in enumerate([-5.0, -2.0, -3.0]):
        reward.add((row + 1) * EPISODES, value)
    assert reward.best == -2.0


def test_the_training_bar_shows_the_reward() -> None:
    shown, printed = console(is_terminal=True)
    with episodes(shown, "ppo") as progress:
        log = TrainingLog(("decisions", "episodes", "reward"), progress=progress)
        for row in (1, 2):
            log.row({"decisions": row, "episodes": row * EPISODES, "reward": 0.75 / row})
            log.progress(row * EPISODES, 100)
    assert f"mean reward of the last {EPISODES} 0.375, best 0.75" in printed()


def test_without_a_terminal_the_reward_is_in_the_lines() -> None:
    plain, printed = console(is_terminal=False)
    with episodes(plain, "ppo") as progress:
        log = TrainingLog(("episodes", "reward"), progress=progress)
        log.progress(0, 100)
        log.row({"episodes": 50, "reward": -1.5})
        log.progress(50, 100)
    first, second = printed().splitlines()
    assert first == "ppo: 0 of 100 episodes"
    assert second == f"ppo: 50 of 100 episodes, mean reward of the last {EPISODES} -1.5, best -1.5"


def test_the_time_left_of_a_resumed_command_is_not_told_by_cells_that_were_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    shown, printed = console(is_terminal=True)
    monkeypatch.setattr(shown, "get_time", lambda: clock[0])
    with terminal.progress_bar(shown, "cells") as update:
        clock[0] = 50.0  # the search for finished cells
        update(900, 1000)
        for done in (901, 902, 903):
            clock[0] += 10.0
            update(done, 1000)
    assert "903/1000" in printed()
    assert "0:16:10" in printed(), "97 cells of 10 s"


def test_without_a_terminal_the_time_left_is_counted_from_the_first_cell_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    plain, printed = console(is_terminal=False)
    with terminal.progress_bar(plain, "cells") as update:
        clock[0] = 600.0  # the search for finished cells
        update(580, 1000)
        for done in range(581, 601):
            clock[0] += 6.0
            update(done, 1000)
    assert "cells: 600 of 1000 cells, about 40 min left" in printed()
