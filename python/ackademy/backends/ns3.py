"""The backend `ns3`: a scenario over ns-3's TCP, our controllers or its own in it.

The program `ackademy-ns3`, which `make ns3` builds, reads a plan of links and flows and prints the
simulator's tables as JSON. It contains ns-3, so it is no part of this package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy import _core
from ackademy.backends import printed
from ackademy.backends.programs import ackademy_ns3
from ackademy.backends.tables import Tables
from ackademy.errors import Ns3Error

NO_COUNTERS: Mapping[str, list[str]] = {"flow": [], "name": [], "value": []}
"""ns-3's program has none"""


def simulate(scenario: _core.Scenario, seed: int, sample_interval_ms: float) -> Tables:
    """Run once in ns-3, in virtual time.

    Raises:
        Ns3Error: if the program is missing, fails, or prints what is not a result.
        ScenarioError: if the scenario asks for what ns-3 cannot do.
    """
    plan = _core.ns3_plan(scenario, seed, sample_interval_ms=sample_interval_ms)
    beside = Path(scenario.origin).parent  # what names of policies are relative to
    folder = beside if beside.is_dir() else None
    out = ackademy_ns3.call([], plan, scenario.origin, folder=folder)
    tables = dict(printed.report(out, ackademy_ns3)) | {"counters": NO_COUNTERS}
    names = {
        "flow": scenario.flows,
        "connection": scenario.flows,
        "controller": scenario.controllers,
        "link": scenario.links,
    }
    named = {name: _named(table, names) for name, table in tables.items()}
    return printed.tables(named, ackademy_ns3)


def identity() -> tuple[str, ...]:
    """What a result depends on besides its scenario: the program, which contains the core.

    Raises:
        Ns3Error: if there is none.
    """
    return (ackademy_ns3.content_hash(),)


def _named(table: object, names: Mapping[str, Sequence[str]]) -> object:
    """A table with names in place of the program's numbers of flows and links."""
    if not isinstance(table, dict):
        return table
    try:
        return {
            column: [names[column][number] for number in values] if column in names else values
            for column, values in table.items()
        }
    except (TypeError, IndexError) as error:
        raise Ns3Error(
            f"ackademy-ns3 printed a wrong number of a flow or a link: {error}"
        ) from error
