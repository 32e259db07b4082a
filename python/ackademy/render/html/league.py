"""The report of a league: who wins where, by how much, and where each scheme breaks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ackademy.render.html.comparison import kernel_section
from ackademy.render.html.experiment import assumptions_list
from ackademy.render.html.league_plane import marks, plane
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import Head as PageHead
from ackademy.render.html.page import Section, document, repeat_section, tabs
from ackademy.render.html.shapes import bullets, fold, key, legend
from ackademy.render.html.sheet import sheet
from ackademy.render.numbers import NONE, percent, significant, with_interval
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, goodness, head_of, shaded
from ackademy.render.sheets import league as sheets
from ackademy.render.sheets import league_scores
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.metrics import metric_of
from ackademy.studies.harm_matrix import Harm
from ackademy.studies.leaderboard import Ranking, leaders, listed, ranked, rankings
from ackademy.studies.league import MERIT, SHOWN, Result, Suite
from ackademy.studies.league_scores import Scores

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
THROUGHPUT, DELAY = "throughput_mean_mbps", "delay_p50_ms"


def page(
    suite: Suite,
    found: Sequence[Result],
    command: str,
    scores: Sequence[Scores] = (),
    harms: Sequence[Harm] = (),
) -> str:
    """The HTML file of a league.

    Args:
        suite: what was to be run.
        found: what was measured.
        command: what the user typed.
        scores: of the schemes, beside their mean rank.
        harms: of pairs of schemes.
    """
    table = rankings(found)
    mark = marks([scheme.name for scheme in suite.schemes])

    def marked(line: Line) -> Markup:
        return key(mark[line.names[0].text])

    networks = ranked(found)
    shown = listed(networks)
    n_runs = sum(result.n_runs for result in found)
    head = PageHead(
        kicker="League",
        title=suite.title,
        about=suite.about,
        cite="",
        facts={
            "schemes": str(len(table)),
            "networks": str(len(networks)),
            "runs": f"{n_runs:,}".replace(",", " "),
            "networks won by a learned scheme alone": _won_by_learned(networks),
        },
    )
    merit_lead = (
        "On a network a scheme is judged by Kong's figure of merit, M_e = ln throughput − "
        "0.1 ln delay. It is among the best if its interval reaches the best's: Student's, "
        "for M_e of the jackknife's pseudo-values. Ranks are averaged over each paper's networks, "
        "then over the papers. The gap is the best M_e minus its own: 0.1 is a tenth of the "
        "throughput, or a delay 2.7 times as long."
    )
    matrix_lead = (
        "A row per scheme, a column per network; the fullest green is the best of its column, the "
        "fullest red the worst. A heading sorts."
    )
    if len(shown) < len(networks):
        matrix_lead += f" The {len(networks) - len(shown)} drawn networks are in the scores alone."
    sections = [
        Section("rankings", "Rankings", merit_lead, sheet(sheets.rankings(table), mark=marked)),
        *_scored(scores, harms),
        Section("verdicts", "Where each wins, and where it breaks", "", _verdicts(table, found)),
        Section("matrix", "Scheme by network", matrix_lead, _matrices(table, shown, marked)),
        Section(
            "planes",
            "Throughput against delay",
            f"Means over runs with their {NOMINAL}s; upper left is best.",
            join((legend(_playing(mark, shown).items()), _planes(shown, mark))),
        ),
        Section(
            "numbers",
            "Network by network",
            f"Mean ± half the {NOMINAL} over runs. A heading sorts.",
            _tables(shown, marked),
        ),
        Section("assumptions", "What this rests on", "", assumptions_list(suite.assumptions)),
        *kernel_section([run for result in found for run in result.measured.kernel_runs]),
        repeat_section(command),
    ]
    return document(head, sections)


def _scored(scores: Sequence[Scores], harms: Sequence[Harm]) -> list[Section]:
    """A section of scores and one of harm, as far as there are some."""
    found = []
    if scores:
        own = [bullets(league_scores.summary(scores, harms))]
        own += [_titled(one) for one in league_scores.sheets(scores, ())]
        found.append(Section("scores", "Scores over networks", SCORES_LEAD, join(own)))
    if harms:
        own = [_titled(one) for one in league_scores.sheets((), harms)]
        found.append(Section("harm", "Harm, pair by pair", HARM_LEAD, join(own)))
    return found


def _titled(own: Sheet) -> Markup:
    return join((element("h3", own.title[0].upper() + own.title[1:]), sheet(own)))


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
    head = element("h3", scheme.name, element("small", kind))
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
        *(_margin(ranking.scheme.name, networks[name]) for name in alone), strict=True
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


Mark = Callable[[Line], Markup]


def _matrices(
    table: Sequence[Ranking], networks: Mapping[str, Sequence[Result]], marked: Mark
) -> Markup:
    order = [MERIT, *(metric for metric in SHOWN if metric != MERIT)]
    return tabs(
        "metric",
        {
            sheets.column_heads(networks, (metric,))[0].label: _matrix(
                metric, table, networks, marked
            )
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
        for name in (ranking.scheme.name for ranking in table)
        if any((name, on) in cells for on in networks)
    )
    above = element("tr", element("th", sheets.column_heads(networks, (metric,))[0].unit), *spans)
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
        own = sheets.network(rows)
        best = ", ".join(result.scheme for result in leaders(rows))
        parts.append(fold(own.title, sheet(own, mark=marked), hint=f"best: {best}"))
    return join(parts)
