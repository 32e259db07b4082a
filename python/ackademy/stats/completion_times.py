"""Flow completion times of many transfers: quantiles and slowdown."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ackademy.backends.tables import Tables
from ackademy.stats.formulas import FloatArray

TRANSFERS_MIN = 20
"""up to so many, each has its row; of more, quantiles are shown"""
QUANTILES = (0.5, 0.9, 0.95, 0.99)
SIZES_BYTES = (0.0, 1e4, 1e5, 1e6, np.inf)
"""ends of the classes that slowdowns are listed by"""


@dataclass(frozen=True, slots=True)
class CompletionTimes:
    """One entry per flow with a finished transfer; a flow with several counts with their mean."""

    fct_ms: FloatArray
    """shape (n,), > 0: from the start of a transfer to the ACK of its last byte at the sender"""
    slowdown: FloatArray
    """shape (n,): `fct_ms` over `ideal_ms`; `nan` where the empty path takes no time"""
    size_bytes: FloatArray
    """shape (n,): delivered, headers included, per transfer"""

    @property
    def n_without_slowdown(self) -> int:
        """Those whose slowdown is not finite."""
        return int(np.count_nonzero(~np.isfinite(self.slowdown)))

    def groups(self) -> list[tuple[str, CompletionTimes]]:
        """All of them, then those of each class of sizes that has some."""
        found = [("all", self)]
        for low, high in itertools.pairwise(SIZES_BYTES):
            inside = (self.size_bytes >= low) & (self.size_bytes < high)
            if inside.any() and not inside.all():
                found.append((_range(low, high), self.only(inside)))
        return found

    def only(self, chosen: np.typing.NDArray[np.bool_]) -> CompletionTimes:
        """Those that a mask of shape (n,) chooses."""
        return CompletionTimes(self.fct_ms[chosen], self.slowdown[chosen], self.size_bytes[chosen])


def completion_times(tables: Tables, duration_s: float) -> CompletionTimes | None:
    """Completion times of a run, if more than `TRANSFERS_MIN` flows finished a transfer.

    Args:
        tables: of the run.
        duration_s: of the run, > 0.

    Returns:
        `None` for fewer.
    """
    transfers, fct_ms = (tables.floats("flows", name) for name in ("transfers", "fct_mean_ms"))
    done = (transfers > 0) & (fct_ms > 0.0)
    if np.count_nonzero(done) <= TRANSFERS_MIN:
        return None
    fct_ms = fct_ms[done]
    size = tables.floats("flows", "delivered_bytes")[done] / transfers[done]
    narrowest = narrowest_bytes_per_ms(tables, duration_s)
    ideal = ideal_ms(size, tables.floats("flows", "base_rtt_ms")[done], narrowest)
    is_known = np.isfinite(ideal) & (ideal > 0.0)
    slowdown = np.divide(fct_ms, ideal, out=np.full_like(ideal, np.nan), where=is_known)
    return CompletionTimes(fct_ms, slowdown, size)


def quantiles(values: FloatArray) -> FloatArray:
    """The `QUANTILES` of those values that are finite; `nan` without any.

    Args:
        values: shape (n,).

    Returns:
        Shape (len(QUANTILES),).
    """
    known = values[np.isfinite(values)]
    return np.quantile(known, QUANTILES) if known.size else np.full(len(QUANTILES), np.nan)


def ideal_ms(size_bytes: FloatArray, base_rtt_ms: FloatArray, bytes_per_ms: float) -> FloatArray:
    """What transfers take alone on the empty path, back to back at the rate of its narrowest link.

    Args:
        size_bytes: shape (n,), headers included.
        base_rtt_ms: shape (n,): propagation only, there and back.
        bytes_per_ms: of the narrowest link; infinite if no link has a rate.

    Returns:
        Shape (n,), at least `base_rtt_ms`.
    """
    return base_rtt_ms + size_bytes / bytes_per_ms


def narrowest_bytes_per_ms(tables: Tables, duration_s: float) -> float:
    """Mean capacity of the narrowest link that carried packets; infinite if none has a capacity."""
    arrived, capacity = (
        tables.floats("links", name) for name in ("arrived_packets", "capacity_bytes")
    )
    used = capacity[(arrived > 0) & (capacity > 0)]
    return float(used.min()) / (1e3 * duration_s) if used.size else np.inf


def _range(low: float, high: float) -> str:
    if low == 0.0:
        return f"below {_bytes(high)}"
    return f"from {_bytes(low)}" if np.isinf(high) else f"{_bytes(low)} to {_bytes(high)}"


def _bytes(size: float) -> str:
    return f"{size / 1e6:g} MB" if size >= 1e6 else f"{size / 1e3:g} kB"
