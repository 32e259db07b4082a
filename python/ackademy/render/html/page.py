"""Puts sections together into one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ackademy import _core
from ackademy.render.html.markup import Markup, element, join


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with an entry in its table of contents."""

    anchor: str
    title: str
    lead: str
    body: Markup


@dataclass(frozen=True, slots=True)
class Head:
    """What stands above the first section."""

    kicker: str
    title: str
    about: str
    cite: Markup | str
    facts: Mapping[str, str]
    """big text by what it counts"""


def document(head: Head, sections: Sequence[Section]) -> str:
    """The whole file."""
    sources = files("ackademy.render.html")
    style = Markup((sources / "style.css").read_text(encoding="utf-8"))
    script = Markup((sources / "script.js").read_text(encoding="utf-8"))
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", f"{head.title} · {head.kicker}"),
            element("style", style),
        ),
        element(
            "body",
            _mast(head, sections),
            element("main", join([_section(section) for section in sections])),
            element(
                "footer",
                element(
                    "div",
                    f"Made by Ackademy; core {_core.CODE_HASH}. This file is complete: it "
                    "loads nothing.",
                ),
                class_="foot",
            ),
            element("script", script),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def tabs(name: str, bodies: Mapping[str, Markup]) -> Markup:
    """One body at a time; without a choice to make, just the body."""
    if len(bodies) <= 1:
        return join(list(bodies.values()))
    parts: list[Markup] = []
    rules = []
    for index, label in enumerate(bodies):
        key = f"{name}-{index}"
        parts.append(element("input", type="radio", name=name, id=key, checked=index == 0))
        parts.append(element("label", label, for_=key))
        rules.append(f"#{key}:checked ~ .{key}{{display:block}}")
    parts += [
        element("div", body, class_=f"tab {name}-{index}")
        for index, body in enumerate(bodies.values())
    ]
    return element("div", element("style", Markup("".join(rules))), join(parts), class_="tabs")


def _mast(head: Head, sections: Sequence[Section]) -> Markup:
    facts = [
        element("div", element("dd", value), element("dt", label))
        for label, value in head.facts.items()
    ]
    links = [element("a", section.title, href=f"#{section.anchor}") for section in sections]
    return element(
        "header",
        element(
            "div",
            element("div", head.kicker, class_="kicker"),
            element("h1", head.title),
            element("p", head.about, class_="lead"),
            element("p", head.cite, class_="cite") if head.cite else None,
            element("dl", join(facts), class_="facts") if facts else None,
            element("nav", join(links), aria_label="Sections"),
        ),
        class_="mast",
    )


def _section(section: Section) -> Markup:
    return element(
        "section",
        element("h2", section.title),
        element("p", section.lead, class_="lead") if section.lead else None,
        section.body,
        id=section.anchor,
    )
