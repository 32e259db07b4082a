"""Which `[[flow]]` entries of a scenario match patterns, and which flows belong to them."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy import _core


def fits(patterns: Sequence[str], name: str) -> bool:
    """Whether a name matches any of these patterns, by the core's rules.

    A pattern may have several alternatives, separated by `|`.
    """
    return any(_core.fits(part, name) for pattern in patterns for part in pattern.split("|"))


def named(scenario: _core.Scenario, patterns: Sequence[str]) -> list[str]:
    """Names of a scenario's entries that match any of these patterns."""
    return [entry for entry in scenario.entries if fits(patterns, entry)]


def governed(scenario: _core.Scenario, patterns: Sequence[str], rows: Sequence[str]) -> list[bool]:
    """Which rows of a table of flows belong to entries that match any of these patterns.

    Names alone do not tell the flow `me_0` of an entry `me` from an entry `me_0`: rows are in the
    order of the entries, and each entry has a known number of them.

    Args:
        scenario: what was run.
        patterns: of entries.
        rows: column `flow` of the table, in its order.

    Returns:
        One switch per row.
    """
    chosen = [fits(patterns, entry) for entry in scenario.entries]
    found: list[bool] = []
    flows = zip(scenario.flows, scenario.owners, scenario.subflows, strict=True)
    for flow, owner, subflows in flows:
        found += [chosen[owner]] * _length(flow, subflows, rows, len(found))
    return found


def learning(scenario: _core.Scenario, patterns: Sequence[str]) -> int:
    """Number of subflows of the entries that match any of these patterns."""
    chosen = [fits(patterns, entry) for entry in scenario.entries]
    pairs = zip(scenario.owners, scenario.subflows, strict=True)
    return sum(subflows for owner, subflows in pairs if chosen[owner])


def _length(flow: str, subflows: int, rows: Sequence[str], at: int) -> int:
    """Number of rows of a flow: one per subflow, for each arrival of a Poisson source."""

    def is_next(name: str, start: int) -> bool:
        names = [name] if subflows == 1 else [f"{name}.{index}" for index in range(subflows)]
        return list(rows[start : start + subflows]) == names

    if is_next(flow, at):
        return subflows
    n_arrivals = 0
    while is_next(f"{flow}_{n_arrivals}", at + n_arrivals * subflows):
        n_arrivals += 1
    return n_arrivals * subflows
