"""Links in README.md and docs/ lead to files and headings that exist; the index has every page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"|<a [^>]*href=\"([^\"]+)\"")
CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
FOLDERS = "crates data python research tests tools"
SOURCE = re.compile(rf"`((?:{'|'.join(FOLDERS.split())})/[\w./-]*)`")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|svg|png)")
MADE = {
    "crates/core/src/controllers/my_cc.rs",
    "crates/core/src/controllers/NAME.rs",
}
"""Paths that the reader makes."""


def name(page: Path) -> str:
    """The page's path in the repository."""
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (numbered := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(numbered)
    return found


def links(page: Path) -> list[str]:
    """What a page links to within the repository."""
    found = [next(filter(None, groups)) for groups in LINK.findall(prose(page))]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_link_is_broken(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_named_in_a_page_exist(page: Path) -> None:
    named = SOURCE.findall(prose(page))
    assert [path for path in named if path not in MADE and not (ROOT / path).exists()] == []


def test_files_named_in_the_glossary_exist() -> None:
    named = re.findall(r"`([\w/]+(?:/|\.py|\.rs))`", prose(DOCS / "reference" / "glossary.md"))
    roots = ROOT, ROOT / "crates", ROOT / "python" / "ackademy"
    assert len(named) > 20
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](none.md) [b](#one-thing) [c](#two) [d](https://e.org)\n")
    assert broken(page) == ["none.md", "#two"]


def test_the_index_links_to_every_page() -> None:
    index = DOCS / "README.md"
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {page for page in DOCS.rglob("*.md") if page != index}
    assert sorted(name(page) for page in pages - linked) == []


def test_pages_that_code_and_data_name_exist() -> None:
    tracked = subprocess.run(
        ["git", "grep", "-lI", "docs/"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    missing = [
        (file, page)
        for file in tracked
        for page in NAMED.findall((ROOT / file).read_text(encoding="utf-8"))
        if not (ROOT / page).is_file()
    ]
    assert missing == []
