"""Everything that Ackademy raises on purpose. Each message says what to do next.

A Python controller that raises is not in this list: its own exception is raised unchanged.
"""

from __future__ import annotations


class AckademyError(Exception):
    """Base of all: `except AckademyError` catches what the user can fix."""


class FileError(AckademyError):
    """A file cannot be read or written."""


class ScenarioError(AckademyError):
    """A scenario or trace file is wrong; one line names file, line, field, value and allowed."""


class ControllerError(AckademyError):
    """A controller is unknown, its file cannot be loaded, or a setting of it is out of range."""


class ExperimentError(AckademyError):
    """A paper's experiment file is wrong or cannot be found."""


class KernelError(AckademyError):
    """The program of the kernel backend is missing, fails, or prints what is not a result."""


class Ns3Error(AckademyError):
    """The program of the backend `ns3` is missing, fails, or prints what is not a result."""


class EngineError(AckademyError):
    """The cells cannot be run where they were asked to run."""


class TrainingError(AckademyError):
    """A setup is not understood, scikit-learn is missing, or there is nothing to learn from."""


class ExchangeError(AckademyError):
    """A policy cannot be written as an ONNX model, or a model cannot be represented as a policy."""
