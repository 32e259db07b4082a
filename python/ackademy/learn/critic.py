"""What a critic of its own sees beside the observation: the truth of the simulation, scaled.

Only the value of a training sees it; a deployed policy has no value (asymmetric actor and critic,
Pinto et al., RSS 2018; Astraea, EuroSys 2024, for congestion control). All scalings are *proposed*.
"""

from __future__ import annotations

import numpy as np

from ackademy import _core
from ackademy.envs.metrics import COLUMNS as METRICS
from ackademy.learn.episode_source import F32, F64, I64

TRUTH = tuple(_core.truth_columns())
"""columns of truth"""
COLUMNS = (*TRUTH, *METRICS)
"""of a row that `inputs` takes: the truth, and the metrics of the same interval"""
CLASSES = 16
"""most classes of a distribution that are told apart; the others count as the last"""
WIDTH = 15 + CLASSES
"""numbers that a critic sees"""
PACKET_BITS = 12_000.0
LEAST = 1e-3
"""least number under a logarithm"""


def inputs(rows: F32) -> F32:
    """What the critic sees of rows of truth and metrics.

    Args:
        rows: shape (m, `len(COLUMNS)`).

    Returns:
        Shape (m, `WIDTH`), about within [-3, 3].
    """

    def of(name: str) -> F64:
        return rows[:, COLUMNS.index(name)].astype(np.float64)

    def log(values: F64) -> F64:
        return np.log(np.maximum(values, LEAST))

    def log1p(values: F64) -> F64:
        return np.log1p(np.maximum(values, 0.0))

    base_rtt_ms = np.maximum(of("base_rtt_ms"), LEAST)
    bdp_packets = of("capacity_mbps") * base_rtt_ms * 1e3 / PACKET_BITS
    numbers = [
        log(of("capacity_mbps")) / 4,
        log(of("fair_mbps")) / 4,
        log(base_rtt_ms / 50) / 3,
        log(of("buffer_bdp")) / 3,
        log(of("own_kind_flows")) / 2,
        log1p(of("loss_based_flows")),
        log1p(of("bbr_flows")),
        of("random_loss") * 20,
        of("congestion_loss") * 5,
        of("utilisation"),
        log1p(of("queue_ms") / base_rtt_ms),
        log1p(of("own_queue_ms") / base_rtt_ms),
        of("intervals_since_event") / 64,
        log(of("throughput_mbps")) - log(of("fair_mbps")),
        log(of("cwnd_packets")) - log(bdp_packets),
    ]
    scaled = np.clip(np.stack(numbers, axis=1), -3.0, 3.0)
    one_hot = classes(rows)[:, None] == np.arange(CLASSES)
    return np.concatenate([scaled, one_hot], axis=1, dtype=np.float32)


def classes(rows: F32) -> I64:
    """Class of the scenario of each row, in [0, `CLASSES`).

    Args:
        rows: as for `inputs`.

    Returns:
        Shape (m,).
    """
    column = rows[:, COLUMNS.index("class")]
    return np.clip(column, 0, CLASSES - 1).astype(np.int64)
