"""The search space of `ackademy stress`: a distribution of scenarios whose draws are dimensions.

A scenario of the distribution is a family of networks. What it says itself is plain; a draw says
how far the search may go from there. The text of a network has the controller in it, so that the
file that is kept is what was run.
"""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ackademy import _core, lookup
from ackademy.backends import controllers, distributions, entries, schemes
from ackademy.backends.runs import read_text
from ackademy.errors import ScenarioError
from ackademy.stats import omniscient
from ackademy.toml_table import toml_value

Setting: TypeAlias = "float | int | str | bool | list[Any] | dict[str, Any] | None"
"""a value of a dimension; `None` leaves what the scenario says itself"""
Settings: TypeAlias = tuple[Setting, ...]
"""one per dimension of a family"""
DIGITS = 3
"""significant digits of a number that the search tries"""
RANGES = ("uniform", "log_uniform", "integer", "log_integer")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A field that the search may change, as a draw of the distribution says."""

    paths: tuple[str, ...]
    """dotted; all get the same value"""
    kind: str
    """of `RANGES`, or `choice`"""
    low: float = 0.0
    high: float = 1.0
    options: tuple[Any, ...] = ()
    """of a choice"""

    @property
    def path(self) -> str:
        """The first."""
        return self.paths[0]

    @property
    def is_choice(self) -> bool:
        """Whether its values have no order."""
        return self.kind == "choice"

    def value(self, place: float) -> Setting:
        """The value at a place of [0, 1]."""
        if self.is_choice:
            chosen: Setting = self.options[
                min(int(place * len(self.options)), len(self.options) - 1)
            ]
            return chosen
        width = 1.0 if self.kind.endswith("integer") else 0.0
        if self.kind.startswith("log"):
            ends = math.log(self.low), math.log(self.high + width)
            found = math.exp(ends[0] + place * (ends[1] - ends[0]))
        else:
            found = self.low + place * (self.high + width - self.low)
        if width:
            return min(max(math.floor(found), int(self.low)), int(self.high))
        return self.rounded(found, DIGITS)

    def place(self, value: Setting) -> float | None:
        """Where a value lies in [0, 1]; `None` for what has no order or is outside."""
        if self.is_choice or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not self.low <= value <= self.high or self.low == self.high:
            return None
        if self.kind.startswith("log"):
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def rounded(self, value: float, digits: int) -> float:
        """A number with so many significant digits, inside the range."""
        return min(max(float(f"{value:.{digits}g}"), float(self.low)), float(self.high))


@dataclass(frozen=True, slots=True)
class Family:
    """Networks of one kind."""

    name: str
    weight: float
    plain: Mapping[str, Any]
    """the scenario as it is without its draws"""
    dimensions: tuple[Dimension, ...]

    def fields(self, settings: Settings) -> dict[str, Any]:
        """The scenario with these values.

        Raises:
            ScenarioError: if a path leads nowhere.
        """
        found: dict[str, Any] = copy.deepcopy(dict(self.plain))
        for dimension, value in zip(self.dimensions, settings, strict=True):
            for path in dimension.paths if value is not None else ():
                _put(found, path, copy.deepcopy(value))
        return found

    def accepts(self, settings: Settings) -> bool:
        """Whether these values make a scenario: a field that is only drawn cannot be left out."""
        try:
            _core.Scenario.parse(document(self.fields(settings)), self.name, {})
        except ScenarioError:
            return False
        return True

    def settings(self, places: Sequence[float]) -> Settings:
        """The values at places of the unit cube."""
        pairs = zip(self.dimensions, places, strict=True)
        return tuple(dimension.value(place) for dimension, place in pairs)

    def plain_value(self, dimension: Dimension) -> Setting:
        """What the scenario says itself; `None` if it says nothing."""
        return _get(self.plain, dimension.path)


@dataclass(frozen=True, slots=True)
class Space:
    """All families."""

    origin: str
    digest: str
    about: str
    learners: tuple[str, ...]
    """patterns of the flows that the controller governs"""
    families: tuple[Family, ...]

    def text(self, family: Family, settings: Settings, own: schemes.Scheme) -> str:
        """The scenario file of a network, with a scheme in its place.

        Raises:
            ScenarioError: if a path leads nowhere.
        """
        fields = family.fields(settings)
        for flow in fields["flow"]:
            if entries.fits(self.learners, flow["name"]):
                flow["controller"] = _absolute(str(own.controller))
                if own.params:
                    flow["params"] = {name: _setting(name, value) for name, value in own.params}
        return document(fields)


def read(path: Path | str) -> Space:
    """The space of a distribution's file or name.

    Raises:
        ScenarioError: if the file is wrong, or the omniscient flow of a scenario is not known.
    """
    checked = distributions.read(path)
    origin = str(lookup.find(path, "distribution", ScenarioError))
    described = tomllib.loads(read_text(Path(origin)))
    common = described.get("draw", {})
    families = []
    pairs = zip(described["scenario"], checked.names, checked.weights(1.0), strict=True)
    for entry, name, weight in pairs:
        family = _family(origin, (entry, common), name, weight)
        if family.weight > 0.0:
            _check(origin, family)
            families.append(family)
    digest, about = checked.digest, " ".join(checked.about.split())
    return Space(origin, str(digest), about, tuple(checked.learners), tuple(families))


def document(fields: Mapping[str, Any]) -> str:
    """Fields of a scenario as the text of a file that is pleasant to read."""
    lines = _lines({key: value for key, value in fields.items() if _is_short(value)})
    for key, value in fields.items():
        if isinstance(value, Mapping):
            lines += _section(key, value)
        elif not _is_short(value):
            lines += [line for own in value for line in ("", f"[[{key}]]", *_lines(own))]
    return "\n".join(lines) + "\n"


def _section(name: str, table: Mapping[str, Any]) -> list[str]:
    """A table, and its deeper tables below it."""
    deep = {key: value for key, value in table.items() if _has_tables(value)}
    own = {key: value for key, value in table.items() if key not in deep}
    lines = ["", f"[{name}]", *_lines(own)]
    return lines + [line for key, sub in deep.items() for line in _section(f"{name}.{key}", sub)]


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_inline(value)}" for key, value in table.items()]


def _inline(value: object) -> str:
    """A value on one line, keys without quotes."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return toml_value(value)


def _has_tables(value: object) -> bool:
    return isinstance(value, Mapping) and any(isinstance(own, Mapping) for own in value.values())


def _is_short(value: object) -> bool:
    """Whether it stands on one line at the top of a file."""
    is_tables = isinstance(value, list) and any(isinstance(own, Mapping) for own in value)
    return not isinstance(value, Mapping) and not is_tables


def _family(
    origin: str, described: tuple[Mapping[str, Any], Mapping[str, Any]], name: str, weight: float
) -> Family:
    """A family from its entry and the common draws."""
    entry, common = described
    if "file" in entry:
        plain = tomllib.loads(read_text(Path(origin).parent / entry["file"]))
    else:
        plain = copy.deepcopy(entry["inline"])
    dimensions = []
    for path, draw in {**common, **entry.get("draw", {})}.items():
        paths = (path, *draw.get("also", ()))
        if "constant" in draw:
            for own in paths:
                _put(plain, own, draw["constant"])
        elif "choice" in draw:
            dimensions.append(Dimension(paths, "choice", options=tuple(draw["choice"])))
        elif kind := next((kind for kind in RANGES if kind in draw), ""):
            low, high = draw[kind]
            dimensions.append(Dimension(paths, kind, low, high))
        else:
            where = f'{origin}: draw."{path}"'
            raise ScenarioError(f"{where}: allowed: {', '.join(RANGES)}, choice, constant")
    return Family(name, weight, plain, tuple(dimensions))


def _check(origin: str, family: Family) -> None:
    """Refuse a family whose omniscient flow is not known, before anything runs."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        settings = family.settings(rng.random(len(family.dimensions)).tolist())
        text = document(family.fields(settings))
        omniscient.check(_core.Scenario.parse(text, f"{origin}: {family.name}", {}))


def _put(table: dict[str, Any], path: str, value: object) -> None:
    """Set the value at a dotted path; missing tables are made, as by an override."""
    here: Any = table
    *parents, last = path.split(".")
    for step in parents:
        here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
    if isinstance(here, list):
        here[int(last)] = value
    else:
        here[last] = value


def _get(table: Mapping[str, Any], path: str) -> Setting:
    here: Any = table
    for step in path.split("."):
        if isinstance(here, list):
            here = here[int(step)]
        else:
            here = here.get(step) if isinstance(here, Mapping) else None
    found: Setting = here
    return found


def _absolute(controller: str) -> str:
    """A Python controller's file by its absolute path: a kept file may lie anywhere."""
    if not controllers.is_python(controller):
        return controller
    file, _, name = controller.rpartition(":")
    return f"{Path(file).expanduser().resolve()}:{name}"


def _setting(name: str, value: float | str) -> float | str:
    """A setting that names a file, by its absolute path."""
    if isinstance(value, str) and Path(value).exists() and name == "policy":
        return str(Path(value).resolve())
    return value
