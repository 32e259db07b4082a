"""Reads `papers/<paper>/<item>.toml`: what to run, what was published, what had to be assumed.

The format is described in docs/reference/experiments.md. A file with `kind = "..."` is read by the
module that `ackademy.papers.KINDS` lists; one without is a table, which this module reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from ackademy import lookup
from ackademy.backends.schemes import AS_WRITTEN
from ackademy.errors import ExperimentError
from ackademy.folders import CHECKOUT_ONLY, here_or_above, is_file, is_left_out
from ackademy.runner.cells import Assignment
from ackademy.stats.claims import Claim, RowName, parse_claim
from ackademy.stats.metrics import metric_of
from ackademy.toml_table import TomlTable, toml_value

Origin = Literal["paper", "source", "derived", "proposed"]
"""paper: printed there; source: from code or notes; derived: follows from these; proposed: ours"""

RUNS_MAX = 1_000_000
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


FigureKind = Literal["bars", "lines", "windows", "rates", "plane"]
"""bars: a metric by group and scheme; lines: over the groups' x; windows: cwnd over time; rates:
what all flows together deliver over time; plane: a metric over another, a dot per run and an
ellipse per scheme"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a report."""

    kind: FigureKind
    title: str
    about: str = ""
    metric: str = ""
    """empty for windows and rates"""
    rows: tuple[RowName, ...]
    """in the order of the file"""
    published: tuple[tuple[RowName, float], ...]
    """marks beside those of the table's columns, such as values read from a figure's pixels"""
    x_label: str = ""
    across: str = ""
    """plane: the metric to the right; `metric` goes upwards"""
    flows: tuple[str, ...] = ("*",)
    """windows, rates: globs; of windows, `mean:reno*` is one line, the mean over the flows that the
    glob names"""


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
    item = TomlTable.read(path)
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
    return item.into(
        Experiment,
        *("kind", "scenario", "runs", "columns", "published", "scheme", "group", "assumption"),
        *("claim", "figure"),
        name=name_of(path),
        path=path,
        paper=read_paper(path),
        scenario=path.parent / item.string("scenario"),
        runs=item.whole("runs", 1, RUNS_MAX),
        metrics=metrics,
        rows=rows,
        assumptions=(*parse_assumptions(item), *parse_assumptions(common)),
        claims=tuple(parse_claim(entry, names) for entry in item.tables("claim")),
        figures=tuple(parse_figure(entry, names) for entry in item.tables("figure")),
    )


def read_paper(path: Path) -> Paper:
    """What `paper.toml` beside an experiment's file says of the paper.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    return TomlTable.read(path.parent / "paper.toml").into(Paper, "scheme", "assumption")


def parse_figure(entry: TomlTable, rows: Sequence[RowName]) -> Figure:
    """Read a `[[figure]]`.

    Args:
        entry: with `kind`, `title`, and by kind `metric`, `across` or `flows`; `schemes` and
            `groups` choose among the rows.
        rows: all rows of the experiment.

    Raises:
        ExperimentError: if a field is wrong.
    """
    found = entry.into(
        Figure,
        *("schemes", "groups", "published"),
        rows=_chosen(entry, rows),
        published=tuple(_mark(entry, cells, rows) for cells in entry.lists("published", [])),
    )
    if found.kind not in ("windows", "rates"):
        metric_of(entry.string("metric"), entry.where)
    if found.kind == "plane":
        metric_of(entry.string("across"), entry.where)
    return found


def _chosen(entry: TomlTable, rows: Sequence[RowName]) -> tuple[RowName, ...]:
    schemes = list(dict.fromkeys(scheme for scheme, _ in rows))
    groups = list(dict.fromkeys(group for _, group in rows))
    for key, known in (("schemes", schemes), ("groups", groups)):
        for name in entry.strings(key, known):
            if name not in known:
                raise entry.error(key, name, ", ".join(known))
    wanted = set(entry.strings("schemes", schemes)), set(entry.strings("groups", groups))
    return tuple(row for row in rows if row[0] in wanted[0] and row[1] in wanted[1])


def _mark(
    entry: TomlTable, cells: Sequence[object], rows: Sequence[RowName]
) -> tuple[RowName, float]:
    if len(cells) != 3 or tuple(cells[:2]) not in rows or not isinstance(cells[2], int | float):
        raise entry.error("published", list(cells), "scheme, group and a number")
    return (str(cells[0]), str(cells[1])), float(cells[2])


def parse_assumptions(table: TomlTable) -> list[Assumption]:
    """The `[[assumption]]` entries of a file.

    Raises:
        ExperimentError: if one says nothing, or not who made it.
    """
    return [entry.into(Assumption) for entry in table.tables("assumption")]


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
