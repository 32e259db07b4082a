"""What messages name is there: commands that work for this installation, files of the wheel."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ackademy import _core, folders, installation, lookup
from ackademy.errors import AckademyError
from ackademy.studies.reproduce import files as experiment_files

PACKAGE = Path(__file__).parents[1] / "python" / "ackademy"


def docstrings(tree: ast.AST) -> set[int]:
    """Identities of the strings that stand alone as statements."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return {id(node.value) for node in nodes}


def texts() -> Iterator[tuple[str, str]]:
    """Every string of the package that may be printed, and where it stands."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "data" in path.relative_to(PACKAGE).parts or path.name == "installation.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = docstrings(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in documented:
                continue
            if isinstance(node.value, str):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node.value


def test_no_message_names_a_page_or_a_makefile_that_a_wheel_lacks() -> None:
    for where, text in texts():
        if "card.py" in where:  # cards lie in the repository, beside the pages
            continue
        for absent in ("docs/", "`make ", "in the repository", "pip install"):
            assert absent not in text, f"{where}: {text}"


def test_the_controllers_of_the_core_name_no_page_that_a_wheel_lacks() -> None:
    for entry in _core.controllers():
        for param in entry["params"]:
            assert "docs/" not in param["allowed"] + param["about"], entry["name"]
            _, found, name = param["allowed"].partition("policies/")
            if found:
                lookup.find(name, "policy")
        assert "docs/" not in entry["source"] + entry["about"], entry["name"]


def test_a_checkout_adds_an_extra_with_make() -> None:
    assert installation.is_checkout()
    assert installation.add_extra("train") == f"`make build EXTRAS=train` in {installation.ROOT}"
    assert "make ackademyd" in installation.build_daemon()


@pytest.mark.parametrize(
    ("url", "command"),
    [
        (None, "pip as before, with ackademy[onnx] in place of ackademy"),
        ("file:{here}/own.whl", "`pip install 'ackademy[onnx] @ file:{here}/own.whl'`"),
        (
            "file:{here}/old.whl",
            "pip, with [onnx] after the path of the wheel (file:{here}/old.whl is gone)",
        ),
    ],
)
def test_a_wheel_adds_an_extra_from_where_it_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str | None, command: str
) -> None:
    (tmp_path / "own.whl").touch()
    text = json.dumps({"url": url.format(here=tmp_path)}) if url else None
    found = SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr(installation, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "distribution", lambda _: found)
    assert installation.add_extra("onnx") == command.format(here=tmp_path)
    assert "make" not in installation.build_daemon()


def test_without_a_checkout_what_needs_research_says_so_and_the_rest_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep_recipe = pytest.importorskip("ackademy.learn.deep_recipe", reason="needs train: an extra")
    installed = tmp_path / "ackademy" / "data"
    shutil.copytree(folders.SHIPPED, installed)
    monkeypatch.setattr(folders, "SHIPPED", installed)
    monkeypatch.chdir(tmp_path)
    rows = experiment_files.load("xu2019/s2").rows
    reasons = {row.group: row.missing for row in rows if row.scheme == "DRL-CC"}
    assert reasons == dict.fromkeys(reasons, folders.CHECKOUT_ONLY) | {"8 Mb/s": ""}
    assert not any(row.missing for row in rows if row.scheme != "DRL-CC")
    with pytest.raises(AckademyError, match=f"^[^\n]*teacher: [^\n]*{folders.CHECKOUT_ONLY}$"):
        deep_recipe.read(installed / "recipes" / "flagship_many_flows.toml")


def test_in_a_checkout_every_row_and_recipe_finds_what_it_needs() -> None:
    for name in experiment_files.available():
        if name.startswith("xu2019/"):
            assert not any(row.missing for row in experiment_files.load(name).rows), name
