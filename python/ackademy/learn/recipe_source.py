"""What a recipe trains on: its scenario, or its distribution without some of the classes."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from ackademy import _core
from ackademy.backends.runs import read_text
from ackademy.envs import opening
from ackademy.errors import TrainingError
from ackademy.toml_table import toml_value

if TYPE_CHECKING:
    from ackademy.learn.deep_recipe import Recipe


def read(recipe: Recipe) -> opening.Source:
    """The scenario or distribution.

    Raises:
        ScenarioError: if it cannot be read or is wrong.
        TrainingError: if the classes that are left out are none of its classes, or all.
    """
    return opening.parse_source(*pack(recipe))


def pack(recipe: Recipe) -> tuple[str, str, dict[str, bytes]]:
    """Text, origin and files of it, from which `opening.parse_source` makes it anywhere.

    Raises:
        AckademyError: as `read`.
    """
    path = opening.file_of(recipe.source)
    text, files = read_text(path), dict[str, bytes]()
    source = opening.parse_source(text, str(path), files)
    if recipe.without_classes:
        text = _without(recipe, text, source)
    return text, str(path), files


def _without(recipe: Recipe, text: str, source: opening.Source) -> str:
    left = recipe.without_classes
    told = f"{recipe.origin}: without_classes = {list(left)}: allowed: "
    if not isinstance(source, _core.Distribution):
        raise TrainingError(f"{told}with a distribution")
    known = source.classes
    if not set(left) < set(known):
        raise TrainingError(f"{told}some of {', '.join(known)}, not all")
    values = tomllib.loads(text)
    values["scenario"] = [
        entry
        for entry, place in zip(values["scenario"], source.class_of_each, strict=True)
        if known[place] not in left
    ]
    return "".join(f"{toml_value(key)} = {toml_value(value)}\n" for key, value in values.items())
