"""The notebooks of examples/notebooks and the one of `ackademy new` run as they stand."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import notebooks
from ackademy.cli import templates

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NEEDS = {"03_train_evaluate_export": {"jax": "train", "onnx": "onnx"}}
"""modules beyond the package, and the extra of each"""


def executed(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """A notebook with its outputs; a cell that fails raises."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return book


def shown(book: Any) -> set[str]:  # noqa: ANN401
    """The kinds of what the cells of a notebook show."""
    outputs = [one for cell in book.cells for one in cell.get("outputs", [])]
    return {kind for one in outputs for kind in one.get("data", {})}


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_a_figure(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, extra in NEEDS.get(path.stem, {}).items():
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {extra}: the notebook trains and exports")
    book = executed(path, tmp_path, monkeypatch)
    pictures = [
        one
        for cell in book.cells
        for one in cell.get("outputs", [])
        for kind, data in one.get("data", {}).items()
        if kind == "image/svg+xml" or (kind == "text/html" and "<svg" in data)
    ]
    assert pictures


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
def test_the_notebook_of_new_runs_and_writes_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    templates.write(templates.files("notebook", "my_own"))
    book = executed(tmp_path / "my_own.ipynb", tmp_path, monkeypatch)
    assert "text/html" in shown(book)
    assert (tmp_path / "my_own.svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_names_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    book = json.loads(text)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "http" not in text
    assert "pip install" not in text
    assert text.count("<!-- release: badge -->") == 1
    assert text.count("# release: install") == 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_release_adds_one_link_and_the_line_that_installs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    book = json.loads(notebooks.released(text, path.name, "https://github.com/some/where"))
    about, start = ("".join(cell["source"]) for cell in book["cells"][:2])
    assert f"/github/some/where/blob/main/examples/notebooks/{path.name})" in about
    extras = "[train,onnx]" if path.stem in NEEDS else ""
    assert start.endswith(f'is None:\n    %pip install --quiet "ackademy{extras}"')
    assert "release:" not in json.dumps(book)


@pytest.mark.parametrize("address", ["http://github.com/a/b", "https://example.org/a", "", "a/b"])
def test_a_release_refuses_an_address_that_colab_cannot_open(address: str) -> None:
    text = NOTEBOOKS[0].read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"allowed: https://github\.com/OWNER/NAME"):
        notebooks.released(text, NOTEBOOKS[0].name, address)


def test_there_are_four_notebooks() -> None:
    assert len(NOTEBOOKS) == 4
