"""From a policy's network to an ONNX model: input `observation`, output `outputs`, any batch.

ONNX puts channels before time where it convolves and pools, and time before the batch where a state
comes in; axes are turned only where the next node needs it. Gates stand in other orders: LSTM i, o,
f, c for our i, f, g, o; GRU z, r, h for our r, z, n, with the reset gate behind the recurrent
product (`linear_before_reset`). The bias of our gates is ONNX's of the inputs; but for n, the
recurrent one is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import ackademy
from ackademy.errors import ExchangeError
from ackademy.policies.policy_files import Opened, Tensors

OPSET, TREES_OPSET, IR_VERSION = 17, 3, 8
"""of 2022: what most runtimes know"""
SETTINGS_KEY, ABOUT_KEY = "ackademy.agent_settings", "ackademy.about"
SETTINGS_KEY_BEFORE = "ackademy.pilot"
"""of models exported before the key was renamed: an error"""
"""of the model's metadata: what the policy sees and does, which the network does not tell"""
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}
LSTM_GATES, GRU_GATES = (0, 3, 1, 2), (1, 0, 2)
"""places in ours of the gates in ONNX's order"""
TREE_NODES_MAX = 1 << 22
"""Nodes that trees share are written once for each tree."""
SERIES, CHANNELS, FIRST = (0, 1, 2), (0, 2, 1), (1, 0, 2)
"""order of the axes: (batch, time, features), (batch, features, time), (time, batch, features)"""


def model_of(opened: Opened) -> onnx.ModelProto:
    """The model of a policy.

    Raises:
        ExchangeError: if its trees share so many nodes that they cannot be written out.
    """
    graph = _Graph(opened.entering)
    for index, layer in enumerate(opened.layers):
        prefix = f"layers.{index}."
        parts = {
            name.removeprefix(prefix): tensor
            for name, tensor in opened.tensors.items()
            if name.startswith(prefix)
        }
        graph.add(index, layer, parts)
    graph.finish()
    outputs = opened.policy.outputs(np.zeros(opened.entering, np.float32)).size
    entering = helper.make_tensor_value_info(
        "observation", TensorProto.FLOAT, ["batch", *opened.entering]
    )
    leaving = helper.make_tensor_value_info("outputs", TensorProto.FLOAT, ["batch", outputs])
    domains = [helper.make_opsetid("", OPSET)]
    if any(layer["kind"] == "trees" for layer in opened.layers):
        domains.append(helper.make_opsetid("ai.onnx.ml", TREES_OPSET))
    model = helper.make_model(
        helper.make_graph(graph.nodes, "policy", [entering], [leaving], graph.tensors),
        opset_imports=domains,
        ir_version=IR_VERSION,
        producer_name="ackademy",
        producer_version=ackademy.__version__,
        doc_string=opened.policy.about,
    )
    metadata = {SETTINGS_KEY: opened.policy.agent_settings, ABOUT_KEY: opened.policy.about}
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    return model


class _Graph:
    """Nodes one behind the other, and the value at their end."""

    def __init__(self, entering: tuple[int, int]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._value = "observation"
        self._steps, self._width = entering
        self._axes: tuple[int, ...] | None = SERIES
        """order of the axes; `None`: (batch, features), a series of one"""

    def add(self, index: int, layer: Mapping[str, Any], parts: Tensors) -> None:
        """The nodes of a layer."""
        name, kind = f"layers.{index}", layer["kind"]
        if kind == "dense":
            self._dense(name, parts)
        elif kind == "conv1d":
            self._conv1d(name, layer, parts)
        elif kind == "max_pool":
            self._turn(CHANNELS)
            size = layer["size"]
            self._node("MaxPool", name, kernel_shape=[size], strides=[size])
            self._steps //= size
        elif kind == "layer_norm":
            self._layer_norm(name, layer, parts)
        elif kind == "flatten":
            self._flatten(name)
        elif kind in ("lstm", "gru"):
            self._recurrent(name, layer, parts)
        else:
            self._trees(name, layer, parts)
        activation = layer.get("activation", "linear")
        if not isinstance(activation, str):
            self._node("LeakyRelu", f"{name}.activation", alpha=float(activation["slope"]))
        elif activation != "linear":
            self._node(ACTIVATIONS[activation], f"{name}.activation")

    def finish(self) -> None:
        """Leave (batch, outputs) under its name."""
        if self._axes is not None:
            self._turn(SERIES)
            self._node("Squeeze", "vector", self._integers("vector.axes", [1]))
        self.nodes[-1].output[0] = "outputs"

    def _node(self, op: str, name: str, *inputs: str, **attributes: Any) -> None:  # noqa: ANN401  # ONNX's
        """A node behind the last one."""
        entering = [self._value, *inputs]
        self._value = f"{name}.output"
        self.nodes.append(helper.make_node(op, entering, [self._value], name, **attributes))

    def _tensor(self, name: str, values: npt.NDArray[Any]) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _integers(self, name: str, values: Sequence[int]) -> str:
        return self._tensor(name, np.array(values, np.int64))

    def _turn(self, axes: tuple[int, ...]) -> None:
        """Bring the axes into this order."""
        if self._axes is None:
            name = f"series.{len(self.nodes)}"
            self._node("Unsqueeze", name, self._integers(f"{name}.axes", [1]))
            self._axes = SERIES
        if self._axes != axes:
            order = [self._axes.index(axis) for axis in axes]
            self._node("Transpose", f"turn.{len(self.nodes)}", perm=order)
            self._axes = axes

    def _dense(self, name: str, parts: Tensors) -> None:
        kernel = self._tensor(f"{name}.kernel", parts["kernel"])
        bias = self._tensor(f"{name}.bias", parts["bias"])
        if self._axes is None:
            self._node("Gemm", name, kernel, bias)
        else:
            self._turn(SERIES)
            self._node("MatMul", name, kernel)
            self._node("Add", f"{name}.add", bias)
        self._width = len(parts["bias"])

    def _conv1d(self, name: str, layer: Mapping[str, Any], parts: Tensors) -> None:
        self._turn(CHANNELS)
        kernel, size = parts["kernel"].transpose(2, 1, 0), int(layer["kernel"])
        before = (size - 1) // 2
        same = layer.get("padding", "same") == "same"
        self._node(
            "Conv",
            name,
            self._tensor(f"{name}.kernel", kernel),
            self._tensor(f"{name}.bias", parts["bias"]),
            kernel_shape=[size],
            pads=[before, size - 1 - before] if same else [0, 0],
        )
        self._steps -= 0 if same else size - 1
        self._width = len(parts["bias"])

    def _layer_norm(self, name: str, layer: Mapping[str, Any], parts: Tensors) -> None:
        if self._axes is not None:
            self._turn(SERIES)
        tensors = [self._tensor(f"{name}.{part}", parts[part]) for part in ("scale", "bias")]
        epsilon = float(layer.get("epsilon", 1e-5))
        self._node("LayerNormalization", name, *tensors, axis=-1, epsilon=epsilon)

    def _flatten(self, name: str) -> None:
        if self._axes is not None:
            self._turn(SERIES)
        self._node("Flatten", name, axis=1)
        self._steps, self._width, self._axes = 1, self._steps * self._width, None

    def _recurrent(self, name: str, layer: Mapping[str, Any], parts: Tensors) -> None:
        self._turn(FIRST)
        lstm, units = layer["kind"] == "lstm", int(layer["units"])
        gates = LSTM_GATES if lstm else GRU_GATES
        own_bias = np.zeros(len(gates) * units, np.float32)
        if not lstm:
            own_bias[2 * units :] = parts["recurrent_bias"]
        bias = np.concatenate([_gates(parts["bias"], gates), own_bias])
        entering = [
            self._value,
            self._tensor(f"{name}.kernel", _gates(parts["kernel"], gates).T[None]),
            self._tensor(f"{name}.recurrent", _gates(parts["recurrent"], gates).T[None]),
            self._tensor(f"{name}.bias", bias[None]),
        ]
        attributes: dict[str, Any] = {"hidden_size": units}
        if not lstm:
            attributes["linear_before_reset"] = 1
        last = layer.get("returns", "last") == "last"
        self._value = f"{name}.output"
        leaving = ["", self._value] if last else [self._value]
        op = "LSTM" if lstm else "GRU"
        self.nodes.append(helper.make_node(op, entering, leaving, name, **attributes))
        # Directions stand before the batch, in a series behind time.
        place = 0 if last else 1
        self._node("Squeeze", f"{name}.squeeze", self._integers(f"{name}.axes", [place]))
        self._axes, self._width = (None if last else FIRST), units
        self._steps = 1 if last else self._steps

    def _trees(self, name: str, layer: Mapping[str, Any], parts: Tensors) -> None:
        if self._axes is not None:
            self._flatten(f"{name}.flatten")
        outputs = int(layer["outputs"])
        low, high = float(layer["low"]), float(layer["high"])
        table = _TreeTable()
        for output in range(outputs):
            forest = {
                part: parts[f"{output}.{part}"]
                for part in ("root", "feature", "threshold", "child", "value")
            }
            share = (high - low) / len(forest["root"])
            for root in forest["root"].tolist():
                table.add_tree(forest, root, output, share)
        self._node(
            "TreeEnsembleRegressor",
            name,
            n_targets=outputs,
            aggregate_function="SUM",
            post_transform="NONE",
            base_values=[low] * outputs,
            **table.attributes,
        )
        self.nodes[-1].domain = "ai.onnx.ml"
        self._width = outputs


class _TreeTable:
    """Trees as the attributes of a TreeEnsembleRegressor, node by node."""

    def __init__(self) -> None:
        nodes = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                 "falsenodeids", "missing_value_tracks_true", "hitrates")  # fmt: skip
        targets = ("treeids", "nodeids", "ids", "weights")
        self.attributes: dict[str, list[Any]] = {
            **{f"nodes_{name}": [] for name in nodes},
            **{f"target_{name}": [] for name in targets},
        }
        self._trees = 0

    def add_tree(self, forest: Tensors, root: int, output: int, share: float) -> None:
        """A tree below a root, which adds `share` times its leaf's value to an output."""
        own, places = self.attributes, [root]
        for number, place in enumerate(places):  # grows while it is walked: breadth first
            if len(own["nodes_nodeids"]) >= TREE_NODES_MAX:
                raise ExchangeError(f"trees of more than {TREE_NODES_MAX} nodes when written out")
            feature = int(forest["feature"][place])
            leaf = feature == 255
            child = len(places)
            row = (self._trees, number, 0 if leaf else feature,
                   0.0 if leaf else float(forest["threshold"][place]),
                   "LEAF" if leaf else "BRANCH_LEQ",
                   0 if leaf else child, 0 if leaf else child + 1, 0, 1.0)  # fmt: skip
            heads = [name for name in own if name.startswith("nodes_")]
            for name, value in zip(heads, row, strict=True):
                own[name].append(value)
            if leaf:
                weight = share * float(forest["value"][place])
                words = (self._trees, number, output, weight)
                for name, word in zip(("treeids", "nodeids", "ids", "weights"), words, strict=True):
                    own[f"target_{name}"].append(word)
            else:
                below = int(forest["child"][place])
                places += [below, below + 1]
        self._trees += 1


def _gates(tensor: npt.NDArray[Any], order: Sequence[int]) -> npt.NDArray[Any]:
    """The blocks of the last axis in another order."""
    blocks = np.split(tensor, len(order), axis=-1)
    return np.concatenate([blocks[place] for place in order], axis=-1)
