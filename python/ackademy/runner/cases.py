"""Cases: networks that schemes are run on, and where they come from.

Every study runs schemes on cases: a file, a draw of a distribution, a network of a list. Each run
is a cell, so that nothing runs twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ackademy import _core
from ackademy.backends import Backend, distributions, entries
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import Scheme
from ackademy.files import file_name
from ackademy.runner.cells import Assignment, Cell

EVERY = ("*",)
"""patterns of all `[[flow]]` entries"""


@dataclass(frozen=True, slots=True)
class Case:
    """A network: a scenario, the flows in question, and the class that it belongs to."""

    name: str
    text: str
    origin: str
    """path of the scenario, for errors and for traces beside it"""
    group: str = ""
    flows: tuple[str, ...] = EVERY
    """patterns of the entries that a scheme governs and that numbers are of"""
    seed: int | None = None
    """of its only run; `None`: seeds 1, 2, ..."""

    @property
    def scenario(self) -> _core.Scenario:
        """The scenario, checked.

        Raises:
            ScenarioError: if it is wrong.
        """
        return _parsed(self.text, self.origin)


@dataclass(frozen=True, slots=True)
class Plan:
    """How each scheme is run on each case."""

    runs: int = 5
    """seeds 1, 2, ... of a case without a seed of its own"""
    sample_interval_ms: float = 0.0
    """between rows of the time series of the first seed; 0 for none"""
    overrides: tuple[tuple[str, str], ...] = ()
    """TOML values by dotted path, for every case"""
    backend: Backend = "sim"


def cells(case: Case, scheme: Scheme, plan: Plan) -> tuple[Cell, ...]:
    """The runs of a scheme on a case; without a controller the case's own stay."""
    governs_all = case.flows == EVERY or scheme.controller is None
    assignments = () if governs_all else [
        Assignment(pattern, str(scheme.controller), scheme.params) for pattern in case.flows
    ]  # fmt: skip
    seeds = range(1, plan.runs + 1) if case.seed is None else [case.seed]
    return tuple(
        Cell(
            text=case.text,
            origin=case.origin,
            controller=scheme.controller if governs_all else None,
            seed=seed,
            overrides=plan.overrides,
            params=scheme.params if governs_all else (),
            assignments=tuple(assignments),
            sample_interval_ms=plan.sample_interval_ms if seed == 1 else 0.0,
            backend=plan.backend,
        )
        for seed in seeds
    )


def of_file(path: Path) -> Case:
    """The case of a scenario file.

    Raises:
        ScenarioError: if it cannot be read.
    """
    return Case(path.stem, read_text(path), str(path))


def of_scenario(
    scenario: _core.Scenario, folder: Path, flows: Iterable[str], seed: int, group: str = ""
) -> Case:
    """The case of a scenario that is no file of its own.

    Args:
        scenario: what to run.
        folder: where traces that it needs are put, as a file beside its own.
        flows: patterns of entries; those that fit none of its entries are left out.
        seed: of the run.
        group: of the case.
    """
    text, traces = scenario.portable()
    origin = folder / f"{file_name(scenario.name)}.toml"
    if traces:
        distributions.save(scenario, origin)
    own = tuple(pattern for pattern in flows if entries.named(scenario, [pattern]))
    return Case(scenario.name, text, str(origin), group, own, seed)


def drawn(
    distribution: _core.Distribution, seed: int, count: int, folder: Path, progress: float = 1.0
) -> list[Case]:
    """Cases of consecutive seeds; each seed draws a scenario and seeds its run.

    A group is a scenario of the distribution.
    """
    return [
        of_scenario(scenario, folder, distribution.learners, own, scenario.name.rpartition("-")[0])
        for own, scenario in distributions.drawn(distribution, seed, count, progress)
    ]


def named_apart(cases: Sequence[Case], words: Sequence[str] = ()) -> list[Case]:
    """The cases, no two of one name: it identifies rows.

    Args:
        cases: in the order of the rows.
        words: of each, what stands for its name where others have the same; the name itself by
            default. Equal ones are numbered.
    """
    names = [case.name for case in cases]
    longer = [
        word if names.count(name) > 1 else name
        for name, word in zip(names, words or names, strict=True)
    ]
    found: list[str] = []
    for word in longer:
        numbers = itertools.count(1)
        name = word
        while name in found or (name == word and longer.count(word) > 1):
            name = f"{word} {next(numbers)}"
        found.append(name)
    return [replace(case, name=name) for case, name in zip(cases, found, strict=True)]


@cache
def _parsed(text: str, origin: str) -> _core.Scenario:
    return _core.Scenario.parse(text, origin)
