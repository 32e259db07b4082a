"""Transfers of Knott 2023 for a rate, a beta and a C: simulated or recorded.

Equal settings give equal transfers, so each is computed once. What the paper calls loss is the part
of the application's writes that a full send buffer refused; the packets that the network dropped
stand beside it under their own name.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ackademy import files
from ackademy.backends.runs import read_text, simulate
from ackademy.errors import ExperimentError, ScenarioError
from ackademy.folders import here_or_above
from ackademy.lazy import pl
from ackademy.runner.cells import Cell

BETA_UNITS = 100
"""beta is kept in hundredths and C in thousandths: exact keys, no rounding on the way"""
C_UNITS = 1000

WRITE_INTERVAL_S = 0.0015

C_GRID = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400)
"""thousandths: the default 0.4, and each place twice the one before"""
DEFAULT_BETA, DEFAULT_C = 70, 400


BETA_STEPS = tuple(step for step in range(1, BETA_UNITS) if DEFAULT_BETA % step == 0)
"""hundredths; with any other step no number of them leads from 0 to the default"""
BETA_STEP_ALLOWED = ", ".join(f"{step / BETA_UNITS:g}" for step in BETA_STEPS)


def is_beta_step(step: float) -> bool:
    """Whether beta may move by this step: a part of the window, one of `BETA_STEPS`."""
    return any(abs(BETA_UNITS * step - allowed) < 1e-9 for allowed in BETA_STEPS)


def beta_grid(step_hundredths: int) -> tuple[int, ...]:
    """Values of beta, hundredths: from one step above 0 to one step below 1.

    At 1 a loss would never reduce the window; at 0 it would leave two segments.
    """
    return tuple(range(step_hundredths, BETA_UNITS, step_hundredths))


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What distinguishes one transfer from another."""

    rate_mbps: float
    beta_hundredths: int
    c_thousandths: int = DEFAULT_C

    @property
    def beta(self) -> float:
        """What a reduction leaves of the window."""
        return self.beta_hundredths / BETA_UNITS

    @property
    def c(self) -> float:
        """Steepness of the cubic, segments/s³."""
        return self.c_thousandths / C_UNITS


@dataclass(frozen=True, slots=True)
class Transfer:
    """The counts of one transfer."""

    offered: int
    """writes of the application"""
    refused: int
    """of these, for want of room in the send buffer; the paper's loss"""
    sent_packets: int
    """segments, retransmissions included"""
    dropped_packets: int
    """of these, by the network"""
    retransmitted_packets: int
    timeouts: int

    @property
    def refused_ratio(self) -> float:
        """Part of the writes refused, in [0, 1]: what the paper prints as packet loss."""
        return self.refused / self.offered

    @property
    def throughput_pps(self) -> float:
        """Accepted writes per second of the time from the first write to the last."""
        return (self.offered - self.refused) / ((self.offered - 1) * WRITE_INTERVAL_S)

    @property
    def loss_ratio(self) -> float:
        """Segments that the network dropped over segments sent, in [0, 1]."""
        return self.dropped_packets / self.sent_packets if self.sent_packets else 0.0


Transfers = Callable[[Setting], Transfer]
"""Makes a transfer; the same setting always gives the same one."""


@dataclass(slots=True)
class Simulated:
    """Transfers of a scenario with one flow over links `data` and `acks`, each simulated once."""

    text: str
    origin: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    controller: str = "cubic_ns3"
    known: dict[Setting, Transfer] = field(default_factory=dict)

    @classmethod
    def of_file(
        cls,
        path: Path,
        overrides: Mapping[str, str] | None = None,
        controller: str = "cubic_ns3",
    ) -> Simulated:
        """Transfers of a scenario file.

        Raises:
            ScenarioError: if it cannot be read.
        """
        return cls(read_text(path), str(path), overrides or {}, controller)

    def __call__(self, setting: Setting) -> Transfer:
        """The transfer, from memory where it has been made before."""
        if setting not in self.known:
            tables = simulate(self.cell(setting).scenario(), 1, 0.0)
            self.known[setting] = from_flow(tables.flows.row(0, named=True))
        return self.known[setting]

    def cell(self, setting: Setting) -> Cell:
        """The transfer as a cell, which can be kept on disk."""
        rate = repr(setting.rate_mbps)
        links = {"link.0.rate_mbps": rate, "link.1.rate_mbps": rate}
        return Cell(
            text=self.text,
            origin=self.origin,
            controller=self.controller,
            seed=1,
            overrides=tuple((links | dict(self.overrides)).items()),
            params=(("beta", setting.beta), ("c", setting.c)),
        )


def scenario_file() -> Path:
    """`scenarios/knott2023.toml` here, above, or in what the package ships.

    Raises:
        ScenarioError: if it is in none of them.
    """
    for path in here_or_above("scenarios/knott2023.toml"):
        return path
    raise ScenarioError("scenarios/knott2023.toml: neither here, nor above, nor in the package")


def from_flow(flow: Mapping[str, int]) -> Transfer:
    """The transfer that a row of the table of flows describes."""
    return Transfer(
        offered=flow["offered_writes"],
        refused=flow["refused_writes"],
        sent_packets=flow["sent_packets"],
        dropped_packets=flow["dropped_packets"],
        retransmitted_packets=flow["retransmitted_packets"],
        timeouts=flow["timeouts"],
    )


def from_summary(summary: pl.DataFrame) -> Transfer:
    """The transfer of a finished cell."""
    return from_flow(summary.row(0, named=True))


@dataclass(frozen=True, slots=True)
class Recorded:
    """Transfers recorded by another program, such as ns-3, one per line of a file."""

    known: Mapping[Setting, Transfer]
    origin: str

    @classmethod
    def of_file(cls, path: Path) -> Recorded:
        """Read a CSV file with the columns rate_mbps, beta, c and the fields of `Transfer`.

        Raises:
            ExperimentError: if it cannot be read, or a column or number is wrong.
        """
        known = {}
        lines = files.read_text(path, files.TABLE_BYTES_MAX, ExperimentError).splitlines()
        try:
            for line in csv.DictReader(row for row in lines if not row.startswith("#")):
                setting = Setting(
                    float(line["rate_mbps"]),
                    round(float(line["beta"]) * BETA_UNITS),
                    round(float(line["c"]) * C_UNITS),
                )
                counts = {name: int(line[name]) for name in Transfer.__slots__}
                known[setting] = Transfer(**counts)
        except (KeyError, TypeError, ValueError, OverflowError, csv.Error) as error:
            raise ExperimentError(f"{path}: {error}") from error
        return cls(known, str(path))

    def __call__(self, setting: Setting) -> Transfer:
        """The transfer.

        Raises:
            ExperimentError: if it was not recorded.
        """
        if setting not in self.known:
            wanted = f"{setting.rate_mbps:g} Mb/s, beta {setting.beta:g}, C {setting.c:g}"
            raise ExperimentError(f"{self.origin}: no transfer for {wanted}")
        return self.known[setting]
