"""Writes the JSON Schemas of all kinds of files to data/schemas, as the parsers have them.

The core's types give the structure of scenarios, distributions and policies, and its parsers the
ranges that they check while they read the shipped files and those of tests/files/schemas. The
parsers of suites, scorecards and papers are recorded while they read (`ackademy.table_schema`). A
recipe's fields are those of the dataclasses that it fills.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args

from ackademy import _core, files, lookup, papers, table_schema
from ackademy.backends import schemes
from ackademy.learn import ddpg, deep_recipe, host_training, recipe, recipe_toml
from ackademy.learn.lp_tcp import recipes as forest_recipes
from ackademy.papers.knott2023 import study as beta_study
from ackademy.policies.policy_files import SETTINGS_TABLES
from ackademy.studies.league import suite
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.scorecard import card
from ackademy.table_schema import Schema

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "data" / "schemas"
MORE = ROOT / "tests" / "files" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLES: Mapping[str, str] = {
    "scenario": "A scenario of Ackademy",
    "distribution": "A distribution of scenarios of Ackademy",
    "recipe": "A recipe of Ackademy",
    "suite": "A suite of Ackademy",
    "scorecard": "A scorecard of Ackademy",
    "policy": "policy.toml of a policy of Ackademy",
    "paper": "A paper's table or figure, or paper.toml, of Ackademy",
}
ANY_KIND: Mapping[str, Any] = {}
"""in place of the values below a step `[]`, which stands for all entries of a list"""
MAP: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}


def main() -> None:
    """Write the files, or only compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    is_check = parser.parse_args().check
    for kind in TITLES:
        path, text = FOLDER / f"{kind}.schema.json", written(schema(kind))
        if not is_check:
            files.write(path, text)
        elif not path.is_file() or path.read_text("utf-8") != text:
            sys.exit(f"{path} is out of date: run `make schemas`")


def written(found: Schema) -> str:
    """A schema as text, a line for each field of a table."""
    text = json.dumps(found, indent=1)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text) + "\n"


def schema(kind: str) -> Schema:
    """The schema of a kind of files."""
    found = {
        "scenario": scenario,
        "distribution": distribution,
        "recipe": recipe_schema,
        "suite": suite_schema,
        "scorecard": lambda: recorded("scorecard"),
        "policy": policy,
        "paper": paper,
    }[kind]()
    head = {
        "$schema": DIALECT,
        "$id": f"urn:ackademy:schema:{kind}",
        "title": TITLES[kind],
        "description": f"Written from the parser by tools/schemas.py; `ackademy schema {kind}`.",
    }
    return {**head, **{key: without_null(own) for key, own in found.items() if key not in head}}


def without_null(own: Any) -> Any:  # noqa: ANN401
    """A schema without `null`, which TOML has not: an error then names the field, not a choice."""
    if isinstance(own, list):
        return [without_null(each) for each in own]
    if not isinstance(own, dict):
        return own
    is_none = {key for key, each in own.items() if key == "default" and not is_plain(each)}
    found = {key: without_null(each) for key, each in own.items() if key not in is_none}
    if isinstance(kind := found.get("type"), list):
        kinds = [each for each in kind if each != "null"]
        found["type"] = kinds[0] if len(kinds) == 1 else kinds
    choices = [each for each in found.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        del found["anyOf"]
        return {**choices[0], **found}
    return found


def is_plain(default: object) -> bool:
    """Whether a default is a value that a file can have."""
    return default is not None and not isinstance(default, dict)


def scenario() -> Schema:
    """Of scenarios."""
    found: Schema = json.loads(bounded("scenario"))
    return found


def distribution() -> Schema:
    """Of distributions, whose scenarios may lack what is drawn."""
    found: Schema = json.loads(bounded("distribution"))
    defs = found["$defs"]
    of_scenarios = scenario()
    for name, own in of_scenarios["$defs"].items():
        defs[name] = own
    defs["ScenarioSpec"] = {key: own for key, own in of_scenarios.items() if key[0] not in "$"}
    for name in ("ScenarioSpec", *of_scenarios["$defs"]):
        for own in (defs[name], *defs[name].get("oneOf", ())):
            kept = [key for key in own.get("required", ()) if key == "kind"]
            own.pop("required", None)
            own |= {"required": kept} if kept else {}
    return found


def policy() -> Schema:
    """Of `policy.toml`: of flows, of hosts, and of forests."""
    found: Schema = json.loads(bounded("policy"))
    with table_schema.recording() as read:
        for name in lookup.names("policy"):
            schemes.of_folder(lookup.find(name, "policy"))
    forests = [own for own in read.values() if "forest" in (own.allowed or ())]
    found["anyOf"].append(merged(forests).schema())
    return found


def paper() -> Schema:
    """Of the files of papers, by the word `kind`; a file without one is a table."""
    kinds: dict[str, list[table_schema.TableSchema]] = {}
    for path, own in _read_papers().items():
        if path.is_relative_to(ROOT / "data" / "papers"):
            kind = tomllib.loads(path.read_text("utf-8")).get("kind", "table")
            kinds.setdefault("paper" if path.stem == "paper" else kind, []).append(own)
    choices = []
    for kind, tables in sorted(kinds.items()):
        found = merged(tables).schema()
        if kind != "paper":
            found["properties"]["kind"] = {"const": kind}
        if kind not in ("paper", "table"):
            found["required"] = sorted({*found.get("required", ()), "kind"})
        if kind == "cubic_beta":
            found["properties"]["learner"]["items"]["properties"]["recipe"] = settings(
                recipe.Recipe
            )
        choices.append({"title": kind, **found})
    return {"anyOf": choices}


@cache
def _read_papers() -> Mapping[Path, table_schema.TableSchema]:
    with table_schema.recording() as read:
        for name in experiment_files.available():
            papers.load(name)
    return read


def recorded(kind: lookup.Kind) -> Schema:
    """Of a kind whose parser reads `TomlTable`s."""
    load: Callable[[str], object] = suite.load if kind == "suite" else card.load
    with table_schema.recording() as read:
        for name in lookup.names(kind):
            load(name)
    own = [seen for path, seen in read.items() if path.parent.name == lookup.FOLDERS[kind]]
    return merged(own).schema()


def suite_schema() -> Schema:
    """Of suites, whose table `sender` is a scenario's."""
    found, tables = recorded("suite"), scenario()["$defs"]
    found["properties"]["sender"] = {"$ref": "#/$defs/SenderSpec"}
    text = json.dumps(tables["SenderSpec"])
    names = [name for name in tables if name == "SenderSpec" or f'/{name}"' in text]
    return {**found, "$defs": {name: tables[name] for name in names}}


def merged(tables: Sequence[table_schema.TableSchema]) -> table_schema.TableSchema:
    """What was read of any of them."""
    found = tables[0]
    for own in tables[1:]:
        found = found.with_more(own)
    return found


Seen = Iterator[tuple[Mapping[str, Any], list[tuple[str, float, float]]]]


def _scenarios() -> Seen:
    for path in sorted([*(ROOT / "data" / "scenarios").rglob("*.toml"), *MORE.glob("*.toml")]):
        text = path.read_text("utf-8")
        yield (
            tomllib.loads(text),
            _core.ranges(partial(_core.Scenario.parse, text, str(path))),
        )


def _distributions() -> Seen:
    for path in sorted((ROOT / "data" / "distributions").glob("*.toml")):
        text = path.read_text("utf-8")
        read = _core.ranges(partial(_core.Distribution.parse, text, str(path)))
        yield tomllib.loads(text), read


def _policies() -> Seen:
    for path in sorted((ROOT / "data" / "policies").rglob("policy.toml")):
        values = tomllib.loads(path.read_text("utf-8"))
        if "forest" not in values:
            kind = _core.JointPolicy if "host" in values else _core.Policy
            yield values, _core.ranges(partial(kind.open, path.parent))


@cache
def bounded(kind: str) -> str:
    """A schema of the core with the ranges of its numbers, as JSON."""
    read = {"scenario": _scenarios, "distribution": _distributions, "policy": _policies}
    found: Schema = json.loads(_core.schema(kind))
    bound(found, read[kind]())
    return json.dumps(found)


def bound(found: Schema, seen: Seen) -> None:
    """Give the numbers of a schema the ranges that were checked: of several, the widest."""
    widest: dict[int, tuple[Schema, float, float]] = {}
    for values, ranges in seen:
        for path, low, high in ranges:
            for own in numbers_at(found, values, path):
                _, least, most = widest.get(id(own), (own, low, high))
                widest[id(own)] = own, min(low, least), max(high, most)
    for own, low, high in widest.values():
        whole = "integer" in str(own["type"])
        own["minimum"], own["maximum"] = (int(low), int(high)) if whole else (low, high)


def numbers_at(root: Schema, values: Any, path: str) -> list[Schema]:  # noqa: ANN401
    """The numbers of a schema that a path such as `flow[0].queue.packets` leads to."""
    here = [root]
    for name, text, index in re.findall(r'([^".[\]]+)|"([^"]*)"|(\[\d*\])', path):
        plain = _plain(root, here, values)
        if index:
            number = index.strip("[]")
            is_there = isinstance(values, list) and number and int(number) < len(values)
            values = values[int(number)] if is_there else {} if number else ANY_KIND
            here = [own["items"] for own in plain if "items" in own]
        else:
            step = name or text
            found = [own.get("properties", {}).get(step) for own in plain]
            entries = [own.get("additionalProperties") for own in plain]
            here = [own for own in (*found, *entries) if isinstance(own, dict)]
            values = values.get(step, {}) if isinstance(values, Mapping) else {}
    return [own for own in here if {"number", "integer"} & set(_types(own))]


def _types(own: Schema) -> Sequence[str]:
    kind = own.get("type", ())
    return [kind] if isinstance(kind, str) else kind


def _plain(root: Schema, here: Sequence[Schema], values: Any) -> list[Schema]:  # noqa: ANN401
    """Schemas without references and choices; of kinds, the one that the values name."""
    found: list[Schema] = []
    for own in here:
        if "$ref" in own:
            found += _plain(root, [root["$defs"][own["$ref"].rpartition("/")[2]]], values)
        for choice in (*own.get("anyOf", ()), *own.get("oneOf", ())):
            kind = choice.get("properties", {}).get("kind", {}).get("const")
            is_it = isinstance(values, Mapping) and values.get("kind") == kind
            if kind is None or values is ANY_KIND or is_it:
                found += _plain(root, [choice], values)
        found.append(own)
    return found


def recipe_schema() -> Schema:
    """Of recipes, by their learner."""
    tables = policy()["$defs"]
    choices = [
        *(deep(name) for name in deep_recipe.CONFIGS),
        forest(),
        host(tables["JointSpec"]["properties"]),
        q_table(),
    ]
    used: dict[str, Schema] = {}
    needs = json.dumps(choices)
    while more := [name for name in tables if name not in used and f'/{name}"' in needs]:
        used |= {name: tables[name] for name in more}
        needs = json.dumps(used)
    return {"oneOf": choices, "$defs": {name: tables[name] for name in tables if name in used}}


def deep(learner: str) -> Schema:
    """Of a policy that a deep learner trains."""
    size = whole(1, deep_recipe.SIMULATIONS_MAX)
    rewards = {"enum": sorted(deep_recipe.CORE_REWARDS)} if learner == "evolution" else TEXT
    config = settings(deep_recipe.CONFIGS[learner])
    specs = {name: {"$ref": f"#/$defs/{name.title()}Spec"} for name in SETTINGS_TABLES}
    names = {"type": "array", "items": TEXT}
    return keyed(learner, deep_recipe.KEYS, {
        "reward": rewards, "credit": {"enum": list(get_args(deep_recipe.Credit))},
        "scenario": TEXT, "distribution": TEXT, "learners": names, "without_classes": names,
        "simulations": size, "agents": size, "seed": whole(0, deep_recipe.SEED_MAX),
        "teacher": TEXT, **specs, "deployed": closed({"when": {"$ref": "#/$defs/WhenSpec"}}),
        "layers": {"type": "array", "items": {"$ref": "#/$defs/LayerSpec"}},
        "training": config, "quick": config, "selection": MAP,
    })  # fmt: skip


def forest() -> Schema:
    """Of LP-TCP's forests."""
    training = settings(forest_recipes.Training)
    network = closed({"name": TEXT, "scenario": TEXT, "set": MAP})
    return keyed("forest", forest_recipes.KEYS, {
        "seed": whole(0, forest_recipes.SEED_MAX), "training": training, "quick": training,
        "network": {"type": "array", "items": network, "minItems": 1},
    })  # fmt: skip


def host(scales: Mapping[str, Schema]) -> Schema:
    """Of agents for all connections of a host."""
    config, seed = settings(ddpg.Config), whole(0, deep_recipe.SEED_MAX)
    names = {"type": "array", "items": TEXT, "minItems": 1}
    chosen = closed({name: scales[name] for name in host_training.HOST_KEYS})
    network = {
        "name": TEXT, "scenario": TEXT, "set": MAP, "members": names, "host": chosen,
        "training": config, "seed": seed,
    }  # fmt: skip
    assert set(network) == set(host_training.NETWORK_KEYS)
    return keyed("ddpg", host_training.KEYS, {
        "scenario": TEXT, "seed": seed, "training": config, "quick": config,
        "network": {"type": "array", "items": closed(network), "minItems": 1},
    })  # fmt: skip


def q_table() -> Schema:
    """Of Knott's table."""
    training = settings(recipe.Recipe)
    learner = merged([
        own.lists["learner"]
        for path, own in _read_papers().items()
        if path.parent.name == "knott2023" and "learner" in own.lists
    ]).schema()["properties"]  # fmt: skip
    keys = (*beta_study.RECIPE_KEYS, *(key for key in learner if key not in ("name", "recipe")))
    return keyed("q_table", keys, {
        **{key: own for key, own in learner.items() if key not in ("name", "recipe")},
        "seed": whole(0, 2**63 - 1), "training": training, "quick": training,
        "rate_mbps": {"type": "number", "minimum": 0.1, "maximum": 1000.0},
    })  # fmt: skip


def settings(kind: type) -> Schema:
    """Of a table that fills a dataclass, by the types of its fields."""
    about, found = table_schema.described(kind), {}
    for own in fields(kind):
        name = str(own.type)
        least, most = recipe_toml.LIMITS.get(name, (0, 0))
        if name in ("bool", "str"):
            of: Schema = {"type": "boolean" if name == "bool" else "string"}
        elif name in ("int", "Count"):
            of = whole(int(least), int(most))
        else:
            of = {"type": "number", "minimum": 0.0} if least == 0.0 else {"exclusiveMinimum": 0.0}
            of = {
                "type": "number",
                **of,
                **({"maximum": most} if most < sys.float_info.max else {}),
            }
        text = {"description": about[own.name]} if own.name in about else {}
        found[own.name] = {**text, **of, "default": own.default}
    return closed(found)


def keyed(learner: str, keys: Sequence[str], properties: Mapping[str, Schema]) -> Schema:
    """A recipe of a learner with exactly these keys."""
    found = {"about": TEXT, "learner": {"const": learner}, **properties}
    assert set(found) == set(keys), set(found) ^ set(keys)
    return {"title": learner, **closed(found), "required": ["learner", "seed"]}


def closed(properties: Mapping[str, Schema]) -> Schema:
    """A table without other keys."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def whole(least: int, most: int) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": least, "maximum": most}


if __name__ == "__main__":
    main()
