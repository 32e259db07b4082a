"""The fluid model of Zhang's LearningCC (equations 7 to 11), and the square-root law beside it.

Windows follow their mean: each acknowledgement adds (1 - p) α / w and takes p times the decrement.
"""

from __future__ import annotations

import math


def reno_rate(rtt_s: float, event_ratio: float, beta: float = 0.5) -> float:
    """Equation 9: packets per second of a Reno flow.

    Args:
        rtt_s: round trip; > 0.
        event_ratio: congestion events over packets, p; in (0, 1].
        beta: part of the window that an event takes away (the letter's β); in (0, 1].
    """
    return math.sqrt((1.0 - event_ratio) / (beta * event_ratio)) / rtt_s


def learningcc_rate(
    rtt_s: float, min_rtt_s: float, event_ratio: float, alpha: float, beta_l: float = 0.9
) -> float:
    """Equation 11: packets per second of a LearningCC flow, its bandwidth taken for its rate.

    Args:
        rtt_s: round trip; > 0.
        min_rtt_s: its minimum; in (0, rtt_s].
        event_ratio: congestion events over packets, p; in (0, 1].
        alpha: mean growth, packets per round trip; > 0.
        beta_l: part of the bandwidth-delay product that an event leaves; in (0, 1).
    """
    spread = rtt_s * (rtt_s - beta_l * min_rtt_s)
    return math.sqrt(alpha * (1.0 - event_ratio) / event_ratio / spread)


def square_root_rate(rtt_s: float, loss_ratio: float) -> float:
    """Packets per second by √(3 / 2p) / rtt (Mathis et al. 1997), an acknowledgement per packet."""
    return math.sqrt(1.5 / loss_ratio) / rtt_s
