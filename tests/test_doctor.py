"""`ackademy doctor`: quick, right about what is missing, and with a command for each of it."""

from __future__ import annotations

import json
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ackademy.backends import doctor
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
SEED = 42


def named(checks: list[doctor.Check]) -> dict[str, doctor.Check]:
    return {f"{check.group}: {check.name}": check for check in checks}


def test_doctor_imports_nothing_that_takes_time_and_takes_less_than_a_second(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from ackademy.backends import doctor; from pathlib import Path; "
        "doctor.checks(Path('runs')); print(sorted(set(sys.modules) & "
        "{'jax', 'ray', 'torch', 'onnx', 'polars', 'numpy', 'gymnasium'}))"
    )
    spent = []
    for _ in range(3):  # the quickest: other processes share this machine
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        spent.append(time.perf_counter() - begun)
        assert done.stdout == "[]\n"
    assert min(spent) < 1, spent


def test_the_table_has_every_check_and_json_has_the_same(tmp_path: Path) -> None:
    code, out, err = ackademy_command("doctor", cwd=tmp_path)
    assert (code, err) == (0, "")
    code, text, err = ackademy_command("doctor", "--json", "-", cwd=tmp_path)
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert len(found) > 12
    for check in found:
        assert check["name"] in out
        assert set(check) == {"group", "name", "status", "found", "needed_for", "fix"}
        assert (check["status"] == "ok") == (check["fix"] == "")


def test_a_folder_that_cannot_be_made_is_broken_and_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, _ = ackademy_command("doctor", "--work", "file/runs", cwd=tmp_path)
    assert code == 1
    assert re.search(r"disk of file/runs +broken", out)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with an old kernel and nothing else."""
    for name in ("BTF", "MPTCP", "BPFFS", "TUN"):
        monkeypatch.setattr(doctor, name, tmp_path / name.lower())
    (tmp_path / "status").write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(doctor, "SELF", tmp_path / "status")
    monkeypatch.setattr(doctor, "GPUS", {})
    monkeypatch.setattr(platform, "release", lambda: "5.15.0-1-generic")
    monkeypatch.setattr("ackademy.backends.doctor.shutil.which", lambda _: None)
    monkeypatch.setenv("ACKADEMYD", str(tmp_path / "none"))
    return tmp_path


def test_on_a_bare_machine_each_line_of_the_kernel_is_absent_and_says_what_to_do(
    bare: Path,
) -> None:
    found = doctor.checks(bare)
    kernel = [check for check in found if check.group == "kernel"]
    assert len(kernel) == 8
    for check in kernel:
        assert (check.status, bool(check.fix)) == ("absent", True), check
    assert not any(check.status == "broken" for check in found)


def test_commands_that_are_named_exist(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ackademy.backends.doctor.shutil.which", lambda name: name if name == "apt-get" else None
    )
    monkeypatch.setattr(doctor, "_installed", lambda _, otherwise: otherwise)
    monkeypatch.setattr(doctor, "GPUS", {bare: ("NVIDIA", "none", "`pip install 'jax[cuda12]'`")})
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for check in doctor.checks(bare):
        for command in re.findall(r"`([^`]+)`", check.fix):
            words = command.removeprefix("sudo ").split()
            if words[0] == "make":
                assert words[1] in targets, check
            else:
                known = "apt-get", "modprobe", "sysctl", "mount", "-E", "cd", "pip", "uv"
                assert words[0] in known, check


def old_daemon(folder: Path) -> None:
    program = folder / "none"
    program.write_text("#!/bin/sh\necho ackademyd 0.0.1\n")
    program.chmod(0o755)


def failing_daemon(folder: Path) -> None:
    program = folder / "none"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("ackademyd", old_daemon, "0.0.1"),
        ("ackademyd", failing_daemon, "exit status 3"),
        ("MPTCP", lambda folder: (folder / "mptcp").write_text("0\n"), "net.mptcp.enabled is 0"),
    ],
)
def test_what_is_there_but_does_not_do_is_told_apart(
    bare: Path, name: str, change: Callable[[Path], None], word: str
) -> None:
    change(bare)
    check = named(doctor.checks(bare))[f"kernel: {name}"]
    assert check.status == "absent"
    assert word in check.found
    assert check.fix


def test_capabilities_are_read_bit_by_bit(bare: Path) -> None:
    draw = random.Random(SEED)
    for _ in range(200):
        bits = draw.getrandbits(41)
        doctor.SELF.write_text(f"Name:\tx\nCapEff:\t{bits:016x}\nCapBnd:\t0\n")
        held = {name for name, bit in doctor.CAPABILITIES.items() if bits & (1 << bit)}
        assert set(doctor.lacking_capabilities()) == set(doctor.CAPABILITIES) - held, hex(bits)


def test_a_needed_package_that_is_older_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SimpleNamespace(
        requires=["numpy>=2.1", "rich>=14", "ray[rllib]>=2.50; extra == 'torch'"],
        metadata=SimpleNamespace(get_all=lambda _: ["torch"]),
    )
    monkeypatch.setattr(doctor, "distribution", lambda _: own)
    versions = {"numpy": "1.99.9", "rich": "14.0", "ray": "2.50.0rc1"}
    monkeypatch.setattr(doctor, "_installed", lambda name, other: versions.get(name, other))
    found = named(doctor.checks(Path("runs")))
    assert found["extras: needed"].status == "broken"
    assert "numpy 1.99.9" in found["extras: needed"].found
    assert found["extras: torch"].status == "ok"


def test_versions_are_ordered_by_their_numbers() -> None:
    draw = random.Random(SEED)
    for _ in range(300):
        parts = [draw.randrange(12) for _ in range(draw.randint(1, 4))]
        text = ".".join(map(str, parts))
        assert doctor.numbers(text) == doctor.numbers(f"{text}.0") == doctor.numbers(f"{text}rc1")
        higher = [*parts]
        higher[draw.randrange(len(parts))] += 1
        assert doctor.numbers(".".join(map(str, higher))) > doctor.numbers(text)
