"""Figures of an experiment: what they show, as `[[figure]]` of its file says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ackademy.stats.claims import RowName
from ackademy.stats.metrics import metric_of
from ackademy.toml_table import TomlTable

FigureKind = Literal["bars", "lines", "windows", "rates", "plane"]
"""bars: a metric by group and scheme; lines: over the groups' x; windows: cwnd over time; rates:
what all flows together deliver over time; plane: a metric over another, a dot per run and an
ellipse per scheme"""


KEYS = (
    "kind",
    "title",
    "about",
    "metric",
    "across",
    "schemes",
    "groups",
    "published",
    "x_label",
    "flows",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a report."""

    kind: FigureKind
    title: str
    about: str
    metric: str
    """empty for windows and rates"""
    rows: tuple[RowName, ...]
    """in the order of the file"""
    published: tuple[tuple[RowName, float], ...]
    """marks beside those of the table's columns, such as values read from a figure's pixels"""
    x_label: str
    across: str
    """plane: the metric to the right; `metric` goes upwards"""
    flows: tuple[str, ...]
    """windows, rates: globs; of windows, `mean:reno*` is one line, the mean over the flows that the
    glob names"""


def parse_figure(entry: TomlTable, rows: Sequence[RowName]) -> Figure:
    """Read a `[[figure]]`.

    Args:
        entry: with `kind`, `title`, and by kind `metric`, `across` or `flows`; `schemes` and
            `groups` choose among the rows.
        rows: all rows of the experiment.

    Raises:
        ExperimentError: if a field is wrong.
    """
    kind = entry.only(*KEYS).choice("kind", get_args(FigureKind))
    if kind not in ("windows", "rates"):
        metric_of(entry.string("metric"), entry.where)
    if kind == "plane":
        metric_of(entry.string("across"), entry.where)
    return Figure(
        kind=kind,
        title=entry.string("title"),
        about=entry.string("about", ""),
        metric=entry.string("metric", ""),
        rows=_chosen(entry, rows),
        published=tuple(_mark(entry, cells, rows) for cells in entry.lists("published", [])),
        x_label=entry.string("x_label", ""),
        across=entry.string("across", ""),
        flows=tuple(entry.strings("flows", ["*"])),
    )


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
