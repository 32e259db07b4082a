"""HTML and SVG elements as text; whatever is not `Markup` is escaped."""

from __future__ import annotations

from html import escape
from typing import TypeAlias


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "Markup | str | float | None"
Attribute: TypeAlias = "str | float | bool | None"

VOID = frozenset({"br", "hr", "input", "line", "meta", "path", "rect"})


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element: `class_` gives `class`, `data_tip` gives `data-tip`; None leaves out."""
    text = "".join(
        f" {key.strip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID and not children:
        return Markup(f"<{tag}{text}/>")
    return Markup(f"<{tag}{text}>{join(children)}</{tag}>")


def join(children: tuple[Child, ...] | list[Markup]) -> Markup:
    """Children one after the other, escaped where they are plain text."""
    parts = [
        child if isinstance(child, Markup) else escape(str(child), quote=False)
        for child in children
        if child is not None
    ]
    return Markup("".join(parts))


def stacked(estimate: str) -> Markup:
    """A number above its interval, so that a column is as wide as a number: `1.5 ± 0.2`."""
    for mark in (" ± ", " ["):
        value, found, rest = estimate.partition(mark)
        if found:
            return join((value, element("small", f"{mark.lstrip()}{rest}")))
    return join((estimate,))


def math_label(text: str) -> Markup:
    """A symbol with its index set low, as `M_e`; other names as they are."""
    base, mark, index = text.partition("_")
    is_symbol = mark and len(base) == len(index) == 1
    return join((base, element("sub", index))) if is_symbol else join((text,))
