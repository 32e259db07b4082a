"""Offline data: what flows observed, did and got, as a data set that Minari reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ackademy import _core, files, interrupts, lookup
from ackademy.backends import controllers, guests
from ackademy.backends.runs import python_controllers
from ackademy.backends.schemes import Scheme
from ackademy.envs.agent_settings import NAMED
from ackademy.envs.metrics import COLUMNS, TRUTH_COLUMNS, FloatArray, IntervalMetrics
from ackademy.envs.rewarder import judge
from ackademy.envs.rewards import Reward, needs_truth, team_share
from ackademy.errors import AckademyError, ControllerError, TrainingError
from ackademy.policies.policy_files import tables_text
from ackademy.runner import cases
from ackademy.runner.cases import Case, Plan
from ackademy.toml_table import TomlTable

MINARI_VERSION = "0.5.0"
"""of the format that is written; every later 0.5 reads it"""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*-v[0-9]+")
"""of a data set, without a namespace"""
SETTINGS = "agent.toml"
DOUBLED = 1.0
"""change of the window by an action of 1, a power of two (*proposed*)"""
ANY = """\
duration_s = 1
[dumbbell]
rtt_ms = 40
bottleneck = { rate_mbps = 12 }
[[flow]]
name = "own"
"""
"""a network by which settings are checked"""
WINDOW_MIN = 1e-6
"""packets, under a logarithm"""
MAPS = ("cwnd_factor", "rate_and_cwnd")
"""action maps whose values a change of window and rate is"""
EVERY = re.compile(r"(?P<ms>[0-9.]+)ms")

Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Settings:
    """What is observed, when decisions are, and what an action is."""

    tables: Mapping[str, Mapping[str, Any]]
    """the five of a learned controller"""

    @property
    def text(self) -> str:
        """As TOML."""
        return tables_text(self.tables)

    @property
    def features(self) -> list[str]:
        """Names of a vector's numbers."""
        return list(self.tables["observation"]["features"])

    @property
    def history(self) -> int:
        """Vectors of an observation."""
        return int(self.tables["observation"].get("history", 64))

    @property
    def has_rate(self) -> bool:
        """Whether an action changes the rate, too."""
        return bool(self.tables["action"]["map"] == "rate_and_cwnd")

    @property
    def scale(self) -> float:
        """Change by an action of 1, a power of two."""
        return float(self.tables["action"]["scale"])


@dataclass(frozen=True, slots=True)
class Task:
    """A run that is to be recorded."""

    case: Case
    scheme: Scheme
    class_index: int


@dataclass(frozen=True, slots=True)
class Episode:
    """What one flow observed, did and got; of n decisions."""

    attributes: Mapping[str, str | int]
    observations: Rows
    """(n + 1, history, features)"""
    actions: Rows
    """(n, values)"""
    rewards: FloatArray
    """(n,)"""
    metrics: FloatArray
    """(n + 1, 17)"""
    truth: FloatArray
    """(n + 1, 16)"""


def settings(observation: str, every: str) -> Settings:
    """What a word or a file says is observed.

    Args:
        observation: a name of `agent_settings.NAMED`, a policy, a file or a recipe with the tables
            of a learned controller, or features separated by commas.
        every: `srtt`, `min_rtt`, or a time such as `20ms`; empty: what the observation says.

    Raises:
        AckademyError: if there is no such thing, or it is wrong; one line.
    """
    found = _tables(observation)
    decision = dict(found.get("decision", {"every": "srtt"}))
    if every:
        timed = EVERY.fullmatch(every)
        if timed is None and every not in ("srtt", "min_rtt"):
            raise TrainingError(f"--every {every!r}: allowed: srtt, min_rtt, or a time as in 20ms")
        decision = {"every": "time", "min_ms": float(timed["ms"])} if timed else {"every": every}
    action = found.get("action", {})
    if action.get("map") not in MAPS:
        action = {"map": MAPS[0], "scale": DOUBLED}
    start = {"slow_start": False, "loss_guard": False}
    tables = {
        "observation": found["observation"],
        "decision": decision,
        "action": {"scale": 0.025, **action},
        "start": start,
    }
    own = Settings(tables)
    try:
        _core.Episodes(
            _core.Scenario.parse(ANY, "scenario"), own.text, n=1, agents=1, learners=["*"], seed=0
        )
    except ValueError as error:
        raise TrainingError(f"--observation {observation}: {error}") from error
    return own


def _tables(word: str) -> dict[str, dict[str, Any]]:
    policy = lookup.policy_folder(word)
    if word in NAMED:
        return tomllib.loads(NAMED[word])
    if policy is not None:
        return tomllib.loads(_policy(policy))
    if word.endswith(".toml") or word in lookup.names("recipe"):
        table = TomlTable.read(lookup.find(word, "recipe", TrainingError))
        for name in ("observation", "decision"):
            table.table(name)
        return dict(table.values)  # type: ignore[arg-type]  # the core says what is wrong with it
    known = [name for name, *_ in _core.observation_features()]
    features = [name.strip() for name in word.split(",")]
    for name in features:
        if name not in known:
            near = ", ".join(lookup.similar(name, known) or known)
            names = ", ".join(NAMED)
            allowed = f"{names}, a policy, a TOML file, a recipe, or features such as {near}"
            raise TrainingError(f"--observation {name!r}: allowed: {allowed}")
    return {"observation": {"features": features, "history": 1}}


def _policy(folder: Path) -> str:
    try:
        return _core.Policy.open(folder).agent_settings
    except ValueError as error:
        raise TrainingError(f"--observation {folder}: {error}") from error


def tasks(found: Sequence[Case], schemes: Sequence[Scheme]) -> list[Task]:
    """Every scheme on every network, network by network.

    Raises:
        ControllerError: if one instance of a scheme governs all connections of a host.
    """
    scopes = {own["name"]: own["scope"] for own in _core.controllers()}
    for scheme in schemes:
        if scopes.get(str(scheme.controller)) == "host":
            allowed = "schemes of which each connection has its own instance"
            raise ControllerError(f"record {scheme.label}: allowed: {allowed}")
    groups = sorted({case.group for case in found})
    return [Task(case, scheme, groups.index(case.group)) for case in found for scheme in schemes]


def episodes(task: Task, own: Settings, reward: Reward) -> list[Episode]:
    """Run a scheme on a network; an episode for each of its flows that decided.

    Raises:
        AckademyError: if it cannot be run.
    """
    cell = cases.cells(task.case, task.scheme, Plan(1))[0]
    scenario = cell.scenario()
    beside = Path(scenario.origin).parent
    classes = {name: controllers.load(name, beside) for name in python_controllers(scenario)}
    try:
        tables, seen = _core.watch(
            scenario,
            cell.seed,
            own.text,
            watched=list(task.case.flows),
            class_index=task.class_index,
            python_controllers=classes or None,
            guests=guests.libraries(scenario.controllers),
        )
    except ValueError as error:
        raise AckademyError(f"{scenario.origin}: {error}") from error
    flows = [flow for flow in seen if len(flow["metrics"]) > 1]
    rewards = _rewards(reward, flows)
    names = tables["flows"]["flow"]
    told: dict[str, str | int] = {
        "scheme": task.scheme.label,
        "network": task.case.name,
        "class": task.case.group,
        "seed": cell.seed,
    }
    return [
        _episode({**told, "flow": names[flow["flow"]]}, flow, own, earned)
        for flow, earned in zip(flows, rewards, strict=True)
    ]


def _episode(
    told: Mapping[str, str | int], flow: _core.Seen, own: Settings, rewards: FloatArray
) -> Episode:
    metrics = flow["metrics"]
    actions = _actions(metrics, own)
    rows = _completed(flow["observation"], metrics, actions, own.features)
    padded = np.concatenate([np.zeros((own.history - 1, rows.shape[1]), np.float32), rows])
    windows = np.lib.stride_tricks.sliding_window_view(padded, own.history, axis=0)
    return Episode(
        told, np.ascontiguousarray(windows.transpose(0, 2, 1)), actions, rewards, metrics,
        flow["truth"],
    )  # fmt: skip


def _actions(metrics: FloatArray, own: Settings) -> Rows:
    """What the scheme did from one decision to the next, as values of the action map."""
    columns = ("pacing_mbps", "cwnd_packets") if own.has_rate else ("cwnd_packets",)
    changes = []
    for name in columns:
        value = metrics[:, COLUMNS.index(name)]
        known = np.maximum(value, WINDOW_MIN)
        change = np.log2(known[1:] / known[:-1])
        is_set = (value[1:] > 0.0) & (value[:-1] > 0.0)
        changes.append(np.where(is_set, change, 0.0) / own.scale)
    return np.clip(np.stack(changes, axis=1), -1.0, 1.0).astype(np.float32)


def _completed(rows: Rows, metrics: FloatArray, actions: Rows, features: Sequence[str]) -> Rows:
    """The latest vector of each observation, with what depends on the scheme's window."""
    values = _of_window(dict(zip(COLUMNS, metrics.T, strict=True)))
    before = np.concatenate([np.zeros((1, actions.shape[1])), actions])
    values |= {
        "action_0": before[:, 0],
        "action_1": before[:, 1] if before.shape[1] > 1 else np.zeros(len(before)),
    }
    ranges = {name: (low, high) for name, _, _, low, high in _core.observation_features()}
    found = rows[:, -len(features) :].copy()
    for place, name in enumerate(features):
        if name in values:
            found[:, place] = np.clip(values[name], *ranges[name])
    return found


def _of_window(told: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """The features that depend on window or pacing rate, before they are cut to their ranges."""
    cwnd, best = told["cwnd_packets"], np.maximum.accumulate(told["throughput_mbps"])
    most = int(np.argmax(told["acked_packets"]))
    acked_mb = told["throughput_mbps"][most] * told["duration_s"][most]
    cwnd_mb = cwnd * _ratio(acked_mb, told["acked_packets"][most])
    path_mb = best * told["flow_min_rtt_ms"] / 1e3
    unpaced = _ratio(cwnd_mb, told["srtt_ms"] / 1e3)
    pacing = _ratio(np.where(told["pacing_mbps"] > 0.0, told["pacing_mbps"], unpaced), best)
    return {
        "cwnd": np.log(np.maximum(cwnd, 1.0)) / 10.0,
        "cwnd_change": np.diff(cwnd, prepend=cwnd[:1]) / 10.0,
        "inflight_ratio": _ratio(told["inflight_packets"], cwnd),
        "acked_ratio": _ratio(told["acked_packets"], cwnd),
        "cwnd_ratio": 0.8 * _ratio(cwnd_mb, path_mb),
        "bdp_ratio": _ratio(path_mb, cwnd_mb),
        "pacing_ratio": pacing,
        "pacing_ratio_2": pacing,
    }


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> FloatArray:
    """Their quotient; 0 where `whole` is not above 0."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    is_so = whole > 0.0
    return np.where(is_so, part / np.where(is_so, whole, 1.0), 0.0)


def _rewards(function: Reward, flows: Sequence[_core.Seen]) -> list[FloatArray]:
    """The reward of each decision, as `envs.rewarder.Rewarder` has it with `arrived`."""
    own = []
    for flow in flows:
        rows = flow["metrics"]
        best = np.maximum.accumulate(rows[:, COLUMNS.index("throughput_mbps")])
        truth = flow["truth"][1:] if needs_truth(function) else None
        after = IntervalMetrics(rows[1:], best[1:], truth)
        earned = np.array(judge(function, after, IntervalMetrics(rows[:-1], best[:-1])), np.float64)
        last = rows[-1]
        if last[COLUMNS.index("acked_packets")] + last[COLUMNS.index("lost_packets")] <= 0.0:
            earned[-1] = np.nan if needs_truth(function) else 0.0
        own.append(earned)
    share = team_share(function)
    if share <= 0.0:
        return [np.nan_to_num(earned) for earned in own]
    times = [flow["metrics"][1:, 0] for flow in flows]
    return [
        np.where(np.isnan(earned), 0.0, earned + share * (_least(own, times, place) - earned))
        for place, earned in enumerate(own)
    ]


def _least(own: Sequence[FloatArray], times: Sequence[FloatArray], place: int) -> FloatArray:
    """The least of the latest rewards of a run's flows at the times of one of them."""
    least = own[place].copy()
    for earned, known in zip(own, times, strict=True):
        filled = _filled(earned)
        at = np.searchsorted(known, times[place], side="right") - 1
        is_there = (at >= 0) & (times[place] < known[-1])
        least = np.fmin(least, np.where(is_there, filled[np.maximum(at, 0)], np.nan))
    return least


def _filled(values: FloatArray) -> FloatArray:
    """With each NaN replaced by the latest number before it."""
    places = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(places >= 0, values[np.maximum(places, 0)], np.nan)


def check_name(out: Path) -> None:
    """Find out before the work whether a data set can be written to this folder.

    Raises:
        AckademyError: if Minari does not read its name, or it is there.
    """
    if not NAME.fullmatch(out.name):
        raise AckademyError(f"--out {out}: allowed: a name that ends in -v and a number: mine-v0")
    if out.exists() or out.is_symlink():
        raise AckademyError(f"--out {out}: it is there; allowed: a new folder")
    files.check_output_folder(out)


def write(
    out: Path,
    todo: Sequence[Task],
    own: Settings,
    reward: Reward,
    jobs: int,
    told: Callable[[int, int], None],
    about: Mapping[str, object],
) -> tuple[int, int]:
    """Record runs as a data set, whole or not at all; the number of episodes and of decisions.

    Args:
        out: folder that is made.
        todo: runs, in the order of the episodes.
        own: what is observed.
        reward: of each decision.
        jobs: runs at a time.
        told: called with the runs done and all there are.
        about: further fields of the metadata.

    Raises:
        AckademyError: if a run cannot be made, or no flow decides.
        FileError: if the folder cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        (scratch / "data").mkdir()
        counts = _episodes(scratch / "data" / "main_data.hdf5", todo, own, reward, jobs, told)
        if counts[0] == 0:
            raise AckademyError("record: no flow decided: allowed: networks on which one does")
        size = (scratch / "data" / "main_data.hdf5").stat().st_size
        text = json.dumps(_metadata(out.name, own, counts, size, about), indent=1) + "\n"
        files.write(scratch / "data" / "metadata.json", text)
        files.write(scratch / SETTINGS, own.text)
        scratch.chmod(0o755)
        os.rename(scratch, out)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return counts


def _episodes(
    path: Path,
    todo: Sequence[Task],
    own: Settings,
    reward: Reward,
    jobs: int,
    told: Callable[[int, int], None],
) -> tuple[int, int]:
    count = steps = 0
    with h5py.File(path, "w") as file, ThreadPoolExecutor(jobs) as pool:
        for done, found in enumerate(_results(pool, todo, own, reward, jobs)):
            for episode in found:
                _put(file.create_group(f"episode_{count}"), count, episode)
                count, steps = count + 1, steps + len(episode.actions)
            told(done + 1, len(todo))
    return count, steps


def _results(
    pool: ThreadPoolExecutor, todo: Sequence[Task], own: Settings, reward: Reward, jobs: int
) -> Iterator[list[Episode]]:
    """What runs gave, in their order; a few are kept waiting."""
    left = iter(todo)
    waiting = [pool.submit(episodes, task, own, reward) for task in islice(left, 2 * jobs)]
    try:
        while waiting:
            interrupts.check()
            yield waiting.pop(0).result()
            waiting += [pool.submit(episodes, task, own, reward) for task in islice(left, 1)]
    finally:
        for one in waiting:
            one.cancel()


def _put(group: h5py.Group, number: int, episode: Episode) -> None:
    steps = len(episode.actions)
    group.attrs.update({"id": number, "total_steps": steps, **episode.attributes})
    ends = np.zeros(steps, np.bool_)
    ends[-1] = True
    columns: dict[str, npt.NDArray[Any]] = {
        "observations": episode.observations,
        "actions": episode.actions,
        "rewards": episode.rewards,
        "terminations": np.zeros(steps, np.bool_),
        "truncations": ends,
    }
    for kind, names in (("metrics", COLUMNS), ("truth", TRUTH_COLUMNS)):
        rows: FloatArray = getattr(episode, kind)
        for place, name in enumerate(names):
            columns[f"infos/{kind}/{name}"] = rows[:, place]
    for name, values in columns.items():
        group.create_dataset(
            name, data=values, maxshape=(None, *values.shape[1:]), chunks=values.shape,
            compression="gzip", compression_opts=1, shuffle=True,
        )  # fmt: skip


def _metadata(
    name: str,
    own: Settings,
    counts: tuple[int, int],
    size: int,
    about: Mapping[str, object],
) -> dict[str, object]:
    ranges = {feature: (low, high) for feature, _, _, low, high in _core.observation_features()}
    # Rows before the first interval are zeros, whatever a feature's range.
    low = [min(ranges[feature][0], 0.0) for feature in own.features]
    high = [max(ranges[feature][1], 0.0) for feature in own.features]
    observation = _box([[*low]] * own.history, [[*high]] * own.history)
    values = 2 if own.has_rate else 1
    return {
        "dataset_id": name,
        "total_episodes": counts[0],
        "total_steps": counts[1],
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "dataset_size": round(size / 1e6, 1),
        "observation_space": observation,
        "action_space": _box([-1.0] * values, [1.0] * values),
        "minari_version": MINARI_VERSION,
        "agent_settings": own.text,
        **about,
    }


def _box(low: object, high: object) -> str:
    """A space of Gymnasium as Minari writes it: JSON within JSON."""
    shape = list(np.shape(np.asarray(low)))
    fields = {"type": "Box", "dtype": "float32", "shape": shape, "low": low, "high": high}
    return json.dumps(fields)
