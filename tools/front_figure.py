"""Draw README.md's figure: the shipped schemes on the benchmark, and their Pareto fronts.

    python tools/front_figure.py        writes docs/img/front.svg

The numbers are those of docs/results/data/benchmark.csv. tests/test_front_figure.py compares the
two. Labels stay readable at 390 pixels, on light and dark backgrounds.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DATA, FIGURE = ROOT / "docs/results/data/benchmark.csv", ROOT / "docs/img/front.svg"
BESIDE = tuple(f"share beside {name}, %" for name in ("cubic", "bbr1", "bbr3", "copa"))
PAGES = (ROOT / "README.md", ROOT / "docs/README.md")
IMAGE = re.compile(r"!\[([^\]]*)\](\((?:docs/)?img/front\.svg\))")
KNOWN = ("cubic", "new_reno", "vegas", "bbr1", "bbr3", "copa", "own_queue", "flagship")
"""labelled wherever they are; of the others those on a front, and those with room"""
WIDTH, LEFT, RIGHT, TOP, HIGH, BETWEEN = 400, 44, 16, 92, 290, 82
"""of the figure and its panels, pixels"""
FLOOR = 0.01
"""round trips below which a wait is drawn there"""
RADIUS, LINE = 5.0, 15.0
"""of a mark, and of a line of text"""
BOLD, PLAIN = 7.8, 7.2
"""width of a letter at 13 pixels"""
STYLE = """\
<style>
  .f { --ink: #1b1e23; --soft: #57606a; --card: #ffffff; --rule: #d0d7de; --grid: #e3e7eb;
    --front: #0b66c3; --other: #8b949e; }
  @media (prefers-color-scheme: dark) {
    .f { --ink: #e9e7e2; --soft: #a9afb8; --card: #161b22; --rule: #3a424c; --grid: #2a313a;
      --front: #69b1ff; --other: #6e7681; }
  }
  text { font: 13px "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
  .b { font-weight: 600; fill: var(--front); } .t { font-size: 16px; font-weight: 600; }
  .p { font-size: 14px; font-weight: 600; } .t, .p { fill: var(--ink); }
  .m { text-anchor: middle; } .e { text-anchor: end; }
  .card { fill: var(--card); stroke: var(--rule); } .grid { stroke: var(--grid); }
  .step { fill: none; stroke: var(--front); stroke-width: 1.5; stroke-dasharray: 3 3; }
  .to { stroke: var(--other); }
  circle { fill: var(--other); stroke: var(--card); stroke-width: 1; }
  circle.front { fill: var(--front); }
</style>"""
Row = dict[str, str]


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

    def meets_any(self, others: Iterable[Box]) -> bool:
        """Whether it covers a point of one of the others."""
        return any(self.meets(other) for other in others)

    def holds(self, other: Box) -> bool:
        """Whether the other is inside."""
        return (self.left <= other.left and other.right <= self.right
                and self.top <= other.top and other.bottom <= self.bottom)  # fmt: skip


class Dot(NamedTuple):
    """An entry in a panel."""

    name: str
    across: float
    up: float
    is_front: bool


class Panel(NamedTuple):
    """A plane; upper left is best."""

    title: str
    across: str
    dots: list[Dot]
    low: float
    high: float
    """ends of the axis to the right"""
    bottom: float
    ceiling: float
    """ends of the axis upwards, per cent"""
    is_log: bool

    def place(self, across: float, up: float, top: float) -> tuple[float, float]:
        """Pixels of a point, where the panel begins at `top`."""
        low, high, at = self.low, self.high, across
        if self.is_log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(across, FLOOR))
        x = LEFT + (at - low) / (high - low) * (WIDTH - LEFT - RIGHT)
        return x, top + HIGH * (self.ceiling - up) / (self.ceiling - self.bottom)

    def ticks(self) -> list[float]:
        """Numbers on the axis to the right."""
        if self.is_log:
            ends = (round(math.log10(end)) for end in (self.low, self.high))
            return [10.0**power for power in range(*ends)] + [self.high]
        step = next(own for own in (5, 10, 20, 25) if (self.high - self.low) / own <= 5)
        return [float(step * i) for i in range(int(self.high / step) + 1)]


def rows() -> list[Row]:
    """The entries."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def least_share(row: Row) -> float:
    """The smallest of the shares beside others, per cent, at most half."""
    return min(50.0, *(float(row[column]) for column in BESIDE))


def panels() -> list[Panel]:
    """The two planes."""
    found = rows()
    alone = [
        Dot(row["entry"], float(row["p95 wait"]), float(row["use, %"]), bool(row["front, alone"]))
        for row in found
    ]
    beside = [
        Dot(row["entry"], float(row["harm, %"]), least_share(row), bool(row["front, beside"]))
        for row in found
    ]
    waits = [max(dot.across, FLOOR) for dot in alone]
    low, high = 10.0 ** math.floor(math.log10(min(waits))), 10 ** math.ceil(math.log10(max(waits)))
    bottom = 10.0 * math.floor(min(dot.up for dot in alone) / 10.0)
    worst = 5.0 * math.ceil(max(dot.across for dot in beside) / 5.0)
    most = 10.0 * math.ceil(max(dot.up for dot in beside) / 10.0)
    return [
        Panel("Alone: link used, %", "p95 wait in the queue, round trips", alone,
              low, high, bottom, 104.0, True),
        Panel("Beside CUBIC, BBRv1, BBRv3, Copa: least share, %",
              "harm: what it takes from them beyond CUBIC, %", beside,
              -0.15 * worst, worst, -0.05 * most, most, False),
    ]  # fmt: skip


def around(x: float, y: float, wide: float) -> Iterator[tuple[str, float, Box]]:
    """Anchor, place and box of a label around a mark, the nearest first."""
    near = RADIUS + 4.0
    for far in (0.0, 6.0, 12.0, 18.0, 24.0, 32.0, 44.0, 62.0, 84.0):
        for turn in range(8 if far == 0.0 else 16):
            angle = math.pi * turn / (4.0 if far == 0.0 else 8.0)
            dx, dy = math.cos(angle), math.sin(angle)
            anchor = "s" if dx > 0.3 else "e" if dx < -0.3 else "m"
            at = x + dx * (near + far)
            middle = y + dy * (LINE * 0.9 + far if anchor == "m" else LINE * 0.8 + far)
            left = at - {"s": 0.0, "m": wide / 2.0, "e": wide}[anchor]
            yield anchor, at, Box(left, middle - LINE / 2.0, left + wide, middle + LINE / 2.0)


def steps(panel: Panel, top: float) -> list[Box]:
    """The lines of the front, a staircase."""
    front = sorted((dot.across, dot.up) for dot in panel.dots if dot.is_front)
    places = [panel.place(*one, top) for one in front]
    found = []
    for (x, y), (right, higher) in pairwise(places):
        found += [Box(x, y, right, y), Box(right, min(y, higher), right, max(y, higher))]
    return found


def frame(panel: Panel, top: float) -> list[str]:
    """Titles and grid."""
    lines = [f'<text class="p" x="14" y="{top - 12:.0f}">{escape(panel.title)}</text>']
    step = 10 if panel.ceiling - panel.bottom <= 80 else 20
    for up in range(0, 101, step):
        y = panel.place(1.0, up, top)[1]
        if top - 1 <= y <= top + HIGH + 1:
            lines.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            lines.append(f'<text class="e" x="{LEFT - 6}" y="{y + 4.5:.1f}">{up}</text>')
    for tick in panel.ticks():
        x = panel.place(tick, panel.bottom, top)[0]
        lines.append(f'<path class="grid" d="M{x:.1f} {top:.0f}v{HIGH}"/>')
        lines.append(f'<text class="m" x="{x:.1f}" y="{top + HIGH + 17:.0f}">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    lines.append(
        f'<text class="m" x="{middle:.0f}" y="{top + HIGH + 36:.0f}">{panel.across}</text>'
    )
    path = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in steps(panel, top))
    return [*lines, f'<path class="step" d="{path}"/>']


def marks(panel: Panel, top: float) -> list[str]:
    """A dot for each entry, those of the front above the others."""
    found = []
    for dot in sorted(panel.dots, key=lambda one: one.is_front):
        x, y = panel.place(dot.across, dot.up, top)
        told = escape(f"{dot.name}: {dot.up:g} %, {dot.across:g}")
        shown = ' class="front"' if dot.is_front else ""
        at = f'cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS:g}"'
        found.append(f"<circle{shown} {at}><title>{told}</title></circle>")
    return found


def leader(box: Box, x: float, y: float) -> list[tuple[float, float]]:
    """Points of the line from a mark to its label, none where the label is near."""
    to_x, to_y = min(max(x, box.left), box.right), (box.top + box.bottom) / 2.0
    far = math.dist((to_x, to_y), (x, y))
    if far < 2.9 * RADIUS:
        return []
    count = math.ceil(far / 4.0)
    return [(x + (to_x - x) * i / count, y + (to_y - y) * i / count) for i in range(count + 1)]


def labels(panel: Panel, top: float) -> tuple[list[str], list[str]]:
    """The labels that there is room for, and the lines to those that are not near."""
    places = {dot.name: panel.place(dot.across, dot.up, top) for dot in panel.dots}
    dots = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in places.values()]
    front = [Box(a - 2, b - 2, c + 2, d + 2) for a, b, c, d in steps(panel, top)]
    inside = Box(LEFT, top, WIDTH - 4, top + HIGH)
    named: list[Box] = []
    drawn: list[Box] = []
    texts, lines = [], []
    for dot in sorted(panel.dots, key=lambda one: (not one.is_front, one.name not in KNOWN)):
        must, (x, y) = dot.is_front or dot.name in KNOWN, places[dot.name]
        for is_strict, (anchor, at, box) in product((True, False), around(x, y, width(dot))):
            points = leader(box, x, y)
            line = [Box(px - 1.0, py - 1.0, px + 1.0, py + 1.0) for px, py in points]
            beyond = [one for one, to in zip(line, points, strict=True)
                      if math.dist(to, (x, y)) > 1.6 * RADIUS]  # fmt: skip
            if (
                (must or not points)
                and inside.holds(box)
                and not box.meets_any(dots + front + named + drawn)
                and not any(one.meets_any(named) for one in line)
                and not (is_strict and any(one.meets_any(dots) for one in beyond))
            ):
                named.append(box)
                drawn += line
                kind = "b" if dot.is_front else "n"
                where = f'x="{at:.1f}" y="{box.bottom - 3.5:.1f}"'
                texts.append(f'<text class="{kind} {anchor} l" {where}>{dot.name}</text>')
                if points:
                    to_x, to_y = points[-1]
                    lines.append(f'<path class="to" d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>')
                break
    return texts, lines


def width(dot: Dot) -> float:
    """Of a label, pixels."""
    return (BOLD if dot.is_front else PLAIN) * len(dot.name)


def figure() -> str:
    """The figure as SVG."""
    found = panels()
    high = TOP + len(found) * (HIGH + BETWEEN) - 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="f" viewBox="0 0 {WIDTH} {high}" '
        f'width="{WIDTH}" height="{high}" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(alt())}</title>',
        STYLE,
        f'<rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{high - 2}" rx="10"/>',
        f'<text class="t" x="14" y="28">The benchmark: {counted()}</text>',
        '<text x="14" y="46">upper left is best; blue: no other is better in both</text>',
    ]
    for index, panel in enumerate(found):
        top = TOP + index * (HIGH + BETWEEN)
        texts, lines = labels(panel, top)
        out += [*frame(panel, top), *lines, *marks(panel, top), *texts]
    return "\n".join([*out, "</svg>"]) + "\n"


def counted() -> str:
    """How many entries, and of which run."""
    found = rows()
    run = "" if found[0]["run"] == "full" else f" ({found[0]['run']} run)"
    return f"{len(found)} schemes{run}"


def alt() -> str:
    """The result in words, for those who do not see the figure."""
    alone, beside = (
        ", ".join(sorted(dot.name for dot in panel.dots if dot.is_front)) for panel in panels()
    )
    return (
        f"The benchmark: {counted()}. No other has more use and less p95 wait than "
        f"{alone}. No other has a larger least share and does less harm than {beside}."
    )


def draw() -> None:
    """Write the figure, and its words into the pages that have it."""
    FIGURE.write_text(figure(), encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(IMAGE.sub(lambda own: f"![{alt()}]{own[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    draw()
    print(alt())
