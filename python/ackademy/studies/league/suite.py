"""A league: many schemes on many networks, with one sender under all of them.

A suite (`suites/<name>.toml`, docs/results/league.md) lists networks, schemes and the sender. Every
scheme meets every network, and what is measured is set side by side
(`ackademy.studies.league.ranking` judges it).
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from ackademy import _core, lookup
from ackademy.backends import REAL_TIME, Backend, controllers, entries
from ackademy.backends.runs import read_text
from ackademy.backends.schemes import Scheme
from ackademy.errors import AckademyError, ExperimentError
from ackademy.folders import is_file
from ackademy.runner import experiments
from ackademy.runner.cells import Assignment, Cell
from ackademy.runner.measured import Measured, Row, measure
from ackademy.runner.measured import tables as measured_tables
from ackademy.stats.intervals import Interval
from ackademy.stats.results import Name, Results
from ackademy.studies.league import bdp_oracle
from ackademy.studies.league.grid import (
    MERIT,
    SAMPLE_MS,
    By,
    Network,
    Role,
    drawn,
    pair_networks,
)
from ackademy.studies.reproduce.files import RUNS_MAX, Assumption, parse_assumptions, setting
from ackademy.toml_table import TomlTable, toml_value

Kind = Literal["classic", "online", "learned"]
"""classic: fixed rules; online: searches for a rate, keeping nothing; learned: by experience"""

GRID_SCENARIOS = Path("../scenarios/league")
"""the scenarios of drawn networks, from a suite's folder"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeagueScheme(Scheme):
    """A scheme of a league."""

    controller: str
    learns: bool = False
    """takes the networks' `learner_params`"""
    kind: Kind
    family: str
    """who it comes from"""
    networks: str = "*"
    """pattern of the networks that it runs on"""
    ecn: str = ""
    """in place of the networks' `sender.ecn` where they have one"""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Networks on which every scheme meets every other, two flows at a time."""

    networks: tuple[Network, ...]
    runs: int
    transfers: bool = False
    """whether transfers of every scheme meet bulk flows of every scheme, too"""


@dataclass(frozen=True, slots=True)
class Suite:
    """What meets what."""

    name: str
    title: str
    about: str
    runs: int
    kernel_duration_s: float
    schemes: tuple[LeagueScheme, ...]
    networks: tuple[Network, ...]
    assumptions: tuple[Assumption, ...]
    pairs: Pairs | None = None


@dataclass(frozen=True, slots=True)
class SchemeCase:
    """One scheme on one network, over all seeds."""

    network: Network
    scheme: LeagueScheme
    row: Row

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Its runs."""
        return self.row.cells


@dataclass(frozen=True, slots=True)
class Result:
    """A scheme on a network with what was measured."""

    scheme_case: SchemeCase
    measured: Measured

    @property
    def network(self) -> str:
        """Its name."""
        return self.scheme_case.network.name

    @property
    def scheme(self) -> str:
        """Its name."""
        return self.scheme_case.scheme.label

    @property
    def n_runs(self) -> int:
        """That count."""
        return self.measured.n_runs

    def estimate(self, column: str) -> Interval | None:
        """Of a column, with its interval; none without runs."""
        return self.measured.estimates.get(self.scheme_case.network.metric(column))

    def interval(self, column: str) -> Interval:
        """Of a column of a result that has runs."""
        return self.measured.estimates[self.scheme_case.network.metric(column)]

    def value(self, column: str) -> float:
        """The estimate; `nan` without runs."""
        return self.measured.value(self.scheme_case.network.metric(column))

    @property
    def merit(self) -> float:
        """The figure of merit; minus infinity where nothing delivered leaves it undefined."""
        value = self.value(MERIT)
        return -math.inf if math.isnan(value) else value


def load(name: str, thin: int = 1) -> Suite:
    """Read `suites/<name>.toml` here or above, or the file that `name` is the path of.

    Args:
        name: of the suite, or its path.
        thin: of the networks that grids draw, one of so many is kept, at least one of each; >= 1.

    Raises:
        ExperimentError: if there is none, or it is wrong.
    """
    path = lookup.find(name, "suite", ExperimentError)
    table = TomlTable.read(path)
    base = _extended(table, path)
    own = tuple(_scheme(entry, path.parent) for entry in table.tables("scheme"))
    schemes = (*(base.schemes if base else ()), *own)
    sender = {f"sender.{key}": toml_value(v) for key, v in table.table("sender").values.items()}
    names = [scheme.label for scheme in schemes]
    by = table.choice("by", get_args(By), "flow")
    networks = (
        *(base.networks if base else ()),
        *(
            replace(_network(entry, path.parent, sender, names), by=by)
            for entry in table.tables("network")
        ),
        *(own for entry in table.tables("grid") for own in _grid(entry, path.parent, sender, thin)),
    )
    if not networks:
        raise table.error("network", None, "one [[network]] or [[grid]], or more")
    for key, found in (("scheme", names), ("network", [network.name for network in networks])):
        double = next((name for name in found if found.count(name) > 1), None)
        if double is not None:
            raise table.error(f"{key}.name", double, "a name that is used once")
    return table.into(
        Suite,
        *("runs", "by", "scheme", "network", "sender", "assumption", "extends", "grid", "pairs"),
        name=path.stem,
        runs=table.whole("runs", 1, RUNS_MAX),
        schemes=schemes,
        networks=networks,
        assumptions=(*(base.assumptions if base else ()), *parse_assumptions(table)),
        pairs=_pairs(table, path.parent, sender, thin),
    )


def scheme_cases(
    suite: Suite, runs: int, backend: Backend = "sim", only: str = "*"
) -> list[SchemeCase]:
    """Every scheme on every network whose name the glob `only` fits; seeds count from 1.

    A backend's own controllers (`kernel:cubic`) are run on that backend, and only there.
    Networks that grids draw are simulated only.

    Raises:
        AckademyError: if a scenario cannot be read.
        ExperimentError: if no network is called so.
    """
    networks = [network for network in suite.networks if _core.fits(only, network.name)]
    if not networks:
        known = ", ".join(network.name for network in suite.networks)
        raise ExperimentError(f"{suite.name}: network {only!r}: allowed: {known}")
    return [
        SchemeCase(network, scheme, _row(suite, network, scheme, runs, backend))
        for network in networks
        if backend == "sim" or not network.role
        for scheme in suite.schemes
        if backend in (controllers.own_of(scheme.controller) or (backend,))
        if _core.fits(scheme.networks, network.name)
    ]


ORACLE = LeagueScheme(
    label="BDP oracle",
    controller=f"{bdp_oracle.__file__}:{bdp_oracle.BdpOracle.__name__}",
    kind="classic",
    family="omniscient",
)
"""no scheme of the league: it wins nothing and is ranked nowhere"""
TOLD: tuple[Role, ...] = ("alone", "redraw")
"""networks of which rate and round trip are known at any time, and whose flow is alone"""


def oracle_cases(suite: Suite, runs: int, only: str = "*") -> list[SchemeCase]:
    """The oracle on every network that it can be told; seeds count from 1.

    Args:
        suite: whose drawn networks are meant.
        runs: seeds per network, >= 1.
        only: pattern of the networks' names.
    """
    told = [own for own in suite.networks if own.role in TOLD and _core.fits(only, own.name)]
    if not told:
        return []
    networks = tuple(replace(own, scheme_params={ORACLE.label: _told(own)}) for own in told)
    return scheme_cases(replace(suite, schemes=(ORACLE,), networks=networks), runs)


def _told(network: Network) -> dict[str, float | str]:
    return {
        "rates_mbps": _schedule(network.rates_mbps),
        "rtts_ms": _schedule(network.rtts_ms),
        "flows": 1.0,
    }


def _schedule(steps: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{start!r}:{value!r}" for start, value in steps)


def results(found: Sequence[SchemeCase], folder: Path) -> list[Result]:
    """Measure what is on disk."""
    measured = measure((own.row for own in found), folder)
    return [Result(own, row) for own, row in zip(found, measured, strict=True)]


def tables(found: Sequence[Result]) -> Results:
    """The two tables: a scenario per network, a group per paper."""
    return measured_tables("league", [own.measured for own in found])


def _row(suite: Suite, network: Network, scheme: LeagueScheme, runs: int, backend: Backend) -> Row:
    columns = (*network.shown, "delay_mean_ms", *network.judged)
    return Row(
        Name(network.name, scheme.label, network.source, backend),
        _cells(suite, network, scheme, runs, backend),
        tuple(network.metric(column) for column in columns),
        (network.flows,),
    )


def _cells(
    suite: Suite, network: Network, scheme: LeagueScheme, runs: int, backend: Backend
) -> tuple[Cell, ...]:
    params = {
        **(network.learner_params if scheme.learns else {}),
        **dict(scheme.params),
        **network.scheme_params.get(scheme.label, {}),
    }
    overrides = dict(network.overrides)
    if scheme.ecn and "sender.ecn" in overrides:
        overrides["sender.ecn"] = toml_value(scheme.ecn)
    if backend in REAL_TIME:
        overrides["duration_s"] = toml_value(suite.kernel_duration_s)
    assignment = Assignment(network.flows, scheme.controller, tuple(params.items()))
    own = replace(
        experiments.of_file(network.scenario),
        overrides=tuple(overrides.items()),
        assignments=(assignment,),
        sample_interval_ms=SAMPLE_MS[network.role],
        backend=backend,
    )
    return experiments.seeded(own, runs)


def _scheme(entry: TomlTable, folder: Path) -> LeagueScheme:
    params = tuple(_params(entry.table("params"), folder).items())
    return entry.into(LeagueScheme, "name", "params", label=entry.string("name"), params=params)


def _extended(table: TomlTable, path: Path) -> Suite | None:
    """The suite beside this one whose schemes, networks and assumptions this one has, too.

    Raises:
        ExperimentError: if it cannot be read, or extends another one.
    """
    name = table.string("extends", "")
    if not name:
        return None
    found = path.parent / name
    if not is_file(found) or TomlTable.read(found).values.get("extends"):
        raise table.error("extends", name, "a suite in the same folder that extends none")
    return load(str(found))


def _grid(entry: TomlTable, folder: Path, sender: Mapping[str, str], thin: int) -> list[Network]:
    paper = entry.string("paper")
    return [_drawn(own, paper, folder, sender) for own in drawn(entry, thin)]


def _pairs(table: TomlTable, folder: Path, sender: Mapping[str, str], thin: int) -> Pairs | None:
    if "pairs" not in table.values:
        return None
    entry = table.table("pairs").only("networks", "seed", "runs", "transfers")
    count = math.ceil(entry.whole("networks", 1, 90) / thin)
    found = pair_networks(entry.whole("seed", 0), count)
    networks = tuple(_drawn(own, "Two flows", folder, sender) for own in found)
    short = entry.switch("transfers", default=False)
    return Pairs(networks, entry.whole("runs", 1, RUNS_MAX), short)


def _grid_scenario(folder: Path, name: str) -> Path:
    """The scenario of drawn networks, near the suite or where scenarios are found by name."""
    near = Path(os.path.normpath(folder / GRID_SCENARIOS / name))
    named = f"league/{Path(name).stem}"
    return near if is_file(near) else lookup.find(named, "scenario", ExperimentError)


def _drawn(own: Network, paper: str, folder: Path, sender: Mapping[str, str]) -> Network:
    scenario = _grid_scenario(folder, str(own.scenario))
    return replace(own, paper=paper, scenario=scenario, overrides={**sender, **own.overrides})


def _network(
    entry: TomlTable, folder: Path, sender: Mapping[str, str], schemes: Sequence[str]
) -> Network:
    of_schemes = entry.table("params")
    for name in of_schemes.values:
        if name not in schemes:
            raise entry.error("params", name, ", ".join(schemes))
    own = {key: toml_value(value) for key, value in entry.table("set").values.items()}
    scenario, overrides = entry.string("scenario"), {**sender, **own}
    path = Path(os.path.normpath(folder / scenario))
    found = entry.into(
        Network,
        *("scenario", "set", "learner_params", "params", "offered_ratio"),
        scenario=path,
        overrides=overrides,
        learner_params=_params(entry.table("learner_params"), folder),
        scheme_params={
            name: _params(entry.table("params", name), folder) for name in of_schemes.values
        },
        offered_ratio=_offered(entry),
        by="flow",
        role="",
        rates_mbps=(),
        rtts_ms=(),
    )
    _check_network(entry, path, overrides)
    return found


def _check_network(entry: TomlTable, path: Path, overrides: Mapping[str, str]) -> None:
    """Refuse a network whose scenario is wrong, or has no link or no flow that the suite names.

    Raises:
        ExperimentError: naming the suite.
    """
    try:
        parsed = _core.Scenario.parse(read_text(path), str(path), overrides)
    except AckademyError as error:
        raise ExperimentError(f"{entry.where}: scenario: {error}") from error
    # The links of the other topologies are named by the core, not by the file.
    links = [own["name"] for own in tomllib.loads(parsed.resolved()).get("link", [])]
    pattern = entry.string("link")
    if not pattern or (links and not any(entries.fits([pattern], name) for name in links)):
        known = f": {', '.join(links)}" if links else ""
        raise entry.error("link", pattern, f"a link of the scenario{known}")
    flows = entry.string("flows", "*")
    if not entries.named(parsed, [flows]):
        raise entry.error("flows", flows, f"flows of the scenario: {', '.join(parsed.entries)}")


def _offered(entry: TomlTable) -> float:
    ratio = entry.number("offered_ratio", 1.0, 1.0)
    if not ratio:
        raise entry.error("offered_ratio", ratio, "a number above 0, at most 1")
    return ratio


def _params(table: TomlTable, folder: Path) -> dict[str, float | str]:
    """Settings; a text with a slash is a file, relative to the suite's."""
    params: dict[str, float | str] = {}
    for key, value in table.values.items():
        if isinstance(value, bool):
            raise table.error(key, value, "a number or a text")
        params[key] = setting(table, key, value, folder)
    return params
