"""Classes and functions of the user with wrong arguments: one line, before anything runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ackademy.backends import controllers
from ackademy.errors import ControllerError

INIT = "def __init__(self, flow): self.cwnd_bytes = 1e4"
ACK, LOSS = "def on_ack(self, ack): pass", "def on_loss(self, loss): pass"
COUPLED = (
    "def subflow_added(self, subflow, flow): pass",
    "def subflow_removed(self, subflow): pass",
    "def on_ack(self, subflow, ack): pass",
    "def on_loss(self, subflow, loss): pass",
    "def cwnd_bytes(self, subflow): return 1e4",
)


def load(folder: Path, *lines: str) -> None:
    """Load a class with these methods."""
    file = folder / f"own_{time.monotonic_ns()}.py"
    file.write_text("\n    ".join(("class Mine:", *lines)) + "\n")
    controllers.load(f"{file}:Mine", folder)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("def __init__(self): pass", ACK, LOSS), r"Mine: too many .*; allowed: Mine\(flow\)"),
        ((INIT, "def on_ack(self): pass", LOSS), r"on_ack: .*; allowed: on_ack\(self, ack\)"),
        ((INIT, ACK, "def on_loss(self, a, b): pass"), r"on_loss: .*'b'; allowed: on_loss\("),
        ((*COUPLED[:4], "def cwnd_bytes(self): pass"), r"cwnd_bytes: .*\(self, subflow\)"),
        (("def __init__(self, flow): pass", *COUPLED), r"Mine: .*'flow'; allowed: Mine\(\)"),
    ],
)
def test_a_controller_with_wrong_arguments_is_refused_before_the_run(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ControllerError, match=rf"^controller [^\n]*own_\d+\.py:[^\n]*{message}"):
        load(tmp_path, *lines)


@pytest.mark.parametrize(
    "lines",
    [
        (INIT, ACK, LOSS),
        ("def __init__(self, flow, gain=2): pass", "def on_ack(self, *records): pass", LOSS),
        ("def __init__(self, flow): pass", "on_ack = on_loss = print"),
        (INIT, "@staticmethod", "def on_ack(ack): pass", LOSS),
        COUPLED,
    ],
)
def test_a_controller_that_can_be_called_is_accepted(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    load(tmp_path, *lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("metrics", "too many positional arguments; allowed: mine(metrics, before)"),
        ("metrics, before, more", "missing a required argument: 'more'; allowed: mine(metrics, "),
    ],
)
def test_a_reward_with_wrong_arguments_is_one_line_before_training(
    tmp_path: Path, arguments: str, message: str
) -> None:
    pytest.importorskip("gymnasium", reason="needs train: an extra")
    from ackademy.envs import rewards
    from ackademy.errors import TrainingError

    file = tmp_path / "own.py"
    file.write_text(f"def mine({arguments}):\n    return 0\n")
    with pytest.raises(TrainingError, match=r"^reward [^\n]*own\.py:mine: [^\n]*$") as raised:
        rewards.find(f"{file}:mine")
    assert message in str(raised.value)
    with pytest.raises(TrainingError, match=r"^reward <lambda>: [^\n]*$"):
        rewards.find(lambda metrics: metrics)  # type: ignore[arg-type, misc]
