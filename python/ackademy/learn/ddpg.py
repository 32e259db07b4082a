"""Deep deterministic policy gradient with a represented state (Xu et al. 2019, algorithm 1).

The agent of a host sees every active flow, one vector each, and the flow whose windows are to
change, the target. An LSTM R reads the flows one after the other; its last state h represents
them. An actor pi(e, h) gives the changes of the target's windows, a critic Q(e, h, a) what they are
worth:

    y = r + discount * Q'(e', h', pi'(e', h'))        h' = R'(s')
    critic:  minimise mean (y - Q(e, R(s), a))^2      R is not changed by it
    actor and R:  maximise mean Q(e, R(s), pi(e, R(s)))
    R', pi', Q' follow R, pi, Q by the share tau

No transition ends an episode: episodes end because their time is up. The transition that an end
cuts off is dropped, since its reward was not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from flax.linen import initializers
from jax import Array, lax

from ackademy import interrupts
from ackademy.envs.host import Measured, Observation, SimulatedHost
from ackademy.errors import TrainingError
from ackademy.learn.episode_source import F32
from ackademy.learn.layers import Lstm
from ackademy.learn.networks import leaves, with_leaves
from ackademy.learn.recipe_toml import Count, Positive, Share
from ackademy.learn.training_log import Means, TrainingLog

COLUMNS = (
    "epochs",
    "episodes",
    "updates",
    "reward",
    "goodput_mbps",
    "jain",
    "rtt_ms",
    "change",
    "noise",
    "td_loss",
    "value",
)
"""of the curve: counters, then means since the row before; `goodput_mbps` is of all flows together,
`change` the mean size of an action, `noise` the present share of the exploration's"""
ACTING, LEARNING = 1, 2
"""purposes of random numbers"""
FLOWS = (5, 10, 20, 40, 80, 160)
"""numbers of flows that observations are padded to: XLA compiles a function per shape"""
OUTPUT = 3e-3
"""bound of the first weights of a last layer (Lillicrap et al. 2016)"""
Params: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to learn. What the paper does not print is *proposed*: the values of Lillicrap 2016."""

    epochs: int = 50_000
    """decisions, the paper's number"""
    warmup: Count = 500
    """epochs with random actions before the first update"""
    memory: int = 1_000_000
    """transitions"""
    batch: int = 64
    """transitions per update"""
    discount: Share = 0.90
    """per epoch, the paper's"""
    tau: Share = 0.001
    """share by which target networks follow, the paper's"""
    actor_rate: Positive = 1e-4
    """Adam's, of the actor and of the LSTM, the paper's"""
    critic_rate: Positive = 1e-3
    """Adam's, the paper's"""
    noise_theta: Share = 0.15
    """pull of the Ornstein-Uhlenbeck process to 0, per epoch"""
    noise_sigma: float = 0.2
    """its spread, per epoch"""
    noise_end: Share = 0.05
    """share of the noise that is left at the end; it falls linearly"""
    state: int = 64
    """length of the LSTM's state"""
    hidden: int = 128
    """units of both hidden layers of actor and critic, the paper's"""
    row_every: int = 1_000
    """epochs between rows of the curve"""
    represent: bool = True
    """false: an ablation, in which the state R(s) is 0 and the agent sees its target only"""

    def noise(self, epoch: int) -> float:
        """Share of the noise in an epoch."""
        return 1.0 + min(1.0, epoch / self.epochs) * (self.noise_end - 1.0)


class Representation(nn.Module):
    """The LSTM R: the last of its states over the flows that are there."""

    units: int

    @nn.compact
    def __call__(self, flows: Array, count: Array) -> Array:
        """States, shape (batch, units), of flows (batch, most, width), `count` of them there."""
        cell = Lstm(self.units)
        p = {
            part: self.param(part, begin, shape)
            for part, (shape, begin) in cell.parts(flows.shape[1:]).items()
        }
        entering = flows @ p["kernel"] + p["bias"]

        def step(state: tuple[Array, Array], at: Any) -> tuple[tuple[Array, Array], None]:  # noqa: ANN401
            (h, c), (parts, index) = state, at
            i, f, g, o = jnp.split(parts + h @ p["recurrent"], 4, axis=-1)
            new_c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            new_h = jax.nn.sigmoid(o) * jnp.tanh(new_c)
            there = (index < count)[:, None]
            return (jnp.where(there, new_h, h), jnp.where(there, new_c, c)), None

        zeros = jnp.zeros((flows.shape[0], self.units), flows.dtype)
        steps = (entering.swapaxes(0, 1), jnp.arange(flows.shape[1]))
        (last, _), _ = lax.scan(step, (zeros, zeros), steps, unroll=min(5, flows.shape[1]))
        return last


class Mlp(nn.Module):
    """Two hidden layers and an output: the actor, or the critic."""

    hidden: int
    outputs: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Outputs before any activation, shape (batch, outputs)."""
        for index in range(2):
            x = nn.relu(_dense(self.hidden, 1.0 / np.sqrt(x.shape[-1]), str(index))(x))
        return _dense(self.outputs, OUTPUT, "2")(x)


def _dense(units: int, bound: float, name: str) -> nn.Dense:
    begin = initializers.uniform(2.0 * bound)

    def centred(key: Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> Array:  # noqa: ANN401
        return begin(key, shape, dtype) - bound

    return nn.Dense(units, kernel_init=centred, bias_init=centred, name=name)


class Networks(NamedTuple):
    """Parameters of R, pi and Q."""

    representation: Params
    actor: Params
    critic: Params


class Learner(NamedTuple):
    """Everything that an update changes."""

    networks: Networks
    targets: Networks
    actor_adam: Any
    """Optax's state, of R and pi together"""
    critic_adam: Any


class Batch(NamedTuple):
    """Transitions: (s, e, a, r, s', e'), s padded."""

    flows: Array
    there: Array
    """shape (batch,): how many flows there are"""
    target: Array
    action: Array
    reward: Array
    next_flows: Array
    next_there: Array
    next_target: Array


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training."""

    networks: Networks
    epochs: int
    episodes: int
    updates: int


def begin(config: Config, row: int, target: int, paths: int, seed: int) -> Learner:
    """First weights; target networks are equal."""
    keys = jax.random.split(jax.random.key(seed), 3)
    flows, count = jnp.zeros((1, 1, row)), jnp.ones(1, jnp.int32)
    seen = jnp.zeros((1, target + config.state))
    judged = jnp.zeros((1, target + config.state + paths))
    networks = Networks(
        Representation(config.state).init(keys[0], flows, count)["params"],
        Mlp(config.hidden, paths).init(keys[1], seen)["params"],
        Mlp(config.hidden, 1).init(keys[2], judged)["params"],
    )
    return Learner(
        networks,
        jax.tree.map(jnp.copy, networks),
        optax.adam(config.actor_rate).init((networks.representation, networks.actor)),
        optax.adam(config.critic_rate).init(networks.critic),
    )


def represent(config: Config, params: Params, flows: Array, count: Array) -> Array:
    """States R(s)."""
    if not config.represent:
        return jnp.zeros((flows.shape[0], config.state), flows.dtype)
    return jnp.asarray(Representation(config.state).apply({"params": params}, flows, count))


def act(config: Config, params: Params, target: Array, h: Array) -> Array:
    """Actions pi(e, h), in [-1, 1]."""
    paths = params["2"]["bias"].shape[0]
    seen = jnp.concatenate([target, h], axis=-1)
    return jnp.tanh(jnp.asarray(Mlp(config.hidden, paths).apply({"params": params}, seen)))


def judge(config: Config, params: Params, target: Array, h: Array, action: Array) -> Array:
    """Values Q(e, h, a), shape (batch,)."""
    judged = jnp.concatenate([target, h, action], axis=-1)
    return jnp.asarray(Mlp(config.hidden, 1).apply({"params": params}, judged))[:, 0]


def update(config: Config, learner: Learner, batch: Batch) -> tuple[Learner, Array, Array]:
    """One update of all six networks; returns the critic's loss and the mean value, too."""
    networks, targets = learner.networks, learner.targets
    h_next = represent(config, targets.representation, batch.next_flows, batch.next_there)
    a_next = act(config, targets.actor, batch.next_target, h_next)
    following = judge(config, targets.critic, batch.next_target, h_next, a_next)
    wanted = lax.stop_gradient(batch.reward + config.discount * following)

    def actor_loss(changed: tuple[Params, Params]) -> tuple[Array, Array]:
        representation, actor = changed
        h = represent(config, representation, batch.flows, batch.there)
        action = act(config, actor, batch.target, h)
        # Through the action only: R is changed as what the actor acts upon, not as what is judged.
        value = judge(config, networks.critic, batch.target, lax.stop_gradient(h), action)
        return -value.mean(), h

    def critic_loss(critic: Params, h: Array) -> tuple[Array, Array]:
        value = judge(config, critic, batch.target, h, batch.action)
        return jnp.square(wanted - value).mean(), value.mean()

    acting = (networks.representation, networks.actor)
    (_, h), actor_gradient = jax.value_and_grad(actor_loss, has_aux=True)(acting)
    h = lax.stop_gradient(h)
    found = jax.value_and_grad(critic_loss, has_aux=True)(networks.critic, h)
    (lost, value), critic_gradient = found
    actor_change, actor_adam = optax.adam(config.actor_rate).update(
        actor_gradient, learner.actor_adam
    )
    critic_change, critic_adam = optax.adam(config.critic_rate).update(
        critic_gradient, learner.critic_adam
    )
    representation, actor = optax.apply_updates(acting, actor_change)
    critic = optax.apply_updates(networks.critic, critic_change)
    new = Networks(representation, actor, critic)
    follow = jax.tree.map(lambda n, t: config.tau * n + (1.0 - config.tau) * t, new, targets)
    return Learner(new, follow, actor_adam, critic_adam), lost, value


@partial(jax.jit, static_argnums=0)
def _decide(config: Config, networks: Networks, flows: Array, count: Array, target: Array) -> Array:
    h = represent(config, networks.representation, flows, count)
    return act(config, networks.actor, target, h)[0]


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _advance(
    config: Config, learner: Learner, batch: Batch, seen: tuple[Array, Array, Array]
) -> tuple[Learner, Array, Array, Array]:
    """One update, and the action of the new actor: one call per epoch."""
    learner, lost, value = update(config, learner, batch)
    return learner, lost, value, _decide(config, learner.networks, *seen)


class Memory:
    """The last transitions, in a ring that grows up to its size."""

    def __init__(self, config: Config, row: int, target: int, paths: int) -> None:
        self._size, self._added = config.memory, 0
        self._row, self.most = row, FLOWS[0]
        room = min(config.memory, config.epochs)
        self._flows = np.zeros((room, self.most, row), np.float32)
        self._next_flows = np.zeros((room, self.most, row), np.float32)
        self._count = np.zeros(room, np.int32)
        self._next_count = np.zeros(room, np.int32)
        self._target = np.zeros((room, target), np.float32)
        self._next_target = np.zeros((room, target), np.float32)
        self._action = np.zeros((room, paths), np.float32)
        self._reward = np.zeros(room, np.float32)

    def __len__(self) -> int:
        return min(self._added, len(self._reward))

    def padded(self, seen: Observation) -> tuple[F32, npt.NDArray[np.int32], F32]:
        """An observation as a batch of one, padded to the memory's number of flows."""
        self._make_room(len(seen.flows))
        flows = np.zeros((1, self.most, self._row), np.float32)
        flows[0, : len(seen.flows)] = seen.flows
        return flows, np.array([len(seen.flows)], np.int32), seen.target[None]

    def add(self, seen: Observation, action: F32, reward: float, following: Observation) -> None:
        """Add a transition, overwriting the oldest."""
        self._make_room(max(len(seen.flows), len(following.flows)))
        at = self._added % len(self._reward)
        for flows, count, target, own in (
            (self._flows, self._count, self._target, seen),
            (self._next_flows, self._next_count, self._next_target, following),
        ):
            flows[at] = 0.0
            flows[at, : len(own.flows)] = own.flows
            count[at], target[at] = len(own.flows), own.target
        self._action[at], self._reward[at] = action, reward
        self._added += 1

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        """Transitions at random."""
        chosen = rng.integers(len(self), size=batch)
        fields = (
            self._flows, self._count, self._target, self._action, self._reward,
            self._next_flows, self._next_count, self._next_target,
        )  # fmt: skip
        return Batch(*(field[chosen] for field in fields))  # type: ignore[arg-type]  # numpy's

    def _make_room(self, flows: int) -> None:
        if flows <= self.most:
            return
        fitting = [most for most in FLOWS if most >= flows]
        if not fitting:
            raise TrainingError(f"{flows} flows at once: allowed are at most {FLOWS[-1]}")
        added = ((0, 0), (0, fitting[0] - self.most), (0, 0))
        self._flows, self._next_flows = np.pad(self._flows, added), np.pad(self._next_flows, added)
        self.most = fitting[0]


def train(host: SimulatedHost, config: Config, seed: int, log: TrainingLog) -> Trained:
    """Learn for so many epochs: one action, one transition and one update each.

    The same seed gives the same weights on one machine, killed and resumed or not.

    Args:
        host: to be governed; no episode has begun.
        config: how to learn.
        seed: of the first weights, of exploration and of sampling.
        log: of columns `COLUMNS`.
    """
    host.begin()
    seen, paths = host.observation, host.paths
    sizes = (seen.flows.shape[1], len(seen.target), paths)
    learner = begin(config, *sizes, seed)
    memory, means = Memory(config, *sizes), Means()
    actions = np.zeros((config.epochs, paths), np.float32)
    noise, episodes, past = np.zeros(paths), 0, 0
    if (kept := log.resumed) is not None:
        past = kept.counter("step")
        learner = with_leaves(learner, kept.arrays, "learner")
        actions[:past] = kept.arrays["actions"]

    greedy: F32 | None = None
    for epoch in range(config.epochs):
        interrupts.check()
        rng = np.random.default_rng((seed, ACTING, epoch))
        noise += -config.noise_theta * noise + config.noise_sigma * rng.standard_normal(paths)
        if epoch >= past:
            if epoch < config.warmup:
                action = rng.uniform(-1.0, 1.0, paths)
            else:
                if greedy is None:
                    found = _decide(config, learner.networks, *memory.padded(seen))
                    greedy = np.asarray(found)
                action = greedy + config.noise(epoch) * noise
            actions[epoch] = np.clip(action, -1.0, 1.0)
        measured = host.step(actions[epoch])
        if measured is None:
            episodes += 1
            host.begin()
        else:
            memory.add(seen, actions[epoch], measured.reward, host.observation)
            if epoch >= past:
                _note(means, measured, actions[epoch])
        seen, greedy = host.observation, None

        if epoch >= past and epoch >= config.warmup and len(memory) > 0:
            chosen = np.random.default_rng((seed, LEARNING, epoch))
            batch = memory.sample(config.batch, chosen)
            learner, lost, value, found = _advance(config, learner, batch, memory.padded(seen))
            greedy = np.asarray(found)
            means.add("td_loss", float(lost))
            means.add("value", float(value))
        done = epoch + 1
        if done % config.row_every == 0 and done > past:
            counters = {
                "epochs": done,
                "episodes": episodes,
                "updates": max(0, done - config.warmup),
                "noise": config.noise(epoch),
            }
            log.row({**counters, **means.take()})
            log.keep(done, {}, partial(_arrays, learner, actions[:done]))
            log.progress(done, config.epochs)
    updates = max(0, config.epochs - config.warmup)
    networks = learner.networks
    if not config.represent:  # an LSTM of zeros stays at 0
        zeros = jax.tree.map(jnp.zeros_like, networks.representation)
        networks = networks._replace(representation=zeros)
    return Trained(networks, config.epochs, episodes, updates)


def _note(means: Means, measured: Measured, action: F32) -> None:
    goodput = measured.goodput_mbps
    means.add("reward", measured.reward)
    means.add("goodput_mbps", float(goodput.sum()))
    squares = float(np.square(goodput).sum())
    jain = float(goodput.sum()) ** 2 / (len(goodput) * squares) if squares > 0 else np.nan
    if np.isfinite(jain):
        means.add("jain", jain)
    means.add("rtt_ms", measured.rtt_ms)
    means.add("change", float(np.abs(action).mean()))


def tensors(networks: Networks) -> dict[str, F32]:
    """R and pi as `weights.safetensors` has them."""
    named = {f"representation.0.{part}": own for part, own in networks.representation.items()}
    for index in range(3):
        for part, own in networks.actor[str(index)].items():
            named[f"actor.{index}.{part}"] = own
    return {name: np.asarray(own, np.float32) for name, own in named.items()}


def _arrays(learner: Learner, actions: F32) -> dict[str, npt.NDArray[np.generic]]:
    """For a checkpoint: the simulations are repeated from their actions."""
    return {"actions": actions, **leaves(learner, "learner")}
