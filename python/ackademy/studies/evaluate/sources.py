"""Where networks come from: a training, a distribution, a list, scenarios (`--on`)."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ackademy import _core, files, folders, lookup
from ackademy.backends import distributions, entries, link_lists, overlap
from ackademy.backends.runs import read_text
from ackademy.errors import AckademyError, ExperimentError, ScenarioError
from ackademy.runner import cases
from ackademy.runner.cases import Case
from ackademy.toml_table import TomlTable

FIRST_SEED = 1_000_001
"""of drawn networks and of runs: far from the small seeds that people plot with; episodes of a
training have seeds of 64 random bits"""
RUNS = 40
"""draws of a distribution, or seeds of a scenario"""
CHOICE = "seeds.json"
"""of a policy that was chosen among several, its table and the digests of the networks"""
TRAINING = "training"
"""the word for what the evaluated policy was trained on"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where networks come from."""

    origin: str
    """the file of a distribution, a list or a scenario"""
    about: str
    digest: str
    """of a distribution or a list; empty for a scenario"""
    cases: tuple[Case, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What a drawn dumbbell is."""

    rate_mbps: float
    rtt_ms: float
    """of the empty path"""
    loss: float
    """random, a part of packets"""
    buffer_bdp: float
    """drop-tail limit over rate times round trip"""

    @property
    def words(self) -> str:
        """In a line."""
        return (
            f"{self.rate_mbps:.3g} Mb/s, {self.rtt_ms:.3g} ms, {100 * self.loss:.2g} % loss, "
            f"{self.buffer_bdp:.2g} BDP"
        )


def source(
    words: Sequence[str],
    policy: Path | None,
    folder: Path,
    *,
    flows: str = "",
    runs: int | None = None,
    seed: int = FIRST_SEED,
) -> Source:
    """What the words after `--on` name.

    Args:
        words: `training`, the name or path of a distribution or of a list, or scenarios.
        policy: the folder of the evaluated policy, if it is one.
        folder: of the cells; traces of drawn networks are put there.
        flows: pattern of the entries that a scheme governs; by default those that the source names,
            all of a scenario.
        runs: draws, seeds, or networks of a list: those whose names have the smallest hashes.
        seed: of the first draw or run; the others count up.

    Raises:
        AckademyError: if there is no such source, or it is wrong.
    """
    if not words or TRAINING in words:
        if len(words) > 1:
            raise AckademyError(f"--on {TRAINING}: allowed: alone")
        if policy is None:
            allowed = "--on DISTRIBUTION, LIST or SCENARIO, for a controller was trained on nothing"
            raise AckademyError(f"evaluate: allowed: {allowed}")
        return _flows(trained_on(policy, folder, runs or RUNS, seed), flows)
    kinds = [_kind(word) for word in words]
    if set(kinds) == {"scenario"}:
        found = [of_scenario(word, folder, runs or RUNS, seed, flows or "*") for word in words]
        every = tuple(case for own in found for case in own.cases)
        return replace(found[0], origin=", ".join(own.origin for own in found), cases=every)
    if len(words) > 1:
        raise AckademyError(f"--on {words[0]}: allowed: alone, or several scenarios")
    if kinds[0] == "list":
        return of_list(lookup.find(words[0], "list", ExperimentError), folder, runs, flows)
    return _flows(of_distribution(words[0], folder, runs or RUNS, seed), flows)


def _kind(word: str) -> str:
    """Whether a word names a distribution, a list or a scenario."""
    if word.endswith(".links") or (word in lookup.names("list") and not folders.is_file(word)):
        return "list"
    if folders.is_file(word):
        keys = TomlTable.read(Path(word)).values.keys()
        return "list" if "digest" in keys else "distribution" if "scenario" in keys else "scenario"
    return "distribution" if word in lookup.names("distribution") else "scenario"


def of_distribution(path: Path | str, folder: Path, runs: int, seed: int) -> Source:
    """Scenarios drawn from a file as at the end of training, one per run.

    Raises:
        ScenarioError: if it cannot be read or is wrong.
    """
    read = distributions.read(path)
    origin = str(lookup.find(path, "distribution"))
    found = cases.drawn(read, seed, runs, folder)
    return Source(origin, " ".join(read.about.split()), read.digest, tuple(found))


def of_scenario(path: Path | str, folder: Path, runs: int, seed: int, flows: str = "*") -> Source:
    """One scenario with a seed per run, the scheme on the flows that a pattern names.

    Raises:
        ScenarioError: if it cannot be read, is wrong, or has no such flow.
    """
    found = lookup.find(path, "scenario", ScenarioError)
    scenario = _core.Scenario.parse(read_text(found), str(found))
    if not entries.named(scenario, [flows]):
        allowed = ", ".join(scenario.entries)
        raise ExperimentError(f"{found}: flow {flows!r}: allowed: {allowed}")
    own = cases.of_file(found)
    seeds = distributions.seeds(seed, runs)
    named = [replace(own, group=own.name, flows=(flows,), seed=one) for one in seeds]
    return Source(str(found), "", "", tuple(named))


def of_list(path: Path, folder: Path, count: int | None = None, flows: str = "") -> Source:
    """The networks of a list, or `count` of them.

    Raises:
        ExperimentError: if the list is wrong.
    """
    found = link_lists.read(path)
    kept = sorted(found.links, key=lambda own: hashlib.sha256(own.name.encode()).hexdigest())
    names = {own.name for own in kept[:count]}
    chosen = []
    for own in (own for own in found.links if own.name in names):
        wanted = (flows,) if flows else own.flows
        wanted = wanted if entries.named(own.scenario, list(wanted)) else ("*",)
        chosen.append(cases.of_scenario(own.scenario, folder, wanted, 1, own.kind))
    return Source(str(path), found.about, found.digest, tuple(chosen), is_list=True)


def trained_on(policy: Path, folder: Path, runs: int, seed: int) -> Source:
    """What the policy in a folder says that it was trained on.

    Raises:
        AckademyError: if it does not say, or what it names is not there.
    """
    described = policy / folders.POLICY_FILE
    made = TomlTable.read(described).table("made")
    named, digest = made.values.get("trained_on"), made.values.get("distribution_digest", "")
    if not isinstance(named, str) or not named:
        allowed = "--on DISTRIBUTION, LIST or SCENARIO, since [made] has no trained_on"
        raise AckademyError(f"{described}: allowed: {allowed}")
    path = _found(named, "distributions" if digest else "scenarios", policy)
    of = of_distribution if digest else of_scenario
    own = of(path, folder, runs, seed)
    learners = tuple(made.strings("learners", []))
    if not learners:
        return own
    if not any(entries.named(case.scenario, learners) for case in own.cases):
        raise made.error("learners", list(learners), f"flows of {path}")
    return _governing(own, learners)


def has_changed(policy: Path, own: Source) -> bool:
    """Whether a distribution that a policy was trained on is another one by now."""
    described = policy / folders.POLICY_FILE
    made = TomlTable.read(described).table("made").values if described.is_file() else {}
    known = made.get("distribution_digest", "")
    is_same_file = made.get("trained_on") == Path(own.origin).name
    return bool(known and own.digest and is_same_file and known != own.digest)


def that_chose(policy: Path, own: Source) -> list[str]:
    """Names of the networks that the policy in a folder was chosen by.

    Raises:
        AckademyError: if its file of them cannot be read.
    """
    path = policy / CHOICE
    if not folders.is_file(path):
        return []
    try:
        told = json.loads(files.read_text(path))
        known = set(told.get("networks", []))
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise AckademyError(
            f"{path}: {error}; allowed: JSON as `ackademy train` writes it"
        ) from None
    return [case.name for case in own.cases if overlap.digest(case.scenario) in known]


def _flows(own: Source, flows: str) -> Source:
    return _governing(own, (flows,)) if flows else own


def _governing(own: Source, patterns: tuple[str, ...]) -> Source:
    """The same networks, the schemes on the flows that patterns name."""
    found = []
    for case in own.cases:
        fitting = tuple(one for one in patterns if entries.named(case.scenario, [one]))
        found.append(replace(case, flows=fitting))
    return replace(own, cases=tuple(found))


def _found(named: str, kind: str, policy: Path) -> Path:
    """The file that a policy was trained on: here, or in a folder above the policy's."""
    near = [root / name for root in policy.resolve().parents for name in (named, f"{kind}/{named}")]
    shipped = folders.here_or_above(f"{kind}/{named}") if not Path(named).is_absolute() else []
    for path in (Path(named), Path(kind) / named, *near, *shipped):
        if folders.is_file(path):
            return path
    raise AckademyError(
        f"{policy / folders.POLICY_FILE}: made.trained_on = {named!r}: allowed: a file here or in "
        f"{kind}; or give --on"
    )


def bottleneck_of(case: Case) -> Bottleneck | None:
    """What a dumbbell with a constant rate and a limit in BDP is; `None` for another network."""
    dumbbell = tomllib.loads(case.scenario.resolved()).get("dumbbell", {})
    link = dumbbell.get("bottleneck", {})
    queue, loss = link.get("queue", {}), link.get("loss", {})
    try:
        rate, rtt = float(link["rate_mbps"]), float(dumbbell["rtt_ms"])
        buffer = max(float(queue["bdp"]), float(queue.get("min_bytes", 0.0)) / (rate * rtt * 125.0))
    except KeyError:
        return None
    return Bottleneck(rate, rtt, float(loss.get("ratio", 0.0)), buffer)
