"""What a frozen policy achieves where it was trained, or on any scenario, beside others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ackademy import _core, folders, lookup
from ackademy.backends import distributions, entries
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.errors import AckademyError, ExperimentError, ScenarioError
from ackademy.runner import cases
from ackademy.runner.cases import Case
from ackademy.runner.cells import Cell
from ackademy.studies.scored import Scored, Summary, summaries
from ackademy.toml_table import TomlTable

FIRST_SEED = 1_000_001
"""of the runs: far from the small seeds that people plot with; episodes of a training have seeds of
64 random bits"""


@dataclass(frozen=True, slots=True)
class Source:
    """What a policy is tried on."""

    origin: str
    """the file of a distribution or of a scenario"""
    about: str
    digest: str
    """of a distribution; empty for a scenario"""
    cases: tuple[Case, ...]


def of_distribution(path: Path, seed: int, runs: int, progress: float = 1.0) -> Source:
    """Scenarios drawn from a file, one per run.

    Raises:
        ScenarioError: if it cannot be read or is wrong.
    """
    read = distributions.read(path)
    path = lookup.find(path, "distribution")
    found = cases.drawn(read, seed, runs, progress)
    return Source(str(path), " ".join(read.about.split()), read.digest, tuple(found))


def of_scenario(path: Path, seed: int, runs: int, flows: str = "*") -> Source:
    """One scenario with a seed per run, the policy on the flows that a glob names.

    Raises:
        ScenarioError: if it cannot be read, is wrong, or has no such flow.
    """
    path = lookup.find(path, "scenario", ScenarioError)
    scenario = _core.Scenario.parse(read_text(path), str(path))
    if not entries.named(scenario, [flows]):
        allowed = ", ".join(scenario.entries)
        raise ExperimentError(f"{path}: flow {flows!r}: allowed: {allowed}")
    found = tuple(Case(scenario, own, (flows,)) for own in distributions.seeds(seed, runs))
    return Source(str(path), "", "", found)


def trained_on(folder: Path, seed: int, runs: int) -> Source:
    """What the policy in a folder says that it was trained on.

    Raises:
        AckademyError: if it does not say, or what it names is not there.
    """
    made = TomlTable.read(folder / folders.POLICY_FILE).table("made")
    named, digest = made.values.get("trained_on"), made.values.get("distribution_digest", "")
    if not isinstance(named, str) or not named:
        allowed = "--distribution FILE or --scenario FILE, since [made] has no trained_on"
        raise AckademyError(f"{folder / folders.POLICY_FILE}: allowed: {allowed}")
    path = _found(named, "distributions" if digest else "scenarios", folder)
    source = of_distribution(path, seed, runs) if digest else of_scenario(path, seed, runs)
    learners = tuple(made.strings("learners", []))
    if not learners:
        return source
    found = tuple(replace(case, learners=learners) for case in source.cases)
    if not any(entries.named(case.scenario, learners) for case in found):
        raise made.error("learners", list(learners), f"flows of {path}")
    return replace(source, cases=found)


def has_changed(folder: Path, source: Source) -> bool:
    """Whether a distribution that a policy was trained on is another one by now."""
    described = folder / folders.POLICY_FILE
    made = TomlTable.read(described).table("made").values if described.is_file() else {}
    known = made.get("distribution_digest", "")
    is_same_file = made.get("trained_on") == Path(source.origin).name
    return bool(known and source.digest and is_same_file and known != source.digest)


def cells(source: Source, compared: Sequence[EvaluatedScheme], folder: Path) -> list[Cell]:
    """Every run."""
    return [cases.cell(case, own, folder) for case in source.cases for own in compared]


def results(
    source: Source, compared: Sequence[EvaluatedScheme], found: Sequence[Scored]
) -> list[Summary]:
    """All runs together, then by scenario of the distribution; the policy is the first scheme.

    A case counts if every scheme has run on it.
    """
    groups: dict[str, list[Scored]] = {}
    for own in found:
        if len(own.scores) == len(compared):
            for group in ("", kind_of(own.case, source)):
                groups.setdefault(group, []).append(own)
    several = len(groups) > 2
    return [
        summary
        for group, members in groups.items()
        if not group or several
        for summary in summaries(group, members, compared)
    ]


def kind_of(case: Case, source: Source) -> str:
    """Which scenario of the distribution a case was drawn from."""
    return case.name.rpartition("-")[0] if source.digest else case.name


def _found(named: str, kind: str, folder: Path) -> Path:
    """The file that a policy was trained on: here, or in a folder above the policy's."""
    near = [root / name for root in folder.resolve().parents for name in (named, f"{kind}/{named}")]
    shipped = folders.here_or_above(f"{kind}/{named}") if not Path(named).is_absolute() else []
    for path in (Path(named), Path(kind) / named, *near, *shipped):
        if folders.is_file(path):
            return path
    raise AckademyError(
        f"{folder / folders.POLICY_FILE}: made.trained_on = {named!r}: allowed: a file here or in "
        f"{kind}; or give --distribution or --scenario"
    )
