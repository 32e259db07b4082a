"""Ackademy: learned congestion control, from one simulator to real paths.

import ackademy

result = ackademy.run("scenarios/dumbbell.toml", seed=3, cc="cubic")
print(result.metrics().flows)
"""

from __future__ import annotations

from ackademy import intervals, metrics
from ackademy._core import CODE_HASH, Scenario
from ackademy.controllers import Controller
from ackademy.errors import (
    AckademyError,
    ControllerError,
    EngineError,
    ExperimentError,
    KernelError,
    ScenarioError,
)
from ackademy.run import Metrics, Run, run

__version__ = "0.1.0"

__all__ = [
    "CODE_HASH",
    "AckademyError",
    "Controller",
    "ControllerError",
    "EngineError",
    "ExperimentError",
    "KernelError",
    "Metrics",
    "Run",
    "Scenario",
    "ScenarioError",
    "__version__",
    "intervals",
    "metrics",
    "run",
]
