"""Variants of a recipe: what differs, what each is trained on, and how they are judged."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy import _core
from ackademy.errors import TrainingError
from ackademy.learn import ablations, deep, deep_recipe, ppo, recipe_source
from ackademy.learn.deep_recipe import Recipe
from commands import ackademy_command
from test_selection import place

__all__ = ["place"]  # a fixture
ROOT = Path(__file__).parents[1]
VARIANTS = """\
about = "of the smallest recipe"
recipe = "recipe.toml"
[[variant]]
name = "usual"
[[variant]]
name = "no_b"
without_classes = ["B"]
[[variant]]
name = "constant"
training = { critic_units = 0 }
[variant.action]
exponent = 0.0
"""


LACKS = {
    "no_drain": {"drain"},
    "no_actions": {"action_0", "action_1"},
}


def shipped() -> dict[str, Recipe]:
    return ablations.read(ROOT / "research/recipes" / "flagship_ablations.toml")


def test_each_variant_of_the_flagship_differs_as_its_name_says() -> None:
    found = shipped()
    origin = Path(found["flagship"].origin)
    assert origin.resolve() == ROOT / "data/recipes/flagship.toml"
    usual = deep_recipe.read(origin)
    assert found.pop("flagship") == usual
    changed = {
        name: [key for key in Recipe.__slots__ if getattr(own, key) != getattr(usual, key)]
        for name, own in found.items()
    }
    assert changed == {
        "at_all_times": ["deployed"],
        "trained_contended": ["settings"],
        "no_drain": ["settings"],
        "own_best": ["settings"],
        "no_actions": ["settings"],
        "no_class_g": ["without_classes"],
        "own_kind": ["without_classes"],
        "own_critic": ["config"],
        "constant_target": ["settings"],
    }
    features = usual.settings["observation"]["features"]  # type: ignore[index]
    for name, lacks in LACKS.items():
        left = found[name].settings["observation"]["features"]  # type: ignore[index]
        assert left == [feature for feature in features if feature not in lacks]
    more = found["own_best"].settings["observation"]["features"]  # type: ignore[index]
    assert [feature for feature in more if feature not in features] == ["own_best"]
    critic = found["own_critic"].config
    assert isinstance(critic, ppo.Config)
    assert critic.critic_units == 0
    contended = {"map": "own_queue", "when": "contention"}
    assert found["trained_contended"].settings["action"] == contended
    assert usual.deployed == {"when": "contention"}
    assert found["at_all_times"].deployed == {"when": "always"}
    assert found["constant_target"].settings["action"] == {"map": "own_queue", "exponent": 0.0}


@pytest.mark.parametrize(("name", "left"), [("no_class_g", "G"), ("own_kind", "GHI")])
def test_a_class_that_is_left_out_is_not_drawn(name: str, left: str) -> None:
    usual, own = (recipe_source.read(shipped()[key]) for key in ("flagship", name))
    assert isinstance(usual, _core.Distribution)
    assert isinstance(own, _core.Distribution)
    assert own.classes == [kind for kind in usual.classes if kind not in left]
    kept = [usual.classes[place] not in left for place in usual.class_of_each]
    whole = usual.weights(1.0)
    assert own.weights(1.0) == [w for w, is_kept in zip(whole, kept, strict=True) if is_kept]
    assert own.digest != usual.digest
    assert own.draw(3, 1.0).entries  # it can be drawn from
    if name == "own_kind":
        drawn = [own.draw(seed, 1.0).controllers for seed in range(40)]
        assert len({name for names in drawn for name in names}) == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('without_classes = ["Z"]', "without_classes = ['Z']: allowed: some of A, B, not all"),
        ('without_classes = ["A", "B"]', "allowed: some of A, B, not all"),
        ('without_classes = "A"', "without_classes = 'A': allowed: a list of texts"),
    ],
)
def test_classes_that_cannot_be_left_out_are_refused(place: Path, line: str, told: str) -> None:
    file = place / "recipe.toml"
    file.write_text(f"{line}\n{file.read_text()}")
    with pytest.raises(TrainingError) as error:
        recipe_source.read(deep_recipe.read(file))
    assert str(error.value).startswith(f"{file}: without_classes = ")
    assert str(error.value).endswith(told)


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ('name = "no_b"', 'name = "usual"', "variant[1]: name = 'usual': allowed: every name once"),
        ("without_classes", "without", "variant[1]: without: no such key; allowed: about, "),
        ('recipe = "recipe.toml"', "", "recipe = None: allowed: a text"),
        ("critic_units = 0", "critic_units = -1", "variant[2]: {base}: training.critic_units = -1"),
        ("[[variant]]", "[[other]]", "other: no such key; allowed: about, recipe, variant"),
    ],
)
def test_a_wrong_variant_is_one_line(place: Path, was: str, becomes: str, told: str) -> None:
    file = place / "variants.toml"
    file.write_text(VARIANTS.replace(was, becomes))
    with pytest.raises(TrainingError) as error:
        ablations.read(file)
    said = str(error.value)
    assert said.startswith(str(file))
    assert told.format(base=place / "recipe.toml") in said
    assert "\n" not in said


def test_all_variants_are_trained_once_and_judged_in_one_table(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "variants.toml").write_text(VARIANTS)
    words = ["train", "variants.toml", "--set", "selection.networks=six.links", "--jobs", "1",
             "--set", "selection.count=4", "--set", "selection.stop_after=0",
             "--set", "training.decisions=640"]  # fmt: skip
    status, _, errors = ackademy_command(*words, "--only", "no_b", cwd=place)
    assert status == 0, errors
    status, out, errors = ackademy_command(*words, cwd=place)
    assert status == 0, errors
    assert "no_b, seed 3 (1 of 1): training" not in out  # the first call has
    names = ["law alone", "law alone, constant", "usual", "no_b", "constant"]
    table = out.partition("variant")[2]
    lines = [re.search(rf"^{name} +(-?[\d.]+)", table, re.MULTILINE) for name in names]
    assert all(lines), out
    with (place / "reports" / "variants.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["variant", "seed", "decisions", "stopped", "judgement", "A", "B"]
    best: Callable[[str], float] = lambda name: max(  # noqa: E731
        float(row["judgement"]) for row in rows if row["variant"] == name and row["seed"]
    )
    for line, name in zip(lines[2:], names[2:], strict=True):
        assert line is not None
        assert float(line[1]) == pytest.approx(best(name), abs=1e-3)
    status, _, errors = ackademy_command(*words, "--only", "other", cwd=place)
    assert status == 2
    assert "--only other: allowed: usual, no_b, constant" in errors


def test_the_policy_of_a_variant_says_what_was_left_out() -> None:
    found = shipped()
    assert found["own_kind"].policy_about.endswith("trained on flagship without G, H, I")
    assert deep.fingerprint_of(found["own_kind"]) != deep.fingerprint_of(found["no_class_g"])
