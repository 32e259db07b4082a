"""`ackademy benchmark`: networks that follow from the entry, results whose changes show."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer

from ackademy.backends import schemes
from ackademy.errors import AckademyError, ControllerError
from ackademy.render.report import Only
from ackademy.render.sheet import Sheet
from ackademy.studies.benchmark import entries, report, result_file
from ackademy.studies.benchmark.study import BESIDE, NUMBERS, Network, Result
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
SEED = 20261128
MINE = """\
class Mine:
    def __init__(self, flow):
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)

    def on_ack(self, ack):
        self.cwnd_bytes += 1250 * ack.acked_bytes / self.cwnd_bytes

    def on_loss(self, loss):
        self.cwnd_bytes /= 2
"""
TINY = """\
about = "Small networks."
learners = ["own*"]
[draw]
"dumbbell.rtt_ms" = { uniform = [10, 20] }
"dumbbell.bottleneck.rate_mbps" = { uniform = [2, 4] }
"""
KINDS = {
    "wired": ("alone", '[[scenario.inline.flow]]\nname = "own"', 2),
    "beside_cubic": (
        "beside",
        '[[scenario.inline.flow]]\nname = "own"\n'
        '[[scenario.inline.flow]]\nname = "other"\ncontroller = "cubic"',
        12,
    ),
    "equals": ("own kind", '[[scenario.inline.flow]]\nname = "own"\ncount = 2', 12),
}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A benchmark of three kinds of small networks, two of each."""
    text = TINY
    for kind, (panel, flows, seconds) in KINDS.items():
        text += (
            f'[[scenario]]\nname = "{kind}"\nclass = "{panel}"\n'
            f"[scenario.inline]\nduration_s = {seconds}\n"
            '[scenario.inline.dumbbell.bottleneck]\nqueue = { kind = "drop_tail", bdp = 1 }\n'
            f"{flows}\n"
        )
    path = tmp_path / "tiny.toml"
    path.write_text(text)
    monkeypatch.setattr(entries, "DISTRIBUTION", str(path))
    monkeypatch.setattr(entries, "NETWORKS", 2)
    entries.classes.cache_clear()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    entries.classes.cache_clear()


def enter(word: str, *more: str) -> int:
    """`ackademy benchmark` in this process, where the fixture's networks are."""
    from ackademy.cli import app

    try:
        found = app(["benchmark", word, "--jobs", "1", *more], standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    return int(found or 0)


def digest_of(word: str) -> str:
    return entries.entry(schemes.one(word)).digest


def copied(name: str, folder: Path) -> Path:
    shutil.copytree(ROOT / "data" / "policies" / name, folder)
    return folder


def test_what_decides_changes_the_digest_and_where_it_lies_does_not(tmp_path: Path) -> None:
    policy = copied("flagship", tmp_path / "a" / "mine")
    again = copied("flagship", tmp_path / "b" / "other")
    assert digest_of(str(policy)) == digest_of(str(again))
    weights = again / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    assert digest_of(str(policy)) != digest_of(str(again))
    for folder, text in (("c", MINE), ("d", MINE), ("e", MINE.replace("1250", "1251"))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(text)
    one, same, other = (digest_of(f"{tmp_path}/{own}/mine.py:Mine") for own in "cde")
    assert one == same != other
    assert digest_of("cubic") != digest_of("cubic:beta=0.8") != digest_of("new_reno")


def test_entries_meet_different_networks_and_development_networks_are_the_same_for_all(
    tmp_path: Path,
) -> None:
    cubic, other = (entries.entry(schemes.one(word)) for word in ("cubic", "cubic:beta=0.8"))
    texts = [{case.text for case in entries.drawn(own, tmp_path)} for own in (cubic, other)]
    assert not texts[0] & texts[1]
    tuned = [
        entries.entry(schemes.one(word), is_quick=True, is_development=True)
        for word in ("cubic", "vegas")
    ]
    found = [entries.drawn(own, tmp_path) for own in tuned]
    assert found[0] == found[1]
    assert not {case.text for case in found[0]} & (texts[0] | texts[1])


def test_every_kind_comes_equally_often_and_a_quick_run_takes_the_first(tmp_path: Path) -> None:
    whole, quick = (
        entries.drawn(entries.entry(schemes.one("cubic"), is_quick=is_quick), tmp_path)
        for is_quick in (False, True)
    )
    counts = Counter(case.group for case in whole)
    assert set(counts.values()) == {entries.NETWORKS}
    assert list(counts) == list(entries.classes())
    for kind in counts:
        first = [case for case in whole if case.group == kind][: entries.NETWORKS_QUICK]
        assert [case for case in quick if case.group == kind] == first


def test_every_number_is_of_kinds_that_there_are() -> None:
    known = {*entries.classes(), *entries.classes().values()}
    assert not {number.where for number in NUMBERS} - known
    assert {kind for kind, panel in entries.classes().items() if panel == "beside"} == {
        f"beside_{other}" for other in BESIDE
    }


def test_the_same_entry_gives_the_same_bytes_also_after_an_interruption(tiny: Path) -> None:
    assert enter("vegas") == 0
    (file,) = (tiny / "benchmarks").iterdir()
    first = file.read_bytes()
    cells = sorted((tiny / "runs" / "benchmark").glob("*/cell.json"))
    for cell in cells[::2]:
        shutil.rmtree(cell.parent)
    file.unlink()
    assert enter("vegas") == 0
    assert file.read_bytes() == first


def test_an_entry_that_does_as_cubic_does_differs_from_it_in_nothing(tiny: Path) -> None:
    assert enter("cubic:beta=0.7") == 0
    (file,) = (tiny / "benchmarks").iterdir()
    found = result_file.read(file)
    assert found.schemes[:2] == ["cubic:beta=0.7", "cubic"]
    assert len(found.networks) == 2 * len(KINDS)
    for number in NUMBERS:
        apart = found.difference(number, "cubic")
        assert np.isnan(apart.value) or (apart.value, apart.low, apart.high) == (0.0, 0.0, 0.0)
    beside = [one.values["cubic"] for one in found.networks if one.panel == "beside"]
    assert len(beside) == 2
    assert all(own["harm"] == 0.0 for own in beside), "harm is beyond that of CUBIC"


def test_a_result_that_was_changed_is_refused(tiny: Path) -> None:
    assert enter("cubic", "--quick") == 0
    (file,) = (tiny / "benchmarks").iterdir()
    content = json.loads(file.read_bytes())
    assert content["entry"]["marks"] == ["quick"]
    content["runs"][0]["values"]["cubic"]["use"] = 1.0
    file.write_text(json.dumps(content))
    with pytest.raises(AckademyError, match="sha256"):
        result_file.read(file)


def test_a_damaged_result_is_refused_in_one_line(tiny: Path) -> None:
    assert enter("cubic") == 0
    (file,) = (tiny / "benchmarks").iterdir()
    whole = file.read_bytes()
    rng = random.Random(SEED)
    for _ in range(200):
        content = bytearray(whole)
        at = rng.randrange(len(content))
        if rng.random() < 0.5:
            del content[at : at + rng.randrange(1, 200)]
        else:
            content[at] ^= 1 << rng.randrange(8)
        file.write_bytes(content)
        told = ""
        try:
            found = result_file.read(file)
        except AckademyError as error:
            told = str(error)
        else:
            file.write_bytes(whole)
            assert found == result_file.read(file), "layout alone may change"
        assert "\n" not in told


@pytest.mark.parametrize("schemes", [["cubic"], ["other", "cubic"], ["vegas", "bbr3"]])
def test_a_result_without_its_entry_or_without_cubic_is_refused(
    tiny: Path, schemes: list[str]
) -> None:
    assert enter("vegas") == 0
    (file,) = (tiny / "benchmarks").iterdir()
    content = json.loads(file.read_bytes())
    content["schemes"] = schemes
    for run in content["runs"]:
        run["values"] = {name: run["values"]["cubic"] for name in schemes}
    del content["sha256"]
    file.write_text(json.dumps({**content, "sha256": result_file._digest(content)}))
    with pytest.raises(AckademyError, match="schemes"):
        result_file.read(file)


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", "null", "", '{"a": 1}', "[" * 100_000],
    ids=["list", "empty", "null", "nothing", "other", "deep"],
)
def test_what_is_no_result_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(AckademyError) as told:
        result_file.read(file)
    assert "\n" not in str(told.value)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh: ssh-keygen")
def test_a_signature_names_its_key_and_holds_for_one_content(tiny: Path) -> None:
    key = tiny / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60
    )
    assert enter("cubic", "--sign", str(key)) == 0
    (file,) = (tiny / "benchmarks").glob("*.json")
    assert result_file.read(file).signer.startswith("SHA256:")
    assert enter("vegas") == 0
    (other,) = (own for own in (tiny / "benchmarks").glob("*.json") if own != file)
    assert not result_file.read(other).signer
    shutil.copy(f"{file}.sig", f"{other}.sig")
    with pytest.raises(AckademyError) as told:
        result_file.read(other)
    assert "\n" not in str(told.value)


def test_an_entry_that_fails_leaves_no_result(tiny: Path) -> None:
    (tiny / "bad.py").write_text(MINE.replace("self.cwnd_bytes /= 2", "raise ValueError('no')"))
    assert enter("bad.py:Mine") == 2
    assert not (tiny / "benchmarks").exists()


@pytest.mark.parametrize("word", ["kernel:cubic", "noq:cubic"])
def test_a_backends_own_controller_is_no_entry(word: str) -> None:
    with pytest.raises(ControllerError, match=r"allowed: a policy's folder"):
        entries.entry(schemes.one(word))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("table", "nowhere"), "allowed: a folder with results"),
        (("cubic", "nowhere"), "allowed: one entry, or `table DIR`"),
        (("nothing_like_it",), "nothing_like_it"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    status, _, error = ackademy_command("benchmark", *words, cwd=tmp_path)
    assert status == 2
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_the_front_has_the_entries_that_no_other_beats() -> None:
    def entry(name: str, use: float, wait: float) -> Result:
        networks = tuple(
            Network(
                f"n{i}",
                "wired",
                "alone",
                {name: {"use": use, "wait": wait}, "cubic": {"use": 0.5, "wait": 1.0}},
            )
            for i in range(3)
        )
        return Result(name, "0" * 64, (), networks, "")

    found = [entry("a", 0.9, 0.5), entry("b", 0.8, 0.1), entry("c", 0.7, 0.6), entry("d", 0.9, 0.7)]
    whole = report.of_table(found, "")
    sheet = next(one.item for one in whole.sections[0].items if isinstance(one, Only))
    assert isinstance(sheet, Sheet)
    fronts = {line.names[0].text: line.cells[0].parts[0].text for line in sheet.lines}
    assert fronts == {"a": "●", "b": "●", "c": "", "d": ""}


def test_a_table_names_every_entry_once_per_result(tiny: Path) -> None:
    assert enter("cubic") == enter("vegas") == 0
    assert enter("table", "benchmarks", "--csv", "entries.csv") == 0
    lines = (tiny / "entries.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["entry", "cubic", "vegas"]
    assert len({len(line.split(",")) for line in lines}) == 1


def test_the_guide_defines_every_number() -> None:
    page = (ROOT / "docs" / "guide" / "benchmark.md").read_text(encoding="utf-8")
    table = page.partition("<!-- numbers -->\n")[2].partition("<!-- end of numbers -->")[0]
    lines = ["| number | over networks | definition |", "|---|---|---|"]
    lines += [
        f"| {own.label}{f', {own.unit}' if own.unit else ''} | {own.statistic} | {own.about} |"
        for own in NUMBERS
    ]
    assert table.splitlines() == lines
