"""Draw the tables of docs/ from the CSV files of docs/results/data, and make those files.

    python tools/results.py            write every table into its page
    python tools/results.py --check    say which pages differ from their data; status 1 if any does
    python tools/results.py --list     command, hours and program of each CSV file
    python tools/results.py --make     run the commands whose tables are not of this program

`--make` leaves out what needs more than this project (`needs` in sources.toml), unless a table is
named. A killed one continues: tables that are made are kept, and so are the studies' cells.

A page has a table between `<!-- table: NAME -->` and `<!-- end -->`. Fields after the name,
separated by `;`, with several values separated by `|`:

    columns: A | B = C   these columns, in this order; column C under the heading B
    where: A = x         only lines whose column A is x
    metrics: A = key     of a file with a column `metric`: this metric under the heading A
    one: A               the first line of each value of column A
    first: 10            only so many lines

The columns `X ±`, or `X low` and `X high`, are the 95 % interval of X and are shown in its cell.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import result_tables

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DATA = DOCS / "results" / "data"
MADE = DATA / "made.json"
BLOCK = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
KEYS = ("row", "scheme")
"""Columns that name a line of a file with one line per metric."""

Row = dict[str, str]


def read(name: str) -> list[Row]:
    """The lines of a CSV file."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shown(number: str) -> str:
    """A text with typographic minus signs; a number of more than five digits with four."""
    if NUMBER.fullmatch(number) and len(re.sub(r"e.*|\D", "", number).lstrip("0")) > 5:
        number = f"{float(number):.4g}"
    return re.sub(r"(^|(?<= )|(?<=\de))-(?=\d)", "−", number)


def cell(row: Row, column: str) -> str:
    """The text of a cell: the value, and its interval if it has one."""
    value = shown(row[column])
    if half := row.get(f"{column} ±"):
        return f"{value} ± {shown(half)}"
    if low := row.get(f"{column} low"):
        return f"{value} [{shown(low)}, {shown(row[f'{column} high'])}]"
    return value


def pivoted(rows: list[Row], metrics: list[str]) -> list[Row]:
    """One line per scheme of a file with one line per metric."""
    key = next(key for key in KEYS if key in rows[0])
    lines: dict[str, Row] = {}
    for row in rows:
        for heading, metric in (metric.split(" = ") for metric in metrics):
            if row["metric"] != metric:
                continue
            line = lines.setdefault(row[key], {key: row[key]})
            if row.get("published") not in (None, "", "nan"):
                line[f"{heading}, published"] = row["published"]
            low, high = (row.get("ci_low", row.get("low")), row.get("ci_high", row.get("high")))
            line[heading] = row.get("ours") or row["estimate"]
            if low not in (None, "", "nan") and float(high or low) > float(low):
                line[f"{heading} ±"] = f"{(float(high or low) - float(low)) / 2:.2g}"
    return list(lines.values())


def fields(text: str) -> tuple[str, dict[str, list[str]]]:
    """The name of a table and what its marker asks for."""
    name, *rest = (part.strip() for part in text.split(";"))
    asked: dict[str, list[str]] = {
        "columns": [], "where": [], "metrics": [], "one": [], "first": [],
    }  # fmt: skip
    for part in rest:
        field, _, value = part.partition(":")
        asked[field] += [one.strip() for one in value.split("|")]
    return name, asked


def table(marker: str) -> str:
    """The Markdown of the table that a marker asks for."""
    name, asked = fields(marker)
    rows = read(name)
    for condition in asked["where"]:
        column, _, value = condition.partition(" = ")
        rows = [row for row in rows if row[column] == value]
    if asked["metrics"]:
        rows = pivoted(rows, asked["metrics"])
    for column in asked["one"]:
        of_value: dict[str, Row] = {}
        for row in rows:
            of_value.setdefault(row[column], row)
        rows = list(of_value.values())
    rows = rows[: int(*asked["first"])] if asked["first"] else rows
    columns = [column for row in rows for column in row]
    columns = asked["columns"] or [
        column
        for column in dict.fromkeys(columns)
        if not re.search(r" (±|low|high)$", column) or column.rsplit(" ", 1)[0] not in columns
    ]
    pairs = [(one.split(" = ")[0], one.split(" = ")[-1]) for one in columns]
    body = [
        [cell(row, source).replace("|", "\\|") if source in row else "" for _, source in pairs]
        for row in rows
    ]
    right = [
        index > 0 and any(line[index][:1].isdigit() or line[index][:1] in "−+" for line in body)
        for index in range(len(pairs))
    ]
    head = [heading for heading, _ in pairs]
    rule = ["---:" if number else "---" for number in right]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, rule, *body])


def drawn(text: str) -> str:
    """A page with its tables drawn anew."""
    return BLOCK.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def sources() -> list[dict[str, Any]]:
    """What makes the CSV files: command, hours, `tables` that are made, others `by_hand`."""
    found: list[dict[str, Any]] = tomllib.loads(
        (DATA / "sources.toml").read_text(encoding="utf-8")
    )["source"]
    return found


def names_of(entry: dict[str, Any]) -> list[str]:
    """The CSV files of a source."""
    return [*entry.get("tables", {}), *entry.get("by_hand", [])]


def commands_of(entry: dict[str, Any]) -> list[str]:
    """The commands that a source takes, one for each of its words."""
    return [entry["command"].replace("{each}", word) for word in entry.get("each", [""])]


def program() -> str:
    """The versions of the installed program, which name the sources of its core."""
    done = subprocess.run(
        [sys.executable, "-m", "ackademy", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def of_program(name: str, entry: dict[str, Any], made: dict[str, list[str]]) -> str:
    """The program of a table: the one that made it, or what its source says."""
    if name in entry.get("tables", {}) and name in made:
        return made[name][1]
    return str(entry.get("program", "not made yet"))


def made_tables() -> dict[str, list[str]]:
    """The command and the program of each table that `--make` made."""
    found: dict[str, list[str]] = (
        json.loads(MADE.read_text(encoding="utf-8")) if MADE.exists() else {}
    )
    return found


def due(names: list[str], made: dict[str, list[str]], now: str) -> list[dict[str, Any]]:
    """The sources with a table that is not of this program, those with needs if they are named."""
    found = []
    for entry in sources():
        own = [name for name in entry.get("tables", {}) if not names or name in names]
        stale = [name for name in own if made.get(name) != [entry["command"], now]]
        if stale and "needs" in entry and not names:
            print(f"{', '.join(stale)}: left out; needs {entry['needs']}; name them to make them")
        elif stale:
            found.append(entry | {"tables": {name: entry["tables"][name] for name in stale}})
    return found


def make(names: list[str]) -> None:
    """Run the commands whose tables are not of this program, and write their CSV files."""
    made, now = made_tables(), program()
    todo = due(names, made, now)
    print(f"{len(todo)} sources, {sum(entry['hours'] for entry in todo):.2g} h of one core")
    (ROOT / "reports").mkdir(exist_ok=True)
    for entry in todo:
        for command in commands_of(entry):
            print(f"{', '.join(entry['tables'])}: {command} ({entry['hours']} h)", flush=True)
            environment = f"{Path(sys.executable).parent}:$PATH"
            subprocess.run(f"PATH={environment} {command}", shell=True, cwd=ROOT, check=True)
        for name, spec in entry["tables"].items():
            rows = result_tables.rows_of(ROOT, spec, entry.get("each", []))
            result_tables.write_rows(DATA / f"{name}.csv", rows)
            made[name] = [entry["command"], now]
        MADE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def show_sources() -> None:
    """Print the command, the hours and the program of each CSV file, and all hours."""
    made = made_tables()
    for entry in sources():
        for name in names_of(entry):
            by_hand = "" if name in entry.get("tables", {}) else "; put together by hand"
            print(f"{name}: {of_program(name, entry, made)}{by_hand}")
        needs = f", needs {entry['needs']}" if "needs" in entry else ""
        each = f" for {', '.join(entry['each'])}" if "each" in entry else ""
        print(f"    {entry['command']}{each} ({entry['hours']} h{needs})")
    print(f"{sum(entry['hours'] for entry in sources()):.3g} h of one core in all")


def main() -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("names", nargs="*", help="only these CSV files")
    asked = parser.parse_args()
    if asked.list:
        show_sources()
        return
    if asked.make:
        make(asked.names)
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := drawn(text)) != text:
            stale.append(str(page.relative_to(ROOT)))
            if not asked.check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(f"{page}: tables differ from their data" for page in stale if asked.check))
    sys.exit(1 if asked.check and stale else 0)


if __name__ == "__main__":
    main()
