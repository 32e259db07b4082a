"""Other people's controllers, which `make guests` builds: `linux:bbr`, `s2n:cubic` and so on."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ackademy import _core, compare, run
from ackademy.backends import guests
from ackademy.errors import ControllerError
from ackademy.runner import cells, experiments
from commands import ackademy_command

ROOT = Path(__file__).parents[1]
TEXT = """\
duration_s = 3
[dumbbell]
rtt_ms = 30
bottleneck = { rate_mbps = 10, queue = { kind = "drop_tail", bdp = 1 } }
[[flow]]
controller = "cubic"
"""
BUILT = [name for name, _ in guests.names()]


@pytest.fixture
def built() -> list[str]:
    """The guests of this machine."""
    if not BUILT:
        pytest.skip("needs guests: none is built")
    return BUILT


def test_every_built_guest_runs_as_any_scheme_and_repeats_itself(built: list[str]) -> None:
    for cc in built:
        first, again = (run(TEXT, cc=cc, seed=4) for _ in range(2))
        for name, values in first.columns["flows"].items():
            np.testing.assert_array_equal(values, again.columns["flows"][name], err_msg=cc)
        assert first.floats("flows", "delivered_bytes")[0] * 8e-6 / 3 > 8.0, cc
        assert first.is_random, cc
    found = compare(TEXT, ["cubic", *built], runs=2).runs
    assert set(found["scheme"]) == {"cubic", *built}
    assert (found["throughput_mean_mbps"] > 8.0).all()


def test_a_guest_governs_a_flow_of_a_file_beside_our_own(built: list[str]) -> None:
    found = run(TEXT.replace('"cubic"', f'"{built[0]}"') + '[[flow]]\ncontroller = "cubic"\n')
    assert list(found.columns["flows"]["controller"]) == [built[0], "cubic"]
    assert (found.floats("flows", "delivered_bytes") > 100_000).all()


def test_the_list_names_the_guests_that_are_built(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guests.VARIABLE, str(guests.library(built[0]).parent))
    code, out, _ = ackademy_command("list", cwd=tmp_path)
    assert code == 0
    assert all(name in out for name in built)


def test_a_result_is_keyed_by_the_bytes_of_the_library(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = guests.library(built[0])
    path = tmp_path / "scenario.toml"
    path.write_text(TEXT)
    cell = replace(experiments.of_file(path), controller=built[0])
    keys = [cells.key(cell)]
    copy = tmp_path / library.name
    copy.write_bytes(library.read_bytes())
    monkeypatch.setenv(guests.VARIABLE, str(tmp_path))
    keys.append(cells.key(cell))
    copy.write_bytes(library.read_bytes() + b"\0")
    keys.append(cells.key(cell))
    assert keys[0] == keys[1] != keys[2]


def test_a_guest_that_is_not_there_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guests.VARIABLE, str(tmp_path))
    (tmp_path / "s2n.so").write_text("no library")
    (tmp_path / "dumbbell.toml").write_text(TEXT)
    for cc, options, named in (
        ("linux:bbr", (), f"linux:bbr: no linux.so in {tmp_path}: build it with `make guests`"),
        ("s2n:bbr", (), "s2n.so: no library that can be loaded"),
        ("linux:bbr:gain=2", (), "allowed: no settings of a backend's own controllers"),
        ("linux:bbr", ("--backend", "quic"), "runs with --backend sim alone"),
    ):
        words = ("run", "dumbbell.toml", "--cc", cc, *options)
        code, _, err = ackademy_command(*words, cwd=tmp_path)
        assert code == 2, err
        assert named in err
        assert err.count("\n") == 1, err


def test_a_library_of_another_abi_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(guests.VARIABLE, str(tmp_path))
    source = ROOT / "crates/guests/tests/guest.c"
    flags = ("-shared", "-fPIC", "-DREPORTED_ABI=99", f"-I{ROOT}/crates/ffi/include")
    subprocess.run(["cc", *flags, "-o", tmp_path / "linux.so", source], check=True)
    (tmp_path / "dumbbell.toml").write_text(TEXT)
    code, _, err = ackademy_command("run", "dumbbell.toml", "--cc", "linux:fixed", cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1), err
    assert f"{tmp_path}/linux.so: its ABI is 99; allowed is 1" in err


def test_a_name_that_a_library_has_not_is_refused_with_those_that_it_has(built: list[str]) -> None:
    source = built[0].partition(":")[0]
    with pytest.raises(ControllerError, match=f"{source}:none: allowed with .*: {source}:"):
        run(TEXT, cc=f"{source}:none")
    assert _core.guest_names(guests.library(built[0]))
