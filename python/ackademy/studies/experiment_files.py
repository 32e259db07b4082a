"""Reads `papers/<paper>/<item>.toml`: what to run, what was published, what had to be assumed.

The format is described in docs/reference/experiments.md. A file with `kind = "..."` is read by the
module that `ackademy.papers.KINDS` lists; one without is a table, which this module reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ackademy import lookup
from ackademy.backends.schemes import AS_WRITTEN
from ackademy.errors import ExperimentError
from ackademy.folders import CHECKOUT_ONLY, here_or_above, is_file, is_left_out
from ackademy.runner.cells import Assignment
from ackademy.stats.claims import Claim, RowName, parse_claim
from ackademy.stats.metrics import metric_of
from ackademy.studies.figures import Figure, parse_figure
from ackademy.toml_table import TomlTable, toml_value

Origin = Literal["paper", "source", "derived", "proposed"]
"""paper: printed there; source: from code or notes; derived: follows from these; proposed: ours"""

RUNS_MAX = 1_000_000
KEYS = (
    "kind",
    "title",
    "item",
    "about",
    "note",
    "scenario",
    "runs",
    "sample_interval_ms",
    "columns",
    "published",
    "scheme",
    "group",
    "assumption",
    "claim",
    "figure",
)
"""of a table's file"""
PAPER_KEYS = ("title", "authors", "venue", "doi", "scheme", "assumption")
SCHEME_KEYS = (
    "controller",
    "controllers",
    "params",
    "learns",
    "like",
    "missing",
    "flows",
    "deterministic",
    "fitted",
)
GROUP_KEYS = ("set", "learner_params", "params", "scenario", "x", "deterministic", "fitted")

NOT_PRINTED = "-"
"""a published cell without a number"""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something the numbers depend on, and who says so."""

    origin: Origin
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a published table: one scheme in one group."""

    scheme: str
    group: str
    published: Mapping[str, float]
    """by metric; without those that the paper does not print"""
    controller: str | None = None
    """of every flow; `None` leaves the scenario's own"""
    overrides: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, float | str] = field(default_factory=dict)
    assignments: tuple[Assignment, ...] = ()
    """controllers of some flows only"""
    flows: str = "*"
    """glob of the flows that the row's numbers are of"""
    scenario: Path | None = None
    """instead of the experiment's"""
    x: float | None = None
    """where the group lies on the horizontal axis of a line figure"""
    deterministic: str = ""
    """why one run is all there is; empty if runs differ"""
    missing: str = ""
    """why the row cannot be run; empty if it can"""
    fitted: str = ""
    """how its settings were chosen by the published numbers, so that agreement says nothing; empty
    if they were not"""

    @property
    def name(self) -> RowName:
        """What claims call the row by."""
        return (self.scheme, self.group)

    def has_runs_of(self, other: Row) -> bool:
        """Whether both are numbers of the same runs, perhaps of different flows in them."""
        mine, theirs = (
            (row.controller, row.overrides, row.params, row.assignments, row.scenario, row.missing)
            for row in (self, other)
        )
        return mine == theirs and bool(self.deterministic) == bool(other.deterministic)


@dataclass(frozen=True, slots=True)
class Paper:
    """Where the numbers were published."""

    title: str
    authors: str
    venue: str
    doi: str


@dataclass(frozen=True, slots=True)
class Item:
    """What stands above the numbers of a table or figure."""

    name: str
    """as on the command line: `kong2018/table5`"""
    path: Path
    """of its file"""
    paper: Paper
    item: str
    """what the paper calls it: `Table 5`"""
    title: str
    about: str


@dataclass(frozen=True, slots=True)
class Experiment(Item):
    """One table or figure of a paper."""

    scenario: Path
    runs: int
    sample_interval_ms: float
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    assumptions: tuple[Assumption, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...] = ()
    note: str = ""
    """what the published numbers are, where they are not printed ones"""


def find(name: str) -> Path:
    """The file of an experiment: a path, or `paper/item` in a folder `papers` here or above.

    Raises:
        ExperimentError: if there is none; the message lists those there are.
    """
    if name.endswith(".toml"):
        path = Path(name)
        if is_file(path):
            return path
        raise ExperimentError(f"{name}: no such file")
    for folder in here_or_above("papers"):
        path = folder / f"{name}.toml"
        if is_file(path) and path.name != "paper.toml":
            return path
    known = [*all_papers(), *available()]
    near = lookup.similar(name, known)
    more = f"similar: {', '.join(near)}" if near else f"known: {', '.join(known)}"
    raise ExperimentError(f"no experiment {name}; {more}")


def available() -> list[str]:
    """Names of all experiments that `find` finds."""
    names = {
        f"{path.parent.name}/{path.stem}"
        for folder in here_or_above("papers")
        for path in folder.glob("*/*.toml")
        if path.name != "paper.toml"
    }
    return sorted(names)


def all_papers() -> list[str]:
    """Names of the papers, each of which stands for all its experiments."""
    return sorted({name.partition("/")[0] for name in available()})


def name_of(path: Path) -> str:
    """What the command line calls the experiment in a file."""
    return f"{path.parent.resolve().name}/{path.stem}"


def load(name: str) -> Experiment:
    """Read a table or figure and the `paper.toml` beside it.

    Raises:
        ExperimentError: if a file is missing or wrong; the message names file and field.
    """
    path = find(name)
    item = TomlTable.read(path).only(*KEYS)
    common = TomlTable.read(path.parent / "paper.toml").only(*PAPER_KEYS)
    for group in item.keys("group"):
        item.table("group", group).only(*GROUP_KEYS)
    metrics = tuple(item.strings("columns"))
    for metric in metrics:
        metric_of(metric, f"{path}: columns")
    schemes = {
        key: (
            common.table("scheme", key).only(*SCHEME_KEYS),
            item.table("scheme", key).only(*SCHEME_KEYS),
        )
        for key in [*common.keys("scheme"), *item.keys("scheme")]
    }
    rows = tuple(_row(item, cells, metrics, schemes, path) for cells in item.lists("published"))
    names = [row.name for row in rows]
    return Experiment(
        name=name_of(path),
        path=path,
        paper=read_paper(path),
        item=item.string("item"),
        title=item.string("title"),
        about=item.string("about"),
        scenario=path.parent / item.string("scenario"),
        runs=item.whole("runs", 1, RUNS_MAX),
        sample_interval_ms=item.number("sample_interval_ms"),
        metrics=metrics,
        rows=rows,
        assumptions=(*parse_assumptions(item), *parse_assumptions(common)),
        claims=tuple(parse_claim(entry, names) for entry in item.tables("claim")),
        figures=tuple(parse_figure(entry, names) for entry in item.tables("figure")),
        note=item.string("note", ""),
    )


def read_paper(path: Path) -> Paper:
    """What `paper.toml` beside an experiment's file says of the paper.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    common = TomlTable.read(path.parent / "paper.toml").only(*PAPER_KEYS)
    return Paper(**{key: common.string(key) for key in ("title", "authors", "venue", "doi")})


def item_of(path: Path, table: TomlTable) -> dict[str, Any]:
    """The fields of `Item`, from an experiment's file.

    Raises:
        ExperimentError: if one is missing or wrong.
    """
    texts = {key: table.string(key) for key in ("item", "title", "about")}
    return {"name": name_of(path), "path": path, **texts, "paper": read_paper(path)}


def parse_assumptions(table: TomlTable) -> list[Assumption]:
    """The `[[assumption]]` entries of a file.

    Raises:
        ExperimentError: if one says nothing, or not who made it.
    """
    entries = []
    for entry in table.tables("assumption"):
        origin = entry.only("origin", "text").choice("origin", get_args(Origin))
        entries.append(Assumption(origin, entry.string("text")))
    return entries


def _row(
    item: TomlTable,
    cells: list[object],
    metrics: tuple[str, ...],
    schemes: Mapping[str, tuple[TomlTable, TomlTable]],
    path: Path,
) -> Row:
    if len(cells) != 2 + len(metrics):
        raise item.error("published", cells, f"scheme, group and {len(metrics)} numbers")
    scheme, group = str(cells[0]), str(cells[1])
    if scheme not in schemes:
        raise item.error("published", scheme, ", ".join(schemes))
    published = _published(item, cells, metrics)
    _, own = schemes[scheme]
    like = own.choice("like", schemes, scheme)
    common = schemes[like][0]
    for table in (common, own):
        _check_scheme(table, path.parent)
    where = own.where if own.values else common.where
    settings = TomlTable({**common.values, **own.values}, where)
    place = item.table("group", group)
    params = {
        **(
            place.table("learner_params").values if settings.switch("learns", default=False) else {}
        ),
        **common.table("params").values,
        **place.table("params", like).values,
        **own.table("params").values,
        **(place.table("params", scheme).values if scheme != like else {}),
    }
    missing = settings.string("missing", "") or _left_out(params, path.parent)
    if missing:
        return Row(scheme, group, published, missing=missing)
    controller, plain, assignments = _controllers(settings, params, path.parent)
    elsewhere = place.string("scenario", "")
    return Row(
        scheme=scheme,
        group=group,
        published=published,
        controller=controller,
        overrides={key: toml_value(value) for key, value in place.table("set").values.items()},
        params=plain,
        assignments=assignments,
        flows=settings.string("flows", "*"),
        scenario=path.parent / elsewhere if elsewhere else None,
        x=place.any_number("x") if "x" in place.values else None,
        deterministic=settings.string("deterministic", place.string("deterministic", "")),
        fitted=settings.string("fitted", place.string("fitted", "")),
    )


def _left_out(params: Mapping[str, object], folder: Path) -> str:
    """Why settings cannot be used where `research/` is missing; empty if they can."""
    for value in params.values():
        if isinstance(value, Mapping):
            if reason := _left_out(value, folder):
                return reason
        elif isinstance(value, str) and "\0" not in value and is_left_out(folder / value):
            return CHECKOUT_ONLY
    return ""


def _check_scheme(table: TomlTable, folder: Path) -> None:
    """Check the fields of a scheme in their own file: later they are mixed with another's.

    Raises:
        ExperimentError: naming the file.
    """
    for key in ("missing", "flows", "deterministic", "fitted", "controller", "like"):
        table.string(key, "")
    table.switch("learns", default=False)
    for key, value in table.table("params").values.items():
        if not isinstance(value, Mapping):
            setting(table, f"params.{key}", value, folder)


def _published(
    item: TomlTable, cells: Sequence[object], metrics: Sequence[str]
) -> dict[str, float]:
    numbers = {}
    for metric, value in zip(metrics, cells[2:], strict=True):
        if value == NOT_PRINTED:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise item.error("published", list(cells), f'numbers, or "{NOT_PRINTED}" for none')
        numbers[metric] = float(value)
    return numbers


def _controllers(
    settings: TomlTable, params: Mapping[str, object], folder: Path
) -> tuple[str | None, dict[str, float | str], tuple[Assignment, ...]]:
    """The controller of every flow and its settings, and those of some flows.

    A table among the settings is for the flows that its key, a glob, names. `controllers` is the
    glob of the flows that get the scheme's controller, or a table of controllers by glob.
    """
    own = {key: value for key, value in params.items() if isinstance(value, Mapping)}
    plain = {
        key: setting(settings, f"params.{key}", value, folder)
        for key, value in params.items()
        if key not in own
    }
    chosen = settings.values.get("controllers")
    if chosen is None:
        if own:
            raise settings.error("params", dict(own), "tables only beside controllers")
        controller = settings.string("controller")
        return (None if controller == AS_WRITTEN else controller), plain, ()
    if isinstance(chosen, str):
        chosen = {chosen: settings.string("controller")}
    if not isinstance(chosen, Mapping) or not all(isinstance(v, str) for v in chosen.values()):
        raise settings.error("controllers", chosen, "a glob, or controllers by glob")
    if not own.keys() <= chosen.keys():
        raise settings.error("params", dict(own), ", ".join(chosen))
    assignments = [
        Assignment(glob, controller, tuple((plain | _table(settings, own, glob, folder)).items()))
        for glob, controller in chosen.items()
    ]
    return None, {}, tuple(assignments)


def _table(
    settings: TomlTable, own: Mapping[str, object], glob: str, folder: Path
) -> dict[str, float | str]:
    values = cast("Mapping[str, object]", own.get(glob, {}))
    return {key: setting(settings, f"params.{key}", value, folder) for key, value in values.items()}


def setting(table: TomlTable, name: str, value: object, folder: Path) -> float | str:
    """A setting of a controller; a text with a slash is a file, relative to that of the table.

    Args:
        table: that it is in.
        name: of the setting, for an error.
        value: as the file has it.
        folder: of the file.

    Raises:
        ExperimentError: if it is neither a number nor a text that can be a path.
    """
    if isinstance(value, str):
        if "\0" in value:
            raise table.error(name, value, "a text without null characters")
        return str((folder / value).resolve()) if "/" in value else value
    if isinstance(value, int | float):
        return value
    raise table.error(name, value, "a number or a text")
