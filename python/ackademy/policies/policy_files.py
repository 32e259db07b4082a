"""The two files of a policy of a network, without the libraries that training needs."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackademy import _core, files
from ackademy.errors import ExchangeError
from ackademy.files import write as write_file
from ackademy.folders import POLICY_FILE, check_policy_folder, put_policy_folder
from ackademy.toml_table import toml_value

Tensors: TypeAlias = Mapping[str, npt.NDArray[Any]]
Tables: TypeAlias = list[dict[str, Any]]
"""of `[[layers]]`"""
POLICY, WEIGHTS = POLICY_FILE, "weights.safetensors"
SETTINGS_TABLES = ("observation", "decision", "action", "bounds", "start")
DTYPES = {"F32": np.float32, "U32": np.uint32, "U8": np.uint8}
TABLES_BYTES_MAX = 1 << 16
"""of `policy.toml`, as the core has it"""
WEIGHTS_BYTES_MAX = 1 << 26
"""of a file of tensors, as the core has it"""


@dataclass(frozen=True, slots=True)
class Opened:
    """A policy that the core has checked, with its layers and tensors."""

    policy: _core.Policy
    layers: Tables
    tensors: Tensors

    @property
    def entering(self) -> tuple[int, int]:
        """(history, features) of an observation."""
        return self.policy.history, len(self.policy.features)


def open_policy(folder: Path) -> Opened:
    """Read a policy's folder.

    Raises:
        ExchangeError: if it holds no policy of a network.
    """
    try:
        policy = _core.Policy.open(folder)
        described = tomllib.loads(read_file(folder / POLICY, TABLES_BYTES_MAX).decode("utf-8-sig"))
        tensors = tensors_of(read_file(folder / WEIGHTS, WEIGHTS_BYTES_MAX))
    except ValueError as error:
        raise ExchangeError(str(error)) from None
    return Opened(policy, described["layers"], tensors)


def tensors_of(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a safetensors file that the core has checked."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            start, end = about["data_offsets"]
            kind = np.dtype(DTYPES[about["dtype"]]).newbyteorder("<")
            tensors[name] = np.frombuffer(data[start:end], kind).reshape(about["shape"])
    return tensors


def bytes_of(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """Tensors as safetensors: the bytes that the library of that name would write.

    Args:
        tensors: of the types of `DTYPES`; others become `F32`.
        metadata: texts about them, if there are any.
    """
    header: dict[str, object] = (
        {"__metadata__": dict(sorted(metadata.items()))} if metadata is not None else {}
    )
    kinds = {np.dtype(kind): name for name, kind in DTYPES.items()}
    parts, offset = [], 0
    # Wide elements first keeps every tensor aligned.
    for name in sorted(tensors, key=lambda own: (tensors[own].dtype == np.uint8, own)):
        kind = kinds.get(tensors[name].dtype, "F32")
        raw = tensors[name].astype(np.dtype(DTYPES[kind]).newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        parts.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def settings_of(path: Path) -> str:
    """The five tables, as TOML, of a policy's folder or of a file that holds them.

    Args:
        path: a folder with `policy.toml`, or a TOML file such as that one or a recipe.

    Raises:
        ExchangeError: if it cannot be read or has not the tables that an agent must have.
    """
    file = path / POLICY if path.is_dir() else path
    try:
        return settings_in(read_file(file, TABLES_BYTES_MAX).decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise ExchangeError(f"{file}: {error}") from None


def settings_in(text: str, where: str) -> str:
    """The five tables of a text, without its other fields.

    Raises:
        ExchangeError: as `settings_of`.
    """
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ExchangeError(f"{where}: {plain(str(error))}") from None
    tables = {name: values[name] for name in SETTINGS_TABLES if name in values}
    for name, table in tables.items():
        if not isinstance(table, dict) or not all(key.isidentifier() for key in table):
            raise ExchangeError(
                f"{where}: {name}: allowed: a table, as `ackademy new policy` writes it"
            )
    for name in SETTINGS_TABLES[:3]:
        if name not in tables:
            raise ExchangeError(f"{where}: {name} is missing: allowed: a table of this name")
    return tables_text(tables)


def plain(text: str | bytes) -> str:
    """Untrusted text as part of a line: no line breaks, no control characters, limited length.

    Protobuf returns bytes for a text that is not UTF-8.
    """
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    return " ".join("".join(c if c.isprintable() else " " for c in text[:400]).split())[:200]


def tables_text(tables: Mapping[str, object]) -> str:
    """Tables of plain values as TOML, each under its head."""
    blocks = []
    for name, table in tables.items():
        assert isinstance(table, Mapping)
        lines = [f"{key} = {toml_value(value)}" for key, value in table.items()]
        blocks.append("\n".join([f"[{name}]", *lines]) + "\n")
    return "\n".join(blocks)


def policy_text(
    about: str,
    settings: str,
    layers: Tables,
    made: Mapping[str, object],
    ranges: Sequence[tuple[float, float]] = (),
) -> str:
    """`policy.toml`.

    Args:
        about: a line.
        settings: the five tables as TOML.
        layers: of `[[layers]]`.
        made: how it came about.
        ranges: of the features, outside of which the guard sets the action to zeros; or none.
    """
    blocks = [f"format = 1\nabout = {toml_value(about)}\n", settings.strip() + "\n"]
    for layer in layers:
        lines = [f"{key} = {toml_value(value)}" for key, value in layer.items()]
        blocks.append("\n".join(["[[layers]]", *lines]) + "\n")
    guard: dict[str, object] = {"fallback": "cubic"}
    if ranges:
        guard["ranges"] = [list(pair) for pair in ranges]
    blocks.append(tables_text({"guard": guard}))
    blocks.append(tables_text({"made": made}))
    return "\n".join(blocks)


def read_file(path: Path, bytes_max: int) -> bytes:
    """The content of a file; pipes and devices, which may never end, are refused.

    Raises:
        ExchangeError: if it cannot be read or is too large.
    """
    return files.read_bytes(path, bytes_max, ExchangeError)


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write a policy's folder atomically.

    Args:
        folder: of the policy.
        files: contents by name.
        force: replace a policy that is there.

    Raises:
        AckademyError: if it cannot be written, or holds something else.
    """
    with new_folder(folder, force=force) as scratch:
        for name, content in files.items():
            write_file(scratch / name, content)


@contextmanager
def new_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """A folder that takes the place of a policy's once everything is written to it.

    Raises:
        AckademyError: as `write_folder`.
    """
    check_policy_folder(folder, force=force)
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        yield scratch
        put_policy_folder(scratch, folder)
    except OSError as error:
        raise ExchangeError(f"cannot write {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
