"""The compiled core: scenario files, the simulator, the table of controllers."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeAlias, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

__all__ = [
    "BINDING_HASH",
    "CODE_HASH",
    "QUIC_HASH",
    "Ack",
    "Distribution",
    "Episodes",
    "Flow",
    "Forest",
    "HostEpisodes",
    "JointPolicy",
    "Loss",
    "Policy",
    "RewardedIntervals",
    "Rollouts",
    "Scenario",
    "aurora_reward",
    "check_ns3",
    "check_quic",
    "collect_sends",
    "controllers",
    "fits",
    "fitted_traces",
    "flagship_reward",
    "flagship_team",
    "generate_grants",
    "generate_trace",
    "guest_names",
    "interval_metrics",
    "ns3_plan",
    "observation_features",
    "ranges",
    "run_quic",
    "schema",
    "simulate",
    "truth_columns",
    "watch",
]

CODE_HASH: str
"""Hash of the core's sources; part of every result's name."""
QUIC_HASH: str
"""Hash of the sources of QUIC in virtual time; part of the names of its results."""
BINDING_HASH: str
"""Hash of the sources between the core and Python; part of it too."""

@type_check_only
class ParamInfo(TypedDict):
    """One setting of a controller."""

    name: str
    about: str
    default: float | str | None
    """`None` for a file, which must be given"""
    allowed: str

@type_check_only
class ControllerInfo(TypedDict):
    """One entry of the controller table."""

    name: str
    about: str
    source: str
    scope: str
    """what one instance governs: `subflow`, `connection` or `host`"""
    single: str
    """the plain controller of a flow that the kernel runs over plain TCP"""
    params: list[ParamInfo]

_Column: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int64] | list[str]
_Tables: TypeAlias = dict[str, dict[str, _Column]]

@type_check_only
@type_check_only
class _Writable(Protocol):
    """A file that takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`."""

@type_check_only
class _PcapFile(Protocol):
    """Where the packets of a run go."""

    @property
    def file(self) -> _Writable:
        """The file."""
    @property
    def at(self) -> str:
        """Where packets are seen: `sender`, `receiver`, `link:NAME`."""
    @property
    def snaplen(self) -> int:
        """Bytes of each packet that are kept."""
    @property
    def ip(self) -> int:
        """4 or 6."""

class _Batch(TypedDict):
    """Completed decisions of `Rollouts`, one per row, in the order of the simulations; m rows."""

    observation: npt.NDArray[np.float32]
    """(m, history, features): what the agent saw when it decided"""
    following: npt.NDArray[np.float32]
    """(m, history, features): what it saw at its next decision"""
    action: npt.NDArray[np.int64] | npt.NDArray[np.float32]
    """(m,) choices, or (m, action_size) values as they were drawn, not clipped"""
    log_probability: npt.NDArray[np.float32]
    """(m,): of the action when it was drawn"""
    metrics: npt.NDArray[np.float64]
    """(m, 17): the interval that the decision is rewarded for; columns: `interval_metrics`"""
    before: npt.NDArray[np.float64]
    """(m, 17): the same agent's rewarded interval before; at first the one before its decisions"""
    best: npt.NDArray[np.float64]
    """(m,): largest throughput of the agent's intervals in the episode so far, Mb/s"""
    best_before: npt.NDArray[np.float64]
    """(m,): the same without the interval of `metrics`"""
    stream: npt.NDArray[np.int64]
    """(m,): the agent, as `simulation * agents + agent`"""
    place: npt.NDArray[np.int64]
    """(m,): one more per decision of a stream; a new episode leaves a gap"""
    reward: npt.NDArray[np.float64] | None
    """(m,): `None` if the core computes none"""
    truth: npt.NDArray[np.float32]
    """(m, 33): the simulator's truth of the interval that ended with the decision, 16 columns, then
    that interval's metrics; this and the next two have no column unless asked for"""
    following_truth: npt.NDArray[np.float32]
    """(m, 33): the same at the agent's next decision"""
    rewarded_truth: npt.NDArray[np.float64]
    """(m, 16): the truth of the interval of `metrics`"""
    class_index: npt.NDArray[np.int64]
    """(m,): class of the episode's scenario among those of its distribution"""
    sums: npt.NDArray[np.float64]
    """(n, 4), of each simulation: decisions made in the call, completed or not; sums over the
    intervals that ended with them: throughput in Mb/s, mean round trip in ms, loss ratio"""

@type_check_only
class ControllerClass(Protocol):
    """What makes a Python controller: usually its class.

    It is called with the flow. A class with a method `subflow_added` governs all subflows of a
    connection, and is called with nothing.
    """

    __call__: Callable[..., object]

@final
class Episodes:
    """Simulations that stop whenever a decision of a learning flow falls due.

    Each has up to `agents` learning flows, in the order of the scenario's entries; an agent without
    a flow is never due. Every array stays the same object and is written in place, while the other
    threads of Python continue: read it between calls only. While another thread is in a call,
    `reset`, `step`, `tables` and the arrays are refused with a RuntimeError; an array that was
    fetched before is not protected.
    """

    def __new__(
        cls,
        source: Scenario | Distribution,
        agent_settings: str,
        *,
        n: int,
        agents: int,
        learners: Sequence[str],
        seed: int,
        first: int = 0,
        threads: int = 0,
        truth: bool = False,
        credit: bool = True,
    ) -> Episodes:
        """Nothing runs until `reset`.

        Args:
            source: what every episode simulates, or what each draws its scenario from.
            agent_settings: TOML of the tables `observation`, `decision`, `action`, `bounds` and
                `start`.
            n: simulations stepped at once, 1 to 65536.
            agents: agents in each, 1 to 10000. The observations and metrics of all simulations
                have at most 4 GiB (*proposed*).
            learners: patterns (`*`, `?`) of the names of the `[[flow]]` entries that learn.
            seed: of everything; episode k of simulation i follows from it, i and k alone.
            first: number of the first simulation, 0 to 2^64 − 1: `n` from there on are what they
                are among all.
            threads: that simulate; 0 for as many as there are cores. Results do not depend on it.
            truth: whether what only the simulator knows is collected (`truth`, `credit_truth`),
                which changes no result.
            credit: whether the fate of the packets sent in each interval is accounted (`credit`,
                `credit_step`), which changes no other result.

        Raises:
            ValueError: one line with what is wrong and what is allowed.
            TypeError: if `source` is neither.
        """
    def reset(self, seed: int | None = None) -> None:
        """Begin every simulation anew, and run each until a decision falls due or it is over.

        Args:
            seed: begins the numbering of episodes again under another seed; without it, the next
                episodes follow.

        Raises:
            ValueError: if a drawn scenario has no learning flow, or more than `agents`.
            RuntimeError: if another thread is in a call, or an array is borrowed for writing.
        """
    def step(self, actions: npt.NDArray[np.int64] | npt.NDArray[np.float32]) -> None:
        """Answer for the agents that are due, and run each simulation until the next decision.

        A simulation that is over begins its next episode instead, and its actions are ignored.

        Args:
            actions: choices, int64 of shape (n, agents), or values, float32 of shape (n, agents,
                action_size). Those of agents that are not due are ignored. A value that is not
                finite or beyond the action's `limit` hands its flow to CUBIC for the episode.

        Raises:
            ValueError: if the shape is another, or a choice of an agent that is due does not exist.
            TypeError: if it is no such array.
            RuntimeError: before the first `reset`, or as there.
        """
    def tables(self, index: int) -> _Tables:
        """Tables of the last episode of a simulation that ended, as `simulate` returns them.

        Raises:
            ValueError: if none has ended, or `index` is not below `n`.
        """
    @property
    def observation(self) -> npt.NDArray[np.float32]:
        """(n, agents, history, features): what each agent saw last; zeros before."""
    @property
    def metrics(self) -> npt.NDArray[np.float64]:
        """(n, agents, 17): the interval since the last decision; columns: `interval_metrics`."""
    @property
    def credit(self) -> npt.NDArray[np.float64]:
        """(n, agents, 17): the fate of the packets sent in one monitor interval."""
    @property
    def credit_step(self) -> npt.NDArray[np.int64]:
        """(n, agents): the decision that began that interval; -1 if the last call returned none."""
    @property
    def truth(self) -> npt.NDArray[np.float64]:
        """(n, agents, 16): what only the simulator knows of the interval that `metrics` is of.

        Columns: `truth_columns`; none unless it was asked for.
        """
    @property
    def credit_truth(self) -> npt.NDArray[np.float64]:
        """(n, agents, 16): the same of the interval that `credit` is of."""
    @property
    def due(self) -> npt.NDArray[np.bool_]:
        """(n, agents): whose answer is awaited."""
    @property
    def left(self) -> npt.NDArray[np.bool_]:
        """(n, agents): whose flow has ended, or the run; no decision falls due any more."""
    @property
    def decision(self) -> npt.NDArray[np.int64]:
        """(n, agents): how many decisions the agent has made, the number of the one now due."""
    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """(n,): whether the last call reached the end of the episode, which is one of time."""
    @property
    def time_s(self) -> npt.NDArray[np.float64]:
        """(n,): simulated time that each episode has reached, a copy."""
    @property
    def n_choices(self) -> int:
        """Steps of a discrete action map; 0 if actions are values."""
    @property
    def action_size(self) -> int:
        """Values of an action; 0 if it is a choice."""
    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
    @property
    def history(self) -> int:
        """Vectors of an observation."""
    @property
    def features(self) -> list[str]:
        """Names of a vector's numbers, in order."""
    @property
    def packets(self) -> int:
        """Data packets sent so far, by every flow of every episode."""
    @property
    def decisions(self) -> int:
        """Answers taken so far."""
    @property
    def progress(self) -> float:
        """How far training is, in [0, 1]: what a distribution weighs its scenarios by."""
    @progress.setter
    def progress(self, value: float, /) -> None: ...

@final
class Flow:
    """What a controller receives about its flow before the first packet."""

    @property
    def mss_bytes(self) -> int:
        """Size of a full packet, headers included where the scenario counts them."""
    @property
    def initial_cwnd_bytes(self) -> int:
        """Window to start with."""
    @property
    def paces(self) -> bool:
        """Whether the sender paces by itself where the controller sets no rate."""
    @property
    def seed(self) -> int:
        """Seed of the controller's own randomness."""
    @property
    def params(self) -> dict[str, float | str]:
        """Settings from the scenario's `params` or from `--param`, as given."""

@final
class Ack:
    """One or more acknowledgements that delivered something new."""

    @property
    def now_ns(self) -> int:
        """When the acknowledgement arrived at the sender."""
    @property
    def sent_at_ns(self) -> int:
        """When the newest packet it delivers was sent."""
    @property
    def rtt_ns(self) -> int:
        """Round-trip sample of that packet; 0 when there is none."""
    @property
    def srtt_ns(self) -> int:
        """Smoothed round-trip time (RFC 6298)."""
    @property
    def min_rtt_ns(self) -> int:
        """Smallest sample of the flow so far."""
    @property
    def rtt_max_ns(self) -> int:
        """Largest sample of the batch."""
    @property
    def batch_rtt_min_ns(self) -> int:
        """Smallest sample of the batch; 0 when there is none."""
    @property
    def acked_bytes(self) -> int:
        """Newly delivered."""
    @property
    def ce_marked_bytes(self) -> int:
        """Part of `acked_bytes` that carried a congestion mark."""
    @property
    def inflight_bytes(self) -> int:
        """Sent, neither delivered nor declared lost."""
    @property
    def prior_inflight_bytes(self) -> int:
        """What the newest acknowledgement found in flight."""
    @property
    def delivered_bytes(self) -> int:
        """Delivered since the connection began."""
    @property
    def delivery_rate_bps(self) -> int:
        """Delivery-rate sample; 0 when there is none."""
    @property
    def tx_inflight_bytes(self) -> int:
        """In flight just after the newest packet delivered was sent; 0 when not known."""
    @property
    def delivered_since_bytes(self) -> int:
        """Delivered since that packet was sent; 0 when not known."""
    @property
    def lost_since_bytes(self) -> int:
        """Declared lost since that packet was sent."""
    @property
    def app_limited(self) -> bool:
        """Whether the application, which had nothing unsent, limited what the sample measures."""
    @property
    def recovering(self) -> bool:
        """Whether the sender repairs a loss."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the sender filled its window before this acknowledgement."""

@final
class Loss:
    """Packets were declared lost."""

    @property
    def now_ns(self) -> int:
        """When the loss was declared."""
    @property
    def sent_at_ns(self) -> int:
        """When the newest of the lost packets was sent."""
    @property
    def lost_bytes(self) -> int:
        """Newly declared lost."""
    @property
    def inflight_bytes(self) -> int:
        """Sent and not cumulatively acknowledged when the loss was declared, at most the window."""
    @property
    def tx_inflight_bytes(self) -> int:
        """In flight just after the newest of the lost packets was sent; 0 when not known."""
    @property
    def lost_since_bytes(self) -> int:
        """Declared lost since that packet was sent, `lost_bytes` included; 0 when not known."""
    @property
    def app_limited(self) -> bool:
        """Whether the application limited what was in flight with that packet."""
    @property
    def kind(self) -> str:
        """One of `gap`, `more`, `timeout`, `deflate`, `idle`, `spurious` and `timeout_again`.

        `gap`: reduce once; `more`: of the same; `spurious`: the latest reduction was for nothing.
        `timeout_again`: a time-out of what was answered before; the window starts over and the
        threshold stays (RFC 5681 section 3.1).
        """

@final
class Forest:
    """A random forest over LP-TCP's numbers (docs/reference/policies.md)."""

    @staticmethod
    def load(content: bytes) -> Forest:
        """Read a policy's file.

        Raises:
            ValueError: one line with field, value and what is allowed.
        """
    def mean(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Mean output of the trees, shape (rows,), for rows of 55 numbers: probability of loss."""

@final
class HostEpisodes:
    """Simulations of a scenario, one after the other, that stop when a host's agent is asked.

    While another thread is in a call, every call is refused with a RuntimeError.
    """

    def __new__(
        cls, scenario: Scenario, settings: str, *, learners: Sequence[str], seed: int
    ) -> HostEpisodes:
        """Nothing runs until `begin`.

        Args:
            scenario: what every episode simulates.
            settings: TOML of the table `host` of a policy.
            learners: patterns of the entries whose connections start at the host.
            seed: of all episodes.

        Raises:
            ValueError: if the settings are wrong, or no connection has several subflows.
        """
    @staticmethod
    def scales(scenario: Scenario, learners: Sequence[str]) -> str:
        """The table `host` for a scenario, as TOML, from the rates and delays of its links.

        Raises:
            ValueError: if a link has no rate to divide by, or no connection has several subflows.
        """
    def begin(self, number: int) -> bool:
        """Begin the episode of this number and run it until a decision is due; false at its end."""
    def step(self, changes: npt.NDArray[np.float32]) -> bool:
        """Change the target's windows and run until the next decision is due; false at the end.

        Args:
            changes: shape (paths,), in [-1, 1].
        """
    @property
    def observation(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """The target's numbers, shape (5 paths,), and every active flow's, (flows, 5 paths + 1)."""
    @property
    def duration_s(self) -> float:
        """Length of the epoch that the observation is of."""
    @property
    def time_s(self) -> float:
        """Simulated time of the episode."""
    @property
    def packets(self) -> int:
        """Data packets sent so far, by every flow of every episode."""
    def tables(self) -> _Tables:
        """Tables of the episode up to the present time, as `simulate` returns them; ends it."""

@final
class JointPolicy:
    """A policy of a host, to ask and to compare with the one that trained it."""

    @staticmethod
    def open(folder: PathLike[str]) -> JointPolicy:
        """Read a policy's folder.

        Raises:
            ValueError: if a file cannot be read or is wrong; one line.
        """
    @property
    def about(self) -> str:
        """A description in one line."""
    @property
    def paths(self) -> int:
        """Subflows of a connection."""
    def outputs(
        self, target: npt.NDArray[np.float32], flows: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """The actor's outputs, shape (paths,).

        Args:
            target: shape (5 paths,).
            flows: shape (flows, 5 paths + 1).
        """

@final
class Policy:
    """A learned policy: network, observation and action map (docs/reference/policies.md)."""

    @staticmethod
    def load(files: Mapping[str, bytes]) -> Policy:
        """Read the contents of `policy.toml` and `weights.safetensors`, by these names.

        Raises:
            ValueError: one line with file, line, field, value and what is allowed.
        """
    @staticmethod
    def open(folder: str | PathLike[str]) -> Policy:
        """Read a policy's folder.

        Raises:
            ValueError: as `load`; also if a file cannot be read.
        """
    @property
    def about(self) -> str:
        """What it is, in a line."""
    @property
    def agent_settings(self) -> str:
        """Its five tables as TOML with every default filled in, as `Episodes` takes them."""
    @property
    def features(self) -> list[str]:
        """Names of a vector's numbers."""
    @property
    def history(self) -> int:
        """Vectors of an observation."""
    @property
    def n_choices(self) -> int:
        """Steps to choose from; 0 if the answers are values."""
    @property
    def action_size(self) -> int:
        """Values of an answer; 0 if the answers are choices."""
    def outputs(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """All outputs of the network, the same bits on every machine.

        Args:
            observation: shape (history, features), oldest vector first.
        """
    def decide(self, observation: npt.NDArray[np.float32]) -> int | npt.NDArray[np.float32]:
        """The chosen step, or the values, shape (action_size,), before they are cut to [-1, 1].

        Args:
            observation: shape (history, features), oldest vector first.

        Raises:
            ValueError: if an output is not finite.
        """

@final
class Rollouts:
    """Trajectories that are simulated and decided in the core, on several threads.

    Simulation i of seed s runs the episodes that simulation i of `Episodes` of seed s runs.
    Decisions are completed as `ackademy.learn.credit` completes them: by the account of the
    interval and the next decision of the same agent. While another thread is in a call, calls are
    refused with a RuntimeError.
    """

    def __new__(
        cls,
        source: Scenario | Distribution,
        agent_settings: str,
        *,
        n: int,
        agents: int,
        learners: Sequence[str],
        seed: int,
        credit: str = "sent",
        truth: bool = False,
        reward: str | None = None,
        first: int = 0,
        threads: int = 0,
    ) -> Rollouts:
        """Nothing runs until `collect`.

        Args:
            source: as for `Episodes`.
            agent_settings: as for `Episodes`.
            n: simulations, 1 to 65536.
            agents: as for `Episodes`.
            learners: as for `Episodes`.
            seed: of everything; what simulation i does follows from it, i and the policies alone.
            credit: what a decision is rewarded for: `sent` or `arrived`.
            truth: whether to return what only the simulator knows.
            reward: `flagship`, which follows from the truth; without one, rewards are to be
                computed from the rows.
            first: number of the first simulation.
            threads: 0 for as many as there are cores. Results do not depend on it.

        Raises:
            ValueError: one line with what is wrong and what is allowed.
            TypeError: if `source` is neither.
        """
    def collect(
        self,
        files: Mapping[str, bytes],
        log_std: npt.NDArray[np.float32],
        decisions: int,
        *,
        episodes: int | None = None,
    ) -> _Batch:
        """Simulate on with actions drawn from a policy until decisions are completed.

        Each simulation completes as many decisions, the first ones one more where it does not come
        out even, and stops where it is. A choice has the probability that the softmax of the
        outputs gives; values are normal around the outputs. The flow gets values clipped to
        [-1, 1].

        Args:
            files: a policy's, as for `Policy.load`, with the tables of `agent_settings`.
            log_std: shape (action_size,): logarithms of the values' standard deviations.
            decisions: to be completed by all simulations together, 1 to 2^24; a batch has at most
                4 GiB (*proposed*).
            episodes: a simulation of which this many episodes have ended in the call stops with
                fewer decisions.

        Raises:
            ValueError: one line with what is wrong and what is allowed; also if a drawn scenario
                has no learning flow, or more than `agents`.
            RuntimeError: if another thread is in a call.
        """
    @property
    def n(self) -> int:
        """Simulations."""
    @property
    def agents(self) -> int:
        """Agents in each."""
    @property
    def n_choices(self) -> int:
        """Steps of a discrete action map; 0 if actions are values."""
    @property
    def action_size(self) -> int:
        """Values of an action; 0 if it is a choice."""
    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
    @property
    def history(self) -> int:
        """Vectors of an observation."""
    @property
    def packets(self) -> int:
        """Data packets sent so far, by every flow of every episode."""
    @property
    def decisions(self) -> int:
        """Decisions made so far, completed or not."""
    @property
    def episodes(self) -> int:
        """Episodes that have ended so far."""
    @property
    def progress(self) -> float:
        """How far training is, in [0, 1]: what a distribution weighs its scenarios by."""
    @progress.setter
    def progress(self, value: float, /) -> None: ...

@final
class Scenario:
    """A checked scenario file, every default filled in."""

    @staticmethod
    def parse(
        text: str,
        origin: str,
        overrides: Mapping[str, str] = ...,
        files: dict[str, bytes] | None = None,
    ) -> Scenario:
        """Check the text of a scenario.

        Args:
            text: TOML.
            origin: the file it came from, for errors; files it names are relative to its folder.
            overrides: TOML values by dotted path, such as `flow.0.start_s`.
            files: contents of files by the names they have in the text; one that is not there is
                read, and put there.

        Raises:
            ScenarioError: one line with file, line, field, value and what is allowed.
        """
    def canonical(self) -> str:
        """As `resolved`, with digests of the files it names: equal text, equal results."""
    def resolved(self) -> str:
        """The scenario as TOML, every default filled in."""
    def portable(self) -> tuple[str, dict[str, str]]:
        """As `resolved`, for another folder, and the traces to be written beside it.

        Returns:
            The text, which names each trace by its content and each file of a controller by its
            absolute path; and the text of each trace, by name.
        """
    def with_controller(
        self,
        cc: str,
        params: Mapping[str, float | str],
        entries: Sequence[str] | None = None,
    ) -> Scenario:
        """The same network with every flow under this controller, or those of some entries.

        A setting that names a file is relative to the current folder.

        Raises:
            ControllerError: if the controller or a setting is unknown or out of range.
        """
    @property
    def name(self) -> str:
        """File name without folder and suffix."""
    @property
    def origin(self) -> str:
        """The file it came from."""
    @property
    def duration_s(self) -> float:
        """Simulated time."""
    @property
    def flows(self) -> list[str]:
        """Names of the flows."""
    @property
    def links(self) -> list[str]:
        """Names of the links, one direction each."""
    @property
    def entries(self) -> list[str]:
        """Names of the file's `[[flow]]`, each of which may stand for several flows."""
    @property
    def controllers(self) -> list[str]:
        """The controller of each flow."""
    @property
    def owners(self) -> list[int]:
        """Which of `entries` each flow comes from."""
    @property
    def subflows(self) -> list[int]:
        """Paths of each flow; a table of results has a row for each."""
    @property
    def idle(self) -> list[str]:
        """Names of the flows that start at the end or after it, and so send nothing."""
    @property
    def has_send_hook(self) -> bool:
        """Whether a controller of ours in it has a send hook, so that it may hold packets."""

@final
class Distribution:
    """Scenarios at random: a checked file of `docs/reference/distributions.md`."""

    @staticmethod
    def parse(text: str, origin: str, files: dict[str, bytes] | None = None) -> Distribution:
        """Check the text of a distribution, at every combination of its draws' ends.

        Args:
            text: TOML.
            origin: the file it came from, for errors; files it names are relative to its folder.
            files: contents of files by the names they have in the text; one that is not there is
                read, and put there.

        Raises:
            ScenarioError: one line with file, line, field, value and what is allowed.
        """
    def draw(self, seed: int, progress: float = 0.0) -> Scenario:
        """The scenario of a seed; equal arguments give equal scenarios. Reads no file.

        Args:
            seed: of every random choice.
            progress: part of the training that is done, which the weights may depend on; [0, 1].

        Raises:
            ScenarioError: if the drawn values are no scenario, which parsing has excluded.
        """
    def weights(self, progress: float = 0.0) -> list[float]:
        """The weight of each scenario at this training progress, in the order of `names`."""
    @property
    def about(self) -> str:
        """What the file says it is for."""
    @property
    def agents(self) -> int:
        """The most learning flows that a drawn scenario has."""
    def agents_at(self, progress: float = 0.0) -> int:
        """The most learning flows of a scenario that can be drawn at this training progress."""
    @property
    def classes(self) -> list[str]:
        """Names of the classes of scenarios, among which the truth's column `class` is a place."""
    @property
    def class_of_each(self) -> list[int]:
        """The class of each of `names`, by its place in `classes`."""
    @property
    def digest(self) -> str:
        """Hash of the content, files included: equal digests draw equal scenarios."""
    @property
    def learners(self) -> list[str]:
        """Patterns of the names of the flows that learn; `*` and `?` as in a shell."""
    @property
    def names(self) -> list[str]:
        """Names of the scenarios it draws from."""
    @property
    def origin(self) -> str:
        """The file it came from."""

def controllers() -> list[ControllerInfo]:
    """Every controller in the table, by name."""

def schema(kind: str) -> str:
    """JSON Schema of `scenario`, `distribution` or `policy`; the structure without ranges.

    Raises:
        ValueError: for any other kind.
    """

def ranges(read: Callable[[], object]) -> list[tuple[str, float, float]]:
    """The ranges that the core's parsers check while `read` runs: path, least, largest value."""

def fits(pattern: str, name: str) -> bool:
    """Whether a pattern, in which `*` is any characters and `?` is one, is this name.

    The only pattern match of the project: every other character stands for itself.
    """

def guest_names(path: Path) -> list[str]:
    """Names of the controllers of a library that speaks `ackademy.h`; it is loaded.

    Raises:
        ControllerError: if it cannot be loaded, lacks a function or has another ABI; one line.
    """

def simulate(
    scenario: Scenario,
    seed: int,
    *,
    sample_interval_ms: float = 0.0,
    python_controllers: Mapping[str, ControllerClass] | None = None,
    guests: Mapping[str, Path] | None = None,
    progress: Callable[[float], object] | None = None,
    pcap: _PcapFile | None = None,
    qlog: _Writable | None = None,
) -> _Tables:
    """Run one simulation; the other threads of Python continue unless a controller is Python's.

    Args:
        scenario: what to simulate.
        seed: of every random choice; the same seed gives the same bytes.
        sample_interval_ms: between rows of the time series; 0 for no series.
        python_controllers: classes for the scenario's `file.py:Class` controllers.
        guests: libraries of controllers such as `linux:bbr`, whose name there is `bbr`.
        progress: called at 256 equal parts of the duration with the simulated seconds that are
            over.
        pcap: where the packets of a point go, as pcapng.
        qlog: where what senders do goes, as qlog.

    Returns:
        Columns by table: flows, counters, links, flow_series, link_series; and run, whose one
        column `is_random` says whether a random number was drawn (1, also with a controller in
        Python or a guest) or every seed gives the same (0).
    """

@type_check_only
class Seen(TypedDict):
    """What a flow could observe at the end of each of its n intervals."""

    flow: int
    """place in the table `flows`"""
    observation: npt.NDArray[np.float32]
    """(n, history * features), without what depends on the window and on actions"""
    metrics: npt.NDArray[np.float64]
    """(n, 17): columns `interval_metrics`; window and rate are those of the flow's controller"""
    truth: npt.NDArray[np.float64]
    """(n, 16): columns `truth_columns`"""

def watch(
    scenario: Scenario,
    seed: int,
    agent_settings: str,
    *,
    watched: Sequence[str],
    class_index: int = 0,
    python_controllers: Mapping[str, ControllerClass] | None = None,
    guests: Mapping[str, Path] | None = None,
) -> tuple[_Tables, list[Seen]]:
    """Run one simulation in which flows are observed as learned controllers would observe them.

    Their own controllers govern them. The interval that the end of a flow cuts short is the last.

    Args:
        scenario: as for `simulate`.
        seed: as for `simulate`.
        agent_settings: as for `Episodes`; with `slow_start = false`, every interval is observed.
        watched: patterns of the entries whose flows are observed.
        class_index: what the truth says of the scenario's class.
        python_controllers: as for `simulate`.
        guests: as for `simulate`.

    Returns:
        The tables of `simulate` without `run`, and what was seen of each flow.

    Raises:
        ValueError: if the settings are wrong, or no flow matches.
    """

def check_quic(scenario: Scenario) -> None:
    """Refuse a scenario that QUIC cannot run.

    Raises:
        ScenarioError: naming what it asks for and what is allowed.
    """

def run_quic(
    scenario: Scenario,
    seed: int,
    *,
    sample_interval_ms: float = 0.0,
    progress: Callable[[float], object] | None = None,
    qlog: _Writable | None = None,
) -> _Tables:
    """Run a scenario once over QUIC in virtual time; other threads of Python continue meanwhile.

    Arguments and result are as those of `simulate`.

    Raises:
        ScenarioError: as `check_quic`.
    """

def check_ns3(scenario: Scenario) -> None:
    """Refuse a scenario that ns-3's TCP cannot run.

    Raises:
        ScenarioError: naming what it asks for and what is allowed.
    """

def ns3_plan(scenario: Scenario, seed: int, *, sample_interval_ms: float = 0.0) -> str:
    """The scenario as the program of `make ns3` reads it; arguments as those of `simulate`.

    Raises:
        ScenarioError: as `check_ns3`.
    """

def observation_features() -> list[tuple[str, str, str, float, float]]:
    """Features that an observation may have: name, meaning, scaling, smallest and largest value."""

def interval_metrics() -> list[str]:
    """Columns of `Episodes.metrics` and `Episodes.credit`."""

def truth_columns() -> list[str]:
    """Columns of `Episodes.truth` and `Episodes.credit_truth`; no feature has such a name."""

@final
class RewardedIntervals:
    """Which flows get a reward after a step, and for which interval (`ackademy.envs.rewarder`)."""

    def __new__(cls, n: int, agents: int, sent: bool) -> RewardedIntervals:
        """Of `n` episodes with `agents` flows each.

        Args:
            n: episodes.
            agents: flows of an episode.
            sent: whether an interval is the packets sent in it, or what arrived in it.
        """

    def reset(self, accounts: object) -> None:
        """Start over after all episodes have been reset.

        Args:
            accounts: an object with the arrays of `Episodes`.

        Raises:
            ValueError: if an array has another shape.
        """

    def take(self, accounts: object) -> tuple[
        npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64],
        npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64],
    ]:  # fmt: skip
        """What is rewarded after a step.

        Args:
            accounts: an object with the arrays of `Episodes`.

        Returns:
            The places of the k flows that get a reward (episode * agents + agent), shape (k,);
            their intervals and those before, shape (k, 17); the highest throughput of the flow by
            the end of either, shape (k,); the number of the decision that a flow is rewarded for,
            or -1, shape (n, agents).

        Raises:
            ValueError: if an array has another shape.
        """

    @property
    def entered(self) -> npt.NDArray[np.bool_]:
        """(n, agents): which flows have been due in their present episode."""

def aurora_reward(metrics: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    """The reward `aurora` for an interval: (10 throughput - 1000 latency - 2000 loss) scale.

    Throughput in packets of 1500 bytes per second, latency in seconds, loss a ratio.

    Args:
        metrics: shape (m, 17), columns `interval_metrics`.
        scale: factor.

    Returns:
        Shape (m,).

    Raises:
        ValueError: if the shape is another.
    """

def flagship_reward(
    metrics: npt.NDArray[np.float64],
    truth: npt.NDArray[np.float64],
    before_mbps: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Each flow's own part of the reward `flagship` for an interval, in [-1, 1].

    Args:
        metrics: shape (m, 17), columns `interval_metrics`.
        truth: shape (m, 16), columns `truth_columns`, of the same intervals.
        before_mbps: shape (m,), throughput in the interval before.

    Returns:
        Shape (m,); NaN for the first interval of a flow, which is unrewarded.

    Raises:
        ValueError: if the shapes are others.
    """

def flagship_team() -> float:
    """Part of the least own reward of the flows of a kind in a flow's reward, in [0, 1]."""

@type_check_only
class SendTable(TypedDict):
    """Transmissions in order of time, and how many there were."""

    features: npt.NDArray[np.float32]
    """what the sender knew right before: 55 numbers a row (docs/reference/controllers/lp_tcp.md)"""
    dropped: npt.NDArray[np.bool_]
    """whether a queue dropped this transmission"""
    time_s: npt.NDArray[np.float64]
    """when it left"""
    flow: npt.NDArray[np.uint32]
    """index of its flow in `Scenario.flows`, subflows and arrivals counted singly"""
    phase: npt.NDArray[np.uint8]
    """1 in congestion avoidance, 0 in slow start and recovery"""
    n_sends: int
    """all transmissions, kept or not"""
    n_drops: int
    """all that a queue dropped"""

def collect_sends(scenario: Scenario, seed: int, *, keep_one_in: int) -> SendTable:
    """What senders knew at each transmission, and which of them a queue dropped.

    Args:
        scenario: what to simulate, twice; its controllers are the core's.
        seed: of the run and of the choice of rows.
        keep_one_in: every dropped transmission is kept, and of the others one in this many, by
            chance; 1 keeps all, at 234 bytes each.
    """

def fitted_traces() -> list[str]:
    """Names of the recorded traces to which the generator in scheduler grants is fitted."""

def generate_grants(seconds: float, like: str, values: Mapping[str, float], seed: int) -> str:
    """Generate a trace in scheduler grants.

    Args:
        seconds: length, after which it repeats.
        like: the recorded trace whose fit it follows.
        values: `mean_mbps` and parameters of the generator that differ from the fit.
        seed: of every random choice.

    Returns:
        mahimahi's format.

    Raises:
        ValueError: if a name is unknown or a value out of range.
    """

def generate_trace(seconds: float, mean_mbps: float, volatility: float, seed: int) -> str:
    """A cellular-like trace in mahimahi's text format.

    The rate wanders as a bounded Brownian motion pulled towards its mean and vanishes now and then
    (after Sprout's model, Winstein, Sivaraman and Balakrishnan, NSDI 2013, section 3.1).

    Args:
        seconds: length, after which the trace repeats.
        mean_mbps: mean over the whole trace, outages included.
        volatility: standard deviation that the rate gains in a second, relative to the mean.
        seed: of every draw.
    """
