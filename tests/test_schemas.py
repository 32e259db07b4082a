"""JSON Schemas of files: as the parsers have them, and as tight for numbers as the program."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from ackademy import _core, lookup, papers
from ackademy.backends import schemes
from ackademy.cli import listing, templates
from ackademy.errors import AckademyError
from ackademy.folders import schema_file
from ackademy.studies.league import suite
from ackademy.studies.scorecard import card
from ackademy.toml_table import toml_value
from commands import ackademy_command

DATA = Path(__file__).parents[1] / "data"
MORE = Path(__file__).parent / "files" / "schemas"
KINDS: tuple[str, ...] = get_args(listing.SchemaKind)
SEED = 20270
RANGE = re.compile(r"allowed(?: is|:) (?:a (?:whole |finite )?number|\d)")
"""the words of an error about a number that is too small or too large"""


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema_file(kind).read_text("utf-8")))


def shipped(kind: str) -> list[Path]:
    if kind == "policy":
        return sorted(DATA.glob("policies/**/policy.toml"))
    folder = DATA / lookup.FOLDERS[kind]  # type: ignore[index]  # the name of a kind
    return sorted([*folder.rglob("*.toml"), *(MORE.glob("*.toml") if kind == "scenario" else ())])


def faults(kind: str, values: object) -> list[str]:
    """What the schema has against the values, in the places that are deepest."""
    best = jsonschema.exceptions.best_match(validator(kind).iter_errors(values))
    return [f"{best.json_path}: {best.message}"] if best else []


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_a_schema_with_an_id_and_texts(kind: str) -> None:
    found = validator(kind).schema
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$id"].endswith(kind)
    assert json.dumps(found).count('"description"') > 10 or kind in ("suite", "paper")


def test_an_error_names_the_field_and_its_bound() -> None:
    values = tomllib.loads(templates.SCENARIO)
    values["dumbbell"]["rtt_ms"] = -40
    assert faults("scenario", values) == ["$.dumbbell.rtt_ms: -40 is less than the minimum of 0.0"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_schema_has_null_which_toml_lacks(kind: str) -> None:
    assert "null" not in schema_file(kind).read_text("utf-8").replace("null character", "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_shipped_file_fits_its_schema(kind: str) -> None:
    files = shipped(kind)
    assert files
    found = {str(path): faults(kind, tomllib.loads(path.read_text("utf-8"))) for path in files}
    assert {path: told for path, told in found.items() if told} == {}


def test_the_schemas_are_what_the_parsers_say(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("needs train: an extra")
    import schemas

    monkeypatch.setattr(sys, "argv", ["schemas.py", "--check"])
    schemas.main()


def test_drawn_scenarios_fit_with_every_default_filled_in() -> None:
    for path in shipped("distribution"):
        drawn = _core.Distribution.parse(path.read_text("utf-8"), str(path))
        for seed in range(SEED, SEED + 8):
            values = tomllib.loads(drawn.draw(seed).resolved())
            assert faults("scenario", values) == [], (path, seed)


def leaves(values: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401
    """The places of all numbers."""
    if isinstance(values, dict):
        for key, own in values.items():
            yield from leaves(own, (*path, key))
    elif isinstance(values, list):
        for index, own in enumerate(values):
            yield from leaves(own, (*path, index))
    elif isinstance(values, int | float) and not isinstance(values, bool):
        yield path


def put(values: Any, path: tuple[str | int, ...], value: object) -> None:  # noqa: ANN401
    for step in path[:-1]:
        values = values[step]
    values[path[-1]] = value


def read(kind: str, path: Path) -> None:
    """Have the program read a file of a kind."""
    text = path.read_text("utf-8")
    if kind == "scenario":
        _core.Scenario.parse(text, str(path))
    elif kind == "distribution":
        _core.Distribution.parse(text, str(path))
    elif kind == "suite":
        suite.load(str(path))
    elif kind == "scorecard":
        card.load(str(path))
    elif kind == "policy":
        is_host = schemes.of_folder(path.parent)[0] == "drl_cc"
        (_core.JointPolicy if is_host else _core.Policy).open(path.parent)
    elif kind == "paper":
        papers.load(str(path))
    else:
        from ackademy.learn import deep_recipe, host_training
        from ackademy.learn.lp_tcp import recipes
        from ackademy.papers.knott2023 import study

        readers: dict[str, Callable[[Path], object]] = {
            "ddpg": host_training.read,
            "forest": recipes.read,
            "q_table": lambda path: study.learner_of(path, {}),
        }
        readers.get(tomllib.loads(text)["learner"], deep_recipe.read)(path)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `data`, to be changed."""
    folder = tmp_path_factory.mktemp("copied") / "data"
    shutil.copytree(DATA, folder)
    return folder


PAIRS = re.compile(
    r"_schedule|outages|\.ranges|\.draw\.|published|within|weight|\.set\.|axes|where"
)
"""lists of pairs and open tables, of whose numbers a schema says nothing"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_refuses_the_numbers_that_the_program_refuses(kind: str, copied: Path) -> None:
    if kind == "recipe" and importlib.util.find_spec("jax") is None:
        pytest.skip("needs train: an extra")
    draw, n_refused, missed = random.Random(SEED), 0, list[str]()
    texts = {path: path.read_text("utf-8") for path in shipped(kind) if DATA in path.parents}
    files = [path for path, text in texts.items() if list(leaves(tomllib.loads(text)))]
    for _ in range(25 if kind == "distribution" else 100):
        own = draw.choice(files)
        path = copied / own.relative_to(DATA)
        values = tomllib.loads(texts[own])
        place = draw.choice(list(leaves(values)))
        is_whole = isinstance(_at(values, place), int)
        put(values, place, draw.choice([-1, 2**62] if is_whole else [-1e300, -0.5, 1e300]))
        path.write_text("".join(f"{key} = {toml_value(own)}\n" for key, own in values.items()))
        try:
            read(kind, path)
        except (AckademyError, ValueError) as error:
            name = ".".join(map(str, place))
            if RANGE.search(str(error)) and not PAIRS.search(f".{name}."):
                n_refused += 1
                missed += [] if faults(kind, values) else [f"seed {SEED}: {own}: {error}"]
        finally:
            shutil.copy(own, path)
    assert missed == []
    assert n_refused >= 3, f"seed {SEED}: the draws tried too little"


def _at(values: Any, path: tuple[str | int, ...]) -> object:  # noqa: ANN401
    for step in path:
        values = values[step]
    return values


@pytest.mark.parametrize("kind", ["scenario", "experiment", "policy"])
def test_what_new_writes_names_a_schema_that_is_there_and_fits(kind: str, tmp_path: Path) -> None:
    code, _, err = ackademy_command("new", kind, "mine", cwd=tmp_path)
    assert (code, err) == (0, "")
    written = [path for path in tmp_path.rglob("*.toml") if templates.EDITORS not in path.parts]
    assert written
    for path in written:
        line, _, _ = path.read_text("utf-8").partition("\n")
        named = (path.parent / line.removeprefix("#:schema ")).resolve()
        assert named.read_bytes() == schema_file(named.name.partition(".")[0]).read_bytes()
        values = tomllib.loads(path.read_text("utf-8"))
        assert faults(named.name.partition(".")[0], values) == []
    assert ackademy_command("new", "scenario", "other", cwd=tmp_path)[0] == 0


def test_the_line_for_editors_is_no_part_of_a_scenarios_question(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    made = templates.files("scenario", "mine")
    (tmp_path / "scenarios" / "mine.toml").write_bytes(made["mine.toml"])
    _, out, _ = ackademy_command("list", cwd=tmp_path)
    assert "#:" not in out
    assert ":schema" not in out


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_prints_each_schema(kind: str, tmp_path: Path) -> None:
    code, out, err = ackademy_command("schema", kind, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out == schema_file(kind).read_text("utf-8")


def test_an_unknown_kind_is_one_error_with_those_allowed(tmp_path: Path) -> None:
    code, _, err = ackademy_command("schema", "scenari", cwd=tmp_path)
    assert code == 2
    assert all(kind in err for kind in KINDS)
