"""Reads `papers/<paper>/<item>.toml`: what to run, what was published, what had to be assumed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from ackademy.errors import ExperimentError

Origin = Literal["paper", "source", "derived", "proposed"]
"""paper: printed there; source: from code or notes; derived: follows from these; proposed: ours"""

RowName = tuple[str, str]
"""Scheme and group, as in ("RL-TCP", "L = 50")."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the numbers depend on, and who says so."""

    origin: Origin
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, as a comparison of one metric between two rows."""

    text: str
    where: str
    metric: str
    row: RowName
    against: RowName
    min_ratio: float | None = None
    max_ratio: float | None = None
    min_difference: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a published table."""

    scheme: str
    group: str
    published: Mapping[str, float]
    controller: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, float | str] = field(default_factory=dict)
    deterministic: str = ""
    """why one run is all there is; empty if runs differ"""
    missing: str = ""
    """why the row cannot be run; empty if it can"""

    @property
    def name(self) -> RowName:
        """What claims call the row by."""
        return (self.scheme, self.group)


@dataclass(frozen=True, slots=True)
class Paper:
    """Where the numbers were published."""

    title: str
    authors: str
    venue: str
    doi: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure of a paper."""

    name: str
    """as on the command line: `kong2018/table5`"""
    path: Path
    paper: Paper
    item: str
    title: str
    about: str
    scenario: Path
    runs: int
    sample_interval_ms: float
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    assumptions: tuple[Assumption, ...]
    claims: tuple[Claim, ...]


def find(name: str) -> Path:
    """The file of an experiment: a path, or `paper/item` in a folder `papers` here or above.

    Raises:
        ExperimentError: if there is none; the message lists those there are.
    """
    if name.endswith(".toml"):
        path = Path(name)
        if path.is_file():
            return path
        raise ExperimentError(f"{name}: no such file")
    for folder in _paper_folders():
        path = folder / f"{name}.toml"
        if path.is_file() and path.name != "paper.toml":
            return path
    known = ", ".join(available()) or "none here: run this where the folder papers/ is"
    raise ExperimentError(f"no experiment {name}; known: {known}")


def available() -> list[str]:
    """Names of all experiments that `find` finds."""
    names = {
        f"{path.parent.name}/{path.stem}"
        for folder in _paper_folders()
        for path in folder.glob("*/*.toml")
        if path.name != "paper.toml"
    }
    return sorted(names)


def load(name: str) -> Experiment:
    """Read an experiment and the `paper.toml` beside it.

    Raises:
        ExperimentError: if a file is missing or wrong; the message names file and field.
    """
    path = find(name)
    item, common = _Table.read(path), _Table.read(path.parent / "paper.toml")
    metrics = tuple(item.strings("columns"))
    paper = Paper(**{key: common.string(key) for key in ("title", "authors", "venue", "doi")})
    schemes = {
        key: (common.table("scheme", key), item.table("scheme", key))
        for key in [*common.keys("scheme"), *item.keys("scheme")]
    }
    rows = tuple(_row(item, cells, metrics, schemes) for cells in item.lists("published"))
    experiment = Experiment(
        name=f"{path.parent.resolve().name}/{path.stem}",
        path=path,
        paper=paper,
        item=item.string("item"),
        title=item.string("title"),
        about=item.string("about"),
        scenario=path.parent / item.string("scenario"),
        runs=int(item.number("runs")),
        sample_interval_ms=item.number("sample_interval_ms"),
        metrics=metrics,
        rows=rows,
        assumptions=(*_assumptions(item), *_assumptions(common)),
        claims=tuple(_claim(entry) for entry in item.tables("claim")),
    )
    _check_claims(experiment)
    return experiment


@dataclass(frozen=True, slots=True)
class _Table:
    """A TOML table that knows where it is, for error messages."""

    values: Mapping[str, object]
    where: str

    @classmethod
    def read(cls, path: Path) -> _Table:
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ExperimentError(f"{path}: {error}") from error

    def string(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, value, "a text")
        return value

    def number(self, key: str) -> float:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise self.error(key, value, "a number from 0")
        return float(value)

    def optional_number(self, key: str) -> float | None:
        return self.number(key) if key in self.values else None

    def strings(self, key: str) -> list[str]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.error(key, value, "a list of texts")
        return value

    def lists(self, key: str) -> list[list[object]]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(entry, list) for entry in value):
            raise self.error(key, value, "a list of lists")
        return value

    def keys(self, key: str) -> list[str]:
        return list(cast("Mapping[str, object]", self.values.get(key, {})))

    def table(self, *keys: str) -> _Table:
        """The table below these keys; an empty one if there is none."""
        here: object = self.values
        for key in keys:
            here = here.get(key, {}) if isinstance(here, Mapping) else None
        where = ".".join(keys)
        if not isinstance(here, Mapping):
            raise self.error(where, here, "a table")
        return _Table(here, f"{self.where}: {where}")

    def tables(self, key: str) -> list[_Table]:
        entries = self.values.get(key, [])
        if not isinstance(entries, list):
            raise self.error(key, entries, "a list of tables")
        return [_Table(entry, f"{self.where}: {key}[{i}]") for i, entry in enumerate(entries)]

    def error(self, key: str, value: object, allowed: str) -> ExperimentError:
        return ExperimentError(f"{self.where}: {key} = {value!r}: allowed: {allowed}")


def _row(
    item: _Table,
    cells: list[object],
    metrics: tuple[str, ...],
    schemes: Mapping[str, tuple[_Table, _Table]],
) -> Row:
    if len(cells) != 2 + len(metrics):
        raise item.error("published", cells, f"scheme, group and {len(metrics)} numbers")
    scheme, group = str(cells[0]), str(cells[1])
    if scheme not in schemes:
        raise item.error("published", scheme, ", ".join(schemes))
    published = {
        key: float(cast("float", value)) for key, value in zip(metrics, cells[2:], strict=True)
    }
    common, own = schemes[scheme]
    like = own.string("like", scheme)
    if like not in schemes:
        raise own.error("like", like, ", ".join(schemes))
    common = schemes[like][0]
    settings = item.table("group", group)
    missing = common.string("missing", "")
    if missing:
        return Row(scheme, group, published, missing=missing)
    learner = settings.table("learner_params") if common.values.get("learns") else None
    params = {**(learner.values if learner else {}), **common.table("params").values}
    return Row(
        scheme=scheme,
        group=group,
        published=published,
        controller=common.string("controller"),
        overrides={key: _toml(value) for key, value in settings.table("set").values.items()},
        params=cast("Mapping[str, float | str]", params | dict(own.table("params").values)),
        deterministic=own.string("deterministic", ""),
    )


def _assumptions(table: _Table) -> list[Assumption]:
    entries = []
    for entry in table.tables("assumption"):
        origin = entry.string("origin")
        if origin not in get_args(Origin):
            raise entry.error("origin", origin, ", ".join(get_args(Origin)))
        entries.append(Assumption(cast("Origin", origin), entry.string("text")))
    return entries


def _claim(entry: _Table) -> Claim:
    bounds = {
        key: entry.optional_number(key) for key in ("min_ratio", "max_ratio", "min_difference")
    }
    if sum(value is not None for value in bounds.values()) != 1:
        raise entry.error("bound", bounds, "exactly one of min_ratio, max_ratio, min_difference")
    row, against = entry.strings("row"), entry.strings("against")
    return Claim(
        text=entry.string("text"),
        where=entry.string("where"),
        metric=entry.string("metric"),
        row=(row[0], row[1]),
        against=(against[0], against[1]),
        **bounds,
    )


def _check_claims(experiment: Experiment) -> None:
    names = {row.name for row in experiment.rows}
    for claim in experiment.claims:
        for name in (claim.row, claim.against):
            if name not in names:
                raise ExperimentError(f"{experiment.path}: claim about {name}: no such row")


def _toml(value: object) -> str:
    """A TOML value of a number, a switch or a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _paper_folders() -> list[Path]:
    """Folders `papers` of the current folder, of those above it, and of the source checkout."""
    here = Path.cwd()
    roots = [here, *here.parents, Path(__file__).resolve().parents[2]]
    return [folder for root in roots if (folder := root / "papers").is_dir()]
