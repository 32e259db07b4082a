"""What runs cells, and which cells it leaves to this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ackademy.backends import REAL_TIME
from ackademy.runner.cells import Cell, Outcome, attempt

Engine = Callable[[Sequence[Cell]], Iterator[Outcome]]
"""Yields one outcome per cell, in any order; closing it early ends what is running."""


def kernel_last(simulated: Engine) -> Engine:
    """Cells in virtual time wherever `simulated` puts them, then those in real time, here.

    They share the machine's clock with everything else that runs on it: one at a time.
    """

    def run(cells: Sequence[Cell]) -> Iterator[Outcome]:
        inside = [index for index, cell in enumerate(cells) if cell.backend not in REAL_TIME]
        outcomes = simulated([cells[index] for index in inside]) if inside else iter(())
        try:
            for outcome in outcomes:
                yield replace(outcome, index=inside[outcome.index])
        finally:
            outcomes.close() if hasattr(outcomes, "close") else None
        for index, cell in enumerate(cells):
            if cell.backend in REAL_TIME:
                yield attempt(index, cell)

    return run
