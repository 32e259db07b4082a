"""How a policy was chosen among several seeds: as CSV, as JSON, and as a part of its card."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from ackademy.lazy import pl
from ackademy.learn.seeds import Row, Seeds
from ackademy.learn.selection import Judge
from ackademy.render.html import curve
from ackademy.render.markdown import table

CSV, JSON = "seeds.csv", "seeds.json"
CURVES, DRAWN = "curves.csv", "curves.svg"
ZEROS = "own_queue alone"


def name(row: Row) -> str:
    """What a row is about."""
    return ZEROS if row.seed is None else f"seed {row.seed}"


def frame(seeds: Seeds) -> pl.DataFrame:
    """A row per policy: seed (null: own_queue alone), decisions, judgement, and each class."""
    rows = [
        {
            "seed": row.seed,
            "decisions": row.decisions,
            "stopped": row.is_stopped,
            "chosen": row is seeds.best,
            "judgement": row.judgement.mean,
            **row.judgement.of_classes,
        }
        for row in seeds.rows
    ]
    return pl.DataFrame(rows, schema_overrides={"seed": pl.Int64})


def files(seeds: Seeds, judge: Judge) -> dict[str, str]:
    """`seeds.csv` and `seeds.json`, and the curves of all trainings.

    Args:
        seeds: what was trained.
        judge: of the policies.
    """
    rows = frame(seeds)
    told = {
        "networks_digest": judge.digest,
        "own_queue_alone": seeds.zeros.judgement.mean,
        "best": {
            "seed": seeds.best.seed,
            "decisions": seeds.best.decisions,
            "judgement": seeds.best.judgement.mean,
            "beats_own_queue": beats_own_queue(seeds),
        },
        "policies": rows.to_dicts(),
        "networks": judge.networks,
    }
    return {
        CSV: rows.write_csv(float_precision=4),
        JSON: json.dumps(told, indent=1) + "\n",
        CURVES: curves(seeds),
        DRAWN: curve.rewards(
            {
                f"seed {seed}": pl.read_csv(io.StringIO(own.curve), infer_schema_length=None)
                for seed, own in seeds.trained.items()
            }
        ),
    }


def curves(seeds: Seeds) -> str:
    """The rows of every training's curve, behind its seed."""
    head = f"seed,{next(iter(seeds.trained.values())).curve.splitlines()[0]}"
    rows = [
        f"{seed},{line}"
        for seed, own in seeds.trained.items()
        for line in own.curve.splitlines()[1:]
    ]
    return "\n".join([head, *rows]) + "\n"


def beats_own_queue(seeds: Seeds) -> bool:
    """Whether the best policy is judged better than weights of zeros."""
    return seeds.best.judgement.mean > seeds.zeros.judgement.mean


def verdict(seeds: Seeds) -> str:
    """In a sentence, whether learning was worth it."""
    best, alone = seeds.best.judgement.mean, seeds.zeros.judgement.mean
    numbers = f"{best:.4f} against {alone:.4f}"
    if any(row.judgement.mean > best for row in seeds.rows[1:]):
        word = "better" if beats_own_queue(seeds) else "no better"
        return f"The policy that was asked for is judged {word} than own_queue alone: {numbers}."
    if beats_own_queue(seeds):
        return f"The best policy is judged better than own_queue alone: {numbers}."
    return f"No policy is judged better than own_queue alone: {numbers} at best."


def cells(row: Row, classes: Sequence[str]) -> list[str]:
    """Of a row of a table: name, decisions, judgement and classes."""
    stopped = ", stopped" if row.is_stopped else ""
    values = [f"{row.judgement.of_classes[name]:.3f}" for name in classes]
    return [name(row) + stopped, str(row.decisions), f"{row.judgement.mean:.4f}", *values]


def section(seeds: Seeds) -> str:
    """The part of the card."""
    classes = sorted(seeds.zeros.judgement.of_classes)
    head = ["policy", "decisions", "judgement", *classes]
    rows = [cells(row, classes) for row in seeds.rows]
    for row, shown in zip(seeds.rows, rows, strict=True):
        if row is seeds.best:
            shown[0] = f"**{shown[0]}**"
    return f"""\
## How it was chosen

Policies of the last part of several trainings that differ in their seeds alone, judged on networks
that no training draws. A number is the mean reward of the worst quarter of a class's networks; the
judgement is its mean over the classes. {verdict(seeds)}

{table(head, rows, left=1)}

![learning curves of all trainings](curves.svg)

Numbers are in `curves.csv`, those of the table in `seeds.csv`.

"""
