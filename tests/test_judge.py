"""Schemes on a fixed list of networks: fair shares, dominance, and the command."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ackademy.backends import link_lists, schemes
from ackademy.cli import app
from ackademy.errors import ExperimentError
from ackademy.stats.intervals import NOTHING, median_interval
from ackademy.stats.league_metrics import ParetoPoint
from ackademy.studies import judgement
from ackademy.studies.judgement import Network, Study

NETWORK = """\
name = "{name}"
duration_s = 5
[dumbbell]
rtt_ms = 40
bottleneck = {{ rate_mbps = {rate}, queue = {{ kind = "drop_tail", packets = 50 }} }}
[[flow]]
name = "learner"
[[flow]]
name = "cross"
start_s = 1
"""


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """A list of three networks."""
    for name, rate in (("a", 5), ("b", 10), ("c", 20)):
        (tmp_path / f"{name}.toml").write_text(NETWORK.format(name=name, rate=rate))
    file = tmp_path / "three.links"
    text = 'about = "Three networks."\nfiles = ["a.toml", "b.toml", "c.toml"]\ndigest = "{}"\n'
    file.write_text(text.format(""))
    with pytest.raises(ExperimentError) as told:
        link_lists.read(file)
    digests = re.findall("[0-9a-f]{64}", str(told.value))
    file.write_text(text.format(digests[0]))
    return file


@pytest.mark.parametrize(
    ("flows", "own", "expected"),
    [
        ([(0.0, 10.0)], [True], 1000.0),
        ([(0.0, 10.0), (0.0, 10.0)], [True, False], 500.0),
        ([(0.0, 10.0), (5.0, 99.0)], [True, False], 750.0),
        ([(0.0, 10.0), (5.0, 5.0)], [False, True], 250.0),
        ([(0.0, 4.0), (2.0, 4.0)], [True, True], 600.0),
        ([(0.0, 4.0)], [False], 0.0),
    ],
)
def test_active_flows_share_equally_at_any_time(
    flows: list[tuple[float, float]], own: list[bool], expected: float
) -> None:
    assert judgement.fair_bytes(flows, own, 1000.0, 10.0) == pytest.approx(expected)


def test_the_interval_of_a_median_holds_for_any_distribution() -> None:
    assert median_interval(np.array([])) == NOTHING
    six = median_interval(np.array([5.0, 1.0, 2.0, math.nan, 3.0, 4.0, 9.0]))
    assert (six.value, six.low, six.high) == (3.5, 1.0, 9.0)
    rng = np.random.default_rng(1)
    for n in (9, 40):
        found = [median_interval(np.exp(rng.normal(size=n))) for _ in range(2000)]
        covered = np.mean([own.contains(1.0) for own in found])
        assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 2000), n
        assert max(own.high - own.low for own in found) < 60.0


def judged(names: str) -> Study:
    """A study of schemes without runs."""
    own = tuple(schemes.EvaluatedScheme(name, name) for name in names)
    return Study(own, names[1], "list", "", "", (), ())


def test_a_scheme_is_counted_over_the_reference_and_under_anybody() -> None:
    def network(**points: tuple[float, float, float]) -> Network:
        found = {name: ParetoPoint(*own) for name, own in points.items()}
        return Network("n", "A", 100.0, found)

    good, slow, lossy = (1.0, 0.1, 0.0), (1.0, 2.0, 0.0), (1.2, 0.1, 0.1)
    found = [
        network(a=good, b=slow, c=lossy),
        network(a=slow, b=good, c=good),
        network(a=good, b=good, c=slow),
        network(a=(0.5, math.nan, 0.0), b=slow, c=(0.96, 0.3, 0.0)),
    ]
    study = judged("abc")
    own = judgement.verdicts(study, found)[0]
    assert (own.scheme, own.networks) == ("a", 4)
    parts = (own.dominates_reference, own.dominated_by_reference, own.dominated)
    assert [part.value for part in parts] == [0.25, 0.5, 0.5]
    assert own.share.value == 1.0, "more than all counts as all"
    assert own.share_to_best.low == 0.5
    assert own.wait_beyond.value == 0.0, "0, 1.9, 0; the last has no delay"
    assert judgement.dominance(study, found)["a"] == {"b": 0.25, "c": 0.5}
    assert list(judgement.by_kind(study, found)) == ["A"]


def test_the_command_judges_prints_and_continues(links: Path, tmp_path: Path) -> None:
    def run(*more: str) -> str:
        words = ["new_reno", "--links", str(links), "--against", "cubic,vegas", "--jobs", "1"]
        words += ["--work", str(tmp_path / "runs"), "--html", str(tmp_path / "page.html"), *more]
        result = CliRunner().invoke(app, ["judge", *words])
        assert result.exit_code == 0, result.output
        return result.output

    one = run("--networks", "2")
    assert "6 simulations run, 0 found finished" in one, one
    table = (tmp_path / "page.csv").read_bytes()
    assert table.count(b"\n") == 1 + 6
    two = run("--markdown", str(tmp_path / "page.md"))
    assert "3 simulations run, 6 found finished" in two, two
    assert "dominates cubic" in (tmp_path / "page.md").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "Who dominates whom" in page
    assert "Three networks." in page
    shares = judgement.networks(
        judgement.study(links, [schemes.evaluated(own) for own in ("new_reno", "cubic", "vegas")]),
        tmp_path / "runs" / "judge",
    )  # fmt: skip
    assert all(0.2 < own.points["new_reno"].share < 1.5 for own in shares), shares


def test_a_list_says_who_is_judged(links: Path, tmp_path: Path) -> None:
    found = [schemes.evaluated(own) for own in ("vegas", "cubic")]
    assert {own.learners for own in judgement.study(links, found).cases} == {("*",)}
    text = links.read_text()
    links.write_text(text + '[flows]\n"b.toml" = "learn*"\n')
    first, other, _ = judgement.study(links, found).cases
    cell = judgement.study(links, found).cells(tmp_path)[2].scenario()
    assert (first.learners, other.learners) == (("*",), ("learn*",))
    assert cell.controllers == ["vegas", "new_reno"]
    links.write_text(text + '[flows]\n"b.toml" = "none"\n')
    with pytest.raises(ExperimentError, match=r"b\.toml = 'none': allowed: of learner, cross"):
        judgement.study(links, found)
    links.write_text(text + '[flows]\n"d.toml" = "none"\n')
    with pytest.raises(ExperimentError, match=r"d\.toml"):
        judgement.study(links, found)


def test_the_card_of_a_policy_gets_the_tables_in_one_place(links: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(Path(__file__).parents[1] / "policies" / "aurora_mixed", folder)

    def run(*more: str) -> str:
        words = [
            str(folder),
            "--links",
            str(links),
            "--jobs",
            "1",
            "--work",
            str(tmp_path / "runs"),
        ]
        words += ["--html", str(tmp_path / "page.html"), "--card", *more]
        result = CliRunner().invoke(app, ["judge", *words])
        assert result.exit_code == 0, result.output
        return (folder / "CARD.md").read_text()

    one = run("--against", "cubic,vegas", "--networks", "2")
    assert "2 networks, one seed each" in one
    assert re.search(r"\n    [0-9a-f]{64}\n", one)
    assert re.search(r"Of [1-9]\d* decisions the guard of unfamiliar networks left 0\.0 %", one)
    two = run("--against", "cubic")
    assert "3 networks, one seed each" in two
    assert two.count("<!-- judge three -->") == two.count("## On `three`") == 1
    assert "vegas" not in two.split("<!-- judge three -->")[1]
    refused = CliRunner().invoke(app, ["judge", "vegas", "--links", str(links), "--card"])
    assert "judge --card: vegas: allowed: a policy's folder" in str(refused.exception)


def test_what_cannot_be_judged_is_one_line(links: Path, tmp_path: Path) -> None:
    for words, expected in (
        (["cubic", "--against", "cubic"], "cubic: allowed: every controller or policy once"),
        (["cubic", "--against", ""], "--against '': allowed: one controller or more"),
        (["bbr1", "--against", "cubic", "--links", str(tmp_path / "none.links")], "none.links"),
    ):
        more = [] if "--links" in words else ["--links", str(links)]
        result = CliRunner().invoke(app, ["judge", *words, *more])
        told = str(result.exception) + result.output
        assert result.exit_code != 0
        assert expected in told, told


DRAWN = """\
about = "x"
digest = "x"
[[drawn]]
distribution = "DISTRIBUTION"
progress = 1.0
first_seed = FIRST
count = 3
"""


def list_of(folder: Path, distribution: str = "mixed", first: int = 1) -> Path:
    """A list of drawn networks with a wrong digest."""
    file = folder / "drawn.links"
    text = DRAWN.replace("DISTRIBUTION", distribution).replace("FIRST", str(first))
    file.write_text(text)
    return file


def test_seeds_of_a_list_are_those_that_tables_hold(tmp_path: Path) -> None:
    shipped = Path(__file__).parent.parent / "distributions" / "mixed.toml"
    with pytest.raises(ExperimentError, match="digest = 'x'"):
        link_lists.read(list_of(tmp_path, str(shipped), 2**62 - 3))
    with pytest.raises(ExperimentError, match=f"first_seed = .*from 0 to {2**62 - 3}"):
        link_lists.read(list_of(tmp_path, str(shipped), 2**62 - 2))


@pytest.mark.parametrize("name", ["a\\u0000b", "a" * 100_000, "none"])
def test_a_distribution_of_a_list_that_is_not_there_is_a_line_of_the_list(
    tmp_path: Path, name: str
) -> None:
    file = list_of(tmp_path, name)
    with pytest.raises(ExperimentError) as told:
        link_lists.read(file)
    assert str(told.value).startswith(f"{file}: drawn[0]: distribution: ")
    assert "No such file, and no distribution of this name" in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 1000
