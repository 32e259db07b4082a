"""The report of a league: who wins where, by how much, and where each scheme breaks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.plot import Axis, Frame
from ackademy.render.html.shapes import bullets, fold, hit, key, legend, panel
from ackademy.render.html.sheet import sheet
from ackademy.render.kernel_notes import kernel_section
from ackademy.render.numbers import (
    NONE,
    counted,
    padded,
    percent,
    runs_told,
    significant,
    with_interval,
)
from ackademy.render.report import (
    Item,
    Only,
    Report,
    Section,
    in_terminal,
    in_text,
    titled,
)
from ackademy.render.sheet import (
    Cell,
    Head,
    Line,
    Part,
    Sheet,
    cell,
    goodness,
    head_of,
    number,
    shaded,
)
from ackademy.render.sheet import measured as measured_cell
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.studies.league import tables as league_tables
from ackademy.studies.league.grid import MERIT, SHOWN
from ackademy.studies.league.harm import Harm
from ackademy.studies.league.ranking import BREAKS, Ranking, leaders, listed, ranked, rankings
from ackademy.studies.league.scores import Scores
from ackademy.studies.league.suite import Result, Suite
from ackademy.studies.reproduce.parts import assumptions_list

LOGARITHMIC = frozenset({"delay_p50_ms", "delay_p95_ms", "power"})
"""metrics whose shades follow their logarithms"""
KINDS = ("learned", "online", "classic")
SCORES_LEAD = (
    "A network counts once; seeds are averaged within it. Intervals are over networks. "
    'The page "Evaluating policies" of the documentation defines each number.'
)
HARM_LEAD = (
    "What a flow of the line's scheme takes from a flow of the column's, against that flow alone "
    "on the link: 0 nothing, 1 everything. The excess is beyond what two flows of the victim's "
    "own kind take from each other."
)
MERIT_LEAD = (
    "On a network a scheme is judged by Kong's figure of merit, M_e = ln throughput − "
    "0.1 ln delay. It is among the best if its interval reaches the best's: Student's, "
    "for M_e of the jackknife's pseudo-values. Ranks are averaged over each paper's networks, "
    "then over the papers. The gap is the best M_e minus its own: 0.1 is a tenth of the "
    "throughput, or a delay 2.7 times as long."
)
MATRIX_LEAD = (
    "A row per scheme, a column per network; the fullest green is the best of its column, the "
    "fullest red the worst. A heading sorts."
)
THROUGHPUT, DELAY = "throughput_mean_mbps", "delay_p50_ms"
CLASSIC = "classic"
SHORT = ("throughput_mean_mbps", "delay_p50_ms", "delay_p95_ms", "loss", MERIT)
"""columns of the table of the best of each network"""
N_COLOURS = 8
SHAPES = ("", "square", "hollow", "square hollow")
"""of markers, one for every eight schemes"""
MEAN_DELAY = "delay_mean_ms"
_RATE = {
    "flow": "throughput per flow, Mb/s",
    "connection": "goodput per connection, Mb/s",
}
Mark = Callable[[Line], Markup]


@dataclass(frozen=True, slots=True)
class Played:
    """What a league measured."""

    suite: Suite
    results: Sequence[Result]
    scores: Sequence[Scores] = ()
    """of the schemes, beside their mean rank"""
    harms: Sequence[Harm] = ()
    """of pairs of schemes"""


def report(played: Played, command: str = "") -> Report:
    """Rankings, scores and harm, then the networks one by one."""
    suite, found = played.suite, played.results
    table = rankings(found)
    mark = marks([scheme.label for scheme in suite.schemes])

    def marked(line: Line) -> Markup:
        return key(mark[line.names[0].text])

    networks = ranked(found)
    shown = listed(networks)
    ranks, best = rankings_sheet(table), winners(shown)
    matrix_lead = MATRIX_LEAD
    if len(shown) < len(networks):
        matrix_lead += f" The {len(networks) - len(shown)} drawn networks are in the scores alone."
    planes = join((legend(_playing(mark, shown).items()), _planes(shown, mark)))
    numbers = f"Mean ± half the {NOMINAL} over runs. A heading sorts."
    each = [in_terminal(network(rows)) for rows in shown.values()]
    return Report(
        kind="League",
        title=suite.title,
        about=suite.about,
        facts=_facts(found, networks, len(table)),
        sections=[
            Section("networks", "Networks", "", each),
            Section(
                "rankings", "Rankings", MERIT_LEAD, [sheet(ranks, mark=marked), in_text(ranks)]
            ),
            *_scored(played),
            Section("best", "The best of each network", "", [Only(best, ("markdown",))]),
            Section(
                "verdicts", "Where each wins, and where it breaks", "", [_verdicts(table, found)]
            ),
            Section("matrix", "Scheme by network", matrix_lead, [_matrices(table, shown, marked)]),
            Section(
                "planes",
                "Throughput against delay",
                f"Means over runs with their {NOMINAL}s; upper left is best.",
                [planes],
            ),
            Section("numbers", "Network by network", numbers, [_tables(shown, marked)]),
            Section("assumptions", "What this rests on", "", [assumptions_list(suite.assumptions)]),
            *kernel_section([run for result in found for run in result.measured.kernel_runs]),
        ],
        command=command,
    )


def _facts(
    found: Sequence[Result], networks: Mapping[str, Sequence[Result]], schemes: int
) -> dict[str, str]:
    n_runs = sum(result.n_runs for result in found)
    return {
        "schemes": str(schemes),
        "networks": str(len(networks)),
        "runs": f"{n_runs:,}".replace(",", " "),
        "networks won by a learned scheme alone": _won_by_learned(networks),
    }


def _scored(played: Played) -> list[Section]:
    """A section of scores and one of harm, as far as there are some."""
    scores, harms, found = played.scores, played.harms, []
    if scores:
        told = league_tables.summary(scores, harms)
        own: list[Item] = [bullets(told)]
        own += [Only(f"- {line}", ("markdown",)) for line in told]
        own += _both(league_tables.sheets(scores, ()))
        found.append(Section("scores", "Scores over networks", SCORES_LEAD, own))
    if harms:
        pairs = _both(league_tables.sheets((), harms))
        found.append(Section("harm", "Harm, pair by pair", HARM_LEAD, pairs))
    return found


def _both(found: Sequence[Sheet]) -> list[Item]:
    """Sheets below their titles on the page, and as tables elsewhere."""
    return [item for own in found for item in (titled(own), in_text(own))]


def rankings_sheet(found: Sequence[Ranking]) -> Sheet:
    """A line per scheme, the best mean rank first."""
    heads = (
        Head("mean rank", about="over the networks of each paper, then over papers; 1 is best"),
        Head("among best", about="networks"),
        Head("median gap", "M_e"),
        Head("worst gap", "M_e"),
        Head("worst on"),
        *(Head(kind, about="networks in which it does") for kind in BREAKS),
    )
    lines = tuple(
        Line((Part(own.scheme.label), Part(own.scheme.kind)), _ranked(own), note=own.scheme.family)
        for own in found
    )
    names = (Head("scheme"), Head("kind"))
    return Sheet("rankings, best mean rank in M_e first", names, heads, lines)


def _ranked(own: Ranking) -> tuple[Cell, ...]:
    counts = Counter(breakage.kind for breakage in own.breakages)
    of = len(own.ranks)
    where, worst = own.worst
    return (
        number(own.mean_rank),
        cell(f"{len(own.wins)} of {of}", len(own.wins)),
        number(own.median_gap, 2),
        number(worst, 2),
        cell(where),
        *(_count(counts[kind], of) for kind in BREAKS),
    )


def _count(count: int, of: int) -> Cell:
    shade = shaded(1.0 - count / of, 4) if count else ""
    return Cell((Part(str(count) if count else "·"),), count, shade=shade)


def network(rows: Sequence[Result]) -> Sheet:
    """A line per scheme on one network, the best first."""
    best = leaders(rows)
    own = rows[0].scheme_case.network
    heads = tuple(head_of(own.metric(column)) for column in own.shown)
    lines = tuple(
        Line(
            (Part(row.scheme, "best" if row in best else ""),),
            tuple(measured_cell(row.measured, own.metric(column)) for column in own.shown),
            note=runs_told(row.n_runs, is_fixed=row.measured.is_fixed),
            runs=counted(row.n_runs, row.measured.n_invalid, is_fixed=row.measured.is_fixed),
        )
        for row in rows
    )
    return Sheet(f"{own.paper} · {own.title}", (Head("scheme"),), heads, lines)


def column_heads(
    networks: Mapping[str, Sequence[Result]], columns: Sequence[str]
) -> tuple[Head, ...]:
    """Heads of columns that hold for all networks of a suite."""
    first = next((rows[0].scheme_case.network for rows in networks.values()), None)
    return tuple(head_of(first.headed(column) if first else column) for column in columns)


def winners(networks: dict[str, list[Result]]) -> Sheet:
    """The best schemes of each network beside its best classic one."""
    lines = []
    for name, rows in networks.items():
        best = leaders(rows)
        classic = [
            row for row in rows if row.scheme_case.scheme.kind == CLASSIC and row not in best
        ][:1]
        for row in (*best, *classic):
            shown = row.scheme if row in best else f"best classic: {row.scheme}"
            on = row.scheme_case.network
            cells = tuple(measured_cell(row.measured, on.metric(column)) for column in SHORT)
            lines.append(Line((Part(shown),), cells, name))
    heads = column_heads(networks, SHORT)
    return Sheet("the best of each network", (Head("scheme"),), heads, tuple(lines), "network")


def marks(names: Sequence[str]) -> Mapping[str, str]:
    """Classes of each name's marker: a colour and a shape."""
    return {
        name: f"s{index % N_COLOURS} {SHAPES[index // N_COLOURS % len(SHAPES)]}".rstrip()
        for index, name in enumerate(names)
    }


def _playing(
    mark: Mapping[str, str], networks: Mapping[str, Sequence[Result]]
) -> Mapping[str, str]:
    """Markers of the schemes that have results."""
    present = {result.scheme for rows in networks.values() for result in rows}
    return {name: classes for name, classes in mark.items() if name in present}


def _won_by_learned(networks: Mapping[str, Sequence[Result]]) -> str:
    alone = sum(
        {result.scheme_case.scheme.kind for result in leaders(rows)} == {"learned"}
        for rows in networks.values()
    )
    return f"{alone} of {len(networks)}"


def _verdicts(table: Sequence[Ranking], found: Sequence[Result]) -> Markup:
    """A card per scheme, learned ones first."""
    networks = ranked(found)
    ordered = sorted(table, key=lambda s: KINDS.index(s.scheme.kind))
    return element("div", join([_card(s, networks) for s in ordered if s.ranks]), class_="cards")


def _card(ranking: Ranking, networks: Mapping[str, Sequence[Result]]) -> Markup:
    scheme = ranking.scheme
    where, gap = ranking.worst
    kind = f" {scheme.kind} · {scheme.family}"
    lines = [element("p", _wins_in_words(ranking, networks))]
    if gap > 0.0:
        lines.append(element("p", f"Worst on {where}: {significant(gap, 2)} behind in M_e."))
    by_kind: dict[str, list[str]] = {}
    for breakage in ranking.breakages:
        by_kind.setdefault(breakage.kind, []).append(f"{breakage.network} ({breakage.detail})")
    breaks = [
        element("li", element("b", kind), f" on {len(where)}: ", _folded(where))
        for kind, where in by_kind.items()
    ]
    lines.append(
        element("ul", join(breaks), class_="breaks")
        if breaks
        else element("p", "Breaks nowhere.", class_="holds")
    )
    head = element("h3", scheme.label, element("small", kind))
    return element("article", head, *lines, class_="card")


def _folded(where: Sequence[str]) -> Markup:
    """A list that opens where it is long."""
    if len(where) <= 3:
        return join((", ".join(where),))
    first = ", ".join(where[:2])
    return element("details", element("summary", f"{first}, …"), ", ".join(where[2:]))


def _wins_in_words(ranking: Ranking, networks: Mapping[str, Sequence[Result]]) -> str:
    alone = [name for name in ranking.wins if len(leaders(networks[name])) == 1]
    count = f"Among the best on {len(ranking.wins)} of {len(ranking.ranks)} networks"
    if not alone or ranking.scheme.kind == "classic":
        return f"{count}, alone on {len(alone)}."
    rate, delay = zip(
        *(_margin(ranking.scheme.label, networks[name]) for name in alone), strict=True
    )
    return (
        f"{count}, alone on {len(alone)}. There, against the best classic scheme of each, "
        f"throughput {_range(rate, percent)} and median delay {_range(delay, _signed_ms)}."
    )


def _margin(scheme: str, rows: Sequence[Result]) -> tuple[float, float]:
    """From the best classic scheme: throughput as a part of its, median delay in ms."""
    own = next(result for result in rows if result.scheme == scheme)
    classics = [result for result in rows if result.scheme_case.scheme.kind == "classic"]
    if not classics:
        return math.nan, math.nan
    best = max(classics, key=lambda result: result.merit)
    rate = own.value(THROUGHPUT) / best.value(THROUGHPUT) - 1.0
    return rate, own.value(DELAY) - best.value(DELAY)


def _signed_ms(delay_ms: float, _: int) -> str:
    return f"{'+' if delay_ms >= 0 else ''}{significant(delay_ms, 2)} ms"


def _range(values: Sequence[float], text: Callable[[float, int], str]) -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "–"
    low, high = text(min(known), 0), text(max(known), 0)
    return low if low == high else f"{low} to {high}"


def _matrices(
    table: Sequence[Ranking], networks: Mapping[str, Sequence[Result]], marked: Mark
) -> Markup:
    order = [MERIT, *(metric for metric in SHOWN if metric != MERIT)]
    return tabs(
        "metric",
        {
            column_heads(networks, (metric,))[0].label: _matrix(metric, table, networks, marked)
            for metric in order
        },
    )


def _matrix(
    metric: str,
    table: Sequence[Ranking],
    networks: Mapping[str, Sequence[Result]],
    marked: Mark,
) -> Markup:
    papers = Counter(rows[0].scheme_case.network.paper for rows in networks.values())
    spans = [element("th", paper, colspan=count, class_="span") for paper, count in papers.items()]
    heads = tuple(
        Head(name, about=rows[0].scheme_case.network.title) for name, rows in networks.items()
    )
    cells = {
        (result.scheme, name): _shaded(metric, result, rows)
        for name, rows in networks.items()
        for result in rows
    }
    lines = tuple(
        Line((Part(name),), tuple(cells.get((name, on), cell(NONE)) for on in networks))
        for name in (ranking.scheme.label for ranking in table)
        if any((name, on) in cells for on in networks)
    )
    above = element("tr", element("th", column_heads(networks, (metric,))[0].unit), *spans)
    own = Sheet(metric, (Head("scheme"),), heads, lines)
    return sheet(own, class_="heat", above=above, mark=marked)


def _shaded(metric: str, result: Result, rows: Sequence[Result]) -> Cell:
    value = result.value(metric)
    part = goodness(
        value,
        [row.value(metric) for row in rows],
        lower_is_better=metric_of(metric).better == "lower",
        is_log=metric in LOGARITHMIC,
    )
    first = " first" if metric == MERIT and result in leaders(rows) else ""
    estimate = result.estimate(metric)
    head = head_of(result.scheme_case.network.headed(metric))
    tip = f"{result.scheme}\n{result.scheme_case.network.title}\n{head.label} "
    tip += f"{with_interval(estimate)} {head.unit}".rstrip() if estimate else NONE
    shade = f"{shaded(part)}{first}"
    return Cell((Part(significant(value, 3)),), value, tip, shade)


def _planes(networks: Mapping[str, Sequence[Result]], mark: Mapping[str, str]) -> Markup:
    """A fold per paper, all open."""
    by_paper: dict[str, list[Markup]] = {}
    for rows in (rows for rows in networks.values() if leaders(rows)):
        by_paper.setdefault(rows[0].scheme_case.network.paper, []).append(plane(rows, mark))
    return join(
        [
            fold(paper, element("div", join(panels), class_="panels"), is_open=True)
            for paper, panels in by_paper.items()
        ]
    )


def _tables(networks: Mapping[str, Sequence[Result]], marked: Mark) -> Markup:
    parts = []
    for rows in networks.values():
        own = network(rows)
        best = ", ".join(result.scheme for result in leaders(rows))
        parts.append(fold(own.title, sheet(own, mark=marked), hint=f"best: {best}"))
    return join(parts)


def plane(results: Sequence[Result], mark: Mapping[str, str]) -> Markup:
    """One panel: delay to the right, on a logarithmic axis, and throughput upwards.

    The axes hold the means; a whisker that is longer is cut off. A scheme without a delay is not
    drawn.
    """
    shown = [result for result in results if _place(result)]
    network = results[0].scheme_case.network
    delays = [result.value(MEAN_DELAY) for result in shown]
    rates = [result.value(THROUGHPUT) for result in shown]
    bottom, top = padded(min(rates, default=0.0), max(rates, default=0.0))
    ends = min(delays, default=1.0) / 1.3, max(delays, default=1.0) * 1.3
    frame = Frame(
        Axis(*ends, "mean delay above the empty path, ms", is_log=True),
        Axis(max(bottom, 0.0), top, _RATE[network.by]),
    )
    content = [_mark(frame, result, mark[result.scheme]) for result in shown]
    names = ", ".join(result.scheme for result in shown)
    drawing = frame.draw(content, label=f"Throughput against delay, {network.title}: {names}")
    return panel(network.title, drawing, hint="↖ better" if shown else "nothing to draw")


def _place(result: Result) -> bool:
    delay = result.value(MEAN_DELAY)
    return math.isfinite(delay) and delay > 0.0 and math.isfinite(result.value(THROUGHPUT))


def _ends(result: Result, metric: str) -> tuple[float, float, float]:
    interval = result.interval(metric)
    return max(interval.low, 0.2 * interval.value), interval.value, interval.high


def _mark(frame: Frame, result: Result, mark: str) -> Markup:
    low_d, delay, high_d = _ends(result, MEAN_DELAY)
    low_t, rate, high_t = _ends(result, THROUGHPUT)
    dot = frame.dots(np.array([delay]), np.array([rate]))
    across = frame.line(np.array([low_d, high_d]), np.array([rate, rate]))
    up = frame.line(np.array([delay, delay]), np.array([low_t, high_t]))
    tip = (
        f"{result.scheme}\n{with_interval(result.interval(THROUGHPUT))} Mb/s\n"
        f"{with_interval(result.interval(MEAN_DELAY))} ms\n"
        f"M_e {significant(result.value('m_e'))}"
    )
    shapes = [element("path", class_="whisker", d=across + up)]
    shapes.append(element("path", class_="blob", d=dot))
    if "hollow" in mark:
        shapes.append(element("path", class_="hole", d=dot))
    shapes.append(hit(dot, tip))
    return element("g", *shapes, class_=f"mark {mark}")
