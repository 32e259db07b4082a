"""What several charts and pages have: legends, rings, tips, panels, folds, lists."""

from __future__ import annotations

from collections.abc import Iterable

from ackademy.render.html.markup import Child, Markup, element, join


def legend(keys: Iterable[tuple[str, str]]) -> Markup:
    """Which mark is which: names, each with the classes of its mark."""
    entries = [element("li", key(classes), name) for name, classes in keys]
    return element("ul", join(entries), class_="legend")


def colour_keys(names: Iterable[tuple[str, int]]) -> list[tuple[str, str]]:
    """The keys of a legend of colours."""
    return [(name, f"s{colour}") for name, colour in names]


def key(classes: str) -> Markup:
    """A mark beside a name."""
    return element("i", class_=f"key {classes}")


def ring(dots: str) -> Markup:
    """Rings at dots, which are path data."""
    return join((element("path", class_="ring", d=dots), element("path", class_="hole", d=dots)))


def hit(dots: str, tip: str) -> Markup:
    """Where the pointer finds a text: dots, which are path data."""
    return element("path", element("title", tip), class_="hit", d=dots, data_tip=tip)


def panel(title: str, *content: Child, hint: str = "", class_: str = "panel") -> Markup:
    """A figure below its title."""
    caption = element("figcaption", element("b", title), _hint(hint))
    return element("figure", caption, *content, class_=class_)


def fold(title: str, *content: Child, hint: str = "", is_open: bool = False) -> Markup:
    """What opens below its title."""
    summary = element("summary", element("b", title), _hint(hint))
    return element("details", summary, *content, class_="fold", open=is_open)


def bullets(lines: Iterable[Child]) -> Markup:
    """A list."""
    return element("ul", join([element("li", line) for line in lines]))


def terms(entries: Iterable[tuple[Markup, str]]) -> Markup:
    """A list of terms, each with what it stands for."""
    pairs = [join((term, element("dd", text))) for term, text in entries]
    return element("dl", join(pairs), class_="assumptions")


def _hint(text: str) -> Markup | None:
    return element("span", text, class_="hint") if text else None
