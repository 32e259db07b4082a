"""The project uses the field's words: `tests/words.toml` lists those it does not use.

`crates/core/tests/words.rs` reads the same list, for those who run the Rust tests alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""a word of an identifier: `PolicySpec` and `policy_spec` have two"""


def old_words(line: str, path: str = "") -> list[str]:
    """The words of the list in a line of a file, but for those that are allowed there."""
    found = []
    for part in PART.findall(line):
        word = part.lower()
        singular = word.removesuffix("s")
        old = next((old for old in (word, singular) if old in LIST["say"]), None)
        if old is not None and not is_allowed(old, line, path):
            found.append(old)
    return found


def is_allowed(word: str, line: str, path: str) -> bool:
    """Whether a word stays in this line of this file."""
    return any(
        allowed["word"] == word
        and (
            ("in" in allowed and allowed["in"] in line)
            or any(path.startswith(start) for start in allowed.get("paths", ()))
        )
        for allowed in LIST["allowed"]
    )


def sources() -> Iterator[Path]:
    """Every file that the list is about."""
    read = LIST["read"]
    for name in read["paths"]:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else (path,):
            own = file.relative_to(ROOT).as_posix()
            if file.suffix.removeprefix(".") in read["ends"] and not own.startswith(
                tuple(read["not"])
            ):
                yield file


def test_no_old_word_is_used() -> None:
    files = list(sources())
    assert len(files) > 500
    lines = [
        f"{file.relative_to(ROOT)}:{number}: {word}: say {LIST['say'][word]}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for word in old_words(line, file.relative_to(ROOT).as_posix())
    ]
    assert not lines, "\n".join(lines)


def test_pages_have_no_turns_of_phrase_that_readers_stumbled_over() -> None:
    phrase = re.compile("|".join(LIST["pages"]["phrases"]), re.IGNORECASE)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {hit[0]}"
        for path in pages
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (hit := phrase.search(line))
    ]
    assert not lines, "\n".join(lines)


def test_every_exception_is_needed_and_has_a_reason() -> None:
    used = {
        index
        for file in sources()
        for line in file.read_text(encoding="utf-8").splitlines()
        for index, allowed in enumerate(LIST["allowed"])
        if allowed["word"] in line.lower()
        and (
            ("in" in allowed and allowed["in"] in line)
            or file.relative_to(ROOT).as_posix().startswith(tuple(allowed.get("paths", ())))
        )
    }
    assert all(allowed["why"] for allowed in LIST["allowed"])
    assert used == set(range(len(LIST["allowed"])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("struct PilotSpec; fn take_seat(); // two pilots", ["pilot", "seat", "pilot"]),
        ("PILOT_KEY", ["pilot"]),
        ("remind, shear, heart, desktop, schooling, understanding", []),
    ],
)
def test_words_are_found_in_identifiers_and_plurals_but_not_inside_others(
    text: str, words: list[str]
) -> None:
    assert old_words(text) == words
