"""Output of a running training: rows of its curve, TensorBoard files and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import installation
from ackademy.envs.metrics import IntervalMetrics
from ackademy.errors import TrainingError
from ackademy.learn import checkpoint
from ackademy.learn.checkpoint import Checkpoint
from ackademy.learn.episode_source import EpisodeSource
from ackademy.learn.running_reward import RunningReward

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

Progress: TypeAlias = Callable[[int, int, RunningReward], None]
"""called with finished episodes, all episodes and the latest mean reward"""
CHECKPOINT_S = 30.0
"""between checkpoints, at least; *proposed*: a killed training loses about as much"""


def quiet(done: int, total: int, reward: RunningReward) -> None:
    """Do nothing."""


class Means:
    """Means of named values since the last row."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, values: npt.NDArray[np.floating] | float) -> None:
        """Add values; the array may be empty."""
        array = np.asarray(values, np.float64)
        self.add_sum(name, float(array.sum()), array.size)

    def add_sum(self, name: str, total: float, count: int) -> None:
        """Add values of which the sum is known."""
        self._sums[name] = self._sums.get(name, 0.0) + total
        self._counts[name] = self._counts.get(name, 0) + count

    def note(self, env: EpisodeSource, reward: npt.NDArray[np.floating]) -> None:
        """Add new rewards, and the metrics of the due flows."""
        metrics = IntervalMetrics(env.metrics[env.due])
        self.add("reward", reward)
        self.add("throughput_mbps", metrics.throughput_mbps)
        self.add("rtt_ms", metrics.rtt_mean_ms)
        self.add("loss_ratio", metrics.loss_ratio)

    def take(self) -> dict[str, float]:
        """Return the means, 0 without a value, and clear them."""
        means = {name: total / max(1, self._counts[name]) for name, total in self._sums.items()}
        self.clear()
        return means

    def clear(self) -> None:
        """Drop all values."""
        self._sums, self._counts = {}, {}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a training, from which it resumes after a kill."""

    folder: Path
    recipe: str
    """identifies the training: a checkpoint of another one is refused"""
    resume: bool = False
    checkpoint_s: float = CHECKPOINT_S


class TrainingLog:
    """The curve of one training.

    Args:
        columns: of the curve; `episodes` and `reward` among them give the running reward.
        place: where checkpoints and TensorBoard's files go; `None`: nowhere.
        progress: told about episodes.

    Raises:
        TrainingError: if there is a checkpoint to resume from that does not fit.
    """

    def __init__(
        self, columns: tuple[str, ...], place: Checkpoints | None = None, progress: Progress = quiet
    ) -> None:
        self.columns, self._progress = columns, progress
        self.rows: list[tuple[float, ...]] = []
        self.reward = RunningReward()
        self.resumed: Checkpoint | None = None
        self._place = place
        self._board: SummaryWriter | None = None
        self._kept_at = time.monotonic()
        if place is None:
            return
        if place.resume:
            self.resumed = checkpoint.load(place.folder, place.recipe)
        else:
            checkpoint.discard(place.folder)
        if self.resumed is not None:
            self.rows = _rows(self.resumed.curve, columns)
            for row in self.rows:
                self._note(row)
        board = _board_folder(place.folder / "tensorboard", is_new=self.resumed is None)
        self._board = _board(board, self.rows)

    def row(self, values: Mapping[str, float]) -> None:
        """Add a row; the first column is TensorBoard's step."""
        row = tuple(float(values.get(name, 0.0)) for name in self.columns)
        self.rows.append(row)
        self._note(row)
        if self._board is not None:
            for name, value in zip(self.columns[1:], row[1:], strict=True):
                self._board.add_scalar(f"train/{name}", value, int(row[0]))

    def progress(self, done: int, total: int) -> None:
        """Report finished episodes and all episodes."""
        self._progress(done, total, self.reward)

    def keep(
        self,
        step: int,
        state: Mapping[str, int],
        arrays: Callable[[], Mapping[str, npt.NDArray[np.generic]]],
    ) -> None:
        """Write a checkpoint if one is due; call it right after a row."""
        if self._place is None or time.monotonic() - self._kept_at < self._place.checkpoint_s:
            return
        if self._board is not None:
            self._board.flush()
        whole = {"recipe": self._place.recipe, "step": step, **state}
        checkpoint.save(Checkpoint(whole, arrays(), self.csv()), self._place.folder, step)
        self._kept_at = time.monotonic()

    def csv(self) -> str:
        """The curve: the same training gives the same text."""
        lines = [",".join(self.columns)]
        lines += [",".join(_number(value) for value in row) for row in self.rows]
        return "\n".join(lines) + "\n"

    def _note(self, row: tuple[float, ...]) -> None:
        """Add a row to the running reward, if the curve has a reward."""
        named = dict(zip(self.columns, row, strict=True))
        if "episodes" in named and "reward" in named:
            self.reward.add(named["episodes"], named["reward"])

    def close(self) -> None:
        """Write out what TensorBoard still holds."""
        if self._board is not None:
            self._board.close()


def _number(value: float) -> str:
    """Counts as whole numbers, however large; seven digits of what is measured."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.7g}"


def _rows(text: str, columns: tuple[str, ...]) -> list[tuple[float, ...]]:
    head, *lines = text.splitlines()
    if tuple(head.split(",")) != columns:
        raise TrainingError(f"checkpoint: columns {head}: allowed: {','.join(columns)}")
    return [tuple(float(value) for value in line.split(",")) for line in lines]


def _board_folder(folder: Path, *, is_new: bool) -> Path:
    """A folder per training, so that TensorBoard draws each as a run."""
    last = max((int(path.name[4:]) for path in folder.glob("run-[0-9]*")), default=0)
    return folder / f"run-{last + 1 if is_new else max(last, 1):04d}"


def _board(folder: Path, rows: list[tuple[float, ...]]) -> SummaryWriter:
    """TensorBoard's writer; what it holds behind the last row is hidden."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        add = installation.add_extra("train")
        raise TrainingError(f"training needs tensorboardX: install the extra with {add}") from error
    step = int(rows[-1][0]) + 1 if rows else None
    return SummaryWriter(str(folder), purge_step=step)
