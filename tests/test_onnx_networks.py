"""Networks drawn at random answer the same in onnxruntime and, imported, in our engine."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx", reason="needs onnx: an extra")
pytest.importorskip("onnxruntime", reason="needs onnx: an extra")

import onnx

from ackademy import _core
from ackademy.errors import ExchangeError
from ackademy.policies import bounds, policy_files
from ackademy.policies.onnx import comparing, from_onnx, to_onnx
from onnx_models import CHOICES, HISTORY, WIDE, graph, node, settings

SEEDS = range(60)
TOLERANCE = 3e-5
"""relative to 1 + |output|: products of single precision in another order"""
Tensors = dict[str, npt.NDArray[Any]]


class Drawn:
    """A model that grows node by node from `x` to `y`."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: Tensors = {}
        self.value = "x"

    def tensor(self, *shape: int, low: float = -1.0, high: float = 1.0) -> str:
        """Name of a new constant."""
        name = f"t{len(self.tensors)}"
        self.tensors[name] = self.rng.uniform(low, high, shape).astype(np.float32)
        return name

    def put(self, op: str, *sides: str, first: str = "", **attributes: Any) -> None:  # noqa: ANN401  # ONNX's
        """A node behind the last one."""
        given = [first, self.value] if first else [self.value]
        out = f"v{len(self.nodes)}"
        self.nodes.append(node(op, ",".join([*given, *sides]), out, **attributes))
        self.value = out

    def scaled(self, units: int) -> None:
        """One of the ways to normalise numbers."""
        kind = self.rng.integers(5)
        if kind == 0:
            self.put("Sub", self.tensor(units))
            self.put("Div", self.tensor(units, low=0.5, high=2.0))
        elif kind == 1:
            self.put("Mul", self.tensor(1))
            self.put("Sub", first=self.tensor(1, units))
        elif kind == 2:
            self.put("Add", self.tensor(1, units))

    def normal(self, units: int) -> None:
        """One of two kinds of layers that normalise, or none."""
        kind = self.rng.integers(4)
        if kind == 0:
            parts = [self.tensor(units) for _ in range(3)]
            self.put("BatchNormalization", *parts, self.tensor(units, low=0.1, high=3.0))
        elif kind == 1:
            epsilon = float(self.rng.choice([1e-5, 1e-3]))
            both = [self.tensor(units), self.tensor(units)]
            self.put("LayerNormalization", *both, axis=-1, epsilon=epsilon)

    def activation(self) -> None:
        """One of them, or none."""
        op = str(self.rng.choice(["", "Relu", "LeakyRelu", "Tanh", "Sigmoid"]))
        if op == "LeakyRelu":
            self.put(op, alpha=float(self.rng.uniform(0, 0.5)))
        elif op:
            self.put(op)

    def product(self, wide: int, units: int) -> None:
        """A dense layer, as one node or two."""
        kind = self.rng.integers(3)
        scale = 2.0 / np.sqrt(wide)
        if kind == 0:
            weights = self.tensor(units, wide, low=-scale, high=scale)
            self.put("Gemm", weights, self.tensor(units), transB=1)
            return
        self.put("MatMul", self.tensor(wide, units, low=-scale, high=scale))
        if kind == 1:
            self.put("Add", self.tensor(units))

    def branched(self, wide: int) -> int:
        """Two or three branches of a vector, of a layer or two, and what joins them."""
        source, ends, total = self.value, [], 0
        count = int(self.rng.integers(2, 4))
        cuts = np.sort(self.rng.choice(np.arange(1, wide), count - 1, replace=False))
        bounds = np.array([0, *cuts, wide])
        sizes, kind = np.diff(bounds), self.rng.integers(3)
        acts = [str(op) for op in self.rng.choice(["Relu", "Tanh"], self.rng.integers(1, 3))]
        names = [f"{source}_{index}" for index in range(count)]
        if kind == 0:
            self.tensors["sizes"] = sizes.astype(np.int64)
            self.nodes.append(node("Split", f"{source},sizes", ",".join(names), axis=1))
        for index, (start, end) in enumerate(pairwise(bounds.tolist())):
            self.value, own = (names[index] if kind == 0 else source), end - start
            if kind == 1:
                for key, place in (("from", start), ("to", end), ("axis", 1)):
                    self.tensors[f"{key}{index}"] = np.array([place], np.int64)
                self.put("Slice", f"from{index}", f"to{index}", f"axis{index}")
            own = wide if kind == 2 else own  # all of them see everything
            for act in acts:
                units = int(self.rng.integers(1, 12))
                self.product(own, units)
                self.put(act)
                own = units
            ends.append(self.value)
            total += own
        self.value = ends[0]
        self.put("Concat", *ends[1:], axis=-1)
        return total


def drawn(seed: int) -> tuple[onnx.ModelProto, int]:
    """A model, and the history of its observations."""
    net = Drawn(seed)
    history = int(net.rng.choice([1, HISTORY]))
    wide = WIDE
    if net.rng.uniform() < 0.5:
        net.scaled(wide)  # of every vector
    if net.rng.uniform() < 0.3:
        units = int(net.rng.integers(2, 20))
        net.put("MatMul", net.tensor(wide, units))
        net.activation()
        wide = units
    net.put("Flatten")
    wide *= history
    if net.rng.uniform() < 0.4:
        wide = net.branched(wide)
    for _ in range(net.rng.integers(1, 4)):
        net.scaled(wide)
        units = int(net.rng.integers(1, 40))
        net.product(wide, units)
        net.normal(units)
        net.activation()
        wide = units
    net.product(wide, CHOICES)
    net.activation()
    if net.rng.uniform() < 0.3:
        net.put("Mul", net.tensor(1))
    net.put("Identity")
    net.nodes[-1].output[0] = "y"
    return graph(net.nodes, net.tensors, entering=("batch", history, WIDE)), history


def imported(model: onnx.ModelProto, history: int) -> tuple[from_onnx.Imported, dict[str, bytes]]:
    content = model.SerializeToString()
    own = from_onnx.network_of(from_onnx.parse(content, "drawn"), (history, WIDE), "drawn")
    text = policy_files.policy_text("drawn", settings(history), own.layers, {})
    return own, {
        "policy.toml": text.encode(),
        "weights.safetensors": policy_files.bytes_of(own.tensors),
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_network_answers_the_same_in_onnxruntime_and_in_our_engine(seed: int) -> None:
    model, history = drawn(seed)
    policy = _core.Policy.load(imported(model, history)[1])
    session = comparing.session_of(model.SerializeToString())
    seen = np.random.default_rng(seed).normal(0, 1, (20, history, WIDE)).astype(np.float32)
    theirs = session.run(None, {"x": seen})[0]
    ours = np.stack([policy.outputs(one) for one in seen])
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"{seed=}")


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_an_imported_network_goes_out_and_comes_back_as_it_is(seed: int, tmp_path: Path) -> None:
    model, history = drawn(seed)
    own, content = imported(model, history)
    for name, part in content.items():
        (tmp_path / name).write_bytes(part)
    again = to_onnx.model_of(policy_files.open_policy(tmp_path)).SerializeToString()
    back = from_onnx.network_of(from_onnx.parse(again, "again"), (history, WIDE), "again")
    assert back.layers == own.layers
    assert policy_files.bytes_of(back.tensors) == policy_files.bytes_of(own.tensors)


def test_a_network_of_leaky_layers_keeps_within_its_bounds(tmp_path: Path) -> None:
    seed = 3
    net = Drawn(seed)
    net.put("Flatten")
    net.put("Gemm", net.tensor(HISTORY * WIDE, 20), net.tensor(20))
    net.put("LeakyRelu", alpha=0.2)
    net.put("Gemm", net.tensor(20, CHOICES), net.tensor(CHOICES))
    net.nodes[-1].output[0] = "y"
    for name, part in imported(graph(net.nodes, net.tensors), HISTORY)[1].items():
        (tmp_path / name).write_bytes(part)
    opened = policy_files.open_policy(tmp_path)
    low = net.rng.normal(0, 1, (50, HISTORY, WIDE))
    high = low + 0.1
    inside = low + net.rng.uniform(0, 0.1, low.shape)
    least, most = bounds.network_of(opened).bounds(low, high)
    ours = np.stack([opened.policy.outputs(one.astype(np.float32)) for one in inside])
    assert (least <= ours).all(), seed
    assert (ours <= most).all(), seed


@pytest.mark.parametrize(
    ("put", "told"),
    [
        (
            lambda net: net.put("LeakyRelu", alpha=-0.1),
            r"LeakyRelu .*alpha = -0.1: allowed: 0 to 1",
        ),
        (lambda net: net.put("Div", first=net.tensor(1)), r"Div .*allowed: divided by"),
        (
            lambda net: net.put("Mul", net.tensor(HISTORY, WIDE)),
            r"Mul .*numbers of shape \[8, 3\]: allowed: one for each of 3 features",
        ),
        (
            lambda net: net.put("BatchNormalization", *(net.tensor(HISTORY) for _ in range(4))),
            r"BatchNormalization .*allowed: with the features as the second axis",
        ),
        (
            lambda net: net.put("Concat", "x", axis=1),
            r"Concat .*allowed: branches of one vector, along the features",
        ),
        (
            lambda net: net.put("LayerNormalization", net.tensor(HISTORY, WIDE), axis=1),
            r"LayerNormalization .*axis = 1: allowed: -1 or 2",
        ),
    ],
)
def test_what_no_layer_does_is_refused_in_one_line(put: Any, told: str) -> None:  # noqa: ANN401  # of a case
    net = Drawn(1)
    put(net)
    net.put("Flatten")
    net.product(HISTORY * WIDE, CHOICES)
    net.nodes[-1].output[0] = "y"
    with pytest.raises(ExchangeError, match=told) as raised:
        imported(graph(net.nodes, net.tensors), HISTORY)
    assert "\n" not in str(raised.value)


def test_branches_of_other_depths_are_refused_in_one_line() -> None:
    net = Drawn(1)
    net.put("Flatten")
    source = net.value
    net.product(HISTORY * WIDE, 4)
    net.put("Relu")
    one, net.value = net.value, source
    net.product(HISTORY * WIDE, 4)
    net.put("Concat", one, axis=1)
    net.product(8, CHOICES)
    net.nodes[-1].output[0] = "y"
    told = r"Concat .*allowed: branches of as many dense layers, with the same activations"
    with pytest.raises(ExchangeError, match=told):
        imported(graph(net.nodes, net.tensors), HISTORY)
