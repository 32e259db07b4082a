"""Bounds on what a network of dense layers answers for a box of inputs, by interval arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy.errors import ExchangeError
from ackademy.policies.policy_files import Opened

F64: TypeAlias = npt.NDArray[np.float64]

ACTIVATIONS: Mapping[str, Callable[[F64], F64]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
}
"""none of them falls, nor does the leaky one: answers to bounds are bounds of the answer"""
FLOAT32_SLACK = 1e-5
"""added to both sides of a bound, as the engine computes in single precision (proposed)"""


def activation_of(given: str | Mapping[str, Any]) -> Callable[[F64], F64]:
    """An activation by its name or, with a slope below 0, its table."""
    if isinstance(given, str):
        return ACTIVATIONS[given]
    slope = float(given["slope"])
    return lambda x: np.where(x < 0.0, slope * x, x)


@dataclass(frozen=True, slots=True)
class Dense:
    """A product, a bias and an activation that never falls."""

    kernel: F64
    """shape (inputs, units)"""
    bias: F64
    """shape (units,)"""
    activation: Callable[[F64], F64]


@dataclass(frozen=True, slots=True)
class DenseNetwork:
    """Dense layers over all steps of an observation side by side, the oldest first."""

    layers: tuple[Dense, ...]

    def answers(self, observations: F64) -> F64:
        """What it answers: shape (m, outputs) for observations (m, history, features)."""
        x = observations.reshape(len(observations), -1)
        for layer in self.layers:
            x = layer.activation(x @ layer.kernel + layer.bias)
        return x

    def bounds(self, low: F64, high: F64) -> tuple[F64, F64]:
        """Between what it answers to every observation between two.

        The centre of a box goes through a product as it is, its radius through the product's
        absolute values; an activation is applied to both ends.

        Args:
            low: shape (m, history, features).
            high: the same shape, nowhere below `low`.

        Returns:
            Lower and upper bounds, (m, outputs) each. They hold for every observation in the box;
            the answers may keep further inside.
        """
        low, high = low.reshape(len(low), -1), high.reshape(len(high), -1)
        for layer in self.layers:
            centre = (low + high) / 2 @ layer.kernel + layer.bias
            radius = (high - low) / 2 @ np.abs(layer.kernel)
            low, high = layer.activation(centre - radius), layer.activation(centre + radius)
        return low - FLOAT32_SLACK, high + FLOAT32_SLACK


def network_of(opened: Opened) -> DenseNetwork:
    """The network of a policy.

    Raises:
        ExchangeError: if it has other layers than `flatten`, at first, and `dense`.
    """
    layers: list[Dense] = []
    for index, table in enumerate(opened.layers):
        kind = table["kind"]
        if kind == "flatten" and not layers:
            continue
        if kind != "dense" or (not layers and opened.entering[0] > 1 and index == 0):
            told = f"layers[{index}].kind = {kind!r} in policy.toml"
            raise ExchangeError(f"{told}: allowed are flatten, at first, and dense behind it")
        layers.append(
            Dense(
                opened.tensors[f"layers.{index}.kernel"].astype(np.float64),
                opened.tensors[f"layers.{index}.bias"].astype(np.float64),
                activation_of(table.get("activation", "linear")),
            )
        )
    return DenseNetwork(tuple(layers))
