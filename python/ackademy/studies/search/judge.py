"""Runs one candidate on networks: `python -m ackademy.studies.search.judge`, a process of its own.

The task is JSON on standard input, the numbers are JSON on standard output. A candidate may not
open files, start programs or use the network: an audit hook of Python refuses that. It stops what
was written by chance or by a language model; it does not stop an attacker.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ackademy import _core, files
from ackademy.backends import controllers, entries
from ackademy.backends.runs import simulate
from ackademy.backends.tables import data_frame
from ackademy.errors import AckademyError
from ackademy.source_hash import ROOT
from ackademy.stats.metrics import metric_of
from ackademy.stats.run_metrics import measure
from ackademy.stats.run_tables import RunTables

MEMORY_BYTES = 8 << 30
REFUSED = ("subprocess.", "socket.", "os.", "shutil.", "ctypes.", "http.", "urllib.", "ftplib.")
"""beginnings of the audit events that a candidate may not cause"""
MODULES = (*(str(Path(own).resolve() / "lib") for own in {sys.base_prefix, sys.prefix}), str(ROOT))
HARMLESS = ("os.listdir", "os.scandir", "os.putenv")
"""that an import of the standard library causes"""


def main() -> None:
    """Read a task, run it, print the numbers."""
    task = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu_s"], task["cpu_s"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answer = sys.stdout
    sys.stdout = sys.stderr  # a candidate may print
    try:
        found: dict[str, object] = {"numbers": _numbers(task)}
    except AckademyError as error:
        found = {"error": str(error)}
    except Exception as error:  # whatever the candidate raises
        found = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
    answer.write(json.dumps(found))


def _numbers(task: Mapping[str, object]) -> list[dict[str, float]]:
    """Numbers of every network, in their order."""
    controller, params = str(task["controller"]), dict(task["params"])  # type: ignore[call-overload]
    metrics = [str(name) for name in task["metrics"]]  # type: ignore[attr-defined]
    networks: Sequence[Mapping[str, object]] = task["networks"]  # type: ignore[assignment]
    found = []
    for own in networks:
        parsed = _core.Scenario.parse(str(own["text"]), str(own["origin"]))
        governed = entries.named(parsed, [str(glob) for glob in own["flows"]])  # type: ignore[attr-defined]
        found.append((parsed, governed, int(str(own["seed"]))))
    if controllers.is_python(controller):
        plain = found[0][0].with_controller("cubic", {})
        _measured(plain, plain.entries, 1, metrics)  # imports what a run imports
        file, _, name = controller.rpartition(":")
        controller = controllers.register(_loaded(Path(file), name))  # type: ignore[arg-type]
    return [
        _measured(parsed.with_controller(controller, params, governed), governed, seed, metrics)
        for parsed, governed, seed in found
    ]


def _loaded(file: Path, name: str) -> type:
    """The candidate's class; from now on it may not do what `_refuse` refuses."""
    module = ModuleType("candidate")
    text = files.read_text(file)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    sys.addaudithook(_refuse)
    exec(compile(text, file.name, "exec"), module.__dict__)  # what it is for
    found = getattr(module, name, None)
    if not isinstance(found, type):
        raise AckademyError(f"no class {name}")
    return found


def _measured(
    scenario: _core.Scenario, governed: Sequence[str], seed: int, metrics: Sequence[str]
) -> dict[str, float]:
    tables = simulate(scenario, seed, 0.0)
    own, new = tables.columns, measure(tables).columns
    links = {**own["links"], "utilisation": new["links"]["utilisation"]}
    summary = data_frame({**own["flows"], **new["flows"], **own["flows"]})
    chosen = tuple(entries.governed(scenario, governed, summary["flow"].to_list()))
    ran = RunTables(
        summary, data_frame(links), data_frame(own["counters"]), chosen, scenario.duration_s
    )
    return {name: metric_of(name).of_run(metric_of(name).extract(ran)) for name in metrics}


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: files may be read where modules are, for imports; else nothing is opened."""
    if event == "open":
        path, mode, _ = arguments
        is_read = not isinstance(mode, str) or not set(mode) & set("wax+")
        if not (is_read and isinstance(path, str) and path.startswith(MODULES)):
            raise PermissionError(f"a candidate may not open {path!r}")
    elif event.startswith(REFUSED) and event not in HARMLESS:
        raise PermissionError(f"a candidate may not use {event}")


if __name__ == "__main__":
    main()
