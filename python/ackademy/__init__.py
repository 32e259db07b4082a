"""Ackademy: learned congestion control, from one simulator to real paths.

import ackademy

result = ackademy.run("scenarios/deep_buffer.toml", seed=3, cc="cubic")
print(result.metrics().flows)

Names are imported when they are first used: the command line starts without Polars and NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ackademy._core import CODE_HASH, Scenario
from ackademy.backends.controllers import Controller
from ackademy.errors import (
    AckademyError,
    ControllerError,
    EngineError,
    ExperimentError,
    KernelError,
    ScenarioError,
)

if TYPE_CHECKING:
    from ackademy.backends.runs import Metrics, Run, run
    from ackademy.render.notebook import Comparison, compare
    from ackademy.stats import formulas, intervals, metrics

__version__ = "0.1.0"

__all__ = [
    "CODE_HASH",
    "AckademyError",
    "Comparison",
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
    "compare",
    "formulas",
    "intervals",
    "metrics",
    "run",
]

_MODULE_OF = {
    "Comparison": "render.notebook",
    "Metrics": "backends.runs",
    "Run": "backends.runs",
    "compare": "render.notebook",
    "run": "backends.runs",
}
"""modules that import Polars, by the names they define"""
_MODULES = ("formulas", "intervals", "metrics")


def __getattr__(name: str) -> object:
    """Import a name of `__all__` when it is first used."""
    if name in _MODULES:
        return import_module(f"ackademy.stats.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ackademy' has no attribute {name!r}")
    value: object = getattr(import_module(f"ackademy.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
