"""A policy's network: from its list of layers to a Flax module, and to its tensors and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import flax.linen as nn
import jax
import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy
from jax import Array

from ackademy import files
from ackademy.learn.layers import Layer, Shape, shapes_through

T = TypeVar("T")
Weights: TypeAlias = dict[str, Array]
"""by the name of the tensor: `layers.{i}.{part}`"""
Tensor: TypeAlias = npt.NDArray[np.float32]
Tensors: TypeAlias = dict[str, Tensor]
"""the same outside of JAX"""


class Network(nn.Module):
    """The layers one behind the other; its parameters have the names of the tensors."""

    layers: tuple[Layer, ...]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Outputs, shape (batch, outputs), of observations (batch, history, features)."""
        for index, layer in enumerate(self.layers):
            parts = {
                part: self.param(tensor_name(index, part), begin, shape)
                for part, (shape, begin) in layer.parts(x.shape[1:]).items()
            }
            x = layer(parts, x)
        return x


def tensor_name(index: int, part: str) -> str:
    """The name of a tensor in `weights.safetensors`."""
    return f"layers.{index}.{part}"


def tensor_shapes(layers: Sequence[Layer], entering: Shape) -> dict[str, Shape]:
    """Every tensor that these layers have, and its shape.

    Args:
        layers: one behind the other.
        entering: (history, features) of the observation.
    """
    shapes = shapes_through(layers, entering)
    return {
        tensor_name(index, part): shape
        for index, layer in enumerate(layers)
        for part, (shape, _) in layer.parts(shapes[index]).items()
    }


def begin(layers: Sequence[Layer], entering: Shape, key: Array) -> Weights:
    """Weights to begin with: He-uniform, orthogonal where recurrent, biases 0."""
    shapes_through(layers, entering)
    first = jax.jit(Network(tuple(layers)).init)  # one compilation, not one per operation
    made = first(key, np.zeros((1, *entering), np.float32))
    weights: Weights = dict(made["params"]) if "params" in made else {}
    return weights


def apply(layers: Sequence[Layer], weights: Mapping[str, Array], x: Array) -> Array:
    """Outputs of a batch of observations; to be traced, or called through `jitted`."""
    out = Network(tuple(layers)).apply({"params": dict(weights)}, x)
    assert isinstance(out, Array)  # Flax could also return what the layers have changed
    return out


@partial(jax.jit, static_argnums=0)
def jitted(layers: tuple[Layer, ...], weights: Weights, x: Array) -> Array:
    """`apply`, compiled once per list of layers and shape."""
    return apply(layers, weights, x)


def in_slices(layers: tuple[Layer, ...], weights: Weights, x: Tensor, width: int) -> Tensor:
    """Outputs of any number of observations, computed in slices of one shape, padded.

    XLA compiles a function per shape.

    Args:
        layers: one behind the other.
        weights: of the layers.
        x: shape (m, history, features).
        width: observations of a slice, >= 1.

    Returns:
        Shape (m, outputs).
    """
    parts = []
    for start in range(0, len(x), width):
        part = x[start : start + width]
        padded = np.zeros((width, *part.shape[1:]), np.float32)
        padded[: len(part)] = part
        parts.append(np.asarray(jitted(layers, weights, jax.numpy.asarray(padded)))[: len(part)])
    units = layers[-1].output((1,))[-1]
    return np.concatenate(parts) if parts else np.zeros((0, units), np.float32)


def leaves(tree: Any, name: str) -> dict[str, npt.NDArray[np.generic]]:  # noqa: ANN401  # any tree
    """The arrays of a tree, for a checkpoint."""
    return {f"{name}.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def with_leaves(like: T, arrays: Mapping[str, npt.NDArray[np.generic]], name: str) -> T:
    """A tree like another, with the arrays that `leaves` gave."""
    leaves, structure = jax.tree.flatten(like)
    kept = [jax.numpy.asarray(arrays[f"{name}.{i}"]) for i in range(len(leaves))]
    restored: T = jax.tree.unflatten(structure, kept)
    return restored


def save(weights: Mapping[str, Array], path: Path) -> None:
    """Write the tensors; the same weights give the same bytes."""
    files.write(path, to_bytes(weights))


def to_bytes(weights: Mapping[str, Array]) -> bytes:
    """The tensors as safetensors, in the order of their names."""
    tensors = {name: np.asarray(weights[name], np.float32) for name in sorted(weights)}
    return safetensors.numpy.save({k: np.ascontiguousarray(v) for k, v in tensors.items()})
