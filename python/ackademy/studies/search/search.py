"""The search: generations of candidates, judged in processes of their own, kept in one file.

`candidates.jsonl` has a line per judged candidate, in the order of their numbers, below a line that
says what is searched. A repeated command continues there. A generation is proposed from all that
came before it, so the path does not depend on the number of processes.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from ackademy import files
from ackademy.backends import controllers
from ackademy.backends.schemes import Scheme
from ackademy.errors import AckademyError, ExperimentError
from ackademy.runner.cases import Case
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, network_interval
from ackademy.stats.metrics import metric_of
from ackademy.studies.search import grammar as grammars
from ackademy.studies.search.grammar import Grammar, Holes, Template

MEASURED = ("utility", "link_share", "wait_p95_ratio", "queue_loss")
"""of every candidate on every network"""
CHILDREN = 16
"""candidates of a generation"""
PARENTS = 16
"""the best, which new ones come from and a proposer is told"""
TRIES = 50
"""for a candidate that was not judged before"""
PROPOSER_S = 600.0
TEXT_MAX = 256 * 1024
"""bytes of a candidate"""
LOG = "candidates.jsonl"
BEST = "best.py"

Propose = Callable[[int, int], "tuple[str, Holes | None, tuple[str, ...]]"]
"""from generation and place in it: text, its holes where there are some, and digests of parents"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A controller file with its score."""

    generation: int
    place: int
    digest: str
    """of its text"""
    parents: tuple[str, ...]
    score: float | None
    """mean over networks; none if it failed on one"""
    numbers: tuple[Mapping[str, float | None], ...] = ()
    """of each network"""
    error: str = ""
    holes: Mapping[str, list[object]] | None = None

    def values(self, metric: str) -> FloatArray:
        """Shape (n_networks,)."""
        own = [one.get(metric) for one in self.numbers]
        return np.array([math.nan if value is None else value for value in own], np.float64)


@dataclass(frozen=True, slots=True)
class Task:
    """What is searched, and where."""

    folder: Path
    template: Path
    networks: tuple[Case, ...]
    score: str
    """metric that is to be large, or small"""
    seed: int
    limit_s: float
    """of processor time for a candidate on all networks"""
    grammar: Path | None = None
    proposer: str = ""
    children: int = CHILDREN

    @property
    def sign(self) -> float:
        """-1 where a small score is good."""
        return -1.0 if metric_of(self.score).better == "lower" else 1.0

    def head(self) -> dict[str, object]:
        """What a search that continues must have in common."""
        networks = "".join(f"{case.seed}\n{case.scenario.canonical()}" for case in self.networks)
        proposed = files.read_bytes(self.grammar) if self.grammar else self.proposer.encode()
        return {
            "template": _digest(files.read_text(self.template)),
            "networks": _digest(networks),
            "proposals": hashlib.sha256(proposed).hexdigest()[:16],
            "score": self.score,
            "seed": self.seed,
            "children": self.children,
        }


@dataclass(slots=True)
class Search:
    """A search with what is judged so far.

    Raises:
        ExperimentError: if its folder has another search, or the template or grammar is wrong.
    """

    task: Task
    found: list[Candidate] = field(default_factory=list)
    _class: str = ""
    _propose: Propose = field(init=False)

    def __post_init__(self) -> None:
        task = self.task
        self._class = controllers.only_class(str(task.template)).rpartition(":")[2]
        self._propose = self._proposer()
        self._read()

    @property
    def best(self) -> list[Candidate]:
        """Those that have a score, the best first; the earliest of equal ones."""
        return self._ranked(self.found)

    def text(self, candidate: Candidate) -> str:
        """Its file."""
        return files.read_text(self._file(candidate.digest))

    def run(self, count: int, jobs: int) -> Iterator[Candidate]:
        """Judge until there are so many candidates, a generation at a time."""
        while len(self.found) < count:
            generation = len(self.found) // self.task.children
            first = len(self.found) % self.task.children
            last = min(self.task.children, first + count - len(self.found))
            # From what came before the generation alone, whatever of it is judged already.
            before = self.found[: generation * self.task.children]
            proposed = self._generation(before, generation, range(first, last))
            with ThreadPoolExecutor(jobs) as pool:
                for own in pool.map(lambda one: self._judged(*one), proposed):
                    self._keep(own)
                    yield own

    def judge(self, scheme: Scheme) -> Candidate:
        """Another scheme on the same networks.

        Raises:
            AckademyError: if it fails on one.
        """
        own = self._numbers(str(scheme.controller), dict(scheme.params))
        if isinstance(own, str):
            raise AckademyError(f"--against {scheme.label}: {own}")
        return Candidate(-1, 0, scheme.label, (), self._score(own), own)

    def lineage(self, candidate: Candidate) -> list[Candidate]:
        """A candidate, its first parent, the first parent of that, and so on."""
        by_digest = {own.digest: own for own in self.found}
        line = [candidate]
        while line[-1].parents and line[-1].parents[0] in by_digest:
            line.append(by_digest[line[-1].parents[0]])
        return line

    def _generation(
        self, before: Sequence[Candidate], generation: int, places: range
    ) -> list[tuple[int, int, str, Holes | None, tuple[str, ...]]]:
        """Texts that were not judged before, where that can be."""
        seen = {own.digest for own in self.found}
        proposed = []
        for place in places:
            for attempt in range(TRIES):
                text, holes, parents = self._propose(generation, place + attempt * 1_000_003)
                if _digest(text) not in seen or not holes:
                    break
            seen.add(_digest(text))
            proposed.append((generation, place, text, holes, parents))
        return proposed

    def _proposer(self) -> Propose:
        task = self.task
        if task.proposer:
            return self._by_command
        template = Template.read(task.template)
        grammar = Grammar.read(task.grammar) if task.grammar else None
        if grammar is None:
            raise ExperimentError("search: allowed: --grammar FILE or --proposer COMMAND")

        def propose(generation: int, place: int) -> tuple[str, Holes | None, tuple[str, ...]]:
            rng = random.Random(f"{task.seed} {generation} {place}")
            if generation == 0:
                holes: Holes = template.holes
                if place:
                    holes, _ = grammars.children(
                        grammar, template, [template.holes] if place % 2 else [], rng
                    )
                return template.filled(holes), holes, ()
            parents = [own for own in self._parents(generation) if own.holes]
            places: tuple[int, ...]
            holes, places = grammars.children(
                grammar, template, [own.holes for own in parents if own.holes], rng
            )
            return template.filled(holes), holes, tuple(parents[i].digest for i in places)

        return propose

    def _by_command(self, generation: int, place: int) -> tuple[str, None, tuple[str, ...]]:
        """What a command prints that is told the best so far."""
        parents = self._parents(generation)
        told = {
            "template": files.read_text(self.task.template),
            "class": self._class,
            "score": self.task.score,
            "better": "lower" if self.task.sign < 0 else "higher",
            "generation": generation,
            "place": place,
            "seed": self.task.seed,
            "best": [
                {"digest": own.digest, "score": own.score, "text": self.text(own)}
                for own in parents
            ],
        }
        where = f"--proposer {self.task.proposer}"
        try:
            done = subprocess.run(
                shlex.split(self.task.proposer),
                input=json.dumps(told),
                capture_output=True,
                text=True,
                timeout=PROPOSER_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise ExperimentError(f"{where}: {error}") from error
        if done.returncode or not 0 < len(done.stdout) <= TEXT_MAX:
            last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
            allowed = f"a controller's file on standard output, at most {TEXT_MAX} characters"
            raise ExperimentError(f"{where}: status {done.returncode}: {last}: allowed: {allowed}")
        return done.stdout, None, tuple(own.digest for own in parents[:1])

    def _parents(self, generation: int) -> list[Candidate]:
        return self._ranked(self.found[: generation * self.task.children])[:PARENTS]

    def _ranked(self, found: Sequence[Candidate]) -> list[Candidate]:
        """By the score; of equal scores one, or variants without effect would fill the parents."""
        first: dict[float, Candidate] = {}
        for own in found:
            if own.score is not None:
                first.setdefault(own.score, own)
        return [first[score] for score in sorted(first, key=lambda score: -self.task.sign * score)]

    def _judged(
        self, generation: int, place: int, text: str, holes: Holes | None, parents: tuple[str, ...]
    ) -> Candidate:
        digest = _digest(text)
        file = self._file(digest)
        files.write(file, text)
        kept = None if holes is None else {name: list(tree) for name, tree in holes.items()}
        own = self._numbers(f"{file}:{self._class}", {})
        if isinstance(own, str):
            return Candidate(generation, place, digest, parents, None, (), own, kept)
        score = self._score(own)
        error = "" if score is not None else f"{self.task.score} is not finite on a network"
        return Candidate(generation, place, digest, parents, score, own, error, kept)

    def _score(self, numbers: Sequence[Mapping[str, float | None]]) -> float | None:
        values = [own[self.task.score] for own in numbers]
        known = [value for value in values if value is not None and math.isfinite(value)]
        return math.fsum(known) / len(known) if len(known) == len(values) else None

    def _numbers(
        self, controller: str, params: Mapping[str, float | str]
    ) -> tuple[Mapping[str, float | None], ...] | str:
        """The numbers of every network, or what went wrong."""
        networks = [
            {"text": c.text, "origin": c.origin, "flows": list(c.flows), "seed": c.seed or 1}
            for c in self.task.networks
        ]
        told = {
            "controller": controller,
            "params": dict(params),
            "networks": networks,
            "metrics": sorted({*MEASURED, self.task.score}),
            "cpu_s": math.ceil(self.task.limit_s),
        }
        command = [sys.executable, "-m", "ackademy.studies.search.judge"]
        limit_s = 4.0 * self.task.limit_s + 60.0  # of the clock, on a busy machine
        try:
            done = subprocess.run(
                command, input=json.dumps(told), capture_output=True, text=True, timeout=limit_s,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it took more than {limit_s:g} s"
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
            is_late = done.returncode < 0
            return f"it took more than {self.task.limit_s:g} s of a core" if is_late else last
        found = json.loads(done.stdout)
        return found["error"] if "error" in found else tuple(found["numbers"])

    def _file(self, digest: str) -> Path:
        return self.task.folder / "candidates" / f"{digest}.py"

    def _keep(self, own: Candidate) -> None:
        self.found.append(own)
        with (self.task.folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(own)) + "\n")

    def _read(self) -> None:
        """Continue what is on disk, or begin."""
        log, head = self.task.folder / LOG, self.task.head()
        if not log.is_file():
            files.write(log, json.dumps(head) + "\n")
            return
        whole = files.read_text(log)
        kept, _, torn = whole.rpartition("\n")
        if torn:  # the line that a killed search was writing
            files.write(log, kept + "\n")
        first, *lines = kept.splitlines()
        try:
            before = json.loads(first)
            self.found = [_candidate(json.loads(line)) for line in lines]
        except (ValueError, TypeError, KeyError) as error:
            raise ExperimentError(
                f"{log}: {error!r}: allowed: what a search has written"
            ) from error
        other = next((key for key, value in head.items() if before.get(key) != value), None)
        if other is not None:
            raise ExperimentError(
                f"{log}: {other}: is of another search: allowed: the same, or another --out"
            )


def difference(own: Candidate, other: Candidate, metric: str) -> Interval:
    """Mean over networks of one's number minus the other's."""
    return network_interval(own.values(metric) - other.values(metric)).interval


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _candidate(own: Mapping[str, object]) -> Candidate:
    return Candidate(
        generation=int(str(own["generation"])),
        place=int(str(own["place"])),
        digest=str(own["digest"]),
        parents=tuple(map(str, own["parents"])),  # type: ignore[call-overload]
        score=None if own["score"] is None else float(str(own["score"])),
        numbers=tuple(dict(one) for one in own["numbers"]),  # type: ignore[attr-defined]
        error=str(own["error"]),
        holes=own["holes"],  # type: ignore[arg-type]
    )
