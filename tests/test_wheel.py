"""The wheel alone runs every command of README.md and of the page of commands."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
SHELL = [
    line.strip()
    for block in re.findall(r"```sh\n(.*?)```", README + PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.strip() and not line.startswith("#")
]
"""every command line, in the order of the text: later ones use files of earlier ones"""

QUICK = {
    "ackademy reproduce kong2018/table4": ["--runs", "1"],
    "ackademy compare --suite papers": ["--runs", "1", "--only", "L = 5"],
    "ackademy evaluate mine": ["--runs", "2"],
    "ackademy train drinc": ["--quick", "--out", "quick_drinc"],
    "ackademy train aurora_mixed": ["--quick"],
    "ackademy train lp_tcp": ["--quick", "--out", "lp"],
    "ackademy run random_loss --backend kernel": ["--set", "duration_s=2"],
    "ackademy compare gap/fast": ["--runs", "1", "--set", "duration_s=2"],
    "ackademy gap gap/fast": ["--runs", "1", "--duration-s", "2"],
}
"""words added where a command takes minutes as it stands"""
ITEMS = {
    "ackademy reproduce kong2018": "kong2018/fig1c",
    "ackademy reproduce learningcc": "learningcc/fig2",
    "ackademy reproduce knott2023": "knott2023/schedules",
    "ackademy reproduce xiao2019": "xiao2019/ns3",
    "ackademy reproduce xu2019": "xu2019/s8",
}
"""of a whole paper, which takes an hour, one item stands for all"""
NEEDS_EXTRA = (
    "ackademy train",
    "ackademy export",
    "ackademy evaluate mine",
    "ackademy reproduce knott2023",
)
CHECKOUT = ("make", "source")
"""what is done in the checkout: not for a wheel"""
SYSTEM = ("sudo", "iperf3", "ackademyd")
"""what runs until it is stopped, or needs a second host: tests of crates/net have them"""
SERVERS = ("ackademy play", "ackademy docs")
"""what serves pages until it is stopped: test_playground.py and test_docs_site.py have them"""


@dataclass(frozen=True)
class Installed:
    """The wheel in an environment of its own, and an empty folder to work in."""

    programs: Path
    folder: Path
    has_extras: bool

    def run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """A command, with nothing of the checkout within its reach but the daemon."""
        environment = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        environment["JAX_PLATFORMS"] = "cpu"
        if daemon := ackademyd():
            environment["ACKADEMYD"] = str(daemon)
        return subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True,
            timeout=900, check=False,
        )  # fmt: skip


def uv() -> str:
    """The uv that made this environment."""
    found = shutil.which("uv") or str(ROOT / "build" / "uv" / "bin" / "uv")
    if not Path(found).is_file():
        pytest.skip("needs uv: neither on the PATH nor in build/uv (`make build` puts it there)")
    return found


def missing_extra() -> str | None:
    """The first extra that the README's commands need and that is not installed."""
    modules = {"jax": "train", "gymnasium": "train", "onnx": "onnx"}
    return next((modules[name] for name in modules if not importlib.util.find_spec(name)), None)


def ackademyd() -> Path | None:
    """The daemon, if `make ackademyd` has made it."""
    return next(iter(ROOT.glob("target/*/release/ackademyd")), None)


def check(words: list[str | Path], **more: str) -> None:
    """A step of the preparation, which must succeed."""
    words = [str(word) for word in words]
    environment = {**os.environ, **more}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout; what cargo has compiled already is not compiled again."""
    out = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).parent / "maturin"
    check([maturin, "build", "--release", "--locked", "--quiet", "--out", out])
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own, with the versions of uv.lock."""
    home = tmp_path_factory.mktemp("installed")
    has_extras = missing_extra() is None
    extras = ["train", "onnx"] if has_extras else []
    environment, versions = home / "venv", home / "versions.txt"
    options = [word for extra in extras for word in ("--extra", extra)]
    check([uv(), "export", "--frozen", "--no-emit-project", "--no-hashes", "--no-dev", "--quiet",
           *options, "--output-file", versions])  # fmt: skip
    check([uv(), "venv", "--quiet", "--python", sys.executable, environment])
    python = environment / "bin" / "python"
    named = f"ackademy[{','.join(extras)}] @ {wheel.as_uri()}" if extras else str(wheel)
    check([uv(), "pip", "install", "--quiet", "--python", python, "-c", versions, named])
    folder = home / "work"
    folder.mkdir()
    return Installed(environment / "bin", folder, has_extras)


def test_the_wheel_carries_every_shipped_file_once(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "data"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    names = zipfile.ZipFile(wheel).namelist()
    carried = [
        name.removeprefix("ackademy/") for name in names if name.startswith("ackademy/data/")
    ]
    assert sorted(carried) == sorted(tracked)
    assert wheel.stat().st_size < 8e6


def words_of(line: str) -> list[str]:
    """A command of the README as it is run here; skips what is not for this machine."""
    words = shlex.split(
        line.partition(" > ")[0], comments=True
    )  # its output is looked at, not kept
    if words[0] in CHECKOUT or words[0] in SYSTEM or line.startswith(SERVERS):
        return []
    plain = shlex.join(words)
    if plain in ITEMS:
        return [*words[:-1], ITEMS[plain], "--runs", "1"]
    return words + next((more for begin, more in QUICK.items() if plain.startswith(begin)), [])


def test_rules_for_commands_all_apply_to_a_command_of_the_readme() -> None:
    lines = [shlex.join(shlex.split(line, comments=True)) for line in SHELL]
    for begin in (*QUICK, *NEEDS_EXTRA):
        assert any(line.startswith(begin) for line in lines), begin
    assert set(ITEMS) <= set(lines)


@pytest.mark.slow
@pytest.mark.parametrize("line", SHELL)
def test_a_command_of_the_readme_runs(installed: Installed, line: str) -> None:
    words = words_of(line)
    if not words:
        check_elsewhere(shlex.split(line, comments=True))
        return
    if line.startswith(NEEDS_EXTRA) and not installed.has_extras:
        pytest.skip(f"needs {missing_extra()}: an extra")
    if "--backend kernel" in line or words[1] == "gap":
        words = for_this_kernel(words)
    for name, text in python_files().items():
        (installed.folder / name).write_text(text, encoding="utf-8")
    done = installed.run(words)
    assert done.returncode == 0, (
        f"{shlex.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_python_of_the_readme_runs(installed: Installed) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (block,) = [block for block in blocks if "import ackademy" in block]
    done = installed.run([str(installed.programs / "python"), "-W", "error", "-c", block])
    assert done.returncode == 0, done.stderr


def check_elsewhere(words: list[str]) -> None:
    """What is typed in the checkout names what is there; programs of the system are not run."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{re.escape(words[1])}:", makefile, re.MULTILINE), words[1]
    elif words[0] == "source":
        assert words[1] == ".venv/bin/activate"


def for_this_kernel(words: list[str]) -> list[str]:
    """A command on the kernel, without controllers that this kernel does not have."""
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists() or ackademyd() is None:
        pytest.skip("needs kernel: root, TUN and the daemon (make ackademyd)")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("needs kernel: BTF")
    offered = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return [w if "bbr" in offered else w.replace(",kernel:bbr", "") for w in words]


def python_files() -> dict[str, str]:
    """The files that README.md shows, by the name in their first line."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    named = ((re.match(r"# ([\w.]+\.py)\n", block), block) for block in blocks)
    return {name[1]: block for name, block in named if name}
