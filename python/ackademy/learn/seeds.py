"""Trains one recipe with several seeds and judges some policies of each, to choose one of all.

Every seed, every policy and every judgement is kept as soon as it is there: the same call goes on
where a killed one stopped, at the last checkpoint of a training.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from ackademy import files, lookup
from ackademy.backends import link_lists, overlap
from ackademy.backends.link_lists import Link
from ackademy.errors import TrainingError
from ackademy.learn import deep, networks, recipe_source, selection
from ackademy.learn.deep import Opener, TrainingResult
from ackademy.learn.deep_recipe import Recipe
from ackademy.learn.recipe_toml import Changes, load, only, table, text, whole
from ackademy.learn.rollouts import Watch, sizes_of
from ackademy.learn.running_reward import RunningReward
from ackademy.learn.selection import Judge, Judgement, Progress
from ackademy.learn.trained import Snapshot

Stage: TypeAlias = Callable[[str], Progress]
"""begins a stage of this name, which then tells how far it is"""
SNAPSHOTS = 3
"""policies of a seed that are judged"""
STOP_AFTER = 3_000_000
"""decisions after which a training that is below own_queue alone is stopped"""
STATE = "trained.json"
KEPT = (
    "decisions", "episodes", "updates", "packets", "wall_s", "cpu_s", "is_stopped", "ranges",
)  # fmt: skip
"""of a training's result, in its file"""


@dataclass(frozen=True, slots=True)
class Row:
    """A policy and what it gets."""

    seed: int | None
    """`None`: weights of zeros, which answer nothing but zeros"""
    decisions: int
    """of its training, before it was taken"""
    is_stopped: bool
    """whether its training was stopped"""
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Seeds:
    """All trainings, and what was chosen among them."""

    rows: tuple[Row, ...]
    """the zeros first, then seed by seed, oldest policies first"""
    trained: Mapping[int, TrainingResult]
    """by seed"""
    winner: TrainingResult
    """with the weights of the best row"""
    best: Row
    """that is judged best, of all or of the seed that was to be taken"""

    @property
    def zeros(self) -> Row:
        """What weights of zeros get: of the map `own_queue` the rules alone."""
        return self.rows[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many trainings, and when one is given up."""

    seeds: int
    """trainings; their seeds follow on the recipe's"""
    stop_after: int = STOP_AFTER
    """decisions; 0: none is stopped"""
    snapshots: int = SNAPSHOTS
    choose: int | None = None
    """the seed whose best policy is taken; `None`: that of all seeds"""


SELECTION_KEYS = ("seeds", "stop_after", "networks", "count", "choose")


def plan(path: Path, recipe: Recipe, changes: Changes) -> tuple[Plan, tuple[Link, ...]]:
    """What the table `selection` of a recipe's file says: the plan, and the networks to judge on.

    Raises:
        AckademyError: if a field is not allowed, or there is no such list.
    """
    own = {name: value for name, value in changes.items() if name.startswith("selection.")}
    found = table(load(path, own), "selection", path)
    where = f"{path}: selection"
    only(found, SELECTION_KEYS, where)
    seeds = whole(found.get("seeds", 1), "seeds", 1, where, 1000)
    choose = found.get("choose")
    if choose is not None:
        choose = whole(choose, "choose", recipe.seed, where, recipe.seed + seeds - 1)
    named = text(found, "networks", where)
    beside = path.parent / named
    file = beside if beside.is_file() else lookup.find(named, "list", TrainingError)
    links = link_lists.read(file).links
    if count := whole(found.get("count", 0), "count", 0, where):
        links = selection.thinned(links, count)
    stop_after = whole(found.get("stop_after", STOP_AFTER), "stop_after", 0, where, 2**63 - 1)
    return Plan(seeds, stop_after, choose=choose), tuple(links)


def judge_of(recipe: Recipe, links: Sequence[Link], threads: int, work: Path) -> Judge:
    """Judges the policies of a recipe on these networks.

    Raises:
        AckademyError: as `Judge`, or if what the recipe trains on cannot be read, or is a network
            of the list.
    """
    source = recipe_source.read(recipe)
    if both := overlap.shared((link.scenario for link in links), source):
        where = f"{recipe.origin}: selection.networks: {both[0]} is trained on, too"
        raise TrainingError(f"{where}: allowed: networks that no training draws")
    learners = deep.patterns(source, recipe)
    return Judge(recipe, learners, links, threads, work / "judged")


def train(
    recipe: Recipe, plan: Plan, make: Opener, judge: Judge, work: Path, stage: Stage
) -> Seeds:
    """Train with several seeds and choose the policy that is judged best, of all or of one seed.

    Args:
        recipe: of all trainings, with native rollouts.
        plan: how many.
        make: where simulations run.
        judge: of the policies.
        work: where everything that is there is kept.
        stage: told about trainings and judgements.

    Raises:
        AckademyError: as `deep.train` and `Judge.judge`.
    """
    if not recipe.is_native:
        raise TrainingError(
            f"{recipe.origin}: learner = {recipe.learner!r}: allowed: ppo, evolution"
        )
    entering = entering_of(recipe, make)
    alone = judge.judge(deep.zeros(recipe, entering), stage("zeros: networks"))
    rows, trained = [Row(None, 0, False, alone)], {}
    for number, seed in enumerate(range(recipe.seed, recipe.seed + plan.seeds), 1):
        own = replace(recipe, seed=seed)
        label = f"seed {seed} ({number} of {plan.seeds})"
        result = _train(own, plan, make, judge, alone, work, label, stage)
        trained[seed] = result
        for snapshot in result.snapshots:
            told = stage(f"{label}, {snapshot.decisions} decisions: networks")
            found = judge.judge(_tensors(snapshot), told)
            rows.append(Row(seed, snapshot.decisions, result.is_stopped, found))
    there = [row for row in rows[1:] if plan.choose in (None, row.seed)]
    best = max(there, key=lambda row: row.judgement.mean)
    assert best.seed is not None  # all but the first have one
    result = trained[best.seed]
    chosen = next(one for one in result.snapshots if one.decisions == best.decisions)
    winner = replace(result, weights=chosen.weights, decisions=chosen.decisions)
    return Seeds(tuple(rows), trained, winner, best)


def _train(
    recipe: Recipe,
    plan: Plan,
    make: Opener,
    judge: Judge,
    alone: Judgement,
    work: Path,
    label: str,
    stage: Stage,
) -> TrainingResult:
    """One training, or what is kept of it."""
    stop = f"-{plan.stop_after}-{judge.digest[:8]}" if plan.stop_after else ""
    name = f"seed-{recipe.seed}-{deep.fingerprint_of(recipe)[:16]}{stop}-{plan.snapshots}"
    folder = work / name
    if (kept := _kept(recipe, folder / "trained")) is not None:
        return kept
    told = stage(f"{label}: training")

    def goes_on(now: Snapshot) -> bool:
        found = judge.judge(_tensors(now), stage(f"{label}, {now.decisions} decisions: networks"))
        return found.mean >= alone.mean

    def progress(done: int, total: int, _: RunningReward) -> None:
        told(done, total)

    result = deep.train(
        recipe, make, folder, resume=True, progress=progress, snapshots=plan.snapshots,
        watch=Watch(plan.stop_after, goes_on) if plan.stop_after else None,
    )  # fmt: skip
    _keep(result, folder / "trained")
    return result


def entering_of(recipe: Recipe, make: Opener) -> tuple[int, int]:
    """(history, features) of an observation of a recipe whose policy the core accepts.

    Raises:
        AckademyError: as `deep.train`, if the recipe cannot be used.
    """
    source = recipe_source.read(recipe)
    try:
        sizes = sizes_of(make.rollouts(source, recipe, deep.patterns(source, recipe)))
    except ValueError as error:
        raise TrainingError(f"{recipe.origin}: {error}") from None
    deep.check(recipe, sizes)
    return sizes.entering


def _tensors(snapshot: Snapshot) -> networks.Tensors:
    return {name: np.asarray(value) for name, value in snapshot.weights.items()}


def _keep(result: TrainingResult, folder: Path) -> None:
    """Keep a training, whole or not at all."""
    state = {name: getattr(result, name) for name in KEPT}
    state["snapshots"] = [one.decisions for one in result.snapshots]
    made = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    files.write(made / STATE, json.dumps(state, indent=1) + "\n")
    files.write(made / "curve.csv", result.curve)
    for one in result.snapshots:
        tensors = safetensors.numpy.save(_tensors(one))
        files.write(made / f"{one.decisions}.safetensors", tensors)
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)


def _kept(recipe: Recipe, folder: Path) -> TrainingResult | None:
    """A training that was kept; `None` if there is none."""
    if not folder.is_dir():
        return None
    try:
        state = json.loads((folder / STATE).read_text())
        snapshots = tuple(_snapshot(folder, decisions) for decisions in state.pop("snapshots"))
        ranges = tuple((float(low), float(high)) for low, high in state.pop("ranges"))
        curve = (folder / "curve.csv").read_text()
        source = recipe_source.read(recipe)
        return TrainingResult(
            recipe=recipe, source=source, learners=tuple(deep.patterns(source, recipe)),
            weights=snapshots[-1].weights, curve=curve, snapshots=snapshots, ranges=ranges, **state,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise TrainingError(
            f"{folder}: {error}: allowed: what a training left; remove it"
        ) from None


def _snapshot(folder: Path, decisions: int) -> Snapshot:
    tensors = safetensors.numpy.load((folder / f"{decisions}.safetensors").read_bytes())
    return Snapshot(decisions, {name: jnp.asarray(value) for name, value in tensors.items()})
