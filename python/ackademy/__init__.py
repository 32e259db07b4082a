"""Ackademy: learned congestion control, from one simulator to real paths.

import ackademy

result = ackademy.run("deep_buffer", seed=3, cc="cubic")
print(result.metrics().flows)

Names are imported when they are first used: the command line starts without Polars and NumPy, and
almost at once to where Ctrl-C is handled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ackademy._core import CODE_HASH, Scenario
    from ackademy.backends.captures import Pcap
    from ackademy.backends.controllers import Controller
    from ackademy.errors import (
        AckademyError,
        ControllerError,
        EngineError,
        ExperimentError,
        KernelError,
        ScenarioError,
    )
    from ackademy.stats import formulas, intervals, metrics
    from ackademy.stats.run_metrics import Metrics
    from ackademy.studies.compare import Comparison, compare
    from ackademy.studies.run import Run, run

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
    "Pcap",
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

_ERRORS = (
    "AckademyError",
    "ControllerError",
    "EngineError",
    "ExperimentError",
    "KernelError",
    "ScenarioError",
)
_MODULE_OF = {
    **dict.fromkeys(_ERRORS, "errors"),
    "CODE_HASH": "_core",
    "Controller": "backends.controllers",
    "Comparison": "studies.compare",
    "Metrics": "stats.run_metrics",
    "Pcap": "backends.captures",
    "Run": "studies.run",
    "Scenario": "_core",
    "compare": "studies.compare",
    "run": "studies.run",
}
"""modules by the names they define"""
_MODULES = {
    **{name: f"stats.{name}" for name in ("formulas", "intervals", "metrics")},
    **{name: name for name in ("_core", "backends", "errors")},
}


def __getattr__(name: str) -> object:
    """Import a name of `__all__` when it is first used."""
    if name in _MODULES:
        return import_module(f"ackademy.{_MODULES[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ackademy' has no attribute {name!r}")
    value: object = getattr(import_module(f"ackademy.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
