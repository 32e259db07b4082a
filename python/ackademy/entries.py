"""Which `[[flow]]` entries of a scenario patterns name, and which of its flows are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from ackademy import _core


def named(scenario: _core.Scenario, patterns: Sequence[str]) -> list[str]:
    """Names of a scenario's entries that any of these patterns names."""
    return [e for e in scenario.entries if any(fnmatchcase(e, pattern) for pattern in patterns)]


def governed(scenario: _core.Scenario, patterns: Sequence[str]) -> list[bool]:
    """Which flows are of the entries that any of these patterns names, in the scenario's order.

    They are those that change their controller with the entries: names alone do not tell the flow
    `me_0` of an entry `me` from an entry `me_0`.
    """
    chosen = named(scenario, patterns)
    one, other = (
        scenario.with_controller(cc, {}, chosen).controllers for cc in ("cubic", "new_reno")
    )
    return [a != b for a, b in zip(one, other, strict=True)]
