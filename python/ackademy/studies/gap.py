"""From the simulator to the kernel: the same scenarios on both, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from ackademy.backends import controllers
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import Scheme
from ackademy.errors import ControllerError
from ackademy.runner import experiments
from ackademy.runner.cells import Cell
from ackademy.stats.formulas import FloatArray, jain_index, pooled_loss
from ackademy.stats.intervals import Interval, t_interval


@dataclass(frozen=True, slots=True)
class Column:
    """A number of the comparison, of one run."""

    key: str
    label: str
    unit: str
    about: str


Verdict = Literal["holds", "does not hold", "undecided"]

LARGE_RATIO = 0.05
"""differences above this part of the simulator's value want an explanation"""
SAMPLE_INTERVAL_MS = 100.0
"""of the first run of each, which is drawn"""

COLUMNS = (
    Column("throughput_mbps", "throughput", "Mb/s", "mean over flows, headers included"),
    Column("rtt_ms", "RTT", "ms", "mean over flows of a flow's mean, as its sender measures it"),
    Column("wait_ms", "queue wait", "ms", "mean wait at the link that carries most"),
    Column("loss_ratio", "loss", "", "packets dropped over packets sent, all flows together"),
    Column("jain", "Jain", "", "fairness of the flows' throughputs; of one flow it says nothing"),
)

KERNEL_START = (
    ("sender.handshake", "true"),
    ("sender.quick_acks", "16"),
    ("sender.opening_acks", "181"),
)
"""what Linux does at the start of a connection, for the simulator's side: else a trace would not be
aligned on both, and slow start would meet delayed acknowledgements that Linux does not send; the
window opens from 50 to 62.5 % of the lab's receive buffer, 4 MiB, by two segments per segment"""
PER_ACK = ", gate per ACK"
"""after the name of a controller whose simulation asks it once per acknowledgement"""

CLAIMS = (("throughput_mbps", 0.03), ("rtt_ms", 0.10))
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


@dataclass(frozen=True, slots=True)
class Side:
    """What one backend measured."""

    seeds: tuple[int, ...]
    """of the runs that count"""
    values: Mapping[str, FloatArray]
    """by column, one value per seed"""
    drawn: Cell | None
    """the run with a time series"""

    @property
    def n_runs(self) -> int:
        """That count."""
        return len(self.seeds)

    def at(self, seeds: Sequence[int], column: str) -> FloatArray:
        """The values of these seeds, in their order."""
        return self.values[column][[self.seeds.index(seed) for seed in seeds]]

    def estimate(self, column: str) -> Interval | None:
        """Mean and its 95 % interval; none without runs."""
        return t_interval(self.values[column]) if self.n_runs else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One side less another that it is measured by, as the kernel less the simulator."""

    absolute: Interval
    """in the unit of the column"""
    relative: Interval
    """over the mean of the other side; infinite where that is 0"""

    @property
    def is_significant(self) -> bool:
        """Whether 0 is outside the 95 % interval; not without an interval."""
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
    sim: Side
    kernel: Side
    differences: Mapping[str, Difference]
    """by column; empty where a side has no run"""
    kernel_runs: tuple[KernelRun, ...]
    """how the kernel's runs went, those that do not count included"""

    @property
    def n_invalid(self) -> int:
        """Runs on the kernel whose emulator was late; they are in no number."""
        return sum(not run.valid for run in self.kernel_runs)

    @property
    def lateness_us(self) -> float:
        """The emulator's 99th percentile, the largest of the runs that count."""
        return max(
            (run.lateness_us["p99"] for run in self.kernel_runs if run.valid), default=math.nan
        )

    @property
    def decisions(self) -> int:
        """Of all runs that count."""
        return sum(run.decisions for run in self.kernel_runs if run.valid)

    @property
    def fallbacks(self) -> int:
        """Of all runs that count."""
        return sum(run.fallbacks for run in self.kernel_runs if run.valid)


@dataclass(frozen=True, slots=True)
class Claim:
    """Ours against the kernel's own controller on the same emulated link."""

    scenario: str
    ours: str
    theirs: str
    column: str
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
    for path in scenarios:
        text = read_text(path)
        own = Cell(text=text, origin=str(path), controller=None, seed=1, overrides=overrides)
        named = set(own.scenario().controllers)
        for scheme in (*schemes, *(Scheme(name, name) for name in baselines)):
            as_written = named == {scheme.controller} and not scheme.params
            given = replace(own, controller=scheme.controller, params=scheme.params)
            found += _sides(path.stem, scheme, own if as_written else given, runs)
    return found


def _sides(scenario: str, scheme: Scheme, cell: Cell, runs: int) -> list[Pair]:
    """Both sides; of a controller that holds packets back, twice.

    The second time the simulator asks it when the kernel's adapter does: what is left of the
    difference is not the adapter's.
    """
    seeded = tuple(
        replace(cell, seed=seed, sample_interval_ms=SAMPLE_INTERVAL_MS if seed == 1 else 0.0)
        for seed in range(1, runs + 1)
    )
    emulated = tuple(replace(one, backend="kernel") for one in seeded)
    if controllers.is_kernel(str(scheme.controller)):
        return [Pair(scenario, scheme.label, (), emulated)]
    started = (*cell.overrides, *KERNEL_START)
    sim = tuple(replace(one, overrides=started) for one in seeded)
    found = [Pair(scenario, scheme.label, sim, emulated)]
    if cell.scenario().gates:
        asked = (*started, ("sender.gate", '"ack"'))
        per_ack = tuple(replace(one, overrides=asked) for one in sim)
        found.append(Pair(scenario, f"{scheme.label}{PER_ACK}", per_ack, emulated))
    return found


def measure(found: Sequence[Pair], folder: Path) -> list[Gap]:
    """What is on disk, side by side."""
    return [_gap(pair, folder) for pair in found]


def difference(side: Side, other: Side, column: str) -> Difference | None:
    """How far one side is from another, seed by seed.

    A seed draws the same start times and the same fate of the n-th packet on both sides, so that
    what it makes worse for one it makes worse for the other, and the difference varies less than
    either.

    Args:
        side: what is compared, such as the kernel.
        other: what it is measured by, such as the simulator.
        column: which number.

    Returns:
        The mean difference over the seeds of both sides with Student's interval, also as a part of
        the other side's mean, which is taken as exact there. No interval for one seed; nothing for
        none.
    """
    seeds = [seed for seed in side.seeds if seed in other.seeds]
    if not seeds:
        return None
    ours, theirs = side.at(seeds, column), other.at(seeds, column)
    absolute = t_interval(ours - theirs)
    if len(seeds) == 1:
        absolute = Interval(absolute.value, math.nan, math.nan)
    return Difference(absolute, _over(absolute, float(theirs.mean())))


def claims(gaps: Sequence[Gap]) -> list[Claim]:
    """Ours against the kernel's own, wherever both were run."""
    by_name = {(gap.pair.scenario, gap.pair.controller): gap.kernel for gap in gaps}
    found = []
    for (scenario, name), theirs in by_name.items():
        ours = by_name.get((scenario, OURS.get(name, "")))
        if ours is None:
            continue
        for column, bound in CLAIMS:
            apart = difference(ours, theirs, column)
            if apart is not None:
                found.append(Claim(scenario, OURS[name], name, column, bound, apart.relative))
    return found


def large(gaps: Sequence[Gap]) -> list[tuple[Gap, Column, Difference]]:
    """The differences that want an explanation."""
    return [
        (gap, column, gap.differences[column.key])
        for gap in gaps
        for column in COLUMNS
        if column.key in gap.differences and gap.differences[column.key].is_large
    ]


def label_of(key: str) -> str:
    """How a column is called."""
    return next(column.label for column in COLUMNS if column.key == key)


def _gap(pair: Pair, folder: Path) -> Gap:
    sim_cells, _ = experiments.countable(folder, pair.sim)
    kernel_cells, kernel_runs = experiments.countable(folder, pair.kernel)
    sim, kernel = _side(sim_cells, folder), _side(kernel_cells, folder)
    apart = {column.key: difference(kernel, sim, column.key) for column in COLUMNS}
    differences = {key: value for key, value in apart.items() if value is not None}
    n_flows = len((pair.kernel or pair.sim)[0].scenario().flows)
    return Gap(pair, n_flows, sim, kernel, differences, kernel_runs)


def _side(cells: Sequence[Cell], folder: Path) -> Side:
    rows = [
        _one_run(*(experiments.read(folder, cell, table) for table in ("summary", "links")))
        for cell in cells
    ]
    values = {column.key: np.array([row[column.key] for row in rows]) for column in COLUMNS}
    seeds = tuple(cell.seed for cell in cells)
    return Side(
        seeds, values, next((cell for cell in cells if cell.sample_interval_ms > 0.0), None)
    )


def _one_run(flows: pl.DataFrame, links: pl.DataFrame) -> dict[str, float]:
    rtt = flows["rtt_mean_ms"].drop_nans().to_numpy()
    throughput = flows["throughput_mbps"].to_numpy()
    busiest = links.sort("delivered_bytes", descending=True, maintain_order=True)
    return {
        "throughput_mbps": float(throughput.mean()),
        "rtt_ms": float(rtt.mean()) if rtt.size else math.nan,
        "wait_ms": float(busiest["wait_mean_ms"][0]),
        "loss_ratio": pooled_loss(flows),
        "jain": jain_index(throughput),
    }


def _over(interval: Interval, mean: float) -> Interval:
    if mean == 0.0:
        value = 0.0 if interval.value == 0.0 else math.copysign(math.inf, interval.value)
        return Interval(value, math.nan, math.nan)
    return Interval(interval.value / mean, interval.low / mean, interval.high / mean)
