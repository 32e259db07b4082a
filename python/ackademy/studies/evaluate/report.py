"""The report of an evaluation: tables, dominance, maps, and where the evaluated scheme fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ackademy import files
from ackademy.backends.schemes import Scheme
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.plot import Axis as PlotAxis
from ackademy.render.html.plot import Frame, thin
from ackademy.render.html.shapes import colour_keys, fold, hit, panel, terms
from ackademy.render.html.shapes import legend as keys_of
from ackademy.render.html.sheet import sheet
from ackademy.render.markdown import sheet as markdown_table
from ackademy.render.numbers import NONE, significant, with_interval
from ackademy.render.report import Item, Only, Report, Section, in_text
from ackademy.render.sheet import (
    Cell,
    Head,
    Line,
    Part,
    Sheet,
    cell,
    estimated,
    goodness,
    head_of,
    number,
    shaded,
)
from ackademy.runner.measured import Measured
from ackademy.stats.intervals import NOMINAL, Interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.scores import SHARE_FLOOR
from ackademy.studies.evaluate import study as evaluate
from ackademy.studies.evaluate.sources import Source
from ackademy.studies.evaluate.study import (
    AXES,
    GAIN,
    SCORED,
    WON,
    Axis,
    Guarded,
    Network,
    Summary,
    Verdict,
    Worst,
)

PER_CENT = frozenset({"link_share", "loss", WON})
"""ratios that are shown as per cent"""
SHOWN = ("link_share", "delay_mean_ms", "rtt_ratio", "loss", "utility")
"""metrics of `generalise`, in order"""
FAILING = ("link_share", "rtt_ratio", "loss")
"""metrics of the worst links"""
N_POINTS = 300
"""pairs of points of a learning curve"""
UTILITY = "utility"
COLOURS = 8
DOMINANCE_LEAD = (
    "A scheme dominates another on a network if nothing is worse by more than 2 % of the fair "
    "share, 2 % of the round trip or 1 ms of queueing delay, and 0.1 % of loss, and something is "
    "better by more. A network counts once. Intervals are 95 % over networks: by the bootstrap for "
    "means and parts, by order statistics for medians."
)
RESULTS_LEAD = (
    "Utility is ln link share − ln RTT ratio: 0 would be the whole link at the empty path's "
    f"round trip; below {100 * SHARE_FLOOR:g} % of a link it is cut. Gain is the first scheme's "
    f"utility minus the other's on the same network; ± is half a {NOMINAL} over networks."
)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation found."""

    source: Source
    schemes: Sequence[Scheme]
    networks: Sequence[Network]
    rows: Sequence[Measured]
    groups: Sequence[Summary]
    """all together, then each group"""
    axes: Sequence[Summary]
    """by range of each property; empty unless the networks are dumbbells"""
    listed: Sequence[Worst] = ()
    guarded: Guarded | None = None
    made: Mapping[str, object] | None = None
    """how the policy came about, as its file says"""
    curve: Path | None = None
    """its learning curve, a CSV file"""

    @property
    def name(self) -> str:
        """Of the evaluated scheme."""
        return self.schemes[0].label

    @property
    def colours(self) -> dict[str, int]:
        """By scheme."""
        return {own.label: 1 + i % (COLOURS - 1) for i, own in enumerate(self.schemes)}


def report(found: Evaluated, command: str = "") -> Report:
    """What there is to say of a kind of source."""
    own, everything = found.source, [one for one in found.groups if not one.group]
    groups = [one for one in found.groups if one.group]
    title = f"{own.origin}, {len(found.networks)} of {len(own.cases)} networks"
    results: list[Item] = [evaluated(title, everything, found.colours)]
    results += [evaluated("by group", groups, found.colours, "group")] if groups else []
    if found.guarded and found.guarded.decisions:
        results.append(in_text(guards(found.guarded)))
    return Report(
        kind="Evaluation",
        title=f"{found.name} on {Path(own.origin).stem}",
        about=own.about or f"The frozen scheme on {own.origin}.",
        facts=_facts(found, everything),
        sections=[
            Section("results", "Results", RESULTS_LEAD, results),
            *_dominance_sections(found),
            Section("planes", "Throughput against delay", "Every run a dot.", _planes(found)),
            *_axis_sections(found),
            *_worst_section(found),
            *_made_sections(found),
        ],
        command=command,
    )


def guards(own: Guarded) -> str:
    """How often guards decided, in a line."""
    outside, calm = (100 * own.share(left) for left in (own.outside, own.calm))
    return (
        f"Of {own.decisions} decisions the guard of unfamiliar networks left {outside:.1f} % to "
        f"own_queue, and {calm:.1f} % were without contention, where a policy that acts under it "
        f"alone does nothing. Flows handed over to CUBIC: {own.fallbacks or 'none'}."
    )


def card(found: Evaluated, command: str) -> str:
    """What the card of a policy has of an evaluation on a list, as Markdown."""
    own = found.source
    whole, pairs, kinds = _verdict_sheets(found)
    kept = tuple(line for line in kinds.lines if line.names[1].text == found.name)
    ours = Sheet(kinds.title, kinds.names, kinds.heads, kept, kinds.group)
    return f"""\
{own.about.strip()}

{len(own.cases)} networks, one seed each. The list's digest:

    {own.digest}

Intervals are 95 % over networks. The page "Evaluating policies" of the
documentation defines the numbers, which this command printed:

    {command}

{markdown_table(whole)}

{guards(found.guarded) if found.guarded else ""}

{markdown_table(pairs)}

The line's scheme dominates the column's on so many per cent of the networks. This policy by class:

{markdown_table(ours)}
"""


def _facts(found: Evaluated, everything: Sequence[Summary]) -> dict[str, str]:
    if not everything:
        return {}
    own = everything[0].estimates
    won = {
        f"of the networks won against {one.scheme}": f"{100 * one.estimates[WON].value:.0f} %"
        for one in everything[1:]
    }
    digest = {"digest": found.source.digest[:12]} if found.source.digest else {}
    return {
        "networks": str(len(found.networks)),
        "mean share of a link": f"{100 * own['link_share'].value:.0f} %",
        "mean RTT over the empty one": significant(own["rtt_ratio"].value, 3),
        **won,
        **digest,
    }


def _dominance_sections(found: Evaluated) -> list[Section]:
    if len(found.schemes) < 2 or len({own.case.text for own in found.networks}) < 2:
        return []
    whole, pairs, kinds = _verdict_sheets(found)
    several = len({own.case.group for own in found.networks}) > 1
    return [
        Section("verdicts", "Dominance", DOMINANCE_LEAD, [whole]),
        Section("pairs", "Who dominates whom", "Per cent of the networks.", [pairs]),
        *([Section("kinds", "By group of networks", "Without intervals.", [kinds])] * several),
    ]


def _verdict_sheets(found: Evaluated) -> tuple[Sheet, Sheet, Sheet]:
    networks, schemes = found.networks, found.schemes
    reference = schemes[1].label
    groups = sorted({own.case.group for own in networks})
    by_group = {
        name: evaluate.verdicts([own for own in networks if own.case.group == name], schemes)
        for name in groups
    }
    return (
        verdicts("dominance", evaluate.verdicts(networks, schemes), reference),
        dominance(evaluate.dominance(networks, schemes)),
        by_kind(by_group, reference),
    )


def _planes(found: Evaluated) -> list[Item]:
    groups: dict[str, list[Summary]] = {}
    several = len({own.group for own in found.groups}) > 1
    for own in found.groups:
        if own.group or not several:
            groups.setdefault(own.group or Path(found.source.origin).stem, []).append(own)
    panels = []
    for title, rows in groups.items():
        clouds = [
            Cloud(
                own.scheme,
                found.colours[own.scheme],
                own.per_run("delay_mean_ms"),
                own.per_run("throughput_total_mbps"),
            )
            for own in rows
        ]
        known = [own for own in clouds if np.isfinite(own.delay_ms).any()]
        panels += [plane(title, known)] if known else []
    if not panels:
        return []
    key = legend(list(found.colours.items()), published=False)
    return [key, element("div", join(panels), class_="panels")]


def _axis_sections(found: Evaluated) -> list[Section]:
    """Tables, maps and charts along the properties of dumbbells."""
    if not found.axes:
        return []
    named = {head(key).label: _by_axis(key, found) for key in SHOWN}
    links = join((keys_of(colour_keys(found.colours.items())), _panels(found)))
    of_axes = {axis.label: [own for own in found.axes if own.axis == axis.label] for axis in AXES}
    by_range = [in_text(means(label, rows, found.name)) for label, rows in of_axes.items()]
    return [
        Section(
            "axes",
            "Along each property",
            "Means over the networks of a range; green is the best of the row, red the worst.",
            [tabs("number", named), *by_range],
        ),
        Section(
            "maps",
            f"Where {found.name} holds and where it breaks",
            "Means over the networks of a field; their number is small, and a tooltip shows it.",
            [_maps(found)],
        ),
        Section(
            "links",
            "Network by network",
            "A dot is a run, 0 is the best there is; a tooltip lists all schemes on a network.",
            [links],
        ),
    ]


def _worst_section(found: Evaluated) -> list[Section]:
    if not found.listed:
        return []
    folds: list[Item] = []
    for kind in dict.fromkeys(own.kind for own in found.listed):
        table = everybody([own for own in found.listed if own.kind == kind])
        folds.append(fold(kind.capitalize(), sheet(table), is_open=not folds))
    lead = "Each is kept as a scenario file; its command prints the same numbers."
    shown = [
        Only(worst(found.listed, found.name), ("terminal",)),
        Only(worst(found.listed, found.name, commands=True), ("markdown",)),
    ]
    return [Section("worst", "The worst networks", lead, [*folds, *shown])]


def _made_sections(found: Evaluated) -> list[Section]:
    """How a policy learned, and how it was made."""
    sections = []
    if found.curve is not None and (drawn := _curve(found.curve)) is not None:
        lead = f"From {found.curve.name}."
        sections.append(Section("curve", "How it learned", lead, [drawn]))
    if found.made:
        entries = ((element("dt", key), str(value)) for key, value in found.made.items())
        sections.append(Section("made", "How it was made", "", [terms(entries)]))
    return sections


def _words(own: Network) -> str:
    return own.bottleneck.words if own.bottleneck else own.case.name


def _curve(path: Path) -> Markup | None:
    """The reward over the first number of a CSV file: what a trainer logs over its decisions."""
    lines = files.read_text(path, files.TABLE_BYTES_MAX).splitlines()
    names = lines[0].split(",") if lines else []
    rows = [line.split(",") for line in lines[1:]]
    try:
        column = names.index("reward")
        values = np.array([[float(row[0]), float(row[column])] for row in rows], np.float64)
    except (ValueError, IndexError):
        return None
    if values.shape[0] < 2 or not np.isfinite(values).any():
        return None
    x, y = values[:, 0], values[:, 1]
    low, high = float(np.nanmin(y)), float(np.nanmax(y))
    room = 0.05 * (high - low) or 1.0
    frame = Frame(
        PlotAxis(float(x.min()), float(x.max()), names[0]),
        PlotAxis(low - room, high + room, names[column]),
    )
    line = element("path", class_="stroke s1", d=frame.line(*thin(x, y, N_POINTS)))
    drawing = frame.draw([line], label=f"{names[column]} over {names[0]}", class_="figure")
    return element("figure", drawing, class_="panel drawn")


def _by_axis(key: str, found: Evaluated) -> Markup:
    """A table per axis: a row per range, a column per controller."""
    unit = head(key).unit
    heads = (Head("networks"), *(Head(own.label, unit) for own in found.schemes))
    parts = []
    for axis in AXES:
        by_range: dict[str, list[Summary]] = {}
        for own in found.axes:
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
    named, scale = head(key), factor(key)
    values = [own.estimates[key].value for own in row]
    lower_is_better = metric_of(key).better == "lower"
    for own, value in zip(row, values, strict=True):
        estimate = with_interval(own.estimates[key].times(scale))
        tip = f"{own.scheme}\n{axis.label}: {own.group}\n{named.label} {estimate} {named.unit}"
        shade = shaded(goodness(value, values, lower_is_better=lower_is_better))
        yield Cell((Part(significant(scale * value, 3)),), value, tip.rstrip(), shade)


def _maps(found: Evaluated) -> Markup:
    """The scheme's utility, then its gain over each other, over pairs of axes."""
    rate, rtt, loss, buffer = AXES

    def own(network: Network) -> float:
        return network.utility(found.name)

    bodies = {UTILITY: _pair_of_maps(found.networks, own, UTILITY, (rate, rtt), (loss, buffer))}
    for other in found.schemes[1:]:

        def gain(network: Network, other: str = other.label) -> float:
            return own(network) - network.utility(other)

        label = f"gain over {other.label}"
        bodies[label] = _pair_of_maps(found.networks, gain, label, (rate, rtt), (loss, buffer))
    return tabs("map", bodies)


def _pair_of_maps(
    found: Sequence[Network],
    value: Callable[[Network], float],
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
                    if x.bin(row) == across and y.bin(row) == down
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
    """The mean of the networks of one field, and how they spread."""
    if not members:
        return cell("·")
    mean = float(np.mean(members))
    is_gain = label != UTILITY
    gain = 0.5 + 0.5 * max(-1.0, min(1.0, 2.0 * mean / reach))
    part = gain if is_gain else 1.0 + mean / reach
    tip = (
        f"{place}\n{label} {significant(mean, 3)}, worst {significant(min(members), 3)}\n"
        f"{len(members)} {'network' if len(members) == 1 else 'networks'}"
    )
    return Cell((Part(significant(mean, 2)),), mean, tip, shaded(part))


def _panels(found: Evaluated) -> Markup:
    """Utility along each axis, then the policy against each other in share and round trip."""
    panels = [_along(axis, found) for axis in AXES]
    return element("div", join(panels), class_="panels")


def _along(axis: Axis, found: Evaluated) -> Markup:
    networks = found.networks
    x = np.array([axis.scale * axis.value(row) for row in networks])
    ends = axis_ends(float(x.min()), float(x.max()), is_log=axis.is_log)
    bottom = min(row.utility(own.label) for row in networks for own in found.schemes)
    frame = Frame(
        PlotAxis(*ends, axis.label, is_log=axis.is_log),
        PlotAxis(1.05 * bottom - 0.05, 0.1, "utility"),
    )
    content = []
    for own in reversed(found.schemes):
        y = np.array([row.utility(own.label) for row in networks])
        content.append(
            element("path", class_=f"run s{found.colours[own.label]}", d=frame.dots(x, y))
        )
    for row, across in zip(networks, x, strict=True):
        tip = f"{row.case.name}\n{_words(row)}\n" + "\n".join(
            f"{name}: {100 * one['link_share']:.0f} %, RTT × {significant(one['rtt_ratio'], 3)}"
            for name, one in row.values.items()
        )
        at = frame.dots(np.array([across]), np.array([row.utility(found.name)]))
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


def factor(metric: str) -> float:
    """Of a metric's value in the unit that it is shown in."""
    return 100.0 if metric in PER_CENT else 1.0


def head(metric: str) -> Head:
    """Label, unit and definition, in per cent where it is shown so."""
    found = head_of(metric)
    return found._replace(unit="%") if metric in PER_CENT else found


def evaluated(
    title: str, found: Sequence[Summary], colours: Mapping[str, int], group: str = ""
) -> Sheet:
    """A line per scheme, every metric with its interval; the evaluated one is the first."""
    metrics = (*SCORED, GAIN, WON)
    first = found[0].scheme if found else ""
    lines = [
        Line(
            (Part(own.scheme),),
            tuple(_estimated(own, metric, own.scheme == first) for metric in metrics),
            group=own.group if group else "",
            colour=colours.get(own.scheme),
        )
        for own in found
    ]
    return Sheet(title, (Head("controller"),), tuple(map(head, metrics)), tuple(lines), group)


def means(title: str, found: Sequence[Summary], policy: str, *, named: bool = False) -> Sheet:
    """Means alone: a group per range of networks, a line per scheme.

    Args:
        title: of the table.
        found: of one axis or of several.
        policy: which has no gain over itself.
        named: whether a range is called by its axis, too.
    """
    metrics = (*SHOWN, GAIN, WON)
    lines = [
        Line(
            (Part(str(own.n_runs)), Part(own.scheme)),
            tuple(_mean(own, metric, own.scheme == policy) for metric in metrics),
            group=own.full_group if named else own.group,
        )
        for own in found
    ]
    names = (Head("n"), Head("controller"))
    return Sheet(title, names, tuple(map(head, metrics)), tuple(lines), "networks")


def worst(listed: Sequence[Worst], policy: str, *, commands: bool = False) -> Sheet:
    """The networks on which the scheme fails, by how it does; with what runs them again."""
    lines = [
        Line(
            (Part(f"{own.file.stem}: {_words(own.network)}"),),
            (
                *_scores(own.network.values[policy], FAILING),
                *([cell(f"`{own.command}`")] if commands else []),
            ),
            group=own.kind,
        )
        for own in listed
    ]
    heads = (*map(head, FAILING), *([Head("command")] if commands else []))
    return Sheet("worst networks", (Head("network"),), heads, tuple(lines), "how")


def everybody(listed: Sequence[Worst]) -> Sheet:
    """Everybody's scores on networks of one kind of failure."""
    lines = [
        Line((Part(name),), _scores(values, SHOWN), f"{_words(own.network)} · {own.command}")
        for own in listed
        for name, values in own.network.values.items()
    ]
    return Sheet("", (Head("controller"),), tuple(map(head, SHOWN)), tuple(lines), "network")


def _scores(values: Mapping[str, float], metrics: Sequence[str]) -> tuple[Cell, ...]:
    return tuple(number(factor(metric) * values[metric]) for metric in metrics)


def _estimated(own: Summary, metric: str, is_policy: bool) -> Cell:
    if metric in (GAIN, WON) and is_policy:
        return cell(NONE)
    if metric == WON:
        return _won(own)
    return estimated(own.estimates[metric], factor(metric))


def _mean(own: Summary, metric: str, is_policy: bool) -> Cell:
    if metric in (GAIN, WON) and is_policy:
        return cell(NONE)
    return _won(own) if metric == WON else number(factor(metric) * own.estimates[metric].value)


def _won(own: Summary) -> Cell:
    value = factor(WON) * own.estimates[WON].value
    return cell(f"{value:.0f}", value)


def verdicts(title: str, found: Sequence[Verdict], reference: str) -> Sheet:
    """A line per scheme, every number with its 95 % interval over networks."""
    heads = (
        Head(f"dominates {reference}", "%", "part of the networks"),
        Head(f"dominated by {reference}", "%", "part of the networks"),
        Head("dominated by any", "%", "part of the networks on which another scheme dominates it"),
        Head("median share of fair", "", "throughput over the fair share, at most 1"),
        Head("median share / best other's"),
        Head("median p95 wait", "RTT", "95th percentile of the queueing delay, empty round trips"),
        Head("median wait beyond best", "RTT", "of the others with 0.95 of their fair share"),
        Head("mean loss", "%", "packets that queues dropped over those sent"),
    )
    return Sheet(title, (Head("n"), Head("scheme")), heads, tuple(_line(own) for own in found))


def by_kind(found: Mapping[str, Sequence[Verdict]], reference: str) -> Sheet:
    """A line per class of networks and scheme, without intervals."""
    heads = (
        Head(f"dominates {reference}", "%"),
        Head("dominated by any", "%"),
        Head("median share of fair"),
        Head("median p95 wait", "RTT"),
        Head("mean loss", "%"),
    )
    lines = tuple(
        Line(
            (Part(str(own.networks)), Part(own.scheme)),
            (
                number(100.0 * own.dominates_reference.value),
                number(100.0 * own.dominated.value),
                number(own.share.value),
                number(own.wait.value),
                number(100.0 * own.loss.value),
            ),
            group=kind,
        )
        for kind, rows in found.items()
        for own in rows
    )
    return Sheet("by group", (Head("n"), Head("scheme")), heads, lines, "group")


def dominance(parts: Mapping[str, Mapping[str, float]]) -> Sheet:
    """On what part of the networks a line's scheme dominates a column's."""
    heads = tuple(Head(name, "%") for name in parts)
    lines = tuple(
        Line((Part(ours),), tuple(_part(parts[ours].get(other)) for other in parts))
        for ours in parts
    )
    title = "networks on which the line's scheme dominates the column's"
    return Sheet(title, (Head("scheme"),), heads, lines)


def _line(own: Verdict) -> Line:
    return Line(
        (Part(str(own.networks)), Part(own.scheme)),
        (
            _percent(own.dominates_reference),
            _percent(own.dominated_by_reference),
            _percent(own.dominated),
            estimated(own.share, digits=3),
            estimated(own.share_to_best, digits=3),
            estimated(own.wait, digits=3),
            estimated(own.wait_beyond, digits=3),
            _percent(own.loss),
        ),
    )


def _percent(interval: Interval) -> Cell:
    return estimated(interval, 100.0, digits=3)


def _part(value: float | None) -> Cell:
    if value is None:
        return cell(NONE)
    found = number(100.0 * value)
    return Cell(found.parts, value, shade=shaded(0.5 + 0.5 * value) if value else "")
