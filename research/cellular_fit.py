"""Fits the generator of cellular traces in grants to recorded traces.

    python research/cellular_fit.py FOLDER [NAME ...]
    python research/cellular_fit.py FOLDER --numbers > tests/files/recorded_cellular.json

FOLDER holds the recorded traces of `RECORDED`. For each, an evolution strategy searches the
generator's parameters for the smallest distance between generated and recorded traces: first by the
statistics of `statistics`, then also by what controllers do on minutes of both (`responses`). The
lines are those of `FITTED` in crates/core/src/sim/grants.rs. With `--numbers` it prints what the
recordings are compared by, for the tests. research/log/cellular.md has the results.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import ackademy
from ackademy import _core

Floats = npt.NDArray[np.float64]
Millis = npt.NDArray[np.int64]

RECORDED = {
    "att_lte_down": "ATT-LTE-driving.down",
    "att_lte_up": "ATT-LTE-driving.up",
    "tmobile_umts_down": "TMobile-UMTS-driving.down",
    "verizon_lte_down": "Verizon-LTE-short.down",
    "verizon_lte_up": "Verizon-LTE-short.up",
    "nyc_3g_subway": "nyc-downlink-3g-with-cross-subway",
    "nyc_3g_street": "nyc-downlink-3g-with-cross-times-2",
    "nyc_4g_subway": "nyc-downlink-4g-with-cross-subway.pps",
}
"""files by the names of the fits"""
BOUNDS = {
    "level": (-2.0, 2.0, 0.0),
    "spread": (0.2, 4.0, 1.0),
    "fast": (0.0, 0.5, 0.1),
    "slow": (0.0, 0.9, 0.4),
    "grant_ms": (1.0, 16.0, 5.0),
    "grant_packets": (1.0, 6.0, 2.5),
    "fades_per_s": (0.0, 8.0, 1.0),
    "fade_ms": (8.0, 60.0, 14.0),
    "fade_tail": (0.6, 2.5, 1.2),
}
"""smallest, largest and first value of each parameter"""
WINDOW_MS = 60_000
SERVED = (3, 10, 30, 100, 400)
"""packets whose service is timed"""
LONGEST_MS = 20_000.0
"""a longer service counts as this"""
GENERATED_S = 900
CONTROLLERS = ("cubic", "vegas", "bbr3", "copa")
SCENARIO = """duration_s = 60
[dumbbell]
rtt_ms = 40
bottleneck = { trace = "TRACE", queue = { kind = "drop_tail", packets = 400 } }
[[flow]]
"""


def statistics(millis: Millis) -> dict[str, float]:
    """What a trace is compared by, scaled so that equal differences count equally.

    Logarithms of the time that the next 3 to 400 packets take and those that BBR keeps in flight
    (median and 95th percentile of each minute, mean over minutes), of gaps per second by length and
    of packets per grant; quantiles of the rate in 100 ms, relative to its mean; its coefficients of
    variation over 10 ms to 10 s and its autocorrelation at 10 ms to 10 s.
    """
    end = int(millis[-1])
    counts = np.bincount(millis, minlength=end + 1)[:end]
    grants = np.flatnonzero(counts)
    gaps = np.diff(grants)
    found = {"packets per grant": 0.6 * np.log(counts[grants].mean())}
    for ms in (5, 10, 20, 40, 80, 160, 320):
        found[f"gaps > {ms} ms"] = 0.6 * np.log(((gaps > ms).sum() + 1) / end * 1e3)
    for ms in (10, 100, 1000, 10_000):
        rates = counts[: end // ms * ms].reshape(-1, ms).sum(1) / ms / counts.mean()
        found[f"cv {ms} ms"] = 1.2 * rates.std()
        for lag in {10: (1,), 100: (1, 10, 100)}.get(ms, ()):
            found[f"autocorrelation {ms * lag} ms"] = 1.2 * _correlation(rates, lag)
        if ms == 100:
            for level in (5, 10, 25, 50, 75, 90, 95):
                found[f"rate {level} %"] = 0.6 * np.percentile(rates, level)
    return {**found, **_services(millis, counts)}


def _correlation(values: Floats, lag: int) -> float:
    away = values - values.mean()
    return float((away[lag:] * away[:-lag]).mean() / away.var())


def _services(millis: Millis, counts: npt.NDArray[np.int64]) -> dict[str, float]:
    """How long the next packets take, seen from each packet."""
    found = {}
    for packets in SERVED:
        waits = millis[packets:] - millis[:-packets]
        middle, high = _quantiles(waits, millis[:-packets])
        found[f"{packets} packets 50 %"] = 1.5 * np.log(middle)
        found[f"{packets} packets 95 %"] = 2.5 * np.log(high)
    rates = counts[: len(counts) // 100 * 100].reshape(-1, 100).sum(1)
    begins = millis[millis < len(rates) * 100]
    for seconds in (2, 10):
        padded = np.concatenate([np.zeros(10 * seconds - 1), rates])
        recent = np.lib.stride_tricks.sliding_window_view(padded, 10 * seconds).max(1)
        # Twice the largest recent rate times 40 ms: what BBR keeps in flight.
        flight = np.maximum(4, 0.8 * recent).astype(int)[begins // 100]
        last = np.minimum(np.arange(len(begins)) + flight, len(millis) - 1)
        _, high = _quantiles(millis[last] - begins, begins)
        found[f"flight of {seconds} s 95 %"] = 4.0 * np.log(high)
    return found


def _quantiles(waits: Millis, begins: Millis) -> tuple[float, float]:
    """Median and 95th percentile of each minute, mean over minutes."""
    waits, minutes = np.minimum(waits, LONGEST_MS), begins // WINDOW_MS
    own = [waits[minutes == minute] for minute in range(int(begins[-1]) // WINDOW_MS)]
    found = [np.percentile(each, [50, 95]) for each in own if len(each) >= 100]
    middle, high = np.mean(found, axis=0)
    return float(middle), float(high)


def windows(millis: Millis) -> Iterator[Millis]:
    """Whole minutes of a trace, without those that carry next to nothing."""
    for begin in range(0, int(millis[-1]) - WINDOW_MS + 1, WINDOW_MS):
        own = millis[(millis > begin) & (millis <= begin + WINDOW_MS)] - begin
        if len(own) >= 100:
            yield np.append(own, WINDOW_MS)


def responses(millis: Millis) -> Floats:
    """Use and 95th percentile of the wait in ms of each controller on the minutes of a trace.

    Returns:
        shape (minutes, controllers, 2)
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for own in windows(millis):
            file = Path(folder) / "own.trace"
            file.write_text("\n".join(map(str, own.tolist())), encoding="utf-8")
            rows.append([_response(SCENARIO.replace("TRACE", str(file)), cc) for cc in CONTROLLERS])
    return np.array(rows)


def _response(scenario: str, controller: str) -> tuple[float, float]:
    run = ackademy.run(scenario, seed=1, cc=controller)
    flow, link = run.columns["flows"], run.columns["links"]
    use = float(link["delivered_bytes"][0]) / float(link["capacity_bytes"][0])
    return use, float(flow["rtt_p95_ms"][0]) - float(flow["base_rtt_ms"][0])


def generated(name: str, values: dict[str, float], seconds: float, seed: int) -> Millis:
    """The opportunities of a generated trace."""
    text = _core.generate_grants(seconds, name, values, seed)
    return np.fromstring(text, dtype=np.int64, sep="\n")


def search(
    distance: Callable[[Floats, int], float], centre: Floats, sd: float, sizes: tuple[int, int]
) -> Floats:
    """A point of small distance in the unit cube, by an evolution strategy.

    Args:
        distance: of a point, with a seed.
        centre: where the search begins.
        sd: of the first candidates.
        sizes: generations, candidates of each.
    """
    rng = np.random.default_rng(0)
    spread = np.eye(len(centre)) * sd**2
    for generation in range(sizes[0]):
        points = np.clip(rng.multivariate_normal(centre, spread, size=sizes[1]), 0, 1)
        order = np.argsort([distance(point, generation % 3) for point in points])
        best = points[order[: sizes[1] // 3]]
        away = best - centre
        centre = best.mean(0)
        spread = 0.7 * spread + 0.3 * (away.T @ away / len(best)) + 1e-4 * np.eye(len(centre))
    return centre


def fit(name: str, millis: Millis) -> tuple[dict[str, float], float]:
    """The parameters that come nearest to a recording, and their distance over other seeds."""
    low, high, first = np.array(list(BOUNDS.values())).T
    mean_mbps = len(millis) * 12.032 / float(millis[-1])
    aim, wanted = statistics(millis), responses(millis).mean(0)

    def values(point: Floats) -> dict[str, float]:
        own = dict(zip(BOUNDS, (low + (high - low) * point).tolist(), strict=True))
        return {**own, "slow": min(own["slow"], 1 - own["fast"]), "mean_mbps": mean_mbps}

    def by_statistics(point: Floats, seed: int) -> float:
        found = statistics(generated(name, values(point), GENERATED_S, seed))
        return sum((found[key] - aim[key]) ** 2 for key in aim)

    def by_both(point: Floats, seed: int) -> float:
        found = responses(generated(name, values(point), GENERATED_S, seed)).mean(0)
        uses, waits = (found - wanted)[:, 0], np.log(found / wanted)[:, 1]
        away = 500 * (uses**2).sum() + 10 * (waits**2).sum()
        return 0.5 * by_statistics(point, seed) + float(away)

    centre = search(by_statistics, (first - low) / (high - low), 0.22, (30, 14))
    centre = search(by_both, centre, 0.08, (10, 12))
    return values(centre), float(np.mean([by_both(centre, seed) for seed in (100, 101)]))


def numbers_of(millis: Millis) -> dict[str, object]:
    """What a recording is compared by."""
    found = responses(millis)
    return {
        "minutes": len(found),
        "statistics": {key: round(float(value), 4) for key, value in statistics(millis).items()},
        "responses": np.round(found.mean(0), 4).tolist(),
    }


def main() -> None:
    """Fit every recording, or those named; or print the numbers of all."""
    folder, *names = sys.argv[1:]
    if names == ["--numbers"]:
        files = {name: Path(folder) / file for name, file in RECORDED.items()}
        found = {name: numbers_of(np.loadtxt(file, np.int64)) for name, file in files.items()}
        print(json.dumps(found, indent=1))
        return
    for name in names or RECORDED:
        millis = np.loadtxt(Path(folder) / RECORDED[name], dtype=np.int64)
        values, distance = fit(name, millis)
        numbers = ", ".join(f"{values[field]:.3f}" for field in BOUNDS)
        mean = values["mean_mbps"]
        print(f'    ("{name}", {mean:.3f}, [{numbers}]), // {distance:.2f}', flush=True)


if __name__ == "__main__":
    main()
