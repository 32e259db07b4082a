"""Sets controllers side by side: every scenario under every controller, with intervals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ackademy.backends import Backend
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import AS_WRITTEN, Scheme
from ackademy.runner.cells import Cell
from ackademy.stats.results import Name
from ackademy.studies.measured import Row

STUDY = "compare"
SAMPLE_MS = 200.0
"""between rows of the time series that the report draws"""
METRICS = (
    "throughput_mean_mbps",
    "goodput_mean_mbps",
    "delay_mean_ms",
    "loss",
    "utilisation",
    "jain_throughput",
    "m_e",
)
"""in order"""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario to compare schemes on."""

    name: str
    text: str
    origin: str
    """its path, for errors and for traces beside it"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How each scheme is run on each case."""

    runs: int = 5
    """seeds 1, 2, ..."""
    sample_interval_ms: float = 0.0
    """between rows of the time series of the first seed; 0 for none"""
    overrides: tuple[tuple[str, str], ...] = ()
    """TOML values by dotted path, for every case"""
    backend: Backend = "sim"


def case_of(path: Path) -> Case:
    """The case of a scenario file.

    Raises:
        ScenarioError: if it cannot be read.
    """
    return Case(path.stem, read_text(path), str(path))


def named_apart(cases: Sequence[Case], words: Sequence[str] = ()) -> list[Case]:
    """The cases, no two of one name: rows are told apart by it.

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


def rows(cases: Sequence[Case], schemes: Sequence[Scheme], plan: Plan = Plan()) -> list[Row]:
    """Every case under every scheme, or under its own controllers if there is no scheme."""
    return [
        Row(
            Name(case.name, scheme.label, backend=plan.backend),
            tuple(_cell(case, scheme, plan, seed) for seed in range(1, plan.runs + 1)),
            METRICS,
        )
        for case in cases
        for scheme in schemes or [Scheme(AS_WRITTEN, None)]
    ]


def _cell(case: Case, scheme: Scheme, plan: Plan, seed: int) -> Cell:
    return Cell(
        text=case.text,
        origin=case.origin,
        controller=scheme.controller,
        seed=seed,
        overrides=plan.overrides,
        params=scheme.params,
        sample_interval_ms=plan.sample_interval_ms if seed == 1 else 0.0,
        backend=plan.backend,
    )
