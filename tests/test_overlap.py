"""Sets of networks that share some are found out."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from random import Random

import pytest

from ackademy import _core
from ackademy.backends import distributions, overlap, schemes
from ackademy.studies.benchmark import entries
from ackademy.studies.evaluate import sources
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
SEED = 20261128
FINITE = """\
about = "Two networks."
learners = ["own"]
[[scenario]]
name = "one"
[scenario.inline]
duration_s = 2
flow = [{ name = "own" }]
[scenario.inline.dumbbell]
rtt_ms = 20
[scenario.draw]
"dumbbell.bottleneck.rate_mbps" = { choice = [3.0, 4.0] }
"""


def test_what_two_sets_share_is_found_whatever_it_is_called() -> None:
    rng = Random(SEED)
    distribution = distributions.read("mixed")
    for _ in range(5):
        one = set(rng.sample(range(1000), 20))
        two = {*rng.sample(range(1000, 2000), 15), *rng.sample(sorted(one), 5)}
        digests = {seed: overlap.digest(distribution.draw(seed, 1.0)) for seed in one | two}
        assert len(set(digests.values())) == len(digests)
        both = {digests[seed] for seed in one} & {digests[seed] for seed in two}
        assert both == {digests[seed] for seed in one & two}
    drawn = distribution.draw(7, 1.0)
    text = drawn.portable()[0].replace(drawn.name, "other", 1)
    assert overlap.digest(_core.Scenario.parse(text, "other")) == overlap.digest(drawn)


def test_a_distribution_of_few_networks_shares_them(tmp_path: Path) -> None:
    distribution = _core.Distribution.parse(FINITE, "finite.toml")
    other = _core.Distribution.parse(FINITE.replace("4.0]", "5.0]"), "other.toml")
    three = _core.Distribution.parse(FINITE.replace("[3.0, 4.0]", "[7.0, 9.0]"), "three.toml")
    links = [distribution.draw(seed, 1.0) for seed in range(1000, 1010)]
    assert overlap.shared(links, distribution) == [own.name for own in links]
    assert 0 < len(overlap.shared(links, other)) < len(links)
    assert overlap.shared(links, three) == []
    assert overlap.shared(links, links[0])[0] == links[0].name


def test_an_entry_of_the_benchmark_meets_no_network_of_the_development_set(tmp_path: Path) -> None:
    own = schemes.one("cubic")
    met = [
        {overlap.digest(case.scenario) for case in entries.drawn(entry, tmp_path)}
        for entry in (
            entries.entry(own, is_quick=True),
            entries.entry(own, is_quick=True, is_development=True),
            entries.entry(schemes.one("vegas"), is_quick=True),
        )
    ]
    assert len(set.union(*met)) == sum(map(len, met)) > 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a list of two networks, and a policy that one of them chose."""
    shutil.copytree(ROOT / "data" / "policies" / "flagship", tmp_path / "mine")
    (tmp_path / "drawn.toml").write_text(FINITE.replace("[3.0, 4.0]", "[3.0, 30.0]"))
    distribution = distributions.read(tmp_path / "drawn.toml")
    digest, networks = hashlib.sha256(), []
    for own in (distribution.draw(seed, 1.0) for seed in (900, 901, 902, 903)):
        digest.update(f"{own.name}\n{own.canonical()}\n".encode())
        networks.append(overlap.digest(own))
    assert len(set(networks)) == 2
    text = f'about = "four"\ndigest = "{digest.hexdigest()}"\n[[drawn]]\n'
    text += 'distribution = "drawn.toml"\nprogress = 1.0\nfirst_seed = 900\ncount = 4\n'
    (tmp_path / "four.links").write_text(text)
    (tmp_path / "mine" / "seeds.json").write_text(json.dumps({"networks": networks[:1]}))
    return tmp_path


def test_networks_that_chose_a_policy_are_told_and_make_no_card(place: Path) -> None:
    words = ("evaluate", "mine", "cubic", "--on", "four.links")
    status, out, _ = ackademy_command(*words, cwd=place)
    assert status == 0
    told = "networks of four.links chose this policy"
    assert any(told in line and "is no judgement" in line for line in out.splitlines()), out
    before = (place / "mine" / "CARD.md").read_bytes()
    status, _, errors = ackademy_command(*words, "--card", cwd=place)
    assert status == 2
    assert errors.count("\n") == 1
    assert f"{told}: allowed: networks that did not" in errors
    assert (place / "mine" / "CARD.md").read_bytes() == before
    (place / "mine" / "seeds.json").write_text('{"networks": []}')
    assert told not in ackademy_command(*words, cwd=place)[1]


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"networks": 7}', '{"networks": [[1]]}'])
def test_a_damaged_choice_is_one_line(content: str, place: Path) -> None:
    (place / "mine" / "seeds.json").write_text(content)
    status, _, errors = ackademy_command(
        "evaluate", "mine", "cubic", "--on", "four.links", cwd=place
    )
    assert (status, errors.count("\n")) == (2, 1), errors
    assert "seeds.json: " in errors


def test_the_shipped_policy_says_which_networks_chose_it(tmp_path: Path) -> None:
    policy = ROOT / "data" / "policies" / "flagship"
    lists = ROOT / "data" / "distributions" / "lists"
    chose = sources.of_list(lists / "flagship_choice.links", tmp_path, 20)
    assert len(sources.that_chose(policy, chose)) == 20
    for name in ("flagship_validation", "flagship_unseen"):
        other = sources.of_list(lists / f"{name}.links", tmp_path, 20)
        assert sources.that_chose(policy, other) == []


def test_a_policy_that_nothing_chose_says_nothing(tmp_path: Path) -> None:
    found = sources.of_distribution("mixed", tmp_path, 2, 1)
    assert sources.that_chose(ROOT / "data" / "policies" / "aurora_mixed", found) == []
