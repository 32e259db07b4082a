"""Names of shipped files, from any folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ackademy
from ackademy import lookup
from ackademy.backends import distributions, schemes
from ackademy.errors import AckademyError, ControllerError, ScenarioError
from ackademy.studies.league import suite as league
from ackademy.studies.reproduce import files as experiment_files

ROOT = Path(__file__).parents[1]


MAIN = "from ackademy.cli import main; main()"


def ackademy_command(*words: str, cwd: Path) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command line."""
    words = (sys.executable, "-c", MAIN, *words)
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, outside the checkout."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", lookup.FOLDERS)
def test_every_shipped_name_is_found_from_another_folder(kind: lookup.Kind) -> None:
    folder = ROOT / "data" / lookup.FOLDERS[kind]
    mark = "policy.toml" if kind == "policy" else f"*{lookup.ENDINGS.get(kind, '.toml')}"
    files = [path for path in folder.rglob(mark) if path.name != "paper.toml"]
    assert len(lookup.names(kind)) == len(files)
    for name in lookup.names(kind):
        found = lookup.find(name, kind)
        assert found.resolve().is_relative_to(folder)


def test_names_of_every_kind_work_in_python() -> None:
    assert ackademy.run("outage", seed=2).scenario.name == "outage"
    assert distributions.read("mixed").digest
    assert experiment_files.load("kong2018/table5").item == "Table 5"
    assert league.load("papers").networks
    assert lookup.find("flagship_validation", "list").suffix == ".links"
    assert lookup.find("aurora_mixed", "recipe").name == "aurora_mixed.toml"
    assert schemes.one("tcp_drinc").controller == "policy"
    assert schemes.one("cubic").controller == "cubic"


def test_a_path_as_in_the_repository_is_found(elsewhere: Path) -> None:
    for path in ("data/scenarios/deep_buffer.toml", "scenarios/deep_buffer.toml"):
        assert lookup.find(path, "scenario").is_file()
    assert lookup.find("data/policies/aurora_mixed", "policy").is_dir()
    names = [path.stem for _, path in lookup.scenarios_of(["data/scenarios/*_buffer.toml"])]
    assert names == ["deep_buffer", "short_buffer"]
    assert [path.stem for _, path in lookup.scenarios_of(["gap/f*"])] == ["fast", "four_flows"]


def test_a_path_that_exists_wins_and_a_near_folder_comes_before_the_shipped(
    elsewhere: Path,
) -> None:
    own = elsewhere / "scenarios" / "outage.toml"
    own.parent.mkdir()
    shutil.copy(ROOT / "data/scenarios" / "outage.toml", own)
    assert lookup.find("outage", "scenario") == own
    (elsewhere / "outage").write_text("")
    assert lookup.find("outage", "scenario") == Path("outage")
    assert lookup.find("deep_buffer", "scenario").resolve().is_relative_to(ROOT)


def test_a_folder_of_that_name_does_not_hide_a_scenario(elsewhere: Path) -> None:
    (elsewhere / "outage").mkdir()
    assert lookup.find("outage", "scenario").is_file()


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ("deep_bufer", "scenario", "similar: deep_buffer"),
        ("data/scenarios/outag.toml", "scenario", "similar: outage"),
        (
            "nothing like it",
            "distribution",
            "known: benchmark, cellular, drinc_train, flagship, flagship_contended, "
            "flagship_held_out, gap, generalise, graduate, leo, mixed, pcc_rl and 1 more",
        ),
        ("papres", "suite", "similar: papers"),
        ("flagship_choise", "list", "similar: flagship_choice"),
        ("/outage.toml", "scenario", "No such file"),
        ("../outage", "scenario", "No such file"),
    ],
)
def test_an_unknown_name_is_one_line_with_names(word: str, kind: lookup.Kind, message: str) -> None:
    with pytest.raises(AckademyError, match=r"^[^\n]*$") as raised:
        lookup.find(word, kind)
    assert message in str(raised.value)


def test_a_pattern_that_fits_nothing_and_an_unknown_policy_are_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"^nothing_\*: no scenario fits; known: [^\n]*$"):
        lookup.scenarios_of(["nothing_*"])
    with pytest.raises(
        ControllerError, match=r"^controller aurora_mixd: [^\n]*similar: aurora_mixed"
    ):
        schemes.one("aurora_mixd")


def test_evaluate_finds_the_shipped_lists(elsewhere: Path) -> None:
    words = ("cubic", "new_reno", "--on", "flagship_validation", "--runs", "1", "--jobs", "1")
    code, out, err = ackademy_command("evaluate", *words, cwd=elsewhere)
    assert (code, "Traceback" in err) == (0, False), err
    assert "1 of 1 networks" in " ".join(out.split())  # a long path wraps the line


def test_report_with_nothing_to_report_says_so_and_is_exit_2(elsewhere: Path) -> None:
    code, out, err = ackademy_command("report", cwd=elsewhere)
    assert (code, out) == (2, "")
    assert err == "runs: nothing to report; run `ackademy reproduce` here first\n"
    assert list(elsewhere.iterdir()) == []


def test_results_go_to_the_current_folder(elsewhere: Path) -> None:
    words = ("outage", "--cc", "cubic", "--runs", "1")
    code, _, err = ackademy_command("compare", *words, cwd=elsewhere)
    assert (code, err) == (0, "")
    assert sorted(path.name for path in elsewhere.iterdir()) == ["reports", "runs"]


def test_a_scenario_calls_a_policy_by_name_and_one_beside_it_comes_first(
    elsewhere: Path, tmp_path: Path
) -> None:
    text = (
        "duration_s = 2\n[dumbbell]\nrtt_ms = 20\nbottleneck = {{ rate_mbps = 5 }}\n"
        '[[flow]]\ncontroller = "policy"\nparams = {{ policy = "{}" }}\n'
    )
    by_name = ackademy.run(text.format("flagship"))
    path = ROOT / "data" / "policies" / "flagship"
    assert by_name.flows.equals(ackademy.run(text.format(path)).flows)
    beside = tmp_path / "flagship"
    shutil.copytree(ROOT / "data" / "policies" / "aurora_mixed", beside)
    (tmp_path / "own.toml").write_text(text.format("flagship"))
    other = ackademy.run(tmp_path / "own.toml")
    assert not other.flows.equals(by_name.flows)
    with pytest.raises(ScenarioError, match=r'policy = "no_such_policy": allowed is a folder'):
        ackademy.run(text.format("no_such_policy"))
