"""Ctrl-C while simulations for learners run, and in trainings."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import polars as pl
import pytest

from ackademy import _core, interrupts

LINK = """
duration_s = {duration_s}
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 40
queue = {{ kind = "drop_tail", packets = 30 }}
[[flow]]
name = "rival"
[[flow]]
name = "learner"
start_s = {start_s}
"""
EVERY_MINUTE = """
[observation]
features = ["rtt_mean"]
history = 1
[decision]
every = "time"
min_ms = 60000
[action]
map = "cwnd_steps"
"""


class PressedError(Exception):
    """Raised as Ctrl-C raises `KeyboardInterrupt`."""


@contextmanager
def pressed_again_and_again() -> Iterator[list[bool]]:
    """Raises `PressedError` many times a second while the list is not empty, which empties it."""
    armed: list[bool] = []

    def press(number: int, frame: FrameType | None) -> None:
        if armed:
            armed.clear()
            raise PressedError

    before = signal.signal(signal.SIGALRM, press)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        yield armed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def opened(duration_s: float, start_s: float, n: int, threads: int) -> _core.Episodes:
    text = LINK.format(duration_s=duration_s, start_s=start_s)
    source = _core.Scenario.parse(text, "interrupts.toml")
    return _core.Episodes(
        source, EVERY_MINUTE, n=n, agents=1, learners=["learner"], seed=1, threads=threads
    )


@pytest.mark.parametrize(("n", "threads"), [(1, 1), (3, 1), (2, 2), (3, 2)])
def test_a_reset_that_would_take_hours_stops(n: int, threads: int) -> None:
    own = opened(1e7, 9e6, n, threads)
    with pressed_again_and_again() as armed:
        armed.append(True)
        with pytest.raises(PressedError):
            own.reset()
    with pytest.raises(RuntimeError, match="step before reset"):
        own.step(np.zeros((n, 1), np.int64))


def first_ends(own: _core.Episodes, step: Callable[[], None]) -> tuple[list[pl.DataFrame], int]:
    """The flows of the first episode of each simulation, and how many steps it took."""
    ended: dict[int, pl.DataFrame] = {}
    steps = 0
    while len(ended) < len(own.over):
        step()
        steps += 1
        for index in np.flatnonzero(own.over).tolist():
            ended.setdefault(index, pl.DataFrame(dict(own.tables(index)["flows"])))
    return [ended[index] for index in sorted(ended)], steps


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_that_were_stopped_go_on_to_the_same_end(threads: int) -> None:
    whole, parts = opened(600, 1, 2, threads), opened(600, 1, 2, threads)
    actions = np.full((2, 1), 2)
    whole.reset()
    parts.reset()
    found, steps = first_ends(whole, lambda: whole.step(actions))
    with pressed_again_and_again() as armed:

        def step() -> None:
            try:
                armed.append(True)
                parts.step(actions)
                armed.clear()
            except PressedError:
                assert not armed

        again, more = first_ends(parts, step)
    assert more > steps, "some were stopped"
    for one, other in zip(found, again, strict=True):
        assert one.equals(other)


def test_ctrl_c_in_a_call_of_the_garbage_collector_is_not_lost() -> None:
    """Python prints what such a call raises, and goes on: JAX has one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background

    def press(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(press)
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10))  # Python runs the handler

    with interrupts.between_batches():
        interrupts.check()
        gc.callbacks.append(press)
        gc.collect()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL, "the next one ends the process"
    interrupts.check()
    assert signal.signal(signal.SIGINT, before) == signal.default_int_handler


def test_a_training_that_is_interrupted_says_what_is_kept_and_ends_with_130(tmp_path: Path) -> None:
    for needed in ("jax", "flax", "optax", "tensorboardX"):
        pytest.importorskip(needed, reason="needs train: an extra")
    # What runs in the background ignores the signal. A function before `exec` would need a fork,
    # of which JAX warns.
    default = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{default}; from ackademy.cli import main; main()"
    words = [
        "train",
        "aurora_mixed",
        "--quick",
        "--set",
        "quick.episodes=1000000",
        "--out",
        "mine",
    ]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert " of 1000000 episodes" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert told.startswith("interrupted"), told
    assert not (tmp_path / "mine").exists()
