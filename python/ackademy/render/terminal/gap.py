"""What `ackademy gap` prints: both sides and their difference, claims, notes on the runs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from ackademy.console import Console
from ackademy.render.sheets import gap as sheets
from ackademy.render.terminal import kernel_notes
from ackademy.render.terminal import sheets as tables_of
from ackademy.runner.cells import Cell
from ackademy.studies import gap
from ackademy.studies.gap import Gap

SET_UP_S = 1.0
"""of namespaces, per run"""


def forecast(cells: Sequence[Cell]) -> str:
    """How long the runs on the kernel take, all of them in real time."""
    seconds = sum(cell.scenario().duration_s + SET_UP_S for cell in cells)
    shown = f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60.0:.0f} min"
    return f"{len(cells)} runs on the kernel take about {shown}"


def tables(gaps: Sequence[Gap], console: Console) -> Group:
    """Three lines per scenario and controller, then the claims and notes."""
    n_large = len(gap.large(gaps))
    line = f"{n_large} differences above {100 * gap.LARGE_RATIO:.0f} % (yellow)"
    checked = gap.claims(gaps)
    shown = [sheets.sides(gaps, {}, with_runs=True)]
    shown += [sheets.claims(checked)] if checked else []
    return Group(
        *tables_of(shown, console),
        Text(line, style="yellow" if n_large else "green"),
        kernel_notes([run for own in gaps for run in own.kernel.kernel_runs]),
    )
