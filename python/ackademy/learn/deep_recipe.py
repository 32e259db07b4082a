"""Recipes of deep learners: files with scenario, reward, network and settings of a training."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from ackademy.errors import TrainingError
from ackademy.folders import CHECKOUT_ONLY, is_left_out
from ackademy.learn import dqn, evolution, ppo
from ackademy.learn.layers import Layer, layers_of, tables_of
from ackademy.learn.recipe_toml import NONE, Changes, load, only, settings, table, text
from ackademy.learn.recipe_toml import whole as _whole
from ackademy.policies import policy_files
from ackademy.policies.policy_files import SETTINGS_TABLES, tables_text

Kind: TypeAlias = Literal["dqn", "evolution", "ppo"]
Credit: TypeAlias = Literal["sent", "arrived"]
Config: TypeAlias = dqn.Config | evolution.Config | ppo.Config
CONFIGS: Mapping[str, type[Config]] = {
    "dqn": dqn.Config,
    "evolution": evolution.Config,
    "ppo": ppo.Config,
}
LAWS = ("own_queue", "own_queue_paced")
"""the action maps to which an action of zeros is a controller of its own"""
CORE_REWARDS = frozenset({"flagship"})
"""rewards that follow from the simulator's truth: only native rollouts have them"""
KEYS = (
    "about", "learner", "reward", "credit", "scenario", "learners", "distribution",
    "without_classes", "simulations", "agents", "seed", "teacher", *SETTINGS_TABLES,
    "deployed", "layers", "training", "quick", "selection",
)  # fmt: skip
SEED_MAX, SIMULATIONS_MAX = 2**63 - 1, 65_536
"""largest values of seeds, of simulations and of agents"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A recipe: scenario, reward, agent settings, network and settings of the learner."""

    origin: Path
    """the file, which other files' names are relative to"""
    about: str
    learner: Kind
    reward: str
    """a name or `file.py:function`"""
    credit: Credit
    """what a reward covers: the packets sent in an interval, or those acknowledged in it"""
    source: Path
    """a scenario or a distribution of scenarios"""
    learners: tuple[str, ...] = ()
    """patterns of the entries that learn; none: as the distribution says, or the only entry"""
    without_classes: tuple[str, ...] = ()
    """classes of the distribution that are left out"""
    simulations: int
    """number of parallel simulations"""
    agents: int
    """maximum number of learning flows of one simulation"""
    seed: int
    teacher: Path | None = None
    """folder of a policy whose answers a search begins with"""
    settings: Mapping[str, object]
    """the five tables"""
    deployed: Mapping[str, object] = field(default_factory=dict)
    """fields of the table `action` that the policy has and its training has not"""
    layers: tuple[Layer, ...]
    config: Config

    @property
    def is_native(self) -> bool:
        """Whether the core makes the decisions of a batch; else each is stepped."""
        return self.learner != "dqn"

    @property
    def core_reward(self) -> str | None:
        """The reward, if the core computes it from the truth."""
        return self.reward if self.reward in CORE_REWARDS else None

    @property
    def map(self) -> object:
        """What an action changes."""
        return self._of_action("map")

    @property
    def acts_under_contention_alone(self) -> bool:
        """Whether the actions of the policy count only where others want the link."""
        return self.deployed.get("when", self._of_action("when")) == "contention"

    def _of_action(self, name: str) -> object:
        action = self.settings.get("action")
        return action.get(name) if isinstance(action, Mapping) else None

    @property
    def needs_truth(self) -> bool:
        """Whether the learner sees what only the simulator knows."""
        config = self.config
        return isinstance(config, ppo.Config) and (
            config.critic_units > 0 or config.advantages_per_class or config.class_weight_max > 0.0
        )

    @property
    def policy_about(self) -> str:
        """What the policy is, in a line: the recipe says how it learns, the source on what."""
        left = f" without {', '.join(self.without_classes)}" if self.without_classes else ""
        return f"{self.about}, trained on {self.source.stem}{left}"

    def settings_text(self) -> str:
        """The five tables as TOML."""
        return tables_text(self.settings)

    def deployed_text(self) -> str:
        """The same of the policy that is judged and written."""
        if not self.deployed:
            return self.settings_text()
        action = cast("Mapping[str, object]", self.settings.get("action", {}))
        return tables_text({**self.settings, "action": {**action, **self.deployed}})

    def teacher_digest(self) -> str:
        """Of the policy that a search begins with, without how it was made; there must be one.

        Raises:
            TrainingError: if its files cannot be read.
        """
        assert self.teacher is not None
        try:
            tables = tomllib.loads((self.teacher / policy_files.POLICY).read_text("utf-8-sig"))
            weights = (self.teacher / policy_files.WEIGHTS).read_bytes()
        except (OSError, ValueError) as error:
            raise TrainingError(f"{self.origin}: teacher: {error}") from None
        tables.pop("made", None)
        described = json.dumps(tables, sort_keys=True, default=str).encode()
        return hashlib.sha256(described + weights).hexdigest()

    def fingerprint(self, source_text: str, reward_text: str, code_hash: str) -> str:
        """Identifies a training; a checkpoint can be resumed if its fingerprint is equal."""
        parts = {
            "learner": self.learner,
            "reward": [self.reward.rpartition(":")[2], reward_text],
            "credit": self.credit,
            "source": source_text,
            "learners": self.learners,
            "rollouts": "native" if self.is_native else "stepped",
            "sizes": [self.simulations, self.agents, self.seed],
            "agent_settings": self.settings,
            "layers": tables_of(self.layers),
            **({"teacher": self.teacher_digest()} if self.teacher else {}),
            "config": asdict(self.config),
            "code": code_hash,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def read(path: Path, *, quick: bool = False, changes: Changes = NONE) -> Recipe:
    """The recipe of a file.

    Args:
        path: a TOML file.
        quick: take `[quick]` for the settings of the learner that it names.
        changes: as of `recipe_toml.load`.

    Raises:
        TrainingError: if it cannot be read, or a field is missing, unknown or not allowed.
    """
    return recipe_of(load(path, changes), path, quick=quick)


def recipe_of(values: Mapping[str, object], path: Path, *, quick: bool = False) -> Recipe:
    """The recipe of these fields, as of the file at `path`.

    Raises:
        TrainingError: if a field is missing, unknown or not allowed.
    """
    only(values, KEYS, path)
    learner = _choice(values, "learner", tuple(CONFIGS), path)
    if learner == "evolution":
        _choice(values, "reward", tuple(sorted(CORE_REWARDS)), path)
    training = table(values, "training", path)
    shorter = {**training, **table(values, "quick", path)}
    config_of(learner, shorter, str(path))  # a fault in [quick] is told without --quick, too
    training = shorter if quick else training
    return Recipe(
        origin=path,
        about=text(values, "about", path),
        learner=cast("Kind", learner),
        reward=text(values, "reward", path),
        credit=cast("Credit", _choice(values, "credit", ("sent", "arrived"), path)),
        source=_source(values, path),
        learners=_names(values, "learners", path),
        without_classes=_names(values, "without_classes", path),
        simulations=_whole(values.get("simulations"), "simulations", 1, path, SIMULATIONS_MAX),
        agents=_whole(values.get("agents"), "agents", 1, path, SIMULATIONS_MAX),
        seed=_whole(values.get("seed"), "seed", 0, path, SEED_MAX),
        teacher=_teacher(values, learner, path),
        settings={name: table(values, name, path) for name in SETTINGS_TABLES if name in values},
        deployed=_deployed(values, path),
        layers=layers_of(_tables(values, "layers", path), str(path)),
        config=config_of(learner, training, str(path)),
    )


def config_of(learner: str, table: Mapping[str, object], where: str) -> Config:
    """Settings of a learner; what the table does not name is as `Config` has it.

    Raises:
        TrainingError: if a key is unknown or a value not allowed.
    """
    config = settings(CONFIGS[learner](), table, where)
    if isinstance(config, ppo.Config) and config.horizon % config.minibatch:
        raise TrainingError(
            f"{where}: training.minibatch = {config.minibatch}: allowed: a divisor of "
            f"horizon = {config.horizon}"
        )
    if isinstance(config, evolution.Config) and config.population < 2:
        raise TrainingError(
            f"{where}: training.population = {config.population}: allowed: a whole number from 2"
        )
    return config


def _teacher(values: Mapping[str, object], learner: str, path: Path) -> Path | None:
    if "teacher" not in values:
        if learner == "evolution" and table(values, "training", path).get("last_layer"):
            raise TrainingError(f"{path}: training.last_layer = true: allowed: with a teacher")
        return None
    if learner != "evolution":
        raise TrainingError(f"{path}: teacher: allowed: with learner = 'evolution'")
    teacher = path.parent / text(values, "teacher", path)
    if is_left_out(teacher):
        raise TrainingError(f"{path}: teacher: allowed: a policy that exists; {CHECKOUT_ONLY}")
    return teacher


def _deployed(values: Mapping[str, object], path: Path) -> dict[str, object]:
    found = table(values, "deployed", path)
    only(found, ("when",), f"{path}: deployed")
    return found


def _source(values: Mapping[str, object], path: Path) -> Path:
    given = [key for key in ("scenario", "distribution") if key in values]
    if len(given) != 1:
        raise TrainingError(f"{path}: scenario or distribution: allowed: one of them")
    return path.parent / text(values, given[0], path)


def _names(values: Mapping[str, object], key: str, path: Path) -> tuple[str, ...]:
    names = values.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TrainingError(f"{path}: {key} = {names!r}: allowed: a list of texts")
    return tuple(names)


def _choice(values: Mapping[str, object], key: str, allowed: tuple[str, ...], path: Path) -> str:
    value = values.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise TrainingError(f"{path}: {key} = {value!r}: allowed: {', '.join(allowed)}")
    return value


def _tables(values: Mapping[str, object], key: str, path: Path) -> list[dict[str, object]]:
    tables = values.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise TrainingError(f"{path}: {key} = {tables!r}: allowed: a list of tables")
    return tables
