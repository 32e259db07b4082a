"""What the page on the flagship promises of `policies/flagship`."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
    assert counts["decisions_misled"] > 0
