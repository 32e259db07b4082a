"""Cells of a scorecard, and what their results say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ackademy import _core
from ackademy.backends import REAL_TIME, Backend, entries
from ackademy.backends.schemes import Scheme, parse
from ackademy.errors import AckademyError, ExperimentError
from ackademy.lazy import pl
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.runner.experiments import Failure
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, mean
from ackademy.stats.network_metrics import MEASURES
from ackademy.stats.network_runs import Ran, RunData
from ackademy.stats.run_tables import RunTables
from ackademy.studies.scorecard.card import Card, Check, Limits, Part, Row
from ackademy.studies.scorecard.grid import Network, absent, networks, text
from ackademy.studies.scorecard.marks import Mark, Values, aggregate, marked, paired, worst_of

TABLES = ("summary", "links", "counters", "flow_series", "link_series")
"""that measures read"""
RUN_S, MBIT_S = 0.020, 1.2e-5
"""seconds of a core that a run takes with its measures, and each megabit that its link could carry:
of 170 runs of the full card, and of what a whole one takes besides"""
OWN = "own*"
"""pattern of the flows that the tested controller governs"""
OWN_ENTRY = '"name" = "own'
"""in the text of a scenario that has one"""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is tested, beside whom, and how much of it."""

    card: Card
    scheme: Scheme
    rivals: tuple[Scheme, ...]
    limits: Limits
    backend: Backend = "sim"

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """The tested one and its rivals, each once."""
        others = [own for own in self.rivals if own.label != self.scheme.label]
        return (self.scheme, *others)

    @property
    def title(self) -> str:
        """Who is tested; of a quick card also that it is one, and of how many seeds."""
        quick = self.limits.quick_words
        return f"{self.scheme.label} ({quick})" if quick else self.scheme.label


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part with its cells."""

    part: Part
    networks: tuple[Network, ...]
    cells: Mapping[tuple[str, int, int, str], Cell]
    """by scheme, index of the network, seed and variant"""
    fault: str = ""
    """why there are none"""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A row with its cells."""

    row: Row
    parts: tuple[PlannedPart, ...]

    @property
    def cells(self) -> list[Cell]:
        """Of all parts."""
        return [cell for part in self.parts for cell in part.cells.values()]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check with what was measured."""

    part: Part
    networks: tuple[Network, ...]
    check: Check
    values: Values
    mark: Mark
    differences: Mapping[str, Interval]
    """by rival: the tested scheme's value minus the rival's"""

    def value(self, scheme: str) -> float:
        """Mean over networks."""
        own = self.values.of(scheme)
        known = own[np.isfinite(own)]
        return mean(known) if known.size else math.nan

    def worst(self, scheme: str) -> float:
        """On the worst network."""
        lower = MEASURES[self.check.measure].lower_is_better
        return aggregate(self.values.of(scheme), "worst", lower_is_better=lower)


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row with its mark."""

    row: Row
    checks: tuple[CheckResult, ...]
    mark: Mark
    notes: tuple[str, ...] = ()
    """what could not be run"""

    @property
    def decisive(self) -> CheckResult | None:
        """The first check with the row's mark: of a row that fails the first that fails."""
        decided = (own for own in self.checks if own.mark.verdict == self.mark.verdict)
        return next(decided, self.checks[0] if self.checks else None)


def rivals(words: Sequence[str]) -> tuple[list[Scheme], list[str]]:
    """The rivals that there are, and the names of those that are not registered."""
    known = [word for word in words if _is_known(word)]
    return parse(",".join(known)), [word for word in words if word not in known]


def planned(plan: Plan) -> list[PlannedRow]:
    """All cells of all rows.

    Raises:
        ExperimentError: if a scenario of the card is wrong, whatever controller is tested.
    """
    return [
        PlannedRow(row, tuple(_planned_part(plan, part) for part in row.parts))
        for row in plan.card.rows
    ]


def expected_s(plan: Plan, rows: Sequence[PlannedRow], missing: Sequence[Cell]) -> float:
    """How long runs take on one core; on the kernel, which runs in real time, one after the other.

    Args:
        plan: of the card.
        rows: its rows.
        missing: the runs that are not finished.

    Returns:
        Seconds, >= 0: 0 without a missing run. A network without a rate counts as an empty run.
    """
    left = set(missing)
    costs: dict[Cell, float] = {}
    for part in (part for row in rows for part in row.parts):
        for (_, index, _, _), cell in part.cells.items():
            if cell in left:
                network = part.networks[index]
                rate = network.number("rate_mbps")
                mbit = 0.0 if math.isnan(rate) else rate * network.duration_s
                real = plan.backend in REAL_TIME
                costs[cell] = network.duration_s if real else RUN_S + MBIT_S * mbit
    return math.fsum(costs.values())


def results(
    plan: Plan, rows: Sequence[PlannedRow], folder: Path, failures: Sequence[Failure]
) -> list[RowResult]:
    """Measure what is on disk."""
    failed = {failure.cell: failure.error for failure in failures}
    return [_result(plan, own, folder, failed) for own in rows]


def _is_known(word: str) -> bool:
    try:
        return bool(parse(word))
    except AckademyError:
        return False


def _planned_part(plan: Plan, part: Part) -> PlannedPart:
    found = tuple(networks(part, plan.limits))
    runs = range(1, plan.limits.runs + 1)
    cells: dict[tuple[str, int, int, str], Cell] = {}
    for index, network in enumerate(found):
        for variant in part.variants:
            scenario = _checked(plan, part, text(part, network, variant))
            for scheme in plan.schemes:
                for seed in runs:
                    own = _cell(plan, part, scheme, (scenario, seed))
                    cells[scheme.label, index, seed, variant.name] = own
        if OWN_ENTRY not in scenario:
            measured = part.variants[-1].name
            allowed = f"a flow {OWN} in the variant {measured}, for the tested controller"
            raise ExperimentError(f"{part.where}: scenario.flow: allowed: {allowed}")
    try:
        for cell in {cell.text: cell for cell in cells.values()}.values():
            cell.scenario()
    except AckademyError as error:
        return PlannedPart(part, found, {}, str(error))
    return PlannedPart(part, found, cells)


def _checked(plan: Plan, part: Part, scenario: str) -> str:
    """The text of a scenario with the controllers that the card names.

    Raises:
        ExperimentError: if it is wrong: the card is, not what it tests.
    """
    try:
        _scenario(scenario, plan.card.path)
    except AckademyError as error:
        # Lines are those of the text, which nobody has written.
        where = re.compile(rf"{re.escape(plan.card.path)}(:\d+)?: ")
        fault = where.sub("", str(error), count=1)
        raise ExperimentError(f"{part.where}: scenario: {fault}") from error
    return scenario


def _cell(plan: Plan, part: Part, scheme: Scheme, run: tuple[str, int]) -> Cell:
    scenario, seed = run
    assignments: tuple[Assignment, ...] = ()
    if scheme.controller is not None and OWN_ENTRY in scenario:
        assignments = (Assignment(OWN, scheme.controller, scheme.params),)
    return Cell(
        text=scenario,
        origin=plan.card.path,
        controller=None,
        seed=seed,
        assignments=assignments,
        sample_interval_ms=part.sample_ms,
        backend=plan.backend,
    )


def _result(plan: Plan, own: PlannedRow, folder: Path, failed: Mapping[Cell, str]) -> RowResult:
    if own.row.not_applicable:
        return RowResult(own.row, (), Mark("not applicable", own.row.not_applicable))
    if own.row.not_measured:
        return RowResult(own.row, (), Mark("not measured", own.row.not_measured))
    checks: list[CheckResult] = []
    notes: list[str] = []
    for part in own.parts:
        notes += [f"{part.part.name}: no controller {name}" for name in absent(part.part)]
        errors = [part.fault] if part.fault else _errors(part, failed)
        notes += [f"{part.part.name}: {error}" for error in errors]
        checks += _checks(plan, part, folder)
    broken = _broken(plan, own, failed)
    if broken and plan.backend == "sim":
        return RowResult(own.row, tuple(checks), Mark("fail", broken), tuple(notes))
    if not checks or all(check.mark.verdict == "not measured" for check in checks):
        why = "; ".join(notes) or "no run is finished"
        if plan.backend in REAL_TIME:
            return RowResult(own.row, (), Mark("not applicable", f"the lab cannot run it: {why}"))
        return RowResult(own.row, tuple(checks), Mark("not measured", why))
    return RowResult(own.row, tuple(checks), _row_mark(checks), tuple(notes))


def _broken(plan: Plan, own: PlannedRow, failed: Mapping[Cell, str]) -> str:
    """How many runs of the tested controller ended with an error; empty if none did."""
    errors = [
        failed[cell]
        for part in own.parts
        for (scheme, *_), cell in part.cells.items()
        if scheme == plan.scheme.label and cell in failed
    ]
    if not errors:
        return ""
    return f"{len(errors)} runs ended with an error: {errors[0].strip().splitlines()[-1]}"


def _row_mark(checks: Sequence[CheckResult]) -> Mark:
    """The worst mark; its reason names the measures."""
    named = [
        Mark(own.mark.verdict, f"{own.check.words}: {own.mark.why}" if own.mark.why else "")
        for own in checks
    ]
    return worst_of(named)


def _errors(part: PlannedPart, failed: Mapping[Cell, str]) -> list[str]:
    """One line per different error of the part's cells."""
    lines = [failed[cell] for cell in part.cells.values() if cell in failed]
    return list(dict.fromkeys(line.strip().splitlines()[-1] for line in lines if line.strip()))


def _checks(plan: Plan, part: PlannedPart, folder: Path) -> list[CheckResult]:
    if not part.cells:
        return []
    measured = _measured(plan, part, folder)
    return [_check(plan, part, check, measured[check.measure]) for check in part.part.checks]


def _measured(plan: Plan, part: PlannedPart, folder: Path) -> dict[str, dict[str, FloatArray]]:
    """By measure and scheme: shape (n_networks, n_runs), `nan` where a run is missing."""
    names = {check.measure for check in part.part.checks}
    shape = (len(part.networks), plan.limits.runs)
    found = {name: {own.label: np.full(shape, math.nan) for own in plan.schemes} for name in names}
    for scheme in plan.schemes:
        for index, network in enumerate(part.networks):
            for seed in range(1, plan.limits.runs + 1):
                cells = {
                    variant.name: part.cells[scheme.label, index, seed, variant.name]
                    for variant in part.part.variants
                }
                ran = _ran(network, cells, folder)
                if ran is None:
                    continue
                for name in names:
                    found[name][scheme.label][index, seed - 1] = MEASURES[name].of(ran)
    return found


def _ran(network: Network, cells: Mapping[str, Cell], folder: Path) -> Ran | None:
    """The runs of all variants; `None` if one is missing or does not count."""
    runs = {}
    for variant, cell in cells.items():
        if not experiments.counts(folder, cell):
            return None
        runs[variant] = _run_data(cell, experiments.read_several(folder, cell, TABLES))
    return Ran(network.values, runs)


def _run_data(cell: Cell, tables: Sequence[pl.DataFrame]) -> RunData:
    summary, links, counters, flow_series, link_series = tables
    scenario = _scenario(cell.text, cell.origin)
    chosen = tuple(entries.governed(scenario, [OWN], summary["flow"].to_list()))
    found = RunTables(summary, links, counters, chosen, scenario.duration_s)
    return RunData(found, flow_series, link_series)


@cache
def _scenario(text: str, origin: str) -> _core.Scenario:
    """Entries and duration of a run: the controllers in it do not change them."""
    return _core.Scenario.parse(text, origin)


def _check(
    plan: Plan, part: PlannedPart, check: Check, runs: Mapping[str, FloatArray]
) -> CheckResult:
    kept = [index for index, network in enumerate(part.networks) if check.is_of(network.axes)]
    of_networks = {name: found[kept] for name, found in runs.items()}
    values = Values(
        networks=tuple(part.networks[index].label for index in kept),
        axes=tuple(part.networks[index].axes for index in kept),
        by_scheme={name: _mean_over_seeds(found) for name, found in of_networks.items()},
        runs=of_networks,
    )
    own = plan.scheme.label
    lower = MEASURES[check.measure].lower_is_better
    return CheckResult(
        part=part.part,
        networks=tuple(part.networks[index] for index in kept),
        check=check,
        values=values,
        mark=marked(check.rule, values, own, lower_is_better=lower),
        differences={
            rival.label: paired(values, own, rival.label)
            for rival in plan.schemes
            if rival.label != own
        },
    )


def _mean_over_seeds(runs: FloatArray) -> FloatArray:
    """Shape (n_networks,); `nan` where no seed has a value."""
    known = ~np.isnan(runs)
    counts = known.sum(axis=1)
    sums = np.where(known, runs, 0.0).sum(axis=1)
    means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)
    return means
