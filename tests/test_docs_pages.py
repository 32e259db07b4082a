"""Pages and figures say what the code and the result pages say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import ackademy
from ackademy import _core

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


def test_the_readme_fits_on_120_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_figure_of_kong_2018_shows_the_numbers_of_the_papers_page() -> None:
    script = ROOT / "tools" / "kong2018_figure.py"
    spec = importlib.util.spec_from_file_location("kong2018_table5", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.rows()) == 15
    assert module.FIGURE.read_text(encoding="utf-8") == module.figure()


def test_the_page_of_the_python_api_lists_every_public_name_and_no_other() -> None:
    text = (REFERENCE / "python-api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(ackademy.__all__)


@pytest.mark.parametrize("record", ["Ack", "Loss", "Control", "Send"])
def test_the_page_of_records_lists_every_field(record: str) -> None:
    source = (ROOT / "crates" / "core" / "src" / "control.rs").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^pub struct {record} {{(.*?)^}}", source, re.DOTALL | re.MULTILINE)
    fields = re.findall(r"^    pub (\w+):", body, re.MULTILINE)
    text = (REFERENCE / "records.md").read_text(encoding="utf-8")
    section = text.split(f"## `{record}`")[1].split("\n##")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == fields


def test_the_page_of_records_lists_every_kind_of_loss() -> None:
    source = (ROOT / "crates" / "core" / "src" / "control.rs").read_text(encoding="utf-8")
    (body,) = re.findall(r"^pub enum LossKind {(.*?)^}", source, re.DOTALL | re.MULTILINE)
    names = re.findall(r"^    ([A-Z]\w+),?", body, re.MULTILINE)
    kinds = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names]
    text = (REFERENCE / "records.md").read_text(encoding="utf-8")
    section = text.split("### Kinds of loss")[1].split("\n##")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == kinds


@pytest.mark.parametrize("record", [_core.Ack, _core.Loss])
def test_python_has_the_records_fields_with_their_units(record: type) -> None:
    text = (REFERENCE / "records.md").read_text(encoding="utf-8")
    section = text.split(f"## `{record.__name__}`")[1].split("\n##")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    for name in (name for name in dir(record) if not name.startswith("_")):
        assert re.sub(r"_(ns|bytes|bps)$", "", name) in listed


RESULTS = sorted((ROOT / "docs" / "results").rglob("*.md"))


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_a_page_of_results_begins_with_the_command_that_printed_it(page: Path) -> None:
    first = "\n".join(page.read_text(encoding="utf-8").splitlines()[:15])
    assert re.search(r"(`|^)(ackademy \w+|make \w+|cargo (run|test)) ?", first, re.MULTILINE)


WHERE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Where is ...?")[1]
PLACES = [row.split(" | ") for row in re.findall(r"^\| (.+?) \|$", WHERE, re.MULTILINE)[1:]]


def defined(name: str, text: str) -> bool:
    """Whether source code, or a TOML file, defines a name."""
    words = "fn|struct|def|class|enum|trait|void|bool|int"
    return bool(re.search(rf"\b({words}) {name}\b|^{name} = ", text, re.MULTILINE))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
def test_what_the_architecture_page_says_is_in_a_file_is_there(place: list[str]) -> None:
    files, names = (re.findall(r"`([\w./-]+)`", cell) for cell in place[1:3])
    assert files or "](" in place[1]
    assert [file for file in files if not (ROOT / file).exists()] == []
    paths = [ROOT / file for file in files if (ROOT / file).is_file()]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert [name for name in names if not any(defined(name, text) for text in texts)] == []


def test_the_architecture_page_says_where_to_find_what_newcomers_ask() -> None:
    asked = "fast convergence", "drop a packet", "reward computed", "Table 6", "daemon dies"
    for question in asked:
        assert any(question in place[0] for place in PLACES), question
    assert len(PLACES) >= 15
