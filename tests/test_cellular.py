"""The generator of cellular traces in grants is like the recorded traces to which it is fitted.

tests/files/recorded_cellular.json has numbers of the recordings (research/cellular_fit.py
--numbers), which are published with mahimahi and with Abbasloo et al. 2019 and not part of this
repository.
`ACKADEMY_TRACES` names a folder with the recordings themselves.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ackademy import _core

ROOT = Path(__file__).parents[1]
RECORDED: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "tests" / "files" / "recorded_cellular.json").read_text(encoding="utf-8")
)


def _fit() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "cellular_fit", ROOT / "research" / "cellular_fit.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIT = _fit()


def distance(name: str, texts: list[str]) -> float:
    """Of the mean statistics of generated traces from those of the recording."""
    millis = [np.fromstring(text, dtype=np.int64, sep="\n") for text in texts]
    found = [FIT.statistics(own) for own in millis]
    wanted = RECORDED[name]["statistics"]
    return float(
        sum((np.mean([own[key] for own in found]) - value) ** 2 for key, value in wanted.items())
    )


def test_every_fit_has_numbers_of_its_recording() -> None:
    assert sorted(_core.fitted_traces()) == sorted(RECORDED) == sorted(FIT.RECORDED)


def test_generated_traces_are_nearer_to_their_recordings_than_traces_that_wander() -> None:
    near, far = {}, {}
    for name in RECORDED:
        grants = [_core.generate_grants(600, name, {}, seed) for seed in range(3)]
        mbps = float(np.mean([text.count("\n") for text in grants])) * 12.032 / 600e3
        wanders = [_core.generate_trace(600, mbps, 0.5, seed) for seed in range(3)]
        near[name], far[name] = distance(name, grants), distance(name, wanders)
    assert max(near.values()) < 10, near
    assert sum(near.values()) < sum(far.values()) / 2, (near, far)


@pytest.mark.slow
def test_controllers_do_on_generated_minutes_what_they_do_on_recorded_ones() -> None:
    minutes = {name: own["minutes"] for name, own in RECORDED.items()}
    recorded = sum(np.array(own["responses"]) * own["minutes"] for own in RECORDED.values())
    found = sum(generated_responses(name, own) * own for name, own in minutes.items())
    ratio = found / recorded
    shown = dict(zip(FIT.CONTROLLERS, np.round(ratio, 3).tolist(), strict=True))
    assert (np.abs(ratio - 1) < (0.02, 0.12)).all(), shown


def generated_responses(name: str, minutes: int) -> Any:  # noqa: ANN401
    """Mean use and wait over nine times as many minutes as were recorded."""
    own = [FIT.generated(name, {}, 60 * minutes, seed) for seed in range(9)]
    return np.concatenate([FIT.responses(millis) for millis in own]).mean(0)


@pytest.mark.slow
def test_the_numbers_are_those_of_the_recordings() -> None:
    folder = os.environ.get("ACKADEMY_TRACES")
    if folder is None:
        pytest.skip("needs traces: ACKADEMY_TRACES names no folder of recordings")
    for name, file in FIT.RECORDED.items():
        millis = np.loadtxt(Path(folder) / file, dtype=np.int64)
        assert FIT.numbers_of(millis) == RECORDED[name]
