"""What `ackademy train ppo` and `train drinc` take and leave, on a training as small as it gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("flax", reason="learning needs the extra `train`")

from ackademy import cards, evaluate, trials
from ackademy.cli import app
from ackademy.errors import AckademyError, ExperimentError, TrainingError
from ackademy.train import cli, deep_recipe

SCENARIO = """\
duration_s = 2
[dumbbell]
rtt_ms = 40
bottleneck = { rate_mbps = 4, queue = { kind = "drop_tail", packets = 30 } }
[[flow]]
name = "me"
[[flow]]
name = "other"
controller = "cubic"
"""
RECIPE = """\
about = "as small as it gets"
learner = "dqn"
reward = "drinc"
credit = "sent"
scenario = "link.toml"
learners = ["me"]
simulations = 2
agents = 1
seed = 1
[observation]
features = ["rtt_ratio", "loss_ratio"]
history = 2
[decision]
every = "srtt"
[action]
map = "cwnd_steps"
steps = ["-1", "+0", "+1"]
[[layers]]
kind = "flatten"
[[layers]]
kind = "dense"
units = 3
[training]
episodes = 4
warmup = 20
row_every = 40
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.toml").write_text(SCENARIO)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def train(recipe: Path, out: str) -> None:
    cli.app(["drinc", "--recipe", str(recipe), "--out", out], standalone_mode=False)


@pytest.mark.parametrize("out", ["thesis", "."])
def test_a_folder_of_something_else_is_refused_before_the_training(recipe: Path, out: str) -> None:
    kept = recipe.parent / "thesis" / "chapter.txt"
    kept.parent.mkdir()
    kept.write_text("months of work")
    with pytest.raises(AckademyError, match=r": allowed: a new folder, or a policy's"):
        train(recipe, out)
    assert kept.read_text() == "months of work"
    assert not (recipe.parent / "runs").exists()


def test_a_policy_takes_the_place_of_another(recipe: Path) -> None:
    for seed in (1, 2):
        recipe.write_text(RECIPE.replace("seed = 1", f"seed = {seed}"))
        train(recipe, "mine")
        assert f"\nseed = {seed}\n" in (recipe.parent / "mine" / "policy.toml").read_text()
    beside = {path.name for path in recipe.parent.iterdir()}
    assert beside == {"link.toml", "recipe.toml", "mine", "runs"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("as small", r"as\nsmall", "about = 19 characters: allowed is one line of at most 200"),
        ("as small", "small" * 50, "about = 261 characters: allowed is one line of at most 200"),
    ],
    ids=["two lines", "too long"],
)
def test_what_gives_no_policy_is_refused_before_the_training(
    recipe: Path, old: str, new: str, message: str
) -> None:
    recipe.write_text(RECIPE.replace(old, new))
    with pytest.raises(TrainingError) as caught:
        train(recipe, "mine")
    assert str(caught.value) == f"{recipe}: gives no policy: policy.toml:2: {message}"
    assert not (recipe.parent / "runs").exists()


def test_a_training_may_end_without_a_random_action(recipe: Path) -> None:
    recipe.write_text(RECIPE + "epsilon_end = 0.0\n")
    train(recipe, "mine")
    assert "random ones included: at the end none." in (
        recipe.parent / "mine" / "CARD.md"
    ).read_text().replace("\n", " ")


@pytest.mark.parametrize(
    ("learner", "line", "allowed"),
    [
        ("dqn", "learning_rate = inf", "a number from 0"),
        ("ppo", "spread = 0.0", "a number above 0"),
        ("ppo", "clip = 1.5", "a number from 0 to 1"),
    ],
)
def test_a_setting_that_nothing_can_be_learnt_with_is_one_line(
    recipe: Path, learner: str, line: str, allowed: str
) -> None:
    head, _, _ = RECIPE.partition("[training]")
    recipe.write_text(f"{head.replace('dqn', learner)}[training]\n{line}\n")
    with pytest.raises(TrainingError) as caught:
        deep_recipe.read(recipe)
    assert str(caught.value).endswith(f"training.{line}: allowed: {allowed}")


def test_a_policy_is_tried_as_the_flow_that_it_was_trained_as(recipe: Path) -> None:
    train(recipe, "mine")
    (trial,) = evaluate.trained_on(recipe.parent / "mine", 1, 1).trials
    cell = trials.cell(trial, trials.entrant("mine"), recipe.parent)
    assert cell.scenario().controllers == ["policy", "cubic"]
    assert CliRunner().invoke(app, ["eval", "mine", "--card", "--card-s", "1"]).exit_code == 0
    card = cards.read(Path("mine"))
    assert card is not None
    assert card.fixed.flows == "me"
    recipe.with_name("link.toml").write_text(SCENARIO.replace('"me"', '"you"'))
    with pytest.raises(ExperimentError, match=r"made: learners = \['me'\]: allowed: flows of"):
        evaluate.trained_on(recipe.parent / "mine", 1, 1)
