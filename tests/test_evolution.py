"""The search by evolution strategies: what it finds, what it tries, and that it repeats."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy.errors import AckademyError, TrainingError
from ackademy.learn import deep, deep_recipe, evolution, networks
from ackademy.learn.episode_source import Sizes
from ackademy.learn.evolution import Config, Search
from ackademy.learn.networks import Tensors
from ackademy.learn.noiseless import Episode
from ackademy.learn.training_log import Checkpoints
from ackademy.policies import policy_files
from commands import ackademy_command
from two_classes import LINKS

RECIPES = Path(__file__).parents[1] / "data/recipes"
RECIPE = """\
about = "as small as it gets"
learner = "evolution"
reward = "flagship"
credit = "sent"
distribution = "links.toml"
simulations = 6
agents = 2
seed = 3
[observation]
features = ["queue", "loss_log", "action_0"]
history = 2
[decision]
every = "srtt"
[action]
map = "own_queue"
[start]
slow_start = false
loss_guard = false
[[layers]]
kind = "flatten"
[[layers]]
kind = "dense"
units = 2
activation = "tanh"
[training]
generations = 5
population = 4
step = 0.2
"""
SHAPES = {"layers.1.kernel": (3, 2), "layers.1.bias": (2,)}


def read(folder: Path, text: str = RECIPE) -> deep_recipe.Recipe:
    (folder / "links.toml").write_text(LINKS)
    (folder / "recipe.toml").write_text(text)
    return deep_recipe.read(folder / "recipe.toml")


def trained(own: deep_recipe.Recipe, folder: Path, threads: int = 1) -> tuple[bytes, str]:
    result = deep.train(own, deep.Here(threads), folder)
    return networks.to_bytes(result.weights), result.curve


class Made:
    """Runs without a simulator: a reward of the weights and the network's number.

    Args:
        reward: of what a policy's weights sum up to, on a network; `None`: no decision there.
        classes: of the networks, by number.
    """

    def __init__(self, reward: object, classes: Sequence[int] = (0,)) -> None:
        self.reward, self.classes = reward, classes
        self.calls = Counter[tuple[float, int]]()
        self.seeds: list[int] = []

    def __call__(self, weights: Tensors) -> evolution.Runner:
        """Those of a policy."""
        flat = np.concatenate([weights[name].ravel() for name in SHAPES])

        def attempt(seed: int, number: int) -> Episode:
            self.calls[float(flat.sum()), number] += 1
            self.seeds.append(seed)
            value = self.reward(flat, number)  # type: ignore[operator]
            rows = 0 if value is None else 1
            batch = {
                "reward": np.full(rows, value, np.float64),
                "class_index": np.full(rows, self.classes[number % len(self.classes)]),
                "observation": np.zeros((rows, 1, 3), np.float32),
                "sums": np.zeros((1, 4)),
            }
            return Episode(batch, 10, 100)  # type: ignore[arg-type]

        return attempt


def search(made: Made, count: int = 4, seed: int = 1, **config: float) -> Search:
    pool = ThreadPoolExecutor(1)
    begin = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    own = Config(**config)  # type: ignore[arg-type]
    return Search(made, begin, list(SHAPES), own, seed, networks=count, pool=pool)


def test_a_search_finds_the_weights_with_the_largest_reward() -> None:
    wanted = np.linspace(-1.0, 1.0, 8)
    own = search(Made(lambda flat, _: -float(np.sum((flat - wanted) ** 2))), 1)
    for _ in range(120):
        own.generation()
    assert np.abs(own.mean - wanted).max() < 0.05


def test_a_search_begins_at_zeros() -> None:
    own = search(Made(lambda *_: 0.0))
    tensors = own.tensors(own.mean)
    assert {name: value.shape for name, value in tensors.items()} == SHAPES
    assert not any(value.any() for value in tensors.values())


def test_what_is_kept_is_the_mean_of_the_latest_means() -> None:
    means = [np.array([float(i), 0.0]) for i in range(8)]
    assert evolution.averaged(means, 0.5).tolist() == [5.5, 0.0]
    assert evolution.averaged(means, 0.0).tolist() == [7.0, 0.0]
    assert evolution.averaged(means, 1.0).tolist() == [3.5, 0.0]
    assert evolution.averaged(means[:1], 0.5).tolist() == [0.0, 0.0]


def test_where_the_first_candidate_changes_nothing_no_other_is_tried() -> None:
    made = Made(lambda flat, number: float(np.tanh(flat.sum())) if number == 2 else 0.25)
    row = search(made, population=6).generation()
    assert row["acted"] == 1
    tried = Counter(number for (_, number), times in made.calls.items() for _ in range(times))
    assert tried == {0: 2, 1: 2, 2: 7, 3: 2}  # zeros and the first; all six and zeros


def test_a_candidate_is_worth_as_much_as_if_it_were_tried_everywhere() -> None:
    def reward(flat: np.ndarray, number: int) -> float:
        return 0.1 * number + (float(np.tanh(flat[0])) if number % 2 else 0.0)

    own, again = (search(Made(reward, classes=(0, 0, 0, 1)), 8, worst=0.5) for _ in range(2))
    own.generation()
    candidates = [again._strategy.ask().astype(np.float32) for _ in range(14)]
    for values, point in zip(own.values[0], candidates, strict=True):
        each = [reward(point, number) for number in range(8)]
        first, second = [each[i] for i in (0, 1, 2, 4, 5, 6)], [each[3], each[7]]
        worst = [(sorted(first)[0] + sorted(first)[1]) / 2, min(second)]
        mean = [sum(first) / 6, sum(second) / 2]
        assert values == pytest.approx((sum(worst) / 2 + sum(mean) / 2) / 2, abs=1e-6)


def test_networks_are_the_same_for_all_candidates_and_new_for_each_generation() -> None:
    own = search(made := Made(lambda flat, _: float(flat[0])))
    own.generation()
    first = set(made.seeds)
    own.generation()
    assert len(first) == 1
    assert len(set(made.seeds)) == 2
    search(other := Made(lambda flat, _: float(flat[0])), seed=2).generation()
    assert not set(other.seeds) & set(made.seeds)


def test_a_network_on_which_nothing_is_decided_does_not_count() -> None:
    def reward(flat: np.ndarray, number: int) -> float | None:
        return None if number == 0 else 0.5

    assert search(Made(reward)).generation()["zeros"] == 0.5


def test_the_same_seed_leaves_the_same_bytes_with_any_number_of_threads(tmp_path: Path) -> None:
    own = read(tmp_path)
    weights, curve = trained(own, tmp_path / "one")
    assert len(curve.splitlines()) == 6
    assert trained(own, tmp_path / "two", 3) == (weights, curve)
    assert trained(replace(own, seed=4), tmp_path / "other")[0] != weights


def test_killed_in_the_middle_and_resumed_it_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = read(tmp_path)
    whole = deep.train(own, deep.Here(2), tmp_path / "whole", snapshots=3)

    def every_row(folder: Path, fingerprint: str, resume: bool) -> Checkpoints:
        return Checkpoints(folder, fingerprint, resume, checkpoint_s=0.0)

    def kill(done: int, total: int, reward: object) -> None:
        assert total == 5
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(deep, "Checkpoints", every_row)
    with pytest.raises(KeyboardInterrupt):
        deep.train(own, deep.Here(2), tmp_path / "killed", progress=kill)
    calls = list[None]()
    monkeypatch.setattr(Search, "_worth", counted(Search._worth, calls))
    again = deep.train(own, deep.Here(2), tmp_path / "killed", resume=True, snapshots=3)
    assert len(calls) == 2 * 5  # two generations: zeros and four candidates
    assert networks.to_bytes(again.weights) == networks.to_bytes(whole.weights)
    same = ("curve", "decisions", "episodes", "updates", "packets", "ranges")
    assert all(getattr(again, name) == getattr(whole, name) for name in same)
    assert [one.decisions for one in again.snapshots] == [one.decisions for one in whole.snapshots]


def counted(method: object, calls: list[None]) -> object:
    def wrapped(*args: object) -> object:
        calls.append(None)
        return method(*args)  # type: ignore[operator]

    return wrapped


def test_what_a_search_cannot_have_is_refused_with_what_is_allowed(tmp_path: Path) -> None:
    for old, new, told in (
        ('reward = "flagship"', 'reward = "orca"', r"reward = 'orca': allowed: flagship"),
        ("population = 4", "population = 1", r"population = 1: allowed: a whole number from 2"),
        ("step = 0.2", "step = 0", r"training.step = 0: allowed: a number above 0"),
        ("step = 0.2", "worst = 1.5", r"training.worst = 1.5: allowed: a number from 0 to 1"),
        ("step = 0.2", "epochs = 2", r"training.epochs: allowed: generations, population"),
    ):
        with pytest.raises(TrainingError, match=told):
            read(tmp_path, RECIPE.replace(old, new))
    own = read(tmp_path)
    with pytest.raises(TrainingError, match=r"the action map is discrete"):
        deep.check(own, Sizes((2, 3), 2, 0))


TAUGHT = RECIPE.replace("seed = 3", 'seed = 3\nteacher = "teacher"')


def teacher(folder: Path, text: str = RECIPE) -> Tensors:
    """A policy of known weights in `teacher`."""
    own = read(folder, text)
    rng = np.random.default_rng(5)
    weights = {
        name: (0.2 * rng.standard_normal(shape)).astype(np.float32)
        for name, shape in networks.tensor_shapes(own.layers, (2, 3)).items()
    }
    policy_files.write_folder(folder / "teacher", deep.files_of(own, weights), force=True)
    return weights


DENSE = '[[layers]]\nkind = "dense"'
HIDDEN = f'{DENSE}\nunits = 4\nactivation = "tanh"\n{DENSE}'
"""a second layer before it"""


def test_a_teacher_is_known_by_what_it_answers_and_not_by_how_it_was_made(tmp_path: Path) -> None:
    teacher(tmp_path)
    own = read(tmp_path, TAUGHT)
    digest, file = own.teacher_digest(), tmp_path / "teacher" / policy_files.POLICY
    text = file.read_text()
    assert "[made]\n" in text
    file.write_text(text.replace("[made]\n", '[made]\nnote = "moved"\n'))
    assert own.teacher_digest() == digest
    file.write_text(text.replace("history = 2", "history = 1"))
    assert own.teacher_digest() != digest


def test_a_search_begins_with_the_weights_of_a_teacher_of_the_same_layers(tmp_path: Path) -> None:
    wanted = teacher(tmp_path)
    own = read(tmp_path, TAUGHT.replace("step = 0.2", "step = 1e-9"))
    found = deep.train(own, deep.Here(2), tmp_path / "work").weights
    for name, value in wanted.items():
        assert np.asarray(found[name]) == pytest.approx(value, abs=1e-6)


def test_a_teacher_that_cannot_teach_is_refused(tmp_path: Path) -> None:
    teacher(tmp_path)
    for old, new, told in (
        (DENSE, HIDDEN, "allowed: with its layers and observation"),
        ("history = 2", "history = 3", "allowed: with its layers and observation"),
        ('"teacher"', '"nobody"', "nobody"),
    ):
        own = read(tmp_path, TAUGHT.replace(old, new))
        with pytest.raises(AckademyError, match=told):
            deep.train(own, deep.Here(1), tmp_path / "work")
    text = TAUGHT.replace('"evolution"', '"ppo"').partition("[training]")[0]
    with pytest.raises(TrainingError, match="teacher: allowed: with learner = 'evolution'"):
        read(tmp_path, text)


def test_a_search_of_the_last_layer_leaves_the_others_as_the_teacher_has_them(
    tmp_path: Path,
) -> None:
    deep_one = RECIPE.replace(DENSE, HIDDEN)
    wanted = teacher(tmp_path, deep_one)
    text = deep_one.replace("seed = 3", 'seed = 3\nteacher = "teacher"')
    own = read(tmp_path, text.replace("step = 0.2", "step = 0.2\nlast_layer = true"))
    found = deep.train(own, deep.Here(2), tmp_path / "work", snapshots=2)
    for name, value in wanted.items():
        for weights in (found.weights, found.snapshots[0].weights):
            assert np.array_equal(weights[name], value) == (not name.startswith("layers.2."))
    whole = deep.train(read(tmp_path, text), deep.Here(2), tmp_path / "whole")
    assert not any(np.array_equal(whole.weights[name], value) for name, value in wanted.items())
    lonely = deep_one.replace("step = 0.2", "last_layer = true")
    with pytest.raises(TrainingError, match="last_layer = true: allowed: with a teacher"):
        read(tmp_path, lonely)


def test_another_teacher_is_another_training(tmp_path: Path) -> None:
    teacher(tmp_path)
    own = read(tmp_path, TAUGHT)
    before = deep.fingerprint_of(own)
    (tmp_path / "teacher" / "weights.safetensors").write_bytes(b"others")
    assert deep.fingerprint_of(own) != before


def test_train_flagship_searches_by_such_a_recipe(tmp_path: Path) -> None:
    teacher(tmp_path)
    read(tmp_path, TAUGHT)
    listed = (RECIPES.parent / "distributions/lists/flagship_choice.links").as_posix()
    sets = (f"networks={listed}", "count=4", "seeds=1")
    words = ["train", "recipe.toml", *(w for own in sets for w in ("--set", f"selection.{own}"))]
    status, _, errors = ackademy_command(*words, "--out", "mine", cwd=tmp_path)
    assert status == 0, errors
    policy = tomllib.loads((tmp_path / "mine/policy.toml").read_text())
    assert policy["made"]["learner"] == "evolution"
    assert policy["made"]["training"]["generations"] == 5
    assert policy["made"]["teacher"] == "teacher"
    card = (tmp_path / "mine/CARD.md").read_text()
    assert "evolution strategy" in card
    assert "began at the answers of `teacher`." in card
    assert "worth of the candidates" in (tmp_path / "mine/curve.svg").read_text()


@pytest.mark.parametrize("name", ["flagship_evolution", "flagship_many_flows"])
def test_the_recipes_of_the_searches_give_a_policy_over_the_law(name: str) -> None:
    recipe = deep_recipe.read(RECIPES / f"{name}.toml")
    deep.check(recipe, Sizes((8, 13), 0, 2))
    assert recipe.teacher is not None
    assert deep.taught(recipe, recipe.teacher)
    assert recipe.map in deep_recipe.LAWS
    assert recipe.acts_under_contention_alone
    assert recipe.source.is_file()
