"""Several seeds of one recipe: what is judged, what is chosen, and that nothing is done twice."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("flax", reason="needs train: an extra")

from ackademy import _core, lookup
from ackademy.backends import distributions, link_lists
from ackademy.backends.link_lists import Link
from ackademy.backends.runs import simulate
from ackademy.errors import TrainingError
from ackademy.learn import (
    deep,
    deep_recipe,
    noiseless,
    ranges,
    recipe_source,
    rollouts,
    seeds,
    selection,
)
from ackademy.learn.episode_source import Sizes
from ackademy.learn.layers import Dense
from ackademy.learn.selection import Judge, Judgement
from ackademy.learn.trained import Snapshot
from ackademy.learn.training_log import Checkpoints
from ackademy.policies import policy_files
from commands import ackademy_command
from two_classes import LINKS

RECIPE = """\
about = "as small as it gets"
learner = "ppo"
reward = "flagship"
credit = "sent"
distribution = "links.toml"
simulations = 4
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
decisions = 1280
horizon = 128
minibatch = 64
epochs = 2
critic_units = 8
advantages_per_class = true
"""
LIST = """\
about = "six of them"
digest = "{digest}"
[[drawn]]
distribution = "links.toml"
progress = 1.0
first_seed = 900
count = 6
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a recipe, what it is trained on and a list of networks."""
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "links.toml").write_text(LINKS)
    digest = hashlib.sha256()
    drawn = distributions.drawn(distributions.read(tmp_path / "links.toml"), 900, 6, 1.0)
    for _, scenario in drawn:
        digest.update(f"{scenario.name}\n{scenario.canonical()}\n".encode())
    (tmp_path / "six.links").write_text(LIST.format(digest=digest.hexdigest()))
    return tmp_path


def judge(place: Path, threads: int = 1, folder: str = "judged") -> Judge:
    recipe = deep_recipe.read(place / "recipe.toml")
    links = link_lists.read(place / "six.links").links
    return Judge(recipe, ["learner"], links, threads, place / folder)


def zeros(place: Path) -> dict[str, np.ndarray]:
    return deep.zeros(deep_recipe.read(place / "recipe.toml"), (2, 3))


def quiet(_: str) -> Callable[[int, int], None]:
    return lambda done, total: None


def trained(place: Path, plan: seeds.Plan, work: str = "work") -> seeds.Seeds:
    recipe = deep_recipe.read(place / "recipe.toml")
    return seeds.train(recipe, plan, deep.Here(1), judge(place), place / work, quiet)


def test_the_mean_over_classes_of_their_worst_quarter_is_the_judgement() -> None:
    assert noiseless.worst_quarter([0.5]) == 0.5
    assert noiseless.worst_quarter([3.0, 1.0, 2.0, 4.0]) == 1.0
    assert noiseless.worst_quarter([3.0, 1.0, 2.0, 4.0, 5.0]) == 1.5
    own = Judgement(("B", "A", "A", "A", "A", "A"), (0.2, 0.9, 0.1, 0.8, 0.3, 0.7))
    assert own.of_classes == {"A": pytest.approx(0.2), "B": 0.2}
    assert own.mean == pytest.approx(0.2)


def test_fewer_networks_are_as_many_of_each_class_by_the_seed(place: Path) -> None:
    scenario = distributions.read(place / "links.toml").draw(1)
    links = [Link(f"{k}{i}", k, scenario) for k, n in (("A", 9), ("B", 2)) for i in range(n)]
    some = selection.thinned(links, 4)
    assert [link.kind for link in some] == ["A", "A", "B", "B"]
    assert selection.thinned(links, 4) == some
    assert any(selection.thinned(links, 4, seed) != some for seed in range(1, 9))
    assert selection.thinned(links, 99) == tuple(links)
    assert len(selection.thinned(links, 7)) == 7


def test_a_judgement_is_the_same_with_any_number_of_threads_and_is_made_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    first = judge(place).judge(zeros(place), lambda *done: told.append(done))
    assert told == [(i, 6) for i in range(1, 7)]
    assert all(-1.0 <= reward <= 1.0 for reward in first.rewards)
    assert len(set(first.rewards)) == 6
    assert sorted(set(first.classes)) == ["A", "B"]
    assert judge(place, 3, "other").judge(zeros(place), lambda *_: None) == first
    kept = next((place / "judged").iterdir())
    monkeypatch.setattr(Judge, "_reward", lambda *_: pytest.fail("judged twice"))
    assert judge(place).judge(zeros(place), lambda *_: None) == first
    kept.write_text("{")  # damaged: it is made again
    with pytest.raises(pytest.fail.Exception):
        judge(place).judge(zeros(place), lambda *_: None)


def test_other_weights_get_another_judgement(place: Path) -> None:
    bold = {name: value + np.float32(0.3) for name, value in zeros(place).items()}
    own = judge(place)
    assert own.judge(bold, lambda *_: None) != own.judge(zeros(place), lambda *_: None)


def test_a_policy_of_zeros_does_what_the_controller_own_queue_does(place: Path) -> None:
    recipe = deep_recipe.read(place / "recipe.toml")
    folder = place / "zeros"
    policy_files.write_folder(folder, deep.files_of(recipe, zeros(place)))
    for link in link_lists.read(place / "six.links").links:
        learned = link.scenario.with_controller("policy", {"policy": str(folder)}, ["learner"])
        law = link.scenario.with_controller("own_queue", {}, ["learner"])
        one, other = simulate(learned, 1, 0.0), simulate(law, 1, 0.0)
        assert one.flows.drop("controller").equals(other.flows.drop("controller"))
        assert one.links.equals(other.links)
        decisions = one.counters.filter(pl.col("name") == "decisions")["value"]
        assert (decisions > 20).all()


def test_a_network_gets_the_mean_reward_of_decisions_without_noise(place: Path) -> None:
    link = link_lists.read(place / "six.links").links[0]
    recipe = deep_recipe.read(place / "recipe.toml")
    collector = _core.Rollouts(
        link.scenario, recipe.settings_text(), n=1, agents=2, learners=["learner"], seed=0,
        reward="flagship", threads=1,
    )  # fmt: skip
    noise = np.full(2, noiseless.NO_NOISE, np.float32)
    batch = collector.collect(deep.files_of(recipe, zeros(place)), noise, 10_000, episodes=1)
    assert not np.asarray(batch["action"]).any()
    assert batch["reward"] is not None
    found = judge(place).judge(zeros(place), lambda *_: None).rewards[0]
    assert found == pytest.approx(float(np.mean(batch["reward"])))


def test_the_recipe_of_the_flagship_gives_a_policy_over_the_law() -> None:
    recipe = deep_recipe.read(Path(__file__).parents[1] / "data/recipes" / "flagship.toml")
    deep.check(recipe, Sizes((8, 13), 0, 2))
    assert recipe.map in deep_recipe.LAWS
    units = [layer.units for layer in recipe.layers if isinstance(layer, Dense)]
    assert units == [64, 64, 2]
    assert recipe.source.is_file()


def test_a_policy_may_act_under_contention_alone_though_its_training_acts_at_all_times(
    place: Path,
) -> None:
    recipe = deep_recipe.read(place / "recipe.toml")
    text = RECIPE.replace("[[layers]]", '[deployed]\nwhen = "contention"\n[[layers]]', 1)
    (place / "recipe.toml").write_text(text)
    deployed = deep_recipe.read(place / "recipe.toml")
    assert deployed.settings_text() == recipe.settings_text()
    assert deep.fingerprint_of(deployed) == deep.fingerprint_of(recipe)
    files = deep.files_of(deployed, zeros(place))
    written = tomllib.loads(files[policy_files.POLICY].decode())
    assert written["action"] == {"map": "own_queue", "when": "contention"}
    bold = {name: value + np.float32(0.3) for name, value in zeros(place).items()}
    links = link_lists.read(place / "six.links").links
    at_all_times = Judge(recipe, ["learner"], links, 1, place / "judged")
    assert judge(place).judge(bold, lambda *_: None) != at_all_times.judge(bold, lambda *_: None)


def test_a_table_of_the_deployed_policy_that_says_more_is_refused(place: Path) -> None:
    text = RECIPE.replace("[[layers]]", "[deployed]\nscale = 1.0\n[[layers]]", 1)
    (place / "recipe.toml").write_text(text)
    with pytest.raises(TrainingError, match=r"deployed: scale: no such key; allowed: when"):
        deep_recipe.read(place / "recipe.toml")


def test_networks_that_are_trained_on_do_not_choose(place: Path) -> None:
    drawn = distributions.read(place / "links.toml").draw(900, 1.0)
    distributions.save(drawn, place / "own.toml")
    scenario = _core.Scenario.parse((place / "own.toml").read_text(), str(place / "own.toml"))
    digest = hashlib.sha256(f"own.toml\n{scenario.canonical()}\n".encode()).hexdigest()
    listed = f'about = "one"\ndigest = "{digest}"\nfiles = ["own.toml"]\n'
    (place / "one.links").write_text(listed)
    words = ["--set", "selection.networks=one.links", "--set", "selection.seeds=1"]
    told = ackademy_command("train", "recipe.toml", "--on", "own.toml", *words, cwd=place)
    assert told[0] == 2, told
    assert told[2].count("\n") == 1
    name = scenario.name
    assert f"selection.networks: {name} is trained on, too: allowed: networks that no" in told[2]
    assert not (place / "trained").exists()


def test_a_reward_that_the_core_does_not_compute_cannot_judge(place: Path) -> None:
    recipe = replace(deep_recipe.read(place / "recipe.toml"), reward="orca")
    with pytest.raises(TrainingError, match="reward = 'orca': allowed: flagship"):
        Judge(recipe, ["learner"], [], 1, place)


def test_the_best_of_all_seeds_wins_and_nothing_is_trained_twice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = trained(place, seeds.Plan(2, stop_after=0))
    assert [row.seed for row in found.rows] == [None, 3, 3, 3, 4, 4, 4]
    made = [row.decisions for row in found.rows[1:4]]
    assert made == sorted(set(made))
    assert 0.6 * made[2] <= made[0] <= 0.8 * made[2]
    assert made[2] >= 1280
    best = max(row.judgement.mean for row in found.rows[1:])
    assert found.best.judgement.mean == best
    assert found.winner.decisions == found.best.decisions
    assert found.winner.recipe.seed == found.best.seed
    again = judge(place).judge(
        {n: np.asarray(v) for n, v in found.winner.weights.items()}, lambda *_: None
    )
    assert again.mean == best
    monkeypatch.setattr(deep, "train", lambda *_, **__: pytest.fail("trained twice"))
    monkeypatch.setattr(Judge, "_reward", lambda *_: pytest.fail("judged twice"))
    repeated = trained(place, seeds.Plan(2, stop_after=0))
    assert repeated.rows == found.rows
    assert trained(place, seeds.Plan(1, stop_after=0)).rows == found.rows[:4]


def test_killed_in_a_training_it_goes_on_to_the_same_policies(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = seeds.Plan(1, stop_after=0)
    whole = trained(place, plan, "whole")

    def every_row(folder: Path, fingerprint: str, resume: bool) -> Checkpoints:
        return Checkpoints(folder, fingerprint, resume, checkpoint_s=0.0)

    monkeypatch.setattr(deep, "Checkpoints", every_row)
    rows = 0

    def killing(_: str) -> Callable[[int, int], None]:
        def told(done: int, total: int) -> None:
            nonlocal rows
            rows += total == 1280
            if rows == 8:
                rows += 1
                raise KeyboardInterrupt

        return told

    recipe = deep_recipe.read(place / "recipe.toml")
    with pytest.raises(KeyboardInterrupt):
        seeds.train(recipe, plan, deep.Here(1), judge(place), place / "killed", killing)
    resumed = trained(place, plan, "killed")
    assert resumed.rows == whole.rows
    assert resumed.winner.curve == whole.winner.curve
    assert resumed.winner.ranges == whole.winner.ranges


@pytest.mark.parametrize("better", [True, False])
def test_a_training_that_is_below_the_law_is_stopped(
    place: Path, monkeypatch: pytest.MonkeyPatch, better: bool
) -> None:
    judged: list[int] = []

    def one_after_the_other(self: Judge, weights: object, told: object) -> Judgement:
        judged.append(len(judged))
        rising = 0.01 * len(judged)
        return Judgement(("A",), (rising if better else -rising,))

    monkeypatch.setattr(Judge, "judge", one_after_the_other)
    found = trained(place, seeds.Plan(1, stop_after=300))
    own = found.trained[3]
    assert own.is_stopped is not better
    assert all(row.is_stopped is not better for row in found.rows[1:])
    if better:
        assert own.decisions >= 1280
    else:
        assert 300 <= own.decisions < 1280
        assert found.rows[-1].decisions == own.decisions


def test_ranges_hold_all_but_a_thousandth_at_each_end() -> None:
    seen = ranges.Seen()
    rows = np.random.default_rng(1).permutation(10_000).astype(np.float32)
    observation = np.full((10_000, 2, 2), 7e7, np.float32)  # earlier vectors do not count
    observation[:, -1, 0], observation[:, -1, 1] = rows, 0.25
    for part in np.split(observation, 10):
        seen.add(part)
    (low, high), constant = seen.ranges()
    assert (low, high) == (9.0, 9990.0)
    assert constant == (0.25, 0.25)
    assert ranges.Seen().ranges() == ()


def test_snapshots_are_spread_over_the_last_fifth() -> None:
    log = rollouts.PolicyLog()
    for index in range(100):
        weights = {"w": np.full(1, index, np.float32)}
        log.add(rollouts.Policy(weights, np.zeros(1, np.float32)), 10 * index)
    last = Snapshot(1000, {})
    assert [one.decisions for one in log.snapshots(last, 3)] == [800, 900, 1000]
    assert [float(one.weights["w"][0]) for one in log.snapshots(last, 3)[:2]] == [80.0, 90.0]
    assert log.snapshots(last, 1) == (last,)
    assert log.snapshots(last, 0) == ()


def test_the_command_leaves_a_policy_that_runs_and_says_how_it_was_chosen(place: Path) -> None:
    words = ["train", "recipe.toml", "--set", "selection.networks=six.links",
             "--set", "selection.count=4", "--set", "selection.seeds=2",
             "--set", "training.decisions=1280", "--jobs", "2"]  # fmt: skip
    status, out, errors = ackademy_command(*words, "--out", "mine", cwd=place)
    assert status == 0, errors
    assert "seed 3: " in out
    assert "seed 4: " in out
    assert " s of CPU" in out
    assert "than own_queue alone: " in out
    folder = place / "mine"
    table = (folder / "seeds.csv").read_text().splitlines()
    assert table[0] == "seed,decisions,stopped,chosen,judgement,A,B"
    assert len(table) == 1 + 1 + 2 * 3
    assert sum(",true," in row for row in table) == 1
    told = json.loads((folder / "seeds.json").read_text())
    assert len(told["policies"]) == 7
    assert len(told["networks"]) == 4
    assert told["best"]["beats_own_queue"] == (told["best"]["judgement"] > told["own_queue_alone"])
    card = (folder / "CARD.md").read_text()
    assert "## How it was chosen" in card
    assert "decided under proposed assumptions" in card
    assert "own_queue alone decides" in card
    curves = (folder / "curves.csv").read_text().splitlines()
    assert curves[0].startswith("seed,decisions,")
    assert {row.split(",")[0] for row in curves[1:]} == {"3", "4"}
    assert (folder / "curves.svg").read_text().count("reward per decision") == 2
    described = tomllib.loads((folder / "policy.toml").read_text())
    pairs = described["guard"]["ranges"]
    assert len(pairs) == 3
    assert all(low <= high for low, high in pairs)
    assert described["made"]["command"].startswith("ackademy train recipe.toml --set ")
    policy = _core.Policy.open(folder)
    assert policy.features == ["queue", "loss_log", "action_0"]
    status, _, errors = ackademy_command(*words, "--out", "again", cwd=place)
    assert status == 0, errors
    for name in ("weights.safetensors", "seeds.csv", "seeds.json", "curve.csv"):
        assert (place / "again" / name).read_bytes() == (folder / name).read_bytes()
    status, _, errors = ackademy_command(*words, "--out", "mine", cwd=place)
    assert status == 2
    assert "holds a policy" in errors
    best = pl.read_csv(folder / "seeds.csv").filter(pl.col("chosen"))["seed"].item()
    other = {3: 4, 4: 3}[best]
    status, out, errors = ackademy_command(
        *words, "--set", f"selection.choose={other}", "--out", "other", cwd=place
    )
    assert status == 0, errors
    assert "policy that was asked for is judged" in out
    rows = pl.read_csv(place / "other" / "seeds.csv")
    assert len(rows) == 7
    own = rows.filter(pl.col("seed") == other)["judgement"].max()
    assert rows.filter(pl.col("chosen")).select("seed", "judgement").rows() == [(other, own)]
    status, _, errors = ackademy_command(
        *words, "--set", "selection.choose=5", "--out", "none", cwd=place
    )
    assert status == 2
    assert "choose = 5: allowed: a whole number from 3 to 4" in errors


def test_a_class_that_is_left_out_is_not_drawn() -> None:
    path = lookup.find("flagship", "recipe", TrainingError)
    usual = recipe_source.read(deep_recipe.read(path))
    less = deep_recipe.read(path, changes={"without_classes": ["G", "H", "I"]})
    own = recipe_source.read(less)
    assert isinstance(usual, _core.Distribution)
    assert isinstance(own, _core.Distribution)
    assert own.classes == [kind for kind in usual.classes if kind not in "GHI"]
    kept = [usual.classes[place] not in "GHI" for place in usual.class_of_each]
    whole = usual.weights(1.0)
    assert own.weights(1.0) == [w for w, is_kept in zip(whole, kept, strict=True) if is_kept]
    assert own.digest != usual.digest
    drawn = [own.draw(seed, 1.0).controllers for seed in range(40)]
    assert len({name for names in drawn for name in names}) == 1
    assert less.policy_about.endswith("trained on flagship without G, H, I")


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
