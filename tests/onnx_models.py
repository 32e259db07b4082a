"""Policies and ONNX models that the tests of their exchange build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ackademy.policies import policy_files
from ackademy.policies.policy_files import Opened

FEATURES = ("cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap", "loss_ratio")
HISTORY, WIDE, CHOICES = 8, 3, 3
Layer = dict[str, Any]
Parts = dict[str, npt.NDArray[np.float32]]


def settings(history: int = HISTORY, features: int = WIDE, choices: int = CHOICES) -> str:
    steps = [f"+{step}" for step in range(choices)]
    return policy_files.tables_text(
        {
            "observation": {"features": list(FEATURES[:features]), "history": history},
            "decision": {"every": "srtt"},
            "action": {"map": "cwnd_steps", "steps": steps},
        }
    )


def written(
    folder: Path, layers: Sequence[Layer], tensors: Parts, history: int = HISTORY
) -> Opened:
    """A policy's folder, opened."""
    folder.mkdir(exist_ok=True)
    text = policy_files.policy_text("of a test", settings(history), list(layers), {})
    (folder / "policy.toml").write_text(text)
    (folder / "weights.safetensors").write_bytes(policy_files.bytes_of(tensors))
    return policy_files.open_policy(folder)


def drawn(*shapes: tuple[int, str, tuple[int, ...]]) -> Parts:
    """Tensors at random: number of the layer, part, shape."""
    rng = np.random.default_rng(5)
    return {
        f"layers.{index}.{part}": rng.normal(0, 0.7, shape).astype(np.float32)
        for index, part, shape in shapes
    }


def dense(index: int, wide: int, units: int) -> list[tuple[int, str, tuple[int, ...]]]:
    return [(index, "kernel", (wide, units)), (index, "bias", (units,))]


def recurrent(kind: str, index: int, wide: int, units: int) -> list[Any]:
    gates = 4 if kind == "lstm" else 3
    shapes = [
        (index, "kernel", (wide, gates * units)),
        (index, "recurrent", (units, gates * units)),
        (index, "bias", (gates * units,)),
    ]
    return shapes if kind == "lstm" else [*shapes, (index, "recurrent_bias", (units,))]


def conv(index: int, size: int, wide: int, filters: int) -> list[Any]:
    return [(index, "kernel", (size, wide, filters)), (index, "bias", (filters,))]


LAST = {"kind": "dense", "units": CHOICES, "activation": "linear"}
FLAT = {"kind": "flatten"}


def unit(kind: str, units: int, **more: str) -> Layer:
    return {"kind": kind, "units": units, **more}


def convolution(filters: int, size: int, padding: str, activation: str) -> Layer:
    return {
        "kind": "conv1d",
        "filters": filters,
        "kernel": size,
        "padding": padding,
        "activation": activation,
    }


def graph(
    nodes: Sequence[onnx.NodeProto],
    tensors: dict[str, npt.NDArray[Any]] | None = None,
    *,
    entering: Sequence[int | str] = ("batch", HISTORY, WIDE),
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
) -> onnx.ModelProto:
    """A model of these nodes from `x` to `y`."""
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "test",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(entering))],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None])
                for name in outputs
            ],
            [numpy_helper.from_array(value, name) for name, value in (tensors or {}).items()],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )
    return made


def node(
    op: str,
    inputs: str,
    outputs: str = "y",
    **attributes: Any,  # noqa: ANN401  # as ONNX takes them
) -> onnx.NodeProto:
    """A node by an operation, and its values' names between commas."""
    made = helper.make_node(op, inputs.split(","), outputs.split(","), **attributes)
    made.name = f"the_{op}" if outputs == "y" else f"{outputs}_{op}"
    return made
