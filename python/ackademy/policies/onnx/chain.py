"""The layers that an ONNX graph amounts to, put down one by one as its nodes are walked.

A value on its way has axes: `b` the batch, `t` time, `f` features, `1` an axis of one, which says
nothing. Where it has no `t`, it is a series of a single vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ackademy.policies.onnx.constants import Array, Refused, whole

F32 = npt.NDArray[np.float32]
ANY_BATCH = 7919
"""stands for a batch of any size: a prime, so that no other product of sizes is a multiple of it"""


@dataclass(frozen=True, slots=True)
class Value:
    """What one node hands on to the next."""

    axes: str
    sizes: tuple[int, ...]
    serial: int = 0
    """how many steps of the network are behind it, however it is laid out"""
    returns: str = ""
    """of the recurrent layer that it comes from, which the next step decides"""

    def size(self, axis: str) -> int:
        """Of an axis; 1 without it."""
        return self.sizes[self.axes.index(axis)] if axis in self.axes else 1


class Chain:
    """Layers, their tensors, and the value behind them.

    Args:
        sizes: of the model's input, `ANY_BATCH` for a batch of any size.
        entering: (history, features) of an observation.

    Raises:
        Refused: if the input is not of such observations.
    """

    def __init__(self, sizes: tuple[int, ...], entering: tuple[int, int]) -> None:
        self.layers: list[dict[str, Any]] = []
        self.tensors: dict[str, F32] = {}
        self.serial = 0
        self._open_bias = False
        """whether the last layer is a product that still lacks its sum"""
        self._turned: tuple[int, int] | None = None
        """(features, time) of a vector that was flattened with time innermost"""
        self._affine: tuple[Array, Array] | None = None
        """Factors and sums of the newest value's features that no layer has taken yet."""
        steps, width = entering
        if len(sizes) == 3 and sizes[1:] in ((steps, width), (width, steps)):
            order = "btf" if sizes[1:] == (steps, width) else "bft"
        elif len(sizes) == 2 and sizes[1] == steps * width:
            order = "bf"
        else:
            raise Refused(
                f"shape {list(sizes)}: allowed: (batch, {steps}, {width}), (batch, {width}, "
                f"{steps}) or (batch, {steps * width}), as the policy's observation is"
            )
        self.entering = _value(order, sizes)
        if order == "bf" and steps > 1:
            self.layers.append({"kind": "flatten"})

    def hand_on(self, axes: str, sizes: tuple[int, ...], returns: str = "") -> Value:
        """What the next step of the network takes."""
        self.serial += 1
        return replace(_value(axes, sizes), serial=self.serial, returns=returns)

    def dense(self, value: Value, kernel: Array, bias: Array | None) -> Value:
        """A product with the last axis; without a bias, it may follow."""
        self.take(value)
        if value.axes[-1] != "f":
            raise Refused("allowed: a product with the axis of features, which must be the last")
        wide = value.sizes[-1]
        if kernel.ndim != 2 or kernel.shape[0] != wide:
            raise Refused(f"weights of shape {list(kernel.shape)}: allowed: ({wide}, any)")
        is_open = bias is None
        kernel, bias = self._scaled(kernel, bias)
        if self._turned is not None:
            kernel = kernel.reshape(*self._turned, -1).swapaxes(0, 1).reshape(kernel.shape)
            self._turned = None
        units = kernel.shape[1]
        parts = {"kernel": kernel, "bias": _bias(bias, units)}
        self._layer({"kind": "dense", "units": units, "activation": "linear"}, parts)
        self._open_bias = is_open and bias is None
        return self.hand_on(value.axes, (*value.sizes[:-1], units))

    def add(self, value: Value, bias: Array) -> Value:
        """The bias of the product right before, or a number for each feature."""
        units = value.size("f")
        if not self._open_bias or value.axes[-1] != "f":
            return self.affine(value, np.ones(units), per_feature(value, bias))
        self.take(value)
        if bias.ndim and prod(bias.shape) != bias.shape[-1]:
            raise Refused(f"bias of shape {list(bias.shape)}: allowed: ({units},)")
        self.tensors[f"layers.{len(self.layers) - 1}.bias"] = _bias(bias.reshape(-1), units)
        self._open_bias = False
        return self.hand_on(value.axes, value.sizes)

    def affine(self, value: Value, factors: Array, sums: Array) -> Value:
        """Every feature times one number and plus another, in the layer before or behind."""
        self.take(value)
        if not (np.isfinite(factors).all() and np.isfinite(sums).all()):
            raise Refused("allowed: finite numbers")
        last = self.layers[-1] if self.layers else {}
        if last.get("activation") == "linear" and self._affine is None:
            prefix = f"layers.{len(self.layers) - 1}."
            parts = ("scale",) if last["kind"] == "layer_norm" else ("kernel",)
            for part in (*parts, "bias"):
                self.tensors[prefix + part] = (self.tensors[prefix + part] * factors).astype(
                    np.float32
                )
            bias = self.tensors[prefix + "bias"].astype(np.float64) + sums
            self.tensors[prefix + "bias"] = bias.astype(np.float32)
            self._open_bias = False
        else:
            before, added = self._affine or (np.ones(1), np.zeros(1))
            self._affine = (before * factors, added * factors + sums)
        return self.hand_on(value.axes, value.sizes)

    def layer_norm(self, value: Value, scale: Array, bias: Array | None, epsilon: float) -> Value:
        """Each vector less its mean, over its standard deviation."""
        self.take(value)
        units = value.sizes[-1]
        if value.axes[-1] != "f" or scale.shape != (units,):
            raise Refused(
                f"over shape {list(scale.shape)}: allowed: the axis of features, the last"
            )
        self._settle(units)
        layer = {"kind": "layer_norm", "epsilon": epsilon, "activation": "linear"}
        self._layer(layer, {"scale": scale, "bias": _bias(bias, units)})
        return self.hand_on(value.axes, value.sizes)

    def conv1d(
        self, value: Value, kernel: Array, bias: Array | None, pads: tuple[int, int]
    ) -> Value:
        """A convolution along the last axis."""
        self.take(value)
        steps, width = self._channels(value)
        if kernel.ndim != 3 or kernel.shape[1] != width:
            raise Refused(f"weights of shape {list(kernel.shape)}: allowed: (any, {width}, any)")
        filters, _, size = kernel.shape
        same = ((size - 1) // 2, size - 1 - (size - 1) // 2)
        if pads not in ((0, 0), same):
            raise Refused(f"pads = {list(pads)}: allowed: [0, 0] or {list(same)}")
        if pads != same and steps < size:
            raise Refused(f"kernel of {size} steps: allowed: 1 to {steps}, the steps there")
        self._layer(
            {
                "kind": "conv1d",
                "filters": filters,
                "kernel": size,
                "padding": "same" if pads == same else "valid",
                "activation": "linear",
            },
            {"kernel": kernel.transpose(2, 1, 0), "bias": _bias(bias, filters)},
        )
        left = steps if pads == same else steps - size + 1
        return self.hand_on("bft", (value.sizes[0], filters, left))

    def max_pool(self, value: Value, size: int, *, up: bool) -> Value:
        """The largest of neighbours; `up`: of those left over at the end, too."""
        self.take(value)
        steps, width = self._channels(value)
        if not 1 <= size <= steps or (up and steps % size):
            raise Refused(f"size {size} on {steps} steps: allowed: what leaves none over")
        self._layer({"kind": "max_pool", "size": size}, {})
        return self.hand_on("bft", (value.sizes[0], width, steps // size))

    def recurrent(self, value: Value, kind: str, parts: Mapping[str, F32]) -> tuple[int, int, int]:
        """A layer with a state, of a series with time before the batch.

        Returns:
            Sizes of time, batch and state.
        """
        self.take(value)
        if len(value.axes) != 3 or value.axes[0] not in "t1" or value.axes[2] != "f":
            raise Refused("allowed: a series with axes (time, batch, features)")
        width = parts["kernel"].shape[0]
        if width != value.sizes[2]:
            raise Refused(f"weights for {width} numbers: allowed: for {value.sizes[2]}")
        units = parts["recurrent"].shape[0]
        kernel, bias = self._scaled(parts["kernel"], parts["bias"])
        parts = {**parts, "kernel": kernel, "bias": _bias(bias, kernel.shape[1])}
        self._layer({"kind": kind, "units": units, "returns": "all"}, parts)
        return value.sizes[0], value.sizes[1], units

    def take(self, value: Value) -> None:
        """A step of the network takes a value, which must be the newest.

        Raises:
            Refused: if another step has taken it.
        """
        if value.serial != self.serial:
            raise Refused("takes what another node took: allowed: nodes one behind the other")
        if value.returns:
            self.layers[-1]["returns"] = value.returns

    def last(self, value: Value) -> None:
        """Only the last vector counts: what stands between it and a state goes vector by vector."""
        self.take(value)
        for layer in reversed(self.layers):
            if layer["kind"] in ("lstm", "gru"):
                layer["returns"] = "last"
                self.serial += 1
                return
            if layer["kind"] != "dense":
                break
        raise Refused("allowed: the last vector behind an LSTM or a GRU")

    def activate(self, value: Value, name: str | dict[str, str | float]) -> Value:
        """On the last layer that has weights; what grows may be put before a pool's largest."""
        self.take(value)
        self._settle(value.size("f"))
        for layer in reversed(self.layers):
            if layer.get("activation") == "linear":
                layer["activation"] = name
                self._open_bias = False
                return self.hand_on(value.axes, value.sizes)
            if layer["kind"] not in ("max_pool", "flatten"):
                break
        raise Refused("allowed: behind a dense layer or a convolution, and one of each")

    def flatten(self, value: Value, *, noted: bool) -> Value:
        """All vectors side by side.

        Args:
            value: to be flattened.
            noted: note a layer even if there is a single vector.
        """
        self.take(value)
        steps, width = value.size("t"), value.size("f")
        inner = value.axes.replace("1", "")[1 if value.axes[0] in "b" else 0 :]
        if value.axes[0] not in "b1" or inner not in ("tf", "ft", "f"):
            raise Refused("allowed: with the batch before time and features")
        if "t" in value.axes or noted:
            self._layer({"kind": "flatten"}, {})
        if self._affine is not None:
            spread = np.repeat if inner == "ft" else np.tile
            factors, sums = (part + np.zeros(width) for part in self._affine)
            self._affine = (spread(factors, steps), spread(sums, steps))
        if inner == "ft" and width > 1:
            self._turned = (width, steps)
        return self.hand_on("bf", (value.sizes[0], steps * width))

    def reshape(self, value: Value, target: list[int]) -> Value:
        """Takes axes of one away or puts them in, or flattens."""
        shape = _resolved(value.sizes, target)
        own = [(axis, size) for axis, size in zip(value.axes, value.sizes, strict=True) if size > 1]
        sizes = [size for size in shape if size > 1]
        if sizes == [size for _, size in own]:
            names = iter([axis for axis, _ in own])
            axes = "".join(next(names) if size > 1 else "1" for size in shape)
            if "f" not in axes and "1" in axes:  # a single number per vector
                place = axes.rindex("1")
                axes = axes[:place] + "f" + axes[place + 1 :]
            return _view(value, axes, shape)
        if len(shape) == 2 and shape[0] == value.sizes[0]:
            return self.flatten(value, noted=False)
        raise Refused(f"from {list(value.sizes)} to {list(shape)}: allowed: to flatten a series")

    def transpose(self, value: Value, order: list[int]) -> Value:
        """The axes in another order."""
        if sorted(order) != list(range(len(value.axes))):
            raise Refused(f"perm = {order}: allowed: every axis once")
        axes = "".join(value.axes[place] for place in order)
        return _view(value, axes, tuple(value.sizes[place] for place in order))

    def squeeze(self, value: Value, places: list[int]) -> Value:
        """Axes of one taken away."""
        gone = {place % len(value.axes) for place in places}
        if any(value.sizes[place] != 1 or value.axes[place] == "f" for place in gone):
            raise Refused(f"axes = {places}: allowed: axes of size 1, but for that of features")
        left = [place for place in range(len(value.axes)) if place not in gone]
        axes = "".join(value.axes[place] for place in left)
        return _view(value, axes, tuple(value.sizes[place] for place in left))

    def unsqueeze(self, value: Value, places: list[int]) -> Value:
        """Axes of one put in."""
        rank = len(value.axes) + len(places)
        put = {place % rank for place in places}
        if len(put) != len(places) or rank > 4:
            raise Refused(f"axes = {places}: allowed: at most 4 axes in all, each once")
        axes, sizes = iter(value.axes), iter(value.sizes)
        pairs = [("1", 1) if place in put else (next(axes), next(sizes)) for place in range(rank)]
        return _view(value, "".join(axis for axis, _ in pairs), tuple(size for _, size in pairs))

    def gather(self, value: Value, axis: int, index: Array | None) -> Value:
        """One place along time, the last, or the only one of an axis."""
        places, place = whole(index), axis % len(value.axes)
        assert index is not None
        size = value.sizes[place]
        if len(places) != 1 or value.axes[place] not in "t1" or places[0] not in (-1, size - 1):
            raise Refused(f"place {places} of an axis of {size}: allowed: the last, of time")
        if value.axes[place] == "t":
            self.last(value)
            value = replace(value, serial=self.serial, returns="")
        kept = "1" * index.ndim
        axes = value.axes[:place] + kept + value.axes[place + 1 :]
        sizes = (*value.sizes[:place], *([1] * index.ndim), *value.sizes[place + 1 :])
        return _view(value, axes, sizes)

    def slice(self, value: Value, parts: Mapping[int, slice]) -> Value:
        """All of an axis, or the last place along time."""
        axes, sizes = list(value.axes), list(value.sizes)
        for place, part in parts.items():
            taken = range(sizes[place])[part]
            if taken == range(sizes[place]):
                continue
            if axes[place] != "t" or list(taken) != [sizes[place] - 1]:
                raise Refused("allowed: the last place along time, or all of an axis")
            self.last(value)
            value = replace(value, serial=self.serial, returns="")
            axes[place], sizes[place] = "1", 1
        return _view(value, "".join(axes), tuple(sizes))

    def finish(self, value: Value) -> None:
        """A value must be a vector of outputs.

        Raises:
            Refused: if it is none.
        """
        self.take(value)
        if "f" in value.axes:
            self._settle(value.size("f"))
        if self._turned is not None or "t" in value.axes or "f" not in value.axes:
            shape = list(value.sizes)
            raise Refused(f"shape {shape}: allowed: one vector of outputs per observation")

    def _channels(self, value: Value) -> tuple[int, int]:
        """Steps and width of a series with time innermost."""
        if len(value.axes) != 3 or value.axes[1] != "f" or value.axes[2] not in "t1":
            raise Refused("allowed: a series with axes (batch, features, time)")
        return value.sizes[2], value.sizes[1]

    def _scaled(self, kernel: Array, bias: Array | None) -> tuple[Array, Array | None]:
        """The weights of a product that takes what is scaled, for what is not."""
        if self._affine is None:
            return kernel, bias
        factors, sums = (part + np.zeros(len(kernel)) for part in self._affine)
        self._affine = None
        added = sums @ kernel + (0.0 if bias is None else bias)
        return (kernel * factors[:, None]).astype(np.float32), added.astype(np.float32)

    def _settle(self, units: int) -> None:
        """A layer for factors and sums that none takes."""
        if self._affine is None:
            return
        kernel, bias = self._scaled(np.eye(units, dtype=np.float32), None)
        if (kernel == np.eye(units)).all() and bias is not None and not bias.any():
            return
        parts = {"kernel": kernel, "bias": _bias(bias, units)}
        self._layer({"kind": "dense", "units": units, "activation": "linear"}, parts)

    def _layer(self, layer: dict[str, Any], parts: Mapping[str, Array]) -> None:
        if self._turned is not None:
            raise Refused("allowed: a dense layer behind what was flattened features first")
        if self._affine is not None and layer["kind"] != "flatten":
            raise Refused("allowed: a dense or recurrent layer behind what is scaled")
        for part, tensor in parts.items():
            if tensor.dtype != np.float32:
                raise Refused(f"weights of type {tensor.dtype}: allowed: float32")
            self.tensors[f"layers.{len(self.layers)}.{part}"] = np.ascontiguousarray(tensor)
        self.layers.append(layer)
        self._open_bias = False


def per_feature(value: Value, numbers: Array) -> Array:
    """A constant as a number for each feature of a value.

    Raises:
        Refused: if it is another for other vectors, or not of numbers.
    """
    units, rank = value.size("f"), len(value.axes)
    if numbers.dtype != np.float32:
        raise Refused(f"numbers of type {numbers.dtype}: allowed: float32")
    sizes = (1,) * (rank - numbers.ndim) + numbers.shape
    wanted = tuple(units if axis == "f" else 1 for axis in value.axes)
    if numbers.size != 1 and sizes != wanted:
        raise Refused(
            f"numbers of shape {list(numbers.shape)}: allowed: one for each of {units} features"
        )
    return np.broadcast_to(numbers.reshape(-1), (units,)).astype(np.float64)


def _value(axes: str, sizes: tuple[int, ...]) -> Value:
    """A value whose axes of one say nothing, but for that of features."""
    pairs = zip(axes, sizes, strict=True)
    named = "".join("1" if size == 1 and axis != "f" else axis for axis, size in pairs)
    return Value(named, sizes)


def _view(value: Value, axes: str, sizes: tuple[int, ...]) -> Value:
    """The same numbers, laid out in another way."""
    return replace(_value(axes, sizes), serial=value.serial, returns=value.returns)


def _bias(bias: Array | None, units: int) -> F32:
    if bias is None:
        return np.zeros(units, np.float32)
    if bias.dtype != np.float32 or bias.size not in (1, units):
        raise Refused(f"bias of {bias.dtype}{list(bias.shape)}: allowed: float32 of {units}")
    return np.broadcast_to(bias.reshape(-1), (units,)).copy()


def _resolved(sizes: tuple[int, ...], target: list[int]) -> tuple[int, ...]:
    """The shape that a Reshape asks for: 0 keeps a size, -1 takes what is left."""
    if len(target) > 4 or target.count(-1) > 1 or min(target, default=0) < -1:
        raise Refused(f"to {target}: allowed: at most 4 axes, one of them -1")
    shape = [sizes[i] if size == 0 and i < len(sizes) else size for i, size in enumerate(target)]
    known = prod(size for size in shape if size != -1)
    if known <= 0 or prod(sizes) % known or (-1 not in shape and known != prod(sizes)):
        raise Refused(f"from {list(sizes)} to {target}: allowed: as many numbers as there are")
    return tuple(prod(sizes) // known if size == -1 else size for size in shape)
