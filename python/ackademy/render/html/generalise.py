"""The report of a policy on links that it was not trained for: tables, maps, and where it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head as PageHead
from ackademy.render.html.page import Section, document, repeat_section, tabs
from ackademy.render.html.plot import Axis as PlotAxis
from ackademy.render.html.plot import Frame
from ackademy.render.html.shapes import colour_keys, fold, hit, legend, panel
from ackademy.render.html.sheet import sheet
from ackademy.render.numbers import significant, with_interval
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, goodness, shaded
from ackademy.render.sheets import evaluation as sheets
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.stats.scores import SHARE_FLOOR
from ackademy.studies.generalise import AXES, Axis, Row, Study, Worst, in_words
from ackademy.studies.scored import WON, Summary

UTILITY = "utility"
COLOURS = 8


def page(
    study: Study,
    found: Sequence[Row],
    gathered: Sequence[Summary],
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
    overall = {own.scheme: own for own in gathered if not own.axis}
    head = PageHead(
        kicker="Generalisation",
        title=f"{name} on links it was not trained for",
        about=f"The same frozen policy on {len(found)} links drawn at random. {study.about}",
        cite="",
        facts=_facts(study, overall),
    )
    lead = (
        "Utility is ln link share − ln RTT ratio: 0 would be the whole link at the empty path's "
        f"round trip; below {100 * SHARE_FLOOR:g} % of a link it is cut. Gain is the policy's "
        f"utility minus the other's on the same link; ± is half a {NOMINAL} over links."
    )
    sections = [
        Section("all", "All links", lead, sheet(sheets.overall(list(overall.values()), colours))),
        Section(
            "axes",
            "Along each property",
            "Means over the links of a range; green is the best of the row, red the worst.",
            tabs(
                "number",
                {sheets.head(key).label: _by_axis(key, study, gathered) for key in sheets.SHOWN},
            ),
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
            join((legend(colour_keys(colours.items())), _panels(study, found, colours))),
        ),
        Section(
            "worst",
            "The worst links",
            "Each is kept as a scenario file; its command prints the same numbers.",
            _worst(listed),
        ),
        repeat_section(command),
    ]
    return document(head, sections)


def _facts(study: Study, overall: Mapping[str, Summary]) -> dict[str, str]:
    own = overall.get(study.policy.name)
    if own is None:
        return {}
    won = {
        f"of the links won against {name}": f"{100 * overall[name].estimates[WON].value:.0f} %"
        for name in (other.name for other in study.against)
    }
    return {
        "links": str(own.n_runs),
        "mean share of a link": f"{100 * own.estimates['link_share'].value:.0f} %",
        "mean RTT over the empty one": significant(own.estimates["rtt_ratio"].value, 3),
        **won,
    }


def _by_axis(key: str, study: Study, gathered: Sequence[Summary]) -> Markup:
    """A table per axis: a row per range, a column per controller."""
    head = sheets.head(key)
    heads = (Head("links"), *(Head(own.name, head.unit) for own in study.compared))
    parts = []
    for axis in AXES:
        by_range: dict[str, list[Summary]] = {}
        for own in gathered:
            if own.axis == axis.label:
                by_range.setdefault(own.group, []).append(own)
        lines = tuple(
            Line((Part(name),), (cell(str(row[0].n_runs)), *_shaded(key, axis, row)))
            for name, row in by_range.items()
        )
        table = Sheet(axis.label, (Head(axis.label),), heads, lines)
        parts.append(element("div", sheet(table, class_="heat"), class_="panel"))
    return element("div", join(parts), class_="panels wide")


def _shaded(key: str, axis: Axis, row: Sequence[Summary]) -> Iterator[Cell]:
    head, factor = sheets.head(key), sheets.factor(key)
    values = [own.estimates[key].value for own in row]
    lower_is_better = metric_of(key).better == "lower"
    for own, value in zip(row, values, strict=True):
        estimate = with_interval(own.estimates[key].times(factor))
        tip = f"{own.scheme}\n{axis.label}: {own.group}\n{head.label} {estimate} {head.unit}"
        shade = shaded(goodness(value, values, lower_is_better=lower_is_better))
        yield Cell((Part(significant(factor * value, 3)),), value, tip.rstrip(), shade)


def _maps(study: Study, found: Sequence[Row]) -> Markup:
    """The policy's utility, then its gain over each other, over pairs of axes."""
    policy = study.policy.name
    rate, rtt, loss, buffer = AXES

    def own(row: Row) -> float:
        return row.scores[policy].utility

    bodies = {UTILITY: _pair_of_maps(found, own, UTILITY, (rate, rtt), (loss, buffer))}
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
    parts = []
    for x, y in pairs:
        lines = []
        for down in reversed(range(len(y.names))):
            fields = [
                [
                    float(v)
                    for row, v in zip(found, values, strict=True)
                    if x.bin(row.link) == across and y.bin(row.link) == down
                ]
                for across in range(len(x.names))
            ]
            places = [f"{x.label}: {name}\n{y.label}: {y.names[down]}" for name in x.names]
            cells = [
                _field(label, members, place, reach)
                for members, place in zip(fields, places, strict=True)
            ]
            lines.append(Line((Part(y.names[down]),), tuple(cells)))
        heads = tuple(Head(name) for name in x.names)
        table = Sheet("", (Head(f"{y.label} ↓ {x.label} →"),), heads, tuple(lines))
        parts.append(element("div", sheet(table, class_="heat"), class_="panel"))
    return element("div", join(parts), class_="panels wide")


def _field(label: str, members: Sequence[float], place: str, reach: float) -> Cell:
    """The mean of the links of one field, and how they spread."""
    if not members:
        return cell("·")
    mean = float(np.mean(members))
    is_gain = label != UTILITY
    gain = 0.5 + 0.5 * max(-1.0, min(1.0, 2.0 * mean / reach))
    part = gain if is_gain else 1.0 + mean / reach
    tip = (
        f"{place}\n{label} {significant(mean, 3)}, worst {significant(min(members), 3)}\n"
        f"{len(members)} {'link' if len(members) == 1 else 'links'}"
    )
    return Cell((Part(significant(mean, 2)),), mean, tip, shaded(part))


def _panels(study: Study, found: Sequence[Row], colours: Mapping[str, int]) -> Markup:
    """Utility along each axis, then the policy against each other in share and round trip."""
    if not found:
        return join(())
    panels = [_along(axis, study, found, colours) for axis in AXES]
    return element("div", join(panels), class_="panels")


def _along(axis: Axis, study: Study, found: Sequence[Row], colours: Mapping[str, int]) -> Markup:
    x = np.array([axis.scale * getattr(row.link, axis.key) for row in found])
    ends = axis_ends(float(x.min()), float(x.max()), is_log=axis.is_log)
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
        content.append(hit(at, tip))
    drawing = frame.draw(content, label=f"utility by {axis.label}")
    return panel(f"Utility by {axis.label}", drawing)


def axis_ends(low: float, high: float, *, is_log: bool) -> tuple[float, float]:
    """The ends of an axis for values from 0: with room on both sides, for one value too."""
    if is_log:
        return low / 1.1, high * 1.1
    if high == 0.0:
        return 0.0, 1.0
    margin = 0.05 * (high - low or high)
    return low - margin, high + margin


def _worst(listed: Sequence[Worst]) -> Markup:
    parts: list[Markup] = []
    for kind in dict.fromkeys(own.kind for own in listed):
        table = sheets.everybody([own for own in listed if own.kind == kind])
        parts.append(fold(kind.capitalize(), sheet(table), is_open=not parts))
    return join(parts)
