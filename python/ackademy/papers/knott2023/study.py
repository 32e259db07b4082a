"""Learning CUBIC's beta (Knott 2023): learners by rates by seeds, on given transfers.

docs/results/papers/knott2023.md explains the files: `[[learner]]` says what learns and on which
transfers, `[[published]]` what the paper printed for a rate, `[[claim]]` is as in every experiment
file, with `counter:` before the names of `METRICS`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np

from ackademy.csv_text import csv_text
from ackademy.errors import ExperimentError, TrainingError
from ackademy.lazy import pl
from ackademy.learn import recipe, recipe_toml
from ackademy.learn.recipe_toml import Changes, whole
from ackademy.learn.recipe_toml import table as table_of
from ackademy.papers.knott2023 import training as beta_training
from ackademy.papers.knott2023.training import Learner, Training
from ackademy.papers.knott2023.transfers import (
    BETA_STEP_ALLOWED,
    BETA_STEPS,
    BETA_UNITS,
    Recorded,
    Setting,
    Simulated,
    Transfer,
    from_summary,
    is_beta_step,
)
from ackademy.runner import engines, experiments
from ackademy.runner.cells import Cell
from ackademy.runner.engines import Engine
from ackademy.stats import claims
from ackademy.stats.claims import Checked, Claim
from ackademy.stats.formulas import FloatArray
from ackademy.stats.intervals import Interval, t_interval
from ackademy.studies.reproduce import files as experiment_files
from ackademy.studies.reproduce.files import Assumption, Item
from ackademy.toml_table import TomlTable, toml_value

Figure = Literal["rewards", "refused", "throughput", "beta", "sweep", "grid"]
FIGURES: tuple[Figure, ...] = ("rewards", "refused", "throughput", "beta", "sweep", "grid")
LEARNER_KEYS = ("name", "tune", "beta_step", "loss_unit", "recipe")
SOURCE_KEYS = {"recorded": ("recorded",), "scenario": ("scenario", "set", "controller")}
"""where transfers come from, and what may be said of it"""
TUNES = (["beta"], ["beta", "c"])
TREND_EPISODES = 100
"""over which the trend at the end of 200 episodes is taken"""
LATE_FROM = 300
"""episodes after which the paper sees a consistent policy"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A learner at a rate: its transfers and its trainings, one per seed."""

    learner: Learner
    rate_mbps: float
    known: Mapping[Setting, Transfer]
    """every transfer that it may make; empty if they are not there yet"""
    trainings: tuple[Training, ...]

    @property
    def name(self) -> tuple[str, str]:
        """Name of the row in claims."""
        return (self.learner.name, group_of(self.rate_mbps))

    @property
    def default(self) -> Transfer:
        """The transfer of CUBIC with default parameters."""
        return self.known[beta_training.default_of(self.rate_mbps)]

    @property
    def best(self) -> tuple[Setting, Transfer]:
        """The transfer with the fewest refused writes: no policy does better in the long run."""
        return min(self.known.items(), key=lambda pair: (pair[1].refused, pair[0]))


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of the table."""

    label: str
    unit: str
    of: Callable[[Outcome, Training], float]


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


def _late(training: Training, column: str) -> pl.Series:
    return training.episodes[column].tail(beta_training.LAST_EPISODES)


def _slope(values: pl.Series) -> float:
    """Of a straight line through the values by least squares, per episode; 0 for one value."""
    centred = np.arange(len(values)) - (len(values) - 1) / 2.0
    spread = float(centred @ centred)
    return float(centred @ values.to_numpy()) / spread if spread else 0.0


def _loss_percent(outcome: Outcome, training: Training) -> float:
    """Network loss over all transfers of a training."""
    sent = dropped = 0
    rows = training.visits.select("beta_hundredths", "c_thousandths", "count").iter_rows()
    for beta, c, count in rows:
        transfer = outcome.known[Setting(outcome.rate_mbps, beta, c)]
        sent += count * transfer.sent_packets
        dropped += count * transfer.dropped_packets
    return 100.0 * dropped / sent


def _above(outcome: Outcome, training: Training) -> float:
    worse = training.episodes["refused_mean"] > outcome.default.refused_ratio + 1e-12
    return float(worse.sum())


METRICS: Mapping[str, Metric] = {
    "refused_default": Metric(
        "refused, default β", "%", lambda o, _: 100.0 * o.default.refused_ratio
    ),
    "refused_mean": Metric(
        "refused, mean", "%", lambda o, t: 100.0 * _mean(t.episodes["refused_mean"])
    ),
    "refused_change": Metric(
        "refused, change",
        "%",
        lambda o, t: 100.0 * (_mean(t.episodes["refused_mean"]) / o.default.refused_ratio - 1.0),
    ),
    "refused_end": Metric(
        "refused, last 50", "%", lambda o, t: 100.0 * _mean(_late(t, "refused_mean"))
    ),
    "refused_best": Metric(
        "refused, best on grid", "%", lambda o, _: 100.0 * o.best[1].refused_ratio
    ),
    "throughput_default": Metric(
        "throughput, default β", "1/s", lambda o, _: o.default.throughput_pps
    ),
    "throughput_mean": Metric(
        "throughput, mean", "1/s", lambda _, t: _mean(t.episodes["throughput_mean"])
    ),
    "throughput_change": Metric(
        "throughput, change",
        "%",
        lambda o, t: 100.0 * (_mean(t.episodes["throughput_mean"]) / o.default.throughput_pps - 1),
    ),
    "loss_default": Metric("network loss, default", "%", lambda o, _: 100.0 * o.default.loss_ratio),
    "loss_mean": Metric("network loss, mean", "%", _loss_percent),
    "episodes_above": Metric("episodes above default", "", _above),
    "refused_highest_late": Metric(
        f"most refused after {LATE_FROM}",
        "%",
        lambda o, t: 100.0 * cast("float", t.episodes["refused_high"].slice(LATE_FROM).max()),
    ),
    "refused_highest": Metric(
        "most refused", "%", lambda o, t: 100.0 * cast("float", t.episodes["refused_high"].max())
    ),
    "throughput_best_change": Metric(
        "throughput, best, change",
        "%",
        lambda o, _: 100.0 * (o.best[1].throughput_pps / o.default.throughput_pps - 1.0),
    ),
    "beta_end": Metric("β, last 50", "", lambda o, t: _mean(_late(t, "beta_mean"))),
    "reward_early": Metric(
        "reward, first 20", "", lambda o, t: _mean(t.episodes["reward"].head(20))
    ),
    "reward_end": Metric("reward, last 50", "", lambda o, t: _mean(_late(t, "reward"))),
    "reward_rise": Metric(
        "rise of the reward",
        "",
        lambda o, t: _mean(_late(t, "reward")) - _mean(t.episodes["reward"].head(20)),
    ),
    f"reward_slope_last_{TREND_EPISODES}": Metric(
        f"slope of reward, last {TREND_EPISODES}",
        "per episode",
        lambda _, t: _slope(t.episodes["reward"].tail(TREND_EPISODES)),
    ),
    "reward_spread": Metric(
        "spread of reward, last 50",
        "",
        lambda o, t: float(_late(t, "reward").to_numpy().std()),
    ),
}


@dataclass(frozen=True, slots=True)
class BetaStudy(Item):
    """Learners at several rates, checked and ready to run."""

    runs: int
    rates_mbps: tuple[float, ...]
    learners: tuple[Learner, ...]
    columns: tuple[str, ...]
    figures: tuple[Figure, ...]
    published: Mapping[str, Mapping[str, float]]
    """published values by group, then by metric"""
    claims: tuple[Claim, ...]
    assumptions: tuple[Assumption, ...]

    def pairs(self) -> Iterator[tuple[Learner, float]]:
        """Every learner at every rate."""
        return ((learner, rate) for rate in self.rates_mbps for learner in self.learners)

    def _cells(self) -> list[Cell]:
        return [
            learner.transfers.cell(setting)
            for learner, rate in self.pairs()
            if isinstance(learner.transfers, Simulated)
            for setting in learner.settings(rate)
        ]

    def steps(self, runs: int) -> int:
        """Transfers and trainings."""
        return len(set(self._cells())) + runs * len(self.learners) * len(self.rates_mbps)

    def run(
        self, runs: int, folder: Path, engine: Engine, progress: experiments.Progress
    ) -> experiments.CellsRun:
        """Simulate the missing transfers, then learn."""
        cells, total = self._cells(), self.steps(runs)
        ran = experiments.run_cells(cells, folder, engine, lambda n, _: progress(n, total))
        if ran.failures:
            return ran
        tasks = dict(self._tasks(runs, folder))
        todo = {path: task for path, task in tasks.items() if beta_training.read(path) is None}
        damaged = [path for path in todo if path.is_dir()]
        for path in damaged:
            shutil.rmtree(path, ignore_errors=True)
        done = total - len(todo)
        progress(done, total)
        finished = engines.call_each(
            engines.jobs_of(engine), beta_training.train_and_save, [*todo.values()]
        )
        try:
            for _ in finished:
                done += 1
                progress(done, total)
        except KeyboardInterrupt:
            finished.close()
            raise experiments.Interrupted(done, total) from None
        told = tuple(f"{path}: a training that cannot be read" for path in damaged)
        return replace(ran, damaged=ran.damaged + told)

    def _tasks(self, runs: int, folder: Path) -> Iterator[tuple[Path, beta_training.Task]]:
        for learner, rate in self.pairs():
            known = known_transfers(learner, rate, folder)
            for seed in range(1, runs + 1):
                path = _place(folder, learner, rate, seed, known)
                yield path, beta_training.Task(learner, rate, seed, known, path)

    def collect(self, runs: int, folder: Path) -> BetaFindings:
        """Read the finished results."""
        outcomes = tuple(_collect(learner, rate, runs, folder) for learner, rate in self.pairs())
        by_name = {outcome.name: outcome for outcome in outcomes}

        def samples(claim: Claim) -> Callable[[tuple[str, str]], FloatArray]:
            metric = claim.metric.partition(":")[2]
            return lambda name: values(by_name[name], metric)[:, None]

        checked = tuple(claims.check(claim, samples(claim)) for claim in self.claims)
        return BetaFindings(self, outcomes, checked)


@dataclass(frozen=True, slots=True)
class BetaFindings:
    """Results of the learners."""

    study: BetaStudy
    outcomes: tuple[Outcome, ...]
    claims: Sequence[Checked]

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been learned yet."""
        return not any(outcome.trainings for outcome in self.outcomes)

    def csv(self) -> str:
        """One line per row and metric: learner, rate, metric, published, ours, interval, runs."""
        head = ["learner", "rate", "metric", "published", "ours", "ci_low", "ci_high", "runs"]
        rows: list[list[object]] = []
        for outcome in self.outcomes:
            for metric in self.study.columns:
                ours = estimate(outcome, metric)
                if ours is None:
                    continue
                printed = self.study.published.get(outcome.name[1], {}).get(metric)
                numbers = [f"{value:.6g}" for value in (ours.value, ours.low, ours.high)]
                published = "" if printed is None else f"{printed:g}"
                rows.append([*outcome.name, metric, published, *numbers, len(outcome.trainings)])
        return csv_text(head, rows)

    def results(self) -> None:
        """No tables of runs: the numbers are of another kind."""


def group_of(rate_mbps: float) -> str:
    """Name of a rate in tables."""
    return f"{rate_mbps:g} Mb/s"


def values(outcome: Outcome, metric: str) -> FloatArray:
    """A metric of every training, shape (runs,)."""
    of = METRICS[metric].of
    found = [of(outcome, training) for training in outcome.trainings]
    return np.round(np.array(found), 9)  # a change of nothing is 0, not 1e-16


def estimate(outcome: Outcome, metric: str) -> Interval | None:
    """A metric with its interval over seeds; `None` without trainings."""
    return t_interval(values(outcome, metric)) if outcome.trainings else None


def known_transfers(learner: Learner, rate_mbps: float, folder: Path) -> dict[Setting, Transfer]:
    """Every transfer of a learner at a rate, simulated ones from their cells.

    Raises:
        ExperimentError: if one is not there.
    """
    source = learner.transfers
    if isinstance(source, Recorded):
        return {setting: source(setting) for setting in learner.settings(rate_mbps)}
    return {
        setting: from_summary(experiments.read(folder, source.cell(setting), "summary"))
        for setting in learner.settings(rate_mbps)
    }


def _place(
    folder: Path, learner: Learner, rate: float, seed: int, known: Mapping[Setting, Transfer]
) -> Path:
    return folder / "trainings" / beta_training.key(learner, rate, seed, known.values())


def _collect(learner: Learner, rate: float, runs: int, folder: Path) -> Outcome:
    try:
        known = known_transfers(learner, rate, folder)
    except ExperimentError:
        return Outcome(learner, rate, {}, ())
    places = [_place(folder, learner, rate, seed, known) for seed in range(1, runs + 1)]
    trainings = [beta_training.read(place) for place in places]
    return Outcome(learner, rate, known, tuple(own for own in trainings if own is not None))


# ----------------------------------------------------------------------------------- the file


def load(name: str) -> BetaStudy:
    """Read the file of a study.

    Raises:
        ExperimentError: if it is missing or wrong.
    """
    path = experiment_files.find(name)
    item = TomlTable.read(path)
    common = TomlTable.read(path.parent / "paper.toml").only(*experiment_files.PAPER_KEYS)
    rates = tuple(_numbers(item, "rates_mbps"))
    learners = tuple(_learner(entry, path.parent) for entry in item.tables("learner"))
    if not learners:
        raise item.error("learner", [], "at least one [[learner]]")
    rows = [(learner.name, group_of(rate)) for learner in learners for rate in rates]
    return item.into(
        BetaStudy,
        *("kind", "runs", "rates_mbps", "columns", "figures", "learner", "assumption"),
        *("claim", "published"),
        name=experiment_files.name_of(path),
        path=path,
        paper=experiment_files.read_paper(path),
        runs=item.whole("runs", 1, experiment_files.RUNS_MAX),
        rates_mbps=rates,
        learners=learners,
        columns=tuple(_known(item, "columns", list(METRICS))),
        figures=cast("tuple[Figure, ...]", tuple(_known(item, "figures", list(FIGURES)))),
        published=dict(_published(entry) for entry in item.tables("published")),
        claims=tuple(_claim(entry, rows) for entry in item.tables("claim")),
        assumptions=(
            *experiment_files.parse_assumptions(item),
            *experiment_files.parse_assumptions(common),
        ),
    )


def _learner(entry: TomlTable, folder: Path) -> Learner:
    recorded, scenario = entry.string("recorded", ""), entry.string("scenario", "")
    if "\0" in scenario:
        raise entry.error("scenario", scenario, "a file without null characters in its name")
    if bool(recorded) == bool(scenario):
        raise entry.error("recorded", recorded, "exactly one of recorded and scenario")
    allowed = (*LEARNER_KEYS, *SOURCE_KEYS["recorded" if recorded else "scenario"])
    entry.only(*allowed)
    overrides = {key: toml_value(value) for key, value in entry.table("set").values.items()}
    transfers = (
        Recorded.of_file(folder / recorded)
        if recorded
        else Simulated.of_file(
            (folder / scenario).resolve(), overrides, entry.string("controller", "cubic_ns3")
        )
    )
    unit = entry.choice("loss_unit", ("percent", "fraction"), "percent")
    tuned = entry.strings("tune", TUNES[0])
    if tuned not in TUNES:
        raise entry.error("tune", tuned, ", ".join(map(str, TUNES)))
    beta_step = entry.number("beta_step", 0.1, max(BETA_STEPS) / BETA_UNITS)
    if not is_beta_step(beta_step):
        raise entry.error("beta_step", beta_step, BETA_STEP_ALLOWED)
    return Learner(
        name=entry.string("name"),
        transfers=transfers,
        tunes_c="c" in tuned,
        beta_step=beta_step,
        loss_unit=cast('Literal["percent", "fraction"]', unit),
        recipe=_recipe(entry.table("recipe")),
    )


RECIPE_KEYS = ("about", "learner", "seed", "rate_mbps", "training", "quick")


def learner_of(path: Path, changes: Changes, *, quick: bool = False) -> tuple[Learner, float, int]:
    """What a recipe with `learner = "q_table"` trains, on links of which rate, and its seed.

    Raises:
        AckademyError: if the file cannot be read, or a field is missing, unknown or not allowed.
    """
    values = recipe_toml.load(path, changes)
    rate = TomlTable(values, str(path)).number("rate_mbps", 4.0)
    if not 0.1 <= rate <= 1000.0:
        raise TrainingError(f"{path}: rate_mbps = {rate!r}: allowed: 0.1 to 1000")
    shorter = table_of(values, "quick", path) if quick else {}
    training = {**table_of(values, "training", path), **shorter}
    if training.get("decay_start", 0) >= training.get("episodes", 500):  # type: ignore[operator]
        raise TrainingError(f"{path}: training.decay_start: allowed: below training.episodes")
    own = {key: value for key, value in values.items() if key not in RECIPE_KEYS}
    if "recorded" in own:
        own.pop("scenario", None)
    entry = TomlTable({"name": path.stem, **own, "recipe": training}, str(path))
    seed = whole(values.get("seed"), "seed", 0, path, 2**63 - 1)
    return _learner(entry, path.parent), rate, seed


def _recipe(table: TomlTable) -> Mapping[str, float]:
    known = {own.name: str(own.type) for own in fields(recipe.Recipe)}
    for name, value in table.values.items():
        if name not in known:
            raise table.error(name, value, f"only {', '.join(known)}")
        if wanted := recipe_toml.wanted_of(known[name], value):
            raise table.error(name, value, wanted)
    return cast("Mapping[str, float]", dict(table.values))


def _published(entry: TomlTable) -> tuple[str, dict[str, float]]:
    numbers = {key: entry.any_number(key) for key in entry.values if key != "rate_mbps"}
    for metric in numbers:
        if metric not in METRICS:
            raise entry.error("metric", metric, ", ".join(METRICS))
    return group_of(entry.number("rate_mbps")), numbers


def _claim(entry: TomlTable, rows: Sequence[tuple[str, str]]) -> Claim:
    claim = claims.parse_claim(entry, rows)
    kind, _, metric = claim.metric.partition(":")
    if kind != "counter" or metric not in METRICS:
        raise entry.error("metric", claim.metric, ", ".join(f"counter:{name}" for name in METRICS))
    return claim


def _numbers(item: TomlTable, name: str) -> list[float]:
    value = item.values.get(name)
    is_number = [
        isinstance(v, int | float) and not isinstance(v, bool) and 0 < v <= sys.float_info.max
        for v in (value if isinstance(value, list) else [])
    ]
    if not isinstance(value, list) or not value or not all(is_number):
        raise item.error(name, value, "a list of finite numbers above 0")
    return [float(entry) for entry in value]


def _known(item: TomlTable, name: str, allowed: Sequence[str]) -> list[str]:
    found = item.strings(name)
    for word in found:
        if word not in allowed:
            raise item.error(name, word, ", ".join(allowed))
    return found
