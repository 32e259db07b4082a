"""A frozen policy on links that it was not trained for, beside controllers that were never trained.

Links are drawn from a distribution, every scheme runs on each, and what came out is gathered along
each property of a link. The links on which the policy does worst are kept as scenario files.
"""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ackademy.backends import distributions
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.errors import ScenarioError
from ackademy.files import file_name
from ackademy.runner import cases
from ackademy.runner.cases import Case
from ackademy.runner.cells import Cell
from ackademy.stats.results import Results
from ackademy.studies.scored import Scored, Summary, scored, summaries

ALL = "all links"
WORST = 4
"""links of each kind of failure"""


@dataclass(frozen=True, slots=True)
class Link:
    """What a drawn scenario's bottleneck is."""

    rate_mbps: float
    rtt_ms: float
    """of the empty path"""
    loss: float
    """random, a part of packets"""
    buffer_bdp: float
    """drop-tail limit over rate times round trip"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A property of links, cut into ranges."""

    key: str
    label: str
    edges: tuple[float, ...]
    """inner ends of the ranges; one belongs to the range above it"""
    names: tuple[str, ...]
    """of the ranges, one more than edges"""
    is_log: bool
    scale: float = 1.0
    """of what is drawn: 100 for per cent"""

    def bin(self, link: Link) -> int:
        """The number of the range that a link is in."""
        return int(np.searchsorted(self.edges, getattr(link, self.key), side="right"))


AXES = (
    Axis(
        "rate_mbps",
        "rate, Mb/s",
        (5.0, 10.0, 20.0, 50.0),
        ("below 5", "5 – 10", "10 – 20", "20 – 50", "50 and more"),
        is_log=True,
    ),
    Axis(
        "rtt_ms",
        "empty round trip, ms",
        (20.0, 50.0, 100.0, 200.0),
        ("below 20", "20 – 50", "50 – 100", "100 – 200", "200 and more"),
        is_log=True,
    ),
    Axis(
        "loss",
        "random loss, %",
        (1e-9, 0.01, 0.02),
        ("none", "to 1", "1 – 2", "2 and more"),
        is_log=False,
        scale=100.0,
    ),
    Axis(
        "buffer_bdp",
        "buffer, BDP",
        (0.5, 1.0, 2.0),
        ("below 0.5", "0.5 – 1", "1 – 2", "2 and more"),
        is_log=True,
    ),
)
"""ranges for 2 to 100 Mb/s, 10 to 300 ms, to 3 % loss and 0.2 to 4 BDP; the outer ones are open,
as a distribution may reach further"""


@dataclass(frozen=True, slots=True)
class Row(Scored):
    """One link with everybody's score."""

    link: Link


@dataclass(frozen=True, slots=True)
class Worst:
    """A link on which the policy fails, and how."""

    kind: str
    row: Row
    file: Path
    """the scenario, to run again"""
    command: str
    """which prints its numbers"""


@dataclass(frozen=True, slots=True)
class Study:
    """What is to be found out."""

    policy: EvaluatedScheme
    against: tuple[EvaluatedScheme, ...]
    origin: str
    """the distribution's file"""
    digest: str
    about: str
    seed: int
    cases: tuple[Case, ...]

    @property
    def compared(self) -> tuple[EvaluatedScheme, ...]:
        """The policy first."""
        return (self.policy, *self.against)

    def cells(self, folder: Path) -> list[Cell]:
        """Every run."""
        return [cases.cell(case, own, folder) for case in self.cases for own in self.compared]


def link_of(case: Case) -> Link:
    """What a drawn scenario's bottleneck is.

    Raises:
        ScenarioError: if the scenario is no dumbbell with a constant rate and a limit in BDP.
    """
    bottleneck: dict[str, object] = {}
    scenario = tomllib.loads(case.scenario.resolved())
    dumbbell = scenario.get("dumbbell", {})
    bottleneck = dumbbell.get("bottleneck", {})
    queue, loss = bottleneck.get("queue", {}), bottleneck.get("loss", {})
    try:
        rate, rtt = float(bottleneck["rate_mbps"]), float(dumbbell["rtt_ms"])  # type: ignore[arg-type]
        bdp_bytes = rate * rtt * 125.0
        least = float(queue.get("min_bytes", 0.0))  # type: ignore[attr-defined]
        buffer = max(float(queue["bdp"]), least / bdp_bytes)  # type: ignore[index]
        return Link(rate, rtt, float(loss.get("ratio", 0.0)), buffer)  # type: ignore[attr-defined]
    except KeyError as error:
        allowed = "[dumbbell] with rtt_ms, and a bottleneck with rate_mbps and queue.bdp"
        raise ScenarioError(f"{case.scenario.origin}: {case.name}: allowed: {allowed}") from error


def rows(study: Study, folder: Path) -> list[Row]:
    """Every link that all compared schemes have run on."""
    return [
        Row(own.case, own.scores, link_of(own.case))
        for own in scored(study.cases, study.compared, folder)
        if len(own.scores) == len(study.compared)
    ]


def bins(study: Study, found: Sequence[Row]) -> list[Summary]:
    """All links together, then each range of each axis, for every scheme."""
    groups: list[tuple[str, str, list[Row]]] = [("", ALL, list(found))]
    for axis in AXES:
        by_bin: list[list[Row]] = [[] for _ in axis.names]
        for row in found:
            by_bin[axis.bin(row.link)].append(row)
        groups += [(axis.label, name, own) for name, own in zip(axis.names, by_bin, strict=True)]
    return [
        summary
        for axis_label, name, members in groups
        if members
        for summary in summaries(name, members, study.compared, axis_label)
    ]


def worst(study: Study, found: Sequence[Row], folder: Path) -> list[Worst]:
    """The links on which the policy fails most, by each kind of failure, written to `folder`.

    A link may fail in several ways; it is then listed in each.

    Raises:
        AckademyError: if a scenario cannot be written.
    """
    name = study.policy.name
    others = [own.name for own in study.against]

    def behind(row: Row) -> float:
        return row.scores[name].utility - max(row.scores[other].utility for other in others)

    kinds: Mapping[str, Callable[[Row], float]] = {
        **({"largest gap to the best other": behind} if others else {}),
        "smallest share of the link": lambda row: row.scores[name].share,
        "longest queue for its path": lambda row: -_finite(row.scores[name].rtt_ratio),
        "most loss beyond the link's": lambda row: row.link.loss - row.scores[name].loss_ratio,
    }
    chosen = [
        (kind, row)
        for kind, how_well in kinds.items()
        for row in sorted(found, key=how_well)[:WORST]
    ]
    listed = []
    for kind, row in chosen:
        file = folder / f"{file_name(row.case.name)}.toml"
        command = (
            f"ackademy run {shlex.quote(str(file))} {study.policy.words} --seed {row.case.seed}"
        )
        listed.append(Worst(kind, row, file, command))
    for own in {own.file: own for own in listed}.values():
        failures = ", ".join(other.kind for other in listed if other.file == own.file)
        about = f"{name} on {in_words(own.row.link)}: {failures}.\nSame numbers: {own.command}"
        distributions.save(own.row.case.scenario, own.file, about)
    return listed


def in_words(link: Link) -> str:
    """A link in a line."""
    return (
        f"{link.rate_mbps:.3g} Mb/s, {link.rtt_ms:.3g} ms, {100 * link.loss:.2g} % loss, "
        f"{link.buffer_bdp:.2g} BDP"
    )


def csv(results: Results, found: Sequence[Row]) -> str:
    """One row per link and scheme: what the link is, and the scores."""
    links = pl.DataFrame([{"scenario": row.case.name, **asdict(row.link)} for row in found])
    links = links.rename({"loss": "random_loss"}, strict=False)
    wide = results.wide()
    joined = wide if links.is_empty() else links.join(wide, on="scenario", maintain_order="right")
    return joined.write_csv(float_precision=6)


def worst_in_json(listed: Sequence[Worst]) -> list[dict[str, object]]:
    """The worst links, for programs."""
    return [
        {"kind": own.kind, "file": str(own.file), "command": own.command, **asdict(own.row.link)}
        for own in listed
    ]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
