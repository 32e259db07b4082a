"""Fixed lists of networks: drawn by named seeds, or files (docs/reference/distributions.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ackademy import _core
from ackademy.backends import distributions, entries
from ackademy.backends.runs import read_scenario, read_text
from ackademy.errors import ExperimentError, ScenarioError
from ackademy.toml_table import TomlTable


@dataclass(frozen=True, slots=True)
class Link:
    """One network of a list."""

    name: str
    """unique in its list"""
    kind: str
    """class that a distribution drew it from; `file` for a file"""
    scenario: _core.Scenario
    flows: tuple[str, ...] = ("*",)
    """patterns of the entries that are evaluated"""


@dataclass(frozen=True, slots=True)
class LinkList:
    """Networks that are always the same."""

    about: str
    links: tuple[Link, ...]
    digest: str
    """SHA-256 over every network's name and canonical text, in order; 64 hexadecimal digits"""


def read(path: Path) -> LinkList:
    """The networks of a list.

    Raises:
        ExperimentError: if the list or a file that it names is wrong, or its digest is not that of
            its networks.
    """
    table = TomlTable.read(path).only("about", "digest", "drawn", "files", "flows")
    links = [*_drawn(table, path), *_files(table, path)]
    if not links:
        raise table.error("drawn", None, "one [[drawn]] or more, or files")
    digest = hashlib.sha256()
    for link in links:
        digest.update(f"{link.name}\n{link.scenario.canonical()}\n".encode())
    told, found = table.string("digest"), digest.hexdigest()
    if told != found:
        raise table.error("digest", told, f"that of its networks, {found}")
    return LinkList(table.string("about"), tuple(links), found)


def _drawn(table: TomlTable, path: Path) -> Iterator[Link]:
    for own in table.tables("drawn") if "drawn" in table.values else []:
        own.only("distribution", "progress", "first_seed", "stream", "count")
        distribution = _distribution(own, path.parent)
        kinds = [distribution.classes[place] for place in distribution.class_of_each]
        kind_of = dict(zip(distribution.names, kinds, strict=True))
        count = own.whole("count", 1, 10_000)
        progress = own.number("progress")
        for seed in _seeds(own, count):
            scenario = distribution.draw(seed, progress)
            kind = kind_of[scenario.name.removesuffix(f"-{seed}")]
            yield Link(scenario.name, kind, scenario, tuple(distribution.learners) or ("*",))


def _seeds(own: TomlTable, count: int) -> Sequence[int]:
    """Seeds that count up, or those of a named stream."""
    if "stream" not in own.values:
        last = distributions.STREAMS_FROM - count
        return distributions.seeds(own.whole("first_seed", 0, last), count)
    if "first_seed" in own.values:
        raise own.error("first_seed", own.values["first_seed"], "one of first_seed, stream")
    stream = own.string("stream")
    if not stream:
        raise own.error("stream", stream, "a name")
    return distributions.stream_seeds(stream, count)


def _distribution(own: TomlTable, folder: Path) -> _core.Distribution:
    try:
        return distributions.read(folder / own.string("distribution"))
    except ScenarioError as error:
        raise ExperimentError(f"{own.where}: distribution: {error}") from error


def _files(table: TomlTable, path: Path) -> Iterator[Link]:
    names = table.strings("files", [])
    told = table.table("flows").only(*names) if "flows" in table.values else None
    for name in names:
        file = path.parent / name
        try:
            parsed = _core.Scenario.parse(read_text(file), str(file))
        except ScenarioError as error:
            raise ExperimentError(f"{table.where}: files: {error}") from error
        flows = told.string(name, "*") if told else "*"
        if told and not entries.named(parsed, [flows]):
            raise told.error(name, flows, f"of {', '.join(parsed.entries)}, or a pattern of them")
        yield Link(name, "file", read_scenario(parsed), (flows,))
