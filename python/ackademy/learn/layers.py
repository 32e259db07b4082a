"""The layers of a policy: the fields of `[[layers]]`, the tensors of each and its computation.

`policy.toml`, the Flax module and `weights.safetensors` all follow this file: a layer's fields are
the keys of its table, and the parts it lists are its tensors `layers.{i}.{part}`. The layouts are
those of Flax, so that a module of `flax.linen` computes the same from the same tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

import jax
import jax.numpy as jnp
from flax.linen import initializers
from jax import Array, lax

from ackademy.errors import TrainingError

Shape: TypeAlias = tuple[int, ...]
"""shape between layers: (time, features) or (features,), without the batch"""
Initializer: TypeAlias = Callable[[Array, Shape], Array]
Parts: TypeAlias = Mapping[str, Array]


class Leaky(dict[str, Any]):
    """`{ kind = "leaky_relu", slope = SLOPE }`, for a compiled function a constant."""

    def __hash__(self) -> int:  # type: ignore[override]  # never changed
        """As its items."""
        return hash(tuple(self.items()))


Activation: TypeAlias = Literal["linear", "relu", "tanh", "sigmoid"] | Leaky

LARGEST = 4096
"""units, filters, or steps of a kernel or of a pool"""
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
}
LEAKY = "leaky_relu"
UNROLLED = 16
"""steps of a recurrent layer per turn of XLA's loop: a turn costs more than a small product"""


def activated(activation: Activation, x: Array) -> Array:
    """What an activation makes of numbers."""
    if isinstance(activation, str):
        return ACTIVATIONS[activation](x)
    return jnp.where(x < 0.0, activation["slope"] * x, x)


@dataclass(frozen=True, slots=True)
class Dense:
    """A product and a bias; per time step if there are time steps."""

    kind: ClassVar[str] = "dense"
    units: int
    activation: Activation = "linear"

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        return (*shape[:-1], self.units)

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """Shapes of its tensors and how they begin."""
        return {
            "kernel": ((shape[-1], self.units), _he),
            "bias": ((self.units,), _zeros),
        }

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        return activated(self.activation, x @ p["kernel"] + p["bias"])


@dataclass(frozen=True, slots=True)
class Conv1d:
    """A convolution along time."""

    kind: ClassVar[str] = "conv1d"
    filters: int
    kernel: int
    padding: Literal["same", "valid"] = "same"
    activation: Activation = "linear"

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        steps, _ = _with_time(shape, self.kind)
        if self.padding == "same":
            return (steps, self.filters)
        if steps < self.kernel:
            raise TrainingError(f"kernel = {self.kernel}: allowed: 1 to {steps}, the steps there")
        return (steps - self.kernel + 1, self.filters)

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """Shapes of its tensors and how they begin."""
        return {
            "kernel": ((self.kernel, shape[-1], self.filters), _he),
            "bias": ((self.filters,), _zeros),
        }

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it.

        One product over the stacked neighbours: on a CPU, with this few channels, it is faster
        than XLA's convolution.
        """
        k, n_in, _ = p["kernel"].shape
        if self.padding == "same":
            before = (k - 1) // 2
            x = jnp.pad(x, ((0, 0), (before, k - 1 - before), (0, 0)))
        steps = x.shape[1] - k + 1
        stacked = jnp.concatenate([x[:, j : j + steps] for j in range(k)], axis=-1)
        product = stacked @ p["kernel"].reshape(k * n_in, self.filters)
        return activated(self.activation, product + p["bias"])


@dataclass(frozen=True, slots=True)
class MaxPool:
    """The largest of every `size` steps; steps left over at the end are dropped."""

    kind: ClassVar[str] = "max_pool"
    size: int

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        steps, n = _with_time(shape, self.kind)
        if steps < self.size:
            raise TrainingError(f"size = {self.size}: allowed: 1 to {steps}, the steps there")
        return (steps // self.size, n)

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """None."""
        return {}

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        end = x.shape[1] // self.size * self.size
        largest = x[:, 0 : end : self.size]
        for j in range(1, self.size):
            largest = jnp.maximum(largest, x[:, j : end : self.size])
        return largest


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Each vector less its mean, over its standard deviation; then scaled and moved."""

    kind: ClassVar[str] = "layer_norm"
    epsilon: float = 1e-5
    activation: Activation = "linear"

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        return shape

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """Shapes of its tensors and how they begin."""
        return {"scale": ((shape[-1],), _ones), "bias": ((shape[-1],), _zeros)}

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        mean = x.mean(axis=-1, keepdims=True)
        variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
        normal = (x - mean) / jnp.sqrt(variance + self.epsilon)
        return activated(self.activation, normal * p["scale"] + p["bias"])


@dataclass(frozen=True, slots=True)
class Flatten:
    """All steps side by side, oldest first."""

    kind: ClassVar[str] = "flatten"

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        steps, n = _with_time(shape, self.kind)
        return (steps * n,)

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """None."""
        return {}

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        return x.reshape(x.shape[0], -1)


@dataclass(frozen=True, slots=True)
class Recurrent:
    """What a cell with gates has: the last of its states, or all of them."""

    kind: ClassVar[str]
    gates: ClassVar[int]
    units: int
    returns: Literal["last", "all"] = "last"

    def output(self, shape: Shape) -> Shape:
        """Shape behind the layer."""
        steps, _ = _with_time(shape, self.kind)
        return (self.units,) if self.returns == "last" else (steps, self.units)

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """Shapes of its tensors and how they begin."""
        wide = self.gates * self.units
        return {
            "kernel": ((shape[-1], wide), _lecun),
            "recurrent": ((self.units, wide), _orthogonal_blocks),
            "bias": ((wide,), _zeros),
        }


@dataclass(frozen=True, slots=True)
class Lstm(Recurrent):
    """Hochreiter and Schmidhuber's cell with a forget gate; starts from zeros; gates i, f, g, o."""

    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        entering = x @ p["kernel"] + p["bias"]

        def step(state: tuple[Array, Array], gates: Array) -> tuple[tuple[Array, Array], Array]:
            h, c = state
            i, f, g, o = jnp.split(gates + h @ p["recurrent"], 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[0], self.units), x.dtype)
        (last, _), every = lax.scan(
            step, (zeros, zeros), entering.swapaxes(0, 1), unroll=min(UNROLLED, x.shape[1])
        )
        return last if self.returns == "last" else every.swapaxes(0, 1)


@dataclass(frozen=True, slots=True)
class Gru(Recurrent):
    """Cho's cell as in Flax: gates r, z, n, the reset gate behind the recurrent product of n."""

    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3

    def parts(self, shape: Shape) -> dict[str, tuple[Shape, Initializer]]:
        """Shapes of its tensors and how they begin."""
        return {**Recurrent.parts(self, shape), "recurrent_bias": ((self.units,), _zeros)}

    def __call__(self, p: Parts, x: Array) -> Array:
        """What leaves the layer for a batch that enters it."""
        entering = x @ p["kernel"] + p["bias"]

        def step(h: Array, gates: Array) -> tuple[Array, Array]:
            in_r, in_z, in_n = jnp.split(gates, 3, axis=-1)
            re_r, re_z, re_n = jnp.split(h @ p["recurrent"], 3, axis=-1)
            r, z = jax.nn.sigmoid(in_r + re_r), jax.nn.sigmoid(in_z + re_z)
            n = jnp.tanh(in_n + r * (re_n + p["recurrent_bias"]))
            h = (1.0 - z) * n + z * h
            return h, h

        zeros = jnp.zeros((x.shape[0], self.units), x.dtype)
        last, every = lax.scan(
            step, zeros, entering.swapaxes(0, 1), unroll=min(UNROLLED, x.shape[1])
        )
        return last if self.returns == "last" else every.swapaxes(0, 1)


Layer: TypeAlias = Dense | Conv1d | MaxPool | LayerNorm | Flatten | Lstm | Gru
KINDS: Mapping[str, type[Layer]] = {
    cls.kind: cls for cls in (Dense, Conv1d, MaxPool, LayerNorm, Flatten, Lstm, Gru)
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "activation": tuple(ACTIVATIONS),
    "padding": ("same", "valid"),
    "returns": ("last", "all"),
}


def layers_of(tables: Sequence[Mapping[str, object]], where: str) -> tuple[Layer, ...]:
    """The layers that `[[layers]]` lists.

    Args:
        tables: the tables, as TOML has them.
        where: the file's name, for messages.

    Raises:
        TrainingError: if a key or a value is not allowed.
    """
    if not tables:
        raise TrainingError(f"{where}: layers: allowed: at least one")
    return tuple(_layer(table, f"{where}: layers[{i}]") for i, table in enumerate(tables))


def tables_of(layers: Sequence[Layer]) -> list[dict[str, object]]:
    """The `[[layers]]` tables of these layers, with every key."""
    return [{"kind": layer.kind, **asdict(layer)} for layer in layers]


def shapes_through(layers: Sequence[Layer], entering: Shape, where: str = "policy") -> list[Shape]:
    """Shapes before the first layer, between the layers, and behind the last one.

    Raises:
        TrainingError: if a layer cannot take what the one before it gives.
    """
    shapes = [entering]
    for index, layer in enumerate(layers):
        try:
            shapes.append(layer.output(shapes[-1]))
        except TrainingError as error:
            raise TrainingError(f"{where}: layers[{index}]: {error}") from None
    return shapes


def _layer(table: Mapping[str, object], where: str) -> Layer:
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise TrainingError(f"{where}.kind = {kind!r}: allowed: {', '.join(KINDS)}")
    cls = KINDS[kind]
    known = {field.name: field for field in fields(cls)}
    for key in table:
        if key != "kind" and key not in known:
            allowed = ", ".join(["kind", *known])
            raise TrainingError(f"{where}.{key}: no such key of {kind}; allowed: {allowed}")
    values = {name: table[name] for name in known if name in table}
    for name, field in known.items():
        value = values.get(name, field.default)
        if name == "activation" and isinstance(value, Mapping):
            _check_leaky(value, f"{where}.{name}")
            values[name] = Leaky(value)
        elif name == "epsilon":
            if not isinstance(value, float) or not 1e-12 <= value <= 1.0:
                raise TrainingError(f"{where}.{name} = {value!r}: allowed: 1e-12 to 1.0")
        elif name in CHOICES:
            if value not in CHOICES[name]:
                leaky = f' or {{ kind = "{LEAKY}", slope = SLOPE }}' if name == "activation" else ""
                raise TrainingError(f"{where}.{name} = {value!r}: allowed: {CHOICES[name]}{leaky}")
        elif type(value) is not int or not 1 <= value <= LARGEST:
            shown = value if name in values else None
            raise TrainingError(
                f"{where}.{name} = {shown!r}: allowed: a whole number from 1 to {LARGEST}"
            )
    return cls(**values)  # type: ignore[arg-type]  # checked above


def _check_leaky(value: Mapping[str, Any], where: str) -> None:
    slope = value.get("slope")
    known = set(value) == {"kind", "slope"} and value["kind"] == LEAKY
    if not known or not isinstance(slope, float) or not 0.0 <= slope <= 1.0:
        told = f'{{ kind = "{LEAKY}", slope = 0.0 to 1.0 }}'
        raise TrainingError(f"{where} = {dict(value)}: allowed: {told}")


def _with_time(shape: Shape, kind: str) -> tuple[int, int]:
    if len(shape) != 2:
        raise TrainingError(f"{kind}: allowed: before `flatten` and before `returns = 'last'`")
    return shape[0], shape[1]


def _zeros(key: Array, shape: Shape) -> Array:
    return jnp.zeros(shape, jnp.float32)


def _ones(key: Array, shape: Shape) -> Array:
    return jnp.ones(shape, jnp.float32)


def _he(key: Array, shape: Shape) -> Array:
    return initializers.he_uniform()(key, shape, jnp.float32)


def _lecun(key: Array, shape: Shape) -> Array:
    return initializers.lecun_normal()(key, shape, jnp.float32)


def _orthogonal_blocks(key: Array, shape: Shape) -> Array:
    """An orthogonal square per gate, side by side."""
    units, wide = shape
    keys = jax.random.split(key, wide // units)
    square = initializers.orthogonal()
    return jnp.concatenate([square(k, (units, units), jnp.float32) for k in keys], axis=-1)
