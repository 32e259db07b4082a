"""LP-TCP's loss predictor for a network of one's own: any scenario file instead of a paper's setup.

NewReno is recorded on the network, a forest is fitted to seven tenths of it, and of the candidates
the threshold with the best M_e in simulations is chosen. What is recorded as lost is what queues
dropped; random losses on the way are not for a window to learn. As for the setups, only
transmissions in congestion avoidance are learnt from, as only these may be held: from slow start a
forest learns that two packets for one acknowledgement are lost, and on another transport they are
the end of a recovery.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ackademy import _core, files
from ackademy.backends.runs import read_text
from ackademy.errors import TrainingError
from ackademy.learn.lp_tcp import collecting, forest, scoring
from ackademy.learn.lp_tcp.choosing import CANDIDATES, Tried, best, measure
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.result import scikit_learn_version
from ackademy.learn.lp_tcp.scoring import Weights
from ackademy.learn.lp_tcp.training import METADATA, TRAIN_SHARE
from ackademy.policies import policy_files
from ackademy.runner import experiments
from ackademy.runner.engines import Engine
from ackademy.runner.experiments import quiet

DELIVERED_PER_LOSS = 49
"""rows to fit to per lost one, as for the setups"""
LOSSES_MIN = 20
"""lost packets in congestion avoidance to fit to, and again to score on"""


@dataclass(frozen=True, slots=True)
class Task:
    """What to train on and how long."""

    path: Path
    """a scenario; the controllers that its flows name are replaced"""
    seed: int = 1
    duration_s: float = 3000.0
    """to record"""
    growth: Growth = field(default_factory=lambda: Growth(max_leaves=256))
    runs: int = 3
    """simulations per threshold"""
    settings: tuple[tuple[str, str], ...] = ()
    """TOML values by dotted path, instead of the scenario's"""

    def overrides(self) -> dict[str, str]:
        """All flows under NewReno: the policy that the scenario names may not be there yet."""
        try:
            flows = tomllib.loads(read_text(self.path)).get("flow", [])
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TrainingError(f"{self.path}: {error}") from error
        plain = {"controller": '"new_reno"', "params": "{}"}
        controllers = {
            f"flow.{index}.{key}": value
            for index in range(len(flows))
            for key, value in plain.items()
        }
        return controllers | dict(self.settings)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A forest for one network and how it came about."""

    task: Task
    content: bytes
    """of its file"""
    n_sends: int
    n_losses: int
    th0: scoring.Score
    tried: tuple[Tried, ...]

    @property
    def chosen(self) -> Tried:
        """The threshold in the file."""
        return best(self.tried)


def train(
    task: Task, out: Path, work: Path, engine: Engine, jobs: int, command: str = ""
) -> TrainingResult:
    """Record, fit, choose; writes `forest.safetensors` and `CARD.md` into `out`.

    Args:
        task: what to train on.
        out: the policy's folder; a policy that is there is replaced.
        work: where simulations are kept.
        engine: where they run.
        jobs: processes that fit trees; changes no byte.
        command: that trains it.

    Raises:
        TrainingError: if too little is lost, the forest finds none of the losses it is scored on,
            scikit-learn is missing, or a file cannot be written.
        ScenarioError: if the network cannot be read.
    """
    text, origin = read_text(task.path), str(task.path)
    overrides = task.overrides() | {"duration_s": repr(task.duration_s)}
    recorded = _core.Scenario.parse(text, origin, overrides)
    sends = collecting.sample(recorded, [task.seed], "ca", task.path.stem)
    early, late = sends.split(TRAIN_SHARE * task.duration_s)
    for part, rows in (("first 70 %", early), ("last 30 %", late)):
        n_losses = int(np.count_nonzero(rows.dropped))
        if n_losses < LOSSES_MIN:
            raise TrainingError(
                f"{task.path}: {n_losses} losses in congestion avoidance in the {part} of "
                f"{task.duration_s:g} s: allowed is {LOSSES_MIN} or more; record longer"
            )
    fitted = early.thinned(DELIVERED_PER_LOSS, task.seed)
    arrays = forest.fit(fitted.features, fitted.dropped, task.growth, task.seed, jobs, quiet)
    output = arrays.mean(late.features)
    weights = Weights(float(late.keep_one_in), early.delivered_per_row(fitted))
    th0 = scoring.best(scoring.curve(output, late.dropped, weights))
    if th0.f1 == 0.0:
        raise TrainingError(f"{task.path}: F1 is 0: the forest finds none of the losses")
    scratch = work / "forest.safetensors"
    files.write(scratch, forest.to_bytes(arrays, METADATA))
    tried = tuple(
        _try(task, scratch, threshold, work, engine)
        for threshold in sorted({*CANDIDATES, th0.threshold})
    )
    metadata = {**METADATA, "threshold": f"{best(tried).threshold:g}"}
    content = forest.to_bytes(arrays, metadata)
    trained = TrainingResult(task, content, sends.n_sends, sends.n_drops, th0, tried)
    left = {"forest.safetensors": content, "CARD.md": _card(trained, command).encode()}
    policy_files.write_folder(out, left, force=True)
    return trained


def _try(task: Task, policy: Path, threshold: float, work: Path, engine: Engine) -> Tried:
    params = (("policy", str(policy.resolve())), ("threshold", threshold))
    own = replace(
        experiments.of_file(task.path),
        controller="lp_tcp",
        overrides=tuple(task.overrides().items()),
        params=params,
    )
    cells = experiments.seeded(own, task.runs)
    ran = experiments.run_cells(cells, work / "cells", engine, quiet)
    if ran.failures:
        raise TrainingError(f"{task.path}: a simulation failed: {ran.failures[0].error}")
    return measure(threshold, cells, work / "cells", "*")


def _card(trained: TrainingResult, command: str) -> str:
    task, chosen = trained.task, trained.chosen
    settings = ", ".join(f"{name} = {value}" for name, value in task.settings)
    settings = f" with {settings}" if settings else ""
    rows = "\n".join(
        f"| {one.threshold:g} | {one.throughput_mbps:.3f} | {one.delay_ms:.1f} "
        f"| {one.loss_ratio:.5f} | {one.m_e:.4f} |"
        for one in trained.tried
    )
    return f"""\
# LP-TCP's loss predictor for {task.path.stem}

Fitted to {task.path}{settings} and to no other network: round trips, gaps, windows are absolute.

```sh
{command}
```

- Recorded: {task.duration_s:g} s of NewReno, seed {task.seed}: {trained.n_sends} transmissions, \
{trained.n_losses} dropped by queues; learnt from those in congestion avoidance.
- Forest: {task.growth.trees} trees of at most {task.growth.max_leaves} leaves, scikit-learn \
{scikit_learn_version()}; {DELIVERED_PER_LOSS} delivered packets per lost one.
- F1 on the last three tenths: {trained.th0.f1:.3f} at th₀ = {trained.th0.threshold:g}.
- Threshold {chosen.threshold:g}: best M_e of {task.runs} simulations each, \
seeds 1 to {task.runs}. With these seeds, or seed {task.seed}, runs are not unseen.

| threshold | throughput, Mb/s | delay, ms | loss | M_e |
| --- | --- | --- | --- | --- |
{rows}
"""
