"""From the simulator to the kernel: the same scenarios on both, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ackademy import _core
from ackademy.backends import controllers, entries
from ackademy.backends.kernel import KernelRun
from ackademy.backends.schemes import Scheme
from ackademy.errors import ControllerError
from ackademy.lazy import pl
from ackademy.runner.cases import named_apart, of_file
from ackademy.runner.cells import Assignment, Cell
from ackademy.runner.measured import Measured, Row
from ackademy.runner.measured import measure as measure_rows
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

KERNEL_START = (
    ("sender.handshake", "true"),
    ("sender.quick_acks", "16"),
    ("sender.opening_acks", "181"),
)
"""what Linux does at the start of a connection, for the simulator's side: else a trace would not be
aligned on both, and slow start would meet delayed acknowledgements that Linux does not send; the
window opens from 50 to 62.5 % of the lab's receive buffer, 4 MiB, by two segments per segment"""
EVERY = "*"
"""pattern of all `[[flow]]` entries"""
PER_ACK = ", send hook per ACK"
"""after the name of a controller whose simulation asks it once per acknowledgement"""

CLAIMS = (("throughput_mean_mbps", 0.03), ("rtt_sender_ms", 0.10))
"""how near a controller of ours comes to the kernel's own of that name, both on the kernel"""
OURS = {"kernel:cubic": "cubic", "kernel:reno": "new_reno"}


@dataclass(frozen=True, slots=True)
class Pair:
    """One scenario under one controller, on both sides."""

    scenario: str
    controller: str
    """the scheme's label"""
    sim: tuple[Cell, ...]
    """none for the kernel's own controllers"""
    kernel: tuple[Cell, ...]
    flows: str = EVERY
    """pattern of the `[[flow]]` entries that the numbers are of"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One side less another that it is measured by, as the kernel less the simulator."""

    absolute: Interval
    """in the unit of the metric"""
    relative: Interval
    """over the mean of the other side; infinite where that is 0"""

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
    """A pair with what was measured."""

    pair: Pair
    n_flows: int
    sim: Measured
    kernel: Measured
    differences: Mapping[str, Difference]
    """by metric; empty where a side has no run"""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Those that say something: without the fairness of one flow."""
        return METRICS if self.n_flows > 1 else tuple(m for m in METRICS if m != JAIN)

    @property
    def valid_runs(self) -> list[KernelRun]:
        """How the runs on the kernel went that count."""
        return [run for run in self.kernel.kernel_runs if run.valid]

    @property
    def lateness_us(self) -> float:
        """The emulator's 99th percentile, the largest of the runs that count."""
        return max((run.lateness_us["p99"] for run in self.valid_runs), default=math.nan)

    @property
    def decisions(self) -> int:
        """Of all runs that count."""
        return sum(run.decisions for run in self.valid_runs)

    @property
    def fallbacks(self) -> int:
        """Of all runs that count."""
        return sum(run.fallbacks for run in self.valid_runs)


@dataclass(frozen=True, slots=True)
class Claim:
    """Ours against the kernel's own controller on the same emulated link."""

    scenario: str
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


def pairs(
    scenarios: Sequence[Path],
    schemes: Sequence[Scheme],
    baselines: Sequence[str],
    runs: int,
    duration_s: float | None,
) -> list[Pair]:
    """Every scenario under every scheme on both sides, then the kernel's own on theirs.

    Where some flows of a scenario have several subflows and others one, the scheme governs those
    with several, the others keep their controller, and each group has a pair of its own.

    Args:
        scenarios: files; where all flows of one name the controller of a scheme without settings,
            their settings there stay.
        schemes: controllers of ours with settings, as of `schemes.parse`.
        baselines: the kernel's, as `kernel:NAME`.
        runs: on each side; seeds from 1.
        duration_s: instead of the scenarios' own.

    Raises:
        AckademyError: if a scenario cannot be read, or a controller is on the wrong side.
    """
    for scheme in schemes:
        if controllers.is_kernel(str(scheme.controller)):
            message = f"--cc {scheme.label}: the simulator has none; allowed in --baselines"
            raise ControllerError(message)
    for name in baselines:
        if not controllers.is_kernel(name):
            raise ControllerError(f"--baselines {name}: allowed is kernel:NAME, as kernel:cubic")
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
                found += _sides(label, scheme, given, runs, group)
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


def _sides(scenario: str, scheme: Scheme, cell: Cell, runs: int, flows: str) -> list[Pair]:
    """Both sides of a group of flows; of a controller that holds packets back, twice.

    The second time the simulator asks it when the kernel's adapter does: what is left of the
    difference is not the adapter's.
    """
    seeded = tuple(
        replace(cell, seed=seed, sample_interval_ms=SAMPLE_INTERVAL_MS if seed == 1 else 0.0)
        for seed in range(1, runs + 1)
    )
    emulated = tuple(replace(one, backend="kernel") for one in seeded)
    if controllers.is_kernel(str(scheme.controller)):
        return [Pair(scenario, scheme.label, (), emulated, flows)]
    started = (*cell.overrides, *KERNEL_START)
    sim = tuple(replace(one, overrides=started) for one in seeded)
    found = [Pair(scenario, scheme.label, sim, emulated, flows)]
    if cell.scenario().has_send_hook:
        asked = (*started, ("sender.send_hook", '"ack"'))
        per_ack = tuple(replace(one, overrides=asked) for one in sim)
        found.append(Pair(scenario, f"{scheme.label}{PER_ACK}", per_ack, emulated, flows))
    return found


def measure(found: Sequence[Pair], folder: Path) -> list[Gap]:
    """What is on disk, side by side."""
    return [_gap(pair, folder) for pair in found]


def difference(side: Measured, other: Measured, metric: str) -> Difference | None:
    """How far one side is from another, seed by seed.

    A seed draws the same start times and the same fate of the n-th packet on both sides, so that
    what it makes worse for one it makes worse for the other, and the difference varies less than
    either.

    Args:
        side: what is compared, such as the kernel.
        other: what it is measured by, such as the simulator.
        metric: which number.

    Returns:
        The mean difference over the seeds of both sides with Student's interval, also as a part of
        the other side's mean, which is taken as exact there. No interval for one seed; nothing for
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
    """Ours against the kernel's own, wherever both were run."""
    by_name = {(gap.pair.scenario, gap.pair.controller): gap.kernel for gap in gaps}
    found = []
    for (scenario, name), theirs in by_name.items():
        ours = by_name.get((scenario, OURS.get(name, "")))
        if ours is None:
            continue
        for metric, bound in CLAIMS:
            apart = difference(ours, theirs, metric)
            if apart is not None:
                found.append(Claim(scenario, OURS[name], name, metric, bound, apart.relative))
    return found


def large(gaps: Sequence[Gap]) -> list[tuple[Gap, str, Difference]]:
    """The differences that want an explanation, and the metrics they are of."""
    return [
        (gap, metric, gap.differences[metric])
        for gap in gaps
        for metric in METRICS
        if metric in gap.differences and gap.differences[metric].is_large
    ]


def tables(gaps: Sequence[Gap]) -> Results:
    """The two tables: a row per side; differences are estimates of the backend `kernel - sim`."""
    sides = [side for gap in gaps for side in (gap.sim, gap.kernel) if side.n_runs]
    found = measured_tables("gap", sides)
    apart = [
        Estimate(name, metric, "mean difference", own.absolute, n_seeds)
        for gap in gaps
        for n_seeds in [len(_shared_seeds(gap.kernel, gap.sim))]
        for name in [gap.kernel.row.name._replace(backend="kernel - sim")]
        for metric, own in gap.differences.items()
    ]
    differences = results("gap", [], apart).estimates
    return Results(found.values, pl.concat([found.estimates, differences]))


def _shared_seeds(side: Measured, other: Measured) -> list[int]:
    """Seeds of which both sides have a run, or a run that stands for every seed."""
    one, more = (other, side) if other.is_fixed else (side, other)
    return [seed for seed in more.seeds if one.is_fixed or seed in one.seeds]


def _gap(pair: Pair, folder: Path) -> Gap:
    rows = [
        Row(Name(pair.scenario, pair.controller, backend=backend), cells, METRICS, (pair.flows,))
        for backend, cells in (("sim", pair.sim), ("kernel", pair.kernel))
    ]
    sim, kernel = measure_rows(rows, folder)
    apart = {metric: difference(kernel, sim, metric) for metric in METRICS}
    differences = {key: value for key, value in apart.items() if value is not None}
    scenario = (pair.kernel or pair.sim)[0].scenario()
    n_flows = sum(entries.fits([pair.flows], scenario.entries[own]) for own in scenario.owners)
    return Gap(pair, n_flows, sim, kernel, differences)


def _over(interval: Interval, mean: float) -> Interval:
    if mean == 0.0:
        value = 0.0 if interval.value == 0.0 else math.copysign(math.inf, interval.value)
        return Interval(value, math.nan, math.nan, NO_METHOD, 0.0)
    ends = (interval.value / mean, interval.low / mean, interval.high / mean)
    return Interval(*ends, interval.method, interval.level)
