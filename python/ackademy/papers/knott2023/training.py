"""Runs Q-learning on CUBIC's beta and stores the data of its figures.

There is a folder per learner, rate and seed. It is named by the hash of everything it depends on:
the recipe, the environment, the transfers and the code that learns.
"""

from __future__ import annotations

import hashlib
import io
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ackademy import installation, sums
from ackademy.errors import ExperimentError, FileError, TrainingError
from ackademy.files import write as write_file
from ackademy.lazy import pl
from ackademy.papers.knott2023.transfers import (
    BETA_UNITS,
    C_GRID,
    C_UNITS,
    DEFAULT_BETA,
    DEFAULT_C,
    Recorded,
    Setting,
    Simulated,
    Transfer,
    beta_grid,
)
from ackademy.source_hash import LEARNING_BETA, source_hash

if TYPE_CHECKING:
    from ackademy.learn.q_table import Log

LAST_EPISODES = 50
"""what counts as the end of learning"""


@dataclass(frozen=True, slots=True)
class Learner:
    """A learner and the transfers it learns on."""

    name: str
    transfers: Simulated | Recorded
    tunes_c: bool = False
    beta_step: float = 0.1
    loss_unit: Literal["percent", "fraction"] = "percent"
    recipe: Mapping[str, float] = field(default_factory=dict)
    """fields of `recipe.Recipe` that differ from its defaults"""

    def settings(self, rate_mbps: float) -> list[Setting]:
        """Every transfer that it may ask for."""
        betas = beta_grid(round(self.beta_step * BETA_UNITS))
        cs = C_GRID if self.tunes_c else (DEFAULT_C,)
        return [Setting(rate_mbps, beta, c) for c in cs for beta in betas]


@dataclass(frozen=True, slots=True)
class Training:
    """The result of one learner with one rate and one seed."""

    episodes: pl.DataFrame
    """a row per episode: reward; refused, throughput, beta with `_low`, `_mean`, `_high`"""
    visits: pl.DataFrame
    """how often each setting was tried: beta_hundredths, c_thousandths, count, late_count"""
    traces: pl.DataFrame
    """beta over the steps of some episodes: episode, step, beta"""


def train(learner: Learner, rate_mbps: float, seed: int, known: Mapping[Setting, Transfer]) -> Log:
    """Learn, on transfers that are all known.

    Raises:
        TrainingError: if Gymnasium is not installed.
    """
    try:
        from ackademy.learn.q_table import learn
        from ackademy.learn.recipe import Recipe
        from ackademy.papers.knott2023.environment import CubicBeta
    except ImportError as error:
        add = installation.add_extra("train")
        raise TrainingError(f"learning needs Gymnasium: install the extra with {add}") from error
    env = CubicBeta(
        rate_mbps,
        ("beta", "c") if learner.tunes_c else ("beta",),
        known.__getitem__,
        learner.beta_step,
        learner.loss_unit,
    )
    return learn(env, Recipe(**dict(learner.recipe)), seed)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Task:
    """A training and where it goes, in a form that another process can read."""

    learner: Learner
    rate_mbps: float
    seed: int
    known: Mapping[Setting, Transfer]
    path: Path


def train_and_save(task: Task) -> None:
    """Learn and keep it; the same bytes in every process.

    Raises:
        TrainingError: if Gymnasium is not installed.
        ExperimentError: if it cannot be written.
    """
    log = train(task.learner, task.rate_mbps, task.seed, task.known)
    save(digest(log), task.path)


def digest(log: Log) -> Training:
    """The data of figures and tables from a log."""
    refused, throughput = log.observations[..., -2], log.observations[..., -1]
    beta = log.observations[..., 0]
    columns = {"reward": log.rewards.sum(axis=1)}
    for name, values in (("refused", refused), ("throughput", throughput), ("beta", beta)):
        columns |= {
            f"{name}_low": values.min(axis=1),
            f"{name}_mean": values.mean(axis=1),
            f"{name}_high": values.max(axis=1),
        }
    return Training(pl.DataFrame(columns), _visits(log), _traces(beta))


def save(training: Training, path: Path) -> None:
    """Write a training whole or not at all.

    Raises:
        ExperimentError: if it cannot be written.
    """
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        scratch.mkdir(parents=True)
        tables = {
            f"{name}.parquet": _parquet(getattr(training, name)) for name in Training.__slots__
        }
        for name, content in {**tables, sums.SUMS: sums.text(tables)}.items():
            write_file(scratch / name, content)
        if not path.is_dir():
            os.rename(scratch, path)
    except OSError as error:
        raise ExperimentError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path) -> Training | None:
    """A training that was saved; `None` if it is not there or cannot be read."""
    try:
        digests = sums.read(path)
        found = [sums.checked(path / f"{name}.parquet", digests) for name in Training.__slots__]
        return Training(*map(pl.read_parquet, found))
    except (FileError, OSError, pl.exceptions.PolarsError):
        return None


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, statistics=False)
    return buffer.getvalue()


def key(learner: Learner, rate_mbps: float, seed: int, transfers: Iterable[Transfer]) -> str:
    """Name of the folder of a training: the hash of all that it depends on."""
    parts = [
        repr((learner.tunes_c, learner.beta_step, learner.loss_unit)),
        repr(sorted(learner.recipe.items())),
        repr((rate_mbps, seed)),
        repr([asdict(transfer) for transfer in transfers]),
        _code_hash(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


@cache
def _code_hash() -> str:
    return source_hash(LEARNING_BETA)


def _visits(log: Log) -> pl.DataFrame:
    beta = np.rint(log.observations[..., 0] * BETA_UNITS).astype(np.int64)
    tunes_c = log.observations.shape[-1] == 4
    c = np.rint(log.observations[..., 1] * C_UNITS) if tunes_c else np.full(beta.shape, DEFAULT_C)
    late = np.zeros(beta.shape, np.int64)
    late[-LAST_EPISODES:] = 1
    steps = pl.DataFrame(
        {
            "beta_hundredths": beta.ravel(),
            "c_thousandths": c.astype(np.int64).ravel(),
            "late": late.ravel(),
        }
    )
    grouped = steps.group_by("beta_hundredths", "c_thousandths").agg(
        count=pl.len(), late_count=pl.col("late").sum()
    )
    return grouped.sort("beta_hundredths", "c_thousandths")


def _traces(beta: np.ndarray) -> pl.DataFrame:
    """Of the first episode, one half-way, and the last."""
    n_episodes, n_steps = beta.shape
    chosen = sorted({0, n_episodes // 2, n_episodes - 1})
    return pl.DataFrame(
        {
            "episode": np.repeat(np.array(chosen) + 1, n_steps),
            "step": np.tile(np.arange(1, n_steps + 1), len(chosen)),
            "beta": beta[chosen].ravel(),
        }
    )


def default_of(rate_mbps: float) -> Setting:
    """The transfer of CUBIC with default parameters at a rate."""
    return Setting(rate_mbps, DEFAULT_BETA, DEFAULT_C)
