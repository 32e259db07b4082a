"""`ACKADEMY_REQUIRE`: a skip for what a machine is said to have is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import capabilities

TESTS = Path(__file__).parent
CONFTEST = f"""\
import sys
sys.path.insert(0, {str(TESTS)!r})
import capabilities
from capabilities import pytest_make_collect_report, pytest_runtest_makereport
def pytest_configure(config): capabilities.required()
"""
WAYS = {
    "call": 'import pytest\ndef test_one(): pytest.skip("needs ray: an extra")\n',
    "mark": (
        'import pytest\n@pytest.mark.skipif(True, reason="needs ray: an extra")\n'
        "def test_one(): pass\n"
    ),
    "fixture": (
        "import pytest\n@pytest.fixture\n"
        'def ray(): pytest.skip("needs ray: an extra")\ndef test_one(ray): pass\n'
    ),
    "file": (
        'import pytest\npytest.importorskip("no_such_module", reason="needs ray: an extra")\n'
        "def test_one(): pass\n"
    ),
}
"""every way in which the tests skip"""
XFAIL = "import pytest\n@pytest.mark.xfail\ndef test_one(): assert False\n"


def pytest_of(folder: Path, require: str) -> tuple[int, str]:
    """Exit status and output of a pytest run of all the ways, and of an expected failure."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    for way, source in WAYS.items():
        (folder / f"test_{way}.py").write_text(source)
    (folder / "test_xfail.py").write_text(XFAIL)
    environment = {**os.environ, "ACKADEMY_REQUIRE": require, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider",
         "--continue-on-collection-errors", "."],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_every_way_to_skip_fails_where_the_capability_is_required(tmp_path: Path) -> None:
    code, out = pytest_of(tmp_path, "onnx, ray")
    assert code == 1, out
    assert out.count("ACKADEMY_REQUIRE has ray, so this test must run, but: ") >= len(WAYS)
    assert "1 failed, 1 xfailed, 3 errors" in out or "2 failed, 1 xfailed, 2 errors" in out, out


def test_a_skip_stays_one_where_the_capability_is_not_required(tmp_path: Path) -> None:
    code, out = pytest_of(tmp_path, "onnx")
    assert code == 0, out
    assert f"{len(WAYS)} skipped, 1 xfailed" in out


def test_an_unknown_name_is_an_error_that_tells_the_allowed_ones(tmp_path: Path) -> None:
    code, out = pytest_of(tmp_path, "ray,kernal")
    assert code == 4, out
    assert "ACKADEMY_REQUIRE: kernal: allowed: kernel, links, iperf3" in out


@pytest.mark.parametrize("reason", ["no time", "needs rays: an extra", "needs ray", "needs ray: "])
def test_a_skip_must_name_a_known_capability(reason: str) -> None:
    objected = capabilities.objection(f"Skipped: {reason}")
    assert objected is not None
    assert "a skip's reason is `needs NAME: why`" in objected


@pytest.mark.parametrize(
    ("require", "code", "told"),
    [
        ("", 0, "skipped: needs msrv: no rustup\n"),
        ("ray, onnx", 0, "skipped: needs msrv: no rustup\n"),
        ("ray,msrv", 1, "ACKADEMY_REQUIRE has msrv, so this step must run, but: no rustup\n"),
        ("rai", 2, "ACKADEMY_REQUIRE: rai: allowed: kernel, links, iperf3"),
    ],
)
def test_a_step_of_make_is_skipped_or_fails_alike(require: str, code: int, told: str) -> None:
    done = subprocess.run(
        [TESTS.parent / ".ci" / "lacking", "msrv", "no rustup"],
        env={**os.environ, "ACKADEMY_REQUIRE": require},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.startswith(told)) == (code, True), done.stderr
    assert done.stderr.count("\n") == 1
