"""The documentation site: every page is in it, links lead somewhere, nothing is fetched."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

import docs_site
from ackademy.cli import COMMANDS

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))


def entries(nav: list[dict[str, object]]) -> list[str]:
    """The pages of a navigation, in its order."""
    found: list[str] = []
    for own in nav:
        for value in own.values():
            found += entries(value) if isinstance(value, list) else [str(value)]
    return found


NAV = entries(CONFIG["project"]["nav"])


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(NAV) == len(set(NAV))
    assert {"index.md", *pages} - {"README.md"} <= set(NAV)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("needs docs: a group")
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docs_site, "WORK", folder / "work")
        patch.setattr(docs_site, "SITE", folder / "site")
        patch.setattr(sys, "argv", ["docs_site.py", "--no-reports"])
        docs_site.main()
    return folder / "site"


def test_the_site_is_built_strictly_and_has_a_page_for_each_entry(built: Path) -> None:
    absent = {"rust.md", "playground.md", "results/reports/index.md"}
    for page in set(NAV) - absent:
        assert (built / page).with_suffix(".html").is_file(), page
    assert (built / "search.json").stat().st_size > 100_000
    assert list(docs_site.faults(built)) == []


def test_a_link_to_nowhere_and_a_script_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="none.html">x</a><a href="#no">x</a><a href="https://e.org">x</a>'
        '<script src="https://e.org/x.js"></script><img src="//e.org/x.png">'
    )
    told = "\n".join(docs_site.faults(tmp_path))
    assert told.count("link to") == 2
    assert told.count("loads") == 2


def test_the_page_of_commands_has_every_command_and_option(built: Path) -> None:
    text = (built / "reference" / "commands.html").read_text("utf-8")
    for name in COMMANDS:
        assert f'id="{name}"' in text, name
    for option in ("--cc", "--seed", "--work", "--backend"):
        assert option in text


def test_pages_of_fields_have_their_ranges(built: Path) -> None:
    text = (built / "reference" / "files" / "scenario.html").read_text("utf-8")
    row = re.search(r"<td><code>hops</code>.*?</tr>", text, re.DOTALL)
    assert row
    assert "1 to 100" in row[0]


@pytest.mark.parametrize(
    ("link", "url", "shown"),
    [
        ("[a](../examples)", "", "a"),
        ("[a](../examples)", "https://e.org/x", "[a](https://e.org/x/blob/main/examples)"),
        ("[a](guide/lab.md#x)", "", "[a](guide/lab.md#x)"),
        ("[a](README.md)", "", "[a](index.md)"),
        ("![a](img/border.svg)", "", "![a](img/border.svg)"),
        ("[a](https://e.org)", "", "[a](https://e.org)"),
        ("```\n[a](../examples)\n```\n", "", "```\n[a](../examples)\n```\n"),
    ],
)
def test_links_that_leave_the_docs_go_to_the_address_or_become_text(
    link: str, url: str, shown: str
) -> None:
    assert docs_site.rewritten(link, "README.md", url) == shown


def test_pages_have_no_public_address_which_is_one_variable() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert "github.com" not in page.read_text("utf-8"), page


def serve(site: Path, *words: str) -> subprocess.Popen[str]:
    code = (
        "import sys; from pathlib import Path; from ackademy import installation; "
        f"installation.site = lambda: Path({str(site)!r}); "
        "from ackademy.cli import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, "docs", "--no-open", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_command_serves_the_pages_on_this_machine_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>pages</h1>")
    process = serve(tmp_path)
    try:
        assert process.stdout
        address = process.stdout.readline().split()[1]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b"<h1>pages</h1>"
    finally:
        process.terminate()
        process.communicate()


def test_without_pages_the_command_says_how_to_build_them(tmp_path: Path) -> None:
    process = serve(tmp_path)
    _, err = process.communicate()
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert "make docs" in err
    assert shutil.which("make")


def test_with_an_address_the_navigation_ends_with_the_sources() -> None:
    plain = tomllib.loads(docs_site.config("", {}, has_reports=False))["project"]["nav"]
    found = tomllib.loads(docs_site.config("https://e.org/a/b", {}, has_reports=False))
    assert found["project"]["nav"] == [*plain, {"Source": "https://e.org/a/b"}]
    assert {"playground.md", "rust.md"} & set(entries(plain)) == set()
