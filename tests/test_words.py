"""Python code and tests use the field's words: docs/reference/glossary.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WORDS = {
    "cashiers?": "reward source",
    "contenders?": "scheme in a case",
    "desks?": "episode source",
    "enrol(s|led)?": "observe",
    "entrants?": "scheme",
    r"journals?(?! paper)": "action log, checkpoint",
    "ledgers?": "open decisions",
    "lessons?": "episode",
    "logbooks?": "training log",
    "paid(_for)?": "reward, decision index",
    "pay(s|ment|ments)?": "compute a reward",
    "pilots?": "agent settings, learned controller, policy",
    "pupils?": "training result",
    "schools?": "episode source",
    "standings?": "case score, ranking",
    r"(?<!of )courses?": "environment, task",
    "trials?": "case, cell",
}
"""Whole words, case aside, that are not used any more, and what stands for them."""

ALLOWED = {
    '"entrant"': "a column of files that `eval` and `generalise` write",
    '"ackademy.pilot"': "the key of models exported before; an error names its new name",
    "is paid for the packets": "text of the shipped cards of tcp_drinc",
}
"""Where a word stays, with the reason."""

OLD = re.compile(rf"\b_?({'|'.join(WORDS)})\b", re.IGNORECASE)


def found(text: str) -> list[str]:
    """The old words of a line."""
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    return [match[1] for match in OLD.finditer(text)]


SOURCES = sorted(
    path
    for folder in ("python/ackademy", "tests")
    for path in (ROOT / folder).rglob("*.py*")
    if path.suffix in (".py", ".pyi") and "data" not in path.parts and path != Path(__file__)
)


def test_no_old_word_is_used() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {', '.join(words)}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (words := found(line))
    ]
    assert lines == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self._standings = standings(found)", ["standings", "standings"]),
        ("class Pupil:", ["Pupil"]),
        ("the journal paper's numbers, of course", []),
        ('{"entrant": name}', []),
        ("the course of training", ["course"]),
        ("understanding", []),
    ],
)
def test_whole_words_are_found_in_any_case(text: str, words: list[str]) -> None:
    assert found(text) == words
