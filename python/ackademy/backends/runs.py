"""One run: `run(scenario, seed=...)` and what it returns.

import ackademy

result = ackademy.run("deep_buffer", seed=3, cc="cubic")
print(result.metrics().flows)
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ackademy import _core, files, lookup
from ackademy.backends import Backend, check_backend, controllers, kernel, schemes
from ackademy.backends.kernel import KernelRun
from ackademy.backends.tables import (
    NAMES,
    Column,
    Columns,
    Frames,
    Tables,
    frame_html,
    frame_text,
)
from ackademy.errors import AckademyError, ControllerError, ScenarioError
from ackademy.lazy import pl
from ackademy.stats import formulas
from ackademy.toml_table import toml_value

if TYPE_CHECKING:
    from ackademy.render.notebook import Figure

Params = Mapping[str, float | str]
Progress: TypeAlias = Callable[[float], object]
"""called with the simulated seconds of a run so far"""
SEED_MAX = 2**64 - 1
SAMPLE_MS_MAX = 1e9
PLOTTED_ROWS = 2000
"""rows of a time series that is only drawn"""
SAMPLED_ROWS, SAMPLED_FLOWS_MAX = 500, 100
"""rows of a flow's time series by default, and the most flows that have one by default"""
NO_PARAMS: Params = {}
NO_OVERRIDES: Mapping[str, str] = {}
ScenarioLike: TypeAlias = "Path | str | Mapping[str, object] | _core.Scenario"
"""a file, a name, a text, the fields of a file, or a parsed scenario"""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Metrics(Frames):
    """The numbers of a report, from `Tables`.

    Flows have throughput_mbps, goodput_mbps, delay_ms, owd_ms, loss_ratio, m_e, ...; connections
    subflows, goodput_mbps, reinjected_bytes, reorder_peak_bytes, ...; links utilisation,
    goodput_share, loss_ratio, wait_ms, ...
    """

    jain_throughput: float
    """fairness of the flows' throughputs"""
    jain_delay: float
    """fairness of the flows' delays; `nan` if a flow has no sample"""
    jain_goodput: float
    """fairness of the connections' goodputs"""

    def __repr__(self) -> str:
        named = "".join(f"\n{name}\n{frame_text(frame)}" for name, frame in self._shown().items())
        return f"Metrics: {self._fairness()}{named}"

    def _repr_html_(self) -> str:
        shown = "".join(f"<p>{name}</p>{frame_html(own)}" for name, own in self._shown().items())
        return f"<p>{self._fairness()}</p>{shown}"

    def _shown(self) -> dict[str, pl.DataFrame]:
        """The tables, without connections if none has several subflows."""
        names = (name for name in self.columns if self.is_multipath or name != "connections")
        return {name: self.frame(name) for name in names}

    def _fairness(self) -> str:
        if self.height("flows") < 2:
            return "one flow"
        return (
            f"Jain's index {self.jain_throughput:.4g} (throughput), {self.jain_delay:.4g} (delay)"
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class Run(Tables):
    """One finished run, and what it takes to repeat it."""

    scenario: _core.Scenario
    seed: int
    code_hash: str
    kernel: KernelRun | None = None
    """record of a run on the kernel; `None` for a simulation"""
    _measured: list[Metrics] = field(default_factory=list, init=False)

    def metrics(self) -> Metrics:
        """The numbers of a report, computed once."""
        if not self._measured:
            self._measured.append(measure(self))
        return self._measured[0]

    def plot(self) -> Figure:
        """Window, queue and throughput over time; simulates again if there is no time series.

        Raises:
            AckademyError: for a run on the kernel without a time series.
        """
        from ackademy.render import report
        from ackademy.render import run as drawn
        from ackademy.render.notebook import Figure

        sampled = self
        if not self.height("flow_series"):
            if self.kernel is not None:
                raise AckademyError("plot: allowed: a kernel run with sample_interval_ms above 0")
            step_ms = 1e3 * self.scenario.duration_s / PLOTTED_ROWS
            sampled = run(self.scenario, seed=self.seed, sample_interval_ms=step_ms)
        about = f"{self.scenario.name}, seed {self.seed}, over time"
        return Figure(report.page(drawn.report(sampled)), drawn.drawing(sampled), about)

    def __repr__(self) -> str:
        return f"Run of {self.scenario.name}, seed {self.seed}\n{self.metrics()!r}{self._hint()}"

    def _repr_html_(self) -> str:
        title = escape(f"{self.scenario.name}, seed {self.seed}{self._hint()}")
        return f"<p>{title}</p>{self.metrics()._repr_html_()}"

    def _hint(self) -> str:
        """How to get a time series, where there is none."""
        if self.height("flow_series"):
            return ""
        return "\nno time series: run with sample_interval_ms above 0"

    def write_parquet(self, folder: Path) -> None:
        """Write every table that has rows to `folder`, as `flows.parquet` and so on.

        Raises:
            FileError: if a file cannot be written.
        """
        for name in NAMES:
            if self.height(name):
                buffer = io.BytesIO()
                self.frame(name).write_parquet(buffer)
                files.write(folder / f"{name}.parquet", buffer.getvalue())


def run(
    scenario: ScenarioLike,
    *,
    seed: int = 1,
    cc: str | _core.ControllerClass | None = None,
    params: Params = NO_PARAMS,
    sample_interval_ms: float | None = None,
    backend: Backend = "sim",
    progress: Progress | None = None,
) -> Run:
    """Run once, in the simulator or over the TCP of this machine's kernel.

    Args:
        scenario: a file, a name such as `deep_buffer`, the text of a file (anything with a line
            break), a parsed scenario, or a mapping with the fields of a file.
        seed: of every random choice; in the simulator, the same seed gives the same bytes on every
            machine.
        cc: puts every flow under this controller: a name from `ackademy list`, one with settings
            such as `cubic:beta=0.8`, a policy, `file.py:Class` or a class in the simulator,
            `kernel:NAME` on the kernel.
        params: settings of `cc`.
        sample_interval_ms: between rows of the time series; 0 records none. By default 500 rows for
            each of up to 100 flows, and none for more flows.
        backend: `sim`, or `kernel`, which takes the scenario's duration in real time.
        progress: in the simulator, called at 256 equal parts of the duration with the simulated
            seconds that are over; what it raises ends the run.

    Returns:
        Tables of flows, links and series, with `.metrics()`.

    Raises:
        AckademyError: if seed, sampling interval or backend is wrong.
        ScenarioError: if the scenario is wrong.
        ControllerError: if a controller is unknown or its settings are wrong, or not of `cc`.
        KernelError: if the kernel backend is missing or fails.
        Exception: whatever a Python controller raises.
    """
    check_backend(backend)
    seed = _whole("seed", seed, SEED_MAX)
    if sample_interval_ms is not None and not 0.0 <= sample_interval_ms <= SAMPLE_MS_MAX:
        allowed = f"a number from 0 to {SAMPLE_MS_MAX:g}"
        raise AckademyError(f"sample_interval_ms = {sample_interval_ms}: allowed: {allowed}")
    parsed = read_scenario(scenario, cc=cc, params=params)
    controllers.check(parsed.controllers, backend)
    if sample_interval_ms is None:
        is_sampled = len(parsed.flows) <= SAMPLED_FLOWS_MAX
        sample_interval_ms = 1e3 * parsed.duration_s / SAMPLED_ROWS if is_sampled else 0.0
    record: KernelRun | None = None
    if backend == "kernel":
        tables, record = kernel.emulate(parsed, seed, sample_interval_ms)
    else:
        tables = simulate(parsed, seed, sample_interval_ms, progress)
    return Run(
        columns=tables.columns,
        is_random=tables.is_random,
        scenario=parsed,
        seed=seed,
        code_hash=_core.CODE_HASH,
        kernel=record,
    )


def _whole(name: str, value: int, most: int) -> int:
    """A whole number of Python or NumPy in [0, most]."""
    try:
        found = index(value)
    except TypeError:
        found = -1
    if not 0 <= found <= most:
        raise AckademyError(f"{name} = {value!r}: allowed: a whole number from 0 to {most}")
    return found


def simulate(
    scenario: _core.Scenario,
    seed: int,
    sample_interval_ms: float,
    progress: Progress | None = None,
) -> Tables:
    """Simulate a parsed scenario, its Python controllers loaded from their files."""
    beside = Path(scenario.origin).parent
    classes = {name: controllers.load(name, beside) for name in python_controllers(scenario)}
    tables = _core.simulate(
        scenario,
        seed,
        sample_interval_ms=sample_interval_ms,
        python_controllers=classes or None,
        progress=progress,
    )
    return Tables.from_core(tables)


def read_scenario(
    scenario: ScenarioLike,
    *,
    cc: str | _core.ControllerClass | None = None,
    params: Params = NO_PARAMS,
    overrides: Mapping[str, str] = NO_OVERRIDES,
) -> _core.Scenario:
    """Parse a scenario, if it is not parsed yet, and put its flows under `cc`, if one is given.

    Args:
        scenario: as for `run`.
        cc: as for `run`.
        params: settings of `cc`.
        overrides: TOML values by dotted path; not for a parsed scenario.

    Raises:
        ScenarioError: if the file cannot be read or is wrong.
        ControllerError: if the controller is unknown or its settings are wrong, or if there are
            settings without a controller.
    """
    if isinstance(scenario, _core.Scenario):
        if overrides:
            raise ScenarioError("overrides: allowed: for a scenario that is not parsed yet")
        parsed = scenario
    else:
        text, origin = text_of(scenario)
        parsed = _core.Scenario.parse(text, origin, dict(overrides))
    if cc is None:
        if params:
            names = ", ".join(params)
            raise ControllerError(f"params: {names}: allowed: beside cc, whose settings they are")
        return parsed
    scheme = schemes.of_words([(cc, params)])[0]
    return parsed.with_controller(str(scheme.controller), dict(scheme.params))


def text_of(scenario: Path | str | Mapping[str, object]) -> tuple[str, str]:
    """TOML and origin of a scenario that is a file, a name, a text or a mapping of its fields.

    Raises:
        ScenarioError: if it cannot be read.
    """
    if isinstance(scenario, Mapping):
        lines = [f"{toml_value(k)} = {toml_value(v, str(k))}" for k, v in scenario.items()]
        return "\n".join([*lines, ""]), "scenario"
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, "scenario"
    if not isinstance(scenario, str | Path):
        name, allowed = type(scenario).__name__, "a file, a name, a text, a mapping, a Scenario"
        raise ScenarioError(f"scenario of type {name}: allowed: {allowed}")
    path = lookup.find(scenario, "scenario", ScenarioError)
    return read_text(path), str(path)


def read_text(path: Path) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: if it cannot be read, is not a regular file, is too large or is not text.
    """
    return files.read_text(path, error=ScenarioError)


def python_controllers(scenario: _core.Scenario) -> list[str]:
    """The `file.py:Class` controllers among a scenario's, each once, in order."""
    return sorted({name for name in scenario.controllers if controllers.is_python(name)})


def measure(tables: Tables) -> Metrics:
    """The numbers of a report, by the definitions in `stats.formulas`."""
    flows, links = partial(tables.floats, "flows"), partial(tables.floats, "links")
    throughput = formulas.throughput_mbps(flows("delivered_bytes"), flows("active_s"))
    delay = formulas.delay_ms(flows("rtt_at_delivery_ms"), flows("base_rtt_ms"))
    per_flow = {
        **_kept(tables.columns["flows"], "flow", "controller"),
        "throughput_mbps": throughput,
        "goodput_mbps": formulas.goodput_mbps(flows("goodput_bytes"), flows("active_s")),
        "delay_ms": delay,
        "owd_ms": flows("owd_mean_ms"),
        "loss_ratio": formulas.loss_ratio(flows("dropped_packets"), flows("sent_packets")),
        "m_e": formulas.m_e(throughput, delay),
        "timeouts": flows("timeouts"),
        "stall_max_ms": flows("stall_max_ms"),
    }
    lost = links("queue_drops") + links("random_losses")
    per_link = {
        **_kept(tables.columns["links"], "link"),
        "utilisation": formulas.utilisation(links("delivered_bytes"), links("capacity_bytes")),
        "goodput_share": formulas.goodput_share(links("goodput_bytes"), links("capacity_bytes")),
        "loss_ratio": formulas.loss_ratio(lost, links("arrived_packets")),
        "wait_ms": links("wait_mean_ms"),
    }
    connections = partial(tables.floats, "connections")
    goodput = formulas.goodput_mbps(connections("goodput_bytes"), connections("active_s"))
    names = ("connection", "controller", "subflows", "scheduler")
    counts = ("reinjected_bytes", "duplicate_bytes", "reorder_peak_bytes")
    per_connection = _kept(tables.columns["connections"], *names, *counts)
    has_delay = bool(delay.size) and bool(np.all(delay >= 0.0))
    return Metrics(
        {
            "flows": per_flow,
            "connections": {**per_connection, "goodput_mbps": goodput},
            "links": per_link,
        },
        jain_throughput=formulas.jain_index(throughput) if throughput.size else float("nan"),
        jain_delay=formulas.jain_index(delay) if has_delay else float("nan"),
        jain_goodput=formulas.jain_index(goodput) if goodput.size else float("nan"),
    )


def _kept(table: Columns, *names: str) -> dict[str, Column]:
    return {name: table[name] for name in names}
