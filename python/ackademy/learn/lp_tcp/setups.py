"""Network setups of Kong 2018: a buffer of L packets, K senders, all of one kind or mixed."""

from __future__ import annotations

from dataclasses import dataclass

from ackademy.errors import TrainingError

ALLOWED = "L=PACKETS,K=SENDERS or L=PACKETS,K=SENDERS,mix; the paper's are "


@dataclass(frozen=True, slots=True)
class Setup:
    """(L, K), or (L, K)_mix with one LP-TCP among K − 1 NewReno."""

    buffer_packets: int
    senders: int
    mix: bool = False

    @classmethod
    def parse(cls, text: str) -> Setup:
        """Read `L=50,K=4,mix`.

        Raises:
            TrainingError: if it is not like that.
        """
        words = [word.strip() for word in text.split(",")]
        mix = words[-1] == "mix"
        pairs = dict(word.partition("=")[::2] for word in words[: -1 if mix else None])
        try:
            setup = cls(int(pairs.pop("L")), int(pairs.pop("K")), mix)
        except (KeyError, ValueError):
            setup = cls(0, 0)
        if pairs or setup.buffer_packets < 1 or setup.senders < 1 + setup.mix:
            known = ", ".join(str(entry) for entry in PUBLISHED)
            raise TrainingError(f"setup {text}: allowed: {ALLOWED}{known}")
        return setup

    def __str__(self) -> str:
        return f"L={self.buffer_packets},K={self.senders}" + (",mix" if self.mix else "")

    @property
    def label(self) -> str:
        """As the paper writes it: (50,4)_mix."""
        return f"({self.buffer_packets},{self.senders})" + ("_mix" if self.mix else "")

    @property
    def folder(self) -> str:
        """Name of its policy's folder: L50_K4_mix."""
        return f"L{self.buffer_packets}_K{self.senders}" + ("_mix" if self.mix else "")


PUBLISHED = (Setup(5, 1), Setup(50, 1), Setup(150, 1), Setup(50, 4), Setup(50, 4, mix=True))
"""those of the paper's Table 3"""
