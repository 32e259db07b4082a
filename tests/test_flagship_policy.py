"""What the page on the flagship promises of `policies/flagship`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl
import pytest

import ackademy

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("jitter_ms", [0.2, 0.5, 1.0])
def test_the_policy_keeps_a_fast_link_with_jitter(jitter_ms: float) -> None:
    scenario = tomllib.loads((ROOT / "scenarios/gap/fast.toml").read_text())
    scenario["dumbbell"]["bottleneck"]["jitter_ms"] = jitter_ms
    run = ackademy.run(scenario, cc="policy", params={"policy": str(ROOT / "policies/flagship")})
    mbps = run.links["delivered_bytes"][0] * 8e-6 / scenario["duration_s"]
    counts = dict(zip(run.counters["name"], run.counters["value"], strict=True))
    assert mbps > 95.0
    # Jitter is no sign of contention, so the law decides.
    assert counts["decisions_calm"] == counts["decisions"] > 0


def beside_cubic(seed: int, **bottleneck: float) -> tuple[float, dict[str, float]]:
    """The policy's part of the last minute of two beside CUBIC, which came first; its counters."""
    policy = {"policy": str(ROOT / "policies/flagship")}
    flows = [
        {"name": "cubic", "controller": "cubic", "start_spread_s": 0.5},
        {"name": "own", "controller": "policy", "params": policy, "start_s": 5},
    ]
    queue = {"kind": "drop_tail", "bdp": 1}
    link = {"rate_mbps": 50, "queue": queue, **bottleneck}
    scenario = {
        "duration_s": 120,
        "sample_interval_ms": 60_000,
        "dumbbell": {"rtt_ms": 40, "bottleneck": link},
        "flow": flows,
    }
    run = ackademy.run(scenario, seed=seed)
    delivered, middle = pl.col("delivered_bytes"), pl.col("time_s") <= 60.0
    gained = delivered.last() - delivered.filter(middle).last()
    late = dict(run.flow_series.group_by("flow").agg(gained).iter_rows())
    own = run.counters.filter(pl.col("flow") == "own")
    return late["own"] / sum(late.values()), dict(zip(own["name"], own["value"], strict=True))


def test_beside_cubic_in_one_product_of_buffer_the_policy_has_40_to_60_percent() -> None:
    shares = [beside_cubic(seed)[0] for seed in range(1, 6)]
    assert 0.4 < sum(shares) / len(shares) < 0.6, shares


def test_beside_cubic_jitter_that_hides_the_queue_leaves_decisions_to_the_law() -> None:
    counts = beside_cubic(1, jitter_ms=1.0)[1]
    assert counts["decisions_misled"] > 0
    assert counts["decisions_calm"] < 0.5 * counts["decisions"]


def test_alone_the_policy_is_its_law_to_the_packet() -> None:
    scenario = (ROOT / "scenarios/gap/one_bdp.toml").read_text()
    policy = {"policy": str(ROOT / "policies/flagship")}
    learned = ackademy.run(scenario, cc="policy", params=policy, sample_interval_ms=20)
    law = ackademy.run(scenario, cc="own_queue", sample_interval_ms=20)
    assert learned.links.equals(law.links)
    assert learned.flow_series.equals(law.flow_series)
    assert learned.flows.drop("controller").equals(law.flows.drop("controller"))
