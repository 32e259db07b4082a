"""What every environment is made of: a scenario, agent settings, spaces."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ackademy import _core, lookup
from ackademy.backends.runs import read_scenario, read_text
from ackademy.envs.agent_settings import settings_text
from ackademy.envs.metrics import FloatArray
from ackademy.envs.rewarder import Credit, Rewarder
from ackademy.envs.rewards import Reward, find, needs_truth
from ackademy.errors import ScenarioError, TrainingError

Source: TypeAlias = "_core.Scenario | _core.Distribution"
Observation: TypeAlias = npt.NDArray[np.float32]

LINK = """\
# One flow alone on a link of 12 Mb/s and 40 ms with a buffer of one bandwidth-delay product.
duration_s = 30

[dumbbell]
rtt_ms = 40

[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", bdp = 1 }

[[flow]]
name = "learner"
"""
"""the scenario of an environment that was given none; nothing in it is random"""
TOO_MANY = "agents = 1: allowed is at least "
"""begins what the core says where more flows learn than the one agent of an environment"""


def read_source(scenario: str | Path | Source) -> Source:
    """A scenario, or a distribution of scenarios, from a file, a text or itself.

    Args:
        scenario: a file, the text of one (anything with a line break), or one that is parsed. A
            file with `[[scenario]]` tables is a distribution.

    Raises:
        ScenarioError: if it cannot be read or is wrong.
    """
    if isinstance(scenario, _core.Scenario | _core.Distribution):
        return scenario
    is_text = isinstance(scenario, str) and "\n" in scenario
    if is_text:
        return parse_source(str(scenario), "scenario")
    path = file_of(scenario)
    return parse_source(read_text(path), str(path))


def file_of(word: str | Path) -> Path:
    """The file of a named distribution or scenario; a path is returned unchanged.

    Raises:
        ScenarioError: if there is none.
    """
    kind: lookup.Kind = "distribution" if str(word) in lookup.names("distribution") else "scenario"
    return lookup.find(word, kind, ScenarioError)


def parse_source(text: str, origin: str, files: dict[str, bytes] | None = None) -> Source:
    """A scenario, or a distribution of scenarios, from its text.

    Args:
        text: TOML.
        origin: the file it came from; files it names are relative to its folder.
        files: contents of files by the names they have in the text; one that is not there is read,
            and put there.

    Raises:
        ScenarioError: if it is wrong.
    """
    if _is_distribution(text):
        return _core.Distribution.parse(text, origin, files)
    return read_scenario(_core.Scenario.parse(text, origin, files=files))


def _is_distribution(text: str) -> bool:
    try:
        return "scenario" in tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False  # the scenario's parser says what is wrong, and where


def learners_of(source: Source, learner: str | None) -> list[str]:
    """Patterns of the entries that learn.

    Raises:
        TrainingError: if no pattern is given and there are several entries.
    """
    if learner is not None:
        return [learner]
    if isinstance(source, _core.Distribution):
        return source.learners
    if len(source.entries) != 1:
        raise TrainingError(
            f"learner is not given; allowed: a pattern for one of {', '.join(source.entries)}"
        )
    return source.entries


class Opened:
    """The simulations of an environment, their rewards, and the actions that are written to them.

    Args:
        scenario: as `read_source` takes it.
        agent_settings: as `settings_text` takes them.
        reward: a name, `file.py:function`, or a function; what only the simulator knows is
            collected if it needs that.
        learner: pattern for the entries that learn.
        credit: as for `Rewarder`: what is sent in each interval is accounted only for `sent`.
        n: simulations.
        agents: in each; one alone is refused where a distribution may draw several.
        threads: that simulate; 0 for as many as there are cores.
        flat: whether an observation is one row.

    Raises:
        AckademyError: if scenario, agent settings, reward or learner is wrong.
    """

    def __init__(
        self,
        scenario: str | Path | Source,
        agent_settings: str | Path,
        reward: str | Reward,
        learner: str | None,
        credit: Credit,
        *,
        n: int = 1,
        agents: int = 1,
        threads: int = 1,
        flat: bool,
    ) -> None:
        reward = find(reward)
        self.source, self._learner, self._agents = read_source(scenario), learner, agents
        self._check_alone()
        learners, text = learners_of(self.source, learner), settings_text(agent_settings)
        try:
            self.episodes = _core.Episodes(
                self.source, text, n=n, agents=agents, learners=learners, seed=0, threads=threads,
                truth=needs_truth(reward), credit=credit == "sent",
            )  # fmt: skip
        except ValueError as error:
            raise refused(error) from error
        self.rewarder = Rewarder(reward, credit, self.episodes)
        own = self.episodes
        self.observation_space = observation_space(own, flat=flat)
        self.action_space: spaces.Space[Any]
        self.actions: npt.NDArray[Any]
        """of all flows, as `Episodes.step` takes them"""
        if own.n_choices:
            self.action_space = spaces.Discrete(own.n_choices)
            self.actions = np.zeros(own.due.shape, np.int64)
        else:
            self.action_space = spaces.Box(-1.0, 1.0, (own.action_size,), np.float32)
            self.actions = np.zeros((*own.due.shape, own.action_size), np.float32)
        self.is_running = False

    def begin(self, seed: int | None, options: Mapping[str, object] | None) -> None:
        """Begin all episodes, with a seed or with the next ones of the last seed's sequence.

        Args:
            seed: from 0 to 2^64 − 1.
            options: `progress`, a number in [0, 1], is the part of the training that is done, on
                which a distribution's weights may depend; it holds until it is set again. Others
                are ignored.

        Raises:
            TrainingError: if seed or progress is out of range, or a drawn scenario cannot be used
                for training.
        """
        self.is_running = False
        progress = (options or {}).get("progress")
        if progress is not None:
            self._check_alone(progress)
        if seed is not None and not 0 <= seed < 2**64:
            raise TrainingError(f"seed = {seed}: allowed: a whole number from 0 to 2^64 - 1")
        try:
            if progress is not None:
                self.episodes.progress = cast("float", progress)
            self.episodes.reset(seed)
        except (TypeError, ValueError) as error:
            raise refused(error) from error
        self.rewarder.reset()
        self.is_running = True

    def step(self) -> FloatArray:
        """Step all episodes by the actions that were written; the rewards, shape (n, agents).

        Raises:
            TrainingError: if an action is out of range, or a scenario that is drawn for the next
                episode cannot be used for training.
        """
        try:
            self.episodes.step(self.actions)
        except ValueError as error:
            raise refused(error) from error
        return self.rewarder.compute()

    def write(self, row: npt.NDArray[Any], actions: object) -> None:
        """Write the actions of some flows to their part of `actions`.

        Args:
            row: shape (flows,) of choices, or (flows, values).
            actions: of this shape; of one flow without the first dimension.

        Raises:
            TrainingError: if they are not numbers, or choices that are not whole, or of another
                shape.
        """
        given = np.asarray(actions)
        kind, chooses = given.dtype.kind, self.episodes.n_choices > 0
        if chooses and kind not in "iub" and not (kind == "f" and (given == np.trunc(given)).all()):
            raise TrainingError(f"action = {actions!r}: allowed: whole numbers")
        if kind not in "iubf":
            raise TrainingError(f"action = {actions!r}: allowed: numbers")
        try:
            row[...] = given
        except ValueError:
            raise TrainingError(f"actions of shape {given.shape}: allowed: {row.shape}") from None

    def _check_alone(self, progress: object = 0.0) -> None:
        """Refuse a distribution in which several flows may learn, for an environment of one.

        With a pattern of one's own a distribution does not know how many that are: then the drawn
        scenario decides. Scenarios that have no weight at this progress of training are not drawn.
        """
        source = self.source
        is_known = isinstance(progress, int | float)  # else refused where it is set
        if self._agents > 1 or self._learner is not None or not is_known:
            return
        if not isinstance(source, _core.Distribution):
            return
        if (agents := source.agents_at(cast("float", progress))) > 1:
            at = f" at progress {progress:g}" if progress else ""
            raise TrainingError(f"{source.origin}: up to {_one_of(str(agents), at)}")


def refused(error: Exception) -> TrainingError:
    """What to raise for an error of the core, with what to do about too many learning flows."""
    told = str(error)
    if told.startswith(TOO_MANY):
        told = _one_of(told.removeprefix(TOO_MANY).partition(",")[0])
    return TrainingError(told)


def _one_of(agents: str, at: str = "") -> str:
    several = f"SharedFlows(agents={agents}) takes several, learner=... names one"
    return f"{agents} flows learn{at}: allowed: one; {several}"


def observation_space(episodes: _core.Episodes, *, flat: bool) -> spaces.Box:
    """Of one flow: (history, features), or that many numbers in a row."""
    ranges = {name: (low, high) for name, _, _, low, high in _core.observation_features()}
    low, high = np.array([ranges[name] for name in episodes.features], np.float32).T
    rows = episodes.history
    # Rows before the first interval are zeros, whatever a feature's range.
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if flat:
        return spaces.Box(np.tile(low, rows), np.tile(high, rows), dtype=np.float32)
    return spaces.Box(np.tile(low, (rows, 1)), np.tile(high, (rows, 1)), dtype=np.float32)
