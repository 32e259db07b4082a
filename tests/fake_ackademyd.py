"""Stands in for `ackademyd lab run`: the simulator's tables, told as the kernel's or QUIC's.

The environment says what else it does: `FAKE` names a fault, `FAKE_LOG` a file for a line per call,
`FAKE_START=linux` starts flows as the kernel does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, cast

from ackademy import _core
from ackademy.studies.gap import study as gap

LATE_US = 5000.0


def main() -> None:
    arguments = parse()
    log = Path(os.environ["FAKE_LOG"])
    n_before = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        over = "" if arguments.over == "tcp" else f" over {arguments.over}"
        file.write(f"start {arguments.seed}{over}\n")
    fault, _, detail = os.environ.get("FAKE", "").partition("=")
    if fault == "exit":
        code, _, line = detail.partition("=")
        print(f"a notice\nackademyd: {line}", file=sys.stderr)
        sys.exit(int(code))
    if fault == "silent":
        sys.exit(1)
    if fault == "garbage":
        print(detail)
        return
    if fault == "hang" and n_before >= int(detail):
        signal.signal(signal.SIGINT, clean_up)
        print(f"waits {os.getpid()}", file=log.open("a"))
        time.sleep(60.0)
    result = report(arguments, late=fault == "late" and n_before < int(detail))
    if fault == "without":
        table, _, column = detail.partition(".")
        place = cast("dict[str, object]", result["tables"][table] if column else result)
        del place[column or table]
    if fault == "misshapen":
        result["tables"]["flows"]["timeouts"].append(0)
    if fault == "scaled":
        scale(result["tables"]["flows"], "delivered_bytes", int(detail) / 100)
    print(json.dumps(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs=3)
    parser.add_argument("--beside", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--sample-ms", type=float, default=0.0)
    parser.add_argument("--over", default="tcp")
    return parser.parse_args()


def scale(flows: dict[str, list[Any]], column: str, factor: float) -> None:
    flows[column] = [int(value * factor) for value in flows[column]]


def clean_up(_number: int, _frame: object) -> None:
    with Path(os.environ["FAKE_LOG"]).open("a") as file:
        file.write("cleaned up\n")
    sys.exit(130)


def report(arguments: argparse.Namespace, *, late: bool) -> dict[str, Any]:
    assert arguments.words == ["lab", "run", "-"]
    start = (
        dict((gap.HANDSHAKE, *gap.LINUX_START)) if os.environ.get("FAKE_START") == "linux" else {}
    )
    origin = str(Path(arguments.beside) / "stdin.toml")
    scenario = _core.Scenario.parse(sys.stdin.read(), origin, start)
    of_kernel = {
        name for name in scenario.controllers if name.startswith(("kernel:", "noq:", "quinn:"))
    }
    simulated = scenario.with_controller("cubic", {}) if of_kernel else scenario
    tables = _core.simulate(simulated, arguments.seed, sample_interval_ms=arguments.sample_ms)
    governed = [
        {"flow": name, "samples": 90, "decisions": 80, "fallbacks": 1, "refused": 0, "invalid": 0}
        for name in ([] if of_kernel or arguments.over == "quic" else tables["flows"]["flow"])
    ]
    p99 = LATE_US if late else 40.0
    return {
        "tables": {
            name: {column: plain(values) for column, values in table.items()}
            for name, table in tables.items()
        },
        "emulator": {
            "lateness_us": {"p50": 15.0, "p99": p99, "p99_9": 2 * p99, "max": 3 * p99},
            "scheduler": "fifo",
            "spin_us": 0,
            "tun_drops": 0,
            "packets": 1000,
        },
        "agent": None
        if arguments.over == "quic"
        else {
            "scheduler": "fifo",
            "interval_ms": 10.0,
            "decision_us": {"p50": 30.0, "p90": 90.0, "p99": 200.0} if governed else None,
            "policy_decisions": 40 if governed else 0,
            "policy_answer_us": {"p50": 41.0, "p90": 60.0, "p99": 99.0} if governed else None,
            "policy_cpu_us": {"p50": 9.5, "p90": 12.0, "p99": 21.0} if governed else None,
            "policy_fallbacks": 1 if governed else 0,
            "flows": governed,
        },
        "kernel": {"release": os.uname().release},
        "assumptions": ["the fake's kernel is the simulator"],
        "valid": not late,
        "why_invalid": f"late by {p99} us at p99" if late else None,
    }


def plain(values: Any) -> list[object]:  # noqa: ANN401 - a list or an array
    """As JSON has it: no NaN."""
    return [
        None if isinstance(value, float) and math.isnan(value) else value
        for value in (values if isinstance(values, list) else values.tolist())
    ]


if __name__ == "__main__":
    main()
