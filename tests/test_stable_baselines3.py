"""Stable-Baselines3's own checker; needs the extra `torch`."""

from __future__ import annotations

import warnings

import pytest

from ackademy.envs.flow import Flow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what it imports warns on its own account
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker", reason="needs torch: an extra"
    )


@pytest.mark.parametrize(("agent_settings", "reward"), [("drinc", "drinc"), ("aurora", "aurora")])
def test_stable_baselines3s_checker_passes_without_a_warning(
    agent_settings: str, reward: str
) -> None:
    checker.check_env(Flow(agent_settings=agent_settings, reward=reward, flat=True))
