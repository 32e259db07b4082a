"""The figures of an experiment: bars, lines over the groups' x, windows and rates over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ackademy.backends import entries
from ackademy.lazy import pl
from ackademy.render.html import shapes
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.numbers import significant, with_interval
from ackademy.runner import experiments
from ackademy.stats.claims import RowName
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval
from ackademy.stats.metrics import metric_of
from ackademy.studies.reproduce.files import Figure
from ackademy.studies.reproduce.study import Reproduced, Reproduction

N_BUCKETS = 350
"""pairs of points per line of a window over time"""
RATE_BUCKET_S = 5.0
"""over which a rate over time is taken"""
MEAN = "mean:"
"""before a glob: one line, the mean over the flows that it names"""


def figures(reproduction: Reproduction, colour: Mapping[str, int]) -> Markup:
    """Every figure that has something to show, one below the other."""
    drawers = {
        "bars": _bars,
        "lines": _lines,
        "windows": _windows,
        "rates": _rates,
        "plane": _plane,
    }
    parts = []
    for figure in reproduction.experiment.figures:
        drawing = drawers[figure.kind](reproduction, figure, colour)
        if drawing is not None:
            about = element("p", figure.about, class_="hint") if figure.about else None
            parts.append(shapes.panel(figure.title, about, drawing, class_="panel drawn"))
    return join(parts)


def _bars(reproduction: Reproduction, figure: Figure, colour: Mapping[str, int]) -> Markup | None:
    shown = _shown(reproduction, figure)
    if not shown:
        return None
    groups = list(dict.fromkeys(group for _, group in figure.rows))
    schemes = list(dict.fromkeys(scheme for scheme, _ in figure.rows))
    width = 0.8 / len(schemes)
    frame = Frame(
        Axis(0.0, float(len(groups)), names=tuple(groups)),
        _value_axis(reproduction, figure, from_zero=True),
    )
    content = []
    for (scheme, group), (interval, published) in shown.items():
        left = groups.index(group) + 0.1 + width * schemes.index(scheme)
        middle = left + 0.5 * width
        content.append(
            element(
                "g",
                _bar(frame, left + 0.1 * width, left + 0.9 * width, interval),
                _whisker(frame, middle, interval),
                _ring(frame, middle, published),
                _hit(frame, middle, figure, (scheme, group), interval, published),
                class_=f"s{colour[scheme]}",
            )
        )
    return join((_legend(schemes, colour, shown), _drawn(frame, content, figure)))


def _lines(reproduction: Reproduction, figure: Figure, colour: Mapping[str, int]) -> Markup | None:
    shown = _shown(reproduction, figure)
    x_of = {
        row.printed.group: row.printed.x for row in reproduction.rows if row.printed.x is not None
    }
    shown = {name: value for name, value in shown.items() if name[1] in x_of}
    if not shown:
        return None
    schemes = list(dict.fromkeys(scheme for scheme, _ in shown))
    xs = [x for group in {group for _, group in shown} if (x := x_of[group]) is not None]
    margin = 0.05 * (max(xs) - min(xs)) or 0.5
    frame = Frame(
        Axis(min(xs) - margin, max(xs) + margin, figure.x_label),
        _value_axis(reproduction, figure, from_zero=False),
    )
    content = []
    for scheme in schemes:
        places = sorted(
            (x, group)
            for other, group in shown
            if other == scheme and (x := x_of[group]) is not None
        )
        values = [shown[scheme, group] for _, group in places]
        line = frame.line(
            np.array([x for x, _ in places]),
            np.array([interval.value if interval else math.nan for interval, _ in values]),
        )
        marks = []
        for (x, group), (interval, published) in zip(places, values, strict=True):
            marks += [
                _whisker(frame, x, interval),
                _dot(frame, x, interval),
                _ring(frame, x, published),
                _hit(frame, x, figure, (scheme, group), interval, published),
            ]
        path = element("path", class_="stroke", d=line)
        content.append(element("g", path, *marks, class_=f"s{colour[scheme]}"))
    return join((_legend(schemes, colour, shown), _drawn(frame, content, figure)))


def _windows(
    reproduction: Reproduction, figure: Figure, colour: Mapping[str, int]
) -> Markup | None:
    rows = reproduction.by_name
    drawn = [rows[name] for name in figure.rows if rows[name].drawn is not None]
    charts = []
    for measured in drawn:
        lines = _window_lines(reproduction, measured, figure)
        if lines:
            charts.append((measured, lines))
    if not charts:
        return None
    end = max(float(time[-1]) for _, lines in charts for _, time, _ in lines)
    top = max(float(np.nanquantile(cwnd, 0.998)) for _, lines in charts for _, _, cwnd in lines)
    cards = []
    for measured, lines in charts:
        # The first line has the scheme's colour, the others those of the palette that follow.
        first = colour[measured.printed.scheme]
        own = [
            (name, (first + index) % 8, *thin(time, cwnd, N_BUCKETS))
            for index, (name, time, cwnd) in enumerate(lines)
        ]
        title = " ".join(measured.printed.name)
        label = f"cwnd over time, {title}"
        cards.append(_over_time(title, label, ("cwnd", "packets"), own, (end, top)))
    return element("div", join(cards), class_="strips")


def _rates(reproduction: Reproduction, figure: Figure, colour: Mapping[str, int]) -> Markup | None:
    """What all flows together deliver over time, seed 1: a chart per group, a line per scheme."""
    rows = [reproduction.by_name[name] for name in figure.rows]
    cards = []
    for group in dict.fromkeys(measured.printed.group for measured in rows):
        lines = [
            (
                measured.printed.scheme,
                colour[measured.printed.scheme],
                *_delivered(reproduction, measured, figure),
            )
            for measured in rows
            if measured.printed.group == group and measured.drawn is not None
        ]
        if not lines:
            continue
        end = max(float(time[-1]) for _, _, time, _ in lines)
        top = max(float(rate.max()) for _, _, _, rate in lines)
        label, what = f"total over time, {group}", ("delivered by all flows together", "Mb/s")
        cards.append(_over_time(group, label, what, lines, (end, top)))
    return element("div", join(cards), class_="strips") if cards else None


def _over_time(
    title: str,
    label: str,
    what: tuple[str, str],
    lines: Sequence[tuple[str, int, FloatArray, FloatArray]],
    ends: tuple[float, float],
) -> Markup:
    """A card of lines over time.

    Args:
        title: above the card.
        label: of the drawing.
        what: is drawn, and its unit.
        lines: name, colour, times in s, values.
        ends: of the time, and largest value.
    """
    frame = Frame(Axis(0.0, ends[0], "time, s", n_ticks=4), Axis(0.0, 1.08 * ends[1], n_ticks=3))
    paths = [
        element(
            "path",
            class_=f"line s{colour}",
            d=frame.line(time, values),
            data_name=name,
            data_unit=what[1],
        )
        for name, colour, time, values in lines
    ]
    drawing = frame.draw(paths, label=label, class_="wide", is_read=True)
    hint = element("span", ", ".join(what), class_="hint")
    head = element("header", element("b", title), hint)
    keys = _keys([(name, colour) for name, colour, _, _ in lines])
    return element("article", head, keys, drawing, class_="strip")


def _delivered(
    reproduction: Reproduction, measured: Reproduced, figure: Figure
) -> tuple[FloatArray, FloatArray]:
    """The middles of `RATE_BUCKET_S`, s, and the rates of the figure's flows in them, Mb/s."""
    if measured.drawn is None:
        raise ValueError("a row without series has no rates")
    series = experiments.read(reproduction.folder, measured.drawn, "flow_series")
    names = series["flow"].unique().to_list()
    chosen = [name for name in names if entries.fits(figure.flows, name)]
    growth = pl.col("delivered_bytes").cast(pl.Int64).diff().over("flow").fill_null(0)
    buckets = (
        series.filter(pl.col("flow").is_in(chosen))
        .with_columns(growth.alias("bytes"), (pl.col("time_s") // RATE_BUCKET_S).alias("bucket"))
        .group_by("bucket")
        .agg(pl.col("bytes").sum())
        .sort("bucket")
    )
    time = (buckets["bucket"].to_numpy() + 0.5) * RATE_BUCKET_S
    return time, 8e-6 * buckets["bytes"].to_numpy() / RATE_BUCKET_S


def _plane(reproduction: Reproduction, figure: Figure, colour: Mapping[str, int]) -> Markup | None:
    rows = [reproduction.by_name[name] for name in figure.rows]
    rows = [measured for measured in rows if measured.n_runs]
    if not rows:
        return None
    up, across = metric_of(figure.metric), metric_of(figure.across)
    panels = []
    for group in dict.fromkeys(measured.printed.group for measured in rows):
        clouds = [
            Cloud(
                name=measured.printed.scheme,
                colour=colour[measured.printed.scheme],
                delay_ms=_each_run(measured, figure.across),
                throughput_mbps=_each_run(measured, figure.metric),
            )
            for measured in rows
            if measured.printed.group == group
        ]
        labels = [f"{metric.brief}, {metric.unit}".rstrip(", ") for metric in (across, up)]
        panels.append(plane(group, clouds, *labels, whole=True))
    schemes = dict.fromkeys(measured.printed.scheme for measured in rows)
    keys = legend([(scheme, colour[scheme]) for scheme in schemes], published=False)
    return join((keys, element("div", join(panels), class_="panels")))


def _each_run(measured: Reproduced, metric: str) -> FloatArray:
    """The metric of every run by itself."""
    statistic, samples = metric_of(metric).statistic, measured.of(metric)
    return np.array([statistic(run[None]) for run in samples])


def _window_lines(
    reproduction: Reproduction, measured: Reproduced, figure: Figure
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Name, time and cwnd of each line."""
    if measured.drawn is None:
        return []
    series = experiments.read(reproduction.folder, measured.drawn, "flow_series")
    names = list(dict.fromkeys(series["flow"].to_list()))
    lines = []
    for glob in figure.flows:
        of_mean = glob.startswith(MEAN)
        wanted = glob.removeprefix(MEAN)
        chosen = [name for name in names if entries.fits([wanted], name)]
        if of_mean and chosen:
            part = series.filter(pl.col("flow").is_in(chosen))
            cwnd = pl.col("cwnd_packets").mean()
            mean = part.group_by("time_s", maintain_order=True).agg(cwnd).sort("time_s")
            lines.append((f"mean of {wanted}", *_series(mean)))
        elif not of_mean:
            lines += [(name, *_series(series.filter(pl.col("flow") == name))) for name in chosen]
    return lines


def _series(part: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
    return part["time_s"].to_numpy(), part["cwnd_packets"].to_numpy()


Shown = Mapping[RowName, "tuple[Interval | None, float | None]"]
"""ours and the published, by row"""


def _shown(
    reproduction: Reproduction, figure: Figure
) -> dict[RowName, tuple[Interval | None, float | None]]:
    rows, marks = reproduction.by_name, dict(figure.published)
    found = {}
    for name in figure.rows:
        ours = rows[name].estimates.get(figure.metric)
        ours = None if ours is None or not math.isfinite(ours.value) else ours
        published = marks.get(name, rows[name].printed.published.get(figure.metric))
        if ours is not None or published is not None:
            found[name] = (ours, published)
    return found if any(ours for ours, _ in found.values()) else {}


def _value_axis(reproduction: Reproduction, figure: Figure, *, from_zero: bool) -> Axis:
    metric = metric_of(figure.metric)
    values = [0.0] if from_zero else []
    for interval, published in _shown(reproduction, figure).values():
        ends = (interval.low, interval.value, interval.high) if interval else ()
        values += [value for value in (*ends, published) if value is not None]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite), max(finite)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    bottom = low if from_zero and low == 0.0 else low - margin
    if low >= 0.0 > bottom:
        bottom = 0.0
    return Axis(bottom, high + margin, f"{metric.label} {metric.unit}".rstrip())


def _drawn(frame: Frame, content: Sequence[Markup], figure: Figure) -> Markup:
    return frame.draw(content, label=f"{figure.title}: {frame.y.label}", class_="figure")


def _bar(frame: Frame, left: float, right: float, interval: Interval | None) -> Markup | None:
    if interval is None:
        return None
    across = np.array([left, left, right, right])
    up = np.array([max(frame.y.low, 0.0), interval.value, interval.value, max(frame.y.low, 0.0)])
    return element("path", class_="column", d=frame.line(across, up, closed=True))


def _whisker(frame: Frame, x: float, interval: Interval | None) -> Markup | None:
    if interval is None or not interval.half_width > 0.0:
        return None
    ends = np.array([interval.low, interval.high])
    return element("path", class_="whisker", d=frame.line(np.array([x, x]), ends))


def _dot(frame: Frame, x: float, interval: Interval | None) -> Markup | None:
    if interval is None:
        return None
    dot = frame.dots(np.array([x]), np.array([interval.value]))
    return element("path", class_="centre", d=dot)


def _ring(frame: Frame, x: float, published: float | None) -> Markup | None:
    if published is None:
        return None
    return shapes.ring(frame.dots(np.array([x]), np.array([published])))


def _hit(
    frame: Frame,
    x: float,
    figure: Figure,
    name: RowName,
    interval: Interval | None,
    published: float | None,
) -> Markup:
    """Where the pointer finds the numbers of a row."""
    unit = metric_of(figure.metric).unit
    values, lines = [], [", ".join(name)]
    if interval is not None:
        values.append(interval.value)
        lines.append(f"ours {with_interval(interval)} {unit}".rstrip())
    if published is not None:
        values.append(published)
        lines.append(f"published {significant(published)} {unit}".rstrip())
    dots = frame.dots(np.full(len(values), x), np.array(values))
    return shapes.hit(dots, "\n".join(lines))


def _legend(schemes: Sequence[str], colour: Mapping[str, int], shown: Shown) -> Markup:
    has_published = any(published is not None for _, published in shown.values())
    return _keys([(scheme, colour[scheme]) for scheme in schemes], published=has_published)


def _keys(names: Sequence[tuple[str, int]], *, published: bool = False) -> Markup:
    keys = shapes.colour_keys(names)
    return shapes.legend([*keys, *([("published", "ring")] if published else [])])
