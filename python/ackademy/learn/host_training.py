"""Trains the agent of a host by its recipe: one agent per network, or one for several."""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ackademy import _core
from ackademy.backends.runs import read_text
from ackademy.envs.host import HostSettings, SimulatedHost
from ackademy.errors import TrainingError
from ackademy.learn import ddpg
from ackademy.learn.ddpg import Config, Networks
from ackademy.learn.recipe_toml import (
    NONE,
    Changes,
    listed,
    load,
    only,
    settings,
    table,
    text,
)
from ackademy.learn.training_log import Checkpoints, Progress, TrainingLog, quiet
from ackademy.toml_table import toml_value

KEYS = ("about", "learner", "scenario", "seed", "training", "quick", "network")
NETWORK_KEYS = ("name", "scenario", "set", "members", "host", "training", "seed")
HOST_KEYS = ("window_packets", "epoch_rtts", "epoch_ms", "between")
"""of the table `host` of a policy, what a recipe may choose; the rest follows from the network"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A scenario with changes."""

    name: str
    scenario: Path
    changes: Mapping[str, object]
    """fields of the scenario that have another value"""

    @property
    def changed(self) -> str:
        """The changes of the scenario, in words."""
        shown = ", ".join(f"{name} {value}" for name, value in self.changes.items())
        return f" ({shown})" if shown else ""

    def parsed(self) -> _core.Scenario:
        """The scenario with its changes.

        Raises:
            TrainingError: if it cannot be read.
        """
        text = read_text(self.scenario)
        changes = {name: toml_value(value) for name, value in self.changes.items()}
        try:
            return _core.Scenario.parse(text, str(self.scenario), changes)
        except ValueError as error:
            raise TrainingError(str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One agent of a recipe: the networks that it learns on, and how."""

    origin: Path
    """the file"""
    about: str
    name: str
    """of the agent: that of its network, if it has one"""
    networks: tuple[Network, ...]
    """one of them is drawn for each episode"""
    host: Mapping[str, object] = field(default_factory=dict)
    """choices of the table `host` that differ from those that follow from the networks"""
    learners: tuple[str, ...] = ("*",)
    """patterns of the flows that start at the host"""
    seed: int
    config: Config

    @property
    def policy_about(self) -> str:
        """What the policy is, in a line."""
        first, chosen = self.networks[0], ", ".join(f"{k} = {v}" for k, v in self.host.items())
        if len(self.networks) > 1:
            network = f"{len(self.networks)} networks"
        else:
            network = first.scenario.stem + (f" ({self.name})" if first.changes else "")
        return f"{self.about}, trained on {network}" + (f"; {chosen}" if chosen else "")

    def settings(self, scenarios: Sequence[_core.Scenario]) -> HostSettings:
        """The table `host`.

        Raises:
            ValueError: if a scenario gives no scales.
        """
        described = [
            tomllib.loads(_core.HostEpisodes.scales(own, list(self.learners)))["host"]
            for own in scenarios
        ]
        over = HostSettings.over([HostSettings(**own) for own in described])
        return replace(over, **self.host)  # type: ignore[arg-type]  # the core checks the values


@dataclass(frozen=True, slots=True)
class HostTrained:
    """A trained agent, its curve and its counts."""

    recipe: Recipe
    settings: HostSettings
    networks: Networks
    curve: str
    """CSV"""
    episodes: int
    updates: int
    packets: int
    """data packets simulated"""
    wall_s: float
    """wall-clock time of this process; not in any file, so that equal recipes write equal bytes"""
    cpu_s: float
    """processor time of all its threads; not in any file"""


def read(path: Path, *, quick: bool = False, changes: Changes = NONE) -> list[Recipe]:
    """The networks of a recipe, in the order of the file.

    Args:
        path: a TOML file.
        quick: take `[quick]` for the settings of the learner that it names.
        changes: as of `recipe_toml.load`.

    Raises:
        TrainingError: if it cannot be read, or a field is missing, unknown or not allowed.
    """
    values = load(path, changes)
    only(values, KEYS, str(path))
    if values.get("learner") != "ddpg":
        raise TrainingError(f"{path}: learner = {values.get('learner')!r}: allowed: 'ddpg'")
    seed = _seed(values.get("seed"), str(path))
    shorter = table(values, "quick", str(path)) if quick else {}
    training = table(values, "training", str(path))
    config = config_of({**training, **shorter}, str(path))
    networks = values.get("network", [{"name": path.stem}])
    recipes: list[Recipe] = []
    for where, network in listed(networks, "network", path):
        only(network, NETWORK_KEYS, where)
        host = table(network, "host", where)
        only(host, HOST_KEYS, f"{where}.host")
        own = {**training, **table(network, "training", where), **shorter}
        recipe = Recipe(
            origin=path,
            about=text(values, "about", str(path)),
            name=text(network, "name", where),
            networks=_networks(path, network, values.get("scenario"), recipes, where),
            host=host,
            seed=_seed(network.get("seed", seed), where),
            config=config_of(own, where) if "training" in network else config,
        )
        recipes.append(recipe)
    names = [recipe.name for recipe in recipes]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise TrainingError(f"{path}: network {double!r}: allowed: every name once")
    return recipes


def _networks(
    path: Path,
    network: Mapping[str, object],
    usual: object,
    before: Sequence[Recipe],
    where: str,
) -> tuple[Network, ...]:
    """The scenario of an entry, or those of the entries before it that it names as members."""
    if "members" not in network:
        scenario = text({"scenario": network.get("scenario", usual)}, "scenario", where)
        changes = table(network, "set", where)
        name = str(network["name"])
        return (Network(name=name, scenario=path.parent / scenario, changes=changes),)
    members, known = network["members"], {own.name: own.networks for own in before}
    if not isinstance(members, list) or not members or "scenario" in network or "set" in network:
        allowed = "a list of names, without `scenario` and `set`"
        raise TrainingError(f"{where}: members = {members!r}: allowed: {allowed}")
    for name in members:
        if name not in known:
            raise TrainingError(f"{where}: members: {name!r}: allowed: {', '.join(known)}")
    return tuple(own for name in members for own in known[name])


def config_of(table: Mapping[str, object], where: str) -> Config:
    """Settings of the learner; what the table does not name is as `Config` has it.

    Raises:
        TrainingError: if a key is unknown or a value not allowed.
    """
    config = settings(Config(), table, where)
    return replace(config, row_every=min(config.row_every, config.epochs))


def train(
    recipe: Recipe, folder: Path, *, resume: bool = False, progress: Progress = quiet
) -> HostTrained:
    """Train an agent.

    Args:
        recipe: what to learn, and how.
        folder: where checkpoints and TensorBoard's files go.
        resume: go on from the last checkpoint there, if there is one.
        progress: told about epochs.

    Raises:
        TrainingError: if the recipe does not fit the scenario, or the checkpoint not the recipe.
    """
    scenarios = [network.parsed() for network in recipe.networks]
    try:
        settings = recipe.settings(scenarios)
        host = SimulatedHost(scenarios, settings, learners=recipe.learners, seed=recipe.seed)
        place = Checkpoints(folder, fingerprint(recipe, scenarios), resume)
        log = TrainingLog(ddpg.COLUMNS, place, progress)
        wall, cpu = time.monotonic(), time.process_time()
        try:
            trained = ddpg.train(host, recipe.config, recipe.seed, log)
        finally:
            log.close()
    except ValueError as error:
        named = ", ".join(sorted({str(network.scenario) for network in recipe.networks}))
        raise TrainingError(f"{named}: {error}") from None
    if trained.updates == 0:
        raise TrainingError(
            f"{recipe.config.epochs} epochs, {recipe.config.warmup} of them without an update: "
            "nothing was learnt; allowed: more training.epochs"
        )
    return HostTrained(
        recipe=recipe,
        settings=settings,
        networks=trained.networks,
        curve=log.csv(),
        episodes=trained.episodes,
        updates=trained.updates,
        packets=host.packets,
        wall_s=time.monotonic() - wall,
        cpu_s=time.process_time() - cpu,
    )


def fingerprint(recipe: Recipe, scenarios: Sequence[_core.Scenario]) -> str:
    """Identifies a training; a checkpoint can be resumed if its fingerprint is equal."""
    parts = {
        "sources": [scenario.canonical() for scenario in scenarios],
        "host": dict(recipe.host),
        "learners": recipe.learners,
        "seed": recipe.seed,
        "config": asdict(recipe.config),
        "code": _core.CODE_HASH,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _seed(value: object, where: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise TrainingError(f"{where}: seed = {value!r}: allowed: a whole number from 0")
    return value
