"""The shipped policies: what each is, and whether it can be run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ackademy import _core, folders
from ackademy.backends import schemes
from ackademy.backends.runs import simulate
from ackademy.errors import AckademyError
from ackademy.policies import cards, policy_files
from ackademy.policies.cards import Card
from ackademy.stats.run_metrics import measure
from ackademy.toml_table import TomlTable

PROBE = """\
duration_s = 2
[dumbbell]
rtt_ms = 40
bottleneck = { rate_mbps = 5, queue = { kind = "drop_tail", packets = 30 } }
[[flow]]
sender = { recovery = "RECOVERY" }
"""
"""what every policy must be able to run on"""


@dataclass(frozen=True, slots=True)
class Model:
    """A policy's folder."""

    folder: Path
    name: str
    """the folder's, below `policies`"""
    controller: str
    about: str
    observes: str
    acts: str
    parameters: int
    """number of learned parameters"""
    size_bytes: int
    made: Mapping[str, object]
    """how, as its own file says"""
    card: Card | None
    fault: str
    """why it cannot be run, one line; empty if it can"""

    @property
    def trained(self) -> str:
        """How, in a line."""
        parts = [str(self.made.get("command", "unknown"))]
        for key in ("trained_on", "reward", "decisions", "updates", "seed"):
            if key in self.made:
                parts.append(f"{key} {self.made[key]}")
        return ", ".join(parts)


def models(root: Path) -> list[Model]:
    """Every policy below a folder, by name, broken ones included."""
    found = sorted(path.parent for path in root.rglob(folders.POLICY_FILE))
    return [model(folder, str(folder.relative_to(root))) for folder in found]


def model(folder: Path, name: str) -> Model:
    """What a folder holds. `fault` says what is wrong with it."""
    described: dict[str, object] = {}
    controller, about, observes, acts, card, fault = "", "", "", "", None, ""
    try:
        described = dict(TomlTable.read(folder / folders.POLICY_FILE).values)
        controller, params = schemes.of_folder(folder)
        if controller == "drl_cc":
            about, observes, acts = _host(folder)
        elif controller == "policy":
            about, observes, acts = _network(folder)
        else:
            about, observes, acts = _forest(folder, described)
        card = cards.read(folder)
        _run(controller, dict(params))
    except (AckademyError, OSError, ValueError) as error:
        fault = " ".join(str(error).split())
    made = described.get("made", {})
    return Model(
        folder=folder,
        name=name,
        controller=controller,
        about=about,
        observes=observes,
        acts=acts,
        parameters=_parameters(folder),
        size_bytes=sum(path.stat().st_size for path in _weights(folder)),
        made=made if isinstance(made, Mapping) else {},
        card=card,
        fault=fault,
    )


def _network(folder: Path) -> tuple[str, str, str]:
    policy = _core.Policy.open(folder)
    observes = f"{policy.history} × {', '.join(policy.features)}"
    acts = f"{policy.n_choices} steps" if policy.n_choices else f"{policy.action_size} values"
    return policy.about, observes, acts


def _host(folder: Path) -> tuple[str, str, str]:
    policy = _core.JointPolicy.open(folder)
    observes = "every flow of a host: rate, goodput, round trip, its deviation, window"
    return policy.about, observes, f"{policy.paths} values, one per subflow"


def _forest(folder: Path, described: Mapping[str, object]) -> tuple[str, str, str]:
    name = str(described["forest"])
    _core.Forest.load(policy_files.read_file(folder / name, policy_files.WEIGHTS_BYTES_MAX))
    setup = described.get("setup", {})
    paper = setup.get("paper", "") if isinstance(setup, Mapping) else ""
    about = f"foresees losses ({paper})" if paper else "foresees losses"
    return about, f"{described.get('features', '?')} numbers of the sender", "holds packets back"


def _run(controller: str, params: dict[str, float | str]) -> None:
    """Simulate two seconds.

    Raises:
        AckademyError: if nothing is delivered.
    """
    recovery = "ns2" if controller == "lp_tcp" else "sack"
    text = PROBE.replace("RECOVERY", recovery)
    scenario = _core.Scenario.parse(text, "probe").with_controller(controller, params)
    tables = simulate(scenario, 1, 0.0)
    if not measure(tables).flows["throughput_mbps"][0] > 0.0:
        raise AckademyError("delivered nothing in two seconds on 5 Mb/s, 40 ms")


def _weights(folder: Path) -> list[Path]:
    """The policy's tensor files, without those that are too large."""
    found = (path for path in sorted(folder.glob("*.safetensors")) if path.is_file())
    return [path for path in found if path.stat().st_size <= policy_files.WEIGHTS_BYTES_MAX]


def _parameters(folder: Path) -> int:
    """Numbers in the folder's tensors; 0 where a header cannot be read."""
    total = 0
    for path in _weights(folder):
        content = path.read_bytes()
        try:
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            total += sum(
                math.prod(own["shape"]) for name, own in header.items() if name != "__metadata__"
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return total
