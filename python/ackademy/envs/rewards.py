"""Reward functions of the literature: the reward of a flow for an interval.

A reward is a function of what the interval measured and of what the interval before it did. Both
hold one row per flow that gets a reward; the result has one number per row.

def patient(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    return metrics.throughput_mbps - 0.1 * metrics.rtt_ms

A function with `needs_truth = True` as an attribute also gets `metrics.truth`, which only the
simulator knows, and may return NaN for an interval that is unrewarded. If it has a `team_share`
too, a flow gets that part of the least reward of all flows that learn in its simulation, and the
rest itself (`Rewarder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, cast

import numpy as np

from ackademy import _core, lookup, user_code
from ackademy.envs.metrics import PACKET_BITS, SHORTEST_S, FloatArray, IntervalMetrics
from ackademy.errors import TrainingError

Reward: TypeAlias = Callable[[IntervalMetrics, IntervalMetrics], FloatArray]

ARGUMENTS = ("metrics", "before")
"""that a reward function is called with"""
MIN_DELAY_MS = 0.1
"""least queueing delay under a logarithm; *proposed*"""
MAX_LOSS = 0.999
"""highest loss ratio under a logarithm of what is left; *proposed*"""


def rl_tcp(
    metrics: IntervalMetrics,
    before: IntervalMetrics,
    *,
    delta_1: float = 0.01,
    delta_2: float = 0.1,
) -> FloatArray:
    """RL-TCP: 10, 2, −2 or −10 by the change of a utility.

    U = ln(tp) − δ₁·ln(d) + δ₂·ln(1 − p), tp the throughput, d the mean round trip above the flow's
    least in ms, p the loss ratio. The result is 10 where U − U_before ≥ 1, 2 from 0 up to 1, −2
    from −1 up to 0, −10 below.

    Source: Kong, Zang, Ma, "Improving TCP Congestion Control with Machine Intelligence",
    NetAI 2018; (δ₁, δ₂) as in its Table 4. The bounds under the logarithms are *proposed*.
    """

    def utility(of: IntervalMetrics) -> FloatArray:
        delay = np.maximum(of.rtt_ms - of.flow_min_rtt_ms, MIN_DELAY_MS)
        kept = 1.0 - np.minimum(of.loss_ratio, MAX_LOSS)
        return np.log(_throughput(of)) - delta_1 * np.log(delay) + delta_2 * np.log(kept)

    change = utility(metrics) - utility(before)
    rungs = [change >= 1.0, change >= 0.0, change >= -1.0]
    return np.select(rungs, [10.0, 2.0, -2.0], -10.0)


def q_tcp(
    metrics: IntervalMetrics,
    before: IntervalMetrics,
    *,
    delta: float = 1.0,
    dead_zone: float = 1e-3,
) -> FloatArray:
    """Q-TCP: the sign of the change of a utility, times 2.

    U = ln(tp) − δ·ln(RTT). The result is 2 where U − U_before is above the dead zone, −2 below its
    negative, else 0.

    Source: the Q-learning scheme that Kong et al. 2018 compare with. Dead zone and δ = 1 as in its
    public implementations; the round trip as the delay is *proposed*.
    """
    change = _log_power(metrics, delta) - _log_power(before, delta)
    return np.select([change > dead_zone, change < -dead_zone], [2.0, -2.0], 0.0)


def drinc(metrics: IntervalMetrics, before: IntervalMetrics, *, delta: float = 1.0) -> FloatArray:
    """TCP-Drinc: the change of a utility, within ±1.

    clip(U − U_before, −1, 1), U = ln(x) − δ·ln(RTT), x the throughput in Mb/s, RTT the mean in ms.

    Source: *proposed* for Xiao, Mao, Tugnait, "TCP-Drinc", IEEE Access 2019, whose own formula is
    not public. A difference of potentials leaves the order of policies as U has it.
    """
    change = _log_power(metrics, delta) - _log_power(before, delta)
    return np.clip(change, -1.0, 1.0)


def learningcc(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """LearningCC: bandwidth over delay, (kb/s) / ms.

    Source: LearningCC's reward of an arm, Bw / srtt. Here Bw is the throughput of the interval, not
    a single delivery-rate sample, and the round trip its mean.
    """
    return metrics.throughput_mbps * 1e3 / np.maximum(metrics.rtt_ms, MIN_DELAY_MS)


def pcc_allegro(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """PCC Allegro: T·s(L − 0.05) − x·L, s(y) = 1 / (1 + e^(100·y)).

    T is the throughput and x the sending rate, both in Mb/s, L the loss ratio.

    Source: Dong et al., "PCC: Re-architecting Congestion Control for Consistent High Performance",
    NSDI 2015.
    """
    loss = metrics.loss_ratio
    tolerance = 1.0 / (1.0 + np.exp(100.0 * (loss - 0.05)))
    return metrics.throughput_mbps * tolerance - metrics.sent_mbps * loss


def vivace(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """PCC Vivace: x^0.9 − 900·x·dRTT/dT − 11.35·x·L.

    x is the sending rate in Mb/s, dRTT/dT the slope of the round trips (taken for 0 below 0.01 in
    size), L the loss ratio.

    Source: Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018.
    """
    rate = metrics.sent_mbps
    slope = np.where(np.abs(metrics.rtt_slope) < 0.01, 0.0, metrics.rtt_slope)
    return rate**0.9 - 900.0 * rate * slope - 11.35 * rate * metrics.loss_ratio


def aurora(metrics: IntervalMetrics, before: IntervalMetrics, *, scale: float = 1e-3) -> FloatArray:
    """Aurora: (10·throughput − 1000·latency − 2000·loss) / 1000.

    Throughput in packets of 1500 bytes per second, latency the mean round trip in seconds, loss a
    ratio.

    Source: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control",
    ICML 2019; packet size and scale as in its published training environment.
    `crates/core/src/env/reward.rs` computes it.
    """
    return _core.aurora_reward(metrics.array, scale)


def orca(
    metrics: IntervalMetrics,
    before: IntervalMetrics,
    *,
    loss_weight: float = 5.0,
    margin: float = 1.25,
) -> FloatArray:
    """Orca: power with a penalty for losses, relative to the best so far.

    (thr − ζ·l) / thr_max · min(1, β·d_min / d), thr the throughput and l the lost rate in Mb/s,
    thr_max the highest throughput of the flow in the episode, d the smoothed round trip, d_min the
    flow's least. Up to 1; negative where losses prevail.

    Source: Abbasloo, Yen, Chao, "Classic Meets Modern: a Pragmatic Learning-Based Congestion
    Control for the Internet", SIGCOMM 2020; ζ = 5 and β = 1.25 as in its published code, whose
    normalisation by running moments is left out.
    """
    power = metrics.throughput_mbps - loss_weight * metrics.lost_mbps
    best = np.maximum(metrics.throughput_max_mbps, 1e-3)
    delay = np.where(metrics.srtt_ms > 0.0, metrics.srtt_ms, metrics.rtt_ms)
    ratio = margin * metrics.flow_min_rtt_ms / np.maximum(delay, MIN_DELAY_MS)
    return power / best * np.minimum(ratio, 1.0)


def drl_cc(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """DRL-CC: ln(g), g the flow's goodput in Mb/s, at least 0.01.

    The paper's reward is the sum over all flows of a host; sum over the agents for it.

    Source: Xu et al., "Experience-Driven Congestion Control", IEEE JSAC 37(6), 2019. The floor is
    *proposed*.
    """
    return np.log(np.maximum(metrics.throughput_mbps, 0.01))


def flagship(metrics: IntervalMetrics, before: IntervalMetrics) -> FloatArray:
    """A fair share of the network at little delay, computed from what only the simulator knows.

    U(s) − w·ln(1 + q / max(τ, 10 ms)) − 5·min(p, 0.2) − 0.05·min(|ln x/x₀|, 1), within ±1. s is the
    throughput over the fair share; U(s) = s/2 + (1 + ln max(s, 0.02) / 3.91)/2 up to s = 1, 2 − s
    above. q is the time that the packets sent in the interval waited in queues, τ the base round
    trip, p the part of them that queues dropped, x and x₀ the throughputs of this interval and the
    one before; the last term is 0 within 10 intervals of an event (a flow comes or goes, a rate
    changes). w is 0.25. Beside a loss-based flow it is 0.1, and q the time the bottleneck takes for
    the flow's own packets in queues. The first interval of a flow is unrewarded. A flow gets
    0.8 of this and 0.2 of the least among the flows that learn beside it. For `credit = "sent"`.

    Source: *proposed*. `crates/core/src/env/reward.rs` computes it.
    """
    return _core.flagship_reward(metrics.array, metrics.truth, before.throughput_mbps)


flagship.needs_truth = True  # type: ignore[attr-defined]
flagship.team_share = _core.flagship_team()  # type: ignore[attr-defined]


def needs_truth(reward: Reward) -> bool:
    """Whether a reward sees what only the simulator knows (`Episodes(..., truth=True)`)."""
    return bool(getattr(reward, "needs_truth", False))


def team_share(reward: Reward) -> float:
    """Part of a flow's reward that is the least of all flows that learn beside it, in [0, 1]."""
    return float(getattr(reward, "team_share", 0.0))


REWARDS: Mapping[str, Reward] = MappingProxyType(
    {
        function.__name__: cast("Reward", function)
        for function in (
            aurora,
            drinc,
            drl_cc,
            flagship,
            learningcc,
            orca,
            pcc_allegro,
            q_tcp,
            rl_tcp,
            vivace,
        )
    }
)
"""every reward by name"""


def find(reward: str | Reward, beside: Path | None = None) -> Reward:
    """A reward function by its name, from a file, or itself.

    Args:
        reward: a name of `REWARDS`, `file.py:function` (the file is executed, as `import` would),
            or a function.
        beside: folder in which the file is looked for after the current one.

    Raises:
        TrainingError: if there is no such reward, file or function, or it does not take the two
            arguments of a reward.
        Exception: whatever the file itself raises.
    """
    if not isinstance(reward, str):
        if not callable(reward):
            raise TrainingError(f"reward = {reward!r}: allowed: {_allowed()}, or a function")
        name = getattr(reward, "__name__", repr(reward))
        user_code.check_call(reward, ARGUMENTS, f"reward {name}", TrainingError)
        return reward
    known = REWARDS.get(reward.replace("-", "_"))
    if known is not None:
        return known
    file, _, name = reward.rpartition(":")
    if not file.endswith(".py"):
        near = lookup.similar(reward, REWARDS)
        more = f"similar: {', '.join(near)}; " if near else ""
        raise TrainingError(f"reward = {reward!r}: {more}allowed: {_allowed()}")
    for path in (Path(file).expanduser(), (beside or Path()) / file):
        if path.is_file():
            return _load(reward, path.resolve(), name)
    raise TrainingError(f"reward = {reward!r}: no file {file}, neither here nor in {beside or '.'}")


def _load(reward: str, path: Path, name: str) -> Reward:
    module = user_code.load(path, "reward", TrainingError)
    function = getattr(module, name, None)
    if not callable(function):
        known = vars(module).items()
        own = [key for key, value in known if _is_own_function(value, module.__name__)]
        raise TrainingError(
            f"reward = {reward!r}: no function {name} in {path}; it has: {', '.join(own) or 'none'}"
        )
    where = f"reward {path}:{name}"
    user_code.check_call(function, ARGUMENTS, where, TrainingError)
    return cast("Reward", function)


def _is_own_function(value: object, module_name: str) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module_name


def _allowed() -> str:
    return f"{', '.join(REWARDS)}, or file.py:function"


def _throughput(metrics: IntervalMetrics) -> FloatArray:
    """In Mb/s, at least a packet per interval, so that it has a logarithm."""
    packet = PACKET_BITS / (np.maximum(metrics.duration_s, SHORTEST_S) * 1e6)
    return np.maximum(metrics.throughput_mbps, packet)


def _log_power(metrics: IntervalMetrics, delta: float) -> FloatArray:
    delay = np.maximum(metrics.rtt_ms, MIN_DELAY_MS)
    return np.log(_throughput(metrics)) - delta * np.log(delay)
