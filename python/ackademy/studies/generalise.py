"""A frozen policy on links that it was not trained for, beside controllers that were never trained.

Links are drawn from a distribution, every scheme runs on each, and what came out is gathered along
each property of a link. The links on which the policy does worst are kept as scenario files.
"""

from __future__ import annotations

import io
import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl

from ackademy.backends import distributions
from ackademy.backends.schemes import EvaluatedScheme
from ackademy.errors import ScenarioError
from ackademy.runner import cases, experiments
from ackademy.runner.cases import Case
from ackademy.runner.cells import Cell
from ackademy.stats.intervals import Interval, t_interval
from ackademy.stats.scores import Score

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
        ("2 – 5", "5 – 10", "10 – 20", "20 – 50", "50 – 100"),
        is_log=True,
    ),
    Axis(
        "rtt_ms",
        "empty round trip, ms",
        (20.0, 50.0, 100.0, 200.0),
        ("10 – 20", "20 – 50", "50 – 100", "100 – 200", "200 – 300"),
        is_log=True,
    ),
    Axis(
        "loss",
        "random loss, %",
        (1e-9, 0.01, 0.02),
        ("none", "to 1", "1 – 2", "2 – 3"),
        is_log=False,
        scale=100.0,
    ),
    Axis(
        "buffer_bdp",
        "buffer, BDP",
        (0.5, 1.0, 2.0),
        ("0.2 – 0.5", "0.5 – 1", "1 – 2", "2 and more"),
        is_log=True,
    ),
)
"""ranges for 2 to 100 Mb/s, 10 to 300 ms, to 3 % loss and 0.2 to 4 BDP; what lies beyond counts to
the last of them"""


@dataclass(frozen=True, slots=True)
class Row:
    """One link with everybody's score."""

    case: Case
    link: Link
    scores: Mapping[str, Score]
    """by scheme"""


@dataclass(frozen=True, slots=True)
class Bin:
    """One range of an axis under one scheme: means over its links."""

    axis: str
    range: str
    scheme: str
    n_links: int
    share: Interval
    delay_ms: Interval
    rtt_ratio: Interval
    loss_ratio: Interval
    utility: Interval
    gain: Interval
    """utility of the policy minus this scheme's, link by link; 0 for the policy itself"""
    won: float
    """part of these links on which the policy's utility is higher"""


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
    found = []
    for case in study.cases:
        cells = {own.name: cases.cell(case, own, folder) for own in study.compared}
        if all(experiments.is_finished(folder, cell) for cell in cells.values()):
            scores = {name: cases.score(case, cell, folder) for name, cell in cells.items()}
            found.append(Row(case, link_of(case), scores))
    return found


def bins(study: Study, found: Sequence[Row]) -> list[Bin]:
    """All links together, then each range of each axis, for every scheme."""
    groups: list[tuple[str, str, list[Row]]] = [("all", "all links", list(found))]
    for axis in AXES:
        by_bin: list[list[Row]] = [[] for _ in axis.names]
        for row in found:
            by_bin[axis.bin(row.link)].append(row)
        groups += [
            (axis.key, name, members)
            for name, members in zip(axis.names, by_bin, strict=True)
            if members
        ]
    return [
        _bin(axis, name, own.name, study.policy.name, members)
        for axis, name, members in groups
        for own in study.compared
        if members
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
        **({"furthest behind the best of the others": behind} if others else {}),
        "least of the link": lambda row: row.scores[name].share,
        "longest queue for its path": lambda row: -_finite(row.scores[name].rtt_ratio),
        "most loss of its own": lambda row: row.link.loss - row.scores[name].loss_ratio,
    }
    chosen = [
        (kind, row)
        for kind, how_well in kinds.items()
        for row in sorted(found, key=how_well)[:WORST]
    ]
    listed = []
    for kind, row in chosen:
        file = folder / f"{row.case.name}.toml"
        command = f"ackademy run {file} {study.policy.words} --seed {row.case.seed}"
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


def table(found: Sequence[Row]) -> pl.DataFrame:
    """One row per link and scheme."""
    return pl.DataFrame(
        [
            {"link": row.case.name, "seed": row.case.seed, **asdict(row.link), "scheme": name}
            | asdict(score)
            for row in found
            for name, score in row.scores.items()
        ]
    )


def csv(found: Sequence[Row]) -> str:
    """`table` as text."""
    buffer = io.StringIO()
    table(found).write_csv(buffer, float_precision=6)
    return buffer.getvalue()


def as_json(study: Study, gathered: Sequence[Bin], listed: Sequence[Worst], command: str) -> str:
    """What the report shows, for programs."""
    fields_of = {
        "command": command,
        "policy": study.policy.words,
        "against": [own.words for own in study.against],
        "distribution": {"file": study.origin, "digest": study.digest, "seed": study.seed},
        "ranges": [_plain(own) for own in gathered],
        "worst": [
            {
                "kind": own.kind,
                "file": str(own.file),
                "command": own.command,
                **asdict(own.row.link),
                "scores": {name: asdict(score) for name, score in own.row.scores.items()},
            }
            for own in listed
        ],
    }
    return json.dumps(fields_of, indent=2, ensure_ascii=False, default=str) + "\n"


def _plain(own: Bin) -> dict[str, object]:
    named: dict[str, object] = {}
    for field in fields(own):
        value = getattr(own, field.name)
        if isinstance(value, Interval):
            named[field.name] = [_number(v) for v in (value.value, value.low, value.high)]
        else:
            named[field.name] = _number(value) if isinstance(value, float) else value
    return named


def _number(value: float) -> float | None:
    """JSON has no `nan`."""
    return round(value, 6) if math.isfinite(value) else None


def _bin(axis: str, name: str, own: str, policy: str, members: Sequence[Row]) -> Bin:
    def mean(key: str) -> Interval:
        values = np.array([getattr(row.scores[own], key) for row in members])
        values = values[np.isfinite(values)]
        return t_interval(values) if values.size else Interval(math.nan, math.nan, math.nan)

    gains = np.array([row.scores[policy].utility - row.scores[own].utility for row in members])
    return Bin(
        axis=axis,
        range=name,
        scheme=own,
        n_links=len(members),
        share=mean("share"),
        delay_ms=mean("delay_ms"),
        rtt_ratio=mean("rtt_ratio"),
        loss_ratio=mean("loss_ratio"),
        utility=mean("utility"),
        gain=t_interval(gains),
        won=float((gains > 0.0).mean()),
    )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
