"""Variants of a recipe, each with one thing changed, trained and judged like the recipe itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ackademy.errors import TrainingError
from ackademy.lazy import pl
from ackademy.learn import deep_recipe, recipe_toml
from ackademy.learn.deep_recipe import Recipe
from ackademy.learn.seeds import Row, Seeds
from ackademy.learn.selection import Judgement

KEYS = ("about", "recipe", "variant", "selection")
LAW = "law alone"


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table."""

    name: str
    mean: float
    """judgement, mean over the seeds"""
    least: float
    most: float
    of_classes: Mapping[str, float]


def read(
    path: Path, *, quick: bool = False, changes: recipe_toml.Changes = recipe_toml.NONE
) -> dict[str, Recipe]:
    """The variants of a file by name, in its order.

    Args:
        path: a TOML file. It names a recipe and has a list of variants. A table of a variant
            changes fields of the recipe's table; any other field takes the place of the recipe's.
        quick: take `[quick]` of the recipe for the settings of the learner that it names.
        changes: of the recipe, as of `recipe_toml.load`.

    Raises:
        TrainingError: if it cannot be read, a field is not allowed, or a variant is no recipe.
    """
    values = recipe_toml.load(path)
    recipe_toml.only(values, KEYS, str(path))
    base = path.parent / recipe_toml.text(values, "recipe", str(path))
    usual = recipe_toml.load(base, changes)
    found: dict[str, Recipe] = {}
    for where, table in recipe_toml.listed(values.get("variant"), "variant", path):
        name = recipe_toml.text(table, "name", where)
        if name in found:
            raise TrainingError(f"{where}: name = {name!r}: allowed: every name once")
        own = {key: value for key, value in table.items() if key != "name"}
        recipe_toml.only(own, deep_recipe.KEYS, where)
        try:
            found[name] = deep_recipe.recipe_of(_changed(usual, own), base, quick=quick)
        except TrainingError as error:
            raise TrainingError(f"{where}: {error}") from None
    return found


def lines(found: Mapping[str, Seeds]) -> list[Line]:
    """The law of the first variant, other laws that differ, and every variant.

    Of each seed the policy that is judged best counts, and of a variant the mean over its seeds.
    """
    laws: dict[str, Judgement] = {}
    for name, seeds in found.items():
        own = seeds.zeros.judgement
        if own not in laws.values():
            laws[f"{LAW}, {name}" if laws else LAW] = own
    shown = [_line(name, [own]) for name, own in laws.items()]
    return shown + [
        _line(name, [own.judgement for own in best_of_seeds(seeds)])
        for name, seeds in found.items()
    ]


def best_of_seeds(seeds: Seeds) -> list[Row]:
    """The policy of each seed that is judged best."""
    return [
        max((row for row in seeds.rows if row.seed == seed), key=lambda row: row.judgement.mean)
        for seed in seeds.trained
    ]


def frame(found: Mapping[str, Seeds]) -> pl.DataFrame:
    """A row per policy: variant, seed (null: the law alone), decisions, judgement, each class."""
    rows = [
        {
            "variant": name,
            "seed": row.seed,
            "decisions": row.decisions,
            "stopped": row.is_stopped,
            "judgement": row.judgement.mean,
            **row.judgement.of_classes,
        }
        for name, seeds in found.items()
        for row in seeds.rows
    ]
    return pl.DataFrame(rows, schema_overrides={"seed": pl.Int64})


def _line(name: str, judged: Sequence[Judgement]) -> Line:
    means = [own.mean for own in judged]
    classes = [own.of_classes for own in judged]
    of_classes = {kind: float(np.mean([own[kind] for own in classes])) for kind in classes[0]}
    return Line(name, float(np.mean(means)), min(means), max(means), of_classes)


def _changed(usual: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """The recipe's fields with a variant's changes."""
    merged = dict(usual)
    for key, value in changes.items():
        before = usual.get(key)
        is_table = isinstance(value, dict) and isinstance(before, dict)
        merged[key] = {**before, **value} if is_table else value  # type: ignore[dict-item]
    return merged
