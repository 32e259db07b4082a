"""A sheet as an HTML table."""

from __future__ import annotations

from collections.abc import Callable

from ackademy.render.html.markup import Markup, element, join, math_label, stacked
from ackademy.render.html.shapes import key
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, wrapped

COLUMNS_WIDE = 7
"""columns that fit on a page of 1300 pixels in full size; more are set closer"""


def sheet(
    own: Sheet,
    *,
    class_: str = "",
    above: Markup | None = None,
    mark: Callable[[Line], Markup] | None = None,
) -> Markup:
    """The table, in a box that scrolls; its headings sort it if it has no groups.

    Names after the first stand below it.

    Args:
        own: what to draw.
        class_: more classes of the table.
        above: a row above the headings.
        mark: what stands before a name, instead of its colour.
    """
    sorts = not own.group
    heads = [_head(head, sorts=sorts) for head in (own.names[0], *own.heads)]
    body: list[Markup] = []
    group = ""
    for line in own.lines:
        if line.group != group:
            group = line.group
            body.append(element("tr", element("th", group, colspan=len(heads)), class_="group"))
        body.append(_line(line, mark))
    head = element("thead", above, element("tr", join(heads)))
    many = "many" if len(heads) > COLUMNS_WIDE else ""
    classes = " ".join(word for word in ("sortable" if sorts else "", many, class_) if word)
    table = element("table", head, element("tbody", join(body)), class_=classes or None)
    return element("div", table, class_="scroll")


def _head(head: Head, *, sorts: bool) -> Markup:
    unit = element("small", math_label(head.unit)) if head.unit else None
    lines = [math_label(text) for text in wrapped(head.label)]
    label = join([part for line in lines for part in (line, element("br"))][:-1])
    return element("th", label, unit, title=head.about or None, data_sort=sorts)


def _line(line: Line, mark: Callable[[Line], Markup] | None) -> Markup:
    before = mark(line) if mark else (None if line.colour is None else key(f"s{line.colour}"))
    first, *others = line.names
    name = element("span", before, first.text, class_="name") if before else join((first.text,))
    note = " · ".join(text for text in (*(part.text for part in others), line.note) if text)
    below = [element("small", text) for text in (note, line.remark) if text]
    cells = [_cell(own) for own in line.cells]
    return element("tr", element("td", name, *below, data_v=first.text), *cells)


def _cell(own: Cell) -> Markup:
    is_large = any(part.style == "warn" for part in own.parts)
    classes = " ".join(word for word in (own.shade, "large" if is_large else "") if word)
    return element(
        "td",
        *(_part(part, is_alone=len(own.parts) == 1) for part in own.parts),
        id=own.anchor or None,
        class_=classes or None,
        data_v=None if own.value is None else f"{own.value:.6g}",
        data_tip=own.tip or None,
    )


def _part(part: Part, *, is_alone: bool) -> Markup:
    inside = "inside" if part.style == "good" else None
    match part.style:
        case "":
            return stacked(part.text)
        case "was":
            return element("span", part.text, class_="was")
        case "ours":
            return element("small", element("b", part.text))
        case "best":
            return element("b", part.text)
        case "good" if is_alone:
            return element("span", stacked(part.text), class_=inside)
    return element("small", element("span", part.text, class_=inside))
