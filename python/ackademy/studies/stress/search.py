"""Adversarial search: the networks on which a controller does worst, as small scenario files.

The search maximises the regret against the omniscient flow, or how much larger it is than that of
another scheme on the same network. It works in generations of a fixed size, so that its path does
not depend on the number of processes. What it finds is simplified: a value goes back to the plain
one as long as `KEPT` of the regret stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from ackademy.backends.schemes import Scheme
from ackademy.files import file_name
from ackademy.lazy import pl
from ackademy.runner import experiments
from ackademy.runner.cells import Cell
from ackademy.stats import omniscient
from ackademy.stats.intervals import t_interval
from ackademy.stats.metrics import metric_of
from ackademy.stats.omniscient import Behind
from ackademy.stats.results import Estimate, Name, Results, Value, finite, results
from ackademy.studies.stress.space import Family, Settings, Space

Method = Literal["evolution", "random"]
GENERATION = 32
"""networks that are drawn at once"""
PARENTS = 6
"""of a generation of the evolution strategy"""
IMMIGRANTS = 8
"""of each generation, drawn anew"""
STEP, STEP_MIN = 0.2, 0.02
"""first and smallest standard deviation of a change, in parts of a range"""
APART = 0.25
"""two networks of a family differ if one value does by this part of its range"""
KEPT = 0.9
"""part of the regret that a simpler network must have"""
HALVINGS = 3
"""steps from a value towards the plain one"""
SEED = 1
"""of the runs of the search, the default of `ackademy run`"""
SEEDS = (SEED, 2, 3, 4)
"""over which the value of a finding is a mean: one run alone may be bad luck"""
CONFIRMED = 0.5
"""part of a network's value in the search that its mean over `SEEDS` must have"""
CANDIDATES = 3
"""times the findings: networks that are run with all seeds"""
PER_FAMILY = 2
"""findings of one family at most"""
METRICS: Mapping[str, str] = {
    "regret": "regret",
    "fair_share": "fair_share",
    "rtt_over_ideal": "rtt_over_ideal",
    "loss": "loss_ratio",
}
"""of the results tables, and the fields of `Behind`"""
GAP = "regret_gap"


@dataclass(frozen=True, slots=True)
class Network:
    """A point of the search space."""

    family: Family
    settings: Settings


@dataclass(frozen=True, slots=True)
class Tried:
    """A network that was run."""

    network: Network
    runs: tuple[tuple[Behind, ...], ...]
    """per seed: the controller, and the scheme that it is compared with, if there is one"""

    @property
    def own(self) -> Behind:
        """The controller, with the first seed."""
        return self.runs[0][0]

    @property
    def other(self) -> Behind | None:
        """The scheme that it is compared with."""
        return self.runs[0][1] if len(self.runs[0]) > 1 else None

    @property
    def values(self) -> tuple[float, ...]:
        """What the search makes large, per seed."""
        return tuple(run[0].regret - sum(own.regret for own in run[1:]) for run in self.runs)

    @property
    def value(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)


@dataclass(frozen=True, slots=True)
class Finding:
    """A network on which the controller fails."""

    name: str
    tried: Tried
    """after it was simplified"""
    found: Tried
    """before"""


@dataclass(frozen=True, slots=True)
class Study:
    """What is to be searched."""

    scheme: Scheme
    against: Scheme | None
    space: Space
    seed: int
    budget: int
    """networks"""
    method: Method
    worst: int
    """findings that are kept"""

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """The one that is searched first."""
        return (self.scheme, self.against) if self.against else (self.scheme,)

    def cells(self, network: Network, folder: Path, seed: int = SEED) -> list[Cell]:
        """The runs of a network, one per scheme."""
        origin = str(folder / f"{file_name(network.family.name)}.toml")
        texts = [self.space.text(network.family, network.settings, own) for own in self.schemes]
        return [Cell(text=text, origin=origin, controller=None, seed=seed) for text in texts]

    def read(self, network: Network, folder: Path, seeds: Sequence[int] = (SEED,)) -> Tried:
        """A network whose runs are finished.

        Raises:
            ExperimentError: if they are not.
        """
        runs = []
        for seed in seeds:
            cells = self.cells(network, folder, seed)
            runs.append(tuple(self._behind(cell, folder) for cell in cells))
        return Tried(network, tuple(runs))

    def _behind(self, cell: Cell, folder: Path) -> Behind:
        flows = experiments.read(folder, cell, "summary")
        return omniscient.behind(cell.scenario(), flows, self.space.learners)


Evaluate: TypeAlias = Callable[[Sequence[Network]], list[Tried]]
"""runs networks, in any order, and returns them in theirs"""


@dataclass(frozen=True, slots=True)
class _Individual:
    """A network as the evolution strategy sees it."""

    family: int
    places: tuple[float, ...]
    """in [0, 1], one per dimension"""
    step: float = STEP


def search(study: Study, evaluate: Evaluate) -> Iterator[list[Tried]]:
    """One generation after the other, until the budget is spent.

    Args:
        study: what to search.
        evaluate: what runs a generation.

    Yields:
        A generation, in the order in which it was drawn.
    """
    rng = np.random.default_rng(study.seed)
    parents: list[tuple[_Individual, float]] = []
    left = study.budget
    while left > 0:
        own = _generation(study, parents, rng)[:left]
        tried = evaluate([_network(study.space, one) for one in own])
        left -= len(own)
        yield tried
        parents = _best(study.space, list(zip(own, (one.value for one in tried), strict=True)))


def worst(tried: Sequence[Tried], count: int, per_family: int | None = None) -> list[Tried]:
    """The networks with the largest values above 0, none of them close to a worse one.

    Args:
        tried: to choose from.
        count: how many at most.
        per_family: how many of one family at most; any number without it.
    """
    chosen: list[Tried] = []
    for one in sorted(tried, key=lambda own: -own.value):
        if len(chosen) == count or one.value <= 0.0:
            break
        family = [own for own in chosen if own.network.family.name == one.network.family.name]
        is_full = per_family is not None and len(family) >= per_family
        if not is_full and all(_differ(one.network, other.network) for other in family):
            chosen.append(one)
    return chosen


def confirmed(study: Study, tried: Sequence[Tried], evaluate: Evaluate) -> list[Tried]:
    """The worst networks of a search that are bad with other seeds, too.

    Args:
        study: what was searched.
        tried: every network, run with one seed.
        evaluate: what runs networks with all `SEEDS`.
    """
    candidates = worst(tried, CANDIDATES * study.worst, CANDIDATES * PER_FAMILY)
    again = evaluate([own.network for own in candidates])
    kept = [
        now
        for before, now in zip(candidates, again, strict=True)
        if now.value >= CONFIRMED * before.value
    ]
    return worst(kept, study.worst, PER_FAMILY)


def simplify(found: Sequence[Tried], evaluate: Evaluate) -> list[Tried]:
    """Each network with as many plain and round values as the failure allows.

    The networks are simplified side by side: each asks for one run at a time.
    """
    simplest = list(found)
    questions = [_simpler(own) for own in found]
    asked = [next(own, None) for own in questions]
    while any(own is not None for own in asked):
        waiting = [index for index, own in enumerate(asked) if own is not None]
        networks = [own for own in asked if own is not None]
        for index, answer in zip(waiting, evaluate(networks), strict=True):
            if answer.value >= KEPT * found[index].value:
                simplest[index] = answer
            try:
                asked[index] = questions[index].send(answer.value)
            except StopIteration:
                asked[index] = None
    return simplest


def steps_max(found: Sequence[Tried]) -> int:
    """The most runs that `simplify` may ask for."""
    return sum(len(own.network.settings) * (1 + HALVINGS + 2) for own in found)


def findings(study: Study, pairs: Sequence[tuple[Tried, Tried]]) -> list[Finding]:
    """Names for simplified networks and what they came from, the worst first, each once."""
    listed: list[Finding] = []
    seen: set[str] = set()
    counts: dict[str, int] = {}
    for simple, found in sorted(pairs, key=lambda own: -own[0].value):
        family = simple.network.family
        text = study.space.text(family, simple.network.settings, study.scheme)
        if text not in seen:
            seen.add(text)
            counts[family.name] = counts.get(family.name, 0) + 1
            listed.append(Finding(f"{family.name}-{counts[family.name]}", simple, found))
    return listed


def in_words(network: Network) -> str:
    """The values that are not plain, on one line."""
    pairs = zip(network.family.dimensions, network.settings, strict=True)
    changed = [
        f"{_short(dimension.path)} {_shown(value)}"
        for dimension, value in pairs
        if value is not None
    ]
    return ", ".join(changed) or "nothing"


def tables(study: Study, found: Sequence[Finding]) -> Results:
    """The two tables: a scenario per finding, a run per seed."""
    values, estimates = [], []
    for own in found:
        for index, scheme in enumerate(study.schemes):
            name = Name(own.name, scheme.label, own.tried.network.family.name)
            numbers = [
                (seed, _numbers(run[index], gap if study.against and index == 0 else None))
                for seed, run, gap in zip(SEEDS, own.tried.runs, own.tried.values, strict=True)
            ]
            values += [Value(name, seed, key, v) for seed, row in numbers for key, v in row.items()]
            for key in numbers[0][1]:
                column = np.array([row[key] for _, row in numbers])
                statistic = metric_of(key).statistic_name
                interval = t_interval(column)
                estimates.append(Estimate(name, key, statistic, interval, column.size))
    return results("stress", values, estimates)


def csv(tried: Sequence[Tried]) -> str:
    """A row per network that the search ran, in its order."""
    paths = dict.fromkeys(d.path for own in tried for d in own.network.family.dimensions)
    rows = []
    for number, own in enumerate(tried):
        pairs = zip(own.network.family.dimensions, own.network.settings, strict=True)
        settings = {dimension.path: _shown(value) for dimension, value in pairs}
        rows.append(
            {"network": number + 1, "family": own.network.family.name, "value": own.value}
            | {key: float(getattr(own.own, field)) for key, field in METRICS.items()}
            | {path: settings.get(path, "") for path in paths}
        )
    return finite(pl.DataFrame(rows)).write_csv(float_precision=6)


def _numbers(own: Behind, gap: float | None) -> dict[str, float]:
    numbers = {key: float(getattr(own, field)) for key, field in METRICS.items()}
    return numbers | ({} if gap is None else {GAP: gap})


def _network(space: Space, own: _Individual) -> Network:
    family = space.families[own.family]
    return Network(family, family.settings(own.places))


def _generation(
    study: Study, parents: Sequence[tuple[_Individual, float]], rng: np.random.Generator
) -> list[_Individual]:
    """The next networks: children of the parents and newly drawn ones, or all newly drawn."""
    if study.method == "random" or not parents:
        return [_drawn(study.space, rng) for _ in range(GENERATION)]
    children = [
        _child(study.space, parents[index % len(parents)][0], rng)
        for index in range(GENERATION - IMMIGRANTS)
    ]
    return children + [_drawn(study.space, rng) for _ in range(IMMIGRANTS)]


def _drawn(space: Space, rng: np.random.Generator) -> _Individual:
    weights = np.array([family.weight for family in space.families])
    family = int(rng.choice(len(space.families), p=weights / weights.sum()))
    return _Individual(family, tuple(rng.random(len(space.families[family].dimensions)).tolist()))


def _child(space: Space, parent: _Individual, rng: np.random.Generator) -> _Individual:
    """A changed copy: normal steps whose size is inherited with a change (Beyer and Schwefel 2002).

    A value without an order is drawn again with probability one over the number of dimensions.
    """
    dimensions = space.families[parent.family].dimensions
    n = max(len(dimensions), 1)
    step = max(STEP_MIN, parent.step * math.exp(float(rng.standard_normal()) / math.sqrt(2.0 * n)))
    places = []
    for dimension, place in zip(dimensions, parent.places, strict=True):
        changed = place + step * float(rng.standard_normal())
        drawn, decides = float(rng.random()), float(rng.random())
        if dimension.is_choice:
            places.append(drawn if decides < 1.0 / n else place)
        else:
            places.append(min(abs(changed), 1.0) if changed < 1.0 else max(2.0 - changed, 0.0))
    return _Individual(parent.family, tuple(places), min(step, 1.0))


def _best(space: Space, ranked: list[tuple[_Individual, float]]) -> list[tuple[_Individual, float]]:
    """The parents of the next generation: the best ones that differ."""
    chosen: list[tuple[_Individual, float]] = []
    for own in sorted(ranked, key=lambda pair: -pair[1]):
        others = [_network(space, other) for other, _ in chosen]
        if all(_differ(_network(space, own[0]), other) for other in others):
            chosen.append(own)
        if len(chosen) == PARENTS:
            break
    return chosen


def _differ(one: Network, other: Network) -> bool:
    """Whether two networks are of different families, or a value is far from the other's."""
    if one.family.name != other.family.name:
        return True
    for dimension, a, b in zip(one.family.dimensions, one.settings, other.settings, strict=True):
        first, second = dimension.place(a), dimension.place(b)
        if first is None or second is None:
            if a != b:
                return True
        elif abs(first - second) >= APART:
            return True
    return False


def _simpler(found: Tried) -> Generator[Network, float, None]:
    """Asks for simpler networks one after the other; is sent the value of each.

    First each value goes back to the plain one. A number that cannot goes half the way, several
    times. What is left becomes round.
    """
    here = found.network
    needed = KEPT * found.value

    def changed(index: int, value: object) -> Network:
        settings = [*here.settings[:index], value, *here.settings[index + 1 :]]
        return replace(here, settings=tuple(settings))  # type: ignore[arg-type]

    for index in range(len(here.settings)):
        without = changed(index, None)
        if here.family.accepts(without.settings) and (yield without) >= needed:
            here = without
    for index, dimension in enumerate(here.family.dimensions):
        for _ in range(HALVINGS):
            own = dimension.place(here.settings[index])
            plain = dimension.place(here.family.plain_value(dimension))
            if own is None or plain is None:
                break
            nearer = changed(index, dimension.value((own + plain) / 2.0))
            if nearer == here or (yield nearer) < needed:
                break
            here = nearer
    for index, dimension in enumerate(here.family.dimensions):
        own_value = here.settings[index]
        if isinstance(own_value, float) and dimension.place(own_value) is not None:
            for digits in (1, 2):
                rounder = changed(index, dimension.rounded(own_value, digits))
                if rounder == here:
                    break
                if (yield rounder) >= needed:
                    here = rounder
                    break


def _short(path: str) -> str:
    """A path without what all of them begin with."""
    return path.removeprefix("dumbbell.").removeprefix("bottleneck.").removeprefix("queue.")


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(str(own) for own in value.values())
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
