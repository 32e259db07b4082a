"""Random scenarios: distribution files (docs/reference/distributions.md) and draws on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ackademy import _core, lookup
from ackademy.backends.runs import read_text
from ackademy.errors import AckademyError, ScenarioError
from ackademy.files import write

SEED_MAX = 2**63 - 1
"""of a run: tables of results have whole numbers of 64 bits with a sign"""

STREAMS_FROM = 2**62
"""smallest seed of a named stream; lists whose seeds count up have smaller ones"""


def read(path: Path | str) -> _core.Distribution:
    """The distribution of a file or a name, checked at every combination of its draws' ends.

    Raises:
        ScenarioError: if the file cannot be read or is wrong; one line.
    """
    found = lookup.find(path, "distribution", ScenarioError)
    return _core.Distribution.parse(read_text(found), str(found))


def drawn(
    distribution: _core.Distribution, seed: int, count: int, progress: float = 0.0
) -> Iterator[tuple[int, _core.Scenario]]:
    """Scenarios of the seeds from `seed` on, each with its seed.

    Raises:
        AckademyError: at once, as `seeds`.
    """
    return ((own, distribution.draw(own, progress)) for own in seeds(seed, count))


def seeds(first: int, count: int) -> range:
    """So many seeds that count up.

    Raises:
        AckademyError: if the last is above `SEED_MAX`; one line.
    """
    if first + count - 1 > SEED_MAX:
        allowed = f"at most {SEED_MAX - count + 1}, since they count up to at most {SEED_MAX}"
        raise AckademyError(f"seed {first}: the first of {count}: allowed: {allowed}")
    return range(first, first + count)


def stream_seeds(stream: str, count: int) -> list[int]:
    """The first seeds of a named stream: two streams share none, but by a chance of 2⁻⁶² a pair.

    A seed fixes every draw whose field has the same path, in any distribution. So lists that are to
    have nothing in common have streams of different names, and not seeds that count up.

    Args:
        stream: its name.
        count: of the seeds, >= 0.

    Returns:
        Whole numbers in [2⁶², 2⁶³).
    """
    digests = (hashlib.sha256(f"{stream}\n{index}".encode()).digest() for index in range(count))
    return [STREAMS_FROM + int.from_bytes(own[:8], "big") % STREAMS_FROM for own in digests]


def save(scenario: _core.Scenario, path: Path, about: str = "") -> None:
    """Write a scenario so that it runs from where it then lies.

    Its traces go beside it; files of its controllers are named by absolute paths.

    Args:
        scenario: what to write; every default is filled in.
        path: of the scenario file; its folder is made.
        about: why it is worth running, the file's first line; empty for none.

    Raises:
        AckademyError: if a file cannot be written.
    """
    text, traces = scenario.portable()
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    for name, trace in traces.items():
        write(path.parent / name, trace)
    write(path, comment + text)
