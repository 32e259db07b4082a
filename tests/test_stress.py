"""The search finds planted failures; what it keeps replays exactly and is as simple as can be."""

from __future__ import annotations

import json
import math
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ackademy
from ackademy import exits
from ackademy.backends import schemes
from ackademy.backends.runs import read_scenario
from ackademy.cli import app
from ackademy.runner import experiments
from ackademy.runner.engines import kept, local
from ackademy.stats import omniscient
from ackademy.studies.stress import search as stress
from ackademy.studies.stress import space as stress_space
from ackademy.studies.stress.search import Network, Study, Tried
from ackademy.studies.stress.space import Dimension, Space

PLANTED = '''\
class Mine:
    """Two pipes of a fast link, until a round trip above 150 ms makes it give up for good."""

    def __init__(self, flow):
        self.mss = flow.mss_bytes
        self.cwnd_bytes = 10.0 * flow.mss_bytes
        self.gave_up = False

    def on_ack(self, ack):
        self.gave_up = self.gave_up or ack.rtt_ns > 150_000_000
        if self.gave_up:
            self.cwnd_bytes = 2.0 * self.mss
        elif ack.rtt_ns < 1.2 * ack.min_rtt_ns:
            self.cwnd_bytes += ack.acked_bytes

    def on_loss(self, loss):
        if loss.kind != "more":
            self.cwnd_bytes = max(0.7 * self.cwnd_bytes, 2.0 * self.mss)
'''
PLAIN = """\
[scenario.inline]
duration_s = 4
[scenario.inline.dumbbell]
rtt_ms = 40
bottleneck = { rate_mbps = 5, queue = { kind = "drop_tail", bdp = 1, min_bytes = 6000 } }
[[scenario.inline.flow]]
name = "own"
"""
SPACE = """\
about = "A small space."
learners = ["own"]

[draw]
"dumbbell.rtt_ms" = { log_uniform = [10, 200] }
"dumbbell.bottleneck.rate_mbps" = { log_uniform = [2, 10] }

[[scenario]]
name = "clean"
PLAIN
[scenario.draw]
"dumbbell.bottleneck.queue.bdp" = { log_uniform = [0.5, 4] }

[[scenario]]
name = "beside"
PLAIN
[[scenario.inline.flow]]
name = "cross"
controller = "cubic"
[scenario.draw]
"flow.1.controller" = { choice = ["cubic", "new_reno"] }
"flow.1.count" = { integer = [1, 2] }
""".replace("PLAIN\n", PLAIN)


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """A search space of short runs."""
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


def study_of(space: Path, word: str, budget: int = 64, against: str = "") -> Study:
    own = [schemes.parse(each)[0] for each in (word, against) if each]
    found = [schemes.Scheme(s.label, str(s.controller), s.params) for s in own]
    other = found[1] if against else None
    return Study(found[0], other, stress_space.read(space), 1, budget, "evolution", 4)


def evaluator(study: Study, folder: Path, jobs: int = 1) -> stress.Evaluate:
    def run(networks: list[Network]) -> list[Tried]:
        cells = [cell for own in networks for cell in study.cells(own, folder)]
        ran = experiments.run_cells(cells, folder, local(jobs), experiments.quiet)
        assert ran.failures == []
        return [study.read(own, folder) for own in networks]

    return run  # type: ignore[return-value]


def test_the_search_finds_a_planted_failure(
    space: Path, tmp_path: Path, controller: Callable[[str], str]
) -> None:
    study = study_of(space, controller(PLANTED))
    evaluate = evaluator(study, tmp_path / "runs")
    tried = [own for generation in stress.search(study, evaluate) for own in generation]
    assert len(tried) == study.budget
    (simple, *_) = stress.simplify(stress.worst(tried, 1), evaluate)
    # It gives up where the empty path takes 150 ms, or where the queue brings it there.
    assert simple.network.family.fields(simple.network.settings)["dumbbell"]["rtt_ms"] > 100.0
    assert simple.own.fair_share < 0.2
    (family, _) = study.space.families
    (plain,) = evaluate([Network(family, (None, None, None))])
    assert plain.value < 0.2 * simple.value


def test_evolution_gets_further_than_its_first_generation(space: Path, tmp_path: Path) -> None:
    study = study_of(space, "cubic", 96)
    generations = list(stress.search(study, evaluator(study, tmp_path / "runs")))
    assert [len(own) for own in generations] == [32, 32, 32]
    best = [max(own.value for own in generation) for generation in generations]
    assert max(best[1:]) > best[0]


def test_simplifying_keeps_the_failure_and_makes_values_plain_and_round(
    space: Path, tmp_path: Path
) -> None:
    study = study_of(space, "cubic")
    evaluate = evaluator(study, tmp_path / "runs")
    (first,) = stress.search(study_of(space, "cubic", 32), evaluate)
    found = stress.worst(first, 4)
    simple = stress.simplify(found, evaluate)
    assert len(simple) == len(found) > 1
    for before, after in zip(found, simple, strict=True):
        assert after.value >= stress.KEPT * before.value
        assert after == evaluate([after.network])[0]
        plain = [value is None for value in after.network.settings]
        assert sum(plain) >= sum(value is None for value in before.network.settings)
    assert any(None in own.network.settings for own in simple)


def test_the_plain_network_is_asked_for_and_taken_where_nothing_else_matters(space: Path) -> None:
    own = stress_space.read(space).families[0]
    same = omniscient.Behind(0.5, 1.0, 0.0, 0.7, 1.0)
    found = Tried(Network(own, own.settings([0.3, 0.6, 0.9])), ((same,),))
    (simple,) = stress.simplify([found], lambda all_: [Tried(n, ((same,),)) for n in all_])
    assert simple.network.settings == (None, None, None)


def test_worst_networks_differ_and_are_confirmed_by_other_seeds(space: Path) -> None:
    study = study_of(space, "cubic")
    family = study.space.families[0]

    def tried(place: float, *values: float) -> Tried:
        runs = tuple((omniscient.Behind(0.5, 1.0, 0.0, own, 1.0),) for own in values)
        return Tried(Network(family, family.settings([place, 0.5, 0.5])), runs)

    near, far, lucky, none = tried(0.1, 2.0), tried(0.6, 1.0), tried(0.95, 5.0), tried(0.35, 0.0)
    close = tried(0.12, 1.9)
    assert stress.worst([near, far, close, none], 4) == [near, far]
    assert stress.worst([near, far, lucky], 4, per_family=2) == [lucky, near]
    again = {own.network.settings: own for own in (tried(0.1, 2.0, 1.0), tried(0.6, 1.0, 1.2))}

    def with_all(networks: list[Network]) -> list[Tried]:
        once = lucky.runs + none.runs * 3
        return [again.get(own.settings) or Tried(own, once) for own in networks]

    found = stress.confirmed(study, [near, far, lucky], with_all)  # type: ignore[arg-type]
    assert [own.value for own in found] == [1.5, 1.1]


def run(words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def words_of(space: Path, folder: Path, *more: str) -> list[str]:
    words = ["stress", "cubic", "--space", str(space), "--budget", "32", "--keep", "3"]
    for option, end in (("html", "html"), ("markdown", "md"), ("json", "json"), ("csv", "csv")):
        words += [f"--{option}", str(folder / f"page.{end}")]
    return [*words, "--worst", str(folder / "worst"), "--work", str(folder / "runs"), *more]


def test_a_kept_file_gives_the_same_numbers_again(space: Path, tmp_path: Path) -> None:
    run(words_of(space, tmp_path, "--jobs", "1", "--against", "new_reno"))
    described = json.loads((tmp_path / "page.json").read_text())
    assert described["networks"] == 32
    assert 0 < len(described["worst"]) <= 3
    for own in described["worst"]:
        words = shlex.split(own["command"])
        assert words[:2] == ["ackademy", "run"]
        text = Path(words[2]).read_text()
        assert f"\n# Same numbers: {own['command']}\n" in text
        found = ackademy.run(words[2])
        behind = omniscient.behind(found.scenario, found.flows, ["own"])
        of_other = ackademy.run(text.replace('"cubic"', '"new_reno"', 1))
        other = omniscient.behind(of_other.scenario, of_other.flows, ["own"])
        rows = [row for row in described["runs"] if row["scenario"] == own["scenario"]]
        (first,) = [row for row in rows if (row["scheme"], row["seed"]) == ("cubic", 1)]
        assert first["regret"] == behind.regret
        assert first["fair_share"] == behind.fair_share
        assert first["regret_gap"] == own["value_by_seed"][0] == behind.regret - other.regret
        fields = tomllib.loads(text)
        for path, value in own["set"].items():
            assert stress_space._get(fields, path) == value


def test_the_controller_of_the_kept_file_may_be_named_again(space: Path, tmp_path: Path) -> None:
    run(words_of(space, tmp_path, "--jobs", "1"))
    for file in sorted((tmp_path / "worst").glob("clean-*.toml")):
        written, named = ackademy.run(file), ackademy.run(file, cc="cubic")
        assert written.flows.equals(named.flows)


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_jobs(
    space: Path, tmp_path: Path
) -> None:
    found = []
    for name, jobs in (("one", "1"), ("two", "2")):
        run(words_of(space, tmp_path / name, "--jobs", jobs))
        files = sorted((tmp_path / name / "worst").iterdir())
        texts = [file.read_text().replace(str(tmp_path / name), "") for file in files]
        found.append(((tmp_path / name / "page.csv").read_bytes(), texts))
    assert found[0] == found[1]
    run(words_of(space, tmp_path / "one", "--jobs", "1", "--seed", "2"))
    assert (tmp_path / "one" / "page.csv").read_bytes() != found[0][0]


def test_a_second_search_runs_nothing_again(
    space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(words_of(space, tmp_path, "--jobs", "1"))
    before = (tmp_path / "page.csv").read_bytes()

    def fail(*_: object) -> None:
        raise AssertionError("a cell was run again")

    monkeypatch.setattr("ackademy.runner.engines.processes.attempt", fail)
    run(words_of(space, tmp_path, "--jobs", "1"))
    assert (tmp_path / "page.csv").read_bytes() == before


def test_no_generation_begins_after_the_minutes_are_over(space: Path, tmp_path: Path) -> None:
    run([*words_of(space, tmp_path, "--jobs", "1"), "--budget", "1000", "--minutes", "0"])
    described = json.loads((tmp_path / "page.json").read_text())
    assert described["networks"] == stress.GENERATION


def test_the_report_is_complete(space: Path, tmp_path: Path) -> None:
    run(words_of(space, tmp_path, "--jobs", "1"))
    page = (tmp_path / "page.html").read_text()
    described = json.loads((tmp_path / "page.json").read_text())
    for own in described["worst"]:
        assert own["scenario"] in page
        assert own["command"] in (tmp_path / "page.md").read_text()
    assert "<script src" not in page


def test_workers_that_are_kept_run_several_batches(space: Path, tmp_path: Path) -> None:
    study = study_of(space, "cubic")
    family = study.space.families[0]
    networks = [Network(family, family.settings([place, 0.5, 0.5])) for place in (0.1, 0.5, 0.9)]
    cells = [cell for own in networks for cell in study.cells(own, tmp_path)]
    with kept(local(2)) as engine:
        first = {own.index: own.files for own in engine(cells)}
        again = {own.index: own.files for own in engine(cells)}
    assert first == again == {own.index: own.files for own in local(1)(cells)}


def test_a_dimension_has_its_values_in_its_range_and_knows_their_places() -> None:
    for kind, low, high in (("uniform", 0, 0.05), ("log_uniform", 1, 100), ("integer", 1, 3)):
        own = Dimension(("a.b",), kind, low, high)
        values = [own.value(index / 50) for index in range(51)]
        assert all(low <= value <= high for value in values)  # type: ignore[operator]
        assert (values[0], values[-1]) == (low, high)
        assert values == sorted(values)  # type: ignore[type-var]
        assert own.place(low) == 0.0
        assert own.place(high) == 1.0
        assert own.place(2 * high) is None
    choice = Dimension(("a",), "choice", options=("x", "y"))
    assert [choice.value(place) for place in (0.0, 0.49, 0.5, 1.0)] == ["x", "x", "y", "y"]
    assert choice.place("x") is None


def test_the_shipped_space_has_plain_values_without_trouble() -> None:
    space: Space = stress_space.read("stress")
    assert len(space.families) == 10
    for family in space.families:
        plain = (None,) * len(family.dimensions)
        scenario = read_scenario(stress_space.document(family.fields(plain)))
        omniscient.check(scenario)
        assert scenario.duration_s == 20.0
        for dimension in family.dimensions:
            value = family.plain_value(dimension)
            assert value is not None
            assert dimension.is_choice or dimension.place(value) is not None


ROOT = Path(__file__).parents[1]
KEPT = sorted((ROOT / "data/scenarios" / "stress").glob("*.toml"))


def row_of(name: str) -> list[str]:
    """What docs/results/stress.md prints of a kept scenario."""
    text = (ROOT / "docs" / "results" / "stress.md").read_text(encoding="utf-8")
    (line,) = [own for own in text.splitlines() if own.startswith(f"| stress/{name} |")]
    return [word.strip() for word in line.split("|")[2:-1]]


def test_six_findings_are_kept() -> None:
    assert len(KEPT) == 6


@pytest.mark.parametrize("file", KEPT, ids=lambda own: own.stem)
def test_a_kept_finding_still_fails_as_documented(file: Path) -> None:
    found = ackademy.run(file)
    own = omniscient.behind(found.scenario, found.flows, ["own"])
    regret, share, ratio, loss, why = row_of(file.stem)
    assert f"{own.regret:.2f}" == regret
    assert f"{100 * own.fair_share:.1f} %" == share
    assert ("–" if math.isnan(own.rtt_over_ideal) else f"{own.rtt_over_ideal:.2f}") == ratio
    assert f"{100 * own.loss_ratio:.1f} %" == loss
    assert file.read_text(encoding="utf-8").splitlines()[0] == f"# {why}"


BAD = [
    (["stress", "qubic"], "similar: cubic"),
    (["stress", "cubic,vegas"], "allowed: one scheme"),
    (["stress", "cubic", "--against", "cubic"], "allowed: every scheme once"),
    (["stress", "lp_tcp"], "controller lp_tcp: it needs a policy; allowed: lp_tcp/"),
    (["stress", "kernel:bbr"], "runs with --backend kernel alone"),
    (["stress", "cubic", "--space", "no_such"], "no distribution of this name"),
    (["stress", "cubic", "--space", "drinc_train"], "allowed: [dumbbell] with rtt_ms"),
    (["stress", "cubic", "--space", "mixed"], 'draw."dumbbell.bottleneck.trace": allowed: uniform'),
    (["stress", "cubic", "--budget", "0"], "--budget"),
    (["stress", "cubic", "--minutes", "nan"], "--minutes"),
    (["stress", "cubic", "--address", "nowhere:1"], "allowed: with --engine ray"),
    (["stress", "cubic", "--method", "luck"], "luck"),
]


@pytest.mark.parametrize(("words", "part"), BAD, ids=lambda own: str(own))
def test_bad_input_is_one_line_with_status_2(
    words: list[str],
    part: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ackademy", *words])
    monkeypatch.setenv("COLUMNS", "300")
    assert exits.status_of(app) == 2
    printed = capfd.readouterr().err
    assert part in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "runs").exists()


def test_a_controller_that_raises_ends_the_search_with_its_own_traceback(
    space: Path,
    tmp_path: Path,
    controller: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    word = controller(PLANTED.replace("self.gave_up = False", "self.gave_up = 1 / 0"))
    words = [*words_of(space, tmp_path, "--jobs", "1")]
    words[1] = word
    monkeypatch.setattr(sys, "argv", ["ackademy", *words])
    assert exits.status_of(app) == 2
    assert "ZeroDivisionError" in capfd.readouterr().err
