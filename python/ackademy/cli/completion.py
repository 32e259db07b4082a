"""Completions that the shell offers for an incomplete word."""

from __future__ import annotations

from pathlib import Path

from ackademy import lookup


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios, files and folders with this start."""
    return _beginning(lookup.names("scenario"), incomplete) + _files(incomplete, ".toml")


def distributions(incomplete: str) -> list[str]:
    """Names of distributions, files and folders with this start."""
    return _beginning(lookup.names("distribution"), incomplete) + _files(incomplete, ".toml")


def lists(incomplete: str) -> list[str]:
    """Names of lists of networks, files and folders with this start."""
    return _beginning(lookup.names("list"), incomplete) + _files(incomplete, ".links")


def recipes(incomplete: str) -> list[str]:
    """Names of recipes, files and folders with this start."""
    return _beginning(lookup.names("recipe"), incomplete) + _files(incomplete, ".toml")


def suites(incomplete: str) -> list[str]:
    """Names of suites, files and folders with this start."""
    return _beginning(lookup.names("suite"), incomplete) + _files(incomplete, ".toml")


def controllers(incomplete: str) -> list[str]:
    """Controllers, policies and Python files; after a comma, the next scheme."""
    before, comma, last = incomplete.rpartition(",")
    known = [*lookup.controllers(), *lookup.names("policy")]
    return [f"{before}{comma}{own}" for own in _beginning(known, last) + _files(last, ".py")]


def one_controller(incomplete: str) -> list[str]:
    """Names of controllers alone."""
    return _beginning(lookup.controllers(), incomplete)


def policies(incomplete: str) -> list[str]:
    """Policies, controllers and folders with this start."""
    known = [*lookup.names("policy"), *lookup.controllers()]
    return _beginning(known, incomplete) + _files(incomplete, "/")


def experiments(incomplete: str) -> list[str]:
    """Papers and their items."""
    items = lookup.names("paper")
    return _beginning(sorted({*items, *(item.partition("/")[0] for item in items)}), incomplete)


def _beginning(known: list[str], incomplete: str) -> list[str]:
    return [name for name in known if name.startswith(incomplete)]


def _files(incomplete: str, ending: str) -> list[str]:
    """Folders, and files of an ending, whose path begins so; nothing before a letter is typed."""
    if not incomplete:
        return []
    folder, _, start = incomplete.rpartition("/")
    root = Path(folder or ("/" if incomplete.startswith("/") else "."))
    prefix = f"{folder}/" if "/" in incomplete else ""
    try:
        found = sorted(path for path in root.iterdir() if path.name.startswith(start))
    except OSError:
        return []
    shown = [f"{path.name}/" if path.is_dir() else path.name for path in found]
    return [f"{prefix}{name}" for name in shown if name.endswith(("/", ending))]
