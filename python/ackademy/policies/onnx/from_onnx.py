"""From an ONNX model to the layers and tensors of a policy.

Models are untrusted: sizes are bounded before anything is made of them, nothing is read from other
files, and no node is understood but those named here. Nodes that the output does not depend on are
left out, what depends on no observation is computed (`constants`), and the rest must be nodes one
behind the other (`chain`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from ackademy.errors import ExchangeError
from ackademy.policies.onnx.branches import Branch, can_fork, joined, taken
from ackademy.policies.onnx.chain import ANY_BATCH, F32, Chain, Value, per_feature
from ackademy.policies.onnx.constants import Array, Refused, array_of, computed, sliced, whole
from ackademy.policies.onnx.to_onnx import GRU_GATES, LSTM_GATES
from ackademy.policies.policy_files import plain

MODEL_BYTES_MAX = (1 << 26) + (1 << 20)
"""the weights that a policy may have, and a megabyte for the graph"""
NODES_MAX = 4096
BATCH_MAX = 4096
"""of a model that takes no other"""
DOMAINS = ("", "ai.onnx")
OPSETS = range(7, 30)
"""between which the operations named here mean the same, but for where some find their axes"""
KINDS_OF_ATTRIBUTES = (
    AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.TENSOR,
    AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS,
)  # fmt: skip
Attributes: TypeAlias = Mapping[str, Any]
ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid"}


@dataclass(frozen=True, slots=True)
class Imported:
    """A network."""

    layers: list[dict[str, Any]]
    tensors: dict[str, F32]
    made_by: str


def parse(content: bytes, where: str) -> onnx.ModelProto:
    """A model that ONNX's own checker accepts, and which holds nothing that is refused unseen.

    Raises:
        ExchangeError: if it does not.
    """
    try:
        model = onnx.load_model_from_string(content)
    except Exception:  # protobuf's error, which onnx does not name
        raise ExchangeError(f"{where}: allowed: an ONNX model") from None
    graph = model.graph
    if len(graph.node) > NODES_MAX:
        raise ExchangeError(f"{where}: {len(graph.node)} nodes: allowed: at most {NODES_MAX}")
    if model.functions or graph.sparse_initializer:
        raise ExchangeError(f"{where}: allowed: no functions of its own, no sparse tensors")
    for domain in model.opset_import:
        if domain.domain in DOMAINS and domain.version not in OPSETS:
            allowed = f"{OPSETS.start} to {OPSETS.stop - 1}"
            raise ExchangeError(f"{where}: opset {domain.version}: allowed: {allowed}")
    for number, node in enumerate(graph.node):
        for attribute in node.attribute:
            if attribute.type not in KINDS_OF_ATTRIBUTES:
                allowed = "numbers, texts and tensors"
                raise _fault(where, number, node, f"{attribute.name}: allowed: {allowed}")
            if attribute.t.data_location == TensorProto.EXTERNAL or attribute.t.external_data:
                allowed = "numbers in the model itself"
                raise _fault(where, number, node, f"{attribute.name}: allowed: {allowed}")
    for tensor in graph.initializer:
        try:
            array_of(tensor)
        except Refused as refused:
            raise ExchangeError(f"{where}: tensor {plain(tensor.name)}: {refused}") from None
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        raise ExchangeError(f"{where}: ONNX's checker refuses it: {plain(str(error))}") from None
    return model


def network_of(model: onnx.ModelProto, entering: tuple[int, int], where: str) -> Imported:
    """The layers and tensors of a model that `parse` has accepted.

    Args:
        model: with one input and one output.
        entering: (history, features) of an observation.
        where: the file's name, for messages.

    Raises:
        ExchangeError: one line that names the node.
    """
    graph = model.graph
    constants = {tensor.name: array_of(tensor) for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        count = f"{len(inputs)} inputs, {len(graph.output)} outputs"
        raise ExchangeError(f"{where}: {count}: allowed: one of each")
    try:
        chain = Chain(_sizes(inputs[0], entering), entering)
    except Refused as refused:
        raise ExchangeError(f"{where}: input {plain(inputs[0].name)}: {refused}") from None
    needed = _needed(graph)
    walker = _Walker(chain, constants, {inputs[0].name: chain.entering}, _takers(graph, needed))
    for number, node in enumerate(graph.node):
        if needed.isdisjoint(node.output):
            continue
        try:
            walker.walk(node, needed)
        except Refused as refused:
            raise _fault(where, number, node, str(refused)) from None
    output = graph.output[0].name
    try:
        if output not in walker.values:
            raise Refused("allowed: what depends on the observation")
        if output in walker.branches:
            raise Refused("allowed: branches that a Concat joins")
        chain.finish(walker.values[output])
    except Refused as refused:
        raise ExchangeError(f"{where}: output {plain(output)}: {refused}") from None
    made_by = f"{plain(model.producer_name)} {plain(model.producer_version)}".strip()
    return Imported(chain.layers, chain.tensors, made_by)


def needed_alone(model: onnx.ModelProto) -> bytes:
    """The model without the nodes that its output does not depend on.

    Their size is not checked, and onnxruntime runs them nevertheless.
    """
    left = onnx.ModelProto()
    left.CopyFrom(model)
    needed = _needed(left.graph)
    nodes = [node for node in left.graph.node if not needed.isdisjoint(node.output)]
    del left.graph.node[:]
    left.graph.node.extend(nodes)
    content: bytes = left.SerializeToString()
    return content


def metadata_of(model: onnx.ModelProto) -> dict[str, str]:
    """What a model says of itself, but for what is no text."""
    entries = ((entry.key, entry.value) for entry in model.metadata_props)
    return {key: value for key, value in entries if isinstance(value, str)}


def _sizes(info: onnx.ValueInfoProto, entering: tuple[int, int]) -> tuple[int, ...]:
    """Of an input; a size without a number is the batch's, or what an observation has there."""
    kind = info.type.tensor_type
    if kind.elem_type != TensorProto.FLOAT:
        raise Refused("allowed: numbers of type FLOAT")
    given = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in kind.shape.dim]
    if given and not 0 <= given[0] <= BATCH_MAX:
        raise Refused(f"a batch of {given[0]}: allowed: 1 to {BATCH_MAX}, or any")
    usual = (0, *entering) if len(given) == 3 else (0, entering[0] * entering[1])
    if 0 in given[1:] and len(usual) == len(given):
        given[1:] = [own or other for own, other in zip(given[1:], usual[1:], strict=True)]
    return (given[0] or ANY_BATCH, *given[1:]) if given else ()


def _needed(graph: onnx.GraphProto) -> set[str]:
    """Names of the values that the output depends on."""
    needed = {info.name for info in graph.output}
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
    return needed - {""}


def _takers(graph: onnx.GraphProto, needed: set[str]) -> Counter[str]:
    """How many nodes take each value for its numbers, not for its shape."""
    takers: Counter[str] = Counter()
    for node in graph.node:
        if node.op_type != "Shape" and not needed.isdisjoint(node.output):
            takers.update(set(node.input))
    return takers


def _fault(where: str, number: int, node: onnx.NodeProto, told: str) -> ExchangeError:
    name = f' "{plain(node.name)}"' if node.name else ""
    return ExchangeError(f"{where}: node {number}, {plain(node.op_type)}{name}: {plain(told)}")


class _Walker:
    """Walks the nodes in their order."""

    def __init__(
        self,
        chain: Chain,
        constants: dict[str, Array],
        values: dict[str, Value],
        takers: Mapping[str, int],
    ) -> None:
        self.chain, self.constants, self.values = chain, constants, values
        self.takers = takers
        self.branches: dict[str, Branch] = {}
        """of the values that are in one"""
        self.numbers = 0

    def walk(self, node: onnx.NodeProto, needed: set[str]) -> None:
        """Understand a node, or refuse it."""
        if node.domain not in DOMAINS:
            raise Refused(f"domain {node.domain}: allowed: ONNX's own operations")
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        moving = [name for name in node.input if name in self.values]
        if not moving:
            known = [self._constant(name) for name in node.input]
            self._note(node, computed(node.op_type, known, attributes))
        elif node.op_type == "Shape":
            sizes = self.values[moving[0]].sizes
            part = slice(attributes.get("start", 0), attributes.get("end"))
            self._note(node, np.array(sizes[part], np.int64))
        elif node.op_type == "Concat":
            self.values[node.output[0]] = self._concat(node, attributes)
        elif len(moving) > 1:
            raise Refused("takes two values: allowed: nodes one behind the other, or a Concat")
        elif not self._forks(node, attributes, moving[0]):
            branch = self._branch(moving[0])
            value = self.values[moving[0]] if branch is None else self._value_in(branch, moving[0])
            self._move(node, attributes, value, needed, branch.chain if branch else self.chain)
            if branch is not None:
                self.branches.update(dict.fromkeys(node.output, branch))

    def _branch(self, name: str) -> Branch | None:
        """The branch that a value is in, or that begins with it."""
        value = self.values[name]
        if name not in self.branches and self.takers[name] > 1 and can_fork(value):
            return Branch(value, tuple(range(value.sizes[-1])))
        return self.branches.get(name)

    def _value_in(self, branch: Branch, name: str) -> Value:
        return self.values[name] if name in self.branches else branch.chain.entering

    def _forks(self, node: onnx.NodeProto, attributes: Attributes, name: str) -> bool:
        """Whether a node takes parts of a vector, each of which begins a branch."""
        op, value = node.op_type, self.values[name]
        is_part = op == "Split" or (op == "Slice" and self.takers[name] > 1)
        if not is_part or name in self.branches or not can_fork(value):
            return False
        sides = [None if own in self.values else self._constant(own) for own in node.input]
        places = taken(op, value, sides, len(node.output), attributes)
        for output, columns in zip(node.output, places, strict=True):
            branch = Branch(value, columns)
            self.values[output], self.branches[output] = branch.chain.entering, branch
        return True

    def _concat(self, node: onnx.NodeProto, attributes: Attributes) -> Value:
        own = []
        for name in node.input:
            branch = self._branch(name) if name in self.values else None
            if branch is None or attributes["axis"] not in (1, -1):
                raise Refused("allowed: branches of one vector, along the features")
            own.append((branch, self._value_in(branch, name)))
        return joined(self.chain, own)

    def _note(self, node: onnx.NodeProto, constant: Array) -> None:
        self.numbers += constant.size
        if self.numbers > MODEL_BYTES_MAX:
            raise Refused(f"allowed: at most {MODEL_BYTES_MAX} numbers in all constants")
        self.constants[node.output[0]] = constant

    def _constant(self, name: str) -> Array | None:
        if name and name not in self.constants:
            raise Refused(f"{name}: allowed: outputs that a policy's layers have")
        return self.constants[name] if name else None

    def _move(
        self,
        node: onnx.NodeProto,
        attributes: Attributes,
        value: Value,
        needed: set[str],
        chain: Chain,
    ) -> None:
        op = node.op_type
        sides = [None if name in self.values else self._constant(name) for name in node.input]
        if op in ("LSTM", "GRU"):
            if chain is not self.chain:
                raise Refused("allowed: dense layers in branches")
            self._recurrent(node, attributes, value, sides)
            return
        if sum(bool(name) and name in needed for name in node.output) != 1 or not node.output[0]:
            raise Refused("allowed: its first output alone")
        if op in SCALINGS:
            after = _scaling(chain, value, op, sides)
        elif sides and sides[0] is not None:
            raise Refused("allowed: the observation's value as its first input")
        elif op in ACTIVATIONS:
            after = chain.activate(value, ACTIVATIONS[op])
        elif op in MOVES:
            after = MOVES[op](chain, value, sides, attributes)
        else:
            raise Refused(f"allowed: {', '.join(sorted([*MOVES, *ACTIVATIONS, *LAST]))}")
        self.values[node.output[0]] = after

    def _recurrent(
        self,
        node: onnx.NodeProto,
        attributes: Attributes,
        value: Value,
        sides: list[Array | None],
    ) -> None:
        if node.input[0] not in self.values:
            raise Refused("allowed: the observation's value as its first input")
        kind = node.op_type.lower()
        parts = _recurrent_parts(kind, sides, attributes)
        steps, batch, units = self.chain.recurrent(value, kind, parts)
        names = [*node.output, ""]
        # The later of two values would hide the first: both are what the layer gives.
        every = self.chain.hand_on("t1bf", (steps, 1, batch, units), "all")
        last = Value("1bf" if batch > 1 else "11f", (1, batch, units), every.serial, "last")
        for name, given in zip(names[:2], (every, last), strict=True):
            if name:
                self.values[name] = given


def _recurrent_parts(
    kind: str, sides: list[Array | None], attributes: Attributes
) -> dict[str, F32]:
    """The tensors of an LSTM or a GRU, as ours has them."""
    allowed: dict[str, tuple[object, ...]] = {
        "direction": (b"forward",),
        "layout": (0,),
        "input_forget": (0,),
        "linear_before_reset": (1,),
        "activations": ([b"Sigmoid", b"Tanh", b"Tanh"], [b"Sigmoid", b"Tanh"]),
    }
    if kind == "gru" and "linear_before_reset" not in attributes:
        raise Refused("linear_before_reset = 0: allowed: 1")
    for name, own in attributes.items():
        if name == "hidden_size":
            continue
        if name not in allowed or own not in allowed[name]:
            choices = " or ".join(str(choice) for choice in allowed.get(name, ("no such setting",)))
            raise Refused(f"{name} = {own}: allowed: {choices}")
    gates = LSTM_GATES if kind == "lstm" else GRU_GATES
    own, bias = _gates_of(sides, gates, attributes)
    entering, again = bias
    own["bias"] = _joined(entering, again)
    if kind == "gru":
        units = own["recurrent"].shape[0]
        own["bias"][2 * units :] = entering[2 * units :]
        own["recurrent_bias"] = again[2 * units :].copy()
    return own


def _gates_of(
    sides: list[Array | None], gates: tuple[int, ...], attributes: Attributes
) -> tuple[dict[str, F32], tuple[F32, F32]]:
    """Kernels and both biases, gates in our order."""
    absent: list[Array | None] = [None] * (8 - len(sides))
    _, kernel, again, bias, lengths, *states = sides + absent
    if kernel is None or again is None or kernel.ndim != 3 or again.ndim != 3:
        raise Refused("allowed: constant weights of one direction")
    wide, units = len(gates) * again.shape[2], again.shape[2]
    if kernel.shape[:2] != (1, wide) or again.shape[:2] != (1, wide):
        shapes = f"{list(kernel.shape)}, {list(again.shape)}"
        raise Refused(f"weights of shapes {shapes}: allowed: (1, {wide}, any), (1, {wide}, units)")
    if attributes.get("hidden_size", units) != units:
        raise Refused(f"hidden_size = {attributes['hidden_size']}: allowed: {units}, as weights")
    if lengths is not None or any(state is not None and state.any() for state in states):
        raise Refused("allowed: no lengths or peepholes of its own, and states that begin at 0")
    both = np.zeros((1, 2 * wide), np.float32) if bias is None else bias
    if both.shape != (1, 2 * wide) or {kernel.dtype, again.dtype, both.dtype} != {F32_TYPE}:
        raise Refused(f"bias of {both.dtype}{list(both.shape)}: allowed: float32 (1, {2 * wide})")
    entering, own = both[0, :wide], both[0, wide:]
    tensors = {"kernel": _reordered(kernel[0].T, gates), "recurrent": _reordered(again[0].T, gates)}
    return tensors, (_reordered(entering, gates), _reordered(own, gates))


def _reordered(tensor: Array, gates: tuple[int, ...]) -> F32:
    """Blocks of the last axis from ONNX's order to ours."""
    blocks = np.split(tensor, len(gates), axis=-1)
    return np.concatenate([blocks[gates.index(i)] for i in range(len(gates))], axis=-1)


def _joined(one: F32, two: F32) -> F32:
    """The sum of two biases; a zero changes no bit of the other."""
    sums = np.where(two == 0, one, one + two)
    return np.where(one == 0, two, sums) if two.any() else sums


F32_TYPE = np.dtype(np.float32)
SCALINGS = ("Add", "Div", "Mul", "Sub")
LAST = (*SCALINGS, "Concat", "LSTM", "GRU", "Split")
"""handled apart, for their inputs"""


def _settings(attributes: Attributes, allowed: Mapping[str, tuple[object, ...]]) -> None:
    for name, value in attributes.items():
        if name in allowed and value not in allowed[name]:
            choices = " or ".join(str(choice) for choice in allowed[name])
            raise Refused(f"{name} = {value}: allowed: {choices}")


def _scaling(chain: Chain, value: Value, op: str, sides: list[Array | None]) -> Value:
    """A value and a constant, in any order but for a quotient."""
    first, second = sides
    given = second if first is None else first
    assert given is not None  # one of the two inputs is no value
    if op == "Add":
        return chain.add(value, given)
    numbers, ones = per_feature(value, given), np.ones(value.size("f"))
    if op == "Mul":
        return chain.affine(value, numbers, 0 * ones)
    if op == "Sub":
        return chain.affine(value, *((ones, -numbers) if first is None else (-ones, numbers)))
    if first is not None or not numbers.all():
        raise Refused("allowed: divided by constant numbers that are not 0")
    return chain.affine(value, 1.0 / numbers, 0 * ones)


def _leaky_relu(chain: Chain, value: Value, _: list[Array | None], attributes: Attributes) -> Value:
    slope = _short(attributes.get("alpha", 0.01))
    if not 0.0 <= slope <= 1.0:
        raise Refused(f"alpha = {slope}: allowed: 0 to 1")
    return chain.activate(value, {"kind": "leaky_relu", "slope": slope})


def _batch_norm(
    chain: Chain, value: Value, sides: list[Array | None], attributes: Attributes
) -> Value:
    """As it is in use: with the means and variances of the training."""
    _settings(attributes, {"training_mode": (0,), "spatial": (1,), "is_test": (1,)})
    units, parts = value.size("f"), sides[1:]
    if len(value.axes) < 2 or value.axes[1] != "f":
        raise Refused("allowed: with the features as the second axis")
    if any(part is None or part.shape != (units,) for part in parts) or len(parts) != 4:
        raise Refused(f"allowed: four constants of {units} numbers, one for each feature")
    scale, bias, mean, variance = (np.asarray(part, np.float64) for part in parts)
    factors = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
    return chain.affine(value, factors, bias - mean * factors)


def _layer_norm(
    chain: Chain, value: Value, sides: list[Array | None], attributes: Attributes
) -> Value:
    _settings(attributes, {"axis": (-1, len(value.axes) - 1), "stash_type": (1,)})
    scale, bias = sides[1], sides[2] if len(sides) > 2 else None
    if scale is None:
        raise Refused("allowed: constant weights")
    return chain.layer_norm(value, scale, bias, _short(attributes.get("epsilon", 1e-5)))


def _short(number: float) -> float:
    """A number of 32 bits in as few digits as tell it from others."""
    return float(str(np.float32(number)))


def _gemm(chain: Chain, value: Value, sides: list[Array | None], attributes: Attributes) -> Value:
    _settings(attributes, {"alpha": (1.0,), "beta": (1.0,), "transA": (0,), "transB": (0, 1)})
    kernel, bias = sides[1], sides[2] if len(sides) > 2 else None
    if kernel is None or kernel.ndim != 2 or len(value.axes) != 2:
        raise Refused("allowed: a vector and constant weights with two axes")
    kernel = kernel.T if attributes.get("transB", 0) else kernel
    if bias is None:
        bias = np.zeros(kernel.shape[1], np.float32)
    return chain.dense(value, kernel, bias)


def _matmul(chain: Chain, value: Value, sides: list[Array | None], _: Attributes) -> Value:
    if sides[1] is None:
        raise Refused("allowed: constant weights")
    return chain.dense(value, sides[1], None)


def _padding(attributes: Attributes, size: int) -> tuple[int, int]:
    auto, less = attributes.get("auto_pad", b"NOTSET"), (size - 1) // 2
    if auto == b"NOTSET":
        pads = [int(pad) for pad in attributes.get("pads", (0, 0))]
        if len(pads) != 2:
            raise Refused(f"pads = {pads}: allowed: two, along time")
        return pads[0], pads[1]
    known = {
        b"VALID": (0, 0),
        b"SAME_UPPER": (less, size - 1 - less),
        b"SAME_LOWER": (size - 1 - less, less),
    }
    if auto not in known:
        raise Refused(f"auto_pad = {auto!r}: allowed: {', '.join(k.decode() for k in known)}")
    return known[auto]


def _conv(chain: Chain, value: Value, sides: list[Array | None], attributes: Attributes) -> Value:
    kernel, bias = sides[1], sides[2] if len(sides) > 2 else None
    if kernel is None or kernel.ndim != 3:
        raise Refused("allowed: constant weights with three axes")
    size = kernel.shape[2]
    ones = {"group": (1,), "dilations": ([1],), "strides": ([1],), "kernel_shape": ([size],)}
    _settings(attributes, ones)
    return chain.conv1d(value, kernel, bias, _padding(attributes, size))


def _max_pool(chain: Chain, value: Value, _: list[Array | None], attributes: Attributes) -> Value:
    sizes = list(attributes.get("kernel_shape", ()))
    if len(sizes) != 1:
        raise Refused(f"kernel_shape = {sizes}: allowed: one size, along time")
    strides = list(attributes.get("strides", [1]))
    if strides != sizes:
        raise Refused(f"strides = {strides}: allowed: {sizes}, as kernel_shape")
    _settings(
        attributes, {"dilations": ([1],), "pads": ([0, 0],), "auto_pad": (b"NOTSET", b"VALID")}
    )
    return chain.max_pool(value, sizes[0], up=bool(attributes.get("ceil_mode", 0)))


def _flatten(chain: Chain, value: Value, _: list[Array | None], attributes: Attributes) -> Value:
    axis = attributes.get("axis", 1)
    if axis not in (1, 1 - len(value.axes)):
        raise Refused(f"axis = {axis}: allowed: 1")
    return chain.flatten(value, noted=True)


def _places(sides: list[Array | None], attributes: Attributes) -> list[int]:
    """Axes from the second input, or, in old models, an attribute."""
    if len(sides) > 1:
        return whole(sides[1])
    if "axes" not in attributes:
        raise Refused("allowed: axes by number")
    return list(attributes["axes"])


def _transpose(chain: Chain, value: Value, _: list[Array | None], attributes: Attributes) -> Value:
    backwards = list(range(len(value.axes)))[::-1]
    return chain.transpose(value, list(attributes.get("perm", backwards)))


Move: TypeAlias = Callable[[Chain, Value, list[Array | None], Attributes], Value]
MOVES: Mapping[str, Move] = {
    "BatchNormalization": _batch_norm,
    "Conv": _conv,
    "Dropout": lambda chain, value, sides, a: value,
    "Flatten": _flatten,
    "Gather": lambda chain, value, sides, a: chain.gather(value, a.get("axis", 0), sides[1]),
    "Gemm": _gemm,
    "Identity": lambda chain, value, sides, a: value,
    "LayerNormalization": _layer_norm,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "Reshape": lambda chain, value, sides, a: chain.reshape(value, whole(sides[1])),
    "Slice": lambda chain, value, sides, a: chain.slice(value, sliced(sides, len(value.axes))),
    "Squeeze": lambda chain, value, sides, a: chain.squeeze(value, _places(sides, a)),
    "Transpose": _transpose,
    "Unsqueeze": lambda chain, value, sides, a: chain.unsqueeze(value, _places(sides, a)),
}
