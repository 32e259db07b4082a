"""Recorded traces of links: published campaigns, and sets of files that have nothing in common."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from ackademy import files
from ackademy.errors import ExperimentError
from ackademy.folders import SHIPPED
from ackademy.toml_table import TomlTable, toml_value

SETS = ("train", "validation", "test")
BYTES_MAX = 1 << 30
"""of a recording, as the core's reader has it"""
CHOICES_MAX = 400
"""links of one scenario of a set: the core tries every one with every end of the other draws"""
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Campaign:
    """A published collection of recordings."""

    about: str
    format: str
    page: str
    licence: str
    citation: str
    at: str = ""
    """address of the folder of its files; empty if they have no fixed ones"""
    files: Mapping[str, object] | None = None
    """SHA-256 of each, where it is known"""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a set's scenarios read its recordings: fields of a link's `trace` and `delay_trace`."""

    rate: Mapping[str, object]
    delay: Mapping[str, object] | None = None
    delay_name: tuple[str, str] = ("", "")
    """what in the name of a rate's file becomes what in that of its delay's"""


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of rates, and that of the delays recorded with it."""

    path: Path
    group: str
    sha256: str
    delay: Path | None = None


def campaigns() -> Mapping[str, Campaign]:
    """All that are known, by name."""
    table = TomlTable.read(SHIPPED / "campaigns.toml")
    return {name: table.table(name).into(Campaign) for name in table.values}


def fetch(name: str, folder: Path) -> Iterator[Path]:
    """Download the files of a campaign that are not there, each whole or not at all.

    Raises:
        ExperimentError: if the campaign is unknown or has no fixed addresses, if an address cannot
            be reached, or if what is there or comes from it has another digest; one line.
    """
    known = campaigns()
    if name not in known:
        raise ExperimentError(f"campaign {name!r}: allowed: {', '.join(known)}")
    campaign = known[name]
    if not campaign.files:
        raise ExperimentError(f"{name}: its files have no fixed addresses: {campaign.page}")
    for file, digest in campaign.files.items():
        path = folder / files.file_name(file)
        content = files.read_bytes(path, BYTES_MAX) if path.exists() else _get(name, campaign, file)
        found = hashlib.sha256(content).hexdigest()
        if digest and found != digest:
            raise ExperimentError(
                f"{path}: sha256 {found}: allowed: that of the campaign, {digest}"
            )
        if not path.exists():
            files.write(path, content)
        yield path


def _get(name: str, campaign: Campaign, file: str) -> bytes:
    address = campaign.at + file
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(BYTES_MAX + 1)
    except (OSError, HTTPException) as error:
        reason = str(getattr(error, "reason", error)).splitlines()[0]
        by_hand = f"fetch it by hand from {campaign.page}"
        raise ExperimentError(f"{name}: cannot reach {address} ({reason}); {by_hand}") from error
    if len(content) > BYTES_MAX:
        raise ExperimentError(f"{address}: allowed: a file of at most {BYTES_MAX} bytes")
    return content


def found(folder: Path, pattern: str, group: str, layout: Layout) -> list[Recording]:
    """The recordings of a folder.

    Args:
        folder: the folder.
        pattern: of the files of rates, such as `**/bw_*.txt`.
        group: regular expression that finds, in a path below the folder, what names its
            operator and day: what its groups match, or all of it.
        layout: how they are read.

    Raises:
        ExperimentError: if there is none, if one has no group, or if two groups have a file of
            the same content.
    """
    try:
        expression = re.compile(group)
    except re.error as error:
        raise ExperimentError(f"--by {group!r}: {error}; allowed: a regular expression") from error
    if not folder.is_dir():
        raise ExperimentError(f"{folder}: allowed: a folder")
    recordings: dict[str, Recording] = {}
    for path in sorted(path for path in folder.glob(pattern) if path.is_file()):
        below = path.relative_to(folder).as_posix()
        match = expression.search(below)
        if match is None:
            raise ExperimentError(f"{path}: --by {group!r} finds nothing in {below}")
        own = " ".join(part for part in match.groups() if part) or match[0]
        digest = hashlib.sha256(files.read_bytes(path, BYTES_MAX)).hexdigest()
        delay = None
        if layout.delay is not None:
            delay = path.with_name(path.name.replace(*layout.delay_name))
            if delay == path or not delay.is_file():
                raise ExperimentError(f"{path}: no delays in {delay}: allowed: a file beside it")
        twin = recordings.get(digest)
        if twin is not None and twin.group != own:
            where = f"{twin.path} of {twin.group}"
            raise ExperimentError(f"{path} of {own} is the same as {where}: allowed: one of them")
        recordings.setdefault(digest, Recording(path, own, digest, delay))
    if not recordings:
        raise ExperimentError(f"{folder}: no file is {pattern}: allowed: a pattern of recordings")
    return list(recordings.values())


def split(
    recordings: Sequence[Recording], parts: Sequence[float], seed: int
) -> Mapping[str, list[Recording]]:
    """Sets that share no group, each with about its part of the recordings.

    Groups come in an order that follows from their names and the seed, each into the set that
    lacks most.

    Raises:
        ExperimentError: if there are fewer groups than sets.
    """
    groups: dict[str, list[Recording]] = {}
    for recording in recordings:
        groups.setdefault(recording.group, []).append(recording)
    if len(groups) < len(SETS):
        shown = ", ".join(sorted(groups))
        raise ExperimentError(f"--by: {len(groups)} groups ({shown}): allowed: {len(SETS)} or more")
    order = sorted(groups, key=lambda own: hashlib.sha256(f"{seed}\n{own}".encode()).digest())
    sets: dict[str, list[Recording]] = {name: [] for name in SETS}
    for place, own in enumerate(order):
        empty = [name for name in SETS if not sets[name]]
        if empty and len(order) - place <= len(empty):
            sets[empty[0]] += groups[own]
            continue
        lacks = [
            part * len(recordings) - len(sets[name]) for name, part in zip(SETS, parts, strict=True)
        ]
        sets[SETS[lacks.index(max(lacks))]] += groups[own]
    return sets


def distribution(name: str, recordings: Sequence[Recording], layout: Layout, folder: Path) -> str:
    """A set as a distribution: one flow for a minute, over any recording from any second on."""
    groups = sorted({recording.group for recording in recordings})
    about = f"Recorded links, {name}: {', '.join(groups)}."
    lines = [f"about = {toml_value(about)}", 'learners = ["own"]']
    for group in groups:
        own = [recording for recording in recordings if recording.group == group]
        for place in range(0, len(own), CHOICES_MAX):
            chosen = own[place : place + CHOICES_MAX]
            lines += _scenario(
                f"{group}, {place // CHOICES_MAX + 1}", group, chosen, layout, folder
            )
    return "\n".join(lines) + "\n"


def _scenario(
    name: str, group: str, recordings: Sequence[Recording], layout: Layout, folder: Path
) -> list[str]:
    queue = {"kind": "drop_tail"}
    links = []
    for recording in recordings:
        link: dict[str, object] = {
            "queue": queue,
            "trace": _named(recording.path, layout.rate, folder),
        }
        if recording.delay is not None and layout.delay is not None:
            link["delay_trace"] = _named(recording.delay, layout.delay, folder)
        links.append(link)
    has_delay = layout.delay is not None
    begins = '"dumbbell.bottleneck.trace.from_s" = { uniform = [0, 3600]'
    dumbbell = "dumbbell.reverse_varies = true" if has_delay else "dumbbell = {}"
    return [
        "",
        "[[scenario]]",
        f"name = {toml_value(name)}",
        f"class = {toml_value(group)}",
        f"weight = {len(recordings)}",
        "[scenario.inline]",
        "duration_s = 60",
        'flow = [{ name = "own" }]',
        dumbbell,
        "[scenario.draw]",
        f'{begins}, also = ["dumbbell.bottleneck.delay_trace.from_s"] }}'
        if has_delay
        else f"{begins} }}",
        *([] if has_delay else ['"dumbbell.rtt_ms" = { log_uniform = [20, 150] }']),
        '"dumbbell.bottleneck.queue.packets" = { log_integer = [50, 1000] }',
        '"dumbbell.bottleneck" = { choice = [',
        *(f"  {toml_value(link)}," for link in links),
        "] }",
    ]


def _named(path: Path, fields: Mapping[str, object], folder: Path) -> dict[str, object]:
    digest = hashlib.sha256(files.read_bytes(path, BYTES_MAX)).hexdigest()
    name = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    return {"file": name, **fields, "sha256": digest}


def check_apart(paths: Sequence[Path]) -> Mapping[Path, int]:
    """How many recordings each set has, none of them in another.

    Raises:
        ExperimentError: if a file is no set, or if two sets share a recording.
    """
    owners: dict[str, Path] = {}
    counts: dict[Path, int] = {}
    for path in paths:
        try:
            table = tomllib.loads(files.read_text(path, error=ExperimentError))
        except tomllib.TOMLDecodeError as error:
            raise ExperimentError(f"{path}: {error}") from error
        digests = set(_digests(table))
        if not digests:
            raise ExperimentError(
                f"{path}: no recording with a sha256: allowed: a set of `traces split`"
            )
        for digest in sorted(digests):
            if owners.setdefault(digest, path) != path:
                raise ExperimentError(
                    f"{path}: sha256 {digest} is in {owners[digest]}, too: allowed: in one set"
                )
        counts[path] = len(digests)
    return counts


def _digests(value: object) -> Iterator[str]:
    """The digests of a set's rates."""
    if isinstance(value, Mapping):
        trace = value.get("trace")
        if isinstance(trace, Mapping) and isinstance(trace.get("sha256"), str):
            yield str(trace["sha256"])
        for inner in value.values():
            yield from _digests(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _digests(inner)
