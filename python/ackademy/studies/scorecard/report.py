"""The report of a scorecard, to be attached to an Internet-Draft, and its numbers as CSV."""

from __future__ import annotations

import itertools
import math
import string
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ackademy.console import Console
from ackademy.csv_text import csv_text
from ackademy.render import terminal
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.shapes import bullets, fold
from ackademy.render.html.sheet import sheet
from ackademy.render.numbers import NONE, significant
from ackademy.render.report import Item, Only, Report, Section, in_terminal, in_text
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, Style, cell, number
from ackademy.stats.intervals import Interval
from ackademy.stats.network_metrics import MEASURES
from ackademy.stats.results import Estimate, Name, Results, Value, results
from ackademy.studies.scorecard.study import CheckResult, Plan, RowResult

CLASSES = {"pass": "holds", "fail": "fails", "reported": "undecided"}
"""of marks; the others are absent"""
STYLES: Mapping[str, Style] = {"pass": "good", "fail": "warn"}
"""of marks"""
DIGITS = 3
NARROW_WIDTH = 18
"""characters of a row's name and of its measure in a narrow table"""
HEAD = (
    "row",
    "name",
    "section",
    "word",
    "row_mark",
    "part",
    "measure",
    "unit",
    "networks",
    "seeds",
    "mark",
    "why",
)
OF_RIVAL = ("mean", "worst", "difference", "difference_low", "difference_high")


def report(
    plan: Plan,
    found: Sequence[RowResult],
    facts: Sequence[str],
    repeat: Callable[[str], str],
    console: Console,
    command: str = "",
) -> Report:
    """The report of a scorecard.

    Args:
        plan: what was to be run.
        found: what was measured.
        facts: lines about how it was run.
        repeat: the command that repeats a row.
        console: whose width the printed tables have.
        command: what the user typed.
    """
    counts: Counter[str] = Counter(own.mark.verdict for own in found)
    lead = (
        "Each row is one demand of the document. Its mark is decided by all its measures; the "
        "reason names those that fail."
    )
    numbers = (
        "The mean over the networks of the measure that decided each row's mark, the first "
        "where several did, the same for the rivals on the "
        "same networks and seeds, and the mean paired difference to the first rival with its 95 % "
        "interval."
    )
    whole = summary(plan, list(found))
    decided: list[Item] = [Only(whole, ("html", "markdown")), *_printed(plan, found, console)]
    decided += [
        in_text(f"{own.row.id} {own.mark.verdict}: {own.mark.why}") for own in found if own.mark.why
    ]
    return Report(
        kind=f"Scorecard · {plan.card.document}",
        title=plan.title,
        about=plan.card.about,
        facts={
            word: str(counts[verdict])
            for verdict, word in (
                ("pass", "rows pass"),
                ("fail", "rows fail"),
                ("reported", "rows are reported without a mark"),
                ("not measured", "rows are not measured"),
                ("not applicable", "rows do not apply"),
            )
        },
        sections=[
            Section("summary", "All rows", lead, [_summary(found)]),
            Section("numbers", "What decided", numbers, decided),
            Section("rows", "Row by row", "", [_row(plan, own, repeat) for own in found]),
            Section("marks", "How the marks are decided", "", [_rules()]),
            Section("run", "How it was run", "", [bullets(facts)]),
        ],
        command=command,
    )


def _printed(plan: Plan, found: Sequence[RowResult], console: Console) -> list[Item]:
    """One table if the terminal is wide enough, else one per group of rows."""
    whole = summary(plan, list(found))
    if len(terminal.sheet(whole, console)) == 1:
        return [in_terminal(whole)]
    rivals = [own.label for own in plan.schemes[1:]]
    for n_rivals in range(len(rivals), -1, -1):
        sheets = narrow(plan, found, n_rivals)
        if sum(len(terminal.sheet(own, console)) for own in sheets) == len(sheets):
            break
    left_out = ", ".join(rivals[n_rivals:])
    more = [f"{left_out}: in the report, or in a wider terminal"] if left_out else []
    return [*map(in_terminal, sheets), *map(in_terminal, more)]


def _summary(found: Sequence[RowResult]) -> Markup:
    """A line per row: mark, demand, why."""
    lines = []
    for own in found:
        anchor = element("a", f"{own.row.id} {own.row.name}", href=f"#row-{own.row.id}")
        badge = element(
            "span", own.mark.verdict, class_=f"badge {CLASSES.get(own.mark.verdict, 'absent')}"
        )
        text = element(
            "p", anchor, f" (section {own.row.section}, {own.row.word}): {own.row.about}"
        )
        why = element("p", own.mark.why, class_="hint") if own.mark.why else None
        lines.append(element("li", badge, text, why))
    return element("ul", join(lines), class_="claims")


def _row(plan: Plan, own: RowResult, repeat: Callable[[str], str]) -> Markup:
    verdict = own.mark.verdict
    head = element(
        "h3",
        f"{own.row.id} {own.row.name} ",
        element("span", verdict, class_=f"badge {CLASSES.get(verdict, 'absent')}"),
        id=f"row-{own.row.id}",
    )
    where = f"Section {own.row.section}, {own.row.word}. {own.row.about}"
    parts: list[Markup] = [head, element("p", where)]
    if own.mark.why:
        parts.append(element("p", own.mark.why, class_="hint"))
    parts += [element("p", note, class_="hint") for note in (own.row.note, *own.notes) if note]
    if own.checks:
        parts.append(sheet(checks(plan, own)))
        parts += [_networks(plan, check) for check in own.checks]
        parts.append(element("pre", element("code", repeat(own.row.id))))
    return element("article", join(parts))


def _networks(plan: Plan, own: CheckResult) -> Markup:
    about = MEASURES[own.check.measure].about
    durations = sorted({network.duration_s for network in own.networks})
    length = f"{durations[0]:g} s" if durations else ""
    length += f" to {durations[-1]:g} s" if len(durations) > 1 else ""
    hint = f"{len(own.values.networks)} networks, runs of {length}"
    body = (element("p", about, class_="hint"), sheet(networks(plan, own)))
    return fold(unit(own), *body, hint=hint)


def _rules() -> Markup:
    lines = (
        "RFC 9743 sets no thresholds and leaves the judgement to the community. Every bound here "
        "is a proposal of Ackademy.",
        "A bound holds if it holds on every network of the row, seeds averaged, unless the reason "
        "says p95, median or mean over networks.",
        "As good as a rival: the 95 % interval of the mean ratio to it, network by network, ends "
        "at most 5 % on the worse side. Student's t of the logarithms; a network is one "
        "observation. Where a value may be 0, the difference takes the place of the ratio. An "
        "interval that reaches farther fails the check: few networks may not suffice to show it.",
        "A row fails if one of its checks fails. Not applicable: the row asks for what this "
        "controller or backend does not have. Not measured: the runs are missing. Reported: "
        "no mark is proposed.",
    )
    return bullets(lines)


def tables(plan: Plan, found: Sequence[RowResult]) -> Results:
    """The two tables: a group per row of the card; intervals are of differences to rivals."""
    values, estimates = [], []
    for row in found:
        for own in row.checks:
            values += _values(row, own)
            for rival, interval in own.differences.items():
                name = Name(own.part.name, rival, row.row.id, plan.backend)
                n = len(own.values.networks)
                told = Estimate(name, own.check.measure, "mean difference", interval, n)
                estimates.append(told)
    once = {(one.name, one.seed, one.metric): one for one in values}  # checks share networks
    return results("scorecard", once.values(), estimates)


def _values(row: RowResult, own: CheckResult) -> list[Value]:
    return [
        Value(
            Name(f"{own.part.name}: {network}", scheme, row.row.id),
            seed + 1,
            own.check.measure,
            float(value),
        )
        for scheme, runs in own.values.runs.items()
        for network, of_seeds in zip(own.values.networks, runs, strict=True)
        for seed, value in enumerate(of_seeds)
    ]


def csv(plan: Plan, found: Sequence[RowResult], repeat: Callable[[str], str]) -> str:
    """One line per check; a row without checks has one line without numbers."""
    rivals = [own.label for own in plan.schemes[1:]]
    own = plan.scheme.label
    head = [*HEAD, f"{own}_mean", f"{own}_worst"]
    head += [f"{rival}_{word}" for rival in rivals for word in OF_RIVAL]
    lines: list[list[object]] = []
    for result in found:
        row = result.row
        names = [row.id, row.name, row.section, row.word, result.mark.verdict]
        if not result.checks:
            empty = [""] * (len(head) - len(HEAD))
            lines.append([*names, "", "", "", 0, 0, "", result.mark.why, *empty, repeat(row.id)])
        for check in result.checks:
            lines.append([*names, *_csv_cells(plan, check, rivals), repeat(row.id)])
    return csv_text([*head, "command"], lines)


def _csv_cells(plan: Plan, own: CheckResult, rivals: Sequence[str]) -> list[object]:
    scheme = plan.scheme.label
    cells: list[object] = [
        own.part.name,
        own.check.words,
        MEASURES[own.check.measure].unit,
        len(own.values.networks),
        plan.limits.runs,
        own.mark.verdict,
        own.mark.why,
        _text(own.value(scheme)),
        _text(own.worst(scheme)),
    ]
    for rival in rivals:
        difference = own.differences[rival]
        numbers = (own.value(rival), own.worst(rival), difference.value)
        cells += [_text(value) for value in (*numbers, difference.low, difference.high)]
    return cells


def _text(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def summary(plan: Plan, found: list[RowResult]) -> Sheet:
    """A line per row with the measure that decided its mark."""
    heads = (
        Head("measure"),
        *(Head(scheme.label) for scheme in plan.schemes),
        *_difference_heads(plan)[:1],
    )
    lines = tuple(_row_line(plan, own) for own in found)
    title = f"{plan.card.title}: {plan.title}"
    return Sheet(title, (Head("row"), Head("mark")), heads, lines)


def narrow(plan: Plan, found: Sequence[RowResult], n_rivals: int) -> list[Sheet]:
    """The summary for a narrow terminal: a sheet per group of rows, such as C1 to C10.

    The measure and the mark are below the row's name, the interval below the difference.

    Args:
        plan: who is tested.
        found: by row.
        n_rivals: the first so many of the rivals have a column.
    """
    schemes = [scheme.label for scheme in plan.schemes[: 1 + n_rivals]]
    heads = (*map(Head, schemes), *_difference_heads(plan)[:1])
    groups = itertools.groupby(found, key=lambda own: own.row.id.rstrip(string.digits))
    return [
        Sheet(
            f"{plan.card.title}: {plan.title}, {_rows_in_words(rows)}",
            (Head("row"),),
            heads,
            tuple(_narrow_line(plan, own, schemes) for own in rows),
        )
        for rows in (list(group) for _, group in groups)
    ]


def _rows_in_words(rows: Sequence[RowResult]) -> str:
    first, last = rows[0].row.id, rows[-1].row.id
    return first if first == last else f"{first} to {last}"


def _narrow_line(plan: Plan, found: RowResult, schemes: Sequence[str]) -> Line:
    name = "\n".join(textwrap.wrap(f"{found.row.id} {found.row.name}", NARROW_WIDTH))
    n_differences = len(_difference_heads(plan)[:1])
    decisive = found.decisive
    if decisive is None:
        empty = tuple(cell(NONE) for _ in range(len(schemes) + n_differences))
        return Line((Part(name),), empty, remark=found.mark.verdict)
    values = tuple(number(decisive.value(scheme), DIGITS) for scheme in schemes)
    words = [own.parts[0].text.split(" ", 1) for own in _differences(plan, decisive)[:1]]
    differences = tuple(Cell(tuple(Part(line) for line in lines)) for lines in words)
    remark = f"{found.mark.verdict}: {unit(decisive)}"
    names = (Part(name, STYLES.get(found.mark.verdict, "")),)
    return Line(names, (*values, *differences), remark=remark)


def checks(plan: Plan, found: RowResult) -> Sheet:
    """A line per check of a row: mean over networks, worst network, differences."""
    heads = (
        *(Head(scheme.label) for scheme in plan.schemes),
        *_difference_heads(plan),
        Head("mark"),
    )
    lines = tuple(
        Line(
            (Part(own.check.words), Part(own.part.name)),
            (
                *(_value(own, scheme.label) for scheme in plan.schemes),
                *_differences(plan, own),
                _mark(own.mark.verdict),
            ),
            note=_note(own),
        )
        for own in found.checks
    )
    return Sheet(found.row.name, (Head("measure"), Head("part")), heads, lines)


def _note(own: CheckResult) -> str:
    count = len(own.values.networks)
    return f"{count} network{'' if count == 1 else 's'} · {own.check.rule.words}"


def networks(plan: Plan, own: CheckResult) -> Sheet:
    """A line per network of a check."""
    lines = tuple(
        Line(
            (Part(name),),
            tuple(
                number(float(own.values.of(scheme.label)[index]), DIGITS) for scheme in plan.schemes
            ),
        )
        for index, name in enumerate(own.values.networks)
    )
    heads = tuple(Head(scheme.label) for scheme in plan.schemes)
    return Sheet(own.check.words, (Head("network"),), heads, lines)


def unit(own: CheckResult) -> str:
    """The measure with its unit."""
    found = MEASURES[own.check.measure].unit
    return f"{own.check.words}, {found}" if found else own.check.words


def interval_words(own: Interval | None) -> str:
    """A difference with the ends of its interval."""
    if own is None or math.isnan(own.value):
        return NONE
    value = _signed(own.value)
    if own.low == own.high:
        return value
    return f"{value} [{_signed(own.low)}, {_signed(own.high)}]"


def _signed(value: float) -> str:
    text = significant(value, 2)
    return f"+{text}" if value > 0.0 else text


def _row_line(plan: Plan, found: RowResult) -> Line:
    verdict = found.mark.verdict
    names = (Part(f"{found.row.id} {found.row.name}"), Part(verdict, STYLES.get(verdict, "")))
    decisive = found.decisive
    if decisive is None:
        empty = tuple(cell(NONE) for _ in (*plan.schemes, *_difference_heads(plan)[:1]))
        return Line(names, (cell(NONE), *empty))
    values = tuple(number(decisive.value(scheme.label), DIGITS) for scheme in plan.schemes)
    return Line(names, (cell(unit(decisive)), *values, *_differences(plan, decisive)[:1]))


def _difference_heads(plan: Plan) -> list[Head]:
    own = plan.scheme.label
    about = "mean paired difference with its 95 % interval"
    return [Head(f"− {rival.label}", about=about) for rival in plan.schemes if rival.label != own]


def _differences(plan: Plan, own: CheckResult) -> list[Cell]:
    others = [rival.label for rival in plan.schemes if rival.label != plan.scheme.label]
    return [cell(interval_words(own.differences.get(rival))) for rival in others]


def _value(own: CheckResult, scheme: str) -> Cell:
    mean, worst = own.value(scheme), own.worst(scheme)
    parts = [Part(significant(mean, DIGITS))]
    if len(own.values.networks) > 1:
        parts.append(Part(f"worst {significant(worst, DIGITS)}", "dim"))
    return Cell(tuple(parts), mean)


def _mark(verdict: str) -> Cell:
    return Cell((Part(verdict, STYLES.get(verdict, "")),))
