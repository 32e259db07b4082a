"""The report of a league: who wins where, by how much, and where each scheme breaks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ackademy.backends.kernel import KernelRun
from ackademy.render.html import assumptions
from ackademy.render.html.comparison import kernel_section
from ackademy.render.html.league_plane import key, legend, marks, plane
from ackademy.render.html.markup import Markup, element, join, math_label, stacked
from ackademy.render.html.page import Head, Section, document, tabs
from ackademy.render.numbers import counted, percent, significant, with_interval, without_runs
from ackademy.studies.leaderboard import Ranking, leaders, ranked, rankings
from ackademy.studies.league import LESS_IS_BETTER, MERIT, SHOWN, Result, Scheme, Suite, heading

SHADES = 10
"""steps from the worst to the best of a column"""
LOGARITHMIC = frozenset({"delay_p50_ms", "delay_p95_ms", "power"})
"""metrics whose shades follow their logarithms"""
KINDS = ("learned", "online", "classic")
THROUGHPUT, DELAY = "throughput_mean_mbps", "delay_p50_ms"


def page(suite: Suite, found: Sequence[Result], spent_s: float, command: str) -> str:
    """The HTML file of a league.

    Args:
        suite: what was to be run.
        found: what was measured.
        spent_s: how long the command took.
        command: what the user typed.
    """
    table = rankings(found)
    mark = marks([scheme.name for scheme in suite.schemes])
    networks = ranked(found)
    n_runs = sum(result.n_runs for result in found)
    head = Head(
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
        "0.1 ln delay. It is among the best if its 95 % interval reaches the best's: Student's, "
        "for M_e of the jackknife's pseudo-values. Ranks are averaged over each paper's networks, "
        "then over the papers. The gap is the best M_e minus its own: 0.1 is a tenth of the "
        "throughput, or a delay 2.7 times as long."
    )
    matrix_lead = (
        "A row per scheme, a column per network; the fullest green is the best of its column, the "
        "fullest red the worst. A heading sorts."
    )
    sections = [
        Section("rankings", "Rankings", merit_lead, _rankings(table, mark)),
        Section("verdicts", "Where each wins, and where it breaks", "", _verdicts(table, found)),
        Section("matrix", "Scheme by network", matrix_lead, _matrices(table, networks, mark)),
        Section(
            "planes",
            "Throughput against delay",
            "Means over runs with their 95 % intervals; upper left is best.",
            join((legend(_playing(mark, networks)), _planes(networks, mark))),
        ),
        Section(
            "numbers",
            "Network by network",
            "Mean ± half the 95 % interval over runs. A heading sorts.",
            _tables(networks, mark),
        ),
        Section("assumptions", "What this rests on", "", assumptions.listed(suite.assumptions)),
        *kernel_section(_kernel_runs(found)),
        Section("repeat", "How to repeat it", "", _repeat(spent_s, command)),
    ]
    return document(head, sections)


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


def _rankings(table: Sequence[Ranking], mark: Mapping[str, str]) -> Markup:
    kinds = ("starves", "fills the buffer", "unfair", "loses")
    heads = [
        _sorter("scheme"),
        _sorter("mean rank", "over papers, 1 is best"),
        _sorter("among the best", "networks"),
        _sorter("median gap", "in M_e"),
        _sorter("worst gap", "in M_e, and where"),
        *(_sorter(kind, "networks") for kind in kinds),
    ]
    body = []
    for ranking in table:
        counts = Counter(breakage.kind for breakage in ranking.breakages)
        gaps = sorted(ranking.gaps.values())
        median = gaps[len(gaps) // 2] if gaps else math.nan
        where, worst = ranking.worst
        of = len(ranking.ranks)
        body.append(
            element(
                "tr",
                _name_cell(ranking, mark),
                _number(ranking.mean_rank, significant(ranking.mean_rank, 3)),
                _number(len(ranking.wins), f"{len(ranking.wins)} of {of}"),
                _number(median, significant(median, 2)),
                element(
                    "td", significant(worst, 2), element("small", where), data_v=f"{worst:.6g}"
                ),
                *(_count_cell(counts[kind], of) for kind in kinds),
            )
        )
    return _table(heads, body)


def _name_cell(ranking: Ranking, mark: Mapping[str, str]) -> Markup:
    scheme = ranking.scheme
    name = element("span", key(mark[scheme.name]), scheme.name, class_="name")
    return element("td", name, element("small", _kind(scheme)), data_v=scheme.name)


def _kind(scheme: Scheme) -> str:
    return f"{scheme.kind} · {scheme.family}"


def _count_cell(count: int, of: int) -> Markup:
    part = count / of if of else 0.0
    shade = f"q{round(4 * (1.0 - part))}" if count else None
    return element("td", str(count) if count else "·", class_=shade, data_v=str(count))


def _verdicts(table: Sequence[Ranking], found: Sequence[Result]) -> Markup:
    """A card per scheme, learned ones first."""
    networks = ranked(found)
    ordered = sorted(table, key=lambda s: KINDS.index(s.scheme.kind))
    return element("div", join([_card(s, networks) for s in ordered if s.ranks]), class_="cards")


def _card(ranking: Ranking, networks: Mapping[str, Sequence[Result]]) -> Markup:
    scheme = ranking.scheme
    where, gap = ranking.worst
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
    head = element("h3", scheme.name, element("small", f" {_kind(scheme)}"))
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


def _matrices(
    table: Sequence[Ranking], networks: Mapping[str, Sequence[Result]], mark: Mapping[str, str]
) -> Markup:
    order = [MERIT, *(metric for metric in SHOWN if metric != MERIT)]
    return tabs(
        "metric", {heading(metric)[0]: _matrix(metric, table, networks, mark) for metric in order}
    )


def _matrix(
    metric: str,
    table: Sequence[Ranking],
    networks: Mapping[str, Sequence[Result]],
    mark: Mapping[str, str],
) -> Markup:
    papers: dict[str, int] = {}
    for rows in networks.values():
        papers[rows[0].scheme_case.network.paper] = (
            papers.get(rows[0].scheme_case.network.paper, 0) + 1
        )
    spans = [element("th", paper, colspan=count, class_="span") for paper, count in papers.items()]
    heads = [
        _sorter("scheme"),
        *(
            _sorter(name, title=rows[0].scheme_case.network.title)
            for name, rows in networks.items()
        ),
    ]
    cells = {
        (result.scheme, name): _shaded(metric, result, rows)
        for name, rows in networks.items()
        for result in rows
    }
    body = [
        element(
            "tr",
            element(
                "td",
                element("span", key(mark[name]), name, class_="name"),
                data_v=name,
            ),
            *(cells.get((name, network), element("td", "–")) for network in networks),
        )
        for name in (ranking.scheme.name for ranking in table)
        if any((name, network) in cells for network in networks)
    ]
    group = element("tr", element("th", heading(metric)[1]), *spans)
    return _table(heads, body, class_="heat", above=group)


def _shaded(metric: str, result: Result, rows: Sequence[Result]) -> Markup:
    value = result.value(metric)
    values = [row.value(metric) for row in rows]
    part = _goodness(metric, value, values)
    shade = "" if math.isnan(part) else f"q{round(SHADES * part)}"
    if metric == MERIT and result in leaders(rows):
        shade += " first"
    estimate = result.estimates.get(metric)
    label, unit = heading(metric)
    tip = f"{result.scheme}\n{result.scheme_case.network.title}\n{label} "
    tip += f"{with_interval(estimate)} {unit}".rstrip() if estimate else "–"
    return element(
        "td", significant(value, 3), class_=shade or None, data_v=f"{value:.6g}", data_tip=tip
    )


def _goodness(metric: str, value: float, values: Sequence[float]) -> float:
    """0 for the worst of a column, 1 for the best; `nan` where all are equal."""

    def scale(number: float) -> float:
        return math.log(max(number, 1e-3)) if metric in LOGARITHMIC else number

    known = [scale(number) for number in values if not math.isnan(number)]
    own = scale(value)
    low, high = min(known), max(known)
    if math.isnan(own) or not high > low:
        return math.nan
    part = (own - low) / (high - low)
    return 1.0 - part if metric in LESS_IS_BETTER else part


def _planes(networks: Mapping[str, Sequence[Result]], mark: Mapping[str, str]) -> Markup:
    """A fold per paper, all open."""
    by_paper: dict[str, list[Markup]] = {}
    for rows in (rows for rows in networks.values() if leaders(rows)):
        by_paper.setdefault(rows[0].scheme_case.network.paper, []).append(plane(rows, mark))
    folds = [
        element(
            "details",
            element("summary", element("b", paper)),
            element("div", join(panels), class_="panels"),
            class_="fold",
            open=True,
        )
        for paper, panels in by_paper.items()
    ]
    return join(folds)


def _tables(networks: Mapping[str, Sequence[Result]], mark: Mapping[str, str]) -> Markup:
    parts = []
    for rows in networks.values():
        network = rows[0].scheme_case.network
        heads = [_sorter("scheme"), *(_sorter(*heading(m)) for m in network.shown)]
        body = [
            element(
                "tr",
                element(
                    "td",
                    element("span", key(mark[r.scheme]), r.scheme, class_="name"),
                    element("small", _runs(r)),
                    data_v=r.scheme,
                ),
                *(_measured(r, metric) for metric in network.shown),
            )
            for r in rows
        ]
        best = ", ".join(result.scheme for result in leaders(rows))
        summary = element(
            "summary",
            element("b", f"{network.paper} · {network.title}"),
            element("span", f"best: {best}", class_="hint"),
        )
        parts.append(element("details", summary, _table(heads, body), class_="fold"))
    return join(parts)


def _runs(result: Result) -> str:
    invalid = sum(not run.valid for run in result.kernel_runs)
    return f"{counted(result.n_runs, invalid)} {'run' if result.n_runs == 1 else 'runs'}"


def _measured(result: Result, metric: str) -> Markup:
    estimate = result.estimates.get(metric)
    if estimate is None:
        return element("td", without_runs(0))
    return element("td", stacked(with_interval(estimate)), data_v=f"{estimate.value:.6g}")


def _repeat(spent_s: float, command: str) -> Markup:
    time = f"It took {spent_s:.0f} s; runs that were finished before are not in that time."
    return join((element("pre", element("code", command)), element("p", time)))


def _kernel_runs(found: Sequence[Result]) -> list[KernelRun]:
    return [run for result in found for run in result.kernel_runs]


def _sorter(label: str, unit: str = "", title: str = "") -> Markup:
    small = element("small", unit) if unit else None
    return element("th", math_label(label), small, title=title or None, data_sort=True)


def _number(value: float, text: str) -> Markup:
    return element("td", text, data_v=f"{value:.6g}")


def _table(
    heads: Sequence[Markup],
    body: Sequence[Markup],
    class_: str = "",
    above: Markup | None = None,
) -> Markup:
    head = element("thead", above, element("tr", *heads))
    table = element("table", head, element("tbody", *body), class_=f"sortable {class_}".rstrip())
    return element("div", table, class_="scroll")
