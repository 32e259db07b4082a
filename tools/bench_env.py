"""Speed of the environments, and beside the Python gym of PCC-RL on its own kind of link.

Steps `ackademy/Flow-v0` for 1, 8, 64 and 1024 environments, and collects native rollouts of 64
simulations with a network of two layers of 64; prints steps (decisions) and simulated data packets
per second of processor time. `--peer PATH` names a checkout of PCC-RL, whose own gym then
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
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from ackademy import _core
from ackademy.envs import opening
from ackademy.envs.agent_settings import AURORA
from ackademy.envs.flow import VectorFlow
from ackademy.policies import policy_files

LINKS = Path(__file__).parents[1] / "data/distributions" / "pcc_rl.toml"
COUNTS = (1, 8, 64, 1024)
EQUAL = 64
"""environments that are stepped once more with about the peer's packets per step"""
SEED = 1
BATCH = 8192
"""decisions of a batch of native rollouts"""
UNITS = (64, 64)
"""of the network that decides there"""
SHORT = 0.1
"""part of a round trip between decisions in the row with few packets per decision"""
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
    native = [_rollouts(options.scenario, options.seconds, threads) for threads in (1, 2)]
    native.append(_rollouts(options.scenario, options.seconds, 1, SHORT))
    peer = None if options.peer is None else _theirs(options.peer, options.seconds)
    if peer is not None:
        best = max(rows, key=lambda row: row.steps_per_core_s)
        stretch = peer.packets_per_step / best.packets_per_step
        rows.append(_ours(options.scenario, options.seconds, EQUAL, 1, stretch))
    console = Console()
    if peer is not None:
        stretch = peer.packets_per_step / native[0].packets_per_step
        native.append(_rollouts(options.scenario, options.seconds, 1, 0.5 * stretch))
    console.print(_table([*rows, *native, peer] if peer else [*rows, *native]))
    for line in [*_verdict(rows, peer), *_native_verdict(native, peer)]:
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


def _rollouts(scenario: Path, seconds: float, threads: int, times: float = 0.5) -> Speed:
    """Native rollouts, decided by a network every `times` round trips."""
    settings = AURORA.replace("times = 0.5", f"times = {times:.3f}")
    source = opening.read_source(scenario)
    own = _core.Rollouts(
        source, settings, n=EQUAL, agents=1, learners=opening.learners_of(source, None), seed=SEED,
        threads=threads,
    )  # fmt: skip
    files, log_std = _network(settings, own), np.full(own.action_size, -1.0, np.float32)

    def batch() -> None:
        own.collect(files, log_std, BATCH)

    batch()
    before = own.packets, own.decisions
    _, core_s, wall_s = _time(batch, seconds, warm_up=False)
    packets, decisions = own.packets - before[0], own.decisions - before[1]
    name = f"native rollouts of {EQUAL}, {threads} thread{'s' if threads > 1 else ''}"
    if times != 0.5:
        name += f", every {times:.2g} round trips"
    return Speed(name, decisions, packets, core_s, wall_s)


def _network(settings: str, own: _core.Rollouts) -> dict[str, bytes]:
    """A policy with dense layers of `UNITS`, tanh, and small random weights."""
    rng = np.random.default_rng(SEED)
    sizes = (own.history * own.n_features, *UNITS, own.action_size)
    layers: list[dict[str, Any]] = [{"kind": "flatten"}]
    tensors = {}
    for place, (n_in, n_out) in enumerate(pairwise(sizes), 1):
        layers.append({"kind": "dense", "units": n_out, "activation": "tanh"})
        kernel = rng.normal(0.0, n_in**-0.5, (n_in, n_out))
        kernel *= 1e-2 if n_out == own.action_size else 1.0
        tensors[f"layers.{place}.kernel"] = kernel.astype(np.float32)
        tensors[f"layers.{place}.bias"] = np.zeros(n_out, np.float32)
    text = policy_files.policy_text("for speed", settings, layers, {})
    return {
        policy_files.POLICY: text.encode(),
        policy_files.WEIGHTS: policy_files.bytes_of(tensors),
    }


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


def _time(
    call: Callable[[], None], seconds: float, *, warm_up: bool = True
) -> tuple[int, float, float]:
    """Calls made, processor time and wall time, after a tenth of the time to warm up."""
    until = time.perf_counter() + (seconds / 10 if warm_up else 0.0)
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


def _native_verdict(native: list[Speed], peer: Speed | None) -> list[str]:
    """How far native rollouts are from what they should reach."""
    one, two = native[:2]
    ratio = (two.steps / two.wall_s) / (one.steps / one.wall_s)
    lines = [
        f"Native rollouts, {UNITS[0]}-{UNITS[1]} network: {one.steps_per_core_s:,.0f} decisions "
        f"per core-second (aim 400,000), two threads {ratio:.2f} times one (aim 1.8).",
    ]
    if peer is not None:
        own, equal = (speed.steps_per_core_s / peer.steps_per_core_s for speed in (one, native[-1]))
        packets = native[-1].packets_per_step
        lines.append(
            f"  {own:6.1f} times {peer.name} with Aurora's interval (aim 100), "
            f"{equal:.1f} times with {packets:.0f} packets in a step"
        )
    return lines


if __name__ == "__main__":
    main()
