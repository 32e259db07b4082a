"""Entries of the benchmark, and the networks that follow from them.

The seed of an entry's networks is SHA-256 over the benchmark's version and the entry's digest. So
an entry cannot be tuned to the networks that it meets: whatever changes it, changes them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ackademy import _core
from ackademy.backends import controllers, distributions
from ackademy.backends.schemes import Scheme, differ, parse
from ackademy.errors import ControllerError
from ackademy.runner import cases
from ackademy.runner.cases import Case

VERSION = "1"
"""of the networks, the rivals and the numbers"""
DISTRIBUTION = "benchmark"
DEVELOPMENT = "development"
"""in place of an entry's digest: networks for tuning, the same for all"""
RIVALS = ("cubic", "bbr3", "copa", "vegas", "own_queue")
"""run beside every entry, on its networks; the first is the reference"""
NETWORKS, NETWORKS_QUICK = 32, 2
"""of each kind"""
LEARNERS = ("own*",)
"""patterns of the flows that the entry governs"""
ONE_FLOW = """\
duration_s = 1
[dumbbell]
rtt_ms = 10
bottleneck = { rate_mbps = 1 }
[[flow]]
name = "own"
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is benchmarked."""

    scheme: Scheme
    digest: str
    """SHA-256 of what decides: 64 hexadecimal digits"""
    is_quick: bool = False
    is_development: bool = False

    @property
    def name(self) -> str:
        """In tables: without the folders of a path."""
        return Path(self.scheme.label).name if "/" in self.scheme.label else self.scheme.label

    @property
    def marks(self) -> tuple[str, ...]:
        """What a result says beside its name: `quick`, `development`."""
        told = {"quick": self.is_quick, DEVELOPMENT: self.is_development}
        return tuple(word for word, is_so in told.items() if is_so)

    @property
    def stream(self) -> str:
        """Name of the stream of seeds that its networks are drawn with."""
        return f"benchmark {VERSION} {DEVELOPMENT if self.is_development else self.digest}"

    @property
    def schemes(self) -> list[Scheme]:
        """The entry, and the rivals that it is not itself."""
        rivals = [own for own in parse(",".join(RIVALS)) if own.label != self.scheme.label]
        return differ([self.scheme, *rivals])


def entry(scheme: Scheme, *, is_quick: bool = False, is_development: bool = False) -> Entry:
    """The entry of a scheme.

    Raises:
        ControllerError: if it does not run in the simulator, or has no content to digest.
    """
    name = scheme.controller
    if name is None or "sim" not in (controllers.own_of(name) or ("sim",)):
        allowed = "a policy's folder, file.py:Class, or a controller of `ackademy list`"
        raise ControllerError(f"benchmark {scheme.label}: allowed: {allowed}")
    if controllers.is_registered(name):
        raise ControllerError(f"benchmark {scheme.label}: allowed: a class in a file")
    return Entry(scheme, _digest(name, scheme), is_quick, is_development)


def drawn(own: Entry, folder: Path) -> list[Case]:
    """The networks of an entry, the same number of each kind; the first ones are a quick run's.

    Args:
        own: the entry.
        folder: where traces that they need are put.
    """
    distribution = distributions.read(DISTRIBUTION)
    wanted = NETWORKS_QUICK if own.is_quick else NETWORKS
    found: list[Case] = []
    tries = 4 * wanted * len(distribution.names)
    while len(found) < wanted * len(distribution.names):
        found = _first(distribution, own.stream, tries, wanted, folder)
        tries *= 2
    return sorted(found, key=lambda case: distribution.names.index(case.group))


@cache
def classes() -> dict[str, str]:
    """The panel of every kind of networks, in the order of the distribution's file."""
    distribution = distributions.read(DISTRIBUTION)
    panels = (distribution.classes[place] for place in distribution.class_of_each)
    return dict(zip(distribution.names, panels, strict=True))


def networks_digest(found: Sequence[Case]) -> str:
    """SHA-256 over the networks and the seeds of their runs: 64 hexadecimal digits."""
    whole = hashlib.sha256()
    for case in found:
        whole.update(f"{case.name}\n{case.seed}\n{case.scenario.canonical()}\n".encode())
    return whole.hexdigest()


def _first(
    distribution: _core.Distribution, stream: str, tries: int, wanted: int, folder: Path
) -> list[Case]:
    """Draws of a stream, as many of each kind, in the stream's order."""
    counts: Counter[str] = Counter()
    found = []
    for seed in distributions.stream_seeds(stream, tries):
        scenario = distribution.draw(seed, 1.0)
        kind = scenario.name.rpartition("-")[0]
        if counts[kind] < wanted:
            counts[kind] += 1
            found.append(cases.of_scenario(scenario, folder, LEARNERS, seed, kind))
    return found


def _digest(name: str, scheme: Scheme) -> str:
    """Of what decides: the file of a class or a guest; else settings, files, the core's code."""
    content = controllers.fingerprint(name, Path())
    if content:
        parts = [name.rpartition(":")[2], content]
    else:
        flow = _core.Scenario.parse(ONE_FLOW, "benchmark")
        parts = [flow.with_controller(name, dict(scheme.params)).canonical(), _core.CODE_HASH]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
