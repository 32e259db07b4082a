"""Sets controllers side by side: every scenario under every controller, with intervals."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias, cast

from ackademy import _core
from ackademy.backends import Backend, check_backend, controllers, schemes
from ackademy.backends.runs import ScenarioLike, text_of
from ackademy.backends.tables import frame_html, frame_text
from ackademy.errors import AckademyError
from ackademy.lazy import pl
from ackademy.render.figures import Figure, of_section
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.page import tabs
from ackademy.render.html.plane import Cloud, legend, plane
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.svg import Width
from ackademy.render.kernel_notes import kernel_section
from ackademy.render.numbers import counted, runs_told
from ackademy.render.report import Report, Section
from ackademy.render.sheet import Head, Line, Part, Sheet, head_of
from ackademy.render.sheet import measured as measured_cell
from ackademy.runner import engines, experiments, measured
from ackademy.runner.cases import Case, Plan, named_apart
from ackademy.runner.measured import Measured
from ackademy.stats.intervals import NOMINAL
from ackademy.stats.results import Results
from ackademy.toml_table import toml_value

STUDY = "compare"
SAMPLE_MS = 200.0
"""between rows of the time series that the report draws"""
METRICS = (
    "throughput_mean_mbps",
    "goodput_mean_mbps",
    "delay_mean_ms",
    "loss",
    "utilisation",
    "jain_throughput",
    "m_e",
)
"""in order"""
Scenarios: TypeAlias = "ScenarioLike | Sequence[ScenarioLike]"
"""one scenario as `ackademy.run` takes it, or several"""
Schemes: TypeAlias = "schemes.Word | Sequence[schemes.Word] | Mapping[str, schemes.Word]"
"""one scheme, several, or several by label"""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Schemes side by side on the same scenarios."""

    results: Results
    """the numbers of single runs, and estimates over them"""
    report: Report
    """what `ackademy compare` prints and writes"""

    @property
    def estimates(self) -> pl.DataFrame:
        """One row per scenario, scheme and metric, with interval, method and number of runs."""
        return self.results.estimates

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run: scenario, scheme, seed and a column per metric."""
        return self.results.wide()

    def table(self, metric: str = "throughput_mean_mbps") -> pl.DataFrame:
        """Estimates of one metric: a row per scenario, a column per scheme.

        Raises:
            AckademyError: if there is no such metric.
        """
        return self.results.pivot(metric)

    def plot(self, width: Width = "screen") -> Figure:
        """Throughput against delay, a panel per scenario.

        Args:
            width: of a `screen`, or of a `column` or `page` of a paper.

        Raises:
            AckademyError: if there is no such width.
        """
        return of_section(self.report, "plane", "throughput against delay", width)

    def __repr__(self) -> str:
        shown = frame_text(self.table())
        return f"Comparison, throughput_mean_mbps\n{shown}\nmore: .estimates, .runs, .plot()"

    def _repr_html_(self) -> str:
        tables = [
            f"<p>{escape(metric)}</p>{frame_html(self.table(metric))}"
            for metric in self.estimates["metric"].unique(maintain_order=True)
        ]
        return "".join([self.plot().svg, *tables])


def compare(
    scenarios: Scenarios,
    cc: Schemes = (),
    *,
    runs: int = 5,
    overrides: Mapping[str, object] = {},  # a mapping, not changed
    backend: Backend = "sim",
    jobs: int = 1,
    folder: Path | str | None = None,
) -> Comparison:
    """Run every scenario under every scheme and measure what they achieve.

    Args:
        scenarios: one or several, each as `ackademy.run` takes it.
        cc: schemes: names, `cubic:beta=0.8`, policies, `file.py:Class`, classes, each alone or in a
            pair with settings; a mapping gives them labels; nothing leaves each scenario's own.
        runs: seeds 1, 2, ... of each.
        overrides: values for fields of the scenarios by dotted path, such as `dumbbell.rtt_ms`.
        backend: `sim`, `quic`, or `kernel`, one run after the other in real time.
        jobs: simulations at a time. Controllers of files run in processes: a script that calls this
            needs the usual guard `if __name__ == "__main__"`. Classes run one after the other.
        folder: where finished runs are kept for the next call; nothing is kept by default.

    Returns:
        Estimates with their intervals, the numbers of single runs, and a report to look at.

    Raises:
        ScenarioError: if a scenario is wrong.
        ControllerError: if a controller is unknown or its settings are wrong.
        AckademyError: if a run fails; the message has its reason.
    """
    check_backend(backend)
    if not isinstance(runs, int) or runs < 1:
        raise AckademyError(f"runs = {runs}: allowed: a whole number from 1")
    cases = [_case(own) for own in _several(scenarios)]
    if not cases:
        raise AckademyError("scenarios: none; allowed: one or more")
    found = _schemes(cc)
    texts = tuple((path, toml_value(value, path)) for path, value in overrides.items())
    plan = Plan(runs, SAMPLE_MS, texts, backend)
    rows = measured.rows(named_apart(cases), found, plan, METRICS)
    of_classes = any(controllers.is_registered(str(scheme.controller)) for scheme in found)
    engine = engines.local(1 if of_classes else jobs)
    with tempfile.TemporaryDirectory() as scratch:
        return _measured(rows, Path(folder or scratch), engine)


def _measured(rows: Sequence[measured.Row], folder: Path, engine: engines.Engine) -> Comparison:
    cells = [cell for row in rows for cell in row.cells]
    ran = experiments.run_cells(cells, folder, engine, experiments.quiet)
    if ran.failures:
        raise AckademyError(ran.failures[0].error)
    found = measured.measure(rows, folder)
    results = measured.tables(STUDY, found)
    return Comparison(results, report(found, folder))


def _schemes(cc: Schemes) -> list[schemes.Scheme]:
    """Schemes of a text, a mapping, a class, a pair of one with its settings, or several."""
    if isinstance(cc, str):
        return schemes.parse(cc)
    if isinstance(cc, Mapping):
        return schemes.of_words(cc)
    if isinstance(cc, tuple) and len(cc) == 2 and isinstance(cc[1], Mapping):
        return schemes.of_words([cast("schemes.Word", cc)])
    if isinstance(cc, Sequence):
        return schemes.of_words(cast("Sequence[schemes.Word]", cc))
    return schemes.of_words([cc])


def _several(scenarios: Scenarios) -> Sequence[ScenarioLike]:
    if isinstance(scenarios, str | Path | Mapping | _core.Scenario):
        return [scenarios]
    return scenarios


def _case(scenario: ScenarioLike) -> Case:
    if isinstance(scenario, _core.Scenario):
        text, traces = scenario.portable()
        if traces:
            raise AckademyError(
                f"scenario {scenario.name}: it has traces; allowed: the file it was read from"
            )
        return Case(scenario.name, text, scenario.origin)
    text, origin = text_of(scenario)
    return Case(Path(origin).stem, text, origin)


def report(found: Sequence[Measured], folder: Path, command: str = "") -> Report:
    """The report of a comparison; a command is shown as the one that repeats it."""
    colour = colours(found)
    groups = _by_scenario(found)
    runs = max((own.n_runs for own in found), default=0)
    lead = "A small dot is one run, the mean over its flows; the ellipse holds 95 % of the runs."
    numbers = sheet(found)
    series = [_series(groups, colour, folder)] if any(own.drawn for own in found) else []
    time = "The run with seed 1. All charts of a view have the same axes."
    return Report(
        kind="Comparison",
        title=" · ".join(colour),
        about=f"{_count(len(groups), 'scenario')}, {_count(runs, 'run')} each.",
        sections=[
            Section("plane", "Throughput against delay", lead, [_planes(groups, colour)]),
            Section("table", "Number by number", f"{numbers.title.capitalize()}.", [numbers]),
            Section("time", "One run over time", time, series),
            *kernel_section([run for own in found for run in own.kernel_runs]),
        ],
        command=command,
    )


def sheet(found: Sequence[Measured]) -> Sheet:
    """A line per scenario and controller."""
    colour = colours(found)
    lines = [
        Line(
            names=(Part(own.row.name.scheme),),
            cells=tuple(measured_cell(own, metric) for metric in METRICS),
            group=own.row.name.scenario,
            colour=colour[own.row.name.scheme],
            note=runs_told(own.n_runs, own.n_invalid, is_fixed=own.is_fixed),
            runs=counted(own.n_runs, own.n_invalid, is_fixed=own.is_fixed),
        )
        for own in found
    ]
    heads = tuple(head_of(metric) for metric in METRICS)
    title = f"mean ± half the {NOMINAL} over runs"
    return Sheet(title, (Head("controller"),), heads, tuple(lines), "scenario")


def colours(found: Sequence[Measured]) -> dict[str, int]:
    """A colour per scheme, in the order of the rows."""
    names = dict.fromkeys(own.row.name.scheme for own in found)
    return {name: index % 8 for index, name in enumerate(names)}


def _by_scenario(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    groups: dict[str, list[Measured]] = {}
    for own in found:
        if own.n_runs:
            groups.setdefault(own.row.name.scenario, []).append(own)
    return groups


def _planes(groups: dict[str, list[Measured]], colour: dict[str, int]) -> Markup:
    panels = []
    for scenario, rows in groups.items():
        clouds = [
            Cloud(
                name,
                colour[name],
                own.values["delay_mean_ms"],
                own.values["throughput_mean_mbps"],
            )
            for own in rows
            for name in [own.row.name.scheme]
        ]
        panels.append(plane(scenario, clouds))
    keys = legend(list(colour.items()), published=False)
    return join((keys, element("div", join(panels), class_="panels")))


def _series(groups: dict[str, list[Measured]], colour: dict[str, int], folder: Path) -> Markup:
    views = {}
    for scenario, rows in groups.items():
        drawn = [
            Strip(
                name=own.row.name.scheme,
                note="",
                colour=colour[own.row.name.scheme],
                flows=experiments.read(folder, own.drawn, "flow_series"),
                links=experiments.read(folder, own.drawn, "link_series"),
            )
            for own in rows
            if own.drawn
        ]
        if drawn:
            views[scenario] = strips(drawn)
    return tabs("time", views)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
