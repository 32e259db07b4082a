"""The file of a scorecard: `scorecards/<name>.toml`, docs/reference/scorecard.md.

A row is one demand of the document that is tested. It has parts, each with a scenario, the networks
that this scenario is run on, and checks: a measure of the runs with the rule that marks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ackademy import lookup
from ackademy.errors import ExperimentError
from ackademy.stats.network_metrics import MEASURES
from ackademy.studies.reproduce.files import RUNS_MAX
from ackademy.toml_table import TomlTable

Over = Literal["worst", "mean", "median", "p95"]
"""how the values of the networks become the one that a bound is for"""

NETWORKS_MAX = 1000
MARGIN = 0.05
"""part of a rival's value by which a controller may be worse and still counts as no worse"""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a check passes; the fields that are absent ask for nothing."""

    at_most: float | None = None
    """upper bound of the value"""
    at_least: float | None = None
    """lower bound of the value"""
    alternative: str = ""
    """a rival whose value on the same network fulfils the bound in its place"""
    over: Over = "worst"
    """the value that is compared with the bounds"""
    against: str = ""
    """a rival that must not be beaten: the interval of the paired difference decides"""
    margin: float = MARGIN
    """part of the rival's value that counts as no difference"""
    slack: float = 0.0
    """the same, in the measure's unit"""
    excess_over: str = ""
    """a rival whose value is subtracted, network by network, before the bounds"""
    falls_along: str = ""
    """an axis along which the value must not grow"""

    @property
    def words(self) -> str:
        """What passes."""
        found = [f"at most {self.at_most:g}"] if self.at_most is not None else []
        found += [f"at least {self.at_least:g}"] if self.at_least is not None else []
        found = [
            f"{self.over} over networks {own}" if self.over != "worst" else own for own in found
        ]
        found = [
            f"beyond {self.excess_over}'s: {own}" if self.excess_over else own for own in found
        ]
        found += [f"or {self.alternative}'s"] if self.alternative else []
        found += [f"as good as {self.against}"] if self.against else []
        found += [f"does not grow with {self.falls_along}"] if self.falls_along else []
        return ", ".join(found) or "no mark"

    @property
    def is_absent(self) -> bool:
        """Whether the value is reported without a mark."""
        return not (
            self.at_most is not None
            or self.at_least is not None
            or self.against
            or self.falls_along
        )


@dataclass(frozen=True, slots=True)
class Check:
    """A measure and its rule."""

    measure: str
    rule: Rule
    where: Mapping[str, object]
    """values of axes, one or a list: other networks do not count"""

    @property
    def words(self) -> str:
        """The measure and the networks it is of."""
        found = MEASURES[self.measure].label
        if not self.where:
            return found
        kept = [f"{axis} {_listed(value)}" for axis, value in self.where.items()]
        return f"{found} ({', '.join(kept)})"

    def is_of(self, axes: Mapping[str, object]) -> bool:
        """Whether a network with these values counts."""
        return all(
            axes.get(axis) in value if isinstance(value, list) else axes.get(axis) == value
            for axis, value in self.where.items()
        )


@dataclass(frozen=True, slots=True)
class Variant:
    """One run of several on a network."""

    name: str
    without: str = ""
    """pattern of flows that are left out"""
    only: str = ""
    """pattern of flows that stay"""
    values: Mapping[str, object] = field(default_factory=dict)
    """placeholders with another value"""


ONE_RUN = (Variant("run"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A scenario on its networks."""

    name: str
    duration_s: float
    """maximum"""
    packets: float = 0.0
    """of full size at the link's rate, after which a run may end; 0 for no such end"""
    rtts: float = 0.0
    """round trips that a run lasts at least, within the maximum"""
    sample_ms: float = 100.0
    n_networks: int
    n_networks_min: int
    """that a quick card runs, too"""
    axes: Mapping[str, Sequence[object]]
    values: Mapping[str, object] = field(default_factory=dict)
    """placeholders that are the same on all networks"""
    scenario: Mapping[str, object]
    variants: tuple[Variant, ...]
    checks: tuple[Check, ...]
    where: str
    """for errors"""


@dataclass(frozen=True, slots=True)
class Row:
    """One demand."""

    id: str
    name: str
    section: str
    word: str
    """the document's requirement word"""
    about: str
    """the demand in one sentence"""
    parts: tuple[Part, ...]
    note: str = ""
    not_applicable: str = ""
    """why the demand is not for this controller; empty if it is"""
    not_measured: str = ""
    """why there are no runs; empty if there are"""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is run."""

    runs: int
    """seeds per network"""
    networks: int
    """per part"""
    duration_s: float
    """of a run"""
    is_quick: bool = False
    """whether it is a first look alone"""

    @property
    def quick_words(self) -> str:
        """That a card is quick, and of how many seeds, for its title and name; else empty."""
        seeds = "one seed" if self.runs == 1 else f"{self.runs} seeds"
        return f"quick, {seeds}" if self.is_quick else ""


@dataclass(frozen=True, slots=True)
class Card:
    """All rows."""

    name: str
    title: str
    about: str
    document: str
    """what demands the rows"""
    rivals: tuple[str, ...]
    full: Limits
    quick: Limits
    kernel: Limits
    rows: tuple[Row, ...]
    path: str
    """of the file: traces are relative to it"""


def load(name: str) -> Card:
    """Read `scorecards/<name>.toml` here or above, or the file that `name` is the path of.

    Raises:
        ExperimentError: if there is none, or it is wrong.
    """
    path = lookup.find(name, "scorecard", ExperimentError)
    table = TomlTable.read(path)
    rows = tuple(_row(entry) for entry in table.tables("row"))
    ids = [row.id for row in rows]
    double = next((own for own in ids if ids.count(own) > 1), None)
    if double is not None:
        raise table.error("row.id", double, "an id that is used once")
    return table.into(
        Card,
        "runs",
        "row",
        "quick",
        "kernel",
        name=path.stem,
        full=Limits(table.whole("runs", 1, RUNS_MAX), NETWORKS_MAX, 1e8),
        quick=_limits(table.table("quick"), is_quick=True),
        kernel=_limits(table.table("kernel")),
        rows=rows,
        path=str(path),
    )


def chosen(card: Card, ids: Sequence[str]) -> Card:
    """The card with these rows alone; all of them if none is named.

    Raises:
        ExperimentError: if there is no such row.
    """
    known = {row.id.upper(): row for row in card.rows}
    for own in ids:
        if own.upper() not in known:
            raise ExperimentError(f"--row {own}: allowed: {', '.join(r.id for r in card.rows)}")
    wanted = {own.upper() for own in ids}
    rows = tuple(row for row in card.rows if not wanted or row.id.upper() in wanted)
    return replace(card, rows=rows)


def _listed(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _limits(table: TomlTable, *, is_quick: bool = False) -> Limits:
    numbers = (table.whole("runs", 1, RUNS_MAX), table.whole("networks", 1, NETWORKS_MAX))
    keys = ("runs", "networks")
    return table.into(Limits, *keys, runs=numbers[0], networks=numbers[1], is_quick=is_quick)


def _row(table: TomlTable) -> Row:
    parts = tuple(_part(entry) for entry in table.tables("part"))
    row = table.into(Row, "part", parts=parts)
    if sum(map(bool, [parts, row.not_applicable, row.not_measured])) != 1:
        allowed = "parts, not_applicable = 'why' or not_measured = 'why', one of them"
        raise table.error("part", len(parts), allowed)
    return row


def _part(table: TomlTable) -> Part:
    axes = table.table("axes").values
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise table.error(f"axes.{name}", values, "a list of values")
    variants = tuple(own.into(Variant) for own in table.tables("variants")) or ONE_RUN
    names = [own.name for own in variants]
    if len(set(names)) < len(names):
        raise table.error("variants.name", names, "every name once")

    def count(key: str, usual: int) -> int:
        return table.whole(key, 1, NETWORKS_MAX) if key in table.values else usual

    return table.into(
        Part,
        *("networks", "networks_min", "axes", "variants", "check"),
        n_networks=count("networks", NETWORKS_MAX),
        n_networks_min=count("networks_min", 1),
        axes=axes,
        variants=variants,
        checks=tuple(_check(entry, list(axes), names) for entry in table.tables("check")),
        where=table.where,
    )


def _check(table: TomlTable, axes: Sequence[str], variants: Sequence[str]) -> Check:
    measure = table.choice("measure", MEASURES)
    if not set(MEASURES[measure].variants) <= set(variants):
        allowed = f"in a part with the variants {', '.join(MEASURES[measure].variants)}"
        raise table.error("measure", measure, allowed)
    low, high = _bounds(table)
    rule = table.into(
        Rule,
        *("measure", "where", "or", "within", "at_most", "at_least"),
        at_most=high,
        at_least=low,
        alternative=table.string("or", ""),
    )
    if rule.falls_along and rule.falls_along not in axes:
        raise table.error("falls_along", rule.falls_along, ", ".join(axes))
    return Check(measure, rule, table.table("where").values)


def _bounds(table: TomlTable) -> tuple[float | None, float | None]:
    """Lower and upper bound of a value."""
    if "within" in table.values:
        ends = table.values["within"]
        if (
            not isinstance(ends, list)
            or len(ends) != 2
            or not all(isinstance(end, int | float) for end in ends)
        ):
            raise table.error("within", ends, "[lower, upper]")
        return float(ends[0]), float(ends[1])
    low = table.any_number("at_least") if "at_least" in table.values else None
    high = table.any_number("at_most") if "at_most" in table.values else None
    return low, high
