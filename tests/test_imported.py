"""What a Python file imports, as kept results depend on it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ackademy.backends import controllers
from ackademy.imported import sources


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which modules are imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def imports(folder: Path, text: str, **modules: str) -> list[str]:
    """Paths of what `mine.py` of this text imports; modules are named as `a__b` for `a/b.py`."""
    for name, content in {"mine": text, **modules}.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return [path.relative_to(folder).as_posix() for path in sources(folder / "mine.py")]


def test_modules_are_found_wherever_the_statement_stands(folder: Path) -> None:
    text = "if True:\n    import own_a\ndef f():\n    from own_b import g\n"
    assert imports(folder, text, own_a="", own_b="", own_c="") == ["own_a.py", "own_b.py"]


def test_modules_of_modules_are_found_in_circles_too(folder: Path) -> None:
    found = imports(folder, "import own_a", own_a="import own_b", own_b="import own_a, mine")
    assert found == ["own_a.py", "own_b.py"]


def test_packages_and_relative_imports_are_followed(folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "__init__.py").write_text("from .gains import GAIN\n")
    modules = {"own__gains": "from . import tables\nGAIN = 1", "own__tables": "", "own__other": ""}
    found = imports(folder, "from own import GAIN", **modules)
    assert found == ["own/__init__.py", "own/gains.py", "own/tables.py"]
    without = imports(folder, "import loose.gains", loose__gains="import own.other")
    assert "loose/gains.py" in without, "a package without __init__.py"
    assert "own/other.py" in without


def test_installed_and_unknown_modules_are_left_out(folder: Path) -> None:
    text = "import os, json.decoder, numpy, ackademy\nfrom nowhere import x\nfrom .. import y\n"
    assert imports(folder, text) == []
    assert imports(folder, "def (") == []


def test_a_file_that_imports_nothing_keeps_its_name_and_others_change_with_what_they_import(
    folder: Path,
) -> None:
    path = folder / "mine.py"
    path.write_text("class Mine: ...\n")
    plain = controllers.fingerprint(f"{path}:Mine", folder)
    path.write_text("import own_gain\nclass Mine: ...\n")
    (folder / "own_gain.py").write_text("GAIN = 1\n")
    one = controllers.fingerprint(f"{path}:Mine", folder)
    (folder / "own_gain.py").write_text("GAIN = 2\n")
    two = controllers.fingerprint(f"{path}:Mine", folder)
    assert plain == hashlib.sha256(b"class Mine: ...\n").hexdigest()
    assert len({plain, one, two}) == 3
    (folder / "own_gain.py").write_text("GAIN = 1\n")
    assert controllers.fingerprint(f"{path}:Mine", folder) == one
