"""The result of a benchmark: one file of JSON that holds every number and says what it is of.

Its last field is the SHA-256 of all others. A reader computes estimates from the values of
the runs, and not from those that the file gives for people. A signature by an SSH key lies beside
it: `ssh-keygen -Y sign` makes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackademy import __version__, _core, files
from ackademy.errors import AckademyError, FileError
from ackademy.render.exports import to_json
from ackademy.runner.cells import measuring_hash
from ackademy.stats.intervals import Interval
from ackademy.studies.benchmark import entries
from ackademy.studies.benchmark.entries import Entry
from ackademy.studies.benchmark.study import NUMBERS, Network, Result

BYTES_MAX = 64 * 1024 * 1024
NAMESPACE = "ackademy-benchmark"
"""of signatures"""
SIGNING_S = 30.0
FORMAT = ("benchmark", "entry", "program", "networks", "schemes", "numbers", "differences", "runs")
"""keys of the file besides the digest"""


def text(own: Entry, found: Result, networks_digest: str) -> str:
    """The content of the file; the same bytes for the same entry and program."""
    schemes = found.schemes
    content: dict[str, object] = {
        "benchmark": entries.VERSION,
        "entry": {
            "name": own.name,
            "controller": str(own.scheme.controller).rpartition("/")[2],
            "settings": {k: v for k, v in own.scheme.params if not isinstance(v, str)},
            "digest": own.digest,
            "marks": list(own.marks),
        },
        "program": {
            "version": __version__,
            "core": _core.CODE_HASH,
            "measuring": measuring_hash("sim"),
        },
        "networks": {"stream": own.stream, "digest": networks_digest, "count": len(found.networks)},
        "schemes": schemes,
        "numbers": [
            {"number": number.key, "scheme": name, **_of(found.estimate(number, name))}
            for number in NUMBERS
            for name in schemes
        ],
        "differences": [
            {
                "number": number.key,
                "minus": name,
                **_of(found.difference(number, name)),
            }
            for number in NUMBERS
            for name in schemes[1:]
        ],
        "runs": [
            {
                "network": one.name,
                "kind": one.kind,
                "panel": one.panel,
                "values": {name: dict(sorted(of.items())) for name, of in one.values.items()},
            }
            for one in found.networks
        ],
    }
    return to_json({**content, "sha256": _digest(json.loads(to_json(content)))})


def read(path: Path) -> Result:
    """Read a result.

    Raises:
        FileError: if it cannot be read.
        AckademyError: if it is none, was changed, or has a signature that is not of it; one line.
    """
    try:
        content = json.loads(files.read_bytes(path, BYTES_MAX))
    except (ValueError, RecursionError) as error:
        raise AckademyError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or set(content) != {*FORMAT, "sha256"}:
        raise AckademyError(f"{path}: allowed: a result of `ackademy benchmark`")
    if content["benchmark"] != entries.VERSION:
        told = content["benchmark"]
        raise AckademyError(f"{path}: benchmark = {told!r}: allowed: {entries.VERSION!r}")
    told = content.pop("sha256")
    if told != (found := _digest(content)):
        raise AckademyError(f"{path}: sha256 = {told!r}: allowed: that of its content, {found}")
    try:
        return _result(path, content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AckademyError(f"{path}: {error!r}: allowed: a result that is whole") from error


def sign(path: Path, key: Path) -> Path:
    """Write the signature of a file beside it.

    Raises:
        AckademyError: if `ssh-keygen` is not there, or cannot sign with this key; one line.
    """
    signature = Path(f"{path}.sig")
    signature.unlink(missing_ok=True)
    _ssh_keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path), where=f"--sign {key}")
    return signature


def _of(own: Interval) -> dict[str, float]:
    return {"value": own.value, "low": own.low, "high": own.high}


def _digest(content: Mapping[str, object]) -> str:
    """SHA-256 of JSON without layout."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def _result(path: Path, content: Mapping[str, dict[str, object]]) -> Result:
    own, schemes = content["entry"], tuple(map(str, content["schemes"]))
    panels = entries.classes()
    found = tuple(_network(one, schemes, panels) for one in content["runs"])  # type: ignore[arg-type]
    if not found or schemes[0] != own["name"] or entries.RIVALS[0] not in schemes:
        raise ValueError(f"schemes = {list(schemes)}, {len(found)} runs")
    return Result(
        name=str(own["name"]),
        digest=str(own["digest"]),
        marks=tuple(map(str, own["marks"])),  # type: ignore[call-overload]
        networks=found,
        core=str(content["program"]["core"]),
        signer=_signer(path),
    )


def _network(
    own: Mapping[str, object], schemes: Sequence[str], panels: Mapping[str, str]
) -> Network:
    kind, values = str(own["kind"]), own["values"]
    if kind not in panels or not isinstance(values, dict) or set(values) != set(schemes):
        raise ValueError(f"run {own['network']!r}")
    numbers = {
        name: {key: math.nan if v is None else float(v) for key, v in values[name].items()}
        for name in schemes
    }
    return Network(str(own["network"]), kind, panels[kind], numbers)


def _signer(path: Path) -> str:
    """Fingerprint of the key that signed a file; empty without a signature."""
    signature = Path(f"{path}.sig")
    if not signature.is_file():
        return ""
    words = _ssh_keygen(
        *("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)),
        where=str(signature),
        of=path,
    )
    return next((word for word in words.split() if word.startswith("SHA256:")), "")


def _ssh_keygen(*words: str, where: str, of: Path | None = None) -> str:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise AckademyError(f"{where}: no ssh-keygen here: allowed: with OpenSSH installed")
    given = files.read_bytes(of, BYTES_MAX) if of else b""
    try:
        done = subprocess.run(
            [program, *words], input=given, capture_output=True, timeout=SIGNING_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FileError(f"{where}: {error}") from error
    told = (done.stdout + done.stderr).decode(errors="replace").strip()
    if done.returncode:
        raise AckademyError(f"{where}: {(told.splitlines() or ['no signature'])[-1]}")
    return told
