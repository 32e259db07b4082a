"""Speed of `Episodes`: decisions and packets per second beside `simulate`, and the cost of a reset.

    python tools/episodes.py [threads]

The agent keeps its window (a choice of `+0`), so all that is timed is the simulator, the agent, the
stop for each decision and the way of the arrays through Python. Medians of five runs; with one
thread, of the process's own CPU time.
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
SETTINGS = """
[observation]
features = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
"""
KEEP = 2
RUNS = 5
THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
clock = time.process_time if THREADS == 1 else time.perf_counter


def seconds(work: Callable[[], object]) -> float:
    """Median time of some runs."""
    taken = []
    for _ in range(RUNS):
        begin = clock()
        work()
        taken.append(clock() - begin)
    return statistics.median(taken)


def main() -> None:
    """Print a line for `simulate` and one for each number of simulations."""
    scenario = _core.Scenario.parse(SCENARIO, "bench.toml")
    sent = float(np.sum(_core.simulate(scenario, 1)["flows"]["sent_packets"]))
    plain = sent / seconds(lambda: _core.simulate(scenario, 1))
    print(f"simulate, new_reno: {plain / 1e6:.2f} M packets/s")
    for n in (1, 8, 64):
        own = _core.Episodes(
            scenario, SETTINGS, n=n, agents=1, learners=["*"], seed=1, threads=THREADS
        )
        reset_s = seconds(own.reset) / n
        actions = np.full((n, 1), KEEP)
        # Whole episodes of which the reset's slow start is a small part.
        rates = []
        for _ in range(RUNS):
            own.reset()
            packets, decisions, begin = own.packets, own.decisions, clock()
            while not own.over.all():
                own.step(actions)
            taken = clock() - begin
            rates.append(((own.decisions - decisions) / taken, (own.packets - packets) / taken))
        steps, speed = (statistics.median(column) for column in zip(*rates, strict=True))
        print(
            f"n = {n:2}, threads {THREADS}: {steps / 1e3:6.1f} k decisions/s, "
            f"{speed / 1e6:5.2f} M packets/s ({speed / plain:.2f} of simulate), "
            f"reset to the first decision {reset_s * 1e6:.0f} us"
        )


if __name__ == "__main__":
    main()
