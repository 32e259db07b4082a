"""`ackademy traces`: recorded links of published campaigns, and sets of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ackademy import files
from ackademy.backends import recordings
from ackademy.cli.bounds import SEED_MAX, finite
from ackademy.console import Console
from ackademy.errors import AckademyError

app = typer.Typer(help="Recorded links: known campaigns, and sets of files.")


@app.command("list")
def list_command(
    sets: Annotated[
        list[Path] | None, typer.Argument(help="Sets of `traces split` to check instead.")
    ] = None,
) -> None:
    """Show the known campaigns; or check that sets share no recording.

    Examples:
        ackademy traces list

        ackademy traces list sets/train.toml sets/validation.toml sets/test.toml
    """
    console = Console()
    if sets:
        for path, count in recordings.check_apart(sets).items():
            console.print(f"{path}: {count} recordings", highlight=False, soft_wrap=True)
        return
    for name, campaign in recordings.campaigns().items():
        console.print(f"{name}: {campaign.about}", style="bold", highlight=False, soft_wrap=True)
        for field in ("format", "page", "licence", "citation"):
            line = f"  {field}: {getattr(campaign, field)}"
            console.print(line, highlight=False, soft_wrap=True)
        count = len(campaign.files or ())
        console.print(f"  files: {count or 'by hand'}", highlight=False, soft_wrap=True)


@app.command("fetch")
def fetch_command(
    campaign: Annotated[str, typer.Argument(help="Name of a campaign.")],
    out: Annotated[Path, typer.Option(help="Folder for its files.")] = Path("traces"),
) -> None:
    """Download the files of a campaign and compare their digests.

    Examples:
        ackademy traces fetch mahimahi --out traces/mahimahi
    """
    files.check_output_folder(out)
    for path in recordings.fetch(campaign, out):
        typer.echo(path)


@app.command("split")
def split_command(
    folder: Annotated[Path, typer.Argument(help="Folder of recordings.")],
    by: Annotated[
        str,
        typer.Option(
            help="Regular expression for operator and day in a path below the folder; "
            "recordings for which it finds the same stay in one set."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for train.toml, validation.toml, test.toml.")],
    pattern: Annotated[
        str, typer.Option("--files", help="Pattern of the files of rates.")
    ] = "**/*",
    parts: Annotated[str, typer.Option(help="Parts of the three sets.")] = "0.6,0.2,0.2",
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Of the order of groups.")] = 1,
    interval_ms: Annotated[
        float | None, typer.Option(min=1e-3, callback=finite, help="A rate for each so many ms.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of the seconds.")] = None,
    column: Annotated[str | None, typer.Option(help="Column of the rates.")] = None,
    scale: Annotated[
        float | None, typer.Option(callback=finite, help="Makes Mb/s of rates.")
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="OLD=NEW", help="Delays lie in the file with NEW for OLD in its name."
        ),
    ] = None,
    delay_interval_ms: Annotated[
        float, typer.Option(min=1e-3, callback=finite, help="A delay for each so many ms.")
    ] = 10.0,
) -> None:
    """Split a folder of recordings into three sets without a common operator and day.

    Each set is a distribution, for training and evaluation.

    Examples:
        ackademy traces split traces/mahimahi --by '^[^.]+' --out sets
    """
    names = ("interval_ms", "time", "column", "scale")
    rate = {
        name: value for name, value in zip(names, (interval_ms, time, column, scale), strict=True)
    }
    old, _, new = (delay or "").partition("=")
    if delay is not None and not (old and new):
        raise AckademyError(f"--delay {delay}: allowed: OLD=NEW, such as bw=delay")
    layout = recordings.Layout(
        {name: value for name, value in rate.items() if value is not None},
        {"interval_ms": delay_interval_ms} if delay else None,
        (old, new),
    )
    wanted = _parts(parts)
    files.check_output_folder(out)
    own = recordings.found(folder, pattern, by, layout)
    sets = recordings.split(own, wanted, seed)
    texts = {
        name: recordings.distribution(name, chosen, layout, out) for name, chosen in sets.items()
    }
    for name, text in texts.items():
        files.write(out / f"{name}.toml", text)
        groups = sorted({recording.group for recording in sets[name]})
        typer.echo(f"{out / name}.toml: {len(sets[name])} recordings of {', '.join(groups)}")


def _parts(text: str) -> list[float]:
    allowed = "three numbers above 0 with the sum 1, such as 0.6,0.2,0.2"
    try:
        parts = [float(part) for part in text.split(",")]
    except ValueError:
        raise AckademyError(f"--parts {text}: allowed: {allowed}") from None
    if len(parts) != len(recordings.SETS) or not all(part > 0 for part in parts):
        raise AckademyError(f"--parts {text}: allowed: {allowed}")
    if abs(sum(parts) - 1) > 1e-9:
        raise AckademyError(f"--parts {text}: allowed: {allowed}")
    return parts
