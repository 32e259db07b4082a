"""The report of a policy on links that it was not trained for: tables, maps, and where it fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head, Section, document, tabs
from ackademy.render.html.plot import Axis as PlotAxis
from ackademy.render.html.plot import Frame
from ackademy.render.html.scatter import colour_keys
from ackademy.render.numbers import significant, with_interval
from ackademy.stats.intervals import Interval
from ackademy.stats.scores import LESS_IS_BETTER, NUMBERS, PER_CENT, SHARE_FLOOR
from ackademy.studies.generalise import AXES, Axis, Bin, Row, Study, Worst, in_words

SHADES = 10
"""steps from the worst to the best of a map"""
COLOURS = 8


def page(
    study: Study,
    found: Sequence[Row],
    gathered: Sequence[Bin],
    listed: Sequence[Worst],
    command: str,
) -> str:
    """The HTML file.

    Args:
        study: what was to be run.
        found: every link that all have run on.
        gathered: their means by range.
        listed: the links on which the policy fails most.
        command: what the user typed.
    """
    name = study.policy.name
    colours = {own.name: 1 + index % (COLOURS - 1) for index, own in enumerate(study.compared)}
    overall = {own.scheme: own for own in gathered if own.axis == "all"}
    head = Head(
        kicker="Generalisation",
        title=f"{name} on links it was not trained for",
        about=f"The same frozen policy on {len(found)} links drawn at random. {study.about}",
        cite="",
        facts=_facts(study, overall),
    )
    lead = (
        "Utility is ln share − ln (RTT / empty RTT): 0 would be the whole link at the empty path's "
        f"round trip; below {100 * SHARE_FLOOR:g} % of a link it is cut. Gain is the policy's "
        "utility minus the other's on the same link; ± is half a 95 % interval over links."
    )
    sections = [
        Section("all", "All links", lead, _overall(study, overall, colours)),
        Section(
            "axes",
            "Along each property",
            "Means over the links of a range; green is the best of the row, red the worst.",
            tabs("number", {NUMBERS[key][0]: _by_axis(key, study, gathered) for key in NUMBERS}),
        ),
        Section(
            "maps",
            f"Where {name} holds and where it breaks",
            "Means over the links of a field; their number is small, and a tip tells it.",
            _maps(study, found),
        ),
        Section(
            "links",
            "Link by link",
            "A dot is a run, 0 is the best there is; a tip tells of everybody on a link.",
            join((colour_keys(colours), _panels(study, found, colours))),
        ),
        Section(
            "worst",
            "The worst links",
            "Each is kept as a scenario file; its command prints the same numbers.",
            _worst(study, listed),
        ),
        Section("repeat", "How to repeat it", "", element("pre", element("code", command))),
    ]
    return document(head, sections)


def shown(key: str, value: float, digits: int = 3) -> str:
    """A number of a score as text."""
    return significant(100.0 * value if key in PER_CENT else value, digits)


def heading(key: str) -> tuple[str, str]:
    """Label and unit."""
    label, unit = NUMBERS[key]
    return label, "%" if key in PER_CENT else unit


def _facts(study: Study, overall: Mapping[str, Bin]) -> dict[str, str]:
    own = overall.get(study.policy.name)
    if own is None:
        return {}
    won = {
        f"of the links won against {other.name}": f"{100 * overall[other.name].won:.0f} %"
        for other in study.against
    }
    return {
        "links": str(own.n_links),
        "mean share of a link": f"{100 * own.share.value:.0f} %",
        "mean RTT over the empty one": significant(own.rtt_ratio.value, 3),
        **won,
    }


def _overall(study: Study, overall: Mapping[str, Bin], colours: Mapping[str, int]) -> Markup:
    heads = [_head("controller"), *(_head(*heading(key)) for key in NUMBERS)]
    heads += [_head("gain of the policy"), _head("links it wins", "%")]
    body = []
    for own in study.compared:
        if own.name not in overall:
            continue
        row = overall[own.name]
        is_policy = own == study.policy
        cells = [_cell(getattr(row, key), key) for key in NUMBERS]
        cells += [
            element("td", "–" if is_policy else with_interval(row.gain)),
            element("td", "–" if is_policy else f"{100 * row.won:.0f}"),
        ]
        dot = element("i", class_=f"key s{colours[own.name]}")
        name = element("td", element("span", dot, own.name, class_="name"))
        body.append(element("tr", name, *cells))
    return _table(heads, body)


def _cell(interval: Interval, key: str) -> Markup:
    scale = 100.0 if key in PER_CENT else 1.0
    scaled = Interval(scale * interval.value, scale * interval.low, scale * interval.high)
    return element("td", with_interval(scaled), data_v=f"{interval.value:.6g}")


def _by_axis(key: str, study: Study, gathered: Sequence[Bin]) -> Markup:
    """A table per axis: a row per range, a column per controller."""
    unit = heading(key)[1]
    parts = []
    for axis in AXES:
        by_range: dict[str, dict[str, Bin]] = {}
        for own in gathered:
            if own.axis == axis.key:
                by_range.setdefault(own.range, {})[own.scheme] = own
        heads = [element("th", axis.label), element("th", "links")]
        heads += [
            element("th", own.name, element("small", unit) if unit else None)
            for own in study.compared
        ]
        body = []
        for name, row in by_range.items():
            values = [getattr(row[own.name], key).value for own in study.compared]
            cells = [
                element(
                    "td",
                    shown(key, value),
                    class_=_shade(key, value, values),
                    data_tip=f"{own.name}\n{axis.label}: {name}\n"
                    + _tip(getattr(row[own.name], key), key),
                )
                for own, value in zip(study.compared, values, strict=True)
            ]
            count = next(iter(row.values())).n_links
            body.append(element("tr", element("td", name), element("td", str(count)), *cells))
        parts.append(element("div", _table(heads, body, "heat"), class_="panel"))
    return element("div", join(parts), class_="panels wide")


def _tip(interval: Interval, key: str) -> str:
    scale = 100.0 if key in PER_CENT else 1.0
    scaled = Interval(scale * interval.value, scale * interval.low, scale * interval.high)
    label, unit = heading(key)
    return f"{label} {with_interval(scaled)} {unit}".rstrip()


def _shade(key: str, value: float, values: Sequence[float]) -> str | None:
    known = [own for own in values if not math.isnan(own)]
    if math.isnan(value) or not known or not max(known) > min(known):
        return None
    part = (value - min(known)) / (max(known) - min(known))
    return f"q{round(SHADES * (1.0 - part if key in LESS_IS_BETTER else part))}"


def _maps(study: Study, found: Sequence[Row]) -> Markup:
    """The policy's utility, then its gain over each other, over pairs of axes."""
    policy = study.policy.name
    rate, rtt, loss, buffer = AXES

    def own(row: Row) -> float:
        return row.scores[policy].utility

    bodies = {"utility": _pair_of_maps(found, own, "utility", (rate, rtt), (loss, buffer))}
    for other in study.against:

        def gain(row: Row, other: str = other.name) -> float:
            return own(row) - row.scores[other].utility

        label = f"gain over {other.name}"
        bodies[label] = _pair_of_maps(found, gain, label, (rate, rtt), (loss, buffer))
    return tabs("map", bodies)


def _pair_of_maps(
    found: Sequence[Row],
    value: Callable[[Row], float],
    label: str,
    *pairs: tuple[Axis, Axis],
) -> Markup:
    values = np.array([value(row) for row in found])
    reach = float(np.abs(values).max()) if values.size else 1.0
    is_gain = label != "utility"
    parts = []
    for x, y in pairs:
        heads = [
            element("th", f"{y.label} ↓ {x.label} →"),
            *(element("th", name) for name in x.names),
        ]
        body = []
        for down in reversed(range(len(y.names))):
            cells = []
            for across in range(len(x.names)):
                members = [
                    float(v)
                    for row, v in zip(found, values, strict=True)
                    if x.bin(row.link) == across and y.bin(row.link) == down
                ]
                if not members:
                    cells.append(element("td", "·"))
                    continue
                mean = float(np.mean(members))
                part = (
                    0.5 + 0.5 * max(-1.0, min(1.0, 2.0 * mean / reach))
                    if is_gain
                    else 1.0 + mean / reach
                )
                tip = (
                    f"{x.label}: {x.names[across]}\n{y.label}: {y.names[down]}\n"
                    f"{label} {significant(mean, 3)}, worst {significant(min(members), 3)}\n"
                    f"{len(members)} {'link' if len(members) == 1 else 'links'}"
                )
                shade = f"q{round(SHADES * part)}"
                cells.append(element("td", significant(mean, 2), class_=shade, data_tip=tip))
            body.append(element("tr", element("td", y.names[down]), *cells))
        parts.append(element("div", _table(heads, body, "heat"), class_="panel"))
    return element("div", join(parts), class_="panels wide")


def _panels(study: Study, found: Sequence[Row], colours: Mapping[str, int]) -> Markup:
    """Utility along each axis, then the policy against each other in share and round trip."""
    if not found:
        return join(())
    panels = [_along(axis, study, found, colours) for axis in AXES]
    return element("div", join(panels), class_="panels")


def _along(axis: Axis, study: Study, found: Sequence[Row], colours: Mapping[str, int]) -> Markup:
    x = np.array([axis.scale * getattr(row.link, axis.key) for row in found])
    low, high = float(x.min()), float(x.max())
    ends = (
        (low / 1.1, high * 1.1)
        if axis.is_log
        else (low - 0.05 * (high - low), high + 0.05 * (high - low) or 1.0)
    )
    bottom = min(row.scores[own.name].utility for row in found for own in study.compared)
    frame = Frame(
        PlotAxis(*ends, axis.label, is_log=axis.is_log),
        PlotAxis(1.05 * bottom - 0.05, 0.1, "utility"),
    )
    content = []
    for own in reversed(study.compared):
        y = np.array([row.scores[own.name].utility for row in found])
        content.append(element("path", class_=f"run s{colours[own.name]}", d=frame.dots(x, y)))
    policy = study.policy.name
    for row, across in zip(found, x, strict=True):
        tip = f"{row.case.name}\n{in_words(row.link)}\n" + "\n".join(
            f"{name}: {100 * score.share:.0f} %, RTT × {significant(score.rtt_ratio, 3)}"
            for name, score in row.scores.items()
        )
        at = frame.dots(np.array([across]), np.array([row.scores[policy].utility]))
        content.append(element("path", element("title", tip), class_="hit", d=at, data_tip=tip))
    drawing = frame.draw(content, label=f"utility by {axis.label}")
    caption = element("figcaption", element("b", f"Utility by {axis.label}"))
    return element("figure", caption, drawing, class_="panel")


def _worst(study: Study, listed: Sequence[Worst]) -> Markup:
    parts: list[Markup] = []
    for kind in dict.fromkeys(own.kind for own in listed):
        heads = [element("th", "link"), element("th", "controller")]
        heads += [
            element("th", label, element("small", unit) if unit else None)
            for label, unit in map(heading, NUMBERS)
        ]
        body = []
        for own in (own for own in listed if own.kind == kind):
            for index, (name, score) in enumerate(own.row.scores.items()):
                link = element("td")
                if index == 0:
                    link = element(
                        "td", element("b", in_words(own.row.link)), element("small", own.command)
                    )
                cells = [element("td", shown(key, getattr(score, key))) for key in NUMBERS]
                body.append(element("tr", link, element("td", name), *cells))
        parts.append(
            element(
                "details",
                element("summary", element("b", kind.capitalize())),
                _table(heads, body),
                class_="fold",
                open=not parts,
            )
        )
    return join(parts)


def _head(label: str, unit: str = "") -> Markup:
    return element("th", label, element("small", unit) if unit else None, data_sort=True)


def _table(heads: Sequence[Markup], body: Sequence[Markup], class_: str = "sortable") -> Markup:
    head = element("thead", element("tr", *heads))
    return element(
        "div", element("table", head, element("tbody", *body), class_=class_), class_="scroll"
    )
