"""How well a forest tells losses apart: F1 as a function of the decision threshold (Fig. 1c)."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from ackademy.csv_text import csv_text
from ackademy.learn.lp_tcp.forest import FloatArray, Labels

GRID = tuple(round(0.02 * step, 2) for step in range(1, 50))
"""0.02, 0.04, ..., 0.98: every th₀ that the paper prints is a multiple of 0.02"""


@dataclass(frozen=True, slots=True)
class Score:
    """What a threshold does on rows the forest has not seen."""

    threshold: float
    """of the forest's output, as LP-TCP compares it"""
    probability: float
    """of a loss among all packets that this output stands for"""
    precision: float
    recall: float
    f1: float
    """harmonic mean of both; 0 if nothing is found"""


@dataclass(frozen=True, slots=True)
class Weights:
    """How many delivered packets each row of them stands for: rows of them are samples."""

    scored: float
    """among the rows scored on; counted once each they would flatter precision"""
    fitted: float
    """among the rows fitted to, which are thinned further: what the forest's output depends on"""


def curve(output: FloatArray, dropped: Labels, weights: Weights) -> tuple[Score, ...]:
    """The F1 curve on `GRID`; a packet is called lost where the output is at least the threshold.

    Args:
        output: of the forest, shape (rows,).
        dropped: whether each row's packet was lost, shape (rows,).
        weights: of rows of delivered packets.
    """
    scores = []
    for threshold in GRID:
        called = output >= threshold
        hits = float(np.count_nonzero(called & dropped))
        alarms = weights.scored * float(np.count_nonzero(called & ~dropped))
        losses = float(np.count_nonzero(dropped))
        precision = hits / (hits + alarms) if hits else 0.0
        recall = hits / losses if losses else 0.0
        f1 = 2 * hits / (hits + alarms + losses) if hits else 0.0
        probability = corrected(threshold, weights.fitted)
        scores.append(Score(threshold, probability, precision, recall, f1))
    return tuple(scores)


def best(scores: tuple[Score, ...]) -> Score:
    """The score with the largest F1, of equal ones that with the smallest threshold: th₀."""
    return max(scores, key=lambda score: (score.f1, -score.threshold))


def corrected(output: float, negatives_per_row: float) -> float:
    """The forest's output as the probability of a loss among all packets, not among the sample.

    The odds of a loss in the sample fitted to are `negatives_per_row` times those on the wire.
    """
    return output / (output + negatives_per_row * (1.0 - output))


def to_csv(scores: tuple[Score, ...]) -> str:
    """One line per threshold: threshold, probability, precision, recall, f1."""
    rows = []
    for score in scores:
        numbers = (score.probability, score.precision, score.recall, score.f1)
        rows.append([f"{score.threshold:.2f}", *(f"{value:.6f}" for value in numbers)])
    return csv_text(["threshold", "probability", "precision", "recall", "f1"], rows)


def from_csv(text: str) -> tuple[Score, ...]:
    """Read what `to_csv` wrote.

    Raises:
        KeyError: if a column is missing.
        ValueError: if a value is not a number.
    """
    fields = ("threshold", "probability", "precision", "recall", "f1")
    rows = csv.DictReader(io.StringIO(text))
    return tuple(Score(*(float(row[field]) for field in fields)) for row in rows)
