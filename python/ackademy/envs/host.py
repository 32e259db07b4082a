"""The agent of a host: simulations in which its decisions are pulled one by one.

Each decision is about one connection, the target: the changes of its subflows' windows, in [-1, 1].
The reward is the sum over all active flows of ln(goodput in Mb/s) in the epoch that the decision
began (Xu et al. 2019), each at least `FLOOR_MBPS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core
from ackademy.toml_table import toml_value

F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]

SUBFLOW_NUMBERS = 5
"""of a subflow: sending rate, goodput, round trip, its mean deviation, window"""
ORDER = 3
"""purpose of random numbers: which scenario an episode is of"""
FLOOR_MBPS = 0.01
"""least goodput that is rewarded, *proposed*: the logarithm of nothing is not finite"""


class Observation(NamedTuple):
    """What the agent sees when a decision is due."""

    target: F32
    """shape (5 paths,): the target's numbers"""
    flows: F32
    """shape (flows, 5 paths + 1): those of every active flow"""


class Measured(NamedTuple):
    """What an epoch brought."""

    reward: float
    goodput_mbps: F64
    """shape (flows,)"""
    rtt_ms: float
    """mean over the subflows"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """Table `host` of a policy: the connections, and what their numbers are divided by."""

    paths: int = 2
    """subflows of a connection"""
    rate_mbps: float
    """sum of the links' rates: rates and goodputs are divided by it"""
    rtt_ms: float
    """smallest round trip: round trips are divided by twice that"""
    bdp_packets: float
    """bandwidth-delay product of a path: windows are divided by 1.5 times that"""
    window_packets: float | None = None
    """largest window that the agent sets; `None`: 4 times `bdp_packets` and 64"""
    epoch_rtts: float | None = None
    """length of an epoch in round trips of the target's slowest subflow; `None`: 1"""
    epoch_ms: float | None = None
    """the same in ms, in place of `epoch_rtts`"""
    between: str | None = None
    """what happens to a window between decisions: `constant` (`None`), `halve`, `new_reno`"""

    def text(self) -> str:
        """The table as TOML."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return "\n".join(["[host]", *(f"{k} = {toml_value(v)}" for k, v in given.items())]) + "\n"

    @classmethod
    def over(cls, networks: Sequence[HostSettings]) -> HostSettings:
        """Those of an agent for several networks: the largest scales, the largest window."""
        windows = [own.window_packets for own in networks if own.window_packets is not None]
        return replace(
            networks[0],
            rate_mbps=max(own.rate_mbps for own in networks),
            rtt_ms=max(own.rtt_ms for own in networks),
            bdp_packets=max(own.bdp_packets for own in networks),
            window_packets=max(windows) if windows else None,
        )


class SimulatedHost:
    """A host in simulations, one episode after the other.

    Args:
        scenarios: of the episodes; each comes once, in an order drawn anew, before any comes again.
        settings: what the numbers are divided by.
        learners: patterns of the flows that start at the host.
        seed: of all episodes.

    Raises:
        ValueError: if no connection has several subflows, or another number of them.
    """

    def __init__(
        self,
        scenarios: Sequence[_core.Scenario],
        settings: HostSettings,
        *,
        learners: Sequence[str] = ("*",),
        seed: int,
    ) -> None:
        self._settings, self._seed, self._number = settings, seed, -1
        self._sources = [
            _core.HostEpisodes(scenario, settings.text(), learners=list(learners), seed=seed)
            for scenario in scenarios
        ]
        self._source: _core.HostEpisodes = self._sources[0]

    @property
    def paths(self) -> int:
        """Numbers of an action."""
        return self._settings.paths

    @property
    def observation(self) -> Observation:
        """As it stands."""
        return Observation(*self._source.observation)

    @property
    def packets(self) -> int:
        """Data packets simulated so far."""
        return sum(source.packets for source in self._sources)

    def begin(self) -> None:
        """Begin the next episode and run it until a decision is due.

        Raises:
            ValueError: if it ends before, for lack of traffic.
        """
        self._number += 1
        self._source = self._drawn()
        if not self._source.begin(self._number):
            raise ValueError("an episode ends before its first decision: allowed are longer ones")

    def step(self, changes: F32) -> Measured | None:
        """Act, and run until the next decision is due; `None`: the episode ended before."""
        if not self._source.step(changes):
            return None
        flows = self._source.observation[1]
        goodput = goodputs(flows, self._settings)
        reward = float(np.log(np.maximum(goodput, FLOOR_MBPS)).sum())
        return Measured(reward, goodput, mean_rtt_ms(flows, self._settings))

    def _drawn(self) -> _core.HostEpisodes:
        """Where the episode of the present number runs."""
        past, index = divmod(self._number, len(self._sources))
        order = np.random.default_rng((self._seed, ORDER, past)).permutation(len(self._sources))
        return self._sources[int(order[index])]


def goodputs(flows: F32, settings: HostSettings) -> F64:
    """Goodput of each flow over its subflows, Mb/s, shape (flows,).

    Args:
        flows: shape (flows, 5 paths + 1), as observed.
        settings: what they were divided by.
    """
    shares: F64 = flows[:, 1:-1:SUBFLOW_NUMBERS].astype(np.float64).sum(axis=1)
    return shares * settings.rate_mbps


def mean_rtt_ms(flows: F32, settings: HostSettings) -> float:
    """Mean round trip of the subflows that have one, ms; 0 without any."""
    rtts = flows[:, 2:-1:SUBFLOW_NUMBERS]
    rtts = rtts[rtts > 0.0]
    return float(rtts.mean()) * 2.0 * settings.rtt_ms if rtts.size else 0.0
