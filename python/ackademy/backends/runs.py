"""Scenarios of a file, a name, a text or a mapping, and their simulation."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from ackademy import _core, files, folders, lookup
from ackademy.backends import Backend, controllers, guests, ns3, schemes
from ackademy.backends.captures import NO_CAPTURES, Captures
from ackademy.backends.tables import Tables
from ackademy.errors import ControllerError, ScenarioError
from ackademy.toml_table import toml_value

Params = Mapping[str, float | str]
Progress: TypeAlias = Callable[[float], object]
"""called with the simulated seconds of a run so far"""
NO_PARAMS: Params = {}
NO_OVERRIDES: Mapping[str, str] = {}
ScenarioLike: TypeAlias = "Path | str | Mapping[str, object] | _core.Scenario"
"""a file, a name, a text, the fields of a file, or a parsed scenario"""


def simulate(
    scenario: _core.Scenario,
    seed: int,
    sample_interval_ms: float,
    progress: Progress | None = None,
    captures: Captures = NO_CAPTURES,
    backend: Backend = "sim",
) -> Tables:
    """Run a parsed scenario in virtual time, its Python controllers loaded from their files.

    Raises:
        ScenarioError: if the backend cannot do what the scenario asks for.
        FileError: if a file of `captures` cannot be written.
    """
    if backend == "quic":
        with captures.opened() as files_of:
            tables = _core.run_quic(
                scenario,
                seed,
                sample_interval_ms=sample_interval_ms,
                progress=progress,
                qlog=files_of.get("qlog"),
            )
        return Tables.from_core(tables)
    if backend == "ns3":
        return ns3.simulate(scenario, seed, sample_interval_ms)
    beside = Path(scenario.origin).parent
    classes = {name: controllers.load(name, beside) for name in python_controllers(scenario)}
    with captures.opened() as files_of:
        tables = _core.simulate(
            scenario,
            seed,
            sample_interval_ms=sample_interval_ms,
            python_controllers=classes or None,
            guests=guests.libraries(scenario.controllers),
            progress=progress,
            **files_of,
        )
    return Tables.from_core(tables)


def read_scenario(
    scenario: ScenarioLike,
    *,
    cc: str | _core.ControllerClass | None = None,
    params: Params = NO_PARAMS,
    overrides: Mapping[str, str] = NO_OVERRIDES,
) -> _core.Scenario:
    """Parse a scenario, if it is not parsed yet, and put its flows under `cc`, if one is given.

    Args:
        scenario: as for `run`.
        cc: as for `run`.
        params: settings of `cc`.
        overrides: TOML values by dotted path; not for a parsed scenario.

    Raises:
        ScenarioError: if the file cannot be read or is wrong.
        ControllerError: if the controller is unknown or its settings are wrong, or if there are
            settings without a controller.
    """
    if isinstance(scenario, _core.Scenario):
        if overrides:
            raise ScenarioError("overrides: allowed: for a scenario that is not parsed yet")
        parsed = scenario
    else:
        text, origin = text_of(scenario)
        found = {**named_policies(text, origin), **overrides}
        parsed = _core.Scenario.parse(text, origin, found)
    if cc is None:
        if params:
            names = ", ".join(params)
            raise ControllerError(f"params: {names}: allowed: beside cc, whose settings they are")
        return parsed
    scheme = schemes.of_words([(cc, params)])[0]
    return parsed.with_controller(str(scheme.controller), dict(scheme.params))


def check_runnable(scenario: _core.Scenario, backend: Backend) -> None:
    """Refuse a scenario that a backend cannot run, as far as that is known before the run.

    Raises:
        ControllerError: for a controller.
        ScenarioError: for anything else.
    """
    controllers.check(scenario.controllers, backend)
    if backend in ("quic", "quic-lab"):
        _core.check_quic(scenario)
    if backend == "ns3":
        _core.check_ns3(scenario)


def text_of(scenario: Path | str | Mapping[str, object]) -> tuple[str, str]:
    """TOML and origin of a scenario that is a file, a name, a text or a mapping of its fields.

    Raises:
        ScenarioError: if it cannot be read.
    """
    if isinstance(scenario, Mapping):
        lines = [f"{toml_value(k)} = {toml_value(v, str(k))}" for k, v in scenario.items()]
        return "\n".join([*lines, ""]), "scenario"
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, "scenario"
    if not isinstance(scenario, str | Path):
        name, allowed = type(scenario).__name__, "a file, a name, a text, a mapping, a Scenario"
        raise ScenarioError(f"scenario of type {name}: allowed: {allowed}")
    path = lookup.find(scenario, "scenario", ScenarioError)
    return read_text(path), str(path)


def named_policies(text: str, origin: str) -> dict[str, str]:
    """Overrides for policies of flows that a scenario calls by name and that lie not beside it."""
    try:
        flows = tomllib.loads(text).get("flow", []) if "policy" in text else []
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}  # the parser says what is wrong
    found = {}
    for index, flow in enumerate(flows if isinstance(flows, list) else []):
        params = flow.get("params") if isinstance(flow, dict) else None
        word = params.get("policy") if isinstance(params, dict) else None
        if isinstance(word, str) and not folders.exists(Path(origin).parent / word):
            path = lookup.policy_path(word)
            if path is not None:
                found[f"flow.{index}.params.policy"] = toml_value(str(path.absolute()))
    return found


def read_text(path: Path) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: if it cannot be read, is not a regular file, is too large or is not text.
    """
    return files.read_text(path, error=ScenarioError)


def python_controllers(scenario: _core.Scenario) -> list[str]:
    """The `file.py:Class` controllers among a scenario's, each once, in order."""
    return sorted({name for name in scenario.controllers if controllers.is_python(name)})
