"""The training set of a setup: what a NewReno sender knew at each transmission, and its fate.

The paper records 5000 s of NewReno per setup, for a mix as well: whether LP-TCP itself should send
while its data are recorded is circular. A loss is what the bottleneck's queue dropped.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ackademy import _core
from ackademy.errors import TrainingError
from ackademy.run import read_text
from ackademy.train.forest import Features, FloatArray, Labels
from ackademy.train.setups import Setup

Phase = Literal["all", "ca"]
"""which transmissions are recorded: all, or those in congestion avoidance"""

ROWS_MAX = 400_000
"""90 megabytes"""


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record."""

    setup: Setup
    seed: int
    duration_s: float = 5000.0
    phase: Phase = "all"

    def scenario(self, folder: Path) -> _core.Scenario:
        """The setup's network in `folder`, all senders NewReno.

        Raises:
            ScenarioError: if the scenario cannot be read.
        """
        path = folder / f"{'kong2018_one_sender' if self.setup.senders == 1 else FOUR}.toml"
        overrides = {
            "duration_s": repr(float(self.duration_s)),
            "dumbbell.bottleneck.queue.packets": str(self.setup.buffer_packets),
            "flow.0.count": str(self.setup.senders),
        }
        return _core.Scenario.parse(read_text(path), str(path), overrides)


FOUR = "kong2018_four_always_on"


@dataclass(frozen=True, slots=True)
class Sends:
    """Transmissions in the order of time: every lost one, and a sample of the delivered."""

    features: Features
    """shape (rows, 55)"""
    dropped: Labels
    """shape (rows,)"""
    time_s: FloatArray
    """shape (rows,): when it was sent"""
    n_sends: int
    """transmissions of which these are the sample"""
    n_drops: int
    """losses among them, all in the sample"""
    keep_one_in: int
    """delivered transmissions per row of one"""

    def split(self, time_s: float) -> tuple[Sends, Sends]:
        """The rows sent before `time_s`, and the others."""
        early = self.time_s < time_s
        return self._of(early), self._of(~early)

    def thinned(self, delivered_per_loss: int, seed: int) -> Sends:
        """Every lost row and a sample of the delivered ones, if there are more than asked for."""
        delivered = np.flatnonzero(~self.dropped)
        wanted = delivered_per_loss * int(np.count_nonzero(self.dropped))
        if wanted >= len(delivered):
            return self
        kept = self.dropped.copy()
        kept[np.random.default_rng(seed).choice(delivered, wanted, replace=False)] = True
        return self._of(kept)

    def to_bytes(self) -> bytes:
        """As an `.npz` file."""
        buffer = io.BytesIO()
        counts = np.array([self.n_sends, self.n_drops, self.keep_one_in])
        np.savez(
            buffer,
            features=self.features,
            dropped=self.dropped,
            time_s=self.time_s,
            counts=counts,
        )
        return buffer.getvalue()

    def _of(self, rows: Labels) -> Sends:
        return replace(
            self,
            features=self.features[rows],
            dropped=self.dropped[rows],
            time_s=self.time_s[rows],
        )

    @classmethod
    def read(cls, path: Path) -> Sends:
        """Read an `.npz` file of `to_bytes`."""
        with np.load(path) as file:
            n_sends, n_drops, keep_one_in = (int(count) for count in file["counts"])
            arrays = (file["features"], file["dropped"], file["time_s"])
            return cls(*arrays, n_sends, n_drops, keep_one_in)


def record(recording: Recording, folder: Path) -> Sends:
    """Simulate twice: to count the transmissions, then to keep `ROWS_MAX` of them.

    Raises:
        TrainingError: if nothing is lost.
        ScenarioError: if the scenario cannot be read.
    """
    scenario, label = recording.scenario(folder), str(recording.setup)
    return sample(scenario, recording.seed, recording.phase, label)


def sample(scenario: _core.Scenario, seed: int, phase: Phase, label: str) -> Sends:
    """Transmissions of any network's senders, as `record`; `label` names it in errors.

    Raises:
        TrainingError: if nothing is lost.
    """
    counted = _core.collect_sends(scenario, seed, keep_one_in=COUNT_ONLY)
    losses = int(counted["n_drops"])
    if losses == 0:
        raise TrainingError(
            f"{label}: no packet is lost in {scenario.duration_s:g} s: nothing to learn"
        )
    delivered = int(counted["n_sends"]) - losses
    keep_one_in = math.ceil(delivered / max(ROWS_MAX - losses, 1))
    found = _core.collect_sends(scenario, seed, keep_one_in=keep_one_in)
    kept = found["phase"] == CONGESTION_AVOIDANCE
    if phase == "all":
        kept[:] = True
    return Sends(
        features=found["features"][kept],
        dropped=found["dropped"][kept],
        time_s=found["time_s"][kept],
        n_sends=int(found["n_sends"]),
        n_drops=int(found["n_drops"]),
        keep_one_in=keep_one_in,
    )


COUNT_ONLY = 2**31 - 1
CONGESTION_AVOIDANCE = 1
