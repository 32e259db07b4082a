"""Which `[[flow]]` entries of a scenario patterns name, and which of its flows are theirs."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy import _core


def fits(patterns: Sequence[str], name: str) -> bool:
    """Whether any of these patterns is this name, as the core matches them.

    A pattern may be several, separated by `|`.
    """
    return any(_core.fits(part, name) for pattern in patterns for part in pattern.split("|"))


def named(scenario: _core.Scenario, patterns: Sequence[str]) -> list[str]:
    """Names of a scenario's entries that any of these patterns names."""
    return [entry for entry in scenario.entries if fits(patterns, entry)]


def governed(scenario: _core.Scenario, patterns: Sequence[str], rows: Sequence[str]) -> list[bool]:
    """Which rows of a table of flows are of the entries that any of these patterns names.

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
    """How many subflows the entries have that any of these patterns names."""
    chosen = [fits(patterns, entry) for entry in scenario.entries]
    pairs = zip(scenario.owners, scenario.subflows, strict=True)
    return sum(subflows for owner, subflows in pairs if chosen[owner])


def _length(flow: str, subflows: int, rows: Sequence[str], at: int) -> int:
    """Rows of a flow from a place on: one per subflow, and for Poisson arrivals, those of each."""

    def is_next(name: str, start: int) -> bool:
        names = [name] if subflows == 1 else [f"{name}.{index}" for index in range(subflows)]
        return list(rows[start : start + subflows]) == names

    if is_next(flow, at):
        return subflows
    n_arrivals = 0
    while is_next(f"{flow}_{n_arrivals}", at + n_arrivals * subflows):
        n_arrivals += 1
    return n_arrivals * subflows
