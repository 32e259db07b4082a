"""The sheet of `stress`: the networks on which a controller does worst."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from ackademy.files import file_name
from ackademy.render.sheet import Cell, Head, Line, Part, Sheet, cell, head_of, number
from ackademy.studies.stress import GAP, METRICS, Finding, Study, in_words

PER_CENT = ("fair_share", "loss")


def findings(
    study: Study, found: Sequence[Finding], folder: Path, *, commands: bool = False
) -> Sheet:
    """A line per kept network, the worst first.

    Args:
        study: what was searched.
        found: in order.
        folder: of the scenario files.
        commands: whether the command that repeats a line stands in it.
    """
    title = f"where {study.scheme.name} does worst"
    if study.against:
        title = f"where {study.scheme.name} does worse than {study.against.name}"
    lines = [
        Line(
            (Part(own.name), Part(in_words(own.tried.network))),
            (*_numbers(study, own), *([cell(f"`{command(study, own, folder)}`")] * commands)),
        )
        for own in found
    ]
    heads = [_head(key) for key in (*([GAP] * bool(study.against)), *METRICS)]
    heads.append(Head("four seeds", "", "mean and range of the first number over seeds 1 to 4"))
    heads += [Head("command")] * commands
    names = (Head("scenario"), Head("what is not plain"))
    return Sheet(title, names, tuple(heads), tuple(lines))


def kept_file(own: Finding, folder: Path) -> Path:
    """The scenario file of a finding."""
    return folder / f"{file_name(own.name)}.toml"


def command(study: Study, own: Finding, folder: Path) -> str:
    """What prints the same numbers."""
    return shlex.join(["ackademy", "run", str(kept_file(own, folder))])


def about(study: Study, own: Finding, file: Path) -> str:
    """The first lines of a kept file."""
    name, tried = study.scheme.name, own.tried
    ratio = tried.own.rtt_over_ideal
    at = (
        "without a round-trip sample"
        if math.isnan(ratio)
        else f"at {ratio:.2f} times the ideal RTT"
    )
    lines = [
        f"{name} has a regret of {tried.own.regret:.2f} here: "
        f"{100 * tried.own.fair_share:.1f} % of its fair share {at}.",
    ]
    if study.against and tried.other:
        lines.append(f"{study.against.name} has one of {tried.other.regret:.2f}.")
    lines.append(f"Not plain: {in_words(tried.network)}.")
    lines.append(f"Same numbers: {shlex.join(['ackademy', 'run', str(file)])}")
    return "".join(f"# {' '.join(line.splitlines())}\n" for line in lines)


def described(study: Study, own: Finding, folder: Path) -> dict[str, object]:
    """A finding for programs."""
    network = own.tried.network
    pairs = zip(network.family.dimensions, network.settings, strict=True)
    return {
        "scenario": own.name,
        "file": str(kept_file(own, folder)),
        "command": command(study, own, folder),
        "family": network.family.name,
        "set": {dimension.path: value for dimension, value in pairs if value is not None},
        "value": own.tried.value,
        "value_by_seed": list(own.tried.values),
        "value_before": own.found.value,
    }


def _numbers(study: Study, own: Finding) -> list[Cell]:
    shown = [number(own.tried.values[0])] if study.against else []
    for key, field in METRICS.items():
        value = float(getattr(own.tried.own, field))
        shown.append(number(100.0 * value if key in PER_CENT else value))
    low, high = min(own.tried.values), max(own.tried.values)
    mean = Part(f"{own.tried.value:.2f}")
    return [*shown, Cell((mean, Part(f"{low:.2f} – {high:.2f}", "dim")), own.tried.value)]


def _head(metric: str) -> Head:
    found = head_of(metric)
    return found._replace(unit="%") if metric in PER_CENT else found
