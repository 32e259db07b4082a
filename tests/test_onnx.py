"""Policies as ONNX models and back, PyTorch's models as policies, and models that are none."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx", reason="needs onnx: an extra")
pytest.importorskip("onnxruntime", reason="needs onnx: an extra")

import onnx
from onnx import TensorProto, helper, numpy_helper

from ackademy import _core, cli, exits
from ackademy.errors import AckademyError, ExchangeError
from ackademy.policies import policy_files
from ackademy.policies.onnx import comparing, from_onnx, to_onnx
from onnx_models import (
    CHOICES,
    FLAT,
    HISTORY,
    LAST,
    WIDE,
    Layer,
    conv,
    convolution,
    dense,
    drawn,
    graph,
    node,
    recurrent,
    settings,
    unit,
    written,
)

ROOT = Path(__file__).parents[1]
TORCH = sorted((Path(__file__).parent / "files" / "torch").glob("*.onnx"))
TOLERANCE = 1e-5


CASES: dict[str, tuple[int, list[Layer], list[Any]]] = {
    **{
        f"dense_{name}": (
            HISTORY,
            [FLAT, unit("dense", 5, activation=name), LAST],
            [*dense(1, HISTORY * WIDE, 5), *dense(2, 5, CHOICES)],
        )
        for name in ("linear", "relu", "tanh", "sigmoid")
    },
    "dense_of_each_vector": (
        HISTORY,
        [unit("dense", 4, activation="tanh"), FLAT, LAST],
        [*dense(0, WIDE, 4), *dense(2, 4 * HISTORY, CHOICES)],
    ),
    "one_vector": (1, [LAST], dense(0, WIDE, CHOICES)),
    "one_vector_flattened": (1, [FLAT, LAST], dense(1, WIDE, CHOICES)),
    **{
        f"conv_{padding}_{size}": (
            HISTORY,
            [convolution(5, size, padding, "relu"), FLAT, LAST],
            [*conv(0, size, WIDE, 5), *dense(2, 5 * steps, CHOICES)],
        )
        for padding, size, steps in [
            ("same", 3, 8), ("same", 4, 8), ("same", 11, 8), ("valid", 3, 6), ("valid", 8, 1),
        ]
    },
    "pools": (
        HISTORY,
        [
            {"kind": "max_pool", "size": 3},
            convolution(4, 2, "same", "tanh"),
            {"kind": "max_pool", "size": 1},
            unit("dense", 4, activation="sigmoid"),
            {"kind": "max_pool", "size": 2},
            LAST,
        ],
        [*conv(1, 2, WIDE, 4), *dense(3, 4, 4), *dense(5, 4, CHOICES)],
    ),
    **{
        f"{kind}_{returns}": (
            HISTORY,
            [
                unit(kind, 6, returns=returns),
                FLAT,
                unit("dense", CHOICES, activation="linear"),
            ],
            [*recurrent(kind, 0, WIDE, 6), *dense(2, 6 * steps, CHOICES)],
        )
        for kind in ("lstm", "gru")
        for returns, steps in (("last", 1), ("all", HISTORY))
    },
    "one_behind_the_other": (
        HISTORY,
        [
            convolution(4, 3, "valid", "relu"),
            unit("lstm", 5, returns="all"),
            {"kind": "max_pool", "size": 2},
            unit("gru", 4, returns="last"),
            convolution(4, 1, "same", "linear"),
            unit("lstm", 4, returns="all"),
            LAST,
        ],
        [
            *conv(0, 3, WIDE, 4), *recurrent("lstm", 1, 4, 5), *recurrent("gru", 3, 5, 4),
            *conv(4, 1, 4, 4), *recurrent("lstm", 5, 4, 4), *dense(6, 4, CHOICES),
        ],
    ),
}  # fmt: skip


def answers(model: onnx.ModelProto, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    session = comparing.session_of(model.SerializeToString())
    outputs: npt.NDArray[np.float32] = session.run(None, {session.get_inputs()[0].name: seen})[0]
    return outputs


@pytest.mark.parametrize("name", CASES)
def test_a_layer_answers_the_same_in_onnxruntime_and_comes_back_as_it_was(
    name: str, tmp_path: Path
) -> None:
    history, layers, shapes = CASES[name]
    opened = written(tmp_path, layers, drawn(*shapes), history)
    model = to_onnx.model_of(opened)
    seen = np.random.default_rng(2).normal(0, 1, (7, history, WIDE)).astype(np.float32)
    ours = np.stack([opened.policy.outputs(one) for one in seen])
    assert ours.std(axis=0).min() > 1e-3, "the outputs depend on what is seen"
    np.testing.assert_allclose(answers(model, seen), ours, rtol=TOLERANCE, atol=TOLERANCE)
    back = from_onnx.network_of(
        from_onnx.parse(model.SerializeToString(), "model"), (history, WIDE), "model"
    )
    assert back.layers == layers
    content = (tmp_path / "weights.safetensors").read_bytes()
    assert policy_files.bytes_of(back.tensors) == content


def test_biases_that_are_minus_zero_come_back_so(tmp_path: Path) -> None:
    _, layers, shapes = CASES["lstm_last"]
    tensors = drawn(*shapes)
    tensors["layers.0.bias"][:5] = -0.0
    opened = written(tmp_path, layers, tensors)
    content = to_onnx.model_of(opened).SerializeToString()
    back = from_onnx.network_of(from_onnx.parse(content, "model"), (HISTORY, WIDE), "model")
    assert back.tensors["layers.0.bias"].tobytes() == tensors["layers.0.bias"].tobytes()


def test_weights_are_written_as_the_library_writes_them() -> None:
    library = pytest.importorskip("safetensors.numpy", reason="needs train: an extra")
    tensors = drawn(*CASES["one_behind_the_other"][2])
    assert policy_files.bytes_of(tensors) == library.save(tensors)
    read = policy_files.tensors_of(library.save(tensors))
    assert all((read[name] == tensors[name]).all() for name in tensors)


def test_trees_answer_the_same_in_onnxruntime(tmp_path: Path) -> None:
    """Two outputs, a leaf that two trees share, thresholds that are met exactly."""
    forests = [
        {
            "root": np.array([0, 3, 2], np.uint32),
            "feature": np.array([1, 255, 0, 2, 255, 255], np.uint8),
            "threshold": np.array([0.5, 0, -0.25, 0.0, 0, 0], np.float32),
            "child": np.array([1, 0, 4, 4, 0, 0], np.uint32),
            "value": np.array([0, 0.2, 0, 0, 0.9, 0.4], np.float32) + np.float32(0.1 * output),
        }
        for output in range(2)
    ]
    library = pytest.importorskip("safetensors.numpy", reason="needs train: an extra")
    tensors = {
        f"layers.0.{output}.{part}": tensor
        for output, forest in enumerate(forests)
        for part, tensor in forest.items()
    }
    layers = [{"kind": "trees", "outputs": 2, "low": -2, "high": 3.0}]
    text = policy_files.policy_text("trees", settings(2, 3, 2), layers, {})
    (tmp_path / "policy.toml").write_text(text)
    (tmp_path / "weights.safetensors").write_bytes(library.save(tensors))
    opened = policy_files.open_policy(tmp_path)
    seen = np.random.default_rng(3).choice([-0.25, 0.0, 0.5, 1.0, -1.0], (200, 2, 3))
    seen = seen.astype(np.float32)
    ours = np.stack([opened.policy.outputs(one) for one in seen])
    assert len(np.unique(ours[:, 0])) > 4
    model = to_onnx.model_of(opened)
    np.testing.assert_allclose(answers(model, seen), ours, rtol=TOLERANCE, atol=TOLERANCE)
    with pytest.raises(
        ExchangeError, match=r"TreeEnsembleRegressor .*domain ai\.onnx\.ml: allowed"
    ):
        from_onnx.network_of(from_onnx.parse(model.SerializeToString(), "m"), (2, 3), "m")


@pytest.mark.parametrize("name", ["tcp_drinc", "aurora_mixed"])
def test_the_zoo_goes_out_and_comes_back(name: str, tmp_path: Path) -> None:
    folder, file = ROOT / "data/policies" / name, tmp_path / "out" / "model.onnx"
    run("export", str(folder), "--to", "onnx", str(file))
    run("import", str(file), "--out", str(tmp_path / name))
    weights = (folder / "weights.safetensors").read_bytes()
    assert (tmp_path / name / "weights.safetensors").read_bytes() == weights
    before, after = _core.Policy.open(folder), _core.Policy.open(tmp_path / name)
    assert (after.agent_settings, after.about) == (before.agent_settings, before.about)
    shape = (before.history, len(before.features))
    seen = np.random.default_rng(4).normal(0, 1, (32, *shape)).astype(np.float32)
    theirs = answers(onnx.load(file), seen)
    ours = np.stack([after.outputs(one) for one in seen])
    np.testing.assert_allclose(theirs, ours, rtol=TOLERANCE, atol=TOLERANCE)
    again = tmp_path / "again.onnx"
    run("export", str(tmp_path / name), str(again))
    assert again.read_bytes() == file.read_bytes()


def run(*words: str) -> None:
    cli.app(list(words), standalone_mode=False)


@pytest.mark.parametrize("path", TORCH, ids=lambda path: path.stem)
def test_a_model_of_pytorch_is_a_policy_with_its_outputs(path: Path, tmp_path: Path) -> None:
    assert len(TORCH) == 9 * 4, "nine models, two exporters, two batches"
    (tmp_path / "like.toml").write_text(settings())
    run("import", str(path), "--like", str(tmp_path / "like.toml"), "--out", str(tmp_path / "mine"))
    policy = _core.Policy.open(tmp_path / "mine")
    assert comparing.difference(path.read_bytes(), policy, "model") < TOLERANCE
    kinds = [layer["kind"] for layer in policy_files.open_policy(tmp_path / "mine").layers]
    expected = {
        "mlp": ["flatten", "dense", "dense", "dense"],
        "steps": ["dense", "flatten", "dense"],
        "conv": ["conv1d", "max_pool", "conv1d", "flatten", "dense"],
        "lstm_gru": ["lstm", "gru", "dense"],
        "lstm_twice": ["lstm", "lstm", "dense"],
    }
    name = path.stem.removesuffix("_batch").rpartition("_")[0]
    assert kinds == expected.get(name, [name.partition("_")[0], "dense"])


rng = np.random.default_rng(6)


def weights(*shape: int) -> npt.NDArray[np.float32]:
    return rng.normal(0, 0.5, shape).astype(np.float32)


def whole(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


W = weights(HISTORY * WIDE, CHOICES)
HEAD = [node("Flatten", "x", "f"), node("Gemm", "f,w")]
LSTM = {"w": weights(1, 4 * CHOICES, WIDE), "r": weights(1, 4 * CHOICES, CHOICES)}
GRU = {"w": weights(1, 3 * CHOICES, WIDE), "r": weights(1, 3 * CHOICES, CHOICES)}
TURN = node("Transpose", "x", "t", perm=[1, 0, 2])
CONV = {"k": weights(CHOICES, WIDE, HISTORY)}
CHANNELS = node("Transpose", "x", "c", perm=[0, 2, 1])
CONV_PART = weights(4, WIDE, 3)

OTHERS: dict[str, tuple[onnx.ModelProto, list[str]]] = {
    "no bias": (graph(HEAD, {"w": W}), ["flatten", "dense"]),
    "bias first": (
        graph(
            [node("MatMul", "x,w", "m"), node("Add", "b,m", "a"), node("Flatten", "a", "f"),
             node("Gemm", "f,v")],
            {"w": weights(WIDE, 4), "b": weights(4), "v": weights(4 * HISTORY, CHOICES)},
        ),
        ["dense", "flatten", "dense"],
    ),
    "bias of a row, old opset": (
        graph(
            [node("Reshape", "x,s", "f"), node("MatMul", "f,w", "m"), node("Add", "m,b")],
            {"s": whole(0, -1), "w": W, "b": weights(1, CHOICES)},
            opset=9,
        ),
        ["flatten", "dense"],
    ),
    "a single number for a bias": (
        graph([node("Flatten", "x", "f"), node("Gemm", "f,w,b")], {"w": W, "b": weights(1)}),
        ["flatten", "dense"],
    ),
    "flat from the beginning": (
        graph([node("Gemm", "x,w", transB=1)], {"w": weights(CHOICES, HISTORY * WIDE)},
              entering=("batch", HISTORY * WIDE)),
        ["flatten", "dense"],
    ),
    "channels first": (
        graph(
            [node("Conv", "x,k", "z", auto_pad="SAME_UPPER"), node("MaxPool", "z", "p",
             kernel_shape=[2], strides=[2], ceil_mode=1), node("Relu", "p", "q"),
             node("Flatten", "q", "f"), node("Gemm", "f,w")],
            {"k": weights(4, WIDE, 4), "w": weights(16, CHOICES)},
            entering=(1, WIDE, HISTORY),
        ),
        ["conv1d", "max_pool", "flatten", "dense"],
    ),
    "down to one step": (
        graph([CHANNELS, node("Conv", "c,k", "z"), node("Squeeze", "z,a")],
              {**CONV, "a": whole(2)}),
        ["conv1d"],
    ),
    "the last of a series, and a network behind it": (
        graph(
            [TURN, node("GRU", "t,w,r", "h", linear_before_reset=1, hidden_size=CHOICES),
             node("Squeeze", "h,one", "s"), node("MatMul", "s,v", "m"), node("Tanh", "m", "n"),
             node("Slice", "n,end,far,zero", "l"), node("Squeeze", "l,zero", "o"),
             node("Identity", "o")],
            {**GRU, "one": whole(1), "v": weights(CHOICES, CHOICES), "end": whole(-1),
             "far": whole(2**31), "zero": whole(0)},
        ),
        ["gru", "dense"],
    ),
    "a fixed batch": (
        graph(HEAD, {"w": W}, entering=(4, HISTORY, WIDE)), ["flatten", "dense"]
    ),
    "nodes without use": (
        graph([*HEAD, node("Softmax", "y", "z")], {"w": W}), ["flatten", "dense"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_exporters_are_policies_with_their_outputs(
    name: str, tmp_path: Path
) -> None:
    model, kinds = OTHERS[name]
    content = model.SerializeToString()
    back = from_onnx.network_of(from_onnx.parse(content, "model"), (HISTORY, WIDE), "model")
    assert [layer["kind"] for layer in back.layers] == kinds
    opened = written(tmp_path, back.layers, back.tensors)
    assert comparing.difference(content, opened.policy, "model") < TOLERANCE


def external() -> onnx.ModelProto:
    model = graph(HEAD, {"w": W})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    return model


def vast() -> onnx.ModelProto:
    model = graph(HEAD, {"w": W})
    model.graph.initializer[0].dims[:] = [1 << 40, 1 << 20]
    return model


def lying() -> onnx.ModelProto:
    model = graph(HEAD, {"w": W})
    model.graph.initializer[0].dims[:] = [HISTORY * WIDE, CHOICES + 1]
    return model


def branching() -> onnx.ModelProto:
    inner = helper.make_graph([node("Relu", "x", "z")], "inner", [], [])
    return graph([node("If", "b", then_branch=inner, else_branch=inner)], {"b": np.array(True)})


def lstm(**attributes: Any) -> onnx.ModelProto:  # noqa: ANN401  # as ONNX takes them
    nodes = [TURN, node("LSTM", "t,w,r", "h,l", hidden_size=CHOICES, **attributes),
             node("Squeeze", "l,a")]  # fmt: skip
    return graph(nodes, {**LSTM, "a": whole(0)})


REFUSED: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "weights elsewhere": (external, r"tensor w: its numbers lie in another file: allowed"),
    "weights of a billion gigabytes": (vast, r"tensor w: shape .*: allowed: at most 16777216"),
    "fewer weights than said": (lying, r"tensor w: .*: allowed: as many numbers"),
    "a graph in a node": (branching, r'node 0, If "the_If": \w+_branch: allowed: numbers'),
    "another input": (
        lambda: graph(HEAD, {"w": W}, entering=("batch", 5, WIDE)),
        r"input x: shape \[7919, 5, 3\]: allowed: \(batch, 8, 3\)",
    ),
    "two outputs": (
        lambda: graph(HEAD, {"w": W}, outputs=("y", "f")), r"1 inputs, 2 outputs: allowed: one",
    ),
    "a constant output": (
        lambda: graph([node("Identity", "w")], {"w": W}), r"output y: allowed: what depends",
    ),
    "an unknown node": (
        lambda: graph([*HEAD[:1], node("Gemm", "f,w", "g"), node("Softmax", "g")], {"w": W}),
        r'node 2, Softmax "the_Softmax": allowed: Add, BatchNormalization, Concat, Conv',
    ),
    "an unknown node on constants": (
        lambda: graph([node("Exp", "w", "v"), *HEAD[:1], node("Gemm", "f,v")], {"w": W}),
        r'node 0, Exp "v_Exp": on constants: allowed: Add, ',
    ),
    "a vast constant": (
        lambda: graph(
            [node("ConstantOfShape", "s", "v"), *HEAD[:1], node("Gemm", "f,v")],
            {"s": whole(1 << 40, 1 << 20)},
        ),
        r"node 0, ConstantOfShape .*: makes shape .*: allowed: at most 16777216 numbers",
    ),
    "a vast expansion": (
        lambda: graph(
            [node("Expand", "w,s", "v"), *HEAD[:1], node("Gemm", "f,v")],
            {"w": W, "s": whole(1 << 40, 1, 1)},
        ),
        r"node 0, Expand .*: allowed: at most 16777216 numbers",
    ),
    "an operation of another domain": (
        lambda: graph([helper.make_node("Gemm", ["x"], ["y"], domain="evil")]),
        r"ONNX's checker refuses it|domain evil: allowed",
    ),
    "a residual": (
        lambda: graph([node("MatMul", "x,w", "m"), node("Add", "m,x")], {"w": weights(3, 3)}),
        r'node 1, Add "the_Add": takes two values: allowed: nodes one behind the other',
    ),
    "two ways": (
        lambda: graph(
            [node("Flatten", "x", "f"), node("Gemm", "f,w", "u"), node("Gemm", "f,w", "v"),
             node("Add", "u,v")], {"w": W},
        ),
        r'node 3, Add "the_Add": takes two values: allowed: nodes one behind the other',
    ),
    "an activation of a state": (
        lambda: graph(
            [TURN, node("LSTM", "t,w,r", "h,l", hidden_size=CHOICES), node("Relu", "l")], LSTM
        ),
        r"Relu .*: allowed: behind a dense layer or a convolution",
    ),
    "both directions": (
        lambda: lstm(direction="bidirectional"),
        r"LSTM .*: direction = b'bidirectional': allowed: b'forward'",
    ),
    "clipped gates": (lambda: lstm(clip=3.0), r"LSTM .*: clip = 3.0: allowed: no such setting"),
    "other activations": (
        lambda: lstm(activations=["Relu", "Tanh", "Tanh"]), r"LSTM .*: activations = .*: allowed",
    ),
    "the reset gate first": (
        lambda: graph(
            [TURN, node("GRU", "t,w,r", "h,l", hidden_size=CHOICES), node("Squeeze", "l,a")],
            {**GRU, "a": whole(0)},
        ),
        r"GRU .*: linear_before_reset = 0: allowed: 1",
    ),
    "a state that begins elsewhere": (
        lambda: graph(
            [TURN, node("LSTM", "t,w,r,,,i", "h,l", hidden_size=CHOICES), node("Squeeze", "l,a")],
            {**LSTM, "a": whole(0), "i": weights(1, 1, CHOICES)},
        ),
        r"LSTM .*: allowed: .* states that begin at 0",
    ),
    "the cell's state": (
        lambda: graph(
            [TURN, node("LSTM", "t,w,r", ",,l", hidden_size=CHOICES), node("Squeeze", "l,a")],
            {**LSTM, "a": whole(0)},
        ),
        r"Squeeze .*l: allowed: outputs that a policy's layers have",
    ),
    "time in the batch's place": (
        lambda: graph(
            [node("LSTM", "x,w,r", "h,l", hidden_size=CHOICES), node("Squeeze", "l,a")],
            {**LSTM, "a": whole(0)},
        ),
        r"LSTM .*: allowed: a series with axes \(time, batch, features\)",
    ),
    "strides": (
        lambda: graph([CHANNELS, node("Conv", "c,k", strides=[2])], {"k": CONV_PART}),
        r"Conv .*: strides = \[2\]: allowed: \[1\]",
    ),
    "dilations": (
        lambda: graph([CHANNELS, node("Conv", "c,k", dilations=[2])], {"k": CONV_PART}),
        r"Conv .*: dilations = \[2\]: allowed: \[1\]",
    ),
    "zeros on one side": (
        lambda: graph([CHANNELS, node("Conv", "c,k", pads=[2, 0])], {"k": CONV_PART}),
        r"Conv .*: pads = \[2, 0\]: allowed: \[0, 0\] or \[1, 1\]",
    ),
    "overlapping pools": (
        lambda: graph([CHANNELS, node("MaxPool", "c", kernel_shape=[2])]),
        r"MaxPool .*: strides = \[1\]: allowed: \[2\]",
    ),
    "a scaled product": (
        lambda: graph([*HEAD[:1], node("Gemm", "f,w", alpha=0.5)], {"w": W}),
        r"Gemm .*: alpha = 0.5: allowed: 1.0",
    ),
    "weights that do not fit": (
        lambda: graph([*HEAD[:1], node("Gemm", "f,w")], {"w": weights(5, CHOICES)}),
        r"Gemm .*: weights of shape \[5, 3\]: allowed: \(24, any\)",
    ),
    "weights of double precision": (
        lambda: graph(HEAD, {"w": W.astype(np.float64)}), r"tensor w: numbers of type DOUBLE",
    ),
    "the first of a series": (
        lambda: graph([node("Gather", "x,i", axis=1)], {"i": np.array(0)}),
        r"Gather .*: place \[0\] of an axis of 8: allowed: the last, of time",
    ),
    "a series for an answer": (
        lambda: graph([node("MatMul", "x,w")], {"w": weights(3, 3)}),
        r"output y: shape .*: allowed: one vector of outputs",
    ),
    "a batch that is flattened": (
        lambda: graph([node("Reshape", "x,s")], {"s": whole(-1)}), r"Reshape .*: from .* to ",
    ),
    "an opset to come": (lambda: graph(HEAD, {"w": W}, opset=99), r"opset 99: allowed: 7 to 29"),
    "weights that are no numbers": (
        lambda: graph(HEAD, {"w": np.full_like(W, np.nan)}), r"gives no policy: .*finite",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_is_no_policy_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make, message = REFUSED[name]
    path, like, out = tmp_path / "model.onnx", tmp_path / "like.toml", tmp_path / "mine"
    path.write_bytes(make().SerializeToString())
    like.write_text(settings())
    code, told = ended(monkeypatch, capsys, path, "--like", like, "--out", out)
    assert code == 2
    assert told.count("\n") == 1
    assert told.startswith(str(path))
    assert re.search(message, told), told
    assert not out.exists()


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[object, str]:
    """Exit status of `ackademy import` and what it says of it."""
    monkeypatch.setattr(sys, "argv", ["ackademy", "import", *map(str, words)])
    return exits.status_of(cli.app), capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"no model", bytes(range(256))])
def test_a_file_that_is_no_model_is_one_line(content: bytes) -> None:
    with pytest.raises(ExchangeError, match=r"^x\.onnx: ") as refused:
        from_onnx.parse(content, "x.onnx")
    assert "\n" not in str(refused.value)


def test_a_name_that_is_no_text_is_one_line() -> None:
    model = graph(HEAD, {"w": W})
    model.graph.initializer[0].dims[:] = [5]
    model.graph.initializer[0].name = model.graph.node[1].input[1] = "name"
    with pytest.raises(ExchangeError, match=r"x: tensor \ufffd a: cannot reshape"):
        from_onnx.parse(model.SerializeToString().replace(b"name", b"\xff\x00a\n"), "x")


def test_spoilt_models_are_refused_or_policies_and_nothing_else(tmp_path: Path) -> None:
    _, layers, shapes = CASES["one_behind_the_other"]
    good = to_onnx.model_of(written(tmp_path, layers, drawn(*shapes))).SerializeToString()
    refused = []
    for seed in range(600):
        spoiler = np.random.default_rng(seed)
        bad = bytearray(good[: spoiler.integers(1, len(good))] if seed % 3 == 0 else good)
        for place in spoiler.integers(0, len(bad), 1 + seed % 7):
            bad[place] = spoiler.integers(256)
        try:
            model = from_onnx.parse(bytes(bad), "bad.onnx")
            from_onnx.network_of(model, (HISTORY, WIDE), "bad.onnx")
        except ExchangeError as error:
            refused.append(str(error))
    assert 200 < len(refused) < 600
    assert not [told for told in refused if not told.isprintable()]


def test_a_metadata_key_that_was_renamed_is_an_error_with_its_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "mine"
    model = graph(HEAD, {"w": W})
    helper.set_model_props(model, {to_onnx.SETTINGS_KEY_BEFORE: settings()})
    path.write_bytes(model.SerializeToString())
    code, told = ended(monkeypatch, capsys, path, "--out", out)
    assert (code, told.count("\n")) == (2, 1)
    assert f"metadata {to_onnx.SETTINGS_KEY_BEFORE}: allowed: ackademy.agent_settings" in told
    assert not out.exists()


def test_what_the_policy_sees_must_be_said_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "model.onnx", tmp_path / "mine"
    model = graph(HEAD, {"w": W})
    path.write_bytes(model.SerializeToString())
    code, told = ended(monkeypatch, capsys, path, "--out", out)
    assert code == 2
    assert "does not say what the policy sees and does: allowed: --like" in told
    wrong = settings().replace("rtt_mean", "rtt_meen")
    helper.set_model_props(model, {to_onnx.SETTINGS_KEY: wrong, to_onnx.ABOUT_KEY: "a\nb\x1b[31m"})
    path.write_bytes(model.SerializeToString())
    code, told = ended(monkeypatch, capsys, path, "--out", out)
    assert (code, told.count("\n"), "rtt_meen" in told) == (2, 1, True)
    smuggled = settings() + '[guard]\nfallback = "none"\n[[layers]]\nkind = "flatten"\n'
    helper.set_model_props(
        model, {to_onnx.SETTINGS_KEY: smuggled, to_onnx.ABOUT_KEY: "a\nb\x1b[31m"}
    )
    path.write_bytes(model.SerializeToString())
    run("import", str(path), "--out", str(out))
    assert _core.Policy.open(out).about == "a b [31m"
    assert [layer["kind"] for layer in policy_files.open_policy(out).layers] == ["flatten", "dense"]
    (tmp_path / "other").mkdir()
    with pytest.raises(AckademyError, match="holds no policy; allowed: a new folder"):
        run("import", str(path), "--out", str(tmp_path / "other"))


def test_models_that_answer_otherwise_are_refused(tmp_path: Path) -> None:
    opened = written(tmp_path, [FLAT, LAST], drawn(*dense(1, HISTORY * WIDE, CHOICES)))
    model = to_onnx.model_of(opened)
    shifted = numpy_helper.to_array(model.graph.initializer[0]) + np.float32(0.01)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(shifted, "layers.1.kernel"))
    with pytest.raises(ExchangeError, match=r"outputs and ours are .* apart: allowed: 0\.0001"):
        comparing.difference(model.SerializeToString(), opened.policy, "model")


def test_without_onnx_both_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("comparing", "to_onnx", "from_onnx"):
        monkeypatch.delitem(sys.modules, f"ackademy.policies.onnx.{module}")
        monkeypatch.delattr(f"ackademy.policies.onnx.{module}")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for words in (["export", "policies/tcp_drinc"], ["import", "x.onnx", "--out"]):
        with pytest.raises(ExchangeError, match="make build EXTRAS=onnx"):
            run(*words, str(tmp_path / "out"))
