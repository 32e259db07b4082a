"""Every shipped policy runs, and does on its card's runs, to the packet, what its card says."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ackademy.backends import distributions, schemes
from ackademy.backends.schemes import Scheme
from ackademy.cli import app
from ackademy.errors import AckademyError, ExperimentError, FileError
from ackademy.policies import cards, zoo
from ackademy.policies.cards import FixedSet
from ackademy.runner import cases, experiments, measured
from ackademy.runner.engines import local
from ackademy.studies.evaluate import sources

safetensors = pytest.importorskip("safetensors.numpy", reason="needs train: an extra")

ROOT = Path(__file__).parent.parent
MODELS = {model.name: model for model in zoo.models(ROOT / "data/policies")}
CARDED = [name for name, model in MODELS.items() if model.card is not None]

POLICY = """\
format = 1
about = "holds its window"

[observation]
features = ["rtt_ratio", "loss_ratio"]
history = 2

[decision]
every = "srtt"

[action]
map = "cwnd_steps"
steps = ["-1", "+0", "+1"]

[[layers]]
kind = "flatten"

[[layers]]
kind = "dense"
units = 3
activation = "linear"

[made]
command = "by hand"
trained_on = "few.toml"
distribution_digest = "DIGEST"
reward = "none"
decisions = 0
"""

FEW = """\
about = "One to three flows on a short link."
learners = ["learner"]
draw."dumbbell.bottleneck.rate_mbps" = { uniform = [2, 4] }

[[scenario]]
name = "few"
[scenario.inline]
duration_s = 3
dumbbell = { rtt_ms = 30, bottleneck = { queue = { kind = "drop_tail", packets = 30 } } }
flow = [{ name = "learner" }]
[scenario.draw]
"flow.0.count" = { integer = [1, 3] }

[[scenario]]
name = "trace"
[scenario.inline]
duration_s = 3
dumbbell = { rtt_ms = 30, bottleneck = { queue = { kind = "drop_tail", packets = 30 } } }
flow = [{ name = "learner" }, { name = "other" }]
[scenario.draw]
"dumbbell.bottleneck.rate_mbps" = { constant = 3 }
"flow.1.start_s" = { uniform = [0, 1] }
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A network of zeros that always answers `+0`, and what it says that it was trained on."""
    few = tmp_path / "distributions" / "few.toml"
    few.parent.mkdir()
    few.write_text(FEW)
    folder = tmp_path / "policies" / "still"
    folder.mkdir(parents=True)
    digest = distributions.read(few).digest
    (folder / "policy.toml").write_text(POLICY.replace("DIGEST", digest))
    tensors = {
        "layers.1.kernel": np.zeros((4, 3), np.float32),
        "layers.1.bias": np.array([0.0, 1.0, 0.5], np.float32),
    }
    (folder / "weights.safetensors").write_bytes(safetensors.save(tensors))
    return folder


def test_the_zoo_has_every_policy_and_cards() -> None:
    described = {path.parent for path in (ROOT / "data/policies").rglob("policy.toml")}
    assert {model.folder for model in MODELS.values()} == described
    assert {"lp_tcp/L50_K1", "lp_tcp/L50_K4"} <= set(CARDED)


@pytest.mark.parametrize("name", MODELS)
def test_a_shipped_policy_runs_and_a_network_has_a_card(name: str) -> None:
    model = MODELS[name]
    assert model.fault == ""
    assert model.parameters > 0
    assert model.controller != "policy" or model.card is not None


@pytest.mark.parametrize("name", CARDED)
def test_a_policy_does_what_its_card_says(name: str) -> None:
    folder, card = MODELS[name].folder, MODELS[name].card
    assert card is not None
    assert card.policy == cards.digest(folder), "another policy: ackademy evaluate --card"
    again = cards.make(folder, card.fixed, ROOT / "data")
    assert again.runs == card.runs
    assert cards.text(again) == (folder / cards.CARD).read_text()
    assert cards.in_markdown(card) in (folder / cards.PAGE).read_text()
    # A policy that does not act would pass for NewReno.
    assert card.headline["policy"] != card.headline["new_reno"]


def test_another_threshold_gives_another_card(tmp_path: Path) -> None:
    card = MODELS["lp_tcp/L50_K4"].card
    assert card is not None
    folder = tmp_path / "other"
    shutil.copytree(MODELS["lp_tcp/L50_K4"].folder, folder)
    described = folder / "policy.toml"
    old = next(line for line in described.read_text().splitlines() if line.startswith("threshold"))
    described.write_text(described.read_text().replace(old, "threshold = 0.95"))
    assert cards.digest(folder) != card.policy
    ran = cards.evaluate(card.fixed, Scheme("policy", *schemes.of_folder(folder)), ROOT / "data")
    assert tuple(one.counts for one in ran) != tuple(counts for _, _, counts in card.runs)


def test_a_card_is_read_as_it_was_written(policy: Path) -> None:
    root = policy.parents[1]
    fixed = FixedSet("distributions/few.toml", True, "*", (1, 2, 3), 2.5)
    made = cards.make(policy, fixed, root)
    cards.write(policy, made)
    read = cards.read(policy)
    assert read is not None
    assert (read.fixed, read.runs, read.policy) == (made.fixed, made.runs, made.policy)
    assert cards.text(read) == cards.text(made)
    page = (policy / cards.PAGE).read_text()
    cards.write(policy, replace(made, headline={"policy": made.headline["cubic"]}))
    other = (policy / cards.PAGE).read_text()
    assert page != other
    assert other.count(cards.BEGIN) == 1
    (policy / cards.CARD).write_text("format = 2\n")
    with pytest.raises(ExperimentError, match=r"card\.toml: format = 2: allowed: 1"):
        cards.read(policy)


def test_a_policy_is_evaluated_where_it_was_trained(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", str(policy), "cubic", "new_reno", "--runs", "6", "--jobs", "1"]
    words += ["--json", "eval.json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "has changed" not in result.output
    found = json.loads(Path("eval.json").read_text())
    overall = {
        (own["scheme"], own["metric"]): own for own in found["estimates"] if not own["group"]
    }
    schemes_tried = {scheme for scheme, _ in overall}
    assert schemes_tried == {str(policy), "cubic", "new_reno"}
    assert all(own["n"] == 6 for own in overall.values())
    fallbacks = overall[str(policy), "fallbacks"]
    assert [fallbacks[key] for key in ("estimate", "low", "high")] == [0.0, 0.0, 0.0]
    assert {own["group"] for own in found["estimates"]} == {"", "few", "trace"}
    ours, theirs = (overall[name, "utility"]["estimate"] for name in (str(policy), "cubic"))
    assert overall["cubic", "gain"]["estimate"] == pytest.approx(ours - theirs, abs=2e-6)
    described = policy / "policy.toml"
    few = tmp_path / "distributions" / "few.toml"
    few.write_text(few.read_text().replace("[2, 4]", "[2, 5]"))
    assert "has changed" in CliRunner().invoke(app, words).output
    described.write_text(described.read_text().replace("few.toml", "none.toml"))
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, AckademyError)
    assert "made.trained_on = 'none.toml': allowed: a file here or in" in str(refused.exception)


def test_a_scheme_on_a_scenario_governs_the_named_flows_only(policy: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        "duration_s = 2\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 4 }\n"
        '[[flow]]\nname = "mine"\n[[flow]]\nname = "other"\ncontroller = "cubic"\n'
    )
    source = sources.of_scenario(path, tmp_path, 1, 1, "mine")
    own = schemes.one(str(policy))
    (cell,) = cases.cells(source.cases[0], own, cases.Plan(1))
    assert cell.scenario().controllers == ["policy", "cubic"]
    with pytest.raises(ExperimentError, match="flow 'none': allowed: mine, other"):
        sources.of_scenario(path, tmp_path, 1, 1, "none")


def test_a_broken_policy_is_told_and_fails_the_command(policy: Path) -> None:
    root = policy.parent
    assert CliRunner().invoke(app, ["zoo", str(root)]).exit_code == 0
    weights = policy / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    model = zoo.models(root)[0]
    assert "weights.safetensors" in model.fault
    assert "\n" not in model.fault
    assert CliRunner().invoke(app, ["zoo", str(root)]).exit_code == 1


def test_flows_of_an_entry_whose_name_begins_alike_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "alike.toml"
    path.write_text(
        "duration_s = 2\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 4 }\n"
        '[[flow]]\nname = "me"\ncount = 2\n[[flow]]\nname = "me2"\n[[flow]]\nname = "me_9"\n'
    )
    source, own = sources.of_scenario(path, tmp_path, 1, 1, "me"), schemes.one("cubic")
    (row,) = measured.rows(source.cases, [own], cases.Plan(1), ["throughput_total_mbps"])
    (cell,) = row.cells
    experiments.run_cells([cell], tmp_path, local(jobs=1), experiments.quiet)
    flows = experiments.read(tmp_path, cell, "summary")
    assert flows["controller"].to_list() == ["cubic", "cubic", "new_reno", "new_reno"]
    mine = flows.head(2)["throughput_mbps"].sum()
    (found,) = measured.measure([row], tmp_path)
    assert found.value("throughput_total_mbps") == pytest.approx(mine)
    fixed = FixedSet("alike.toml", False, "me", (1,), 2.0)
    (ran,) = cards.evaluate(fixed, own, tmp_path)
    assert ran.counts[cards.COUNTS.index("sent_packets")] == flows.head(2)["sent_packets"].sum()


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ('forest = "../rain"', "forest = '../rain': allowed: the name of a file beside it"),
        ('forest = "/dev/zero"', "forest = '/dev/zero': allowed: the name of a file beside it"),
        ('forest = "pipe"', "pipe: allowed: a regular file of at most 67108864 bytes"),
        ("a = " + "[" * 5000, "policy.toml: allowed: tables that are less deep"),
        ("format = 1", "weights.safetensors"),
    ],
    ids=["above", "device", "pipe", "depth", "folder"],
)
def test_a_hostile_policy_is_one_line(tmp_path: Path, described: str, message: str) -> None:
    folder = tmp_path / "hostile"
    (folder / "weights.safetensors").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "policy.toml").write_text(f'{described}\ncontroller = "lp_tcp"\nthreshold = 0.5\n')
    (model,) = zoo.models(tmp_path)
    assert message in model.fault
    assert "\n" not in model.fault
    assert model.parameters == model.size_bytes == 0


def test_a_card_that_cannot_be_written_leaves_the_old_one(policy: Path) -> None:
    fixed = FixedSet("distributions/few.toml", True, "*", (1,), 2.0)
    made = cards.make(policy, fixed, policy.parents[1])
    cards.write(policy, made)
    old = (policy / cards.CARD).read_text()
    (policy / cards.PAGE).unlink()
    (policy / cards.PAGE).mkdir()
    with pytest.raises(FileError, match=r"cannot write .*CARD\.md"):
        cards.write(policy, replace(made, policy="other"))
    assert (policy / cards.CARD).read_text() == old
