"""`card.toml`: what a policy did on a small fixed set of runs, for programs.

The set is a distribution or a scenario cut to some seconds, and some seeds. Each run's counts are
there as whole numbers, so that a test can run them again and compare exactly; `CARD.md` shows the
means to people, between two marks.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ackademy import _core, files, folders
from ackademy.backends import distributions, entries, schemes
from ackademy.backends.runs import read_text, simulate
from ackademy.backends.schemes import Scheme
from ackademy.errors import ExperimentError
from ackademy.lazy import pl
from ackademy.runner.cases import Case, of_scenario
from ackademy.stats import scores
from ackademy.stats.run_metrics import measure
from ackademy.stats.scores import Score
from ackademy.toml_table import TomlTable, toml_value

CARD, PAGE = "card.toml", "CARD.md"
FORMAT = 1
BEGIN, END = "<!-- card.toml -->", "<!-- end of card.toml -->"
COUNTS = ("sent_packets", "dropped_packets", "delivered_bytes", "fallbacks")
"""counts per run, summed over all flows under the policy"""
SET_KEYS = ("scenario", "distribution", "digest", "flows", "seeds", "duration_s")
HEADLINE = ("share", "rtt_ratio", "loss_ratio", "utility")
BASELINES = ("cubic", "new_reno")
DECIMALS = 6
"""decimals of a mean in the file"""


@dataclass(frozen=True, slots=True)
class FixedSet:
    """The fixed set of runs of a card."""

    source: str
    """path of a distribution or a scenario, from the folder that `policies` lies in"""
    is_distribution: bool
    flows: str
    """glob of the flows under the policy, for a scenario"""
    seeds: tuple[int, ...]
    duration_s: float


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the set."""

    seed: int
    scenario: str
    counts: tuple[int, ...]
    score: Score


@dataclass(frozen=True, slots=True)
class Card:
    """The content of `card.toml`."""

    fixed: FixedSet
    policy: str
    """digest of the policy's files"""
    source_digest: str
    runs: tuple[tuple[int, str, tuple[int, ...]], ...]
    """seed, scenario, counts"""
    headline: dict[str, dict[str, float]]
    """by scheme, `policy` first"""


def digest(folder: Path) -> str:
    """Digest of a policy's description and weights; cards and curves do not count."""
    parts = [
        path.name.encode() + b"\0" + files.read_bytes(path, files.TABLE_BYTES_MAX)
        for path in sorted(folder.iterdir())
        if path.suffix == ".safetensors" or path.name == folders.POLICY_FILE
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def evaluate(fixed: FixedSet, own: Scheme, root: Path) -> list[Ran]:
    """Run a scheme on the set.

    Raises:
        AckademyError: if the set or the scheme cannot be read.
    """
    with tempfile.TemporaryDirectory() as scratch:
        cases = _cases(fixed, root, Path(scratch))
        pairs = zip(cases, fixed.seeds, strict=True)
        return [_run(case, own, fixed.duration_s, seed) for case, seed in pairs]


def make(folder: Path, fixed: FixedSet, root: Path) -> Card:
    """The card of the policy in a folder: every run of the set, beside the baselines."""
    name, params = schemes.of_folder(folder)
    ran = evaluate(fixed, Scheme("policy", name, params), root)
    headline = {"policy": _means(ran)}
    for baseline in BASELINES:
        headline[baseline] = _means(evaluate(fixed, schemes.one(baseline), root))
    return Card(
        fixed=fixed,
        policy=digest(folder),
        source_digest=_source_digest(fixed, root),
        runs=tuple((one.seed, one.scenario, one.counts) for one in ran),
        headline=headline,
    )


def text(card: Card) -> str:
    """The text of the file; equal cards have equal bytes."""
    fixed = card.fixed
    lines = [
        "# What this policy did on a small fixed set of runs: by `ackademy evaluate --card`,",
        "# run again by tests/test_zoo.py.",
        f"format = {FORMAT}",
        f"policy = {toml_value(card.policy)}",
        "",
        "# Means over the set: share of the narrowest link, round trip over the empty path's,",
        "# loss, ln share - ln round trip.",
    ]
    for name, numbers in card.headline.items():
        values = ", ".join(f"{key} = {_decimal(numbers[key])}" for key in HEADLINE)
        lines.append(f"headline.{name} = {{ {values} }}")
    lines += [
        "",
        "[set]",
        f"{'distribution' if fixed.is_distribution else 'scenario'} = {toml_value(fixed.source)}",
        f"digest = {toml_value(card.source_digest)}",
        *([] if fixed.is_distribution else [f"flows = {toml_value(fixed.flows)}"]),
        f"seeds = [{', '.join(map(str, fixed.seeds))}]",
        f"duration_s = {fixed.duration_s:g}",
    ]
    for seed, scenario, counts in card.runs:
        named = zip(COUNTS, counts, strict=True)
        lines += ["", "[[run]]", f"seed = {seed}", f"scenario = {toml_value(scenario)}"]
        lines += [f"{key} = {value}" for key, value in named]
    return "\n".join(lines) + "\n"


def read(folder: Path) -> Card | None:
    """The card in a policy's folder; `None` if it has none.

    Raises:
        ExperimentError: if it is wrong; one line.
    """
    path = folder / CARD
    if not path.is_file():
        return None
    table = TomlTable.read(path).only("format", "policy", "headline", "set", "run")
    if table.number("format") != FORMAT:
        raise table.error("format", table.values.get("format"), str(FORMAT))
    own = table.table("set").only(*SET_KEYS)
    is_distribution = "distribution" in own.values
    seeds = own.values.get("seeds")
    if not isinstance(seeds, list) or not all(type(s) is int and 0 <= s < 2**63 for s in seeds):
        raise own.error("seeds", seeds, "a list of whole numbers from 0")
    fixed = FixedSet(
        source=own.string("distribution" if is_distribution else "scenario"),
        is_distribution=is_distribution,
        flows=own.string("flows", "*"),
        seeds=tuple(seeds),
        duration_s=own.number("duration_s"),
    )
    runs = tuple(
        (
            run.only("seed", "scenario", *COUNTS).whole("seed", 0),
            run.string("scenario"),
            tuple(run.whole(key, 0) for key in COUNTS),
        )
        for run in table.tables("run")
    )
    headline = {
        name: {key: table.table("headline", name).any_number(key) for key in HEADLINE}
        for name in table.table("headline").values
    }
    return Card(fixed, table.string("policy"), own.string("digest"), runs, headline)


def in_markdown(card: Card) -> str:
    """What `CARD.md` shows between its marks."""
    fixed = card.fixed
    several = "s" if len(fixed.seeds) > 1 else ""
    seeds = f"seed{several} {', '.join(map(str, fixed.seeds))}"
    runs = f"{len(fixed.seeds)} run{several} of {fixed.duration_s:g} s ({seeds})"
    lines = [
        BEGIN,
        f"On `{fixed.source}`, {runs}; means:",
        "",
        "| controller | share of the link, % | RTT / empty RTT | loss, % | utility |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, numbers in card.headline.items():
        shown = "**policy**" if name == "policy" else name
        lines.append(
            f"| {shown} | {100 * numbers['share']:.1f} | {numbers['rtt_ratio']:.3f} "
            f"| {100 * numbers['loss_ratio']:.3f} | {numbers['utility']:.3f} |"
        )
    return "\n".join([*lines, END])


def write(folder: Path, card: Card) -> None:
    """Write `card.toml`, and its table into `CARD.md`: between its marks, or at the end.

    Raises:
        ExperimentError: if they cannot be written.
    """
    _put(folder, "On a fixed set of runs", in_markdown(card), (BEGIN, END))
    files.write(folder / CARD, text(card))


def put_section(folder: Path, name: str, heading: str, body: str) -> None:
    """Write a section of `CARD.md`: in the place of the one of this name, or at the end.

    Args:
        folder: of the policy.
        name: by which a later call finds it.
        heading: of the section, if there is none yet.
        body: Markdown.

    Raises:
        ExperimentError: if it cannot be written.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    _put(folder, heading, f"{begin}\n{body.strip()}\n{end}", (begin, end))


def _put(folder: Path, heading: str, block: str, marks: tuple[str, str]) -> None:
    page = folder / PAGE
    old = files.read_text(page) if page.is_file() else f"# {folder.name}\n"
    marked = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), re.DOTALL)
    if marked.search(old):
        new = marked.sub(lambda _: block, old)
    else:
        new = f"{old.rstrip()}\n\n## {heading}\n\n{block}\n"
    files.write(page, new)


def _cases(fixed: FixedSet, root: Path, scratch: Path) -> list[Case]:
    path = root / fixed.source
    if not fixed.is_distribution:
        scenario = _core.Scenario.parse(read_text(path), str(path))
        return [of_scenario(scenario, scratch, (fixed.flows,), seed) for seed in fixed.seeds]
    distribution = distributions.read(path)
    return [
        of_scenario(distribution.draw(seed, 1.0), scratch, distribution.learners, seed)
        for seed in fixed.seeds
    ]


def _source_digest(fixed: FixedSet, root: Path) -> str:
    path = root / fixed.source
    if fixed.is_distribution:
        return distributions.read(path).digest
    canonical = _core.Scenario.parse(read_text(path), str(path)).canonical()
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _run(case: Case, own: Scheme, duration_s: float, seed: int) -> Ran:
    cut = {"duration_s": f"{duration_s:g}"}
    scenario = _core.Scenario.parse(case.text, case.origin, cut)
    chosen = entries.named(scenario, case.flows)
    if not chosen:
        raise ExperimentError(f"{case.origin}: flows: allowed: {scenario.entries}")
    scenario = scenario.with_controller(str(own.controller), dict(own.params), chosen)
    tables = simulate(scenario, seed, 0.0)
    measured = measure(tables).flows
    numbers = measured.select([c for c in measured.columns if c not in tables.flows.columns])
    flows = pl.concat([tables.flows, numbers], how="horizontal")
    rows = flows["flow"].to_list()
    flows = flows.filter(pl.Series(entries.governed(scenario, case.flows, rows)))
    score = scores.score_of(flows, tables.links, tables.counters, duration_s)
    return Ran(
        seed=seed,
        scenario=case.name,
        counts=(*(int(flows[key].sum()) for key in COUNTS[:-1]), score.fallbacks),
        score=score,
    )


def _means(ran: Sequence[Ran]) -> dict[str, float]:
    values = {key: np.array([getattr(one.score, key) for one in ran]) for key in HEADLINE}
    # As the file has them, so that what is read again is what was made.
    return {key: round(float(np.nanmean(own)), DECIMALS) for key, own in values.items()}


def _decimal(value: float) -> str:
    """Few decimals: logarithms may differ in their last bits between machines."""
    return f"{value:.{DECIMALS}f}" if math.isfinite(value) else "nan"
