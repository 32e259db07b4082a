"""LP-TCP's loss predictor from simulation to policy: collect, fit, score, choose the threshold.

Every stage keeps its result in a file that is named by all it depends on, so a command that was
interrupted goes on where it was, and a changed option redoes what follows from it and no more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ackademy import _core, files
from ackademy.errors import TrainingError
from ackademy.learn.lp_tcp import card, choosing, collecting, forest, scoring
from ackademy.learn.lp_tcp.choosing import Tried
from ackademy.learn.lp_tcp.collecting import Recording, Sends
from ackademy.learn.lp_tcp.forest import Arrays
from ackademy.learn.lp_tcp.result import Counts, Recipe, Trained, scikit_learn_version
from ackademy.learn.lp_tcp.scoring import Weights
from ackademy.policies import policy_files
from ackademy.runner import experiments
from ackademy.runner.engines import Engine

TRAIN_SHARE = 0.7
"""of the recorded time; the rest is for F1"""

METADATA = {"features": "kong2018-55"}

Stage = Callable[[str], experiments.Progress]
"""Called when a stage begins; returns what to tell of its progress."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where networks are read from, results are kept and simulations run."""

    scenarios: Path
    work: Path
    engine: Engine
    jobs: int


def train(recipe: Recipe, workshop: Workshop, stage: Stage) -> Trained:
    """All stages of one setup; finished ones are read from `workshop.work`.

    Raises:
        TrainingError: if nothing is lost, scikit-learn is missing, or a simulation fails.
        ScenarioError: if a network cannot be read.
        Interrupted: on Ctrl-C; finished stages and simulations are kept.
    """
    folder = workshop.work / recipe.recording.setup.folder
    sends = Sends.read(_collected(recipe.recording, workshop.scenarios, folder, stage))
    early, late = sends.split(TRAIN_SHARE * recipe.recording.duration_s)
    fitted = early.thinned(recipe.delivered_per_loss, recipe.recording.seed)
    path = _fitted(recipe, fitted, workshop, folder, stage)
    content = path.read_bytes()
    arrays = forest.from_bytes(content)
    output = _core.Forest.load(content).mean(late.features)
    weights = Weights(float(late.keep_one_in), early.delivered_per_row(fitted))
    scores = scoring.curve(output, late.dropped, weights)
    th0 = scoring.best(scores)
    tried = _tried(recipe, path, th0.threshold, workshop, stage)
    chosen = choosing.best(tried)
    return Trained(
        recipe=recipe,
        forest=to_bytes(arrays, chosen.threshold),
        n_nodes=len(arrays.feature),
        sends=Counts.of(fitted, late),
        scores=scores,
        th0=th0,
        tried=tried,
        chosen=chosen,
    )


def to_bytes(arrays: Arrays, threshold: float) -> bytes:
    """The policy's file: the forest, and the threshold that LP-TCP takes if it is given none."""
    return forest.to_bytes(arrays, METADATA | {"threshold": f"{threshold:g}"})


def export(trained: Trained, folder: Path, command: str) -> None:
    """Write the policy's folder, whole or not at all; an existing policy is replaced.

    Raises:
        AckademyError: if it cannot be written.
    """
    files = {
        "forest.safetensors": trained.forest,
        "f1.csv": scoring.to_csv(trained.scores).encode(),
        "policy.toml": card.policy(trained, command).encode(),
        "CARD.md": card.text(trained, command).encode(),
    }
    policy_files.write_folder(folder, files, force=True)


def _collected(recording: Recording, scenarios: Path, folder: Path, stage: Stage) -> Path:
    scenario = recording.scenario(scenarios).canonical()
    parts = (scenario, [*recording.seeds], recording.phase)
    path = folder / f"sends-{_hash(_core.CODE_HASH, *parts)}.npz"
    if not path.is_file():
        progress = stage(f"recording {recording.duration_s:g} s")
        progress(0, 1)
        files.write(path, collecting.record(recording, scenarios).to_bytes())
        progress(1, 1)
    return path


def _fitted(recipe: Recipe, sends: Sends, workshop: Workshop, folder: Path, stage: Stage) -> Path:
    growth, recording = recipe.growth, recipe.recording
    x, y = sends.features, sends.dropped
    digest = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    parts = (digest, asdict(growth), recording.seed, scikit_learn_version())
    path = folder / f"forest-{_hash(*parts)}.safetensors"
    if not path.is_file():
        progress = stage(f"fitting {growth.trees} trees to {len(y)} rows")
        arrays = forest.fit(x, y, growth, recording.seed, workshop.jobs, progress)
        files.write(path, forest.to_bytes(arrays, METADATA))
    return path


def _tried(
    recipe: Recipe, path: Path, th0: float, workshop: Workshop, stage: Stage
) -> tuple[Tried, ...]:
    setup, folder = recipe.recording.setup, workshop.work / "cells"
    thresholds = sorted({*choosing.CANDIDATES, th0})
    cells = [
        choosing.cells(setup, str(path.resolve()), threshold, recipe.runs, workshop.scenarios)
        for threshold in thresholds
    ]
    progress = stage(f"trying {len(thresholds)} thresholds")
    batch = choosing.run(cells, folder, workshop.engine, progress)
    if batch.failures:
        raise TrainingError(f"{setup}: a simulation failed: {batch.failures[0].error}")
    return tuple(
        choosing.measure(threshold, found, folder)
        for threshold, found in zip(thresholds, cells, strict=True)
    )


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
