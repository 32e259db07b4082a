"""Speed of the environments, and beside the Python gym of PCC-RL on its own kind of link.

Steps `ackademy/Flow-v0` for 1, 8, 64 and 1024 environments and prints steps and simulated data
packets per second of processor time. `--peer PATH` names a checkout of PCC-RL, whose own gym then
runs in the same process; without one, what was recorded of it is printed as recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import random
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from ackademy.envs.agent_settings import AURORA
from ackademy.envs.flow import VectorFlow

LINKS = Path(__file__).parents[1] / "distributions" / "pcc_rl.toml"
COUNTS = (1, 8, 64, 1024)
EQUAL = 64
"""environments that are stepped once more with about the peer's packets per step"""
SEED = 1
RECORDED = (460.0, 4171.0)
"""PCC-RL's steps per second over single links, gym 0.26, 4000 steps each; recorded earlier on
other load, and no substitute for `--peer`"""


@dataclass(frozen=True)
class Speed:
    """What was stepped in a stretch of time."""

    name: str
    steps: int
    packets: int
    core_s: float
    """processor time of all threads"""
    wall_s: float

    @property
    def steps_per_core_s(self) -> float:
        """Environment steps per second of processor time."""
        return self.steps / self.core_s

    @property
    def packets_per_core_s(self) -> float:
        """Simulated data packets per second of processor time."""
        return self.packets / self.core_s

    @property
    def packets_per_step(self) -> float:
        """Simulated data packets in a step."""
        return self.packets / self.steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--peer", type=Path, help="checkout of PCC-RL")
    parser.add_argument("--scenario", type=Path, default=LINKS, help="scenario or distribution")
    options = parser.parse_args()
    rows = [
        _ours(options.scenario, options.seconds, n, threads) for n in COUNTS for threads in (1, 0)
    ]
    peer = None if options.peer is None else _theirs(options.peer, options.seconds)
    if peer is not None:
        best = max(rows, key=lambda row: row.steps_per_core_s)
        stretch = peer.packets_per_step / best.packets_per_step
        rows.append(_ours(options.scenario, options.seconds, EQUAL, 1, stretch))
    console = Console()
    console.print(_table([*rows, peer] if peer else rows))
    for line in _verdict(rows, peer):
        console.print(line, highlight=False)


def _ours(scenario: Path, seconds: float, n: int, threads: int, stretch: float = 1.0) -> Speed:
    """A vector of environments, its action 0 as the peer's, its steps so much longer."""
    settings = AURORA.replace("times = 0.5", f"times = {0.5 * stretch:.3f}")
    env = VectorFlow(
        n, scenario, agent_settings=settings, reward="aurora", copy=False, threads=threads
    )
    env.reset(seed=SEED)
    actions = np.zeros((n, 1), np.float32)

    def batch() -> None:
        env.step(actions)

    before = env.episodes.packets
    steps, core_s, wall_s = _time(batch, seconds)
    name = f"{n}, {'all cores' if threads == 0 else '1 thread'}"
    if stretch != 1.0:
        name += f", steps {stretch:.1f} times as long"
    return Speed(name, steps * n, env.episodes.packets - before, core_s, wall_s)


def _theirs(checkout: Path, seconds: float) -> Speed:
    """PCC-RL's own environment, its action 0: rates stay where its reset has drawn them."""
    with _gym(checkout), contextlib.redirect_stdout(io.StringIO()):
        env = cast("Any", importlib.import_module("network_sim")).SimulatedNetworkEnv()
        random.seed(SEED)
        env.reset()
        action = np.zeros(1)
        packets = 0

        def step() -> None:
            nonlocal packets
            _, _, over, _ = env.step(action)
            packets += env.senders[0].sent
            if over:
                env.reset()

        steps, core_s, wall_s = _time(step, seconds)
    return Speed("PCC-RL's gym", steps, packets, core_s, wall_s)


@contextlib.contextmanager
def _gym(checkout: Path) -> Iterator[None]:
    """Stand-ins for the `gym` that PCC-RL was written for and the debugger that it imports."""
    gym, registration = types.ModuleType("gym"), types.ModuleType("gym.envs.registration")
    envs, utils = types.ModuleType("gym.envs"), types.ModuleType("gym.utils")
    vars(gym).update(Env=object, spaces=gymnasium.spaces, utils=utils, envs=envs)
    vars(utils).update(seeding=gymnasium.utils.seeding)
    vars(registration).update(register=lambda **_: None)
    stand_ins = {
        "gym": gym,
        "gym.spaces": gymnasium.spaces,
        "gym.utils": utils,
        "gym.envs": envs,
        "gym.envs.registration": registration,
        "ipdb": types.ModuleType("ipdb"),
    }
    missing = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    words, sys.argv = sys.argv, sys.argv[:1]  # it reads the command line for settings of its own
    paths = [str(checkout / "src" / "gym"), str(checkout / "src")]
    sys.modules.update(missing)
    sys.path[:0] = paths
    try:
        yield
    finally:
        sys.argv = words
        for path in paths:
            sys.path.remove(path)
        for name in missing:
            del sys.modules[name]


def _time(call: Callable[[], None], seconds: float) -> tuple[int, float, float]:
    """Calls made, processor time and wall time, after a tenth of the time to warm up."""
    until = time.perf_counter() + seconds / 10
    while time.perf_counter() < until:
        call()
    calls = 0
    core, wall = time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        call()
        calls += 1
    return calls, time.process_time() - core, time.perf_counter() - wall


def _table(rows: list[Speed]) -> Table:
    table = Table(title="Environment steps")
    for column in ("", "steps/core-s", "packets/core-s", "packets/step", "steps/s"):
        table.add_column(column, justify="right" if column else "left")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.steps_per_core_s:,.0f}",
            f"{row.packets_per_core_s:,.0f}",
            f"{row.packets_per_step:.1f}",
            f"{row.steps / row.wall_s:,.0f}",
        )
    return table


def _verdict(rows: list[Speed], peer: Speed | None) -> list[str]:
    if peer is None:
        best = max(rows, key=lambda row: row.steps_per_core_s)
        low, high = (best.steps_per_core_s / speed for speed in reversed(RECORDED))
        return [
            f"PCC-RL's gym as recorded: {RECORDED[0]:,.0f} to {RECORDED[1]:,.0f} steps/s by link; "
            f"{best.name}: {low:.0f} to {high:.0f} times that, unequal links.",
            "Name a checkout with --peer to measure the two on links drawn alike.",
        ]
    *own, equal = rows
    best = max(own, key=lambda row: row.steps_per_core_s)
    return [
        f"Steps per core-second, times {peer.name}'s {peer.steps_per_core_s:,.0f}:",
        f"  {best.steps_per_core_s / peer.steps_per_core_s:6.1f} with Aurora's interval, "
        f"{best.packets_per_step:.0f} packets in a step and not {peer.packets_per_step:.0f}",
        f"  {equal.steps_per_core_s / peer.steps_per_core_s:6.1f} with "
        f"{equal.packets_per_step:.0f} packets in a step",
    ]


if __name__ == "__main__":
    main()
