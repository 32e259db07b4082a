"""Files that `ackademy new` writes: small, complete, and run as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ackademy.errors import AckademyError
from ackademy.files import read_bytes
from ackademy.files import write as write_file
from ackademy.folders import schema_file

Kind = Literal["controller", "coupled", "reward", "scenario", "experiment", "policy", "notebook"]
EDITORS = ".ackademy"
"""folder of the JSON Schemas, which editors find by the first line of a file"""
Files = Mapping[str, bytes]
"""content by path, relative to the current folder"""

CONTROLLER = '''"""A controller: run it with `ackademy run deep_buffer --cc {stem}.py:{cls}`."""


class {cls}:
    """One packet more per round trip, half as many after a loss (RFC 5681 without slow start)."""

    def __init__(self, flow):
        self.mss = flow.mss_bytes
        self.gain = float(flow.params.get("gain", 1.0))  # --cc {stem}.py:{cls}:gain=2
        self.cwnd_bytes = float(flow.initial_cwnd_bytes)
        # self.pacing_bps = 1e6 would pace, too

    def on_ack(self, ack):
        # also: ack.rtt_ns, ack.srtt_ns, ack.min_rtt_ns, ack.inflight_bytes, ack.delivery_rate_bps
        if ack.cwnd_limited and not ack.recovering:
            self.cwnd_bytes += self.gain * self.mss * ack.acked_bytes / self.cwnd_bytes

    def on_loss(self, loss):
        if loss.kind in ("gap", "timeout"):  # the first loss of a round trip
            self.cwnd_bytes = max(self.cwnd_bytes / 2, 2 * self.mss)
'''

COUPLED = '''"""A coupled controller: run it with `ackademy run two_paths --cc {stem}.py:{cls}`."""


class {cls}:
    """All subflows together add one packet per round trip; a loss halves its own window."""

    def __init__(self):
        self.cwnd = {{}}  # bytes, by the number of the subflow
        self.mss = {{}}

    def subflow_added(self, subflow, flow):
        self.gain = float(flow.params.get("gain", 1.0))  # --cc {stem}.py:{cls}:gain=2
        self.mss[subflow] = flow.mss_bytes
        self.cwnd[subflow] = float(flow.initial_cwnd_bytes)

    def subflow_removed(self, subflow):
        del self.cwnd[subflow], self.mss[subflow]

    def on_ack(self, subflow, ack):
        if ack.cwnd_limited and not ack.recovering:
            share = ack.acked_bytes / sum(self.cwnd.values())
            self.cwnd[subflow] += self.gain * self.mss[subflow] * share

    def on_loss(self, subflow, loss):
        if loss.kind in ("gap", "timeout"):  # the first loss of a round trip
            self.cwnd[subflow] = max(self.cwnd[subflow] / 2, 2 * self.mss[subflow])

    def cwnd_bytes(self, subflow):
        return self.cwnd[subflow]
'''

REWARD = '''"""A reward: `ackademy train aurora_mixed --reward {stem}.py:reward` uses it."""

import numpy as np


def reward(metrics, before):
    """Fill the link, but let no packet wait longer than 20 ms.

    Called for many flows at once: `metrics` has an array per column, one number per flow, of the
    interval that a decision is rewarded for; `before` is the interval before it.
    """
    wait_ms = metrics.rtt_ms - metrics.flow_min_rtt_ms
    throughput = np.log(np.maximum(metrics.throughput_mbps, 0.01))
    return throughput - np.maximum(wait_ms - 20.0, 0.0) / 20.0 - 10.0 * metrics.loss_ratio
'''

SCENARIO = """\
# Do two flows share a link with a buffer of one bandwidth-delay product?
duration_s = 20

[dumbbell]
rtt_ms = 40

[dumbbell.bottleneck]
rate_mbps = 12
queue = { kind = "drop_tail", bdp = 1 }

[[flow]]
name = "flow"
count = 2
controller = "cubic"
start_spread_s = 1
"""

PAPER = """\
title = "Title of the paper"
authors = "Authors"
venue = "Venue, year"
doi = "10.0/0"

# How each scheme of the tables is run; settings of controllers go into `params`.
scheme.CUBIC.controller = "cubic"
scheme.NewReno.controller = "new_reno"

[[assumption]]
origin = "proposed"  # or paper, source, derived: who says so
text = "Whatever the paper leaves open and the numbers depend on."
"""

ITEM = """\
title = "What the table shows"
item = "Table 1"
about = "One flow, two buffers."
scenario = "../../NAME.toml"
runs = 5
sample_interval_ms = 200
columns = ["throughput_mean_mbps", "delay_mean_ms", "loss_ratio"]

# Scheme, group, then the published number of each column; "-" where there is none.
published = [
  ["CUBIC", "short", "-", "-", "-"],
  ["NewReno", "short", "-", "-", "-"],
  ["CUBIC", "long", "-", "-", "-"],
  ["NewReno", "long", "-", "-", "-"],
]

[group.short]
set = { "dumbbell.bottleneck.queue.bdp" = 0.5 }

[group.long]
set = { "dumbbell.bottleneck.queue.bdp" = 4 }

[[claim]]
text = "CUBIC has at least nine tenths of NewReno's throughput."
where = "section of the paper"
metric = "throughput_mean_mbps"
row = ["CUBIC", "long"]
against = ["NewReno", "long"]
min_ratio = 0.9
"""

NOTEBOOK = (
    "# {stem}\n\nOne link, two controllers, one figure.",
    """\
import ackademy

scenario = {{
    "duration_s": 20,
    "dumbbell": {{
        "rtt_ms": 40,
        "bottleneck": {{"rate_mbps": 12, "queue": {{"kind": "drop_tail", "bdp": 2}}}},
    }},
    "flow": [{{}}],
}}
found = ackademy.compare(scenario, ["cubic", "bbr3"], runs=3)
found.table("delay_mean_ms")""",
    "found.plot()",
    'found.plot(width="column").save("{stem}.svg")  # or .pdf, .png',
)
"""cells: text first, then code"""

OBSERVES_AND_ACTS = """\
[observation]
features = ["latency_ratio", "send_ratio"]
history = 1

[decision]
every = "srtt"
times = 1.0
min_ms = 10.0

[action]
map = "rate_change"
scale = 0.1
limit = 10.0

[bounds]
cwnd_min_packets = 2.0
cwnd_max_packets = 10000.0

[start]
slow_start = true
loss_guard = false
"""


def files(kind: Kind, name: str) -> Files:
    """The files of a template.

    Args:
        kind: what to make.
        name: of the file without its ending, of the folder or of the paper.

    Raises:
        AckademyError: if the name is no identifier; one line.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise AckademyError(f"new {kind} {name}: allowed: letters, digits and _")
    return _TEMPLATES[kind](name)


def write(made: Files) -> None:
    """Write new files, all or none.

    Raises:
        AckademyError: if one is there, or cannot be written; one line.
    """
    for path in map(Path, made):
        if path.exists() or path.is_symlink():
            raise AckademyError(f"{path}: it is there already; allowed: another name")
    for name, content in made.items():
        write_file(Path(name), content)


def schemas(made: Files) -> Files:
    """The JSON Schemas that the first lines of files name, unless they are there already."""
    found = {}
    for content in made.values():
        if line := re.match(rb"#:schema \S*/(\w+)\.schema\.json\n", content):
            kind = line[1].decode()
            path, text = Path(EDITORS, f"{kind}.schema.json"), read_bytes(schema_file(kind))
            if not path.is_file() or path.read_bytes() != text:
                found[path] = text
    return {str(path): text for path, text in found.items()}


def commands(kind: Kind, name: str) -> list[str]:
    """What to do with the files, as command lines."""
    return {
        "controller": [f"ackademy compare deep_buffer --cc cubic,{name}.py:{_class(name)}"],
        "coupled": [f"ackademy compare two_paths --cc lia,{name}.py:{_class(name)}"],
        "reward": [
            f"ackademy train aurora_mixed --quick --reward {name}.py:reward --out my_policy"
        ],
        "scenario": [f"ackademy run {name}.toml"],
        "experiment": [f"ackademy reproduce {name}/table1 --runs 2"],
        "notebook": [f"jupyter lab {name}.ipynb"],
        "policy": [f"ackademy compare deep_buffer --cc cubic,{name}", f"ackademy zoo {name}"],
    }[kind]


def _linked(path: str, kind: str, text: str) -> Files:
    """A TOML file whose first line names the schema of its kind, for editors."""
    up = "../" * path.count("/") or "./"
    return {path: f"#:schema {up}{EDITORS}/{kind}.schema.json\n{text}".encode()}


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) or name


def _python(text: str, name: str) -> Files:
    return {f"{name}.py": text.format(stem=name, cls=_class(name)).encode()}


def _notebook(name: str) -> Files:
    """Cells without outputs, in the format of Jupyter."""
    first, *code = (text.format(stem=name) for text in NOTEBOOK)
    cells: list[dict[str, object]] = [_cell("markdown", "about", first)]
    for number, text in enumerate(code, 1):
        more: dict[str, object] = {"execution_count": None, "outputs": []}
        cells.append(_cell("code", f"code-{number}", text) | more)
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return {f"{name}.ipynb": (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()}


def _cell(kind: str, name: str, text: str) -> dict[str, object]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": kind, "id": name, "metadata": {}, "source": lines}


def _experiment(name: str) -> Files:
    folder = f"papers/{name}"
    one_flow = SCENARIO.replace("count = 2\n", "").replace("start_spread_s = 1\n", "")
    about = "# Which buffer does a controller need?\n"
    return {
        **_linked(f"{folder}/paper.toml", "paper", PAPER),
        **_linked(f"{folder}/table1.toml", "paper", ITEM.replace("NAME", name)),
        **_linked(f"{name}.toml", "scenario", about + one_flow.partition("\n")[2]),
    }


def _policy(name: str) -> Files:
    """A linear policy: it slows down in proportion to the round trip above its minimum."""
    import numpy as np

    from ackademy.policies import policy_files

    about = "a linear policy to start from: faster while the round trip is short, slower above"
    layers: policy_files.Tables = [
        {"kind": "flatten"},
        {"kind": "dense", "units": 1, "activation": "tanh"},
    ]
    weights = {
        "layers.1.kernel": np.array([[-2.0], [0.0]], np.float32),  # (features, outputs)
        "layers.1.bias": np.array([2.5], np.float32),  # 0 at a round trip of 1.25 times the least
    }
    made = {"command": f"ackademy new policy {name}"}
    text = policy_files.policy_text(about, OBSERVES_AND_ACTS, layers, made)
    return {
        **_linked(f"{name}/policy.toml", "policy", text),
        f"{name}/weights.safetensors": policy_files.bytes_of(weights),
    }


_TEMPLATES: Mapping[Kind, Callable[[str], Files]] = {
    "controller": lambda name: _python(CONTROLLER, name),
    "coupled": lambda name: _python(COUPLED, name),
    "reward": lambda name: _python(REWARD, name),
    "scenario": lambda name: _linked(f"{name}.toml", "scenario", SCENARIO),
    "experiment": _experiment,
    "notebook": _notebook,
    "policy": _policy,
}
