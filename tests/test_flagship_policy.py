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
    scenario = tomllib.loads((ROOT / "data/scenarios/gap/fast.toml").read_text())
    scenario["dumbbell"]["bottleneck"]["jitter_ms"] = jitter_ms
    run = ackademy.run(
        scenario, cc="policy", params={"policy": str(ROOT / "data/policies/flagship")}
    )
    mbps = run.links["delivered_bytes"][0] * 8e-6 / scenario["duration_s"]
    counts = dict(zip(run.counters["name"], run.counters["value"], strict=True))
    assert mbps > 95.0
    # Jitter is no sign of contention, so the law decides.
    assert counts["decisions_uncontended"] == counts["decisions"] > 0


def test_beside_cubic_jitter_that_hides_the_queue_leaves_decisions_to_the_law() -> None:
    policy = {"policy": str(ROOT / "data/policies/flagship")}
    queue = {"kind": "drop_tail", "bdp": 1}
    link = {"rate_mbps": 50, "queue": queue, "jitter_ms": 1.0}
    scenario = {
        "duration_s": 120,
        "dumbbell": {"rtt_ms": 40, "bottleneck": link},
        "flow": [
            {"name": "cubic", "controller": "cubic"},
            {"name": "own", "controller": "policy", "params": policy, "start_s": 5},
        ],
    }
    own = ackademy.run(scenario).counters.filter(pl.col("flow") == "own")
    counts = dict(zip(own["name"], own["value"], strict=True))
    assert counts["decisions_guarded_jitter"] > 0
    assert counts["decisions_uncontended"] < 0.5 * counts["decisions"]


def test_alone_the_policy_is_its_law_to_the_packet() -> None:
    scenario = (ROOT / "data/scenarios/gap/one_bdp.toml").read_text()
    policy = {"policy": str(ROOT / "data/policies/flagship")}
    learned = ackademy.run(scenario, cc="policy", params=policy, sample_interval_ms=20)
    law = ackademy.run(scenario, cc="own_queue", sample_interval_ms=20)
    assert learned.links.equals(law.links)
    assert learned.flow_series.equals(law.flow_series)
    assert learned.flows.drop("controller").equals(law.flows.drop("controller"))
