"""What the learner of a host leaves: `policy.toml`, weights, curve and `CARD.md`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from ackademy import _core
from ackademy.lazy import pl
from ackademy.learn import ddpg
from ackademy.learn.host_training import HostTrained
from ackademy.policies import policy_files
from ackademy.render.html import curve as curve_report
from ackademy.render.markdown import table
from ackademy.toml_table import toml_value

LAST = 5
"""rows of the curve that the card's means are over"""


def write(trained: HostTrained, folder: Path, command: str) -> None:
    """Write a policy's folder, whole or not at all; a policy that is there is replaced.

    The same recipe, seed and version leave the same bytes on one machine.

    Args:
        trained: what was trained.
        folder: of the policy.
        command: that makes it again.

    Raises:
        AckademyError: if the folder cannot be written, or is one of something else.
    """
    curve = pl.read_csv(io.StringIO(trained.curve), infer_schema_length=None)
    drawn = curve.rename({"epochs": "decisions", "goodput_mbps": "throughput_mbps"})
    contents = {
        policy_files.POLICY: policy_text(trained, command),
        "curve.csv": trained.curve,
        "curve.svg": curve_report.drawing(drawn),
        "CARD.md": card_text(trained, command, curve, folder),
    }
    written = {name: text.encode() for name, text in contents.items()}
    written[policy_files.WEIGHTS] = policy_files.bytes_of(ddpg.tensors(trained.networks))
    policy_files.write_folder(folder, written, force=True)


def layers(config: ddpg.Config, paths: int) -> Mapping[str, policy_files.Tables]:
    """The lists of layers of both networks, as `policy.toml` has them."""
    hidden = {"kind": "dense", "units": config.hidden, "activation": "relu"}
    last = {"kind": "dense", "units": paths, "activation": "tanh"}
    return {
        "representation": [{"kind": "lstm", "units": config.state, "returns": "last"}],
        "actor": [hidden, hidden, last],
    }


def policy_text(trained: HostTrained, command: str) -> str:
    """`policy.toml`."""
    recipe, about = trained.recipe, toml_value(trained.recipe.policy_about)
    first, one = recipe.networks[0], len(recipe.networks) == 1
    blocks = [f"format = 1\nabout = {about}\n", trained.settings.text()]
    for name, listed in layers(recipe.config, trained.settings.paths).items():
        for layer in listed:
            lines = [f"{key} = {toml_value(value)}" for key, value in layer.items()]
            blocks.append("\n".join([f"[[{name}]]", *lines]) + "\n")
    blocks.append('[guard]\nfallback = "cubic"\n')
    made = {
        "command": command,
        "recipe": recipe.origin.name,
        "learner": "ddpg",
        "seed": recipe.seed,
        "trained_on": first.scenario.name,
        **({"changes": dict(first.changes)} if one and first.changes else {}),
        **({} if one else {"networks": [network.name for network in recipe.networks]}),
        "reward": "sum of ln(goodput)",
        "decisions": recipe.config.epochs,
        "episodes": trained.episodes,
        "updates": trained.updates,
        "packets": trained.packets,
        "core": _core.CODE_HASH,
        **{name: version(name) for name in ("jax", "flax", "optax")},
        "training": asdict(recipe.config),
    }
    blocks.append(policy_files.tables_text({"made": made}))
    return "\n".join(blocks)


def card_text(trained: HostTrained, command: str, curve: pl.DataFrame, folder: Path) -> str:
    """`CARD.md`."""
    recipe, about = trained.recipe, trained.recipe.policy_about
    first, networks = recipe.networks[0], recipe.networks
    known = "the one network" if len(networks) == 1 else f"the {len(networks)} networks"
    last = curve.tail(LAST)
    mean = {name: float(last[name].to_numpy().mean()) for name in curve.columns}
    learned = table(
        ["", f"mean of the last {last.height} rows of the curve"],
        [
            ["reward per epoch", f"{mean['reward']:.3f}"],
            ["goodput of all flows, Mb/s", f"{mean['goodput_mbps']:.3f}"],
            ["Jain's index of an epoch", f"{mean['jain']:.3f}"],
            ["round trip, ms", f"{mean['rtt_ms']:.1f}"],
            ["size of an action", f"{mean['change']:.3f}"],
        ],
        left=1,
    )
    made = table(
        ["", ""],
        [
            *(["trained on", f"`{own.scenario.name}`{own.changed}"] for own in networks),
            *([key.replace("_", " "), f"{value}"] for key, value in recipe.host.items()),
            ["epochs", f"{recipe.config.epochs}"],
            ["updates", f"{trained.updates}"],
            ["episodes", f"{trained.episodes}"],
            ["data packets", f"{trained.packets}"],
            ["seed", f"{recipe.seed}"],
            *([field.replace("_", " "), f"{value:g}"] for field, value in
              asdict(recipe.config).items() if field not in ("epochs", "row_every")),
        ],
        left=2,
    )  # fmt: skip
    return f"""\
# {folder.name}

{about[:1].upper()}{about[1:]}.

    ackademy run scenarios/{first.scenario.name} --cc drl_cc -p policy={folder.as_posix()}

## How it was made

    {command}

The learner is deep deterministic policy gradient with a represented state; numbers that the paper
does not print are *proposed* (`docs/reference/controllers/drl_cc.md`).

{made}

The same command leaves the same bytes, given the versions in `policy.toml` and the same kind of
machine: floating-point sums of a training are not the same everywhere.

## Curve

![learning curve](curve.svg)

Means over the epochs between two rows of `curve.csv`, exploration included.

{learned}

## Limits

It knows {known} that it was trained on. Its reward counts goodput only, so it has no reason
to keep a queue short: {_empty(trained)}.
An answer that is not finite or out of range hands the connection over to CUBIC for good, which the
flows' counters show.
"""


def _empty(trained: HostTrained) -> str:
    most = f"{trained.settings.rtt_ms:g} ms"
    if len(trained.recipe.networks) == 1:
        return f"the empty path's round trip is {most}"
    return f"an empty path's round trip is at most {most}"
