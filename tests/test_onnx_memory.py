"""Untrusted ONNX models that are small and would take all memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("onnx", reason="needs onnx: an extra")
pytest.importorskip("onnxruntime", reason="needs onnx: an extra")

import onnx
from onnx import TensorProto, helper, numpy_helper

from ackademy.cli import app
from ackademy.errors import ExchangeError
from ackademy.policies.onnx import from_onnx
from ackademy.policies.onnx.constants import NUMBERS_MAX, Refused, computed

SPARE_BYTES = 1 << 34
SIDE = 1 << 13
LONG = np.zeros(NUMBERS_MAX, np.float32)


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """No address space for what would be made: a missing check fails and hurts nobody."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + SPARE_BYTES, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Add", [np.zeros((SIDE, 1, 1)), np.zeros((1, SIDE, SIDE))], {}),
        ("Mul", [np.zeros((SIDE, 1, 1)), np.zeros((1, SIDE, SIDE))], {}),
        ("Gather", [np.zeros((1, SIDE)), np.zeros(SIDE * SIDE, np.int64)], {}),
        ("Concat", [LONG] * 300, {"axis": 0}),
        ("Expand", [np.zeros(1), np.array([SIDE, SIDE, SIDE])], {}),
        ("ConstantOfShape", [np.array([SIDE, SIDE, SIDE])], {}),
    ],
)
def test_what_grows_beyond_all_bounds_is_refused_unmade(
    op: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=f"allowed: at most {NUMBERS_MAX} numbers"):
        computed(op, inputs, attributes)


def test_what_is_within_bounds_is_computed() -> None:
    column, row = np.arange(3)[:, None], np.arange(4)
    assert (computed("Add", [column, row], {}) == column + row).all()
    assert (computed("Mul", [column, row], {}) == column * row).all()
    places = np.array([[2, 0], [-1, 1]])
    assert (computed("Gather", [row, places], {"axis": 0}) == row[places]).all()
    assert computed("Gather", [column * row, np.array(1)], {"axis": 1}).tolist() == [0, 1, 2]
    assert computed("Concat", [row, row], {"axis": 0}).tolist() == [0, 1, 2, 3] * 2
    with pytest.raises(Refused, match="do not fit each other"):
        computed("Add", [np.zeros(3), np.zeros(4)], {})


def model(batch: int | str, *more: onnx.NodeProto) -> onnx.ModelProto:
    """A dense layer for observations of one vector of two numbers, and nodes beside it."""
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 2]) for name in ("x", "y")
    ]
    tensors = [
        numpy_helper.from_array(np.eye(2, dtype=np.float32), "kernel"),
        numpy_helper.from_array(np.array([1 << 33], np.int64), "many"),
    ]
    nodes = [helper.make_node("MatMul", ["x", "kernel"], ["y"]), *more]
    graph = helper.make_graph(nodes, "test", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_the_output_does_not_depend_on_is_not_run(tmp_path: Path) -> None:
    unused = helper.make_node("ConstantOfShape", ["many"], ["unused"])
    path, out = tmp_path / "model.onnx", tmp_path / "mine"
    onnx.save(model("batch", unused), path)
    recipe = tmp_path / "like.toml"
    recipe.write_text(
        '[observation]\nfeatures = ["rtt_ratio", "loss_ratio"]\nhistory = 1\n'
        '[decision]\nevery = "srtt"\n[action]\nmap = "rate_and_cwnd"\n'
    )
    words = ["import", str(path), "--like", str(recipe), "--out", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.exception
    assert (out / "policy.toml").is_file()


@pytest.mark.parametrize("batch", [-5, 10**9])
def test_a_batch_that_no_memory_holds_is_refused(batch: int) -> None:
    parsed = from_onnx.parse(model(batch).SerializeToString(), "model")
    with pytest.raises(ExchangeError, match=f"input x: a batch of {batch}: allowed: 1 to 4096"):
        from_onnx.network_of(parsed, (1, 2), "model")
