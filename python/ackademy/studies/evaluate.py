"""What a frozen policy achieves where it was trained, or on any scenario, beside others."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from ackademy import _core, folders, lookup
from ackademy.backends import distributions, entries
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.errors import AckademyError, ExperimentError, ScenarioError
from ackademy.runner import cases, experiments
from ackademy.runner.cases import Case
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, t_interval
from ackademy.stats.scores import Score
from ackademy.toml_table import TomlTable

FIRST_SEED = 1_000_001
"""of the runs: far from the small seeds that people plot with; episodes of a training have seeds of
64 random bits"""
COLUMNS = (
    "throughput_mbps",
    "share",
    "delay_ms",
    "rtt_ratio",
    "loss_ratio",
    "jain",
    "fallbacks",
    "utility",
)
"""numbers of a score that are shown, in order"""


@dataclass(frozen=True, slots=True)
class Source:
    """What a policy is tried on."""

    origin: str
    """the file of a distribution or of a scenario"""
    about: str
    digest: str
    """of a distribution; empty for a scenario"""
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """A case and the scores of the schemes that have run on it."""

    case: Case
    scores: Mapping[str, Score]
    """by scheme"""


@dataclass(frozen=True, slots=True)
class Result:
    """One scheme on all cases, or on those of one scenario of the distribution."""

    scenario: str
    """empty for all together"""
    scheme: str
    scores: tuple[Score, ...]
    estimates: dict[str, Interval]
    """mean over runs, by column"""
    gain: Interval
    """utility of the policy minus this scheme's, run by run"""

    def values(self, column: str) -> FloatArray:
        """Of one column, by run."""
        return np.array([getattr(score, column) for score in self.scores], np.float64)


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
    found = tuple(Case(scenario, own, (flows,)) for own in range(seed, seed + runs))
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


def scored(source: Source, compared: Sequence[EvaluatedScheme], folder: Path) -> list[Ran]:
    """Every case with the scores of the runs that are there, each cell read once."""
    found = []
    for case in source.cases:
        own = {scheme.name: cases.cell(case, scheme, folder) for scheme in compared}
        scores = {
            name: cases.score(case, cell, folder)
            for name, cell in own.items()
            if experiments.is_finished(folder, cell)
        }
        found.append(Ran(case, scores))
    return found


def results(
    source: Source, compared: Sequence[EvaluatedScheme], ran: Sequence[Ran]
) -> list[Result]:
    """All runs together, then by scenario of the distribution; the policy is the first scheme.

    A case counts if every scheme has run on it.
    """
    scores: dict[str, dict[str, list[Score]]] = {}
    for own in ran:
        if len(own.scores) < len(compared):
            continue
        for name, score in own.scores.items():
            for group in ("", kind_of(own.case, source)):
                scores.setdefault(group, {}).setdefault(name, []).append(score)
    several = len(scores) > 2
    return [
        _result(group, name, own, by_name[compared[0].name])
        for group, by_name in scores.items()
        for name, own in by_name.items()
        if not group or several
    ]


def kind_of(case: Case, source: Source) -> str:
    """Which scenario of the distribution a case was drawn from."""
    return case.name.rpartition("-")[0] if source.digest else case.name


def csv(ran: Sequence[Ran]) -> str:
    """One row per run and scheme."""
    rows = [
        {"scenario": own.case.name, "seed": own.case.seed, "entrant": name, **asdict(score)}
        for own in ran
        for name, score in own.scores.items()
    ]
    buffer = io.StringIO()
    pl.DataFrame(rows).write_csv(buffer, float_precision=6)
    return buffer.getvalue()


def as_json(
    source: Source, compared: Sequence[EvaluatedScheme], found: Sequence[Result], command: str
) -> str:
    """What the report shows, for programs."""
    described = {
        "command": command,
        "compared": {own.name: own.words for own in compared},
        "tried_on": {"file": source.origin, "digest": source.digest},
        "results": [
            {
                "scenario": own.scenario,
                "entrant": own.scheme,
                "runs": len(own.scores),
                **{column: _bounds(own.estimates[column]) for column in COLUMNS},
                "gain": _bounds(own.gain),
            }
            for own in found
        ],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _bounds(interval: Interval) -> list[float | None]:
    ends = (interval.value, interval.low, interval.high)
    return [round(end, 6) if math.isfinite(end) else None for end in ends]


def _result(group: str, name: str, own: list[Score], policy: list[Score]) -> Result:
    def mean(column: str) -> Interval:
        values = np.array([getattr(score, column) for score in own], np.float64)
        values = values[np.isfinite(values)]
        return t_interval(values) if values.size else Interval(math.nan, math.nan, math.nan)

    gains = np.array([a.utility - b.utility for a, b in zip(policy, own, strict=True)])
    return Result(group, name, tuple(own), {c: mean(c) for c in COLUMNS}, t_interval(gains))


def _found(named: str, kind: str, folder: Path) -> Path:
    """The file that a policy was trained on: here, or in a folder above the policy's."""
    near = [root / name for root in folder.resolve().parents for name in (named, f"{kind}/{named}")]
    shipped = folders.here_or_above(f"{kind}/{named}") if not Path(named).is_absolute() else []
    for path in (Path(named), Path(kind) / named, *near, *shipped):
        if path.is_file():
            return path
    raise AckademyError(
        f"{folder / folders.POLICY_FILE}: made.trained_on = {named!r}: allowed: a file here or in "
        f"{kind}; or give --distribution or --scenario"
    )
