"""The engine of policies against flax, and the words of docs/reference/policies.md."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

from ackademy import _core

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
jax = pytest.importorskip("jax", reason="needs train: an extra")
nn = pytest.importorskip("flax.linen", reason="needs train: an extra")
safetensors = pytest.importorskip("safetensors.numpy", reason="needs train: an extra")

F32: TypeAlias = npt.NDArray[np.float32]
Tensors: TypeAlias = Mapping[str, npt.NDArray[Any]]
Params: TypeAlias = Mapping[str, Any]
"""as flax nests them"""


class Module(Protocol):
    """What is used of a flax module."""

    def init(self, key: object, x: object) -> Params:
        """Parameters drawn at random."""

    def apply(self, params: Params, x: object) -> F32:
        """Outputs."""


FEATURES = ("cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap", "loss_ratio")
TOLERANCE = 1e-5


def folder(
    layers: Sequence[str], tensors: Tensors, *, history: int, features: int, outputs: int
) -> dict[str, bytes]:
    """The two files of a policy with these layers."""
    text = "\n".join(
        [
            "format = 1",
            'about = "of a test"',
            "[observation]",
            f"features = {list(FEATURES[:features])}".replace("'", '"'),
            f"history = {history}",
            "[decision]",
            'every = "srtt"',
            "[action]",
            'map = "cwnd_steps"',
            "steps = [" + ", ".join(f'"+{step}"' for step in range(outputs)) + "]",
            *(f"[[layers]]\n{layer}" for layer in layers),
        ]
    )
    weights = safetensors.save({name: np.asarray(x) for name, x in tensors.items()})
    return {"policy.toml": text.encode(), "weights.safetensors": weights}


def of_lstm(index: int, cell: Params) -> dict[str, F32]:
    """Tensors of flax's OptimizedLSTMCell."""
    return {
        f"layers.{index}.kernel": np.concatenate([cell[f"i{g}"]["kernel"] for g in "ifgo"], 1),
        f"layers.{index}.recurrent": np.concatenate([cell[f"h{g}"]["kernel"] for g in "ifgo"], 1),
        f"layers.{index}.bias": np.concatenate([cell[f"h{g}"]["bias"] for g in "ifgo"]),
    }


def of_gru(index: int, cell: Params) -> dict[str, F32]:
    """Tensors of flax's GRUCell."""
    return {
        f"layers.{index}.kernel": np.concatenate([cell[f"i{g}"]["kernel"] for g in "rzn"], 1),
        f"layers.{index}.recurrent": np.concatenate([cell[f"h{g}"]["kernel"] for g in "rzn"], 1),
        f"layers.{index}.bias": np.concatenate([cell[f"i{g}"]["bias"] for g in "rzn"]),
        f"layers.{index}.recurrent_bias": np.asarray(cell["hn"]["bias"]),
    }


def of_affine(index: int, layer: Params) -> dict[str, F32]:
    """Tensors of flax's Dense and Conv."""
    return {f"layers.{index}.{part}": np.asarray(layer[part]) for part in ("kernel", "bias")}


def drawn(shapes: Params, seed: int) -> Params:
    """Random parameters; biases too, which flax would begin at zero."""
    rng = np.random.default_rng(seed)

    def one(leaf: npt.NDArray[Any]) -> F32:
        inputs = int(np.prod(leaf.shape[:-1]))
        return rng.normal(0, min(0.5, inputs**-0.5), leaf.shape).astype(np.float32)

    params: Params = jax.tree.map(one, shapes)
    return params


def check(
    module: Module,
    layers: Sequence[str],
    of: Callable[[Params], Tensors],
    *,
    history: int,
    features: int,
    outputs: int,
) -> None:
    """That ours and flax's outputs are the same, for weights and observations of several seeds."""
    zeros = np.zeros((history, features), np.float32)
    shapes = jax.eval_shape(module.init, jax.random.key(0), zeros)["params"]
    apply = jax.jit(lambda params, x: module.apply({"params": params}, x))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(0, 1, (history, features)).astype(np.float32)
        params = drawn(shapes, seed)
        files = folder(layers, of(params), history=history, features=features, outputs=outputs)
        policy = _core.Policy.load(files)
        for scale in (0.01, 1.0, 10.0):
            seen = (x * scale).astype(np.float32)
            ours = policy.outputs(seen)
            assert ours.shape == (outputs,)
            np.testing.assert_allclose(ours, apply(params, seen), rtol=TOLERANCE, atol=TOLERANCE)
            assert policy.decide(seen) == int(np.argmax(ours))


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "leaky_relu"])
def test_a_perceptron_is_flax_s(name: str) -> None:
    activation = getattr(nn, name)
    module = nn.Sequential(
        [lambda x: x.reshape(-1), nn.Dense(128), activation, nn.Dense(128), activation, nn.Dense(5)]
    )
    own = '{ kind = "leaky_relu", slope = 0.01 }' if name == "leaky_relu" else f'"{name}"'
    hidden = f'kind = "dense"\nunits = 128\nactivation = {own}'
    layers = ['kind = "flatten"', hidden, hidden, 'kind = "dense"\nunits = 5']

    def tensors(params: Params) -> dict[str, F32]:
        places = ((1, "layers_1"), (2, "layers_3"), (3, "layers_5"))
        return {k: v for at, key in places for k, v in of_affine(at, params[key]).items()}

    check(module, layers, tensors, history=10, features=3, outputs=5)


def test_a_layer_that_normalises_is_flax_s() -> None:
    module = nn.Sequential(
        [
            nn.Dense(20),
            nn.LayerNorm(epsilon=1e-4),
            nn.relu,
            lambda x: x.reshape(-1),
            nn.LayerNorm(epsilon=1e-5),
            nn.Dense(5),
        ]
    )
    layers = [
        'kind = "dense"\nunits = 20',
        'kind = "layer_norm"\nepsilon = 1e-4\nactivation = "relu"',
        'kind = "flatten"',
        'kind = "layer_norm"',
        'kind = "dense"\nunits = 5',
    ]

    def tensors(params: Params) -> dict[str, F32]:
        dense = {**of_affine(0, params["layers_0"]), **of_affine(4, params["layers_5"])}
        for at, key in ((1, "layers_1"), (3, "layers_4")):
            for part in ("scale", "bias"):
                dense[f"layers.{at}.{part}"] = np.asarray(params[key][part])
        return dense

    check(module, layers, tensors, history=10, features=3, outputs=5)


@pytest.mark.parametrize(
    ("padding", "history", "kernel"),
    [("same", 17, 5), ("same", 16, 4), ("same", 3, 7), ("valid", 17, 4)],
)
def test_a_convolution_is_flax_s(padding: str, history: int, kernel: int) -> None:
    conv = nn.Conv(19, (kernel,), padding=padding.upper())
    module = nn.Sequential(
        [
            conv,
            nn.relu,
            lambda x: nn.max_pool(x, (2,), strides=(2,)),
            nn.Dense(7),
            nn.tanh,
            lambda x: x.reshape(-1),
            nn.Dense(4),
        ]
    )
    layers = [
        f'kind = "conv1d"\nfilters = 19\nkernel = {kernel}\n'
        f'padding = "{padding}"\nactivation = "relu"',
        'kind = "max_pool"\nsize = 2',
        'kind = "dense"\nunits = 7\nactivation = "tanh"',
        'kind = "flatten"',
        'kind = "dense"\nunits = 4',
    ]

    def tensors(params: Params) -> dict[str, F32]:
        places = ((0, "layers_0"), (2, "layers_3"), (4, "layers_6"))
        return {k: v for at, key in places for k, v in of_affine(at, params[key]).items()}

    check(module, layers, tensors, history=history, features=6, outputs=4)


@pytest.mark.parametrize("returns", ["last", "all"])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_recurrent_layer_is_flax_s(kind: str, returns: str) -> None:
    cell = nn.OptimizedLSTMCell(21) if kind == "lstm" else nn.GRUCell(21)
    chosen = (lambda x: x[-1]) if returns == "last" else (lambda x: x.reshape(-1))
    module = nn.Sequential([nn.RNN(cell), chosen, nn.Dense(3)])
    layers = [
        f'kind = "{kind}"\nunits = 21\nreturns = "{returns}"',
        'kind = "flatten"',
        'kind = "dense"\nunits = 3',
    ]

    def tensors(params: Params) -> dict[str, F32]:
        own = params["layers_0"]["cell"] if "layers_0" in params else params["cell"]
        recurrent = of_lstm(0, own) if kind == "lstm" else of_gru(0, own)
        return recurrent | of_affine(2, params["layers_2"])

    check(module, layers, tensors, history=12, features=4, outputs=3)


DRINC = [
    'kind = "conv1d"\nfilters = 32\nkernel = 5\nactivation = "relu"',
    'kind = "max_pool"\nsize = 2',
    'kind = "conv1d"\nfilters = 64\nkernel = 3\nactivation = "relu"',
    'kind = "max_pool"\nsize = 2',
    'kind = "dense"\nunits = 32\nactivation = "relu"',
    'kind = "lstm"\nunits = 64',
    'kind = "dense"\nunits = 5',
]


def test_tcp_drinc_s_network_is_flax_s() -> None:
    halve = lambda x: nn.max_pool(x, (2,), strides=(2,))  # noqa: E731
    module = nn.Sequential(
        [
            nn.Conv(32, (5,)),
            nn.relu,
            halve,
            nn.Conv(64, (3,)),
            nn.relu,
            halve,
            nn.Dense(32),
            nn.relu,
            nn.RNN(nn.OptimizedLSTMCell(64)),
            lambda x: x[-1],
            nn.Dense(5),
        ]
    )

    def tensors(params: Params) -> dict[str, F32]:
        cell = params["layers_8"]["cell"] if "layers_8" in params else params["cell"]
        places = ((0, "layers_0"), (2, "layers_3"), (4, "layers_6"), (6, "layers_10"))
        affine = {k: v for at, key in places for k, v in of_affine(at, params[key]).items()}
        return affine | of_lstm(5, cell)

    check(module, DRINC, tensors, history=64, features=5, outputs=5)


def test_trees_answer_as_the_format_says() -> None:
    """A forest for each output: the mean of its trees, from `low` to `high`."""
    rng = np.random.default_rng(1)
    forests = [grown(rng, trees=5, splits=20, features=6) for _ in range(2)]
    tensors = {
        f"layers.0.{output}.{name}": tensor
        for output, forest in enumerate(forests)
        for name, tensor in forest.items()
    }
    layers = ['kind = "trees"\noutputs = 2\nlow = -2\nhigh = 2.0']
    policy = _core.Policy.load(folder(layers, tensors, history=2, features=3, outputs=2))
    for x in rng.random((50, 2, 3), dtype=np.float32):
        words = [-2 + 4 * walked(forest, x.reshape(-1)) for forest in forests]
        np.testing.assert_allclose(policy.outputs(x), words, atol=TOLERANCE)


def grown(
    rng: np.random.Generator, *, trees: int, splits: int, features: int
) -> dict[str, npt.NDArray[Any]]:
    """Trees split at random, children side by side and behind their parents."""
    size = 2 * splits + 1
    forest: dict[str, npt.NDArray[Any]] = {
        "root": np.arange(trees, dtype=np.uint32) * size,
        "feature": np.full(trees * size, 255, np.uint8),
        "threshold": rng.random(trees * size, dtype=np.float32),
        "child": np.zeros(trees * size, np.uint32),
        "value": rng.random(trees * size, dtype=np.float32),
    }
    for root in forest["root"]:
        leaves = [int(root)]
        for split in range(splits):
            parent = leaves.pop(int(rng.integers(len(leaves))))
            child = int(root) + 1 + 2 * split
            forest["feature"][parent] = rng.integers(features)
            forest["child"][parent] = child
            leaves += [child, child + 1]
    return forest


def walked(forest: Tensors, x: F32) -> float:
    """Mean output of the trees, node by node."""
    outputs = []
    for root in forest["root"]:
        node = int(root)
        while (feature := forest["feature"][node]) != 255:
            right = x[feature] > forest["threshold"][node]
            node = int(forest["child"][node]) + int(right)
        outputs.append(float(forest["value"][node]))
    return sum(outputs) / len(outputs)


def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path) -> None:
    zeros = np.zeros((6, 3), np.float32)
    tensors = {"layers.0.kernel": zeros, "layers.0.bias": zeros[0]}
    files = folder(['kind = "dense"\nunits = 4'], tensors, history=1, features=6, outputs=4)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    expected = "weights.safetensors: shape of `layers.0.kernel` = [6, 3]: allowed is [6, 4]"
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        _core.Policy.open(tmp_path)
    assert str(refused.value) == f"{tmp_path}/{expected}"
    with pytest.raises(ValueError, match=r"allowed is policy.toml, weights.safetensors$"):
        _core.Policy.load({"policy.toml": b""})
    good = _core.Policy.load(
        folder(['kind = "dense"\nunits = 3'], tensors, history=1, features=6, outputs=3)
    )
    with pytest.raises(ValueError, match=r"shape \[2, 6\]: allowed is \[1, 6\]"):
        good.outputs(np.zeros((2, 6), np.float32))
    with pytest.raises(ValueError, match="not finite"):
        good.decide(np.full((1, 6), np.nan, np.float32))


ROOT = Path(__file__).parents[1]


def test_the_policy_that_the_document_makes_by_hand_is_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of docs/reference/policies.md give the conformance tests' files, byte for byte."""
    document = (ROOT / "docs" / "reference" / "policies.md").read_text()
    section = document.split("### One by hand")[1].split("### policy.toml")[0]
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(blocks["python"], {})
    shipped = ROOT / "crates" / "core" / "tests" / "files" / "policy" / "policy"
    assert blocks["toml"] == (shipped / "policy.toml").read_text()
    made = (tmp_path / "weights.safetensors").read_bytes()
    assert made == (shipped / "weights.safetensors").read_bytes()
    policy = _core.Policy.open(shipped)
    steps = [policy.decide(np.full((1, 1), x, np.float32)) for x in (0.6, 0.75, 0.9)]
    assert steps == [0, 1, 2]
