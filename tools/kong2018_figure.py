"""Draw README.md's figure: Kong 2018, Table 5, published and ours.

The numbers are those of docs/results/data/kong2018-table5.csv, which `ackademy reproduce
kong2018/table5` wrote. tests/test_docs_pages.py compares the two.

    python tools/kong2018_figure.py
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

HERE = Path(__file__).parents[1] / "docs" / "img"
DATA = HERE.parent / "results" / "data" / "kong2018-table5.csv"
FIGURE = HERE / "kong2018_table5.svg"
SCHEMES = ("NewReno", "Q-TCP", "Qa-TCP", "LP-TCP", "RL-TCP")
BUFFERS = (5, 50, 150)
LOW, HIGH = -1.0, 2.5
"""ends of the axis of M_e"""
LEFT, PANEL, GAP, TOP, ROW = 90, 230, 20, 74, 30
WIDTH, HEIGHT = LEFT + 3 * PANEL + 2 * GAP + 20, TOP + len(SCHEMES) * ROW + 66
STYLE = """\
<style>
  text { font: 13px "Helvetica Neue", Arial, sans-serif; fill: #1f2328; }
  .c { text-anchor: middle; } .e { text-anchor: end; } .b { font-weight: 600; }
  .s { font-size: 12px; fill: #57606a; }
  .panel { fill: #ffffff; stroke: #d0d7de; } .grid { stroke: #e3e7eb; }
  .published { fill: none; stroke: #c0392b; stroke-width: 2; }
  .ours { fill: #1f6fb2; } .interval { stroke: #1f6fb2; stroke-width: 2; }
</style>"""


def rows() -> dict[tuple[str, int], tuple[float, float, float]]:
    """M_e by scheme and buffer: published, ours, half of the 95 % interval (0: no spread)."""
    found = {}
    with DATA.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = re.fullmatch(r"([\w-]+) L = (\d+)", row["row"])
            if row["metric"] == "m_e" and name and name[1] in SCHEMES:
                half = (float(row["ci_high"]) - float(row["ci_low"])) / 2
                values = float(row["published"]), float(row["ours"]), half
                found[name[1], int(name[2])] = values
    return found


def x(panel: int, value: float) -> float:
    """Place of a value of M_e in a panel, pixels from the left."""
    return LEFT + panel * (PANEL + GAP) + (value - LOW) / (HIGH - LOW) * PANEL


def frame(panel: int, buffer: int) -> list[str]:
    """A panel's title, grid and axis."""
    bottom = TOP + len(SCHEMES) * ROW
    lines = [f'<text class="c b" x="{x(panel, 0.75):.0f}" y="62">L = {buffer} packets</text>']
    for value in (-1, 0, 1, 2):
        at = f"{x(panel, value):.1f}"
        label = str(value).replace("-", "−")
        lines.append(f'<line class="grid" x1="{at}" y1="{TOP}" x2="{at}" y2="{bottom}"/>')
        lines.append(f'<text class="c s" x="{at}" y="{bottom + 18}">{label}</text>')
    return lines


def marks(panel: int, row: int, values: tuple[float, float, float]) -> list[str]:
    """A ring for the published value, a dot and its interval for ours."""
    published, ours, half = values
    y = TOP + row * ROW + ROW / 2
    low, high = x(panel, ours - half), x(panel, ours + half)
    return [
        f'<line class="interval" x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}"/>',
        f'<circle class="ours" cx="{x(panel, ours):.1f}" cy="{y}" r="4"/>',
        f'<circle class="published" cx="{x(panel, published):.1f}" cy="{y}" r="7"/>',
    ]


def figure() -> str:
    """The figure as SVG."""
    found = rows()
    title = "Kong 2018, Table 5, one sender: M_e = ln E(tp) − 0.1 ln E(d), more is better"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="t">',
        f'<title id="t">{title}</title>',
        STYLE,
        f'<rect class="panel" x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10"/>',
        f'<text class="b" x="20" y="30">{title}</text>',
    ]
    for row, scheme in enumerate(SCHEMES):
        y = TOP + row * ROW + ROW / 2 + 4
        out.append(f'<text class="e" x="{LEFT - 10}" y="{y}">{scheme}</text>')
    for panel, buffer in enumerate(BUFFERS):
        out += frame(panel, buffer)
        for row, scheme in enumerate(SCHEMES):
            out += marks(panel, row, found[scheme, buffer])
    y = HEIGHT - 20
    out += [
        f'<circle class="published" cx="{LEFT}" cy="{y}" r="7"/>',
        f'<text x="{LEFT + 14}" y="{y + 4}">published</text>',
        f'<circle class="ours" cx="{LEFT + 110}" cy="{y}" r="4"/>',
        f'<text x="{LEFT + 124}" y="{y + 4}">ours, with its 95 % interval over 100 runs</text>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    FIGURE.write_text(figure(), encoding="utf-8")
