"""One setting over a list of values: `beta=0.5..0.9` of a scheme, or a field of the scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ackademy.errors import AckademyError
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import colour_keys, legend, panel
from ackademy.render.report import Report, Section
from ackademy.runner.measured import Measured
from ackademy.stats.metrics import metric_of
from ackademy.studies import compare

STUDY = "sweep"
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SWEPT = re.compile(
    rf"([\w.-]+)=(?:({NUMBER})\.\.({NUMBER})(?:/(\d+))?|({NUMBER}(?:\|{NUMBER})+))(?=,|$)"
)
COUNT, COUNT_MAX = 5, 1000
"""values of a range that says no number, and the most of one"""
ALLOWED = "one range in --cc or --set: beta=0.5..0.9, beta=0.5..0.9/9 or beta=0.5|0.7"


def spread(words: Sequence[str]) -> tuple[str, list[tuple[float, list[str]]]]:
    """The name of the swept setting, and for each of its values the words with that value.

    Raises:
        AckademyError: if not exactly one setting has several values.
    """
    found = [match for word in words for match in SWEPT.finditer(word)]
    if len(found) != 1:
        raise AckademyError(f"sweep: {len(found)} settings with several values; allowed: {ALLOWED}")
    name, low, high, count, listed = found[0].groups()
    if not 2 <= int(count or COUNT) <= COUNT_MAX:
        raise AckademyError(f"sweep: {found[0][0]}: allowed: 2 to {COUNT_MAX} values")
    ends = [] if listed else np.linspace(float(low), float(high), int(count or COUNT)).tolist()
    shown = {f"{float(value):.6g}" for value in ends or listed.split("|")}
    return name, [
        (float(one), [SWEPT.sub(f"{name}={one}", word) for word in words])
        for one in sorted(shown, key=float)
    ]


Lines = Mapping[str, Sequence[tuple[float, Measured]]]
"""values and rows by what a line of the figure is of"""


def report(name: str, lines: Lines, rows: Sequence[Measured], command: str) -> Report:
    """A figure per metric over the values, a line per scheme and scenario; a table of all rows."""
    values = sorted({value for line in lines.values() for value, _ in line})
    panels = [_panel(name, values, metric, lines) for metric in compare.METRICS]
    keys = legend(colour_keys((line, index) for index, line in enumerate(lines)))
    drawing = join((keys, element("div", join(panels), class_="panels")))
    lead = "Dots are estimates over runs, bars their 95 % intervals."
    return Report(
        kind="Sweep",
        title=f"{name} from {values[0]:g} to {values[-1]:g}",
        about=f"{len(values)} values, at most {max(own.n_runs for own in rows)} runs each.",
        sections=[
            Section("figure", f"Over {name}", lead, [drawing]),
            Section("table", "Number by number", "", [compare.sheet(rows)]),
        ],
        command=command,
    )


def _panel(name: str, values: Sequence[float], metric: str, lines: Lines) -> Markup:
    ends = [
        [(value, own.value, own.low, own.high) for value, row in line
         if (own := row.estimates.get(metric))]
        for line in lines.values()
    ]  # fmt: skip
    tops = np.array([number for line in ends for point in line for number in point[2:]])
    tops = tops[np.isfinite(tops)]
    low, high = (min(tops.min(), 0.0), tops.max()) if tops.size else (0.0, 1.0)
    frame = Frame(Axis(values[0], values[-1], name), Axis(low, 1.05 * high or 1.0))
    drawn = []
    for index, line in enumerate(ends):
        x, y, lows, highs = np.array(line, np.float64).reshape(-1, 4).T
        bars = [frame.line(*np.array([[a, a], b])) for a, *b in zip(x, lows, highs, strict=True)]
        path = element("path", class_="stroke", d=frame.line(x, y) + "".join(bars))
        dots = element("path", class_="centre", d=frame.dots(x, y))
        drawn.append(element("g", path, dots, class_=f"s{index % 8}"))
    of = metric_of(metric)
    title = f"{of.name}, {of.unit}" if of.unit else of.name
    return panel(title, frame.draw(drawn, label=f"{title} over {name}"))
