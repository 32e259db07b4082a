"""Constants of an untrusted ONNX model: what would take all memory is refused before it is made."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="models need the extra `onnx`")

from ackademy.exchange.constants import NUMBERS_MAX, Refused, computed

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
