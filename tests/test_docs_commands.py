"""Commands in README.md and docs/ exist, with their options and the files that they name."""

from __future__ import annotations

import re
import shlex
from glob import glob
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ackademy.cli import app, load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:ackademyd?|make) [^`]+)`")
AS_ROOT = re.compile(r"^sudo (?:-E env \S+ )?")
DAEMON = {
    name: "".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.rs")))
    for name in ("bench", "kernel", "lab", "link", "quic")
    if (folder := ROOT / "crates" / "net" / "src" / name).is_dir()
}
"""The sources of the commands of `ackademyd`, whose arguments are fields of structs."""
SHIPPED = re.compile(r"(?:data|research)/[\w/*.-]+")
COMMANDS: Any = typer.main.get_command(app)


def commands(text: str) -> list[str]:
    """Every command of a page, continued lines joined and comments left out."""
    lines = [line for block in BLOCK.findall(text) for line in joined(block).splitlines()]
    shown = [AS_ROOT.sub("", line.split("  #")[0].strip()) for line in lines]
    return [line for line in shown + INLINE.findall(text) if re.match(r"(ackademyd?|make) ", line)]


def joined(block: str) -> str:
    """A block whose lines with a backslash at the end are one."""
    return block.replace("\\\n", " ")


def expanded(pattern: str) -> list[str]:
    """A pattern of the shell with its braces written out."""
    if braces := re.search(r"\{([^}]*)\}", pattern):
        return [
            path
            for choice in braces[1].split(",")
            for path in expanded(pattern.replace(braces[0], choice, 1))
        ]
    return [pattern]


def wrong(line: str) -> list[str]:
    """What a command names that is not there."""
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return [word for word in words if "=" not in word and word not in targets]
    if program == "ackademyd":
        return wrong_for_daemon(words)
    if not words or words[0].startswith("-") or not words[0].islower():
        return []
    if words[0] not in COMMANDS.commands:
        return [words[0]]
    command: Any = load(words[0])
    if hasattr(command, "commands") and len(words) > 1:
        command = command.commands[words[1]]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    options = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    missing = [option for option in options if option not in known]
    files = [path for word in words for path in expanded(word) if SHIPPED.fullmatch(path)]
    return missing + [path for path in files if not glob(str(ROOT / path))]


def wrong_for_daemon(words: list[str]) -> list[str]:
    """The options of a command of `ackademyd` that are no field of its arguments."""
    if words[0] not in DAEMON:
        return [] if words[0] in ("man", "licenses") else [words[0]]
    own = words[: words.index("--")] if "--" in words else words
    options = [word.split("=")[0] for word in own if word.startswith("--")]
    fields = DAEMON[words[0]]
    return [
        option
        for option in options
        if option != "--help" and not re.search(rf"\b{option[2:].replace('-', '_')}:", fields)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist_with_their_options_and_files(page: Path) -> None:
    found = commands(page.read_text(encoding="utf-8"))
    assert [(line, names) for line in found if (names := wrong(line))] == []


def test_a_command_an_option_and_a_file_that_are_not_there_are_found() -> None:
    page = "```sh\nackademy sun x  # no\nackademy run data/none.toml --sun \\\n  --seed 1\n```\n"
    assert [wrong(line) for line in commands(page + "`make sun`")] == [
        ["sun"],
        ["--sun", "data/none.toml"],
        ["sun"],
    ]
