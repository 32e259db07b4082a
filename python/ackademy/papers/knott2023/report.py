"""The report of a study of learning: claims, figures by rate, what there is to win, numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ackademy.lazy import pl
from ackademy.papers.knott2023 import study
from ackademy.papers.knott2023.study import (
    METRICS,
    BetaFindings,
    BetaStudy,
    Figure,
    Outcome,
    estimate,
    group_of,
)
from ackademy.papers.knott2023.transfers import C_UNITS, DEFAULT_C, Recorded
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.shapes import legend, ring
from ackademy.render.numbers import NONE, significant, with_interval
from ackademy.render.report import Report, Section
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import NOMINAL
from ackademy.studies.reproduce.parts import (
    assumptions_section,
    claims_section,
    item_report,
)

N_BUCKETS = 250
HEADINGS: Mapping[Figure, tuple[str, str]] = {
    "rewards": (
        "Rewards over episodes",
        "Sum over the steps of an episode: a band from the smallest to the largest of all seeds, "
        "and their mean.",
    ),
    "refused": (
        "Refused writes per episode",
        "The paper calls them packet loss. Smallest, mean and largest of the 100 transfers of an "
        "episode, one learner (seed 1); the dashed line is stock CUBIC, the dotted one the mean "
        "that the paper prints.",
    ),
    "throughput": (
        "Throughput per episode",
        "Smallest, mean and largest of the 100 transfers of an episode, one learner (seed 1); the "
        "dashed line is stock CUBIC, the dotted one the mean that the paper prints.",
    ),
    "beta": ("Beta", "Over the 100 steps of the first episode, one half-way, and the last."),
    "sweep": (
        "What there is to learn",
        "Refused writes at every beta of the grid. The learner can do no better than the lowest "
        "point; the ring is the default.",
    ),
    "grid": (
        "What there is to win",
        "Refused writes by beta, a line for each C; the thick one is the default C = 0.4.",
    ),
}


@dataclass(frozen=True, slots=True)
class ReportedStudy(BetaStudy):
    """A study of learners, with its report."""

    def report(self, findings: BetaFindings) -> Report:
        """Claims, figures, numbers, assumptions."""
        sections = [
            *claims_section(findings.claims, f"the {NOMINAL} over seeds"),
            *(_figure(findings, figure) for figure in self.figures),
            _numbers(findings),
            assumptions_section(self.assumptions),
        ]
        return item_report(self, _facts(findings), sections)


def load(name: str) -> ReportedStudy:
    """Read the file of a study.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    found = study.load(name)
    return ReportedStudy(**{own.name: getattr(found, own.name) for own in fields(found)})


def _facts(findings: BetaFindings) -> dict[str, str]:
    trained = [outcome for outcome in findings.outcomes if outcome.trainings]
    n_trainings = sum(len(outcome.trainings) for outcome in trained)
    steps = sum(
        int(training.visits["count"].sum()) for outcome in trained for training in outcome.trainings
    )
    distinct = len(
        {
            (isinstance(outcome.learner.transfers, Recorded), setting, transfer)
            for outcome in trained
            for setting, transfer in outcome.known.items()
        }
    )
    facts = {
        "learners trained": str(n_trainings),
        "steps of learning": f"{steps / 1e6:.1f} million",
        "distinct transfers": str(distinct),
    }
    if findings.claims:
        holding = sum(checked.verdict == "holds" for checked in findings.claims)
        facts["claims that hold"] = f"{holding} of {len(findings.claims)}"
    return facts


# -------------------------------------------------------------------------------- figures


def _figure(findings: BetaFindings, figure: Figure) -> Section:
    """A tab per learner with a card per rate, or per rate with all learners in one chart."""
    title, lead = HEADINGS[figure]
    outcomes = [outcome for outcome in findings.outcomes if outcome.trainings]
    if figure == "rewards":
        body = _cards([(o.learner.name, _rewards(o, outcomes)) for o in outcomes])
    elif figure == "sweep":
        body = _cards(
            [(group_of(rate), _sweep(outcomes, rate)) for rate in findings.study.rates_mbps]
        )
    else:
        draw = DRAWERS[figure]
        names = list(dict.fromkeys(outcome.learner.name for outcome in outcomes))
        if figure == "grid":
            names = [o.learner.name for o in outcomes if o.learner.tunes_c]
        bodies = {
            name: _cards(
                [
                    (o.name[1], draw(o, findings.study.published.get(o.name[1], {})))
                    for o in outcomes
                    if o.learner.name == name
                ]
            )
            for name in names
        }
        body = tabs(figure, bodies)
    return Section(figure, title, lead, [body])


def _cards(charts: Sequence[tuple[str, Markup]]) -> Markup:
    cards = [
        element("article", element("header", element("b", title)), chart, class_="strip")
        for title, chart in charts
    ]
    return element("div", join(cards), class_="strips")


def _refused(outcome: Outcome, printed: Mapping[str, float]) -> Markup:
    marks = (100.0 * outcome.default.refused_ratio, printed.get("refused_mean"))
    return _band(outcome, "refused", 100.0, marks, "refused writes, %")


def _throughput(outcome: Outcome, printed: Mapping[str, float]) -> Markup:
    marks = (outcome.default.throughput_pps, printed.get("throughput_mean"))
    return _band(outcome, "throughput", 1.0, marks, "throughput, packets/s")


def _band(
    outcome: Outcome,
    column: str,
    scale: float,
    marks: tuple[float, float | None],
    label: str,
) -> Markup:
    """Smallest, mean and largest of each episode; stock CUBIC and the published mean as lines."""
    default, published = marks
    episodes = outcome.trainings[0].episodes
    x = np.arange(1.0, episodes.height + 1)
    low, middle, high = (
        scale * episodes[f"{column}_{part}"].to_numpy() for part in ("low", "mean", "high")
    )
    level = default if published is None else published
    ends = (min(low.min(), default, level), max(high.max(), default, level))
    frame = Frame(Axis(0.0, float(x[-1]), "episode", n_ticks=4), _axis(*ends, label))
    content = [
        _stroke(frame, x, low, "s1 faint", "smallest"),
        _stroke(frame, x, high, "s1 faint", "largest"),
        _stroke(frame, x, middle, "s0", "mean"),
        _level(frame, default, "dashes"),
    ]
    keys = [("mean", "s0"), ("smallest and largest", "s1"), ("stock CUBIC", "dashes")]
    if published is not None:
        content.append(_level(frame, published, "dotted"))
        keys.append(("published mean", "dotted"))
    return join((legend(keys), _draw(frame, content, f"{label}, {outcome.name[1]}")))


def _rewards(outcome: Outcome, all_outcomes: Sequence[Outcome]) -> Markup:
    rewards = _stacked(outcome)
    every = np.concatenate([_stacked(other).ravel() for other in all_outcomes])
    x = np.arange(1.0, rewards.shape[1] + 1)
    axis = _axis(float(every.min()) / 1e6, float(every.max()) / 1e6, "reward, millions")
    frame = Frame(Axis(0.0, float(x[-1]), "episode", n_ticks=4), axis)
    content = [
        _stroke(frame, x, rewards.min(axis=0) / 1e6, "s1 faint", "smallest of the seeds"),
        _stroke(frame, x, rewards.max(axis=0) / 1e6, "s1 faint", "largest of the seeds"),
        _stroke(frame, x, rewards.mean(axis=0) / 1e6, "s0", "mean of the seeds"),
    ]
    return _draw(frame, content, f"rewards, {outcome.learner.name}")


def _stacked(outcome: Outcome) -> FloatArray:
    """Rewards, shape (runs, episodes)."""
    return np.stack([training.episodes["reward"].to_numpy() for training in outcome.trainings])


def _beta(outcome: Outcome, _: Mapping[str, float]) -> Markup:
    traces = outcome.trainings[0].traces
    episodes = traces["episode"].unique().sort().to_list()
    frame = Frame(Axis(0.0, float(traces["step"].to_numpy().max()), "step"), Axis(0.0, 1.0, "beta"))
    content, keys = [], []
    for index, episode in enumerate(episodes):
        part = traces.filter(pl.col("episode") == episode)
        x, y = (part[name].cast(pl.Float64).to_numpy() for name in ("step", "beta"))
        name = f"episode {episode}"
        path = frame.line(x, y)
        content.append(element("path", class_=f"line s{index}", d=path, data_name=name))
        keys.append((name, f"s{index}"))
    return join((legend(keys), _draw(frame, content, f"beta, {outcome.name[1]}")))


def _sweep(outcomes: Sequence[Outcome], rate_mbps: float) -> Markup:
    shown = [outcome for outcome in outcomes if outcome.rate_mbps == rate_mbps]
    lines = [(outcome.learner.name, *_by_beta(outcome, DEFAULT_C)) for outcome in shown]
    frame = _refused_by_beta([refused for _, _, refused in lines])
    content: list[Markup] = []
    for index, (name, beta, refused) in enumerate(lines):
        content.append(_stroke(frame, beta, refused, f"s{index}", name))
        default = 100.0 * shown[index].default.refused_ratio
        dot = frame.dots(np.array([0.7]), np.array([default]))
        content.append(element("g", ring(dot), class_=f"s{index}"))
    keys = [(name, f"s{index}") for index, (name, _, _) in enumerate(lines)]
    return join((legend(keys), _draw(frame, content, f"refused writes by beta, {rate_mbps:g}")))


def _grid(outcome: Outcome, _: Mapping[str, float]) -> Markup:
    cs = sorted({setting.c_thousandths for setting in outcome.known})
    lines = [(c, *_by_beta(outcome, c)) for c in cs]
    frame = _refused_by_beta([refused for _, _, refused in lines])
    content, keys = [], []
    for index, (c, beta, refused) in enumerate(lines):
        name, colour = f"C = {c / C_UNITS:g}", f"s{index % 8}"
        weight = "" if c == DEFAULT_C else " faint"
        content.append(_stroke(frame, beta, refused, colour + weight, name))
        keys.append((name, colour))
    return join((legend(keys), _draw(frame, content, f"refused writes, {outcome.name[1]}")))


def _refused_by_beta(lines: Sequence[FloatArray]) -> Frame:
    values = np.concatenate(lines)
    axis = _axis(float(values.min()), float(values.max()), "refused writes, %")
    return Frame(Axis(0.0, 1.0, "beta"), axis)


def _by_beta(outcome: Outcome, c_thousandths: int) -> tuple[FloatArray, FloatArray]:
    chosen = [
        (setting.beta, 100.0 * transfer.refused_ratio)
        for setting, transfer in sorted(outcome.known.items())
        if setting.c_thousandths == c_thousandths
    ]
    table = np.array(chosen, np.float64)
    return table[:, 0], table[:, 1]


DRAWERS: Mapping[Figure, Callable[[Outcome, Mapping[str, float]], Markup]] = {
    "refused": _refused,
    "throughput": _throughput,
    "beta": _beta,
    "grid": _grid,
}


def _axis(low: float, high: float, label: str) -> Axis:
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(low - margin, high + margin, label, n_ticks=4)


def _stroke(frame: Frame, x: FloatArray, y: FloatArray, class_: str, name: str) -> Markup:
    path = frame.line(*thin(x, y, N_BUCKETS))
    return element("path", class_=f"line {class_}", d=path, data_name=name)


def _level(frame: Frame, value: float, class_: str) -> Markup:
    ends = np.array([frame.x.low, frame.x.high])
    return element("path", class_=class_, d=frame.line(ends, np.full(2, value)))


def _draw(frame: Frame, content: Sequence[Markup], label: str) -> Markup:
    return frame.draw(content, label=label, class_="figure", is_read=True)


# -------------------------------------------------------------------------------- numbers


def _numbers(findings: BetaFindings) -> Section:
    lead = (
        f"Mean ± half the {NOMINAL} over seeds. Green: the published number is inside our "
        "interval. Network loss is what the network dropped; the paper does not print it."
    )
    return Section("table", "Number by number", lead, [beta(findings)])


def beta(findings: BetaFindings) -> Sheet:
    """A group per rate: the published numbers, then a line per learner."""
    own = findings.study
    lines = []
    for rate in own.rates_mbps:
        group = group_of(rate)
        printed = own.published.get(group, {})
        if printed:
            was = [significant(printed[m]) if m in printed else NONE for m in own.columns]
            cells = tuple(Cell((Part(text, "was"),)) for text in was)
            lines.append(Line((Part("published"),), cells, group))
        lines += [
            Line(
                (Part(outcome.learner.name),),
                tuple(_estimate(outcome, metric, printed.get(metric)) for metric in own.columns),
                group,
                note=f"{len(outcome.trainings)} runs",
                runs=str(len(outcome.trainings)),
            )
            for outcome in findings.outcomes
            if outcome.rate_mbps == rate
        ]
    heads = tuple(Head(METRICS[metric].label, METRICS[metric].unit) for metric in own.columns)
    title = f"{own.item}: {own.title}"
    return Sheet(title, (Head("learner"),), heads, tuple(lines), "rate")


def _estimate(outcome: Outcome, metric: str, printed: float | None) -> Cell:
    ours = estimate(outcome, metric)
    if ours is None:
        return cell(NONE)
    inside = printed is not None and ours.contains(printed)
    return Cell((Part(with_interval(ours), "good" if inside else ""),))
