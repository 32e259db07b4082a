"""`ackademy train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ackademy import folders, lookup
from ackademy.cli import (
    train_ablations,
    train_cubic_beta,
    train_deep,
    train_flagship,
    train_host,
)
from ackademy.cli.bounds import FIT_SEED_MAX, RUNS_MAX, finite
from ackademy.cli.options import Jobs
from ackademy.cli.running import stopped
from ackademy.cli.train_deep import Force
from ackademy.cli.train_progress import stages
from ackademy.console import Console
from ackademy.errors import ScenarioError, TrainingError
from ackademy.files import check_output_folder
from ackademy.folders import here_or_above
from ackademy.interrupts import between_batches
from ackademy.learn.lp_tcp import network
from ackademy.learn.lp_tcp import training as lp_tcp
from ackademy.learn.lp_tcp.collecting import Phase, Recording
from ackademy.learn.lp_tcp.forest import Growth
from ackademy.learn.lp_tcp.result import Recipe
from ackademy.learn.lp_tcp.setups import PUBLISHED, Setup
from ackademy.learn.lp_tcp.training import Workshop
from ackademy.runner import engines, experiments

Seed = Annotated[int, typer.Option(min=0, max=FIT_SEED_MAX, help="Seed of recording and fitting.")]
Duration = Annotated[
    float, typer.Option(min=1.0, callback=finite, help="Simulated seconds to record.")
]

app = typer.Typer(
    help="Train learned controllers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Train learned controllers."""


app.command("ablations")(between_batches()(train_ablations.ablations_command))
app.command("cubic-beta")(train_cubic_beta.cubic_beta_command)
app.command("drinc")(between_batches()(train_deep.drinc_command))
app.command("drl-cc")(between_batches()(train_host.drl_cc_command))
app.command("flagship")(between_batches()(train_flagship.flagship_command))
app.command("ppo")(between_batches()(train_deep.ppo_command))


@app.command("lp-tcp")
def lp_tcp_command(
    setup: Annotated[
        list[str] | None,
        typer.Option(help="Buffer and senders: L=50,K=1 or, one among NewReno, L=50,K=4,mix."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The paper's five setups.")] = False,
    seed: Seed = 1,
    out: Annotated[
        Path, typer.Option(help="Folder of the policies, with a subfolder per setup.")
    ] = folders.TRAINED / "lp_tcp",
    force: Force = False,
    duration_s: Duration = 5000.0,
    pieces: Annotated[
        int,
        typer.Option(
            min=0, max=1000, help="Number of runs that are recorded; 0: 1, or 12 if K > 1."
        ),
    ] = 0,
    phase: Annotated[
        Phase, typer.Option(help="Transmissions to learn from: all, or congestion avoidance only.")
    ] = "ca",
    delivered_per_loss: Annotated[
        int,
        typer.Option(min=1, max=RUNS_MAX, help="Delivered packets to learn from, per lost one."),
    ] = 49,
    trees: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    min_leaf: Annotated[int, typer.Option(min=1, help="Smallest number of rows in a leaf.")] = 5,
    max_leaves: Annotated[
        int, typer.Option(min=0, help="Largest number of leaves per tree; 0 for no limit.")
    ] = 0,
    runs: Annotated[
        int,
        typer.Option(
            min=1, max=RUNS_MAX, help="Simulations per threshold where senders share the link."
        ),
    ] = 20,
    jobs: Jobs = None,
    work: Annotated[Path, typer.Option(help="Folder of finished stages.")] = Path("runs"),
) -> None:
    """Train LP-TCP's loss predictor: record NewReno, fit a forest, score it, choose the threshold.

    The same seed gives the same forest, byte for byte, whatever --jobs is. Finished stages are
    kept: an interrupted command continues where it stopped.

    Examples:
        ackademy train lp-tcp --setup L=50,K=1

        ackademy train lp-tcp --setup L=50,K=4,mix --seed 2 --out mine

        ackademy train lp-tcp --all --jobs 2
    """
    if bool(setup) == everything:
        raise TrainingError("--setup or --all: one of them says what to train")
    check_output_folder(out)
    check_output_folder(work)
    console = Console()
    n_jobs = jobs or engines.core_count()
    workshop = Workshop(
        scenarios=scenario_folder(),
        work=work / "train" / "lp_tcp",
        engine=engines.local(n_jobs),
        jobs=n_jobs,
    )
    growth = Growth(trees=trees, min_samples_leaf=min_leaf, max_leaves=max_leaves)
    chosen = PUBLISHED if everything else [Setup.parse(text) for text in setup or ()]
    for entry in chosen:
        folders.check_policy_folder(out / entry.folder, force=force)  # before the training
    for entry in chosen:
        recording = Recording(entry, seed, duration_s, pieces, phase)
        _train(Recipe(recording, delivered_per_loss, growth, runs), workshop, out, console)


@app.command("lp-tcp-on")
def lp_tcp_on_command(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.", metavar="FILE")],
    out: Annotated[Path, typer.Option(help="The policy's folder.")],
    seed: Seed = 1,
    duration_s: Duration = 3000.0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another value for a field of the file.", metavar="FIELD=TOML"),
    ] = None,
    force: Force = False,
    work: Annotated[Path, typer.Option(help="Folder of the simulations.")] = Path("runs"),
) -> None:
    r"""Train LP-TCP's loss predictor for a network of your own.

    Examples:
        ackademy train lp-tcp-on scenarios/wire/case1_lossy.toml --out mine/case1 \
            --set link.1.loss.ratio=0.001
    """
    folders.check_policy_folder(out, force=force)  # before the training, not behind it
    check_output_folder(out)
    check_output_folder(work)
    jobs = engines.core_count()
    pairs = tuple((name, value) for name, _, value in (s.partition("=") for s in settings or ()))
    found = lookup.find(scenario, "scenario", ScenarioError)
    task = network.Task(found, seed, duration_s, settings=pairs)
    folder = work / "train" / "lp_tcp_on" / folders.work_name(out)
    trained = network.train(task, out, folder, engines.local(jobs), jobs)
    chosen = trained.chosen
    Console().say(
        f"{scenario.stem}: {trained.n_losses} losses, F1 {trained.th0.f1:.3f} at th₀ = "
        f"{trained.th0.threshold:g}; threshold {chosen.threshold:g}: M_e {chosen.m_e:.4f}; "
        f"{len(trained.content) / 1e6:.2f} MB\npolicy: {out}"
    )


def scenario_folder() -> Path:
    """The folder `scenarios` here, above, or of the source checkout.

    Raises:
        TrainingError: if there is none with Kong 2018's networks.
    """
    for scenario in here_or_above("scenarios/kong2018_one_sender.toml"):
        return scenario.parent
    raise TrainingError("no scenarios/kong2018_one_sender.toml here, above or in the package")


def _train(recipe: Recipe, workshop: Workshop, out: Path, console: Console) -> None:
    setup, start = recipe.recording.setup, time.monotonic()

    def line(name: str) -> experiments.Progress:
        console.say(name)
        return experiments.quiet

    with stages(console, line) as stage:
        try:
            trained = lp_tcp.train(recipe, workshop, lambda name: stage(f"{setup}: {name}"))
        except KeyboardInterrupt:
            told = f"interrupted; finished stages are kept in {workshop.work}"
            raise stopped(told) from None
    folder = out / setup.folder
    lp_tcp.export(trained, folder, command(recipe))
    best, th0 = trained.chosen, trained.th0
    console.say(
        f"{setup}: {trained.sends.losses} losses, F1 {th0.f1:.3f} at th₀ = {th0.threshold:g}; "
        f"threshold {best.threshold:g}: M_e {best.m_e:.4f}; {len(trained.forest) / 1e6:.2f} MB; "
        f"{time.monotonic() - start:.0f} s\npolicy: {folder}"
    )


def command(recipe: Recipe) -> str:
    """The command that makes this policy again; options at their defaults are left out."""
    recording, growth = recipe.recording, recipe.growth
    usual = Recipe(Recording(recording.setup, 1))
    default, plain = usual.recording, usual.growth
    options = {
        "--seed": (recording.seed, default.seed),
        "--duration-s": (f"{recording.duration_s:g}", f"{default.duration_s:g}"),
        "--pieces": (recording.pieces, default.pieces),
        "--phase": (recording.phase, default.phase),
        "--delivered-per-loss": (recipe.delivered_per_loss, usual.delivered_per_loss),
        "--trees": (growth.trees, plain.trees),
        "--min-leaf": (growth.min_samples_leaf, plain.min_samples_leaf),
        "--max-leaves": (growth.max_leaves, plain.max_leaves),
        "--runs": (recipe.runs, usual.runs),
    }
    words = [f"{name} {value}" for name, (value, at) in options.items() if value != at]
    return " ".join(["ackademy train lp-tcp --setup", str(recording.setup), *words])
