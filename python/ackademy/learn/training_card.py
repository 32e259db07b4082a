"""What a deep learner leaves: `policy.toml`, weights, curve, evaluation and `CARD.md`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from ackademy import _core, files
from ackademy.lazy import pl
from ackademy.learn import beside, dqn, evolution, networks, recipe_source
from ackademy.learn.deep import TrainingResult
from ackademy.learn.deep_recipe import Recipe
from ackademy.learn.layers import tables_of
from ackademy.policies import policy_files
from ackademy.render.html import curve as curve_report
from ackademy.render.markdown import table
from ackademy.render.numbers import significant

PROPOSED = {
    "dqn": """\
The learner is deep Q-learning with a target network and a memory that all flows share. A decision
is rewarded for the packets sent under it, whose fate is known one round trip later; what follows
it is the next decision of the same flow; no episode's end counts as an end.""",
    "evolution": """\
The learner is an evolution strategy: CMA-ES with a diagonal covariance. The candidates of a
generation are judged without noise, as the policy is deployed, on the same networks, drawn anew for
every generation, by the mean over the classes of networks of a class's mean reward and that of its
worst quarter. What is deployed is the mean around which they are drawn, averaged over the latest
generations.""",
    "ppo": """\
The learner is proximal policy optimisation with generalised advantages along each flow's own
decisions. What is deployed answers with the mean of the Gaussian that was trained, without
noise.""",
}
LIBRARIES = {
    "dqn": ("jax", "flax", "optax"),
    "evolution": ("cmaes", "numpy"),
    "ppo": ("jax", "flax", "optax"),
}
"""whose versions weights follow from, by learner"""
DRINC = """\
The journal paper's hyper-parameters are not public: features and kinds of layers are the paper's,
every number is *proposed*, so this is a TCP-Drinc-*style* agent, not the paper's weights."""

PROPOSALS = {
    "flagship": """

It was decided under proposed assumptions: reward, classes of networks and their weights, recipe,
guards, and the judgement by the worst quarter of a class are *proposed*, and so are the held-out
networks and the marks that a policy is measured by."""
}
"""by reward: what else its policies rest on"""


def write(
    trained: TrainingResult,
    folder: Path,
    command: str,
    *,
    more: Mapping[str, str] | None = None,
    chosen: str = "",
) -> pl.DataFrame:
    """Write a policy's folder, whole or not at all, and judge the policy.

    The same recipe, seed and version leave the same bytes on one machine.

    Args:
        trained: what was trained.
        folder: of the policy; a policy that is there is replaced.
        command: that makes it again.
        more: further files, by name.
        chosen: a part of the card that says how it was chosen; empty for none.

    Returns:
        The judgement, as in `evaluation.csv`.

    Raises:
        AckademyError: if the folder cannot be written, or is one of something else.
    """
    curve = pl.read_csv(io.StringIO(trained.curve), infer_schema_length=None)
    with policy_files.new_folder(folder, force=True) as scratch:

        def put(name: str, text: str) -> None:
            files.write(scratch / name, text)

        put("policy.toml", policy_text(trained, command))
        networks.save(trained.weights, scratch / "weights.safetensors")
        put("curve.csv", trained.curve)
        put("curve.svg", curve_report.drawing(curve))
        judged = beside.evaluate(trained.source, trained.learners, scratch)
        put("evaluation.csv", judged.write_csv(float_precision=4))
        for name, content in (more or {}).items():
            put(name, content)
        put("CARD.md", card_text(trained, command, judged, folder, chosen))
    return judged


def policy_text(trained: TrainingResult, command: str) -> str:
    """`policy.toml`."""
    recipe = trained.recipe
    layers = tables_of(recipe.layers)
    made = made_of(trained, command)
    settings = recipe.deployed_text()
    return policy_files.policy_text(recipe.policy_about, settings, layers, made, trained.ranges)


def made_of(trained: TrainingResult, command: str) -> dict[str, object]:
    """Table `made`: what it takes to make the policy again."""
    recipe = trained.recipe
    digest = trained.source.digest if isinstance(trained.source, _core.Distribution) else ""
    return {
        "command": command,
        "recipe": recipe.origin.name,
        "learner": recipe.learner,
        "seed": recipe.seed,
        **_teacher(recipe),
        "trained_on": recipe.source.name,
        **({"distribution_digest": digest} if digest else {}),
        **({"learners": list(recipe.learners)} if recipe.learners else {}),
        "reward": recipe.reward.replace(os.sep, "/"),
        "credit": recipe.credit,
        "decisions": trained.decisions,
        "episodes": trained.episodes,
        "updates": trained.updates,
        "packets": trained.packets,
        "core": _core.CODE_HASH,
        **{name: version(name) for name in LIBRARIES[recipe.learner]},
        "training": {"simulations": recipe.simulations, **asdict(recipe.config)},
    }


def _teacher(recipe: Recipe) -> dict[str, object]:
    if recipe.teacher is None:
        return {}
    return {"teacher": recipe.teacher.name, "teacher_digest": recipe.teacher_digest()[:16]}


def card_text(
    trained: TrainingResult, command: str, judged: pl.DataFrame, folder: Path, chosen: str = ""
) -> str:
    """`CARD.md`."""
    recipe, about = trained.recipe, trained.recipe.policy_about
    note = f"\n\n{DRINC}" if "drinc" in recipe.about.lower() else ""
    runs = int(judged.filter(pl.col("controller") == "policy")["runs"].sum())
    limits = f"`{recipe.source.name}`, under a reward that is `{recipe.reward}`."
    return f"""\
# {folder.name}

{about[:1].upper()}{about[1:]}.

    {_sample(recipe, folder)}

## How it was made

    {command}

{PROPOSED[recipe.learner]}{_begun(recipe)}{note}

{_made(trained)}

The same command leaves the same bytes, given the versions in `policy.toml` and the same kind of
machine: floating-point sums of a training are not the same everywhere.

{chosen}## Curve

![learning curve](curve.svg)

Means over all decisions between two rows of `curve.csv`, {_exploring(recipe)}

## How well it does

Scenarios drawn from `{recipe.source.name}` as at the end of training, {runs} seeds that
no episode was drawn from, each run by the policy and by two others in its place. Means over the
flows in question; delay is the round trip above the empty path. Numbers are in `evaluation.csv`.

{_judgement(judged)}

{_fallbacks(judged)}

## Limits

It knows what it was trained on: {limits} Elsewhere nothing is promised; what it does there
is to be measured. An answer that is not finite or out of range hands the flow over to CUBIC for
good, which the flow's counters show.{_guarded(trained)}{PROPOSALS.get(recipe.reward, "")}
"""


def _sample(recipe: Recipe, folder: Path) -> str:
    """A command that runs the policy on what it was trained on."""
    if isinstance(recipe_source.read(recipe), _core.Scenario):
        path, here = recipe.source.resolve(), Path.cwd()
        named = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.stem
        return f"ackademy run {named} --cc {folder.as_posix()}"
    return f"ackademy evaluate {folder.as_posix()}"


def _made(trained: TrainingResult) -> str:
    recipe, config = trained.recipe, trained.recipe.config
    size = sum(int(tensor.size) for tensor in trained.weights.values())
    observation = recipe.settings["observation"]
    assert isinstance(observation, dict)
    rows = [
        ["sees", f"{', '.join(observation['features'])}; the last {observation['history']}"],
        ["network", f"{' → '.join(layer.kind for layer in recipe.layers)}; {size} weights"],
        ["reward", f"`{recipe.reward}`, for packets {recipe.credit}"],
        ["trained on", f"`{recipe.source.name}`, {recipe.simulations} simulations side by side"],
        ["episodes", f"{trained.episodes}"],
        ["decisions", f"{trained.decisions}"],
        ["updates", f"{trained.updates}"],
        ["data packets", f"{trained.packets}"],
        ["seed", f"{recipe.seed}"],
        *([field.replace("_", " "), str(value) if type(value) is int else f"{value:g}"]
          for field, value in asdict(config).items()
          if field not in ("episodes", "decisions", "row_every")),
    ]  # fmt: skip
    return table(["", ""], rows, left=2)


def _begun(recipe: Recipe) -> str:
    """Where a search began."""
    if not isinstance(recipe.config, evolution.Config):
        return ""
    if recipe.teacher is None:
        return " The search began at weights of zeros."
    part = ", and was of the last layer alone" if recipe.config.last_layer else ""
    return f"\nThe search began at the answers of `{recipe.teacher.name}`{part}."


def _exploring(recipe: Recipe) -> str:
    if isinstance(recipe.config, dqn.Config):
        share = recipe.config.epsilon_end
        return f"random ones included: at the end {f'one in {1 / share:.0f}' if share else 'none'}."
    if isinstance(recipe.config, evolution.Config):
        return (
            "of the first\ncandidate of a generation; `gain` is how much more than zeros the "
            "candidates are worth in the mean."
        )
    return "with the noise of training."


def _judgement(judged: pl.DataFrame) -> str:
    head = ["scenario", "controller", "runs", "Mb/s", "utilisation", "delay ms", "loss", "Jain"]
    rows = []
    for row in judged.iter_rows(named=True):
        numbers = ("throughput_mbps", "utilisation", "delay_ms", "loss_ratio", "jain")
        shown = ["–" if row[n] is None else significant(row[n], 3) for n in numbers]
        controller = (
            f"**{row['controller']}**" if row["controller"] == "policy" else row["controller"]
        )
        rows.append([row["scenario"], controller, str(row["runs"]), *shown])
    return table(head, rows, left=len(head))


def _fallbacks(judged: pl.DataFrame) -> str:
    number = int(judged["fallbacks"].sum())
    return f"Flows handed over to CUBIC: {number or 'none'}."


def _guarded(trained: TrainingResult) -> str:
    if not trained.ranges:
        return ""
    alone = trained.recipe.acts_under_contention_alone
    calm = "\nWithout contention its answers do nothing: `decisions_uncontended`." if alone else ""
    return (
        " Where more than half of the last 32\nintervals have a feature outside of what was seen "
        "in training, own_queue alone decides: counter\n`decisions_outside`. So it does where "
        "jitter hides the queue: `decisions_guarded_jitter`." + calm
    )
