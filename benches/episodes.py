"""Speed of `Episodes`: decisions and packets per second beside `simulate`, and the cost of a reset.

    python benches/episodes.py [threads]

The pilot keeps its window (a choice of `+0`), so all that is timed is the simulator, the pilot, the
stop for each decision and the way of the arrays through Python. Medians of five runs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from ackademy import _core

SCENARIO = """
duration_s = 60
[dumbbell]
rtt_ms = 40
[dumbbell.bottleneck]
rate_mbps = 50
queue = { kind = "drop_tail", bdp = 1 }
[[flow]]
name = "learner"
controller = "new_reno"
"""
PILOT = """
[observation]
features = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
"""
KEEP = 2
RUNS = 5


def seconds(work: Callable[[], object]) -> float:
    """Median time of some runs."""
    taken = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def main() -> None:
    """Print a line for `simulate` and one for each number of simulations."""
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    scenario = _core.Scenario.parse(SCENARIO, "bench.toml")
    sent = float(np.sum(_core.simulate(scenario, 1)["flows"]["sent_packets"]))
    plain = sent / seconds(lambda: _core.simulate(scenario, 1))
    print(f"simulate, new_reno: {plain / 1e6:.2f} M packets/s")
    for n in (1, 8, 64):
        own = _core.Episodes(
            scenario, PILOT, n=n, agents=1, learners=["*"], seed=1, threads=threads
        )
        reset_s = seconds(own.reset) / n
        actions = np.full((n, 1), KEEP)
        # Whole episodes of which the reset's slow start is a small part.
        rates = []
        for _ in range(RUNS):
            own.reset()
            packets, decisions, begin = own.packets, own.decisions, time.perf_counter()
            while not own.over.all():
                own.step(actions)
            taken = time.perf_counter() - begin
            rates.append(((own.decisions - decisions) / taken, (own.packets - packets) / taken))
        steps, speed = (statistics.median(column) for column in zip(*rates, strict=True))
        print(
            f"n = {n:2}, threads {threads}: {steps / 1e3:6.1f} k decisions/s, "
            f"{speed / 1e6:5.2f} M packets/s ({speed / plain:.2f} of simulate), "
            f"reset to the first decision {reset_s * 1e6:.0f} us"
        )


if __name__ == "__main__":
    main()
