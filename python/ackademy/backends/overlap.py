"""Networks that two sets have in common: what chose a policy is not to judge it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ackademy import _core
from ackademy.toml_table import toml_value

DIGITS = 16
"""of a network's digest"""
DRAWS = 64
"""of a distribution, that are compared: one that draws from a handful of networks is found out"""


def digest(scenario: _core.Scenario) -> str:
    """Names a network: equal ones have equal digests, whatever they are called."""
    text = scenario.canonical().replace(f"name = {toml_value(scenario.name)}\n", "", 1)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def shared(
    scenarios: Iterable[_core.Scenario], source: _core.Scenario | _core.Distribution
) -> list[str]:
    """Names of the scenarios that are the other one, or that a distribution draws, too."""
    if isinstance(source, _core.Distribution):
        others = {
            digest(source.draw(seed, progress)) for seed in range(DRAWS) for progress in (0.0, 1.0)
        }
    else:
        others = {digest(source)}
    return [own.name for own in scenarios if digest(own) in others]
