"""Record commands and their true output as an animated SVG: README.md's docs/img/terminal.svg.

    python tools/terminal_svg.py        runs the commands for half a minute, writes the file

Each scene is one screen; a reader whose system shows no animations, and a program that knows none,
see the scene `STILL`. Commands run in an empty folder, with no results kept from before.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import ColorType
from rich.style import Style
from rich.text import Text

FIGURE = Path(__file__).parents[1] / "docs" / "img" / "terminal.svg"
SCENES = (
    ("ackademy run deep_buffer --cc cubic",),
    ("ackademy compare deep_buffer --cc cubic,bbr3,flagship --runs 2",),
    (
        "ackademy new controller mine",
        "ackademy compare random_loss --cc cubic,mine.py:Mine --runs 2",
    ),
    ("ackademy reproduce kong2018/table4 --brief --runs 10",),
)
STILL = 1
COLUMNS, ACROSS, DOWN, PAD, BAR = 78, 7.8, 17, 14, 30
"""of the terminal; pixels of a character and a line, around the text, and of the bar above"""
LETTER_S, PAUSE_S, READ_S = 0.045, 0.4, 6.0
"""to type a letter, to wait for output, and to read a scene"""
PAPER = "#161b22"
PROMPT = "$ "
CONTROL = re.compile(r"\r|\x1b\[(?:\d*[AK]|\?25[lh])")
"""what moves the cursor"""
BAR_ROW = re.compile(r"━.* \d+/(?:\d+|\?)")
"""of a progress bar"""
COLOURS = {"1": "#ff8f75", "2": "#5fcf9c", "3": "#e5bd55", "4": "#69b1ff", "6": "#5fcfe0"}
"""of ANSI numbers"""
STYLE = """\
  text { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    fill: #d6d9de; white-space: pre; }
  .b { font-weight: 700; } .d { fill: #9aa2ad; } .p { fill: #5fcf9c; }
  .c { fill: #ffffff; font-weight: 700; }
  .scene, .cover { opacity: 0; } .still { opacity: 1; }"""


class Step(NamedTuple):
    """A command and what it prints."""

    command: str
    lines: Sequence[Text]


class Drawing(NamedTuple):
    """Elements and the rules that move them."""

    body: str
    rules: str


def output(command: str, folder: Path) -> list[Text]:
    """What a command prints in a terminal, without the bars that are gone when it ends.

    Raises:
        RuntimeError: if it fails.
    """
    words = [sys.executable, "-c", "from ackademy.cli import main; main()", *command.split()[1:]]
    terminal = {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **terminal},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")
    found = [Text.from_ansi(row) for row in CONTROL.sub("", done.stdout).split("\n")]
    for own in found:
        own.rstrip()
    return [own for own in found if own.plain and not BAR_ROW.search(own.plain)]


def record() -> list[list[Step]]:
    """Run every command; a list per scene."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            [Step(command, output(command, Path(folder))) for command in scene] for scene in SCENES
        ]


def read_s(scene: Sequence[Step]) -> float:
    """How long a scene is on the screen."""
    return READ_S + sum(PAUSE_S + LETTER_S * len(step.command) for step in scene)


def look(style: Style) -> str:
    """Attributes of a part of a line."""
    classes = [name for name, has in (("b", style.bold), ("d", style.dim)) if has]
    colour = style.color
    is_named = colour is not None and colour.type is ColorType.STANDARD
    number = str((colour.number or 0) % 8) if colour and is_named else ""
    fill = f' fill="{COLOURS[number]}" style="fill:{COLOURS[number]}"' if number in COLOURS else ""
    return (f' class="{" ".join(classes)}"' if classes else "") + fill


def line(row: Text, y: float) -> str:
    """A line of output, stretched to the grid of the terminal."""
    parts = []
    for span in row.divide(sorted({end for own in row.spans for end in (own.start, own.end)})):
        style = Style.combine([Style(), *(Style.parse(str(own.style)) for own in span.spans)])
        attributes = look(style)
        text = escape(span.plain, quote=False)
        parts.append(f"<tspan{attributes}>{text}</tspan>" if attributes else text)
    wide = cell_len(row.plain) * ACROSS
    return f'<text x="{PAD}" y="{y:g}" textLength="{wide:g}">{"".join(parts)}</text>'


def shown(name: str, start: float, end: float, whole: float) -> str:
    """Rules of what is on the screen from one time to another, in each round of `whole` seconds."""
    first, last = (f"{100.0 * time / whole:.2f}%" for time in (start, end))
    hidden = "0%{opacity:0}" if start > 0.0 else ""
    gone = f"{last}{{opacity:0}}" if end < whole else ""
    frames = f"@keyframes {name}{{{hidden}{first}{{opacity:1}}{gone}}}"
    return f"{frames}.{name}{{animation:{name} {whole:g}s step-end infinite}}"


def typed(name: str, start: float, end: float, step: Step, whole: float) -> str:
    """Rules of the cover that moves off a command, letter by letter."""
    first, last = (f"{100.0 * time / whole:.2f}%" for time in (start, end))
    letters = len(step.command)
    frames = (
        f"@keyframes {name}{{0%,{first}{{opacity:1;transform:none;"
        f"animation-timing-function:steps({letters})}}"
        f"{last}{{opacity:1;transform:translateX({letters * ACROSS:g}px)}}"
        f"100%{{opacity:0;transform:translateX({letters * ACROSS:g}px)}}}}"
    )
    return f"{frames}.{name}{{animation:{name} {whole:g}s infinite}}"


def drawn(number: int, scene: Sequence[Step], began: float, whole: float) -> Drawing:
    """The steps of a scene: each appears when the one before has printed."""
    body, now, row = "", began, 0
    rules = shown(f"s{number}", began, began + read_s(scene), whole)
    for index, step in enumerate(scene):
        name, y = f"s{number}-{index}", BAR + PAD + DOWN * (row + 0.75)
        left, end = PAD + len(PROMPT) * ACROSS, now + LETTER_S * len(step.command)
        wide = len(step.command) * ACROSS
        body += (
            f'<g class="{name}g"><text class="p" x="{PAD}" y="{y:g}">{PROMPT}</text>'
            f'<text class="c" x="{left:g}" y="{y:g}" textLength="{wide:g}">'
            f"{escape(step.command, quote=False)}</text>"
            f'<rect class="cover {name}c" x="{left:g}" y="{y - 13:g}" width="{wide + 4:g}" '
            f'height="{DOWN}" fill="{PAPER}"/></g>'
        )
        below = [line(own, y + DOWN * (1 + at)) for at, own in enumerate(step.lines)]
        body += f'<g class="{name}o">{"".join(below)}</g>'
        rules += shown(f"{name}g", now, whole, whole) + typed(f"{name}c", now, end, step, whole)
        now, row = end + PAUSE_S, row + 1 + len(step.lines)
        rules += shown(f"{name}o", now, whole, whole)
    still = " still" if number == STILL else ""
    return Drawing(f'<g class="scene s{number}{still}">{body}</g>', rules)


def figure(scenes: Sequence[Sequence[Step]]) -> str:
    """The recording as SVG."""
    whole, began, parts = sum(map(read_s, scenes)), 0.0, []
    for number, scene in enumerate(scenes):
        parts.append(drawn(number, scene, began, whole))
        began += read_s(scene)
    rows = max(sum(1 + len(step.lines) for step in scene) for scene in scenes)
    wide, high = round(2 * PAD + COLUMNS * ACROSS), BAR + 2 * PAD + DOWN * rows
    dots = "".join(
        f'<circle cx="{20 + 18 * at}" cy="16" r="5.5" fill="{colour}"/>'
        for at, colour in enumerate(("#ff8f75", "#e5bd55", "#5fcf9c"))
    )
    told = "; ".join(command for scene in SCENES for command in scene)
    rules = "".join(part.rules for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" role="img" aria-labelledby="t">\n'
        f'<title id="t">A terminal: {escape(told)}</title>\n<style>\n{STYLE}\n'
        f"  @media (prefers-reduced-motion: no-preference) {{ {rules} }}\n</style>\n"
        f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="10" fill="{PAPER}" '
        f'stroke="#3a424c"/>{dots}\n' + "\n".join(part.body for part in parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    FIGURE.write_text(figure(record()), encoding="utf-8")
