"""TCP-Drinc's reward with a delay that counts enough for five flows.

U = ln x − δ·ln(RTT) of each flow's own. On a full link of n equal flows a larger window gains as
long as n > 1 + δ: the larger share is a flow's own, the longer queue is everybody's. With δ = 1, as
proposed, that begins with the third flow; δ = 5 holds for five. Chosen after Fig. 3 had been seen
with δ = 1, to test that explanation of it.
"""

from ackademy.envs.metrics import FloatArray, IntervalMetrics
from ackademy.envs.rewards import drinc


def delta5(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """`drinc` with δ = 5; Mb/s, ms."""
    return drinc(metrics, before, delta=5.0)
