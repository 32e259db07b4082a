"""The training set of a setup: what a NewReno sender knew at each transmission, and its fate.

The paper records 5000 s of NewReno per setup, for a mix as well: whether LP-TCP itself should send
while its data are recorded is circular. A loss is what the bottleneck's queue dropped.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ackademy import _core
from ackademy.backends.runs import read_text
from ackademy.errors import TrainingError
from ackademy.learn.lp_tcp.forest import Features, FloatArray, Labels
from ackademy.learn.lp_tcp.setups import Setup

Phase = Literal["all", "ca"]
"""Which transmissions are recorded: all, as the paper's text says, or those in congestion
avoidance, the only ones that LP-TCP asks about.

Fitted to all, a forest has seen small windows in the overshoot of slow start alone; once a low
threshold has taken LP-TCP there, it holds back everything, for ever. No published threshold does.
"""

ROWS_MAX = 400_000
"""90 megabytes"""


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record."""

    setup: Setup
    seed: int
    duration_s: float = 5000.0
    pieces: int = 0
    """runs that the duration is made of; 0 for `usual_pieces`"""
    phase: Phase = "ca"

    @property
    def seeds(self) -> range:
        """Of the pieces; far from those of experiments, which count from 1."""
        first = SEEDS_PER_RECORDING * (self.seed + 1)
        return range(first, first + (self.pieces or usual_pieces(self.setup)))

    def scenario(self, folder: Path) -> _core.Scenario:
        """The setup's network in `folder`, all senders NewReno.

        Raises:
            ScenarioError: if the scenario cannot be read.
        """
        path = folder / f"{'kong2018_one_sender' if self.setup.senders == 1 else FOUR}.toml"
        overrides = {
            "duration_s": repr(self.duration_s / len(self.seeds)),
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
    """delivered transmissions per row of one, until the rows are thinned"""

    @property
    def n_delivered(self) -> int:
        """Rows of delivered transmissions."""
        return int(np.count_nonzero(~self.dropped))

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

    def delivered_per_row(self, thinned: Sends) -> float:
        """Delivered transmissions that each row of one stands for in `thinned`, of these rows."""
        return self.keep_one_in * self.n_delivered / max(thinned.n_delivered, 1)

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
    return sample(scenario, recording.seeds, recording.phase, label)


def sample(scenario: _core.Scenario, seeds: Sequence[int], phase: Phase, label: str) -> Sends:
    """Transmissions of any network's senders, one run per seed, as `record`; `label` is for errors.

    Raises:
        TrainingError: if nothing is lost.
    """
    counted = [_core.collect_sends(scenario, seed, keep_one_in=COUNT_ONLY) for seed in seeds]
    losses = sum(piece["n_drops"] for piece in counted)
    if losses == 0:
        raise TrainingError(
            f"{label}: no packet is lost in {scenario.duration_s:g} s: nothing to learn"
        )
    delivered = sum(piece["n_sends"] for piece in counted) - losses
    keep_one_in = math.ceil(delivered / max(ROWS_MAX - losses, 1))
    pieces = [_core.collect_sends(scenario, seed, keep_one_in=keep_one_in) for seed in seeds]
    kept = [piece["phase"] == CONGESTION_AVOIDANCE for piece in pieces]
    if phase == "all":
        kept = [np.ones_like(rows) for rows in kept]
    starts = [scenario.duration_s * index for index in range(len(pieces))]
    return Sends(
        features=np.concatenate(
            [p["features"][rows] for p, rows in zip(pieces, kept, strict=True)]
        ),
        dropped=np.concatenate([p["dropped"][rows] for p, rows in zip(pieces, kept, strict=True)]),
        time_s=np.concatenate(
            [start + p["time_s"][rows] for p, rows, start in zip(pieces, kept, starts, strict=True)]
        ),
        n_sends=delivered + losses,
        n_drops=losses,
        keep_one_in=keep_one_in,
    )


def usual_pieces(setup: Setup) -> int:
    """One run where nothing is random; else runs about as long as those of the experiments.

    Within 400 s four NewReno lock into a cycle of 4.6 s that ends with a loss for each of them, and
    in one run of 5000 s a forest would see little else.
    """
    return 1 if setup.senders == 1 else 12


SEEDS_PER_RECORDING = 1000
COUNT_ONLY = 2**31 - 1
CONGESTION_AVOIDANCE = 1
