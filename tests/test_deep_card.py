"""What `ackademy train` takes and leaves, on a training as small as it gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy import folders
from ackademy.backends import schemes
from ackademy.cli import app, trainers
from ackademy.errors import AckademyError, ExperimentError, TrainingError
from ackademy.learn import checkpoint, deep_recipe
from ackademy.policies import cards
from ackademy.runner import cases
from ackademy.studies.evaluate import sources

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
updates_at_once = 4
row_every = 40
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.toml").write_text(SCENARIO)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def train(recipe: Path, out: str, *options: str) -> None:
    app(["train", str(recipe), "--out", out, *options], standalone_mode=False)


@pytest.mark.parametrize("out", ["thesis", "."])
def test_a_folder_of_something_else_is_refused_before_the_training(recipe: Path, out: str) -> None:
    kept = recipe.parent / "thesis" / "chapter.txt"
    kept.parent.mkdir()
    kept.write_text("months of work")
    with pytest.raises(AckademyError, match=r"allowed: (a|the name of a) new folder"):
        train(recipe, out)
    assert kept.read_text() == "months of work"
    assert not (recipe.parent / "runs").exists()


def test_a_policy_takes_the_place_of_another_only_by_force(recipe: Path) -> None:
    train(recipe, "mine")
    with pytest.raises(AckademyError, match=r"^mine: holds a policy; allowed: .*--force"):
        train(recipe, "mine")
    for seed in (1, 2):
        recipe.write_text(RECIPE.replace("seed = 1", f"seed = {seed}"))
        train(recipe, "mine", "--force")
        assert f"\nseed = {seed}\n" in (recipe.parent / "mine" / "policy.toml").read_text()
    beside = {path.name for path in recipe.parent.iterdir()}
    assert beside == {"link.toml", "recipe.toml", "mine", "runs"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("as small", r"as\nsmall", "about = 36 characters: allowed is one line of at most 200"),
        ("as small", "small" * 50, "about = 278 characters: allowed is one line of at most 200"),
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
    (case,) = sources.trained_on(recipe.parent / "mine", recipe.parent, 1, 1).cases
    (cell,) = cases.cells(case, schemes.one("mine"), cases.Plan(1))
    assert cell.scenario().controllers == ["policy", "cubic"]
    assert CliRunner().invoke(app, ["evaluate", "mine", "--card", "--card-s", "1"]).exit_code == 0
    card = cards.read(Path("mine"))
    assert card is not None
    assert card.fixed.flows == "me"
    recipe.with_name("link.toml").write_text(SCENARIO.replace('"me"', '"you"'))
    with pytest.raises(ExperimentError, match=r"made: learners = \['me'\]: allowed: flows of"):
        sources.trained_on(recipe.parent / "mine", recipe.parent, 1, 1)


def test_without_a_folder_a_training_takes_one_that_is_not_there(recipe: Path) -> None:
    for name in ("recipe", "recipe-2"):
        app(["train", str(recipe)], standalone_mode=False)
        assert (recipe.parent / "trained" / name / "policy.toml").is_file()
    assert not (recipe.parent / "policies").exists()


def test_a_card_names_its_own_folder_and_what_it_was_trained_on(recipe: Path) -> None:
    other = recipe.with_name("other.toml")
    other.write_text(SCENARIO)
    train(recipe, "some/where/mine", "--on", str(other), "--learner", "me")
    page = (recipe.parent / "some/where/mine/CARD.md").read_text()
    assert "As small as it gets, trained on other." in page
    assert "    ackademy run other.toml --cc some/where/mine\n" in page
    rows = [line for line in page.splitlines() if line.startswith("| decisions |")]
    assert len(rows) == 1


def test_a_training_without_an_update_leaves_no_policy(recipe: Path) -> None:
    recipe.write_text(RECIPE.replace("warmup = 20", "warmup = 100000"))
    with pytest.raises(TrainingError, match="too few for one update") as caught:
        train(recipe, "mine")
    assert str(caught.value).startswith(f"{recipe}: 4 episodes with ")
    assert not (recipe.parent / "mine").exists()


def test_folders_of_one_name_in_two_places_share_no_checkpoints(tmp_path: Path) -> None:
    names = {folders.work_name(tmp_path / place / "mine") for place in ("a", "b")}
    assert len(names) == 2
    assert all(name.startswith("mine-") for name in names)


def test_an_interrupt_promises_only_what_is_kept(recipe: Path, tmp_path: Path) -> None:
    assert "nothing is kept" in trainers.interrupted(tmp_path)
    (tmp_path / "checkpoint-0000000001").mkdir()
    assert "--resume" in trainers.interrupted(tmp_path)


def test_resuming_without_a_checkpoint_says_that_it_begins_anew(
    recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train(recipe, "mine", "--resume")
    assert "begins anew" in capfd.readouterr().err


def test_each_training_is_a_run_of_its_own_in_tensorboard(recipe: Path) -> None:
    for _ in range(2):
        train(recipe, "mine", "--force")
    (board,) = (recipe.parent / "runs").glob("train/recipe/mine-*/tensorboard")
    assert sorted(path.name for path in board.iterdir()) == ["run-0001", "run-0002"]


def test_what_a_killed_save_left_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / ".checkpoint-999999"
    left.mkdir()
    saved = checkpoint.Checkpoint({"recipe": "one", "step": 1}, {}, "")
    checkpoint.save(saved, tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-0000000001"]
    left.mkdir()
    checkpoint.discard(tmp_path)
    assert list(tmp_path.iterdir()) == []
