"""What `ackademy gap` prints: both sides and their difference, claims, notes on the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ackademy.console import Console
from ackademy.render.numbers import NONE, counted, percent, significant, with_interval
from ackademy.render.terminal import fitting, headed_table, kernel_notes
from ackademy.runner.cells import Cell
from ackademy.studies import gap
from ackademy.studies.gap import CLAIMS, COLUMNS, Claim, Column, Difference, Gap, label_of

SET_UP_S = 1.0
"""of namespaces, per run"""
VERDICT_STYLES: Mapping[gap.Verdict, str] = {
    "holds": "green",
    "does not hold": "red",
    "undecided": "yellow",
}
SIDES = "simulator\nkernel\ndifference"


def forecast(cells: Sequence[Cell]) -> str:
    """How long the runs on the kernel take, all of them in real time."""
    seconds = sum(cell.scenario().duration_s + SET_UP_S for cell in cells)
    return f"{len(cells)} runs on the kernel take about {_duration(seconds)}"


def tables(gaps: Sequence[Gap], console: Console) -> Group:
    """Three lines per scenario and controller, then the claims and notes."""
    names = {
        "scenario": [one.pair.scenario for one in gaps],
        "controller": [one.pair.controller for one in gaps],
        "": [SIDES if one.pair.sim else "kernel" for one in gaps],
    }
    numbers = {
        f"{column.label}\n{column.unit}".rstrip(): [_cell(one, column) for one in gaps]
        for column in COLUMNS
    } | {
        "late\nµs": [significant(one.lateness_us, 3) for one in gaps],
        "fall-\nbacks": [str(one.fallbacks) for one in gaps],
        "runs": [_runs(one) for one in gaps],
    }
    title = "mean ± half the 95 % interval; * a difference whose interval excludes 0"
    n_large = len(gap.large(gaps))
    line = f"{n_large} differences above {100 * gap.LARGE_RATIO:.0f} % (yellow)"
    return Group(
        *fitting(title, names, numbers, console),
        Text(line, style="yellow" if n_large else "green"),
        *_claims(gap.claims(gaps)),
        kernel_notes([run for one in gaps for run in one.kernel_runs]),
    )


def relative(difference: Difference) -> str:
    """The difference in per cent, with a star where its interval excludes 0."""
    return percent(difference.relative.value) + ("*" if difference.is_significant else "")


def _cell(one: Gap, column: Column) -> Text:
    if column.key == "jain" and one.n_flows == 1:
        return Text(NONE, style="dim")
    sides = [one.sim, one.kernel] if one.pair.sim else [one.kernel]
    estimates = [side.estimate(column.key) for side in sides]
    text = Text("\n".join(NONE if e is None else with_interval(e) for e in estimates))
    difference = one.differences.get(column.key)
    if difference is not None:
        text.append(f"\n{relative(difference)}", style="yellow" if difference.is_large else "dim")
    elif one.pair.sim:
        text.append(f"\n{NONE}", style="dim")
    return text


def _runs(one: Gap) -> str:
    on_kernel = counted(one.kernel.n_runs, one.n_invalid)
    return f"{one.sim.n_runs}\n{on_kernel}" if one.pair.sim else on_kernel


def _claims(claims: Sequence[Claim]) -> list[Table]:
    if not claims:
        return []
    title = "ours beside the kernel's own, both on the kernel"
    heads = [f"{label_of(column)}\nwithin {100 * bound:.0f} %" for column, bound in CLAIMS]
    table = headed_table(title, ["scenario", "ours", "theirs"], heads)
    rows: dict[tuple[str, str, str], list[Text]] = {}
    for claim in claims:
        text = Text(f"{percent(claim.observed.value)} {claim.verdict}")
        text.stylize(VERDICT_STYLES[claim.verdict])
        rows.setdefault((claim.scenario, claim.ours, claim.theirs), []).append(text)
    for names, verdicts in rows.items():
        table.add_row(*names, *verdicts)
    return [table]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
