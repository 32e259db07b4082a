"""The files beside a forest: `policy.toml` for programs, `CARD.md` for people."""

from __future__ import annotations

from ackademy import _core
from ackademy.learn.lp_tcp.choosing import network
from ackademy.learn.lp_tcp.result import Trained, scikit_learn_version

MIX = """\
The trees are those of the same setup without `mix`, byte for byte: both are fitted to NewReno
alone. The threshold is chosen anew."""


def policy(trained: Trained, command: str) -> str:
    """The policy as TOML: what a program needs to run it, and what it takes to make it again."""
    recipe, setup = trained.recipe, trained.recipe.recording.setup
    growth, recording = recipe.growth, recipe.recording
    return f"""\
# The loss predictor of LP-TCP for {setup.label}; CARD.md says what it is good for.
controller = "lp_tcp"
forest = "forest.safetensors"
threshold = {trained.chosen.threshold:g}
features = 55

[setup]
paper = "Kong, Zang and Ma 2018"
buffer_packets = {setup.buffer_packets}
senders = {setup.senders}
mix = {str(setup.mix).lower()}
rate_mbps = 10
rtt_ms = 150

[made]
command = "{command}"
seed = {recording.seed}
recorded_s = {recording.duration_s:g}
pieces = {len(recording.seeds)}
phase = "{recording.phase}"
delivered_per_loss = {recipe.delivered_per_loss}
keep_one_in = {trained.sends.keep_one_in}
trees = {growth.trees}
max_features = {growth.max_features}
min_samples_leaf = {growth.min_samples_leaf}
max_leaves = {growth.max_leaves}
nodes = {trained.n_nodes}
th0 = {trained.th0.threshold:g}
f1 = {trained.th0.f1:.4f}
core = "{_core.CODE_HASH}"
scikit_learn = "{scikit_learn_version()}"
"""


def text(trained: Trained, command: str) -> str:
    """The card: recipe, data, F1, thresholds, limits."""
    setup, threshold = trained.recipe.recording.setup, trained.chosen.threshold
    same = f"\n\n{MIX}" if setup.mix else ""
    drawn = (
        "one run each: nothing is random" if setup.senders == 1 else f"{trained.recipe.runs} runs"
    )
    return f"""\
# LP-TCP, {setup.label}

A random forest that estimates from 55 numbers of a TCP sender whether the packet it is about to
send will be lost. LP-TCP (Kong, Zang and Ma 2018) is NewReno that holds a packet back, and takes
one packet off its window, where the estimate is at least {threshold:g}.

    ackademy run scenarios/{network(setup)}.toml --cc lp_tcp \\
        -p policy=policies/lp_tcp/{setup.folder}/forest.safetensors

## How it was made

    {command}

{_recipe(trained)}{same}

## How well it predicts

{_prediction(trained)}

## Which threshold

LP-TCP in the network it was trained for, 400 s, {drawn}:

{_thresholds(trained)}

{_chosen_on(trained)}

## Limits

It knows one network. With another rate, round trip, buffer or number of senders its features take
values it has not seen, and its output means nothing; train another one.
"""


def _recipe(trained: Trained) -> str:
    counts, growth, recording = trained.sends, trained.recipe.growth, trained.recipe.recording
    setup, megabytes = recording.setup, len(trained.forest) / 1e6
    phase = "in all phases" if recording.phase == "all" else "in congestion avoidance"
    limit = f", at most {growth.max_leaves} leaves each" if growth.max_leaves else ""
    leaves = f"{growth.min_samples_leaf} rows or more a leaf{limit}"
    return _table(
        ["", ""],
        [
            ["network", f"10 Mb/s, 150 ms, {setup.buffer_packets} packets of buffer"],
            ["senders", f"{setup.senders} NewReno, seeds {_range(recording.seeds)}"],
            ["recorded", f"{recording.duration_s:g} s: {counts.sends} transmissions"],
            ["lost", f"{counts.losses}"],
            ["kept", f"{phase}: every lost one, one in {counts.keep_one_in} of the delivered"],
            [
                "fitted to",
                f"first 70 % of the time: {counts.losses_fitted} lost, "
                f"{counts.rows_fitted - counts.losses_fitted} delivered",
            ],
            ["scored on", f"the rest: {counts.losses_scored} lost, {counts.rows_scored} rows"],
            ["forest", f"{growth.trees} trees, {growth.max_features} features a split, {leaves}"],
            ["size", f"{trained.n_nodes} nodes, {megabytes:.2f} MB"],
            ["scikit-learn", scikit_learn_version()],
        ],
    )


def _range(seeds: range) -> str:
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _prediction(trained: Trained) -> str:
    th0 = trained.th0
    return f"""\
th₀ = {th0.threshold:g}: F1 {th0.f1:.3f}, precision {th0.precision:.3f}, recall {th0.recall:.3f}.
Delivered packets count with the share they have on the wire. `f1.csv` has the whole curve.

{leakage(trained.sends.losses_repeated, trained.sends.losses_scored)}"""


def leakage(losses_repeated: int, losses_scored: int) -> str:
    """A caveat on the F1 score of a network that repeats itself."""
    if losses_repeated == 0:
        return f"None of the {losses_scored} lost rows scored on stands among those fitted to."
    return f"""\
**Leakage:** of the {losses_scored} lost rows scored on, {losses_repeated} stand among those
fitted to, bit for bit: the flows repeat a cycle. F1 says how well the cycle was learnt by heart,
not how well losses are foreseen elsewhere."""


def _thresholds(trained: Trained) -> str:
    rows = []
    for tried in trained.tried:
        mark = " (th₀)" if tried.threshold == trained.th0.threshold else ""
        mark += " **chosen**" if tried is trained.chosen else ""
        numbers = (f"{tried.throughput_mbps:.3f}", f"{tried.delay_ms:.2f}")
        rows.append(
            [f"{tried.threshold:g}{mark}", *numbers, f"{tried.loss_ratio:.2e}", f"{tried.m_e:.4f}"]
        )
    return _table(["threshold", "tp Mb/s", "d ms", "p", "M_e"], rows)


def _chosen_on(trained: Trained) -> str:
    if trained.recipe.recording.setup.senders == 1:
        return "Tables 3 and 5 of the reproduction show these very runs: no others are possible."
    return f"""\
Seeds 1 to {trained.recipe.runs}, which are also among the runs of the reproduction's
tables, as in the paper: the choice has seen a part of what it is judged on."""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
