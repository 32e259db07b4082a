"""Certificates of a policy over `own_queue`, for states that it meets on a distribution."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ackademy import _core
from ackademy.csv_text import csv_text
from ackademy.envs import opening
from ackademy.errors import ExchangeError
from ackademy.policies import bounds, certificates, policy_files
from ackademy.policies.bounds import F64
from ackademy.policies.certificates import WITHOUT_JITTER, Scales, States, Verdict
from ackademy.render.numbers import NONE
from ackademy.render.report import Report, Section, in_text
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, number

SIMULATIONS = 64
AGENTS = 8
"""learning flows of one simulation at most"""
WHOLE = -20.0
"""logarithm of a deviation so small that a drawn action is the policy's answer"""
MAP = "own_queue"


@dataclass(frozen=True, slots=True)
class Certified:
    """What is known of every property."""

    verdicts: tuple[Verdict, ...]
    absent: tuple[str, ...]
    """properties that need a feature which the policy lacks"""
    states: int

    def csv(self) -> str:
        """A row per property."""
        rows = [asdict(own) for own in self.verdicts]
        return csv_text(list(rows[0]) if rows else [], [list(row.values()) for row in rows])

    def json(self) -> str:
        """For programs; a number that there is none for is null."""
        rows = [
            {
                key: None if isinstance(value, float) and not math.isfinite(value) else value
                for key, value in asdict(own).items()
            }
            for own in self.verdicts
        ]
        described = {"states": self.states, "properties": rows, "not_applicable": self.absent}
        return json.dumps(described, indent=2, allow_nan=False) + "\n"


def certify(
    folder: Path,
    distribution: _core.Distribution,
    count: int,
    seed: int,
    told: Callable[[str], None] = lambda _: None,
) -> Certified:
    """Bound the answers of a policy over the boxes of all properties.

    Args:
        folder: of the policy.
        distribution: whose networks, at the end of the training, the recorded states come from.
        count: states to record.
        seed: of the networks and of the points that are drawn from the boxes.
        told: gets the name of the work that begins.

    Raises:
        ExchangeError: if it is no policy of dense layers over own_queue.
    """
    opened = policy_files.open_policy(folder)
    network = bounds.network_of(opened)
    made = tomllib.loads(policy_files.settings_of(folder))["action"]["map"]
    if made != MAP:
        raise ExchangeError(f"{folder}: action.map = {made!r} in policy.toml: allowed is {MAP!r}")
    told("states")
    states = record(folder, distribution, count, seed)
    scales = Scales.of(opened.policy.features)
    verdicts, absent = [], []
    for wanted in certificates.PROPERTIES:
        told(wanted.name)
        found = certificates.verdict_of(wanted, network, states, scales, seed)
        if found is None:
            absent.append(wanted.name)
        else:
            verdicts.append(found)
    return Certified(tuple(verdicts), tuple(absent), len(states.observation))


def record(folder: Path, distribution: _core.Distribution, count: int, seed: int) -> States:
    """States of flows under a policy when they decided, its answers unchanged.

    Raises:
        ExchangeError: if it cannot decide on this distribution.
    """
    files = {
        name: (folder / name).read_bytes() for name in (policy_files.POLICY, policy_files.WEIGHTS)
    }
    try:
        rollouts = _core.Rollouts(
            distribution,
            policy_files.settings_of(folder),
            n=SIMULATIONS,
            agents=AGENTS,
            learners=opening.learners_of(distribution, None),
            seed=seed,
            truth=True,
            reward="flagship",
        )
        rollouts.progress = 1.0
        batch = rollouts.collect(files, np.full(rollouts.action_size, WHOLE, np.float32), count)
    except ValueError as error:
        raise ExchangeError(str(error)) from None
    columns = [*_core.truth_columns(), *_core.interval_metrics()]

    def of(name: str) -> F64:
        return np.asarray(batch["truth"][:, columns.index(name)], np.float64)

    window = of("cwnd_packets")
    return States(
        np.asarray(batch["observation"], np.float64),
        window,
        _earlier(window, batch["stream"], batch["place"]),
        of("inflight_packets"),
        of("acked_packets") / np.maximum(of("duration_s"), 1e-9),
    )


def _earlier(window: F64, stream: npt.NDArray[np.int64], place: npt.NDArray[np.int64]) -> F64:
    """The window at a stream's decision before, or the same one at its first."""
    order = np.lexsort((place, stream))
    first, second = order[:-1], order[1:]
    follows = (stream[first] == stream[second]) & (place[first] + 1 == place[second])
    earlier = window.copy()
    earlier[second[follows]] = window[first[follows]]
    return earlier


HEADS = (
    Head("states", "", "recorded states to which the property applies"),
    Head("coverage", "", "mean share of the bounds that lies where it should"),
    Head("certified", "%", "states without a counterexample in any slice: proved"),
    Head("refuted", "%", "states with a counterexample that was found"),
    Head("worst", "", "largest excess over the limit at a point; 0 or less: none"),
)


def report(name: str, found: Certified, command: str = "") -> Report:
    """A line per property, and what does not apply."""
    absent = [
        in_text(f"{own} does not apply: the policy lacks a feature of it") for own in found.absent
    ]
    lead = (
        "A share is certified if interval arithmetic proves it, and refuted if a drawn point "
        "breaks it; the rest is neither."
    )
    return Report(
        kind="Certificates",
        title=f"certificates of {name}",
        about=f"Properties of a policy for boxes around {found.states} recorded states.",
        sections=[
            Section("properties", "Properties", lead, [sheet(name, found), WITHOUT_JITTER, *absent])
        ],
        command=command,
    )


def sheet(name: str, found: Certified) -> Sheet:
    """A line per property that applies to the policy."""
    lines = [Line((Part(own.name),), _cells(own), remark=own.says) for own in found.verdicts]
    return Sheet(f"certificates of {name}", (Head("property"),), HEADS, tuple(lines))


def _cells(own: Verdict) -> tuple[Cell, ...]:
    return (
        cell(str(own.states)),
        _number(own.coverage, own.coverage),
        _number(100 * own.certified, own.certified),
        _number(100 * own.refuted, own.refuted),
        _number(own.worst, own.worst),
    )


def _number(shown: float, value: float) -> Cell:
    return cell(NONE) if math.isnan(value) else number(shown)
