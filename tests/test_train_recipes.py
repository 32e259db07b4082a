"""`ackademy train RECIPE`: what a recipe may say, and what it trains."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ackademy import AckademyError
from ackademy.cli import app, trainers
from ackademy.errors import TrainingError
from ackademy.learn.lp_tcp import recipes
from ackademy.learn.lp_tcp.network import Task
from ackademy.learn.lp_tcp.result import Recipe
from ackademy.learn.lp_tcp.setups import PUBLISHED

RECIPES = Path(__file__).parents[1] / "data/recipes"


@pytest.mark.parametrize(
    "file",
    sorted([*RECIPES.glob("*.toml"), *RECIPES.parents[1].glob("research/recipes/*.toml")]),
    ids=lambda file: file.stem,
)
def test_every_recipe_says_what_learns_and_has_a_short_form(file: Path) -> None:
    described = tomllib.loads(file.read_text(encoding="utf-8"))
    if "variant" in described:
        described |= tomllib.loads((file.parent / described["recipe"]).read_text(encoding="utf-8"))
    assert described["learner"] in trainers.KINDS
    assert described["about"]
    assert described["quick"]


def test_the_recipe_of_the_forests_has_the_setups_of_the_paper() -> None:
    found = recipes.read(RECIPES / "lp_tcp.toml")
    assert [own.recording.setup for own in found.values() if isinstance(own, Recipe)] == list(
        PUBLISHED
    )
    usual = found["L=50,K=1"]
    assert isinstance(usual, Recipe)
    assert usual == Recipe(usual.recording)
    quick = recipes.read(RECIPES / "lp_tcp.toml", quick=True)["L=50,K=1"]
    assert isinstance(quick, Recipe)
    assert quick.growth.trees == 3


def test_a_network_of_ones_own_is_a_scenario_with_changes() -> None:
    own = recipes.read(RECIPES / "lp_tcp_wire.toml", changes={"seed": 7})["wire_case1"]
    assert isinstance(own, Task)
    assert own == Task(own.path, seed=7, settings=(("link.1.loss.ratio", "0.001"),))
    assert own.path.is_file()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"training.trees": 0}, "training.trees = 0: allowed: a whole number from 1"),
        ({"training.phase": "late"}, "training.phase = 'late': allowed: all, ca"),
        ({"training.duration_s": True}, "training.duration_s = True: allowed: a number above 0"),
        ({"training.leaves": 3}, "training.leaves: allowed: duration_s, "),
        ({"seed": -1}, "seed = -1: allowed: a whole number from 0"),
        ({"network": [{"name": "L=5"}]}, "setup L=5: allowed: L=PACKETS,K=SENDERS"),
        ({"seed.one": 1}, "seed = 1: allowed: a table"),
    ],
)
def test_a_wrong_field_is_one_line(changes: dict[str, object], told: str) -> None:
    with pytest.raises(TrainingError) as caught:
        recipes.read(RECIPES / "lp_tcp.toml", changes=changes)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("ppo --distribution mixed", "train ppo: now `ackademy train aurora_mixed`"),
        ("lp-tcp --setup L=50,K=1", "`ackademy train lp_tcp`, with --only L=50,K=1"),
        ("drl_cc --network s1", "train --network: allowed: --only"),
        ("flagship --seeds 1", "train --seeds: allowed: --set"),
        ("drl_cc --only s9", "--only s9: allowed: s1, rate2"),
        ("aurora_mixed --only s1", "--only s1: allowed: with a recipe that lists networks"),
        ("flagship --engine ray", "--engine, --address: allowed: with a recipe of one policy"),
        ("aurora", "aurora: "),
    ],
)
def test_a_wrong_word_names_what_is_allowed(
    words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax", reason="needs train: an extra")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AckademyError) as caught:
        app(["train", *words.split()], standalone_mode=False)
    assert told in str(caught.value)
