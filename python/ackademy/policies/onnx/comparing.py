"""A model and a policy beside each other, on random observations."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ackademy import _core
from ackademy.errors import ExchangeError
from ackademy.policies.policy_files import plain

onnxruntime = import_module("onnxruntime")  # which has no types
OBSERVATIONS = 64
SCALES = (0.1, 1.0, 3.0)
"""of normally distributed observations; what a policy sees is mostly within 1"""
APART_MAX = 1e-4
"""Relative to 1 + |output|. Ours is within 1e-5 of most runtimes; a wrong layer is far beyond."""


def difference(content: bytes, policy: _core.Policy, where: str) -> float:
    """The largest difference between onnxruntime's outputs and ours, relative to 1 + |output|.

    Args:
        content: the model.
        policy: the policy that should be the same.
        where: the file's name, for messages.

    Raises:
        ExchangeError: if onnxruntime cannot run the model, or it is more than `APART_MAX`.
    """
    entering, largest = (policy.history, len(policy.features)), 0.0
    rng = np.random.default_rng(1)
    try:
        session = session_of(content)
        name, sizes = session.get_inputs()[0].name, session.get_inputs()[0].shape
        for number in range(OBSERVATIONS):
            scale = SCALES[number % len(SCALES)]
            seen = rng.normal(0.0, scale, entering).astype(np.float32)
            theirs = session.run(None, {name: _presented(seen, sizes)})[0]
            ours = policy.outputs(seen)
            first = np.asarray(theirs, np.float64).reshape(-1)[: ours.size]
            apart = np.abs(first - ours) / (1.0 + np.abs(ours))
            largest = max(largest, float(apart.max())) if np.isfinite(apart).all() else np.inf
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise ExchangeError(f"{where}: onnxruntime cannot run it: {plain(str(error))}") from None
    if not largest <= APART_MAX:
        raise ExchangeError(
            f"{where}: onnxruntime's outputs and ours are {largest:.1e} apart: allowed: {APART_MAX}"
        )
    return largest


def session_of(content: bytes) -> Any:  # noqa: ANN401  # of onnxruntime
    """A model that can be run, on one thread, silent."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _presented(seen: npt.NDArray[np.float32], sizes: list[Any]) -> npt.NDArray[np.float32]:
    """An observation as an input of these sizes wants it, once for each place of its batch."""
    batch = sizes[0] if isinstance(sizes[0], int) else 1
    if len(sizes) == 2:
        one = seen.reshape(-1)
    else:
        wanted = [size if isinstance(size, int) else own
                  for size, own in zip(sizes[1:], seen.shape, strict=True)]  # fmt: skip
        one = seen if tuple(wanted) == seen.shape else seen.T
    return np.repeat(one[None], batch, axis=0)
