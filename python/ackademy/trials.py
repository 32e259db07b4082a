"""Frozen controllers on drawn scenarios: who is tried, on what, and how it did.

A trial is a scenario with a seed; the flows that the distribution calls learners are put under each
entrant in turn, everything else stays. Every run is a cell, so that nothing runs twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ackademy import _core, controllers, distributions, entries, experiments, lookup
from ackademy.cells import Assignment, Cell
from ackademy.errors import ControllerError
from ackademy.folders import POLICY_FILE
from ackademy.metrics import jain_index, pooled_loss
from ackademy.runs import Params
from ackademy.toml_table import TomlTable

FOREST_KEYS = ("controller", "forest", "threshold", "features", "setup", "made")
"""of a `policy.toml` that names a forest"""
SHARE_FLOOR = 1e-3
"""a share below this counts as this in the utility, whose logarithm has no other end"""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A controller with its settings, and what it is called in tables."""

    name: str
    controller: str
    params: tuple[tuple[str, float | str], ...] = ()

    @property
    def words(self) -> str:
        """How `ackademy run` is told of it."""
        settings = "".join(f" --param {name}={value}" for name, value in self.params)
        return f"--cc {self.controller}{settings}"


@dataclass(frozen=True, slots=True)
class Trial:
    """A scenario and the seed of its runs."""

    scenario: _core.Scenario
    seed: int
    learners: tuple[str, ...]
    """patterns of the entries that an entrant governs"""

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.scenario.name


@dataclass(frozen=True, slots=True)
class Score:
    """How an entrant's flows did in one run."""

    throughput_mbps: float
    """of its flows together, headers included"""
    share: float
    """of what the narrowest link could carry, [0, 1]"""
    delay_ms: float
    """mean round trip above that of the empty path, mean over flows; `nan` without a sample"""
    rtt_ratio: float
    """mean round trip over that of the empty path, from 1; `nan` without a sample"""
    loss_ratio: float
    """its packets that were dropped over those sent, [0, 1]"""
    jain: float
    """fairness of its flows' throughputs, (0, 1]; 1 for one flow"""
    fallbacks: int
    """of its flows, those that a guard of their policy handed over to another controller"""
    utility: float
    """ln share − ln rtt_ratio: 0 for the whole link at the empty path's round trip, else below"""


NUMBERS: Mapping[str, tuple[str, str]] = {
    "share": ("share of the link", ""),
    "delay_ms": ("queueing delay", "ms"),
    "rtt_ratio": ("RTT / empty RTT", ""),
    "loss_ratio": ("loss", ""),
    "utility": ("utility", ""),
}
"""label and unit of what is shown of scores, in order"""

LESS_IS_BETTER = frozenset({"delay_ms", "rtt_ratio", "loss_ratio"})
PER_CENT = frozenset({"share", "loss_ratio"})
"""ratios that are shown as per cent"""


def entrant(word: str, params: Params = {}) -> Entrant:  # noqa: B006  # a mapping, not changed
    """What a word on the command line names: a policy's folder, or a controller.

    Raises:
        ControllerError: if the word is a folder without a policy in it.
        ExperimentError: if its `policy.toml` cannot be read.
    """
    folder = None if "policy" in params else lookup.policy_folder(word)
    if folder is not None:
        return Entrant(folder.resolve().name, *of_folder(folder, params))
    name = controllers.canonical(word)
    if ":" not in word and name not in lookup.controllers():
        raise lookup.unknown_controller(word)
    known = next((Path(str(value)).name for key, value in params.items() if key == "policy"), "")
    return Entrant(f"{name} {known}".rstrip(), name, tuple(params.items()))


def of_folder(
    folder: Path,
    params: Params = {},  # noqa: B006  # a mapping, not changed
) -> tuple[str, tuple[tuple[str, float | str], ...]]:
    """The controller that flies the policy in a folder, and its settings.

    Raises:
        ControllerError: if there is no policy in it.
        ExperimentError: if its `policy.toml` cannot be read.
    """
    if not (folder / POLICY_FILE).is_file():
        raise ControllerError(f"{folder}: allowed: a folder with {POLICY_FILE}, or a controller")
    described = TomlTable.read(folder / POLICY_FILE)
    if "forest" in described.values:
        name = described.only(*FOREST_KEYS).string("forest")
        if Path(name).name != name:
            raise described.error("forest", name, "the name of a file beside it")
        settings = {
            "policy": str(folder / name),
            "threshold": described.number("threshold"),
            **params,
        }
        return described.string("controller"), tuple(settings.items())
    return "policy", tuple({**params, "policy": str(folder)}.items())


def drawn(
    distribution: _core.Distribution, seed: int, count: int, progress: float = 1.0
) -> list[Trial]:
    """Trials of consecutive seeds; a scenario's seed is that of its runs too."""
    learners = tuple(distribution.learners)
    return [
        Trial(scenario, own, learners)
        for own, scenario in distributions.drawn(distribution, seed, count, progress)
    ]


def cell(trial: Trial, own: Entrant, folder: Path) -> Cell:
    """The run of an entrant on a trial.

    Args:
        trial: what to run.
        own: who governs the learners.
        folder: where traces that the scenario needs are put, as a file beside its own.
    """
    text, traces = trial.scenario.portable()
    origin = folder / f"{trial.name}.toml"
    if traces:
        distributions.save(trial.scenario, origin)
    patterns = [own for own in trial.learners if entries.named(trial.scenario, [own])]
    return Cell(
        text=text,
        origin=str(origin),
        controller=None,
        seed=trial.seed,
        assignments=tuple(Assignment(glob, own.controller, own.params) for glob in patterns),
    )


def score(trial: Trial, own: Cell, folder: Path) -> Score:
    """Read a finished run.

    Raises:
        ExperimentError: if it has not been run.
    """
    flows = experiments.read(folder, own, "summary")
    links = experiments.read(folder, own, "links")
    counters = experiments.read(folder, own, "counters")
    rows = flows["flow"].to_list()
    flows = flows.filter(pl.Series(entries.governed(trial.scenario, trial.learners, rows)))
    return score_of(flows, links, counters, trial.scenario.duration_s)


def score_of(
    flows: pl.DataFrame, links: pl.DataFrame, counters: pl.DataFrame, duration_s: float
) -> Score:
    """From the tables of a run, its flows chosen and measured."""
    capacity_mbps = float(links["capacity_bytes"].cast(pl.Float64).min() or 0.0)  # type: ignore[arg-type]
    capacity_mbps *= 8e-6 / duration_s
    delivered = float(flows["delivered_bytes"].sum())
    throughput = 8e-6 * delivered / duration_s
    share = min(throughput / capacity_mbps, 1.0) if capacity_mbps > 0.0 else math.nan
    delays = flows.select("delay_ms", "base_rtt_ms").drop_nans()
    delay = _mean(delays["delay_ms"])
    ratio = _mean(1.0 + delays["delay_ms"] / delays["base_rtt_ms"])
    fell = (pl.col("name") == "fallbacks") & pl.col("flow").is_in(flows["flow"].implode())
    return Score(
        throughput_mbps=throughput,
        share=share,
        delay_ms=delay,
        rtt_ratio=ratio,
        loss_ratio=pooled_loss(flows),
        jain=jain_index(flows["throughput_mbps"].to_numpy()) if flows.height else math.nan,
        fallbacks=int(counters.filter(fell)["value"].sum()),
        utility=utility(share, ratio),
    )


def utility(share: float, rtt_ratio: float) -> float:
    """Ln share − ln RTT / empty RTT, a flow without a sample having the floor's.

    TCP-Drinc's ln throughput − ln RTT, up to what the link makes of it for everybody.
    """
    floor = math.log(SHARE_FLOOR)
    if math.isnan(rtt_ratio) or math.isnan(share):
        return floor
    return max(math.log(max(share, SHARE_FLOOR)) - math.log(rtt_ratio), floor)


def names_differ(entrants: Sequence[Entrant]) -> None:
    """Refuse two entrants of one name.

    Raises:
        ControllerError: if there are.
    """
    names = [own.name for own in entrants]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ControllerError(f"{double}: allowed: every controller or policy once")


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return float(mean) if isinstance(mean, int | float) else math.nan
