"""Draw README.md's figure: throughput against delay of five controllers on three kinds of paths.

    python tools/front_figure.py        writes docs/img/front.svg

The numbers are those of docs/results/data/which-controller.csv. tests/test_front_figure.py compares
the two. Labels stay readable at 390 pixels, on light and dark backgrounds.
"""

from __future__ import annotations

import csv
import math
from html import escape
from itertools import product
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
DATA, FIGURE = DOCS / "results/data/which-controller.csv", DOCS / "img/front.svg"
USES = {
    "home line": "Wired: 20 and 100 Mb/s",
    "cellular": "Cellular",
    "satellites in low orbit": "Satellites in low orbit",
}
SCHEMES = {"cubic": "CUBIC", "bbr3": "BBRv3", "copa": "Copa", "own_queue": "own_queue",
           "flagship": "flagship"}  # fmt: skip
TITLE = "How much of the link, and how long a queue?"
WIDTH, LEFT, RIGHT, TOP, HIGH, BETWEEN = 400, 46, 14, 84, 130, 62
"""of the figure and its panels, pixels"""
DELAYS, SHARES = (1.0, 5000.0), (70.0, 107.0)
"""ends of the axes: ms, logarithmic; per cent"""
RADIUS, NEAR, LETTER, LINE = 6.0, 9.0, 8.8, 15.0
"""of a mark, alone and with the room beside it; of a letter and a line at 14 pixels"""
STYLE = """\
<style>
  .f { --ink: #1b1e23; --soft: #57606a; --card: #ffffff; --rule: #d0d7de; --grid: #e3e7eb;
    --cubic: #5b6470; --bbr3: #c44e04; --copa: #8b45b5; --own_queue: #08805a; --flagship: #0b66c3; }
  @media (prefers-color-scheme: dark) {
    .f { --ink: #e9e7e2; --soft: #a9afb8; --card: #161b22; --rule: #3a424c; --grid: #2a313a;
      --cubic: #a4adb9; --bbr3: #ff9a5c; --copa: #cf9af2;
      --own_queue: #4fcf9f; --flagship: #69b1ff; }
  }
  text { font: 14px "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
  .b { font-weight: 600; } .t { font-size: 16px; font-weight: 600; }
  .h { font-size: 13px; fill: var(--soft); }
  .m { text-anchor: middle; } .e { text-anchor: end; }
  .card { fill: var(--card); stroke: var(--rule); } .grid { stroke: var(--grid); }
  .cubic { fill: var(--cubic); } .bbr3 { fill: var(--bbr3); } .copa { fill: var(--copa); }
  .own_queue { fill: var(--own_queue); } .flagship { fill: var(--flagship); }
  circle { stroke: var(--card); stroke-width: 1.5; }
</style>"""


class Box(NamedTuple):
    """What a mark or a label covers."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether two cover a common point."""
        return (self.left < other.right and other.left < self.right
                and self.top < other.bottom and other.top < self.bottom)  # fmt: skip


def rows() -> dict[tuple[str, str], tuple[float, float]]:
    """Delay in ms and use of the link in per cent, by use and scheme."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return {
            (row["use"], row["scheme"]): (float(row["p95 wait, ms"]), float(row["link used, %"]))
            for row in csv.DictReader(file)
            if row["use"] in USES and row["scheme"] in SCHEMES
        }


def place(delay: float, share: float, top: float) -> tuple[float, float]:
    """Pixels of a point of the panel that begins at `top`."""
    low, high = (math.log10(end) for end in DELAYS)
    across = (math.log10(delay) - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    return LEFT + across, top + HIGH * (SHARES[1] - share) / (SHARES[1] - SHARES[0])


def around(x: float, y: float, text: str) -> list[tuple[str, float, Box]]:
    """Anchor, place and box of a label at the places around a mark, the best first."""
    wide, near = LETTER * len(text), RADIUS + 4.0
    sides = (("s", x + near, x + near), ("e", x - near, x - near - wide), ("m", x, x - wide / 2.0))
    downs = (y, y + LINE, y - LINE, y + 2.0 * LINE)
    found = [
        (anchor, at, Box(left, down - LINE / 2.0, left + wide, down + LINE / 2.0))
        for down, (anchor, at, left) in product(downs, sides)
    ]
    return [one for one in found if one[2].left >= LEFT and one[2].right <= WIDTH - 4]


def grouped(marks: dict[str, tuple[float, float]]) -> list[list[str]]:
    """Schemes whose marks cover each other, together."""
    groups: list[list[str]] = []
    for scheme, at in marks.items():
        same = [own for own in groups if math.dist(at, marks[own[0]]) < RADIUS / 2.0]
        if same:
            same[0].append(scheme)
        else:
            groups.append([scheme])
    return groups


def panel(use: str, top: float, found: dict[tuple[str, str], tuple[float, float]]) -> list[str]:
    """Title, grid, marks and labels of one kind of path."""
    lines = [f'<text class="b" x="{LEFT}" y="{top - 10:.0f}">{USES[use]}</text>']
    for share in (70, 80, 90, 100):
        y = place(1.0, share, top)[1]
        lines.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        lines.append(f'<text class="h e" x="{LEFT - 6}" y="{y + 4.5:.1f}">{share}</text>')
    for delay in (1, 10, 100, 1000):
        x = place(delay, SHARES[0], top)[0]
        lines.append(f'<path class="grid" d="M{x:.1f} {top:.0f}v{HIGH}"/>')
        lines.append(f'<text class="h m" x="{x:.1f}" y="{top + HIGH + 17:.0f}">{delay}</text>')
    marks = {scheme: place(*found[use, scheme], top) for scheme in SCHEMES}
    taken = [Box(x - NEAR, y - RADIUS, x + NEAR, y + RADIUS) for x, y in marks.values()]
    groups = grouped(marks)
    for schemes in sorted(groups, key=len, reverse=True):  # rings below dots
        for index, scheme in enumerate(schemes):
            (x, y), radius = marks[scheme], RADIUS + 3.0 * (len(schemes) - 1 - index)
            lines.append(f'<circle class="{scheme}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>')
    for schemes in reversed(groups):
        label, own = ", ".join(SCHEMES[one] for one in reversed(schemes)), schemes[-1]
        free = [
            one
            for one in around(*marks[own], label)
            if one[2].top >= top and not any(one[2].meets(other) for other in taken)
        ]
        anchor, x, box = free[0]
        taken.append(box)
        at = f'x="{x:.1f}" y="{box.bottom - 2.5:.1f}"'
        lines.append(f'<text class="b {anchor} {own}" {at}>{label}</text>')
    return lines


def figure() -> str:
    """The figure as SVG."""
    found = rows()
    high = TOP + len(USES) * (HIGH + BETWEEN) - 4
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="f" viewBox="0 0 {WIDTH} {high}" '
        f'width="{WIDTH}" height="{high}" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(alt(found))}</title>',
        STYLE,
        f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{high - 2}" rx="10"/>',
        f'<text class="t" x="14" y="28">{TITLE}</text>',
        '<text class="h" x="14" y="48">up: link used, %; upper left is best</text>',
    ]
    for index, use in enumerate(USES):
        out += panel(use, TOP + index * (HIGH + BETWEEN), found)
    across = (LEFT + WIDTH - RIGHT) / 2
    out.append(
        f'<text class="h m" x="{across:.0f}" y="{high - 20}">p95 wait in the queue, ms</text>'
    )
    return "\n".join([*out, "</svg>"]) + "\n"


def alt(found: dict[tuple[str, str], tuple[float, float]]) -> str:
    """The result in words, for those who do not see the figure."""
    told = []
    for use, title in USES.items():
        each = [
            f"{SCHEMES[scheme]} {found[use, scheme][1]:g} % with {found[use, scheme][0]:g} ms"
            for scheme in SCHEMES
        ]
        told.append(f"{title}: {', '.join(each)}")
    return f"Use of the link and p95 wait in the queue. {'. '.join(told)}."


def draw() -> None:
    """Write the figure."""
    FIGURE.write_text(figure(), encoding="utf-8")


if __name__ == "__main__":
    draw()
    print(alt(rows()))
