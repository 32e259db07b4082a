"""Invocations that once ended in a traceback, a hang or a wrong exit status, and their like."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ackademy import exits
from ackademy.cli import app

CONTROLLERS = """\
class Base:
    def __init__(self, flow):
        self.cwnd_bytes = 3000.0

    def on_ack(self, ack):
        pass

    def on_loss(self, loss):
        pass


class Raises(Base):
    def on_ack(self, ack):
        helper([])


class Exits(Base):
    def on_ack(self, ack):
        raise SystemExit(0)


class Deep(Base):
    def on_ack(self, ack):
        self.on_ack(ack)


class Nan(Base):
    def on_ack(self, ack):
        self.cwnd_bytes = float("nan")


class Words(Base):
    def on_ack(self, ack):
        self.cwnd_bytes = "three"


class NoWindow(Base):
    def __init__(self, flow):
        pass


class Arguments(Base):
    def on_ack(self):
        pass


def helper(values):
    return values[0]
"""
REWARDS = """\
def raises(metrics, before):
    return 1 / 0


def shape(metrics, before):
    return [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def nan(metrics, before):
    return 0.0 * metrics.throughput_mbps / 0.0
"""


@pytest.fixture
def here(dumbbell: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of good and bad files, which is the current one."""
    folder = dumbbell.parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    text = dumbbell.read_text()
    (folder / "cc.py").write_text(CONTROLLERS)
    (folder / "reward.py").write_text(REWARDS)
    (folder / "syntax.py").write_text("class Mine:\n    def on_ack(self, ack:\n")
    (folder / "imports.py").write_text("import no_such_module_anywhere\n")
    (folder / "folder.toml").mkdir()
    (folder / "file").write_text("")
    (folder / "latin.toml").write_bytes(b"name = '\xe9'\n")
    (folder / "deep.toml").write_text("a = " + "[" * 5000)
    (folder / "names.toml").write_text(text.replace('"sender"', '"a[/b]:bug:[red]x"'))
    (folder / "late.toml").write_text(text + "start_s = 50\n")
    (folder / "circle.toml").symlink_to("circle.toml")
    (folder / "circle.json").symlink_to("circle.json")
    (folder / "empty.toml").write_text("")
    with (folder / "huge.toml").open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(folder / "pipe.toml")
    os.mkfifo(folder / "pipe.py")
    policy = folder / "policy"
    policy.mkdir()
    os.mkfifo(policy / "policy.toml")
    return folder


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ackademy", *words])
    return exits.status_of(app)


RUN = ("run", "dumbbell.toml")
ONE_LINE = [
    # inputs that never end, are none, or are too large
    ("run pipe.toml", "pipe.toml: allowed: a regular file"),
    ("run huge.toml", "huge.toml: allowed: a regular file"),
    ("run folder.toml", "folder.toml"),
    ("run circle.toml", "circle.toml"),
    ("run latin.toml", "not UTF-8"),
    ("run deep.toml", "deep.toml"),
    ("run empty.toml", "empty.toml"),
    ("compare pipe.toml", "pipe.toml: allowed: a regular file"),
    ("gap pipe.toml", "pipe.toml: allowed: a regular file"),
    ("draw pipe.toml", "pipe.toml: allowed: a regular file"),
    ("traces list pipe.toml", "pipe.toml: allowed: a regular file"),
    ("traces list dumbbell.toml", "dumbbell.toml: no recording with a sha256"),
    ("traces split nowhere --by x --out sets", "nowhere: allowed: a folder"),
    ("traces split . --by ( --out sets", "allowed: a regular expression"),
    ("traces split . --by x --out sets --parts 1,2", "--parts 1,2: allowed: three numbers"),
    ("traces split . --by x --out sets --delay rate", "--delay rate: allowed: OLD=NEW"),
    ("traces fetch nowhere", "campaign 'nowhere': allowed: mahimahi"),
    ("trace --like nothing", 'like = "nothing": allowed: att_lte_down'),
    ("trace --like att_lte_up --volatility 1", "--volatility 1: allowed: without --like"),
    ("reproduce pipe.toml", "pipe.toml"),
    ("compare --suite pipe.toml", "pipe.toml: allowed: a regular file"),
    ("evaluate ./policy --on mixed", "policy.toml"),
    ("evaluate ./policy", "policy.toml"),
    ("export policy out.onnx", "policy"),
    ("run dumbbell.toml --cc policy -p policy=policy", "policy"),
    ("run dumbbell.toml --cc pipe.py:Mine", "pipe.py"),
    ("train pipe.toml --out mine", "pipe.toml: allowed: a regular file"),
    ("train empty.toml --out mine", "empty.toml"),
    # outputs that cannot be written
    ("run dumbbell.toml --html folder.toml", "cannot write folder.toml"),
    ("run dumbbell.toml --html file/run.html", "cannot write file/run.html"),
    ("run dumbbell.toml --json circle.json", "cannot write circle.json"),
    ("run dumbbell.toml --csv a --json a", "a different file for each output"),
    ("run dumbbell.toml --parquet file", "cannot write file"),
    ("run dumbbell.toml --html /proc/x/run.html", "cannot write /proc/x/run.html"),
    ("compare dumbbell.toml --html folder.toml", "cannot write folder.toml"),
    ("compare dumbbell.toml --work file", "cannot write file"),
    ("gap dumbbell.toml --markdown folder.toml", "cannot write folder.toml"),
    ("reproduce kong2018/table4 --reports file", "cannot write file"),
    ("draw mixed --out file", "cannot write file"),
    ("export tcp_drinc folder.toml", "cannot write folder.toml"),
    ("train aurora_mixed --quick --out file/mine", "file"),
    ("train cubic_beta --out file", "cannot write file"),
    ("train lp_tcp --only L=50,K=1 --out file", "cannot write file"),
    ("train lp_tcp --only L=50,K=1 --work file", "cannot write file"),
    ("train lp-tcp-on dumbbell.toml", "now `ackademy train lp_tcp_wire --on FILE`"),
    ("train lp_tcp_wire --on pipe.toml --out mine", "pipe.toml: allowed: a regular file"),
    ("train lp_tcp_wire --on deep.toml --out mine", "deep.toml"),
    (
        "train cubic_beta --set recorded=pipe.toml",
        "pipe.toml: allowed: a regular file",
    ),
    # options that do not belong together
    ("compare dumbbell.toml --only x", "--only: allowed: with --suite"),
    ("compare dumbbell.toml --address 10.0.0.1:6379", "--address: allowed: with --engine ray"),
    ("reproduce kong2018/table4 --address auto", "--address: allowed: with --engine ray"),
    ("evaluate cubic --on dumbbell.toml --flows x", "flow 'x': allowed: "),
    ("compare --suite papers --only none", "network 'none'"),
    # names that can be none of a file
    ("run " + "a" * 3000, "no scenario of this name"),
    ("draw " + "a" * 3000, "no distribution of this name"),
    ("reproduce " + "a" * 3000 + ".toml", "no such file"),
    ("run dumbbell.toml --cc " + "a" * 3000, "no controller and no policy of this name"),
    ("run dumbbell.toml --cc " + "a" * 3000 + ".py:Mine", "neither here nor in"),
    ("run dumbbell.toml --cc ~nobody9/x.py:Mine", "neither here nor in"),
    # seeds that count up beyond what tables hold
    (f"evaluate cubic --on dumbbell.toml --runs 3 --seed {2**63 - 1}", f"most {2**63 - 3}, "),
    (f"evaluate tcp_drinc --runs 3 --seed {2**63 - 2}", f"at most {2**63 - 3}, "),
    (f"evaluate cubic --on mixed --runs 2 --seed {2**63 - 1}", f"at most {2**63 - 2}, "),
    (f"draw mixed --count 2 --seed {2**63 - 1} --out drawn", f"at most {2**63 - 2}, "),
    # controllers of the user
    ("run dumbbell.toml --cc cc.py:Nan", "Nan.cwnd_bytes = nan: allowed is a finite number"),
    ("run dumbbell.toml --cc cc.py:Words", "Words.cwnd_bytes = 'three': allowed is a finite"),
    ("run dumbbell.toml --cc cc.py:NoWindow", "NoWindow.cwnd_bytes: AttributeError"),
    (
        "run dumbbell.toml --cc cc.py:Arguments",
        "Arguments.on_ack: too many positional arguments; allowed: on_ack(self, ack)",
    ),
    ("run dumbbell.toml --cc [/b].py:Mine", "[/b].py"),
    ("run dumbbell.toml --cc a[b]:bug:", "a[b]:bug:"),
    ("run [/b].toml", "[/b].toml"),
    ("run dumbbell.toml --set a=" + "[" * 5000, "a"),
    ("run dumbbell.toml --set duration_s=nan", "duration_s"),
    ("run dumbbell.toml --set flow.0.count=0", "flow[0].count"),
]


@pytest.mark.parametrize(("words", "message"), ONE_LINE, ids=[words for words, _ in ONE_LINE])
def test_what_the_user_can_mend_is_one_line(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    message: str,
) -> None:
    if words.startswith("train"):
        pytest.importorskip("jax", reason="needs train: an extra")
    if words.startswith("export"):
        pytest.importorskip("onnx", reason="needs onnx: an extra")
    code = ended(monkeypatch, *words.split())
    out, err = capsys.readouterr()
    assert (code, err.count("\n")) == (2, 1), (out, err)
    assert message in err


USAGE = [
    f"run dumbbell.toml --seed {2**64}",
    "run dumbbell.toml --seed -1",
    "run dumbbell.toml --sample-ms inf",
    "run dumbbell.toml --sample-ms nan",
    "run dumbbell.toml --sample-ms -1",
    "compare dumbbell.toml --jobs 1000000",
    "compare dumbbell.toml --runs 1000000000",
    "compare dumbbell.toml --runs 0",
    "gap dumbbell.toml --duration-s nan",
    "trace --mbps nan",
    "trace --seconds nan",
    f"trace --seed {2**64}",
    "draw mixed --progress nan",
    f"draw mixed --seed {2**64}",
    f"evaluate tcp_drinc --seed {2**64}",
    "evaluate tcp_drinc --on mixed --runs 1000000000",
    "stress cubic --budget 1000000000",
    "stress cubic --minutes inf",
    "train cubic_beta --set rate_mbps=nan",
    "train cubic_beta --set beta_step=inf",
    f"train cubic_beta --seed {2**64}",
    "train lp_tcp --only L=50,K=1 --set training.duration_s=inf",
    f"train lp_tcp --only L=50,K=1 --seed {2**32}",
    "train lp_tcp --only L=50,K=1 --set training.trees=100000000000",
    f"train aurora_mixed --seed {2**64}",
    "train aurora_mixed --set training.episodes=10000000000",
    "train aurora_mixed --jobs 1000000",
    "run",
    "run a b",
    "nothing",
    "run --seed [/b] dumbbell.toml",
]


@pytest.mark.parametrize("words", USAGE)
def test_an_option_out_of_range_is_a_usage_error(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
) -> None:
    assert ended(monkeypatch, *words.split()) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("cc.py:Raises", ["helper([])", "return values[0]", "IndexError: list index out of range"]),
        ("cc.py:Exits", ["raise SystemExit(0)", "SystemExit: 0"]),
        ("cc.py:Deep", ["more frames", "self.on_ack(ack)", "RecursionError: maximum recursion"]),
        ("syntax.py:Mine", ["syntax.py", "SyntaxError"]),
        ("imports.py:Mine", ["import no_such", "ModuleNotFoundError: No module named"]),
    ],
)
def test_an_error_of_the_users_file_is_told_by_its_own_frames(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    lines: list[str],
) -> None:
    code = ended(monkeypatch, *RUN, "--cc", name)
    err = capsys.readouterr().err
    assert code == 2, err
    assert err.count("\n") <= 16
    assert all(line in err for line in lines), err
    assert "Traceback" not in err
    assert "site-packages" not in err
    assert "ackademy/" not in err.replace(str(here), "")


def test_names_of_files_and_flows_are_printed_as_they_are(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.rename("names.toml", "[bold]:bug:.toml")
    assert ended(monkeypatch, "run", "[bold]:bug:.toml", "--html", "[b]:x:.html") == 0
    out = capsys.readouterr().out
    for name in ("a[/b]:bug:[red]x_0", "[bold]:bug:", "report: [b]:x:.html"):
        assert name in out
    words = ("compare", "[bold]:bug:.toml", "--cc", "cubic", "--runs", "1", "--jobs", "1")
    assert ended(monkeypatch, *words) == 0
    assert "[bold]:bug:" in capsys.readouterr().out


def test_every_console_prints_text(here: Path) -> None:
    """A console of Rich's own would parse markup: `ackademy.console` has the only one."""
    package = Path(exits.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text()
        if path != package / "console.py":
            assert "rich.console.Console(" not in text, path
            lines = [line for line in text.splitlines() if "from rich.console import" in line]
            assert not any("Console" in line.split("import")[1] for line in lines), path
            assert "TextColumn(" not in text, path


def test_a_flow_that_starts_after_the_end_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "run", "late.toml") == 0
    err = capsys.readouterr().err
    assert err == (
        "late.toml: sender_0, sender_1: nothing is sent: start_s is not below duration_s = 4\n"
    )


def test_words_that_are_not_utf_8_are_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "run", "a\udce9.toml") == 2
    assert capsys.readouterr().err == "'a\\udce9.toml': allowed: words in UTF-8\n"


@pytest.mark.parametrize("name", ["raises", "shape", "nan"])
def test_a_broken_reward_is_the_users_to_mend(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pytest.importorskip("jax", reason="needs train: an extra")
    words = ("train", "aurora_mixed", "--quick", "--reward", f"reward.py:{name}", "--out", "mine")
    code = ended(monkeypatch, *words)
    err = capsys.readouterr().err
    assert code == 2, err
    assert err.count("\n") <= 6
    assert "reward" in err
    assert "Traceback" not in err
    assert not (here / "mine").exists()


def printed_on(stdout: int, cwd: Path) -> tuple[int, str]:
    """Exit status and standard error of a command that prints much, on this standard output."""
    code = "from ackademy.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, "schema"],
        cwd=cwd,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    return process.returncode, process.stderr.decode()


def test_a_full_standard_output_is_one_line(tmp_path: Path) -> None:
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        descriptor = os.open(full, os.O_WRONLY)
    except OSError as error:
        pytest.skip(f"needs devices: none can be made here: {error}")
    told = "cannot write to standard output: No space left on device\n"
    assert printed_on(descriptor, tmp_path) == (2, told)
    os.close(descriptor)


def test_a_pipe_that_nobody_reads_ends_the_command_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert printed_on(writer, tmp_path) == (1, "")
    os.close(writer)


def test_a_closed_standard_output_is_no_traceback(tmp_path: Path) -> None:
    code = (
        "import os; os.close(1); os.execv(os.sys.executable, [os.sys.executable, *os.sys.argv[1:]])"
    )
    command = "from ackademy.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, "-c", command, "schema"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, b"")


DRAWN = """\
learners = ["me"]
[draw]
"dumbbell.rtt_ms" = { uniform = [10, 50] }
[[scenario]]
name = "NAME"
[scenario.inline]
duration_s = 1
flow = [{ name = "me" }]
[scenario.inline.dumbbell]
rtt_ms = 20
bottleneck = { rate_mbps = 5, queue = { kind = "drop_tail", bdp = 1, min_bytes = 6000 } }
"""


@pytest.mark.parametrize(
    "words",
    [
        "draw drawn.toml --count 2 --out inside/kept",
        "evaluate cubic vegas --on drawn.toml --runs 2 --jobs 1 "
        "--worst inside/kept --html inside/page.html",
        "stress cubic --space drawn.toml --budget 4 --keep 2 --jobs 1 "
        "--worst inside/kept --html inside/page.html",
    ],
    ids=lambda words: words.partition(" ")[0],
)
@pytest.mark.parametrize("name", ["FOLDER/evil", "../../evil"])
def test_a_scenarios_name_leads_out_of_no_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, words: str, name: str
) -> None:
    (here / "drawn.toml").write_text(DRAWN.replace("NAME", name.replace("FOLDER", str(here))))
    before = {path for path in here.rglob("*") if "runs" not in path.parts}
    assert ended(monkeypatch, *words.split()) == 0
    made = {path for path in here.rglob("*") if "runs" not in path.parts} - before
    assert all(path.is_relative_to(here / "inside") for path in made)
    kept = list((here / "inside" / "kept").iterdir())
    assert kept
    assert all("evil" in path.name and path.suffix == ".toml" for path in kept)
    assert not list(here.parent.glob("evil*"))


@pytest.mark.parametrize(
    "words",
    [
        "evaluate cubic vegas --on drawn.toml --runs 2 --jobs 1",
        "stress cubic --space drawn.toml --budget 4 --keep 2 --jobs 1",
    ],
    ids=lambda words: words.partition(" ")[0],
)
def test_markdown_and_pages_take_no_html_from_names(
    here: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    name = "<script>`|alert(1)|`<b>"
    (here / "drawn.toml").write_text(DRAWN.replace("NAME", name))
    files = ("--worst", "kept", "--html", "page.html", "--markdown", "page.md")
    assert ended(monkeypatch, *words.split(), *files) == 0
    assert "<script>`" not in (here / "page.html").read_text()
    for line in (here / "page.md").read_text().splitlines():
        told, *codes = line.replace("\\`", "'").split("``")
        if "script" in told:
            assert "\\<script>'\\|alert(1)\\|'\\<b>" in told
        assert not any("<" in own for own in codes[1::2])  # between spans of code
    assert "script" in (here / "page.md").read_text()
