"""Make the tables of docs/results from what commands write, Markdown or CSV.

`docs/results/data/sources.toml` says for each table which of these functions makes it:

    file: F                 the lines of a CSV file
    file: F, below: H       the first table below a line with H in a Markdown file
    stack: C, words: [A]    one such table for each word (by default of the source's `each`), in
                            place of `{each}`, one below the other; the word is in column C
    across: {lines, columns, cells}
                            a line per value of `lines`, a column per value of the column `columns`;
                            a cell has the values of the columns `cells`, joined by ` · `
    grid: {columns, cell, head, swap}
                            of `reproduce`: a line per scheme and a column per group, or the other
                            way about (`swap`: the schemes); in a cell, `{metric:.3f}` is ours,
                            `{metric:.3f±}` with half of the interval, `{metric:.3f?}` published
    gains: {metric, own, bases, groups}
                            of `reproduce`: per group, a scheme's number and its gains over others
    claims: A               of `reproduce`'s Markdown: the claims whose text has A, with a ratio
    beside: {controller, baseline, metrics}
                            of `gap`: per scenario, metrics (name = heading) of the simulator, the
                            daemon and a controller of the kernel
    cards: true             of `scorecard`: mark and mean of the first measure of each row
    keep: {C = [A, B]}      only the lines whose column C has one of these values
    heads, lines            other names for columns, and for values of the first column
    drop, sort              columns to leave out; the column to sort by, the largest first
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, str]
Spec = Mapping[str, Any]
ENDS_OF_INTERVALS = (" ±", " low", " high")
HALF = re.compile(r"(\S+) ± (\S+)")
ENDS = re.compile(r"(\S+) \[(\S+), (\S+)\]")
FIELD = re.compile(r"\{([^{}]+):([^:{}±?]+)([±?]?)\}")
CLAIM = re.compile(
    r"- (?P<verdict>holds|does not hold|undecided): (?P<claim>.*?)\. .*?: ratio of .*? "
    r"(?P<ratio>[\d.]+), nominal 95 % (?P<low>[\d.]+) to (?P<high>[\d.]+);"
)
MARKED = re.compile(r"\*\*(.*)\*\*|`(.*)`")


def rows_of(root: Path, spec: Spec, each: Iterable[str] = ()) -> list[Row]:
    """The lines of a table, from the files that its command has written."""
    if spec.get("cards"):
        return cards({word: _read(root / _for(spec, word)["file"]) for word in each})
    if "stack" in spec:
        rows = [
            {spec["stack"]: word, **row}
            for word in spec.get("words", each)
            for row in _rows(root, _for(spec, word))
        ]
    else:
        rows = _rows(root, spec)
    if "sort" in spec:
        rows = sorted(rows, key=lambda row: -float(row[spec["sort"]].split()[0]))
    dropped = spec.get("drop", ())
    return [{name: text for name, text in row.items() if name not in dropped} for row in rows]


def write_rows(path: Path, rows: list[Row]) -> None:
    """Writes lines as CSV, an interval of any line beside its column in all of them."""
    found = list(dict.fromkeys(name for row in rows for name in row))
    plain = [name for name in found if not name.endswith(ENDS_OF_INTERVALS)]
    columns = [one for name in plain for one in (name, *(name + end for end in ENDS_OF_INTERVALS))]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [one for one in columns if one in found], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def below(text: str, heading: str) -> list[Row]:
    """The first table of a Markdown text below a line that has this heading.

    Raises:
        ValueError: if there is none.
    """
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("|") and heading in line:
            break
    table: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            words = re.split(r"(?<!\\)\|", line)[1:-1]
            table.append([_plain(word.strip()) for word in words])
        elif table:
            break
    if len(table) < 2:
        raise ValueError(f"no table below {heading!r}")
    return [with_intervals(dict(zip(table[0], line, strict=True))) for line in table[2:]]


def with_intervals(row: Row) -> Row:
    """A line whose `1 ± 2` and `1 [0, 2]` are in columns of their own."""
    found: Row = {}
    for name, text in row.items():
        plain = re.sub(r"−(?=\d)", "-", text)
        if half := HALF.fullmatch(plain):
            found |= {name: half[1], f"{name} ±": half[2]}
        elif ends := ENDS.fullmatch(plain):
            found |= {name: ends[1], f"{name} low": ends[2], f"{name} high": ends[3]}
        else:
            found[name] = plain
    return found


def across(rows: list[Row], lines: list[str], columns: str, cells: list[str]) -> list[Row]:
    """One line for each value of the columns `lines`, one column for each value of `columns`."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        own = found.setdefault(tuple(row[one] for one in lines), {one: row[one] for one in lines})
        own[row[columns]] = " · ".join(row[one] for one in cells)
    return list(found.values())


def beside(text: str, controller: str, baseline: str, metrics: Mapping[str, str]) -> list[Row]:
    """A line per scenario of a gap's Markdown: a controller on both sides, and a kernel's own."""
    found: dict[str, Row] = {}
    for metric, heading in metrics.items():
        for row in below(text, heading):
            sides = {controller: {"simulator": "simulator", "kernel": "daemon"}}
            sides[baseline] = {"kernel": baseline}
            line = found.setdefault(row["scenario"], {"scenario": row["scenario"]})
            for side, name in sides.get(row["controller"], {}).items():
                for end in ("", *ENDS_OF_INTERVALS):
                    if side + end in row:
                        line[f"{metric}, {name}{end}"] = row[side + end]
    return list(found.values())


def grid(
    rows: list[Row],
    columns: list[str],
    cell: str | Mapping[str, str],
    head: str = "scheme",
    swap: Iterable[str] = (),
) -> list[Row]:
    """Schemes by groups of a reproduction's numbers; with `swap`, groups by these schemes.

    Several cells by name are columns of one group.
    """
    numbers = {(row["row"], row["metric"]): row for row in rows}
    names = dict.fromkeys(row["row"] for row in rows)
    schemes = dict.fromkeys(
        name.removesuffix(f" {group}")
        for name in names
        for group in columns
        if name.endswith(f" {group}")
    )
    cells = cell if isinstance(cell, Mapping) else {"": cell}
    found: dict[str, Row] = {}
    for scheme in list(swap) or schemes:
        for group in columns:
            if f"{scheme} {group}" not in names:
                continue
            line, column = (group, scheme) if swap else (scheme, group)
            own = found.setdefault(line, {head: line})
            for name, template in cells.items():
                own[name or column] = filled(template, f"{scheme} {group}", numbers)
    return [with_intervals(row) for row in found.values()]


def gains(
    rows: list[Row],
    metric: str,
    own: list[str],
    bases: Mapping[str, str],
    groups: Mapping[str, str],
) -> list[Row]:
    """A line per group by its label: a scheme's number, and its gain over others in per cent.

    The scheme is the first of `own` that a group has; a group without a base has the first group's.
    """
    numbers = {(row["row"], row["metric"]): row for row in rows}

    def found(schemes: Iterable[str], names: Iterable[str]) -> str:
        wanted = (f"{scheme} {group}" for group in names for scheme in schemes)
        return next(row for row in wanted if (row, metric) in numbers)

    first, lines = next(iter(groups.values())), []
    for label, group in groups.items():
        row = found(own, [group])
        line = {"choice": label, own[-1]: filled(f"{{{metric}:.2f±}}", row, numbers)}
        for name, base in bases.items():
            beside = numbers[found([base], [group, first]), metric]["ours"]
            ratio = float(numbers[row, metric]["ours"]) / float(beside)
            line[name] = f"{100 * (ratio - 1):.0f}"
        lines.append(with_intervals(line))
    return lines


def claims(text: str, part: str) -> list[Row]:
    """The claims of a reproduction's Markdown whose text has `part`, each with our ratio."""
    return [
        {
            "claim": _plain(found["claim"]),
            "our ratio": found["ratio"],
            "our ratio low": found["low"],
            "our ratio high": found["high"],
            "verdict": found["verdict"],
        }
        for line in text.splitlines()
        if (found := CLAIM.match(line)) and part in found["claim"]
    ]


def filled(cell: str, row: str, numbers: Mapping[tuple[str, str], Row]) -> str:
    """The text of a cell: the numbers of a row that its template names."""

    def shown(field: re.Match[str]) -> str:
        found = numbers[row, field[1]]
        text = found["published" if field[3] == "?" else "ours"]
        if not text:
            return "–"
        number = format(float(text), field[2])
        if field[3] != "±":
            return number
        half = (float(found["ci_high"]) - float(found["ci_low"])) / 2
        return number if math.isnan(half) or half == 0 else f"{number} ± {half:{field[2]}}"

    return FIELD.sub(shown, cell)


def cards(files: Mapping[str, list[Row]]) -> list[Row]:
    """A line per row of the card: its first measure, and each controller's mark and mean."""
    lines: dict[str, Row] = {}
    marks: dict[str, list[str]] = {}
    for name, rows in files.items():
        for row in rows:
            title = f"{row['row']} {row['name']}"
            unit = f", {row['unit']}" if row["unit"] else ""
            line = lines.setdefault(title, {"row": title, "first measure": row["measure"] + unit})
            if name not in line:
                mean = row.get(f"{name}_mean", "")
                line[name] = f"{row['row_mark']} {float(mean):.3g}" if mean else row["row_mark"]
                marks.setdefault(name, []).append(row["row_mark"])
    counts = {
        name: f"{own.count('pass')} pass, {own.count('fail')} fail" for name, own in marks.items()
    }
    return [*lines.values(), {"row": "all", "first measure": "", **counts}]


def _plain(text: str) -> str:
    """The text of a cell without Markdown."""
    marked = MARKED.fullmatch(text)
    return re.sub(r"\\(?=[|*])", "", (marked[1] or marked[2]) if marked else text)


def _for(spec: Spec, word: str) -> dict[str, Any]:
    """What makes a table, with a word in place of `{each}`."""
    named: dict[str, Any] = json.loads(json.dumps(dict(spec)).replace("{each}", word))
    return named


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _rows(root: Path, spec: Spec) -> list[Row]:
    path = root / spec["file"]
    if "beside" in spec:
        return beside(path.read_text("utf-8"), **spec["beside"])
    if "claims" in spec:
        return claims(path.read_text("utf-8"), spec["claims"])
    rows = below(path.read_text("utf-8"), spec["below"]) if "below" in spec else _read(path)
    for column, values in spec.get("keep", {}).items():
        rows = [row for row in rows if row[column] in values]
    if "across" in spec:
        rows = across(rows, **spec["across"])
    if "grid" in spec:
        rows = grid(rows, **spec["grid"])
    if "gains" in spec:
        rows = gains(rows, **spec["gains"])
    heads, lines = spec.get("heads", {}), spec.get("lines", {})
    renamed = []
    for row in rows:
        found = {_renamed(name, heads): text for name, text in row.items()}
        first = next(iter(found))
        renamed.append(found | {first: lines.get(found[first], found[first])})
    return renamed


def _renamed(name: str, heads: Mapping[str, str]) -> str:
    """The name of a column, or of the end of its interval, that is to be called otherwise."""
    end = next((end for end in ENDS_OF_INTERVALS if name.endswith(end)), "")
    return heads.get(name.removesuffix(end), name.removesuffix(end)) + end
