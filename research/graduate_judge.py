"""Judges policies by the plan of research/log/graduate.md.

    python research/graduate_judge.py TRACES RESULTS POLICY ...

TRACES holds recorded traces in mahimahi's format, RESULTS the results of `ackademy benchmark POLICY
--development` for each policy and for `flagship`. Prints one line of numbers per policy, beside
those of flagship, own_queue and vegas, and which targets each policy meets.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import ackademy
from ackademy.stats.formulas import jain_index
from ackademy.stats.league_metrics import ParetoPoint, dominates
from ackademy.studies.benchmark import result_file
from ackademy.studies.benchmark.study import NUMBERS, Number, Result

RTT_MS = 40.0
ALONE = """duration_s = 60
[dumbbell]
rtt_ms = 40
bottleneck = { trace = "TRACE", queue = { kind = "drop_tail", packets = 400 } }
[[flow]]
"""
CROWD = """duration_s = 60
[dumbbell]
rtt_ms = {rtt}
bottleneck = {{ rate_mbps = {rate}, queue = {{ kind = "drop_tail", bdp = 1 }} }}
[[flow]]
count = 32
start_spread_s = 2
"""
LINKS = ((10, 40), (20, 100), (50, 20), (50, 80), (100, 40), (200, 120))
BESIDE = ("flagship", "own_queue", "vegas")
KEPT = ("share_cubic", "jain_paths", "late_s")
OUT = ("wins", "jain", "jain_paths", "short")
"""numbers in which a policy must not be worse than the flagship"""
SATELLITE = Number(
    key="satellite", label="use, satellite", about="", where="satellite", of="use",
    statistic="median", unit="%", factor=100.0,
)  # fmt: skip
BY_KEY = {number.key: number for number in (*NUMBERS, SATELLITE)}


def windows(folder: Path, out: Path) -> list[Path]:
    """Whole minutes of the traces, without those that carry next to nothing."""
    found = []
    for file in sorted(folder.iterdir()):
        millis = np.loadtxt(file, dtype=np.int64)
        for begin in range(0, int(millis[-1]) - 60_000 + 1, 60_000):
            own = millis[(millis > begin) & (millis <= begin + 60_000)] - begin
            if len(own) < 100:
                continue
            found.append(out / f"{file.name}-{begin // 60_000}.trace")
            found[-1].write_text("\n".join(map(str, [*own.tolist(), 60_000])), encoding="utf-8")
    return found


def recorded(scheme: str, file: Path) -> ParetoPoint:
    """Use, wait and loss of a scheme on a window."""
    run = ackademy.run(ALONE.replace("TRACE", str(file)), seed=1, cc=scheme)
    flow, link = run.columns["flows"], run.columns["links"]
    return ParetoPoint(
        share=float(link["delivered_bytes"][0]) / float(link["capacity_bytes"][0]),
        wait_ratio=float(flow["rtt_p95_ms"][0]) / RTT_MS - 1.0,
        loss=float(flow["queue_drops"][0]) / float(flow["sent_packets"][0]),
    )


def crowd(scheme: str, case: tuple[int, int, int]) -> float:
    """Jain's index of 32 flows over the second half of a minute."""
    rate, rtt, seed = case
    text = CROWD.format(rate=rate, rtt=rtt)
    series = ackademy.run(text, seed=seed, cc=scheme, sample_interval_ms=30_000).columns
    table = series["flow_series"]
    times = np.asarray(table["time_s"])
    ends = [np.asarray(table["delivered_bytes"])[np.isclose(times, at)] for at in (30.0, 60.0)]
    return float(jain_index((ends[1] - ends[0]).astype(np.float64)))


def numbers(found: Result) -> dict[str, float]:
    """Of the development networks."""
    keys = ("wins", "jain", *KEPT, "share_bbr1", "share_bbr3", "short", "satellite")
    return {key: BY_KEY[key].factor * found.estimate(BY_KEY[key]).value for key in keys}


def is_worse(ours: Result, flagship: Result, key: str) -> bool:
    """Whether a policy is worse on the same networks, beyond the interval of the difference."""
    number = BY_KEY[key]
    pairs = [
        (own.values[ours.name].get(number.of, np.nan), other.values["flagship"].get(number.of))
        for own, other in zip(ours.networks, flagship.networks, strict=True)
        if number.takes(own)
    ]
    apart = np.array([own - (np.nan if other is None else other) for own, other in pairs])
    apart = apart[np.isfinite(apart)] * (-1.0 if number.lower_is_better else 1.0)
    rng = np.random.default_rng(1)
    means = rng.choice(apart, (2000, len(apart))).mean(1)
    return bool(np.percentile(means, 97.5) < 0.0)


def main() -> None:
    """Print the numbers and the verdicts."""
    traces, results, *policies = sys.argv[1:]
    read = [result_file.read(file) for file in sorted(Path(results).glob("*.json"))]
    found = {one.name: one for one in read}
    cases = [(*link, seed) for link in LINKS for seed in (1, 2, 3)]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2) as pool:
        files = windows(Path(traces), Path(folder))
        points, fair = {}, {}
        for scheme in (*BESIDE, *policies):
            points[scheme] = list(pool.map(partial(recorded, scheme), files))
            fair[scheme] = list(pool.map(partial(crowd, scheme), cases))
    for scheme, own in points.items():
        better, worse = (
            sum(dominates(a, b, RTT_MS) for a, b in zip(left, right, strict=True))
            for left, right in ((own, points["vegas"]), (points["vegas"], own))
        )
        half = sum(point.share < 0.5 for point in own)
        use, wait = (
            float(np.median([getattr(p, key) for p in own])) for key in ("share", "wait_ratio")
        )
        share = float(np.mean(fair[scheme]))
        print(
            f"{Path(scheme).name}: of {len(own)} windows "
            f"dominates vegas on {better}, it on {worse}; "
            f"use {use:.3f}, p95 wait {RTT_MS * wait:.0f} ms, below half on {half}; "
            f"Jain of 32 {share:.3f}, at least {min(fair[scheme]):.2f}"
        )
        name = Path(scheme).name
        if name not in found:
            continue
        told = numbers(found[name])
        print("   " + ", ".join(f"{key} {value:.3g}" for key, value in told.items()))
        flagship = found["flagship"]
        met = {
            "vegas": better > worse,
            "half": half == 0,
            "bbr3": told["share_bbr3"] >= 20.0,
            "bbr1": told["share_bbr1"] >= 15.0,
            "crowd": share >= 0.93,
            **{key: not is_worse(found[name], flagship, key) for key in (*KEPT, "satellite")},
        }
        out = [key for key in OUT if is_worse(found[name], flagship, key)]
        missed = [key for key, is_met in met.items() if not is_met]
        print(f"   meets {sum(met.values())} of {len(met)}; misses {missed}")
        print(f"   worse than flagship in {out}")


if __name__ == "__main__":
    main()
