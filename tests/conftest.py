"""A small network that every test can afford, and a place for files."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import capabilities
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet, run_cells
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce import study as reproduce
from ackademy.studies.reproduce.files import Experiment
from ackademy.studies.reproduce.study import Reproduction
from capabilities import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]  # hooks

DUMBBELL = """\
# Two senders and a short buffer.
duration_s = 4

[dumbbell]
rtt_ms = 20

[dumbbell.bottleneck]
rate_mbps = 4
queue = { kind = "drop_tail", packets = 10 }

[[flow]]
name = "sender"
count = 2
start_spread_s = 0.2
"""

MINE = '''\
class Mine:
    """One packet more per round trip; half as many after a loss."""

    def __init__(self, flow):
        self.mss_bytes = flow.mss_bytes
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)

    def on_ack(self, ack):
        self.cwnd_bytes += self.mss_bytes * ack.acked_bytes / self.cwnd_bytes

    def on_loss(self, loss):
        if loss.kind != "more":
            self.cwnd_bytes = max(self.cwnd_bytes / 2, self.mss_bytes)
'''


@pytest.fixture(scope="session")
def ray() -> None:
    """Skips where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs ray: an extra")


@pytest.fixture(scope="module")
def address(ray: None) -> Iterator[str]:
    """Address of a Ray cluster of two nodes."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def pytest_configure() -> None:
    """Check `ACKADEMY_REQUIRE`, and handle interrupts.

    What a shell starts in the background is deaf to interrupts, children too.
    """
    capabilities.required()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def dumbbell(tmp_path: Path) -> Path:
    """A scenario file."""
    path = tmp_path / "dumbbell.toml"
    path.write_text(DUMBBELL)
    return path


@pytest.fixture
def controller(tmp_path: Path) -> Callable[[str], str]:
    """Writes a Python controller `Mine` and returns its name for `cc`."""

    def write(source: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(source)
        return f"{path}:Mine"

    return write


@pytest.fixture
def mine(controller: Callable[[str], str]) -> str:
    """A Python controller that works."""
    return controller(MINE)


ITEM = """\
title = "A small table"
item = "Table 1"
about = "Two senders."
scenario = "../../dumbbell.toml"
runs = 4
sample_interval_ms = 100
columns = ["throughput_mean_mbps", "throughput_variance", "delay_mean_ms", "loss_ratio", "m_e"]
published = [
  ["NewReno", "short", 1.9, 0.01, 10.0, 0.01, 0.4],
  ["RL-TCP", "short", 1.9, 0.01, 10.0, 0.01, 0.4],
  ["Steady", "short", 1.9, 0.0, 10.0, 0.01, 0.4],
  ["LP-TCP", "short", 1.9, 0.01, 10.0, 0.01, 0.4],
]

[group.short]
set = { "dumbbell.bottleneck.queue.packets" = 8 }
learner_params = { buffer_packets = 8 }

[scheme.Steady]
deterministic = "nothing is random in it"

[[claim]]
text = "RL-TCP gets a throughput at all."
where = "nowhere"
metric = "throughput_mean_mbps"
row = ["RL-TCP", "short"]
against = ["NewReno", "short"]
min_ratio = 0.01

[[claim]]
text = "LP-TCP is better."
where = "nowhere"
metric = "m_e"
row = ["LP-TCP", "short"]
against = ["NewReno", "short"]
min_difference = 0.0
"""

PAPER = """\
title = "A paper"
authors = "Nobody & <Sons>"
venue = "Nowhere, 2018"
doi = "10.0/0"
scheme.NewReno.controller = "new_reno"
scheme.Steady.controller = "new_reno"
scheme.RL-TCP.controller = "rl_tcp"
scheme.RL-TCP.learns = true
scheme.LP-TCP.missing = "it is not written"

[[assumption]]
origin = "proposed"
text = "All of it."
"""


@pytest.fixture
def experiment(dumbbell: Path) -> Experiment:
    """A small paper with one table."""
    folder = dumbbell.parent / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "table1.toml").write_text(ITEM)
    return experiment_files.load(str(folder / "table1.toml"))


@pytest.fixture
def result(experiment: Experiment, tmp_path: Path) -> Reproduction:
    """The small paper, reproduced."""
    folder = tmp_path / "runs"
    run_cells(reproduce.all_cells(experiment, 4), folder, local(1), quiet)
    return reproduce.collect(experiment, 4, folder)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for `ackademyd`; returns the file in which it notes its calls."""
    program, log = tmp_path / "bin" / "ackademyd", tmp_path / "calls"
    program.parent.mkdir()
    script = Path(__file__).with_name("fake_ackademyd.py")
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ACKADEMYD", str(program))
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log
