"""The networks of a part: every combination of its axes, thinned without chance.

Networks are taken one after the other, such that at any time every value of every axis has been
used about equally often. Ties go by a hash of the part's name and the network's. So the first
networks are a sample as even as all of them, and a quick card runs a part of the full one.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ackademy import lookup
from ackademy.backends.entries import fits
from ackademy.errors import ExperimentError
from ackademy.studies.scorecard.card import Limits, Part, Variant
from ackademy.toml_table import toml_value

CONTROLLER = "victim"
"""the axis whose values are controllers: those that are not registered are left out"""
PACKET_BITS = 12_000
DURATION_MIN_S = 1.0
BOUND = ("rate_mbps", "rtt_ms")
"""placeholders that a duration may depend on"""


@dataclass(frozen=True, slots=True)
class Network:
    """One combination of values."""

    part: str
    label: str
    values: Mapping[str, object]
    """by placeholder"""
    axes: Mapping[str, object]
    """by axis: the value, or the name of a table of values"""
    duration_s: float

    def number(self, name: str) -> float:
        """A value that is a number; `nan` if there is none of this name."""
        value = self.values.get(name)
        return float(value) if isinstance(value, int | float) else math.nan


def networks(part: Part, limits: Limits) -> list[Network]:
    """The networks of a part, the first ones of its thinned grid.

    Raises:
        ExperimentError: if a number of one is too large.
    """
    count = min(part.n_networks, max(limits.networks, part.n_networks_min))
    found = thinned(part.name, _points(part), count)
    try:
        return [_network(part, point, limits) for point in found]
    except OverflowError as error:
        raise ExperimentError(f"{part.where}: axes, values: {error}") from error


def absent(part: Part) -> list[str]:
    """Controllers beside the tested one that the part names and that are not registered."""
    known = lookup.controllers()
    named = part.axes.get(CONTROLLER, ())
    return [str(own) for own in named if isinstance(own, str) and own not in known]


def thinned(
    seed: str, points: Sequence[Mapping[str, object]], count: int
) -> list[Mapping[str, object]]:
    """So many of the points, every value about equally often; the first do not depend on `count`.

    Args:
        seed: what the order of equally good points depends on.
        points: each with a value per axis.
        count: how many; all if there are fewer.
    """
    ordered = sorted(points, key=lambda point: _digest(seed, point))
    used: Counter[tuple[str, str]] = Counter()
    n_values = Counter(axis for axis, _ in {item for point in points for item in _items(point)})
    found: list[Mapping[str, object]] = []
    while ordered and len(found) < count:
        best = min(ordered, key=lambda own: sum(used[i] * n_values[i[0]] for i in _items(own)))
        ordered.remove(best)
        used.update(_items(best))
        found.append(best)
    return found


def text(part: Part, network: Network, variant: Variant) -> str:
    """The scenario file of a run.

    Raises:
        ExperimentError: if a placeholder has no value, or no flow is left.
    """
    more = variant.values or {}
    own = {name: _filled(value, network.values, part.where) for name, value in more.items()}
    values = {**network.values, **own}
    values.setdefault("duration_s", network.duration_s)
    filled = _filled(part.scenario, values, part.where)
    if not isinstance(filled, dict):
        raise ExperimentError(f"{part.where}: scenario: allowed: a table")
    filled.setdefault("duration_s", values["duration_s"])
    flows = filled.get("flow", [])
    if not isinstance(flows, list):
        allowed = "a list of tables"
        raise ExperimentError(f"{part.where}: scenario: flow = {flows!r}: allowed: {allowed}")
    filled["flow"] = [flow for flow in flows if _stays(flow, variant)]
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in filled.items())


def _points(part: Part) -> list[Mapping[str, object]]:
    missing = absent(part)
    axes = {
        axis: [value for value in values if axis != CONTROLLER or value not in missing]
        for axis, values in part.axes.items()
    }
    return [
        dict(zip(axes, combination, strict=True))
        for combination in itertools.product(*axes.values())
    ]


def _network(part: Part, point: Mapping[str, object], limits: Limits) -> Network:
    values: dict[str, object] = dict(part.values)
    for axis, value in point.items():
        if isinstance(value, dict):
            values.update(value)
        values.setdefault(axis, _shown(value))
    label = ", ".join(f"{axis} {_shown(value)}" for axis, value in point.items())
    return Network(
        part=part.name,
        label=label or part.name,
        values=values,
        axes={axis: _shown(value) for axis, value in point.items()},
        duration_s=_duration(part, values, limits),
    )


def _duration(part: Part, values: Mapping[str, object], limits: Limits) -> float:
    """Seconds of a run: enough packets and round trips, within the maximum."""
    own = values.get("duration_s", part.duration_s)
    whole = float(own) if isinstance(own, int | float) else part.duration_s
    if part.packets == 0.0:
        return whole  # its events have times
    rate, rtt = (values.get(name) for name in BOUND)
    wanted = DURATION_MIN_S
    if isinstance(rate, int | float) and rate > 0.0:
        wanted = max(wanted, part.packets * PACKET_BITS / (rate * 1e6))
    if isinstance(rtt, int | float):
        wanted = max(wanted, part.rtts * rtt / 1e3)
    return round(min(whole, limits.duration_s, wanted), 1)


def _shown(value: object) -> object:
    """What a value is called: a table's own name, everything else itself."""
    return value.get("name", "") if isinstance(value, dict) else value


def _items(point: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(axis, str(_shown(value))) for axis, value in point.items()]


def _digest(seed: str, point: Mapping[str, object]) -> str:
    return hashlib.sha256(repr((seed, _items(point))).encode()).hexdigest()


def _filled(template: object, values: Mapping[str, object], where: str) -> object:
    """The template with `$name` replaced by the value of that name."""
    if isinstance(template, dict):
        return {key: _filled(value, values, where) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values, where) for value in template]
    if isinstance(template, str) and template.startswith("$"):
        return _value(template, values, where)
    return template


def _value(words: str, values: Mapping[str, object], where: str) -> object:
    """What `$name` stands for, or a product such as `$part * $rate_mbps / 8`, left to right."""
    first, *rest = words.split()
    if len(rest) % 2:
        raise ExperimentError(f"{where}: scenario: {words}: allowed: $name, then * or / and more")
    found = _operand(first, values, where)
    for operator, word in zip(rest[::2], rest[1::2], strict=True):
        other = _operand(word, values, where)
        if not isinstance(found, int | float) or not isinstance(other, int | float):
            raise ExperimentError(f"{where}: scenario: {words}: allowed: numbers")
        if operator not in ("*", "/"):
            raise ExperimentError(f"{where}: scenario: {words}: {operator}: allowed: *, /")
        try:
            found = found * other if operator == "*" else found / other
        except (ZeroDivisionError, OverflowError) as error:
            raise ExperimentError(f"{where}: scenario: {words}: {error}") from error
    return found


def _operand(word: str, values: Mapping[str, object], where: str) -> object:
    if not word.startswith("$"):
        try:
            return float(word)
        except ValueError:
            raise ExperimentError(f"{where}: scenario: {word}: allowed: a number, $name") from None
    if word[1:] not in values:
        allowed = ", ".join(f"${name}" for name in values)
        raise ExperimentError(f"{where}: scenario: {word}: allowed: {allowed}")
    return values[word[1:]]


def _stays(flow: object, variant: Variant) -> bool:
    name = str(flow.get("name", "")) if isinstance(flow, dict) else ""
    left_out = variant.without and fits([variant.without], name)
    return not left_out and (not variant.only or fits([variant.only], name))
