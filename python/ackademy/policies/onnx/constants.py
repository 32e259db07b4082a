"""What of an ONNX graph does not depend on the observation: weights, and shapes that are computed.

PyTorch writes out how it makes a recurrent layer's first state from the batch's size, and the
shapes of its reshapes. These few operations on constants are computed here, sizes checked first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, numpy_helper

Array: TypeAlias = npt.NDArray[Any]
Attributes: TypeAlias = Mapping[str, Any]
NUMBERS_MAX = 1 << 24
"""in one constant; the weights of a policy are no more"""
RANK_MAX = 4
ITEM_TYPES = {
    TensorProto.FLOAT: np.float32,
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.BOOL: np.bool_,
}


class Refused(Exception):  # noqa: N818  # becomes the message of an error that names the node
    """Says what is allowed."""


def array_of(tensor: onnx.TensorProto) -> Array:
    """The numbers of a tensor.

    Raises:
        Refused: if they lie in another file, are too many or of a kind that no policy needs.
    """
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise Refused("its numbers lie in another file: allowed: numbers in the model itself")
    if tensor.data_type not in ITEM_TYPES:
        names = dict(map(reversed, TensorProto.DataType.items()))
        kind = names.get(tensor.data_type, tensor.data_type)
        raise Refused(f"numbers of type {kind}: allowed: FLOAT, INT64, INT32, BOOL")
    if len(tensor.dims) > RANK_MAX or min(tensor.dims, default=1) < 0:
        raise Refused(f"shape {list(tensor.dims)}: allowed: at most {RANK_MAX} axes")
    if prod(tensor.dims) > NUMBERS_MAX:
        raise Refused(f"shape {list(tensor.dims)}: allowed: at most {NUMBERS_MAX} numbers")
    try:
        numbers: Array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise Refused(f"{error}: allowed: as many numbers as its shape says") from None
    return numbers


def computed(op: str, inputs: Sequence[Array | None], attributes: Attributes) -> Array:
    """The output of an operation on constants.

    Raises:
        Refused: if it is none of the few, or its inputs do not fit.
    """
    if op not in OPERATIONS:
        raise Refused(f"on constants: allowed: {', '.join(sorted(OPERATIONS))}")
    try:
        out = OPERATIONS[op](inputs, attributes)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        raise Refused("its inputs do not fit each other: allowed: as ONNX describes it") from None
    if out.size > NUMBERS_MAX or out.ndim > RANK_MAX:
        raise Refused(f"makes shape {list(out.shape)}: allowed: at most {NUMBERS_MAX} numbers")
    return out


def sliced(inputs: Sequence[Array | None], rank: int) -> dict[int, slice]:
    """What a Slice takes of each axis that it names."""
    starts, ends = whole(inputs[1]), whole(inputs[2])
    axes = whole(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else range(len(starts))
    steps = whole(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    parts = zip(axes, starts, ends, steps, strict=True)
    return {axis % rank: slice(start, end, step) for axis, start, end, step in parts}


def whole(array: Array | None) -> list[int]:
    """A constant of whole numbers as a list.

    Raises:
        Refused: if it is none.
    """
    if array is None or array.dtype.kind not in "iu" or array.ndim > 1:
        raise Refused("allowed: constant whole numbers for its shape, axes or places")
    return [int(value) for value in array.reshape(-1)]


def _fits(sizes: Sequence[int]) -> None:
    """Refuse a shape before it is made."""
    if prod(sizes) > NUMBERS_MAX:
        raise Refused(f"makes shape {list(sizes)}: allowed: at most {NUMBERS_MAX} numbers")


def _of_two(inputs: Sequence[Array], operation: Callable[[Array, Array], Array]) -> Array:
    _fits(np.broadcast_shapes(inputs[0].shape, inputs[1].shape))
    return operation(inputs[0], inputs[1])


def _joined(inputs: Sequence[Array], attributes: Attributes) -> Array:
    _fits([sum(array.size for array in inputs)])
    return np.concatenate(list(inputs), attributes["axis"])


def _taken(inputs: Sequence[Array], attributes: Attributes) -> Array:
    array, places = inputs
    axis = attributes.get("axis", 0)
    _fits([array.size // max(1, array.shape[axis]), places.size])
    return np.take(array, places, axis)


def _filled(shape: Array | None, value: Array | None) -> Array:
    sizes = whole(shape)
    if min(sizes, default=1) < 0:
        raise Refused(f"makes shape {sizes}: allowed: sizes from 0")
    _fits(sizes)
    item = np.float32(0) if value is None else value.reshape(-1)[0]
    return np.full(sizes, item)


def _expanded(array: Array, shape: Array | None) -> Array:
    sizes = np.broadcast_shapes(array.shape, tuple(whole(shape)))
    _fits(sizes)
    return np.broadcast_to(array, sizes)


def _slice(inputs: Sequence[Any], _: Attributes) -> Array:
    array = inputs[0]
    parts = sliced(inputs, array.ndim)
    cut: Array = array[tuple(parts.get(axis, slice(None)) for axis in range(array.ndim))]
    return cut


def _axes(inputs: Sequence[Array | None], attributes: Attributes) -> tuple[int, ...]:
    """From the second input, or, in old models, an attribute."""
    if len(inputs) > 1:
        return tuple(whole(inputs[1]))
    return tuple(attributes["axes"])


OPERATIONS: Mapping[str, Callable[[Sequence[Any], Attributes], Array]] = {
    "Add": lambda x, a: _of_two(x, operator.add),
    "Cast": lambda x, a: x[0].astype(ITEM_TYPES[a["to"]]),
    "Concat": _joined,
    "Constant": lambda x, a: array_of(a["value"]),
    "ConstantOfShape": lambda x, a: _filled(x[0], array_of(a["value"]) if "value" in a else None),
    "Expand": lambda x, a: _expanded(x[0], x[1]),
    "Gather": _taken,
    "Identity": lambda x, a: x[0],
    "Mul": lambda x, a: _of_two(x, operator.mul),
    "Reshape": lambda x, a: x[0].reshape(whole(x[1])),
    "Slice": _slice,
    "Squeeze": lambda x, a: np.squeeze(x[0], _axes(x, a)),
    "Transpose": lambda x, a: np.transpose(x[0], a.get("perm")),
    "Unsqueeze": lambda x, a: np.expand_dims(x[0], _axes(x, a)),
}
