"""`ackademy.compare`, and what results look like in a notebook."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias, cast

import polars as pl

from ackademy import _core
from ackademy.backends import Backend, check_backend, controllers, schemes
from ackademy.backends.runs import ScenarioLike, text_of
from ackademy.backends.tables import frame_html, frame_text
from ackademy.errors import AckademyError
from ackademy.files import PAGE_ENDINGS
from ackademy.runner import engines, experiments
from ackademy.stats.results import Results
from ackademy.studies import comparison, measured
from ackademy.studies.comparison import Case, Plan
from ackademy.toml_table import toml_value

Scenarios: TypeAlias = "ScenarioLike | Sequence[ScenarioLike]"
"""one scenario as `ackademy.run` takes it, or several"""
Schemes: TypeAlias = "schemes.Word | Sequence[schemes.Word] | Mapping[str, schemes.Word]"
"""one scheme, several, or several by label"""


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A chart, which a notebook shows, and the page with the chart and all numbers."""

    page: str
    """HTML, complete in itself"""
    svg: str
    """the chart alone"""
    about: str
    """what is drawn, in one line"""

    def save(self, path: Path | str) -> None:
        """Write the page to a file `.html`, or the chart to a file `.svg`.

        Raises:
            AckademyError: if the file has another ending, or it cannot be written; nothing is then
                written.
        """
        from ackademy.files import check_ending, write

        found = check_ending(Path(path), (*PAGE_ENDINGS, ".svg"))
        write(found, self.svg if found.suffix.lower() == ".svg" else self.page)

    def __repr__(self) -> str:
        return f"Figure of {self.about}: .save('NAME.html') or .save('NAME.svg')"

    def _repr_html_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Schemes side by side on the same scenarios."""

    results: Results
    """the numbers of single runs, and estimates over them"""
    page: str
    """the HTML report, complete in itself"""
    svg: str
    """throughput against delay, a panel per scenario"""

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

    def plot(self) -> Figure:
        """The report: throughput against delay, every number, one run over time."""
        return Figure(self.page, self.svg, "throughput against delay")

    def __repr__(self) -> str:
        shown = frame_text(self.table())
        return f"Comparison, throughput_mean_mbps\n{shown}\nmore: .estimates, .runs, .plot()"

    def _repr_html_(self) -> str:
        tables = [
            f"<p>{escape(metric)}</p>{frame_html(self.table(metric))}"
            for metric in self.estimates["metric"].unique(maintain_order=True)
        ]
        return "".join([self.svg, *tables])


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
        backend: `sim`, or `kernel`, one run after the other in real time.
        jobs: processes. With more than one, a script that calls this needs the usual guard
            `if __name__ == "__main__"`; classes run in this process alone.
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
    plan = Plan(runs, comparison.SAMPLE_MS, texts, backend)
    rows = comparison.rows(comparison.named_apart(cases), found, plan)
    of_classes = any(controllers.is_registered(str(scheme.controller)) for scheme in found)
    engine = engines.local(1 if of_classes else jobs)
    with tempfile.TemporaryDirectory() as scratch:
        return _measured(rows, Path(folder or scratch), engine)


def _measured(rows: Sequence[measured.Row], folder: Path, engine: engines.Engine) -> Comparison:
    from ackademy.render.html import comparison as report

    cells = [cell for row in rows for cell in row.cells]
    ran = experiments.run_cells(cells, folder, engine, experiments.quiet)
    if ran.failures:
        raise AckademyError(ran.failures[0].error)
    found = measured.measure(rows, folder)
    results = measured.tables(comparison.STUDY, found)
    return Comparison(results, report.page(found, folder), report.drawing(found))


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
