"""Properties of a policy over `own_queue`, proved for boxes of observations.

After Canopy (EuroSys 2026), which bounds a network's answers over a box and asks how much of the
bounds lies where it should. The boxes, properties and thresholds are *proposed*. A box frees some
features of recorded observations and keeps the others; where the freed one decides how much to
yield, it is cut into slices. Bounds come from interval arithmetic, so that a certified box has no
counterexample, while a box that is not certified may or may not have one; points drawn from the
boxes look for some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core
from ackademy.policies.bounds import F64, DenseNetwork

Bools: TypeAlias = npt.NDArray[np.bool_]
Ends: TypeAlias = tuple[float, float]

RECENT = 4
"""intervals that a box frees: those that the drain looks at"""
SLICES = 20
POINTS = 8
"""drawn in every slice, to look for counterexamples (proposed)"""
NOISE = 0.05
"""by which P5 changes round trips"""
CUT = 0.7
"""of the window, once per round trip, by the response of `own_queue` to losses"""
STEP_LOW, STEP_HIGH = 0.8, 1.25
"""between which `own_queue` changes a window in one interval"""
WITHOUT_JITTER = (
    "Jitter counts as none in the step of own_queue: with it, the window may grow more than P1, "
    "P3 and P5 say."
)
"""What verdicts on the change of a window leave open."""
RTT_FEATURES = ("queue", "rtt_rise", "rtt_spread", "drain", "rtt_change")
OWN_FEATURES = (
    "base_rtt",
    "base_age",
    "own_best",
    "app_limited",
    "since_loss",
    "action_0",
    "action_1",
)
"""what flows of one bottleneck may see differently"""


@dataclass(frozen=True, slots=True)
class States:
    """Recorded states of flows when they decided, m of them."""

    observation: F64
    """(m, history, features)"""
    cwnd_packets: F64
    """(m,)"""
    earlier_packets: F64
    """(m,): the window of the interval before, whose effect the round trips show"""
    inflight_packets: F64
    """(m,)"""
    delivery_pps: F64
    """(m,): packets per second"""


@dataclass(frozen=True, slots=True)
class Scales:
    """Where the features are in an observation, and their ranges."""

    index: Mapping[str, int]
    low: F64
    high: F64

    @classmethod
    def of(cls, features: Sequence[str]) -> Scales:
        """Those of a policy with these features."""
        known = {name: (low, high) for name, _, _, low, high in _core.observation_features()}
        ranges = np.array([known[name] for name in features], np.float64)
        places = {name: place for place, name in enumerate(features)}
        return cls(places, ranges[:, 0], ranges[:, 1])


def queue_of(ratio: float) -> float:
    """The feature `queue` for a smallest round trip that is so many times the base."""
    return math.log(ratio)


def loss_of(ratio: float) -> float:
    """The feature `loss_log` for a loss ratio."""
    return math.log(1.0 + 100.0 * ratio) / 5.0


def target_packets(delivery_pps: F64) -> F64:
    """The target of `own_queue`: own packets in the queue."""
    return np.maximum(3.5 * np.sqrt(delivery_pps / 833.0), 1.0)


def queue_to_come(own: F64, rise: F64, target: F64) -> F64:
    """Own packets in the queue once the latest change of the window shows in it.

    A larger window adds to a queue that is there, and else fills the path.

    Args:
        own: packets in the queue.
        rise: of the window, that the queue does not show yet.
        target: of own packets in the queue.
    """
    shows = (rise < 0.0) | (own > target / 2.0)
    return np.where(shows, np.maximum(own + rise, 0.0), own)


def change(states: States, ratio: F64, action: F64) -> F64:
    """How ln of the window changes in one interval, by `own_queue` at its smallest velocity.

    It never falls with either value of the action, and never rises with the ratio.

    Jitter counts as none. `own_queue` takes up to three quarters of what the round trip has above
    the base off the queue for jitter, so that the window may grow where this one falls: with 100
    packets in flight, a ratio of 2, 833 packets/s and the action (0.5, 0) ln of the window falls
    by 0.117 here, and `own_queue` adds 7.75 packets if jitter beyond the time of four packets is
    at least the round trip less the base.

    Args:
        states: m of them.
        ratio: (m,): smallest round trip of the interval over the base, 1 or more.
        action: (m, 2), each in [-1, 1].
    """
    window = np.maximum(states.cwnd_packets, 1.0)
    flight = np.minimum(window, states.inflight_packets)
    own = flight * (1.0 - 1.0 / ratio)
    wanted = target_packets(states.delivery_pps) * np.exp2(6.0 * action[:, 0])
    target = np.clip(wanted, 1.0, window)
    error = 0.5 * (
        target - queue_to_come(own, states.cwnd_packets - states.earlier_packets, target)
    )
    step = np.log(np.clip(1.0 + error / window, STEP_LOW, STEP_HIGH))
    push = 0.15 * action[:, 1] + 0.85 * action[:, 1] ** 3
    return np.clip(step + 0.5 * math.log(2.0) * push, -math.log(2.0), math.log(2.0))


@dataclass(frozen=True, slots=True)
class Box:
    """Values between which features of the latest intervals may be."""

    low: F64
    """(m, history, features)"""
    high: F64

    def drawn(self, rng: np.random.Generator) -> F64:
        """One observation in each box."""
        return self.low + rng.random(self.low.shape) * (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of one property."""

    name: str
    says: str
    states: int
    """recorded states to which it applies"""
    coverage: float
    """mean share of the bounds that lies where it should (Canopy's quantitative certificate)"""
    certified: float
    """share of the states with no counterexample in any slice: proved"""
    refuted: float
    """share of the states with a counterexample that was found"""
    worst: float
    """largest excess over the property's limit that was found at a point; at most 0: none"""


@dataclass(frozen=True, slots=True)
class Property:
    """What a policy should do over a box."""

    name: str
    says: str
    needs: tuple[str, ...]
    """features without which it says nothing"""
    box: Callable[[States, Scales, float, float], Box]
    """of the slice between two shares of the freed feature's range"""
    slices: int
    quantity: Callable[[States, Scales, Box, F64, F64], tuple[F64, F64]]
    """bounds of what is limited, from a box and the bounds of the answers over it"""
    rule: Literal["at most", "at least", "spread"]
    """`spread`: the quantity's values within a box differ by at most the limit"""
    limit: float
    applies: Callable[[States, Scales, Box], Bools]

    def excess(self, low: F64, high: F64) -> tuple[F64, F64]:
        """Smallest and largest excess over the limit of a quantity between two bounds."""
        if self.rule == "at most":
            return low - self.limit, high - self.limit
        if self.rule == "at least":
            return self.limit - high, self.limit - low
        return np.full(len(low), -self.limit), high - low - self.limit


def verdict_of(
    wanted: Property, network: DenseNetwork, states: States, scales: Scales, seed: int
) -> Verdict | None:
    """What is known of a property; `None` if the policy lacks a feature of it.

    Args:
        wanted: the property.
        network: the policy's.
        states: recorded ones.
        scales: of the policy's features.
        seed: of the points that are drawn from the boxes.
    """
    if any(name not in scales.index for name in wanted.needs):
        return None
    rng = np.random.default_rng(seed)
    m = len(states.observation)
    seen, proved, refuted = np.zeros(m, bool), np.ones(m, bool), np.zeros(m, bool)
    shares, slices, worst = np.zeros(m), np.zeros(m), -math.inf
    for index in range(wanted.slices):
        box = wanted.box(states, scales, index / wanted.slices, (index + 1) / wanted.slices)
        where = wanted.applies(states, scales, box)
        answers = network.bounds(box.low, box.high)
        low, high = wanted.excess(*wanted.quantity(states, scales, box, *answers))
        width = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, np.clip(-low / width, 0.0, 1.0), high <= 0.0)
        seen |= where
        shares += np.where(where, share, 0.0)
        slices += where
        proved &= ~where | (high <= 0.0)
        found = _found(wanted, network, states, scales, box, rng)
        refuted |= where & (found > 0.0)
        worst = max(worst, float(np.max(found, where=where, initial=-math.inf)))
    if not seen.any():
        return Verdict(wanted.name, wanted.says, 0, math.nan, math.nan, math.nan, math.nan)
    return Verdict(
        wanted.name,
        wanted.says,
        int(seen.sum()),
        float((shares[seen] / slices[seen]).mean()),
        float(proved[seen].mean()),
        float(refuted[seen].mean()),
        worst,
    )


def _found(
    wanted: Property,
    network: DenseNetwork,
    states: States,
    scales: Scales,
    box: Box,
    rng: np.random.Generator,
) -> F64:
    """The largest excess at points that are drawn from the boxes, (m,)."""
    values = []
    for _ in range(POINTS):
        point = box.drawn(rng)
        answer = network.answers(point)
        values.append(wanted.quantity(states, scales, Box(point, point), answer, answer)[0])
    return wanted.excess(np.minimum.reduce(values), np.maximum.reduce(values))[1]


# ------------------------------------------------------------------------------------ the boxes


def _kept(states: States) -> tuple[F64, F64]:
    return states.observation.copy(), states.observation.copy()


def _set(box: tuple[F64, F64], scales: Scales, name: str, low: float, high: float) -> None:
    place = scales.index[name]
    bottom, top = scales.low[place], scales.high[place]
    box[0][:, -RECENT:, place] = np.clip(low, bottom, top)
    box[1][:, -RECENT:, place] = np.clip(high, bottom, top)


def _between(low: float, high: float, share: float) -> float:
    return low + (high - low) * share


def _queue(ratios: Ends, drain: Ends, loss: Ends) -> Callable[[States, Scales, float, float], Box]:
    """Boxes of a queue, which is cut into slices between two ratios of round trips."""

    def box_of(states: States, scales: Scales, start: float, end: float) -> Box:
        box = _kept(states)
        low, high = map(queue_of, ratios)
        _set(box, scales, "queue", _between(low, high, start), _between(low, high, end))
        _set(box, scales, "drain", *drain)
        _set(box, scales, "loss_log", *map(loss_of, loss))
        return Box(*box)

    return box_of


def _clear_path(states: States, scales: Scales, start: float, end: float) -> Box:
    box = _kept(states)
    high = queue_of(1.02)
    _set(box, scales, "queue", high * start, high * end)
    _set(box, scales, "loss_log", 0.0, 0.0)
    if "app_limited" in scales.index:
        _set(box, scales, "app_limited", 0.0, 0.0)
    return Box(*box)


def _heavy_loss(states: States, scales: Scales, start: float, end: float) -> Box:
    box = _kept(states)
    _set(box, scales, "loss_log", *(loss_of(_between(0.2, 1.0, share)) for share in (start, end)))
    return Box(*box)


def _noise(states: States, scales: Scales, start: float, end: float) -> Box:
    del start, end
    low, high = _kept(states)
    for name in RTT_FEATURES:
        if (place := scales.index.get(name)) is not None:
            values = states.observation[:, :, place]
            radius = NOISE * np.abs(values)
            bottom, top = scales.low[place], scales.high[place]
            low[:, :, place] = np.clip(values - radius, bottom, top)
            high[:, :, place] = np.clip(values + radius, bottom, top)
    return Box(low, high)


def _own_features(states: States, scales: Scales, start: float, end: float) -> Box:
    del start, end
    low, high = _kept(states)
    for name in OWN_FEATURES:
        if (place := scales.index.get(name)) is not None:
            low[:, :, place], high[:, :, place] = scales.low[place], scales.high[place]
    return Box(low, high)


# ------------------------------------------------------------------------------- what should hold


def _ratios(scales: Scales, box: Box) -> tuple[F64, F64]:
    place = scales.index["queue"]
    return np.exp(box.low[:, -1, place]), np.exp(box.high[:, -1, place])


def _change(states: States, scales: Scales, box: Box, low: F64, high: F64) -> tuple[F64, F64]:
    """Bounds of ln of the window after the step of `own_queue` over that before."""
    least, most = _ratios(scales, box)
    low, high = np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
    return change(states, most, low), change(states, least, high)


def _push(states: States, scales: Scales, box: Box, low: F64, high: F64) -> tuple[F64, F64]:
    """Bounds of the first value, which sets the target."""
    del states, scales, box
    return np.clip(low[:, 0], -1.0, 1.0), np.clip(high[:, 0], -1.0, 1.0)


def _always(states: States, scales: Scales, box: Box) -> Bools:
    del scales, box
    return np.ones(len(states.observation), bool)


def _eight_targets(states: States, scales: Scales, box: Box) -> Bools:
    """Whether the flow itself keeps eight times its target in the queue, over the whole slice.

    What the last step takes away counts, and what it adds does not.
    """
    least, _ = _ratios(scales, box)
    flight = np.minimum(states.cwnd_packets, states.inflight_packets)
    fall = np.minimum(states.cwnd_packets - states.earlier_packets, 0.0)
    own = flight * (1.0 - 1.0 / least) + fall
    return np.asarray(own >= 8.0 * target_packets(states.delivery_pps))


PROPERTIES = (
    Property(
        "P1",
        "A deep queue that drains, with eight times the target in it: the window does not grow.",
        ("queue", "drain", "loss_log"),
        _queue((2.0, 20.0), drain=(0.0, 0.1), loss=(0.0, 0.0)),
        SLICES,
        _change,
        "at most",
        0.0,
        _eight_targets,
    ),
    Property(
        "P2",
        "A clear path is used: without queue or loss the window does not fall.",
        ("queue", "loss_log"),
        _clear_path,
        SLICES,
        _change,
        "at least",
        0.0,
        _always,
    ),
    Property(
        "P3",
        "A loss of 20 % or more: with the cut of own_queue the window falls to 0.85 or less.",
        ("queue", "loss_log"),
        _heavy_loss,
        SLICES,
        _change,
        "at most",
        math.log(0.85) - math.log(CUT),
        _always,
    ),
    Property(
        "P4",
        "A queue that never drains is somebody else's: the target is not lowered.",
        ("queue", "drain", "loss_log"),
        _queue((1.5, 5.0), drain=(0.5, 1.0), loss=(0.0, 0.01)),
        SLICES,
        _push,
        "at least",
        0.0,
        _always,
    ),
    Property(
        "P5",
        "Noise of 5 % in all that round trips tell changes ln of the window by at most 0.05.",
        ("queue",),
        _noise,
        1,
        _change,
        "spread",
        0.05,
        _always,
    ),
    Property(
        "P6",
        "What flows of one bottleneck see differently changes the first value by at most 0.05.",
        ("queue",),
        _own_features,
        1,
        _push,
        "spread",
        0.05,
        _always,
    ),
)
