"""`ackademy export` and `ackademy import`."""

from __future__ import annotations

import hashlib
import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import typer

from ackademy import _core, files, installation, lookup
from ackademy.console import Console
from ackademy.errors import ExchangeError
from ackademy.folders import check_policy_folder
from ackademy.policies import policy_files
from ackademy.policies.policy_files import POLICY, SETTINGS_TABLES, WEIGHTS, plain

EXTRA = f"needs ONNX: install the extra with {installation.add_extra('onnx')}"


def export_command(
    folder: Annotated[Path, typer.Argument(help="A policy, by folder or name.", metavar="POLICY")],
    out: Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE")],
    to: Annotated[Literal["onnx"], typer.Option(help="The format.")] = "onnx",
) -> None:
    """Write a policy's network in a format that other programs read.

    The model takes `observation` (batch, history, features) and gives `outputs` (batch, outputs);
    its metadata say what the policy sees and does. onnxruntime and Ackademy's own engine are
    compared on random observations before anything is written.

    Examples:
        ackademy export tcp_drinc --to onnx drinc.onnx

        ackademy export mine mine.onnx
    """
    try:
        from ackademy.policies.onnx import comparing, to_onnx
    except ImportError as error:
        raise ExchangeError(f"{error}: export --to {to} {EXTRA}") from None
    files.check_output(out)
    opened = policy_files.open_policy(lookup.policy_folder(str(folder)) or folder)
    content = to_onnx.model_of(opened).SerializeToString(deterministic=True)
    apart = comparing.difference(content, opened.policy, str(folder))
    files.write(out, content)
    _tell(out, apart, f"{len(content) / 1024:.0f} KiB")


def import_command(
    model: Annotated[Path, typer.Argument(help="An ONNX model.", metavar="FILE")],
    out: Annotated[Path, typer.Option(help="The policy's folder.", metavar="FOLDER")],
    like: Annotated[
        Path | None,
        typer.Option(
            help="A policy's folder, a recipe, or published settings by name, such as orca: what "
            "it sees and does. By default as the model itself says, if `export` wrote it.",
            metavar="FOLDER|FILE|NAME",
            show_default=False,
        ),
    ] = None,
    about: Annotated[
        str, typer.Option(help="Description in one line; from the model by default.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing policy.")] = False,
) -> None:
    """Make a policy of an ONNX model of any origin.

    Takes dense layers, convolutions, pools, LSTM and GRU as PyTorch and others write them
    (docs/reference/onnx.md); any other node is refused by name. onnxruntime and Ackademy's own
    engine are compared on random observations before anything is written.

    Examples:
        ackademy import drinc.onnx --out mine

        ackademy import trained_elsewhere.onnx --like aurora_mixed --out mine
    """
    try:
        from ackademy.policies.onnx import comparing, from_onnx, to_onnx
    except ImportError as error:
        raise ExchangeError(f"{error}: import {EXTRA}") from None
    check_policy_folder(out, force=force)
    content = policy_files.read_file(model, from_onnx.MODEL_BYTES_MAX)
    parsed = from_onnx.parse(content, str(model))
    metadata = from_onnx.metadata_of(parsed)
    if like is None and to_onnx.SETTINGS_KEY_BEFORE in metadata:
        raise ExchangeError(
            f"{model}: metadata {to_onnx.SETTINGS_KEY_BEFORE}: allowed: {to_onnx.SETTINGS_KEY}, "
            "the name of this key now, or --like"
        )
    if like is None and to_onnx.SETTINGS_KEY not in metadata:
        raise ExchangeError(
            f"{model}: does not say what the policy sees and does: allowed: --like with a policy's "
            f"folder or a TOML file that has the tables {', '.join(SETTINGS_TABLES)}"
        )
    if like is None:
        settings = policy_files.settings_in(
            metadata[to_onnx.SETTINGS_KEY], f"{model}: its metadata"
        )
    else:
        settings = _settings_like(like)
    network = from_onnx.network_of(parsed, entering(settings, like or model), str(model))
    made = {
        "command": plain(_command(model, like, out)),
        "model": hashlib.sha256(content).hexdigest(),
        "written_by": plain(network.made_by),
    }
    told = about or metadata.get(to_onnx.ABOUT_KEY, f"imported from {model.name}")
    text = policy_files.policy_text(plain(told), settings, network.layers, made)
    files = {POLICY: text.encode(), WEIGHTS: policy_files.bytes_of(network.tensors)}
    try:
        policy = _core.Policy.load(files)
    except ValueError as error:
        raise ExchangeError(f"{model}: gives no policy: {error}") from None
    apart = comparing.difference(from_onnx.needed_alone(parsed), policy, str(model))
    policy_files.write_folder(out, files, force=force)
    _tell(out, apart, " → ".join(layer["kind"] for layer in network.layers))


def _settings_like(like: Path) -> str:
    """The five tables of a folder or a file, or those that have a name."""
    if not like.exists():
        try:
            from ackademy.envs.agent_settings import NAMED
        except ImportError as error:
            needs = installation.add_extra("train")
            raise ExchangeError(
                f"{like}: no such file; names of settings need {needs} ({error})"
            ) from None
        if str(like) not in NAMED:
            raise ExchangeError(
                f"{like}: no such file: allowed: a policy's folder, a recipe, {', '.join(NAMED)}"
            )
        return policy_files.settings_in(NAMED[str(like)], str(like))
    return policy_files.settings_of(like)


def entering(settings: str, where: Path) -> tuple[int, int]:
    """(history, features) of an observation; the core checks the rest with the whole policy.

    Raises:
        ExchangeError: if the tables do not say it.
    """
    try:
        seen = tomllib.loads(settings)["observation"]
        history, features = seen.get("history", 64), seen["features"]
    except (ValueError, KeyError, TypeError, AttributeError):
        history = features = None
    if type(history) is not int or not 1 <= history <= 256 or not isinstance(features, list):
        raise ExchangeError(
            f"{where}: observation: allowed: a table as `ackademy new policy` writes it"
        )
    return history, len(features)


def _command(model: Path, like: Path | None, out: Path) -> str:
    words = ["ackademy", "import", str(model), *(["--like", str(like)] if like else [])]
    return shlex.join([*words, "--out", str(out)])


def _tell(out: Path, apart: float, what: str) -> None:
    Console().say(
        f"{what}; onnxruntime's outputs and ours are at most {apart:.1e} apart\nwritten: {out}"
    )
