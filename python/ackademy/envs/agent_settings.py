"""Named settings of an agent: what it observes, when it decides and what its actions do.

They are the five TOML tables at the start of `policy.toml` (docs/reference/envs.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ackademy import files
from ackademy.errors import TrainingError

DRINC = """\
# TCP-Drinc: Xiao, Mao, Tugnait, IEEE Access 2019, names the features; all numbers are proposed.
[observation]
features = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"]
history = 64

[decision]
every = "srtt"

[action]
map = "cwnd_steps"
steps = ["*0.9", "-1", "+0", "+1", "*1.1"]
"""

AURORA = """\
# Aurora: Jay et al., ICML 2019; features, history, map and interval as in its training environment.
# Slow start and the window's bounds are proposed.
[observation]
features = ["latency_gradient", "latency_ratio", "send_ratio"]
history = 10

[decision]
every = "srtt"
times = 0.5

[action]
map = "rate_change"
scale = 0.025

[start]
slow_start = true
loss_guard = false
"""

NAMED: Mapping[str, str] = MappingProxyType({"aurora": AURORA, "drinc": DRINC})
"""TOML text of the agent settings that have a name"""


def settings_text(agent_settings: str | Path) -> str:
    """The TOML text of agent settings.

    Args:
        agent_settings: a name of `NAMED`, a file, or the text itself (anything with a line break).

    Raises:
        TrainingError: if there is no such name or file.
    """
    if isinstance(agent_settings, str):
        if "\n" in agent_settings:
            return agent_settings
        known = NAMED.get(agent_settings)
        if known is not None:
            return known
    path = Path(agent_settings)
    if not path.exists():
        allowed = f"{', '.join(NAMED)}, or a TOML file"
        raise TrainingError(
            f"agent_settings = {str(agent_settings)!r}: no such file; allowed: {allowed}"
        )
    return files.read_text(path, error=TrainingError)
