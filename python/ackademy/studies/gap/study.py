"""The same scenarios on several backends, and how far from the first the others are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ackademy import _core
from ackademy.backends import Backend, controllers, entries
from ackademy.backends.kernel import KernelRun
from ackademy.backends.schemes import Scheme
from ackademy.errors import ControllerError
from ackademy.lazy import pl
from ackademy.runner.cases import named_apart, of_file
from ackademy.runner.cells import Assignment, Cell
from ackademy.runner.measured import Measured, Row, measured
from ackademy.runner.measured import tables as measured_tables
from ackademy.stats.intervals import NO_METHOD, ONE_RUN, Interval, t_interval
from ackademy.stats.results import Estimate, Name, Results, results

Verdict = Literal["holds", "does not hold", "undecided"]

LARGE_RATIO = 0.05
"""differences above this part of the simulator's value want an explanation"""
SAMPLE_INTERVAL_MS = 100.0
"""of the first run of each, which is drawn"""

JAIN = "jain_throughput"
METRICS = ("throughput_mean_mbps", "rtt_sender_ms", "queue_wait_ms", "loss", JAIN)
"""in order; of one flow, Jain's index says nothing"""

HANDSHAKE = ("sender.handshake", "true")
"""as every other backend has one, for the simulator: else a trace would not be aligned"""
LINUX_START = (("sender.quick_acks", "16"), ("sender.opening_acks", "181"))
"""what Linux does at the start of a connection, for the simulator beside the kernel: else slow
start would meet delayed acknowledgements that Linux does not send; the window opens from 50 to
62.5 % of the lab's receive buffer, 4 MiB, by two segments per segment"""
EVERY = "*"
"""pattern of all `[[flow]]` entries"""
PER_ACK = ", send hook per ACK"
"""after the name of a controller whose simulation asks it once per acknowledgement"""

CLAIMS = (("throughput_mean_mbps", 0.03), ("rtt_sender_ms", 0.10))
"""how near a controller of ours comes to a backend's own of that name, both on that backend"""
OURS = {
    "kernel:cubic": "cubic",
    "kernel:reno": "new_reno",
    "noq:cubic": "cubic",
    "noq:new_reno": "new_reno",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Where and how often every scheme is run."""

    backends: tuple[Backend, ...] = ("sim", "kernel")
    """one for each column; the others are measured by the first"""
    runs: int = 5
    """on each; seeds from 1"""
    duration_s: float | None = None
    """instead of the scenarios' own"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario under one controller, on every backend that has the controller."""

    scenario: str
    controller: str
    """the scheme's label"""
    cells: Mapping[Backend, tuple[Cell, ...]]
    """in the order of the columns"""
    flows: str = EVERY
    """pattern of the `[[flow]]` entries that the numbers are of"""


@dataclass(frozen=True, slots=True)
class Difference:
    """A column less another that it is measured by, as the kernel less the simulator."""

    absolute: Interval
    """in the unit of the metric"""
    relative: Interval
    """over the mean of the other column; infinite where that is 0"""

    @property
    def is_significant(self) -> bool:
        """Whether 0 is outside the interval; not without an interval."""
        return math.isfinite(self.absolute.low) and not self.absolute.contains(0.0)

    @property
    def is_large(self) -> bool:
        """Whether it is one that wants an explanation."""
        return abs(self.relative.value) > LARGE_RATIO


@dataclass(frozen=True, slots=True)
class Gap:
    """An entry with what was measured."""

    entry: Entry
    n_flows: int
    columns: Mapping[Backend, Measured]
    differences: Mapping[Backend, Mapping[str, Difference]]
    """from the first column, by metric; of the other columns where both have a run"""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that say something: without the fairness of one flow."""
        return METRICS if self.n_flows > 1 else tuple(m for m in METRICS if m != JAIN)

    @property
    def kernel_runs(self) -> list[KernelRun]:
        """How the runs in real time went."""
        return [run for own in self.columns.values() for run in own.kernel_runs]


@dataclass(frozen=True, slots=True)
class Claim:
    """Ours against a backend's own controller, both on that backend."""

    scenario: str
    backend: Backend
    ours: str
    theirs: str
    metric: str
    bound: float
    """largest relative difference that is claimed"""
    observed: Interval
    """relative difference of ours from theirs"""

    @property
    def verdict(self) -> Verdict:
        """Whether the difference is inside the bound; undecided where its interval reaches over it.

        Without an interval, the value decides.
        """
        if math.isnan(self.observed.low):
            return "holds" if abs(self.observed.value) <= self.bound else "does not hold"
        if -self.bound <= self.observed.low and self.observed.high <= self.bound:
            return "holds"
        if self.observed.high < -self.bound or self.bound < self.observed.low:
            return "does not hold"
        return "undecided"


def entries_of(
    scenarios: Sequence[Path],
    schemes: Sequence[Scheme],
    baselines: Sequence[str],
    plan: Plan,
) -> list[Entry]:
    """Every scenario under every scheme on all backends, then the backends' own on theirs.

    Where some flows of a scenario have several subflows and others one, the scheme governs those
    with several, the others keep their controller, and each group has an entry of its own.

    Args:
        scenarios: files; where all flows of one name the controller of a scheme without settings,
            their settings there stay.
        schemes: controllers of ours with settings, as of `schemes.parse`.
        baselines: the backends' own, as `kernel:NAME`, `noq:NAME` or `quinn:NAME`.
        plan: where and how often.

    Raises:
        AckademyError: if a scenario cannot be read, or a controller does not run where it is to.
    """
    for scheme in schemes:
        if controllers.own_of(str(scheme.controller)):
            message = f"--cc {scheme.label}: is a backend's own; allowed in --baselines"
            raise ControllerError(message)
    for name in baselines:
        if not set(controllers.own_of(name)) & set(plan.backends):
            of_these = [p for p, owners in controllers.OWN.items() if {*owners} & {*plan.backends}]
            allowed = ", ".join(f"{prefix}NAME" for prefix in of_these) or "none with --backends "
            allowed += "" if of_these else ",".join(plan.backends)
            raise ControllerError(f"--baselines {name}: allowed: {allowed}")
    duration_s = plan.duration_s
    overrides = () if duration_s is None else (("duration_s", repr(duration_s)),)
    found = []
    cases = [of_file(path) for path in scenarios]
    for case in named_apart(cases, [str(path) for path in scenarios]):
        own = Cell(case.text, case.origin, None, seed=1, overrides=overrides)
        parsed = own.scenario()
        groups = _groups(parsed)
        flows = zip(parsed.owners, parsed.controllers, strict=True)
        named = {cc for owner, cc in flows if entries.fits(groups[:1], parsed.entries[owner])}
        for scheme in (*schemes, *(Scheme(name, name) for name in baselines)):
            as_written = named == {scheme.controller} and not scheme.params
            given = own if as_written else _governed(own, scheme, groups[0])
            for group in groups:
                label = case.name if group == groups[0] else f"{case.name}, {group}"
                found += _entries(Entry(label, scheme.label, {}, group), scheme, given, plan)
    return found


def _groups(scenario: _core.Scenario) -> tuple[str, ...]:
    """Patterns of the entries with several subflows and of those with one, if there are both."""
    flows = list(zip(scenario.owners, scenario.subflows, strict=True))
    multipath = {owner for owner, subflows in flows if subflows > 1}
    plain = {owner for owner, subflows in flows if subflows == 1}
    if not multipath or not plain:
        return (EVERY,)
    names = scenario.entries
    multiple, single = ("|".join(names[own] for own in sorted(one)) for one in (multipath, plain))
    return multiple, single


def _governed(cell: Cell, scheme: Scheme, group: str) -> Cell:
    """The cell with the entries of a group under a scheme."""
    if group == EVERY:
        return replace(cell, controller=scheme.controller, params=scheme.params)
    assignment = Assignment(group, str(scheme.controller), scheme.params)
    return replace(cell, assignments=(assignment,))


def _entries(entry: Entry, scheme: Scheme, cell: Cell, plan: Plan) -> list[Entry]:
    """An entry with its cells; of a controller that holds packets back, two.

    In the second the simulator asks it when the kernel's adapter does: what is left of the
    difference is not the adapter's.
    """
    seeded = tuple(
        replace(cell, seed=seed, sample_interval_ms=SAMPLE_INTERVAL_MS if seed == 1 else 0.0)
        for seed in range(1, plan.runs + 1)
    )
    own = controllers.own_of(str(scheme.controller))
    cells = {
        backend: tuple(replace(one, backend=backend) for one in seeded)
        for backend in plan.backends
        if not own or backend in own
    }
    if "sim" not in cells:
        return [replace(entry, cells=cells)]
    started = (*cell.overrides, HANDSHAKE, *(LINUX_START if "kernel" in cells else ()))
    sim = tuple(replace(one, overrides=started) for one in cells["sim"])
    found = [replace(entry, cells={**cells, "sim": sim})]
    if "kernel" in cells and cell.scenario().has_send_hook:
        asked = (*started, ("sender.send_hook", '"ack"'))
        per_ack = tuple(replace(one, overrides=asked) for one in sim)
        label = f"{entry.controller}{PER_ACK}"
        found.append(replace(entry, controller=label, cells={**cells, "sim": per_ack}))
    return found


def measure(found: Sequence[Entry], folder: Path, first: Backend) -> list[Gap]:
    """What is on disk, side by side, and how far from the first column."""
    return [_gap(entry, folder, first) for entry in found]


def difference(side: Measured, other: Measured, metric: str) -> Difference | None:
    """How far one column is from another, seed by seed.

    A seed draws the same start times and the same fate of the n-th packet on all backends, so that
    what it makes worse for one it makes worse for the other, and the difference varies less than
    either.

    Args:
        side: what is compared, such as the kernel.
        other: what it is measured by, such as the simulator.
        metric: which number.

    Returns:
        The mean difference over the seeds of both with Student's interval, also as a part of the
        other's mean, which is taken as exact there. No interval for one seed; nothing for
        none.
    """
    seeds = _shared_seeds(side, other)
    if not seeds:
        return None
    ours, theirs = (
        np.array([own.values[metric][0 if own.is_fixed else own.seeds.index(s)] for s in seeds])
        for own in (side, other)
    )
    absolute = t_interval(ours - theirs)
    if len(seeds) == 1:
        absolute = Interval(absolute.value, math.nan, math.nan, ONE_RUN, 0.0)
    return Difference(absolute, _over(absolute, float(theirs.mean())))


def claims(gaps: Sequence[Gap]) -> list[Claim]:
    """Ours against the backends' own, wherever both were run."""
    by_name = {(gap.entry.scenario, gap.entry.controller): gap.columns for gap in gaps}
    found = []
    for (scenario, name), theirs in by_name.items():
        ours = by_name.get((scenario, OURS.get(name, "")), {})
        for backend in (backend for backend in theirs if backend in ours):
            for metric, bound in CLAIMS:
                apart = difference(ours[backend], theirs[backend], metric)
                if apart is not None:
                    claimed = (scenario, backend, OURS[name], name, metric, bound)
                    found.append(Claim(*claimed, apart.relative))
    return found


def large(gaps: Sequence[Gap]) -> list[tuple[Gap, Backend, str, Difference]]:
    """The differences that want an explanation, and the columns and metrics they are of."""
    return [
        (gap, backend, metric, apart[metric])
        for gap in gaps
        for backend, apart in gap.differences.items()
        for metric in METRICS
        if metric in apart and apart[metric].is_large
    ]


def tables(gaps: Sequence[Gap]) -> Results:
    """The two tables: a row per column; differences are estimates of `kernel - sim` and so on."""
    found = measured_tables("gap", [o for gap in gaps for o in gap.columns.values() if o.n_runs])
    apart = []
    for gap in gaps:
        for backend, differences in gap.differences.items():
            first = next(iter(gap.columns))
            side, other = gap.columns[backend], gap.columns[first]
            name = side.row.name._replace(backend=f"{backend} - {first}")
            n_seeds = len(_shared_seeds(side, other))
            apart += [
                Estimate(name, metric, "mean difference", own.absolute, n_seeds)
                for metric, own in differences.items()
            ]
    return Results(found.values, pl.concat([found.estimates, results("gap", [], apart).estimates]))


def _shared_seeds(side: Measured, other: Measured) -> list[int]:
    """Seeds of which both sides have a run, or a run that stands for every seed."""
    one, more = (other, side) if other.is_fixed else (side, other)
    return [seed for seed in more.seeds if one.is_fixed or seed in one.seeds]


def _gap(entry: Entry, folder: Path, first: Backend) -> Gap:
    columns = {
        backend: measured(
            Row(
                Name(entry.scenario, entry.controller, backend=backend),
                cells,
                METRICS,
                (entry.flows,),
            ),
            folder,
        )
        for backend, cells in entry.cells.items()
    }
    differences = {}
    for backend, own in columns.items():
        if backend != first and first in columns:
            apart = {metric: difference(own, columns[first], metric) for metric in METRICS}
            differences[backend] = {key: value for key, value in apart.items() if value}
    scenario = next(iter(entry.cells.values()))[0].scenario()
    n_flows = sum(entries.fits([entry.flows], scenario.entries[own]) for own in scenario.owners)
    return Gap(entry, n_flows, columns, differences)


def _over(interval: Interval, mean: float) -> Interval:
    if mean == 0.0:
        value = 0.0 if interval.value == 0.0 else math.copysign(math.inf, interval.value)
        return Interval(value, math.nan, math.nan, NO_METHOD, 0.0)
    ends = (interval.value / mean, interval.low / mean, interval.high / mean)
    return Interval(*ends, interval.method, interval.level)
