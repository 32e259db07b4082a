"""The sheet of `ackademy compare`."""

from __future__ import annotations

from collections.abc import Sequence

from ackademy.render.numbers import counted, runs_told
from ackademy.render.sheet import Head, Line, Part, Sheet, head_of, measured
from ackademy.stats.intervals import NOMINAL
from ackademy.studies.comparison import METRICS
from ackademy.studies.measured import Measured


def sheet(found: Sequence[Measured]) -> Sheet:
    """A line per scenario and controller."""
    colour = colours(found)
    lines = [
        Line(
            names=(Part(own.row.name.scheme),),
            cells=tuple(measured(own, metric) for metric in METRICS),
            group=own.row.name.scenario,
            colour=colour[own.row.name.scheme],
            note=runs_told(own.n_runs, own.n_invalid, is_fixed=own.is_fixed),
            runs=counted(own.n_runs, own.n_invalid, is_fixed=own.is_fixed),
        )
        for own in found
    ]
    heads = tuple(head_of(metric) for metric in METRICS)
    title = f"mean ± half the {NOMINAL} over runs"
    return Sheet(title, (Head("controller"),), heads, tuple(lines), "scenario")


def colours(found: Sequence[Measured]) -> dict[str, int]:
    """A colour per scheme, in the order of the rows."""
    names = dict.fromkeys(own.row.name.scheme for own in found)
    return {name: index % 8 for index, name in enumerate(names)}
