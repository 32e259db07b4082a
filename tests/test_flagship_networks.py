"""The networks of the flagship: what it is trained on, chosen by and judged by."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ackademy import _core
from ackademy.backends import distributions, link_lists
from ackademy.envs.metrics import TRUTH_COLUMNS
from ackademy.errors import ExperimentError

ROOT = Path(__file__).parents[1]
LISTS = ROOT / "data/distributions" / "lists"
CLASSES = list("ABCDEFGHIJK")
WEIGHTS = {
    0.0: [0.50, 0.20, 0.10, 0.10, 0.10, 0, 0, 0, 0, 0, 0],
    0.3: [0.20, 0.15, 0.15, 0.10, 0.15, 0.05, 0.10, 0, 0.05, 0.05, 0],
    1.0: [0.08, 0.12, 0.14, 0.11, 0.15, 0.10, 0.12, 0.05, 0.05, 0.05, 0.03],
}
"""of the classes over the training"""
SETTINGS = """\
[observation]
features = ["rtt_mean"]
[decision]
every = "srtt"
min_ms = 10
[action]
map = "cwnd_factor"
scale = 0.2
"""


@pytest.fixture(scope="module")
def training() -> _core.Distribution:
    return distributions.read(ROOT / "data/distributions" / "flagship.toml")


@pytest.fixture(scope="module")
def held_out() -> _core.Distribution:
    return distributions.read(ROOT / "data/distributions" / "flagship_held_out.toml")


def dumbbells(
    distribution: _core.Distribution, count: int
) -> Iterator[tuple[str, dict[str, float], dict[str, object]]]:
    """Name, rate, round trip and duration, and all there is, of drawn dumbbells of one rate."""
    for seed, scenario in distributions.drawn(distribution, 0, count, 1.0):
        table = tomllib.loads(scenario.resolved())
        link = table.get("dumbbell", {}).get("bottleneck", {})
        if "rate_mbps" in link and "rtt_ms" in table["dumbbell"]:
            numbers = {
                "rate_mbps": link["rate_mbps"],
                "rtt_ms": table["dumbbell"]["rtt_ms"],
                "duration_s": table["duration_s"],
            }
            yield scenario.name.removesuffix(f"-{seed}"), numbers, table


@pytest.mark.parametrize("progress", WEIGHTS)
def test_classes_have_their_weights_over_the_training(
    training: _core.Distribution, progress: float
) -> None:
    assert training.classes == CLASSES
    weights = np.zeros(len(CLASSES))
    np.add.at(weights, training.class_of_each, training.weights(progress))
    assert weights == pytest.approx(WEIGHTS[progress], abs=2e-4)


def test_episodes_last_400_round_trips_on_at_most_1000_packets(
    training: _core.Distribution,
) -> None:
    seen = 0
    for name, link, _ in dumbbells(training, 300):
        if name != "policer":
            assert link["rate_mbps"] * link["rtt_ms"] <= 12_000.1
            assert 1 <= link["rate_mbps"] <= 200
        assert 5 <= link["rtt_ms"] <= 300
        assert link["duration_s"] == pytest.approx(np.clip(0.4 * link["rtt_ms"], 6, 60))
        seen += 1
    assert seen > 100


def test_every_kind_of_network_runs_and_has_a_truth(training: _core.Distribution) -> None:
    text = (ROOT / "data/distributions" / "flagship.toml").read_text(encoding="utf-8")
    assert len(training.names) == text.count("[[scenario]]") == 22
    left = set(training.names)
    for seed, scenario in distributions.drawn(training, 0, 2000, 1.0):
        name = scenario.name.removesuffix(f"-{seed}")
        if name not in left:
            continue
        left.remove(name)
        own = _core.Episodes(
            scenario, SETTINGS, n=1, agents=8, learners=["learner*"], seed=1, threads=1, truth=True
        )
        own.reset()
        for _ in range(40):
            own.step(np.zeros((1, 8, 1), np.float32))
        assert np.isfinite(own.truth).all(), name
        assert own.truth[..., TRUTH_COLUMNS.index("capacity_mbps")].max() > 0.0, name
        if not left:
            break
    assert not left, "never drawn"


@pytest.mark.parametrize(
    ("name", "count"),
    [("flagship_validation", 128), ("flagship_unseen", 128), ("flagship_choice", 640)],
)
def test_a_list_has_the_digest_of_its_networks(name: str, count: int) -> None:
    found = link_lists.read(LISTS / f"{name}.links")
    drawn = [link for link in found.links if link.kind != "file"]
    assert len(drawn) == count
    assert len({link.name for link in found.links}) == len(found.links)
    if name != "flagship_unseen":
        assert {link.kind for link in drawn} == set(CLASSES)


def drawn_numbers(name: str) -> dict[str, str]:
    """Every number of many digits in a list's drawn networks: a draw, with the network's name."""
    links = link_lists.read(LISTS / name).links
    return {
        number: link.name
        for link in links
        if link.kind != "file"
        for number in re.findall(r"\d+\.\d{9,}", link.scenario.resolved())
    }


def test_no_two_networks_of_different_lists_share_a_draw() -> None:
    lists = {path.name: drawn_numbers(path.name) for path in sorted(LISTS.glob("*.links"))}
    assert len(lists) == 4
    for (one, ours), (other, theirs) in itertools.combinations(lists.items(), 2):
        assert len(ours) > 250
        shared = sorted((ours[number], theirs[number]) for number in ours.keys() & theirs.keys())
        assert not shared, (one, other)


def test_the_same_seed_of_two_distributions_shares_draws_and_two_streams_do_not(
    training: _core.Distribution, held_out: _core.Distribution
) -> None:
    ours, theirs = (
        {link["rtt_ms"] for _, link, _ in dumbbells(own, 50)} for own in (training, held_out)
    )
    assert ours & theirs  # what a list of held-out networks must not be made of
    one, other = (distributions.stream_seeds(name, 1000) for name in ("one", "other"))
    assert len({*one, *other}) == 2000
    assert min(*one, *other) >= distributions.STREAMS_FROM
    assert max(*one, *other) <= distributions.SEED_MAX
    assert distributions.stream_seeds("one", 10) == one[:10]


def test_a_list_of_other_networks_is_refused(tmp_path: Path) -> None:
    text = (LISTS / "flagship_unseen.links").read_text(encoding="utf-8")
    other = tmp_path / "list.links"
    text = text.replace('"../', f'"{LISTS.parent}/')
    other.write_text(text.replace('stream = "flagship_unseen"', 'stream = "another"'))
    with pytest.raises(
        ExperimentError, match=r"list\.links: digest = '[0-9a-f]{64}': allowed: that"
    ):
        link_lists.read(other)
    other.write_text(text.replace("count", "first_seed = 1\ncount"))
    with pytest.raises(ExperimentError, match="first_seed = 1: allowed: one of first_seed, stream"):
        link_lists.read(other)
    other.write_text('about = ""\ndigest = ""\n')
    with pytest.raises(ExperimentError, match=r"drawn = absent: allowed: one \[\[drawn\]\]"):
        link_lists.read(other)


def test_each_kind_of_held_out_network_is_beyond_the_training(
    held_out: _core.Distribution,
) -> None:
    kinds = set()
    for name, link, table in dumbbells(held_out, 200):
        kinds.add(name)
        dumbbell, flows = table["dumbbell"], table["flow"]
        assert isinstance(dumbbell, dict)
        assert isinstance(flows, list)
        bottleneck = dumbbell["bottleneck"]
        bdp = bottleneck["queue"].get("bdp", 1.0)
        beyond = {
            "slow": link["rate_mbps"] <= 1,
            "fast": link["rate_mbps"] >= 200,
            "near": link["rtt_ms"] <= 5,
            "far": link["rtt_ms"] >= 300,
            "lossy": bottleneck.get("loss", {}).get("ratio", 0.0) >= 0.05,
            "crowd": flows[0]["count"] >= 16,
            "shallow": bdp == 0.02,
            "deep": bdp >= 16,
            "deep_beside_cubic": bdp >= 16,
            "dualpi2": bottleneck["queue"]["kind"] == "dualpi2",
        }
        assert beyond[name], name
    assert kinds == set(held_out.names) - {"handovers"}


def test_no_recipe_trains_on_the_held_out_networks() -> None:
    recipes = [*ROOT.glob("data/recipes/*.toml"), *ROOT.glob("research/recipes/*.toml")]
    assert recipes
    assert not [path for path in recipes if "held_out" in path.read_text(encoding="utf-8")]
