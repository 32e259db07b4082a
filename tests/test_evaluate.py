"""Schemes on networks of a distribution, a list or a scenario: numbers, dominance, the command."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import ackademy
from ackademy.backends import distributions, link_lists, schemes
from ackademy.backends.schemes import Scheme
from ackademy.cli import app
from ackademy.errors import AckademyError, ControllerError, ExperimentError
from ackademy.runner import cases, experiments, measured
from ackademy.runner.cases import Case, Plan
from ackademy.runner.engines import local
from ackademy.runner.experiments import quiet
from ackademy.stats import scores
from ackademy.stats.intervals import NOTHING, median_interval
from ackademy.stats.league_metrics import ParetoPoint
from ackademy.studies.evaluate import sources
from ackademy.studies.evaluate import study as evaluate
from ackademy.studies.evaluate.report import axis_ends
from ackademy.studies.evaluate.sources import Bottleneck
from ackademy.studies.evaluate.study import AXES, Network

ROOT = Path(__file__).parent.parent
LINKS = 8
SCHEMES = schemes.parse("rl_tcp,cubic,new_reno")
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


def evaluated(
    source: sources.Source, compared: Sequence[Scheme], folder: Path
) -> tuple[list[Network], experiments.CellsRun]:
    rows = measured.rows(source.cases, compared, Plan(1), evaluate.METRICS)
    cells = [cell for row in rows for cell in row.cells]
    ran = experiments.run_cells(cells, folder, local(jobs=1), quiet)
    return evaluate.networks(source, compared, measured.measure(rows, folder)), ran


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped distribution, a few seconds long."""
    text = (ROOT / "data/distributions" / "generalise.toml").read_text()
    path = tmp_path_factory.mktemp("short") / "short.toml"
    path.write_text(text.replace("duration_s = 60", "duration_s = 4"))
    return path


@pytest.fixture(scope="module")
def ran(short: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Network]:
    """Three schemes on a few drawn networks."""
    folder = tmp_path_factory.mktemp("cells")
    source = sources.of_distribution(short, folder, LINKS, 1)
    found, batch = evaluated(source, SCHEMES, folder)
    assert (batch.n_cells, batch.n_reused, batch.failures) == (3 * LINKS, 0, [])
    assert len(found) == LINKS
    return found


def test_numbers_are_those_of_a_run_by_itself(ran: list[Network]) -> None:
    for own in ran[:3]:
        run = ackademy.run(own.case.scenario, seed=own.seed, cc="cubic")
        flow = run.metrics().flows.row(0, named=True)
        found = own.values["cubic"]
        assert own.bottleneck is not None
        # The whole run counts, and the flow is there from its beginning.
        assert found["throughput_total_mbps"] == pytest.approx(flow["throughput_mbps"])
        share = flow["throughput_mbps"] / own.bottleneck.rate_mbps
        assert found["link_share"] == pytest.approx(share)
        assert found["delay_mean_ms"] == pytest.approx(flow["delay_ms"])
        base = run.flows["base_rtt_ms"][0]
        assert found["rtt_ratio"] == pytest.approx(1.0 + flow["delay_ms"] / base)
        assert found["utility"] == pytest.approx(math.log(share / found["rtt_ratio"]))


def test_every_network_is_in_one_range_of_each_axis(ran: list[Network]) -> None:
    gathered = [*evaluate.by_group(ran, SCHEMES), *evaluate.by_axis(ran, SCHEMES)]
    overall = {own.scheme: own for own in gathered if not own.axis and not own.group}
    for axis in AXES:
        for name in ("rl_tcp", "cubic", "new_reno"):
            own = [one for one in gathered if one.axis == axis.label and one.scheme == name]
            assert sum(one.n_runs for one in own) == LINKS == overall[name].n_runs
    assert overall["rl_tcp"].estimates["gain"].value == 0.0
    difference = (
        overall["rl_tcp"].estimates["utility"].value - overall["cubic"].estimates["utility"].value
    )
    assert overall["cubic"].estimates["gain"].value == pytest.approx(difference)


def test_an_end_of_a_range_belongs_to_the_range_above() -> None:
    def of(*numbers: float) -> Network:
        return Network(Case("n", "", ""), 1, {}, {}, 1.0, Bottleneck(*numbers))

    rate, rtt, loss, buffer = AXES
    for axis in AXES:
        assert len(axis.names) == len(axis.edges) + 1
    assert rate.names[rate.bin(of(5.0, 10.0, 0.0, 0.2))] == "5 – 10"
    assert rtt.names[rtt.bin(of(5.0, 300.0, 0.0, 0.2))] == "200 and more"
    assert loss.names[loss.bin(of(5.0, 10.0, 0.0, 0.2))] == "none"
    assert loss.names[loss.bin(of(5.0, 10.0, 1e-4, 0.2))] == "to 1"
    assert buffer.names[buffer.bin(of(5.0, 10.0, 0.0, 4.0))] == "2 and more"


def test_the_outer_ranges_are_open() -> None:
    """A link of 0.8 Mb/s is in none that begins at 2, one of 226 Mb/s in none that ends at 100."""
    for axis in AXES:
        first = "none" if axis.key == "loss" else f"below {axis.edges[0]:g}"
        assert axis.names[0] == first
        assert axis.names[-1] == f"{axis.scale * axis.edges[-1]:g} and more"


@pytest.mark.parametrize("is_log", [True, False])
@pytest.mark.parametrize(("low", "high"), [(0.03, 0.03), (1.0, 3.0)])
def test_an_axis_has_room_around_its_values(low: float, high: float, *, is_log: bool) -> None:
    start, end = axis_ends(low, high, is_log=is_log)
    assert start < low <= high < end


def test_an_axis_of_zeros_begins_with_them() -> None:
    assert axis_ends(0.0, 0.0, is_log=False) == (0.0, 1.0)


def test_utility_is_zero_at_best_and_has_a_floor() -> None:
    assert scores.utility(1.0, 1.0) == 0.0
    assert scores.utility(0.5, 2.0) == pytest.approx(math.log(0.25))
    floor = math.log(scores.SHARE_FLOOR)
    assert scores.utility(0.0, 1.0) == floor
    assert scores.utility(1e-9, 5.0) == floor
    assert scores.utility(0.3, math.nan) == floor


def test_a_kept_worst_network_gives_its_numbers_again(ran: list[Network], tmp_path: Path) -> None:
    listed = evaluate.worst(ran, SCHEMES, tmp_path)
    assert len({own.kind for own in listed}) == 4
    for own in listed[:3]:
        words = shlex.split(own.command)
        assert words[:3] == ["ackademy", "run", str(own.file)]
        assert f"# Same numbers: {own.command}\n" in own.file.read_text()
        result = CliRunner().invoke(app, [*words[1:], "--parquet", str(tmp_path / "tables")])
        assert result.exit_code == 0, result.output
        flows = pl.read_parquet(tmp_path / "tables" / "flows.parquet")
        rate = 8e-6 * flows["delivered_bytes"][0] / own.network.case.scenario.duration_s
        assert rate == own.network.values["rl_tcp"]["throughput_total_mbps"]

    def gap(own: Network) -> float:
        return own.utility("rl_tcp") - max(own.utility(name) for name in ("cubic", "new_reno"))

    behind = [own.network for own in listed if own.kind.startswith("largest gap")]
    assert gap(behind[0]) == min(map(gap, ran))


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
    assert scores.fair_bytes(flows, own, 1000.0, 10.0) == pytest.approx(expected)


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


def test_a_scheme_is_counted_over_the_reference_and_under_anybody() -> None:
    def network(**points: tuple[float, float, float]) -> Network:
        found = {name: ParetoPoint(*own) for name, own in points.items()}
        return Network(Case("n", "", "", "A"), 1, {}, found, 100.0, None)

    good, slow, lossy = (1.0, 0.1, 0.0), (1.0, 2.0, 0.0), (1.2, 0.1, 0.1)
    found = [
        network(a=good, b=slow, c=lossy),
        network(a=slow, b=good, c=good),
        network(a=good, b=good, c=slow),
        network(a=(0.5, math.nan, 0.0), b=slow, c=(0.96, 0.3, 0.0)),
    ]
    named = [Scheme(name, name) for name in "abc"]
    own = evaluate.verdicts(found, named)[0]
    assert (own.scheme, own.networks) == ("a", 4)
    parts = (own.dominates_reference, own.dominated_by_reference, own.dominated)
    assert [part.value for part in parts] == [0.25, 0.5, 0.5]
    assert own.share.value == 1.0, "more than all counts as all"
    assert own.share_to_best.low == 0.5
    assert own.wait_beyond.value == 0.0, "0, 1.9, 0; the last has no delay"
    assert evaluate.dominance(found, named)["a"] == {"b": 0.25, "c": 0.5}


def command(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["evaluate", *map(str, words), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_list_is_evaluated_and_continued(links: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words: list[str | Path]
    words = ["new_reno", "cubic", "vegas", "--on", links, "--work", tmp_path / "runs"]
    words += ["--html", page, "--csv", page.with_suffix(".csv")]
    one = command(*words, "--runs", "2")
    assert "6 simulations run, 0 found finished" in one, one
    table = page.with_suffix(".csv").read_bytes()
    assert table.count(b"\n") == 1 + 6
    two = command(*words, "--markdown", page.with_suffix(".md"))
    assert "3 simulations run, 6 found finished" in two, two
    assert "dominates cubic" in page.with_suffix(".md").read_text()
    assert "Who dominates whom" in page.read_text()
    assert "Three networks." in page.read_text()
    shares = pl.read_csv(page.with_suffix(".csv")).filter(scheme="new_reno")["fair_share"]
    assert shares.is_between(0.2, 1.5).all(), shares


def test_a_list_says_who_is_evaluated(links: Path, tmp_path: Path) -> None:
    def of() -> list[Case]:
        return list(sources.of_list(links, tmp_path).cases)

    assert {own.flows for own in of()} == {("*",)}
    text = links.read_text()
    links.write_text(text + '[flows]\n"b.toml" = "learn*"\n')
    first, other, _ = of()
    (cell,) = cases.cells(other, schemes.one("vegas"), Plan(1))
    assert (first.flows, other.flows) == (("*",), ("learn*",))
    assert cell.scenario().controllers == ["vegas", "new_reno"]
    links.write_text(text + '[flows]\n"b.toml" = "none"\n')
    with pytest.raises(ExperimentError, match=r"b\.toml = 'none': allowed: of learner, cross"):
        of()
    links.write_text(text + '[flows]\n"d.toml" = "none"\n')
    with pytest.raises(ExperimentError, match=r"d\.toml"):
        of()


def test_the_card_of_a_policy_gets_the_tables_in_one_place(links: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "data/policies" / "aurora_mixed", folder)

    def run(*more: str) -> str:
        named: tuple[str | Path, ...] = (folder, *more, "--on", links, "--card")
        command(*named, "--work", tmp_path / "runs", "--html", tmp_path / "page.html")
        return (folder / "CARD.md").read_text()

    one = run("cubic", "vegas", "--runs", "2")
    assert "2 networks, one seed each" in one
    assert re.search(r"\n    [0-9a-f]{64}\n", one)
    assert re.search(r"Of [1-9]\d* decisions the guard of unfamiliar networks left 0\.0 %", one)
    two = run("cubic")
    assert "3 networks, one seed each" in two
    assert two.count("<!-- judge three -->") == two.count("## On `three`") == 1
    assert "vegas" not in two.split("<!-- judge three -->")[1]
    refused = CliRunner().invoke(app, ["evaluate", "vegas", "--on", str(links), "--card"])
    assert "evaluate --card: vegas: allowed: a policy's folder" in str(refused.exception)


def test_the_same_command_writes_the_same_files(short: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["new-reno", "cubic", "--on", short, "--runs", "3"]
    words += ["--work", tmp_path / "runs", "--worst", tmp_path / "worst"]
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page in pages:
        more = [("--csv", ".csv"), ("--json", ".json"), ("--markdown", ".md")]
        named = [word for name, end in more for word in (name, page.with_suffix(end))]
        command(*words, "--html", page, *named)
    one, two = pages
    assert one.with_suffix(".csv").read_bytes() == two.with_suffix(".csv").read_bytes()
    numbers = json.loads(one.with_suffix(".json").read_text())
    assert numbers["compared"]["new_reno"] == "--cc new_reno"
    assert {own["scheme"] for own in numbers["estimates"]} == {"new_reno", "cubic"}
    assert "| new_reno |" in one.with_suffix(".md").read_text()
    assert "<script src" not in one.read_text()


def test_what_cannot_be_evaluated_is_one_line(links: Path, tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match=r"allowed: a folder with policy\.toml"):
        schemes.of_folder(tmp_path)
    for words, expected in (
        (["cubic,vegas"], "allowed: one scheme"),
        (["bbr1", "cubic", "cubic"], "cubic: allowed: every scheme once"),
        (["bbr1", "cubic", "--on", str(tmp_path / "none.links")], "none.links"),
        (["bbr1", "--on", "training"], "a controller was trained on nothing"),
        (["bbr1", "--on", "mixed", "--on", str(links)], "--on mixed: allowed: alone"),
        (["bbr1", "--on", "nowhere"], "no scenario of this name"),
    ):
        result = CliRunner().invoke(app, ["evaluate", *words, "--work", str(tmp_path / "runs")])
        assert isinstance(result.exception, AckademyError), result.output
        assert expected in str(result.exception), result.exception
    assert not (tmp_path / "runs").exists()


def test_a_network_that_is_no_dumbbell_has_no_properties(tmp_path: Path) -> None:
    redrawn = distributions.read(ROOT / "data/distributions" / "drinc_train.toml")
    (case,) = cases.drawn(redrawn, 1, 1, tmp_path)
    assert sources.bottleneck_of(case) is None


def test_a_word_of_a_command_that_is_gone_names_the_new_one() -> None:
    for word in ("eval", "generalise", "judge"):
        result = CliRunner().invoke(app, [word, "cubic"])
        assert f"ackademy {word}: now `ackademy evaluate" in str(result.exception)


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
    shipped = Path(__file__).parent.parent / "data/distributions" / "mixed.toml"
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
