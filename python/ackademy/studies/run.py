"""One run: `run(scenario, seed=...)`, what it returns, its report and its drawing over time.

import ackademy

result = ackademy.run("deep_buffer", seed=3, cc="cubic")
print(result.metrics().flows)
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from operator import index
from pathlib import Path

import numpy as np

from ackademy import _core, files
from ackademy.backends import REAL_TIME, Backend, check_backend, kernel
from ackademy.backends.captures import Captures, Pcap
from ackademy.backends.kernel import KernelRun
from ackademy.backends.runs import (
    NO_PARAMS,
    Params,
    Progress,
    ScenarioLike,
    check_runnable,
    read_scenario,
    simulate,
)
from ackademy.backends.tables import NAMES, Columns, Tables
from ackademy.errors import AckademyError
from ackademy.lazy import pl
from ackademy.render.exports import to_json
from ackademy.render.figures import Figure, of_section
from ackademy.render.html.markup import Markup, element, join
from ackademy.render.html.plot import Axis, Frame, thin
from ackademy.render.html.series import Strip, strips
from ackademy.render.html.svg import Width
from ackademy.render.kernel_notes import kernel_section
from ackademy.render.numbers import significant
from ackademy.render.report import Item, Report, Section, in_terminal, on_page
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of
from ackademy.stats.completion_times import (
    QUANTILES,
    CompletionTimes,
    completion_times,
    quantiles,
)
from ackademy.stats.formulas import FloatArray
from ackademy.stats.run_metrics import Metrics, measure

SEED_MAX = 2**64 - 1
SAMPLE_MS_MAX = 1e9
PLOTTED_ROWS = 2000
"""rows of a time series that is only drawn"""
SAMPLED_ROWS, SAMPLED_FLOWS_MAX = 500, 100
"""rows of a flow's time series by default, and the most flows that have one by default"""
N_BUCKETS = 300
"""of the points of a distribution"""
ROWS_MAX, FLOWS_MAX = 200, 40
"""flows in the table of a page, and in that of a terminal"""
BLOCKS = " ▁▂▃▄▅▆▇█"
FLOW_HEADS: Mapping[str, Head] = {
    "throughput_mbps": head_of("throughput_mean_mbps"),
    "goodput_mbps": head_of("goodput_mean_mbps"),
    "delay_ms": head_of("delay_mean_ms"),
    "owd_ms": Head("one-way", "ms"),
    "loss_ratio": head_of("loss"),
    "stall_max_ms": head_of("stall_max_ms"),
    "m_e": head_of("m_e"),
    "timeouts": head_of("timeouts"),
}
CONNECTION_HEADS: Mapping[str, Head] = {
    "subflows": Head("subflows"),
    "goodput_mbps": Head("application goodput", "Mb/s"),
    "reinjected_bytes": Head("reinjected", "bytes"),
    "duplicate_bytes": Head("duplicates", "bytes"),
    "reorder_peak_bytes": Head("reorder peak", "bytes"),
}
LINK_HEADS: Mapping[str, Head] = {
    "utilisation": Head("utilisation"),
    "goodput_share": Head("goodput share"),
    "wait_ms": Head("wait", "ms"),
    "loss_ratio": Head("link loss", about="packets lost over packets offered to the link"),
    "queue_drops": Head("queue drops"),
    "marked_packets": Head("marked"),
}


@dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=True)
class Run(Tables):
    """One finished run, and what it takes to repeat it."""

    scenario: _core.Scenario
    seed: int
    code_hash: str
    kernel: KernelRun | None = None
    """record of a run on the kernel; `None` in virtual time"""
    backend: Backend = "sim"
    _measured: list[Metrics] = field(default_factory=list, init=False)

    def metrics(self) -> Metrics:
        """The numbers of a report, computed once."""
        if not self._measured:
            self._measured.append(measure(self))
        return self._measured[0]

    def plot(self, width: Width = "screen") -> Figure:
        """Throughput, RTT, losses, queue and window over time.

        Simulates again if there is no time series.

        Args:
            width: of a `screen`, or of a `column` or `page` of a paper.

        Raises:
            AckademyError: for a run on the kernel without a time series, or another width.
        """
        sampled = self
        if not self.height("flow_series"):
            if self.kernel is not None:
                raise AckademyError("plot: allowed: a kernel run with sample_interval_ms above 0")
            step_ms = 1e3 * self.scenario.duration_s / PLOTTED_ROWS
            sampled = run(
                self.scenario,
                seed=self.seed,
                sample_interval_ms=step_ms,
                backend=self.backend,
            )
        about = f"{self.scenario.name}, seed {self.seed}, over time"
        return of_section(report(sampled), "time", about, width)

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
    pcap: Pcap | Path | str | None = None,
    qlog: Path | str | None = None,
) -> Run:
    """Run once: in the simulator, over QUIC, in ns-3, or over the TCP of this machine's kernel.

    Args:
        scenario: a file, a name such as `deep_buffer`, the text of a file (anything with a line
            break), a parsed scenario, or a mapping with the fields of a file.
        seed: of every random choice; in the simulator, the same seed gives the same bytes on every
            machine.
        cc: puts every flow under this controller: a name from `ackademy list`, one with settings
            such as `cubic:beta=0.8`, a policy, `file.py:Class` or a class in the simulator,
            `kernel:NAME` on the kernel, `noq:NAME` and `quinn:NAME` over QUIC, `ns3:NAME` in ns-3.
        params: settings of `cc`.
        sample_interval_ms: between rows of the time series; 0 records none. By default 500 rows for
            each of up to 100 flows, and none for more flows.
        backend: `sim`; `quic`, in virtual time; `ns3`, ns-3's TCP; or `kernel` and
            `quic-lab`, which take the scenario's duration in real time.
        progress: in the simulator, called at 256 equal parts of the duration with the simulated
            seconds that are over; what it raises ends the run.
        pcap: in the simulator, a file for the packets that senders send and receive, which ends in
            `.pcapng`; `Pcap` says other places.
        qlog: in the simulator or over `quic`, a file for what senders do, which ends in `.sqlog`.

    Returns:
        Tables of flows, links and series, with `.metrics()`.

    Raises:
        AckademyError: if seed, sampling interval or backend is wrong.
        ScenarioError: if the scenario is wrong.
        ControllerError: if a controller is unknown or its settings are wrong, or not of `cc`.
        KernelError: if the kernel backend is missing or fails.
        Ns3Error: if the backend ns3 is missing or fails.
        FileError: if a file cannot be written.
        Exception: whatever a Python controller raises.
    """
    check_backend(backend)
    captures = Captures.of(pcap, qlog)
    seed = _whole("seed", seed, SEED_MAX)
    if sample_interval_ms is not None and not 0.0 <= sample_interval_ms <= SAMPLE_MS_MAX:
        allowed = f"a number from 0 to {SAMPLE_MS_MAX:g}"
        raise AckademyError(f"sample_interval_ms = {sample_interval_ms}: allowed: {allowed}")
    parsed = read_scenario(scenario, cc=cc, params=params)
    check_runnable(parsed, backend)
    captures.check(parsed, backend)
    if sample_interval_ms is None:
        is_sampled = len(parsed.flows) <= SAMPLED_FLOWS_MAX
        sample_interval_ms = 1e3 * parsed.duration_s / SAMPLED_ROWS if is_sampled else 0.0
    record: KernelRun | None = None
    if backend in REAL_TIME:
        tables, record = kernel.emulate(parsed, seed, sample_interval_ms, backend)
    else:
        tables = simulate(parsed, seed, sample_interval_ms, progress, captures, backend)
    return Run(
        columns=tables.columns,
        is_random=tables.is_random,
        scenario=parsed,
        seed=seed,
        code_hash=_core.CODE_HASH,
        kernel=record,
        backend=backend,
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


def report(run: Run, command: str = "") -> Report:
    """Flows, links, and what there is of completion times, connections and the kernel."""
    found = run.metrics()
    names = list(dict.fromkeys(map(str, found.columns["flows"]["controller"])))
    return Report(
        kind="One run",
        title=run.scenario.name,
        about=f"{run.scenario.duration_s:g} s, seed {run.seed}: {', '.join(names)}.",
        facts=_headline(run, found),
        sections=[
            *_flow_sections(run, found),
            *_connections(run, found),
            Section("links", "Links", "", [links(run)]),
            *kernel_section([run.kernel] if run.kernel else []),
        ],
        command=command,
    )


def _flow_sections(run: Run, found: Metrics) -> list[Section]:
    """Completion times, if there are many, then the flows."""
    title = f"{run.scenario.name}, seed {run.seed}, {run.scenario.duration_s:g} s"
    jain = f"Jain's index of throughput {significant(found.jain_throughput)}"
    n_flows = found.height("flows")
    over_time = []
    if run.height("flow_series"):
        over_time = [Section("time", "Over time", "", [strips([_strip(run)])])]
    times = completion_times(run, run.scenario.duration_s)
    more = _hidden(n_flows, FLOWS_MAX, "flows")
    shown: list[Item] = [on_page(flows("", run, ROWS_MAX))]
    own = Section("flows", "Flows", _hidden(n_flows, ROWS_MAX, "flows"), shown)
    if times is None:
        said = more + (jain if n_flows > 1 else "")
        shown += [in_terminal(flows(title, run, FLOWS_MAX))]
        shown += [in_terminal(said)] if said else []
        return [*over_time, own]
    finished = f"{times.fct_ms.size} of {n_flows} flows finished a transfer"
    everything = "Every flow is in --csv, --json and --parquet. "
    shown += [
        in_terminal(completions(f"{title}: {finished}", times)),
        in_terminal(Part(f"CDF {cumulative(times.fct_ms)}")),
        in_terminal(f"{unknown_slowdowns(times)}{everything}{jain}"),
    ]
    return [_completion(times), *over_time, own]


def _hidden(count: int, most: int, what: str) -> str:
    """How many rows a table leaves out; empty if none."""
    return f"{count - most} more {what} are in the tables (--parquet). " if count > most else ""


def _connections(run: Run, found: Metrics) -> list[Section]:
    """The connections, if one of them has several subflows."""
    if not run.is_multipath:
        return []
    lead = (
        "What the application of each connection read, in order. Reinjected bytes were sent by one "
        "subflow in place of another; the reorder peak is the most that waited at the receiver for "
        "an earlier byte of another subflow."
    )
    more = _hidden(run.height("connections"), FLOWS_MAX, "connections")
    jain = f"{more}Jain's index of the connections' goodput {significant(found.jain_goodput)}"
    shown: list[Item] = [
        on_page(connections(run, ROWS_MAX)),
        in_terminal(connections(run, FLOWS_MAX)),
        in_terminal(jain),
    ]
    return [Section("connections", "Connections", lead, shown)]


def _strip(run: Run) -> Strip:
    names = " · ".join(dict.fromkeys(run.flows["controller"]))
    return Strip(names, run.scenario.name, 1, run.flow_series, run.link_series)


def _headline(run: Run, measured: Metrics) -> dict[str, str]:
    """The numbers above the first section: fairness only among several flows."""
    dropped, sent = (
        float(run.floats("flows", f"{what}_packets").sum()) for what in ("dropped", "sent")
    )
    throughput = np.nansum(measured.floats("flows", "throughput_mbps"))
    facts = {
        "throughput, Mb/s": significant(float(throughput)),
        "delay above the empty path, ms": significant(_mean(measured.floats("flows", "delay_ms"))),
        "loss, %": significant(100.0 * dropped / max(sent, 1.0), 3),
    }
    if measured.height("links"):
        busiest = np.nan_to_num(measured.floats("links", "utilisation")).max()
        facts["utilisation of the busiest link, %"] = significant(100.0 * float(busiest), 3)
    if measured.height("flows") > 1:
        facts["Jain's index of throughput"] = significant(measured.jain_throughput)
    return facts


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _completion(times: CompletionTimes) -> Section:
    """Completion times and slowdowns: two cumulative distributions and their quantiles."""
    shown = [(times.fct_ms, "completion time, ms"), (times.slowdown, "slowdown")]
    charts = [_distribution(own[np.isfinite(own)], label) for own, label in shown]
    lead = (
        "From the start of a transfer to the ACK of its last byte, for which a receiver may wait "
        "(delayed ACKs). The slowdown is that time over what the transfer "
        "would take alone on the empty path: one round trip, and what follows the first packet at "
        "the mean rate of the narrowest link. A flow with several transfers counts with their "
        f"mean. {unknown_slowdowns(times)}"
    )
    drawn = [chart for chart in charts if chart is not None]
    panels = element("div", join(drawn), class_="panels")
    items: list[Item] = [panels, on_page(completions("", times))]
    return Section("completion", "Flow completion times", lead, items)


def _distribution(values: FloatArray, label: str) -> Markup | None:
    """The distribution of finite values above 0; nothing without any."""
    if not values.size:
        return None
    x = np.sort(values)
    y = np.arange(1, x.size + 1) / x.size
    across = Axis(float(x[0]), float(max(x[-1], 1.001 * x[0])), label, is_log=True)
    frame = Frame(across, Axis(0.0, 1.0, "part of the transfers", n_ticks=5))
    line = element("path", class_="line l0", d=frame.line(*thin(x, y, N_BUCKETS)))
    return element("article", frame.draw([line], label=f"Distribution of {label}"), class_="s0")


def cumulative(values: FloatArray, width: int = 40) -> str:
    """The cumulative distribution of positive values over their logarithm, as a line of blocks."""
    low, high = float(values.min()), float(values.max())
    ends = np.geomspace(low, high, width)
    parts = np.searchsorted(np.sort(values), ends, side="right") / values.size
    blocks = "".join(BLOCKS[round(float(part) * (len(BLOCKS) - 1))] for part in parts)
    return f"{significant(low, 3)} ms {blocks} {significant(high, 3)} ms, logarithmic"


def flows(title: str, run: Run, count: int) -> Sheet:
    """The first flows of a run."""
    found = run.metrics().columns["flows"]
    return _sheet(title, found, ("flow", "controller"), FLOW_HEADS, range(count))


def connections(run: Run, count: int) -> Sheet:
    """The first connections of a run, what their applications read."""
    found, names = run.metrics().columns["connections"], ("connection", "controller", "scheduler")
    return _sheet("connections", found, names, CONNECTION_HEADS, range(count))


def links(run: Run) -> Sheet:
    """The links that carried packets."""
    own = run.columns["links"]
    counts = {name: own[name] for name in ("queue_drops", "marked_packets")}
    found = {**run.metrics().columns["links"], **counts}
    busy = np.flatnonzero(run.floats("links", "arrived_packets") > 0)
    return _sheet("links", found, ("link",), LINK_HEADS, busy.tolist())


def completions(title: str, times: CompletionTimes) -> Sheet:
    """Quantiles of completion times and slowdowns, by size of the transfers."""
    parts = [f"p{100 * part:g}" for part in QUANTILES]
    heads = [Head(f"FCT {part}", "ms") for part in parts]
    heads += [Head(f"slowdown {part}") for part in parts]
    lines = []
    for name, own in times.groups():
        found = [quantiles(values) for values in (own.fct_ms, own.slowdown)]
        cells = tuple(cell(significant(float(v), 3), float(v)) for v in np.concatenate(found))
        lines.append(Line((Part(f"{name} ({own.fct_ms.size})"),), cells))
    return Sheet(title, (Head("transfers"),), tuple(heads), tuple(lines))


def unknown_slowdowns(times: CompletionTimes) -> str:
    """How many transfers have no slowdown, and why; empty if all have one."""
    count = times.n_without_slowdown
    if not count:
        return ""
    return f"{count} of {times.fct_ms.size} have no slowdown: their empty path takes no time. "


def _sheet(
    title: str,
    table: Columns,
    names: Sequence[str],
    heads: Mapping[str, Head],
    rows: Sequence[int],
) -> Sheet:
    """Rows of a table, as far as it has them."""
    height = len(table[names[0]])
    lines = tuple(
        Line(
            tuple(Part(str(table[name][row])) for name in names),
            tuple(_cell(table[key][row]) for key in heads),
        )
        for row in rows
        if row < height
    )
    return Sheet(title, tuple(map(Head, names)), tuple(heads.values()), lines)


def _cell(value: str | np.float64 | np.int64) -> Cell:
    """A count as it is, else four significant digits."""
    number = float(value)
    return cell(str(value) if isinstance(value, np.int64) else significant(number), number)


def run_json(run: Run) -> str:
    """One run: what was run, fairness, flows, links, and connections of several subflows."""
    measured = run.metrics()
    return to_json(
        {
            "scenario": run.scenario.name,
            "duration_s": run.scenario.duration_s,
            "seed": run.seed,
            "backend": run.backend,
            "code": run.code_hash,
            "jain_throughput": measured.jain_throughput,
            "jain_delay": measured.jain_delay,
            "completion": _completion_quantiles(run),
            "flows": measured.flows,
            **({"connections": measured.connections} if run.is_multipath else {}),
            "links": measured.links,
        }
    )


def run_csv(run: Run) -> str:
    """The flows of a run, one row each."""
    flows = run.metrics().flows
    return flows.with_columns(pl.col(pl.Float64).fill_nan(None)).write_csv()


def _completion_quantiles(run: Run) -> list[dict[str, object]]:
    """Quantiles of completion times, all and by size; empty for few transfers."""
    times = completion_times(run, run.scenario.duration_s)
    return [
        {
            "transfers": name,
            "count": int(own.fct_ms.size),
            "fct_ms": _quantiles(own.fct_ms),
            "slowdown": _quantiles(own.slowdown),
        }
        for name, own in (times.groups() if times is not None else [])
    ]


def _quantiles(values: FloatArray) -> dict[str, float]:
    found = quantiles(values)
    return {f"p{100 * part:g}": float(own) for part, own in zip(QUANTILES, found, strict=True)}
