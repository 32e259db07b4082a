"""Learning CUBIC's beta: transfers, environment, learner, study, command."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from typer.testing import CliRunner

import ackademy.envs
from ackademy import papers
from ackademy.cli import app
from ackademy.errors import ExperimentError
from ackademy.learn.q_table import learn
from ackademy.learn.recipe import Recipe
from ackademy.papers.knott2023 import study as study_kind
from ackademy.papers.knott2023.environment import CubicBeta
from ackademy.papers.knott2023.transfers import (
    Recorded,
    Setting,
    Simulated,
    Transfer,
    beta_grid,
    scenario_file,
)
from ackademy.render.report import page
from ackademy.runner import engines, experiments

ROOT = Path(__file__).resolve().parents[1]
NS3 = ROOT / "data/papers" / "knott2023" / "ns3.csv"


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    return Simulated.of_file(scenario_file())


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded.of_file(NS3)


def transfer(refused: int) -> Transfer:
    return Transfer(1000, refused, 3000, 3, 5, 0)


# ------------------------------------------------------------------------------- transfers


@pytest.mark.parametrize(
    ("rate_mbps", "loss", "throughput"),
    [(4.0, 63.6, 242.9), (6.0, 32.7, None), (8.0, 15.3, 565.2), (12.0, 2.7, None)],
)
def test_ns3_refuses_exactly_what_the_paper_calls_loss(
    recorded: Recorded, rate_mbps: float, loss: float, throughput: float | None
) -> None:
    default = recorded(Setting(rate_mbps, 70))
    assert round(100 * default.refused_ratio, 1) == loss
    if throughput is not None:
        assert round(default.throughput_pps, 1) == throughput


@pytest.mark.parametrize("rate_mbps", [6.0, 12.0])
def test_our_default_transfers_equal_ns3s_to_the_packet_at_6_and_12_mbps(
    simulated: Simulated, recorded: Recorded, rate_mbps: float
) -> None:
    setting = Setting(rate_mbps, 70)
    assert simulated(setting) == recorded(setting)


def test_our_default_transfer_at_8_mbps_refuses_and_retransmits_what_ns3s_does(
    simulated: Simulated, recorded: Recorded
) -> None:
    ours, theirs = (transfers(Setting(8.0, 70)) for transfers in (simulated, recorded))
    assert ours.refused == theirs.refused == 153
    assert ours.retransmitted_packets == theirs.retransmitted_packets == 135


def test_at_12_mbps_973_writes_are_accepted_whatever_beta_is(simulated: Simulated) -> None:
    assert {simulated(Setting(12.0, beta)).refused for beta in beta_grid(5)} == {27}


def test_refused_writes_and_network_loss_are_different_numbers(simulated: Simulated) -> None:
    default = simulated(Setting(4.0, 70))
    assert default.refused_ratio > 0.5
    assert 0.0 < default.loss_ratio < 0.05


def test_a_transfer_that_was_not_recorded_is_named(recorded: Recorded) -> None:
    with pytest.raises(ExperimentError, match=r"ns3\.csv: no transfer for 5 Mb/s, beta 0\.7"):
        recorded(Setting(5.0, 70))


def test_a_damaged_record_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("rate_mbps,beta,c,offered\n4,0.7,0.4,many\n")
    with pytest.raises(ExperimentError, match=r"bad\.csv"):
        Recorded.of_file(path)


# ----------------------------------------------------------------------------- environment


@pytest.mark.parametrize("tune", [("beta",), ("beta", "c")])
def test_the_environment_passes_gymnasiums_checker(
    recorded: Recorded, tune: tuple[ackademy.papers.knott2023.environment.Tuned, ...]
) -> None:
    check_env(CubicBeta(4.0, tune, recorded), skip_render_check=True)


def test_the_registered_environment_is_cut_after_100_steps(recorded: Recorded) -> None:
    env = gymnasium.make("ackademy/CubicBeta-v0", rate_mbps=12.0, transfers=recorded)
    env.reset(seed=1)
    ends = [env.step(1)[2:4] for _ in range(100)]
    assert ends == [(False, False)] * 99 + [(False, True)]


def test_actions_lower_keep_and_raise_beta_and_stop_at_the_ends(recorded: Recorded) -> None:
    env = CubicBeta(4.0, transfers=recorded)
    observation, _ = env.reset()
    assert observation[0] == 0.7
    assert [env.step(action)[0][0] for action in (0, 1, 2, 2, 2, 2)] == [
        0.6,
        0.6,
        0.7,
        0.8,
        0.9,
        0.9,
    ]


def test_two_parameters_move_in_one_action(recorded: Recorded) -> None:
    env = CubicBeta(4.0, ("beta", "c"), recorded)
    env.reset()
    observation, *_ = env.step(np.array([0, 2]))
    assert observation[:2].tolist() == [0.6, 0.8]


def test_the_reward_weighs_packets_per_second_against_per_cent() -> None:
    percent = CubicBeta(4.0, transfers=lambda _: transfer(100))
    fraction = CubicBeta(4.0, transfers=lambda _: transfer(100), loss_unit="fraction")
    gain = 10 * 900 / 1.4985
    assert percent.reward(transfer(100)) == pytest.approx(gain - 2000 * 10.0)
    assert fraction.reward(transfer(100)) == pytest.approx(gain - 2000 * 0.1)


# --------------------------------------------------------------------------------- learner


class Corridor(gymnasium.Env[npt.NDArray[np.float64], int]):
    """Places 0 to 4; only the last has a reward. Action 0 goes left, 1 goes right."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 5.0, (1,), np.float64)
        self.action_space = spaces.Discrete(2)
        self.place = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[npt.NDArray[np.float64], dict[str, object]]:
        """To the left end."""
        self.place = 0
        return np.array([0.0]), {}

    def step(
        self, action: int
    ) -> tuple[npt.NDArray[np.float64], float, bool, bool, dict[str, object]]:
        """One place on."""
        self.place = min(max(self.place + 2 * action - 1, 0), 4)
        return np.array([float(self.place)]), float(self.place == 4), False, False, {}


CORRIDOR = Recipe(episodes=60, steps=20, learning_rate=0.2, decay_start=20, bins=5)


def test_the_learner_finds_the_way_to_a_reward_that_comes_late() -> None:
    log = learn(Corridor(), CORRIDOR, seed=1)
    assert log.rewards[-1].sum() == 17  # 20 steps, 3 of them on the way


def test_learning_repeats_with_its_seed_and_differs_with_another() -> None:
    first, again, other = (learn(Corridor(), CORRIDOR, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.observations, again.observations)
    assert not np.array_equal(first.observations, other.observations)


def test_before_the_decay_every_action_is_random() -> None:
    still = Recipe(episodes=40, steps=50, learning_rate=0.5, decay_start=39, bins=5)
    log = learn(Corridor(), still, seed=1)
    right = np.mean(np.diff(log.observations[:39, :, 0], axis=1) > 0)
    assert 0.3 < right < 0.5  # half, but for the wall on the right


def test_values_on_an_edge_of_a_bin_fall_into_the_bin_above(recorded: Recorded) -> None:
    env = CubicBeta(4.0, transfers=recorded, beta_step=0.05)
    space = env.observation_space
    from ackademy.learn.q_table import _states

    state_of = _states(space, 20)
    states = {state_of(np.array([beta / 100, 0.5, 250.0])) for beta in beta_grid(5)}
    assert len(states) == 19


# ----------------------------------------------------------------------------------- study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A paper with one small study."""
    folder = tmp_path_factory.mktemp("papers") / "papers" / "tiny"
    folder.mkdir(parents=True)
    shutil.copy(NS3, folder / "ns3.csv")
    shutil.copy(NS3.parent / "paper.toml", folder / "paper.toml")
    (folder / "fig.toml").write_text(
        f"""
kind = "cubic_beta"
item = "Fig. 0"
title = "tiny"
about = "A few episodes."
runs = 2
rates_mbps = [4]
columns = ["refused_default", "refused_mean", "loss_mean"]
figures = ["refused", "sweep", "beta"]
[[learner]]
name = "ns-3.37"
recorded = "ns3.csv"
recipe = {{ episodes = 4, decay_start = 1, steps = 5 }}
[[learner]]
name = "ours"
scenario = "{scenario_file()}"
recipe = {{ episodes = 4, decay_start = 1, steps = 5 }}
[[published]]
rate_mbps = 4
refused_default = 63.6
[[claim]]
text = "More than half of the writes is refused."
where = "here"
metric = "counter:refused_mean"
row = ["ns-3.37", "4 Mb/s"]
min_value = 50
"""
    )
    return folder / "fig.toml"


def test_a_study_learns_once_and_reports_what_it_learned(small: Path, tmp_path: Path) -> None:
    study = papers.load(str(small))
    assert study.collect(2, tmp_path).is_empty
    seen: list[tuple[int, int]] = []
    study.run(2, tmp_path, engines.local(1), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (study.steps(2), study.steps(2))
    folders = sorted((tmp_path / "trainings").iterdir())
    before = [folder.stat().st_mtime_ns for folder in folders]
    study.run(2, tmp_path, engines.local(1), experiments.quiet)
    assert [folder.stat().st_mtime_ns for folder in folders] == before

    findings = study.collect(2, tmp_path)
    assert not findings.is_empty
    assert findings.claims[0].verdict == "holds"
    assert "ns-3.37,4 Mb/s,refused_default,63.6,63.6,63.6,63.6,2" in findings.csv()
    shown = page(study.report(findings))
    assert "63.60" in shown
    assert "Refused writes per episode" in shown


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"loss_mean"]', '"los_mean"]', r"columns = 'los_mean': allowed: refused_default"),
        ('recorded = "ns3.csv"\n', "", r"learner\[0\]: recorded = '': allowed: exactly one"),
        ("counter:refused_mean", "timeouts", r"metric = 'timeouts': allowed: counter:"),
        ("steps = 5 }", "decay_starts = 0 }", r"decay_starts = 0: allowed: only episodes"),
        ("steps = 5 }", "bins = 0 }", r"recipe: bins = 0: allowed: a whole number from 1"),
        ("steps = 5 }", "discount = 2 }", r"recipe: discount = 2: allowed: a number from 0 to 1"),
        ("steps = 5 }", "steps = 5 }\nbeta_step = 0", r"beta_step = 0.0: allowed: 0.01, 0.02"),
        ("steps = 5 }", "steps = 5 }\nbeta_step = 0.3", r"beta_step = 0.3: allowed: 0.01, 0.02"),
        (
            "steps = 5 }",
            "steps = 5 }\nbetastep = 0.1",
            r"betastep = 0.1: allowed: no such key, only name",
        ),
        ("steps = 5 }", 'steps = 5 }\ntune = ["c"]', r"tune = \['c'\]: allowed: \['beta'\]"),
        (
            '"ns3.csv"\n',
            '"ns3.csv"\ncontroller = "reno"\n',
            r"controller = 'reno': allowed: no such key, only",
        ),
        (
            "rates_mbps = [4]",
            "rates_mbps = []",
            r"rates_mbps = \[\]: .*finite numbers",
        ),
    ],
)
def test_a_wrong_study_is_one_line(small: Path, old: str, new: str, message: str) -> None:
    text = small.read_text()
    assert old in text
    path = small.with_name("wrong.toml")
    path.write_text(text.replace(old, new))
    with pytest.raises(ExperimentError, match=message):
        papers.load(str(path))


def test_trainings_are_the_same_on_any_number_of_processes(small: Path, tmp_path: Path) -> None:
    study = papers.load(str(small))
    for jobs in (1, 2):
        study.run(2, tmp_path / str(jobs), engines.local(jobs), experiments.quiet)
    one, two = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.parquet")}
        for root in (tmp_path / "1" / "trainings", tmp_path / "2" / "trainings")
    )
    assert len(one) == 12
    assert one == two


def test_an_interrupt_while_learning_keeps_what_is_finished(small: Path, tmp_path: Path) -> None:
    study = papers.load(str(small))
    total = study.steps(2)

    def interrupt(done: int, of: int) -> None:
        if done == of - 2:
            raise KeyboardInterrupt

    with pytest.raises(experiments.Interrupted, match=f"{total - 2} of {total}"):
        study.run(2, tmp_path, engines.local(1), interrupt)
    assert len(list((tmp_path / "trainings").iterdir())) == 2


def test_a_late_decline_is_seen_although_rewards_have_risen(small: Path, tmp_path: Path) -> None:
    study = papers.load(str(small))
    study.run(1, tmp_path, engines.local(1), experiments.quiet)
    outcome = study.collect(1, tmp_path).outcomes[0]  # type: ignore[attr-defined]
    rewards = np.concatenate([np.arange(150.0), 150.0 - 2.0 * np.arange(50.0)])
    training = replace(outcome.trainings[0], episodes=pl.DataFrame({"reward": rewards}))
    measures = study_kind.METRICS
    assert measures["reward_rise"].of(outcome, training) > 0.0
    assert measures["reward_slope_last_100"].of(outcome, training) < 0.0


def test_a_step_that_is_no_number_is_one_line() -> None:
    with pytest.raises(ValueError, match="beta_step"):
        CubicBeta(beta_step=float("nan"))


@pytest.mark.parametrize("step", ["0", "-0.1", "0.3", "0.105", "nan"])
def test_a_step_that_does_not_lead_to_the_default_is_one_line(step: str) -> None:
    with pytest.raises(
        ExperimentError,
        match=r"cubic_beta\.toml: beta_step = \S+: allowed: (0\.01, 0\.02|a number from 0 to 0\.7)",
    ):
        CliRunner().invoke(
            app, ["train", "cubic_beta", "--set", f"beta_step={step}"], catch_exceptions=False
        )
    with pytest.raises(ValueError, match="beta_step"):
        CubicBeta(beta_step=float(step))


def test_every_item_of_knott_2023_can_be_read() -> None:
    studies = papers.load_all("knott2023")
    assert {study.item for study in studies} >= {"Figs 2–7", "Figs 8–16", "Future work"}
    assert all(isinstance(study, study_kind.BetaStudy) for study in studies)


def test_the_command_trains_a_learner(tmp_path: Path) -> None:
    words = ["train", "cubic_beta", "--quick", "--set", f"recorded={NS3}"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "log")])
    assert done.exit_code == 0, done.output
    assert "stock CUBIC refuses 63.6 %" in done.output
    assert (tmp_path / "log" / "episodes.parquet").is_file()
