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

ORCA = """\
# Orca: Abbasloo, Yen, Chao, SIGCOMM 2020: the seven numbers of its state, the last ten intervals
# of 20 ms, and 4^a times CUBIC's window, with the scalings of its code (rl-module/envwrapper.py).
[observation]
features = ["throughput_ratio", "pacing_ratio", "lost_rate_5", "acked_ratio", "interval_s",
            "srtt_ratio", "delay_metric"]
history = 10

[decision]
every = "time"
min_ms = 20

[action]
map = "cubic_factor"
scale = 2.0

[bounds]
cwnd_min_packets = 4

[start]
slow_start = false
loss_guard = false
"""

ASTRAEA = """\
# Astraea: Liao et al., EuroSys 2024: the ten numbers of its local state, five intervals, with the
# scalings of its code (transform_state). The last is of retransmissions in flight, which no record
# tells: zero. Its action is 1 + 0.025 a, or 1 / (1 - 0.025 a) below 0: about 2^(0.0356 a).
# The interval, the guards and the bounds are proposed.
[observation]
features = ["throughput_ratio", "rtt_over_min", "srtt_over_min", "cwnd_ratio", "throughput_max",
            "rtt_smallest", "lost_rate", "inflight_ratio", "pacing_ratio_2", "zero"]
history = 5

[decision]
every = "time"
min_ms = 30

[action]
map = "cwnd_factor"
scale = 0.0356
"""

SAGE = """\
# Sage: Yen, Abbasloo, Chao, SIGCOMM 2023: those of its 69 numbers (sage_rl/src/sage.cc) that
# describe the newest report and that a record tells. All scalings, the map for its factor 2^a with
# a in [-2, 2], and the interval are proposed.
[observation]
features = ["srtt", "delivery_rate", "interval_ratio", "srtt_ratio", "lost_rate",
            "throughput_change", "bdp_ratio", "throughput", "inflight_ratio", "throughput_max",
            "action_0"]
history = 1

[decision]
every = "time"
min_ms = 20

[action]
map = "cwnd_factor"
scale = 2.0
"""

NAMED: Mapping[str, str] = MappingProxyType(
    {"astraea": ASTRAEA, "aurora": AURORA, "drinc": DRINC, "orca": ORCA, "sage": SAGE}
)
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
