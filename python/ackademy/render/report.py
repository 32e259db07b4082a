"""A report before it is written: what every study hands to the one renderer of each medium.

A report has sections, and a section has items: sheets, figures as markup, lines of text. `page`
gives the HTML file, `text` the Markdown file, `show` prints the tables in the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rich.text import Text

from ackademy.console import Console
from ackademy.render import terminal
from ackademy.render.html import page as html_page
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.sheet import sheet as html_sheet
from ackademy.render.markdown import code
from ackademy.render.markdown import sheet as markdown_sheet
from ackademy.render.markdown import text as plain
from ackademy.render.sheet import Part, Sheet

Medium: TypeAlias = Literal["html", "markdown", "terminal", "brief"]
"""the terminal has all of Markdown if asked, or less than usual: `brief`"""
Item: TypeAlias = "Sheet | Markup | Part | str | Only"
"""a table; HTML, which is on the page alone; a line of text, perhaps with a style"""


@dataclass(frozen=True, slots=True)
class Only:
    """An item that some media have."""

    item: Sheet | Part | str
    media: tuple[Medium, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report; on the page it has an entry in the table of contents."""

    anchor: str
    title: str
    lead: str = ""
    """on the page, below the title"""
    items: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a study found."""

    kind: str
    title: str
    about: str
    sections: Sequence[Section]
    facts: Mapping[str, str] = field(default_factory=dict)
    """big text by what it counts, above the first section of the page"""
    command: str = ""
    """that makes it again"""
    cite: Markup | str = ""


def on_page(own: Sheet | Part | str) -> Only:
    """What the page alone has."""
    return Only(own, ("html",))


def in_text(own: Sheet | Part | str) -> Only:
    """What the terminal and Markdown have, and the page has not."""
    return Only(own, ("markdown", "terminal"))


def in_brief(own: Sheet | Part | str) -> Only:
    """What the terminal alone has if little is asked for."""
    return Only(own, ("brief",))


def in_terminal(own: Sheet | Part | str) -> Only:
    """What the terminal alone has."""
    return Only(own, ("terminal",))


def page(report: Report) -> str:
    """The HTML file, complete in itself."""
    parts = []
    for section in report.sections:
        body = [_html(item) for item in of_medium(section, "html")]
        if body:
            parts.append(html_page.Section(section.anchor, section.title, section.lead, join(body)))
    if report.command:
        repeat = element("pre", element("code", report.command))
        parts.append(html_page.Section("repeat", "How to repeat it", "", repeat))
    head = html_page.Head(report.kind, report.title, report.about, report.cite, report.facts)
    return html_page.document(head, parts)


def text(report: Report) -> str:
    """The tables as Markdown, for a document."""
    parts = [f"# {plain(report.title)}"]
    if report.command:
        parts.append(f"{code(report.command)} printed these tables.")
    for section in report.sections:
        items = [item for item in of_medium(section, "markdown") if not isinstance(item, Markup)]
        if not items:
            continue
        parts.append(f"## {plain(section.title)}")
        for item in items:
            if isinstance(item, Sheet):
                title = item.title[:1].upper() + item.title[1:]
                parts += [f"### {plain(title)}"] if title not in ("", section.title) else []
                parts.append(markdown_sheet(item))
            else:
                parts.append(plain(item.text if isinstance(item, Part) else item))
    return "\n\n".join(parts) + "\n"


def show(report: Report, console: Console, medium: Medium = "terminal") -> None:
    """Print the tables and lines; tables that follow each other all have frames, or none has.

    Args:
        report: what to print.
        console: where.
        medium: which items are printed.
    """
    waiting: list[Sheet] = []
    for section in report.sections:
        for item in of_medium(section, medium):
            if isinstance(item, Sheet):
                waiting.append(item)
            elif not isinstance(item, Markup):
                terminal.show(waiting, console)
                waiting = []
                console.print(_line(item), highlight=False)
    terminal.show(waiting, console)


def titled(own: Sheet) -> Markup:
    """A sheet below its title, for a page."""
    return join((element("h3", own.title[:1].upper() + own.title[1:]), html_sheet(own)))


def of_medium(section: Section, medium: Medium) -> list[Sheet | Markup | Part | str]:
    """The items of a section that a medium has."""
    found: list[Sheet | Markup | Part | str] = []
    for item in section.items:
        if not isinstance(item, Only):
            found.append(item)
        elif medium in item.media:
            found.append(item.item)
    return found


def _html(item: Sheet | Markup | Part | str) -> Markup:
    if isinstance(item, Sheet):
        return html_sheet(item)
    if isinstance(item, Markup):
        return item
    shown = item.text if isinstance(item, Part) else item
    return element("p", shown, class_="hint")


def _line(item: Part | str) -> Text:
    own = item if isinstance(item, Part) else Part(item, "dim")
    return Text(own.text, style=terminal.PART_STYLES.get(own.style, ""))
