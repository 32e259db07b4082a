"""Branches of a graph over one vector, which a Concat joins: dense layers with zeros in between.

A branch takes some of the vector's numbers, in any order, and is a chain of its own. Branches of as
many dense layers, with the same activations, stand side by side in one chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ackademy.policies.onnx.chain import ANY_BATCH, F32, Chain, Value
from ackademy.policies.onnx.constants import Array, Refused, sliced, whole

PARTS_MAX = 64
"""of a Split, and branches of a Concat"""


@dataclass(frozen=True, slots=True)
class Branch:
    """A chain over some numbers of a vector."""

    source: Value
    columns: tuple[int, ...]
    chain: Chain = field(init=False)

    def __post_init__(self) -> None:
        """Begin the chain."""
        wide = len(self.columns)
        object.__setattr__(self, "chain", Chain((ANY_BATCH, wide), (1, wide)))

    def layers(self, value: Value) -> list[tuple[Any, F32, F32]]:
        """Activation, kernel and bias of each of its layers, the last of which gives the value."""
        self.chain.finish(value)
        own = []
        for index, layer in enumerate(self.chain.layers):
            if layer["kind"] == "flatten":
                continue
            if layer["kind"] != "dense":
                raise Refused(f"a branch with {layer['kind']}: allowed: dense layers in branches")
            kernel, bias = (self.chain.tensors[f"layers.{index}.{p}"] for p in ("kernel", "bias"))
            own.append((layer["activation"], kernel, bias))
        return own


def can_fork(value: Value) -> bool:
    """Whether a value may have branches: a vector for each observation."""
    return len(value.sizes) == 2 and value.axes[-1] == "f" and not value.returns


def taken(
    op: str,
    value: Value,
    sides: Sequence[Array | None],
    outputs: int,
    attributes: Any,  # noqa: ANN401  # ONNX's
) -> list[tuple[int, ...]]:
    """The places of a vector that a Slice takes, or each output of a Split."""
    wide = value.sizes[-1]
    if op == "Slice":
        parts = sliced(sides, 2)
        if set(parts) - {1}:
            raise Refused("allowed: along the features")
        return [tuple(range(wide)[parts.get(1, slice(None))])]
    if attributes.get("axis", 0) not in (1, -1) or outputs > PARTS_MAX:
        raise Refused(f"allowed: along the features, at most {PARTS_MAX} outputs")
    if len(sides) > 1 and sides[1] is not None:
        sizes = whole(sides[1])
    else:
        each = -(-wide // outputs)
        rest = wide - each * (outputs - 1)
        sizes = list(attributes.get("split", [each] * (outputs - 1) + [rest]))
    if len(sizes) != outputs or min(sizes) < 1 or sum(sizes) != wide:
        raise Refused(f"into {sizes}: allowed: sizes from 1 whose sum is {wide}")
    ends = np.cumsum(sizes)
    return [tuple(range(end - size, end)) for end, size in zip(ends.tolist(), sizes, strict=True)]


def joined(chain: Chain, branches: Sequence[tuple[Branch, Value]]) -> Value:
    """All branches of one source side by side, behind a chain.

    Raises:
        Refused: if they differ in what they begin with, in depth or in activations.
    """
    source = branches[0][0].source
    if any(branch.source != source for branch, _ in branches) or len(branches) > PARTS_MAX:
        raise Refused(f"allowed: at most {PARTS_MAX} branches of one value")
    stacks = [branch.layers(value) for branch, value in branches]
    shapes = [[activation for activation, _, _ in stack] for stack in stacks]
    if any(shape != shapes[0] for shape in shapes):
        raise Refused("allowed: branches of as many dense layers, with the same activations")
    columns = [list(branch.columns) for branch, _ in branches]
    if not shapes[0]:
        places = [place for own in columns for place in own]
        return chain.dense(source, np.eye(source.sizes[-1], dtype=np.float32)[:, places], None)
    after, wide = source, source.sizes[-1]
    for depth, activation in enumerate(shapes[0]):
        kernels = [stack[depth][1] for stack in stacks]
        widths = [kernel.shape[1] for kernel in kernels]
        kernel = np.zeros((wide, sum(widths)), np.float32)
        for rows, own, end, units in zip(columns, kernels, np.cumsum(widths), widths, strict=True):
            kernel[rows, end - units : end] = own
        after = chain.dense(after, kernel, np.concatenate([stack[depth][2] for stack in stacks]))
        if activation != "linear":
            after = chain.activate(after, activation)
        wide = sum(widths)
        columns = [
            list(range(end - n, end)) for end, n in zip(np.cumsum(widths), widths, strict=True)
        ]
    return after
