"""Every TOML file refuses what it does not know: one line with file, field, value, allowed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ackademy import _core, files, lookup, papers
from ackademy.backends import schemes
from ackademy.errors import AckademyError
from ackademy.policies import cards, policy_files
from ackademy.studies.league import suite as league
from ackademy.studies.reproduce import files as experiment_files
from ackademy.toml_table import TomlTable

ROOT = Path(__file__).parents[1]

SUITE = """\
title = "A suite"
about = "Two schemes."
runs = 2
kernel_duration_s = 5
[sender]
prr = true
[[scheme]]
name = "CUBIC"
controller = "cubic"
kind = "classic"
family = "TCP"
[[network]]
name = "one"
title = "One"
paper = "nobody"
scenario = "dumbbell.toml"
link = "bottleneck"
full_delay_ms = 30
[[assumption]]
origin = "proposed"
text = "All of it."
"""


LINKS = """\
duration_s = 1
link = [{ name = "out", rate_mbps = 5 }, { name = "back", rate_mbps = 5 }]
flow = [{ name = "one", path = ["out"], reverse = ["back"] }]
"""


def message(read: Callable[[], object]) -> str:
    with pytest.raises((AckademyError, ValueError)) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("about", "abuot", "abuot = 'Two schemes.': allowed: no such key, only runs, by"),
        ("runs = 2", "runs = 0", "runs = 0: allowed: a whole number from 1"),
        ("runs = 2", "runs = 2.5", "runs = 2.5: allowed: a whole number from 1"),
        ("runs = 2", "runs = true", "runs = True: allowed: a whole number from 1"),
        ("= 5\n", "= inf\n", "kernel_duration_s = inf: allowed: a finite number from 0"),
        ("= 5\n", "= nan\n", "kernel_duration_s = nan: allowed: a finite number from 0"),
        ("family =", "famly =", "scheme[0]: famly = 'TCP': allowed: no such key"),
        (
            'family = "TCP"',
            'family = "TCP"\nlearns = "yes"',
            "learns = 'yes': allowed: true, false",
        ),
        ("link =", "lnk =", "network[0]: lnk = 'bottleneck': allowed: no such key"),
        ('"dumbbell.toml"', '"none.toml"', "network[0]: scenario: "),
        ('"dumbbell.toml"', '"a\\u0000b"', "network[0]: scenario: "),
        ('"bottleneck"', '""', "network[0]: link = '': allowed: a link of the scenario"),
        ("prr = true", "prv = true", "network[0]: scenario: "),
        (
            "= 30\n",
            '= 30\nflows = "x"\n',
            "network[0]: flows = 'x': allowed: flows of the scenario",
        ),
        ("text =", "txt =", "assumption[0]: txt = 'All of it.': allowed: no such key"),
    ],
)
def test_a_suite_refuses_what_it_does_not_know(
    dumbbell: Path, old: str, new: str, told: str
) -> None:
    path = dumbbell.parent / "suite.toml"
    path.write_text(SUITE)
    assert league.load(str(path)).runs == 2
    path.write_text(SUITE.replace(old, new, 1))
    found = message(lambda: league.load(str(path)))
    assert found.startswith(str(path))
    assert told in found


def test_a_suite_names_itself_where_a_network_has_no_such_link(dumbbell: Path) -> None:
    (dumbbell.parent / "links.toml").write_text(LINKS)
    path = dumbbell.parent / "suite.toml"
    path.write_text(SUITE.replace('"dumbbell.toml"', '"links.toml"').replace('"bottleneck"', '"x"'))
    found = message(lambda: league.load(str(path)))
    assert found == f"{path}: network[0]: link = 'x': allowed: a link of the scenario: out, back"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("table1", "about =", "abuot =", "abuot = 'Two senders.': allowed: no such key"),
        ("table1", "runs = 4", "runs = 0", "runs = 0: allowed: a whole number from 1"),
        ("table1", "runs = 4", "runs = 4.5", "runs = 4.5: allowed: a whole number"),
        ("table1", "learner_params", "lerner_params", "group.short: lerner_params = "),
        ("table1", "deterministic", "determinstic", "scheme.Steady: determinstic = "),
        ("table1", "where", "were", "claim[0]: were = 'nowhere': allowed: no such key"),
        ("table1", "= 100", "= inf", "sample_interval_ms = inf: allowed: a finite number"),
        ("paper", "venue", "vneue", "paper.toml: vneue = 'Nowhere, 2018': allowed: no such key"),
        ("paper", "learns = true", "learns = 1", "learns = 1: allowed: true, false"),
        ("paper", "text", "txt", "assumption[0]: txt = 'All of it.': allowed: no such key"),
    ],
)
def test_an_experiment_refuses_what_it_does_not_know(
    experiment: experiment_files.Experiment, file: str, old: str, new: str, told: str
) -> None:
    path = experiment.path.with_name(f"{file}.toml")
    path.write_text(path.read_text().replace(old, new, 1))
    assert told in message(lambda: papers.load(str(experiment.path)))


@pytest.mark.parametrize("kind", ["cubic_beta", "f1_curves", "fluid"])
def test_every_kind_of_experiment_refuses_an_unknown_key(tmp_path: Path, kind: str) -> None:
    files = [path for path in (ROOT / "data/papers").glob("*/*.toml")]
    original = next(path for path in files if f'kind = "{kind}"' in path.read_text())
    folder = tmp_path / "papers" / original.parent.name
    shutil.copytree(original.parent, folder)
    (tmp_path / "scenarios").symlink_to(ROOT / "data/scenarios")
    (tmp_path / "policies").symlink_to(ROOT / "data/policies")
    path = folder / original.name
    papers.load(str(path))
    path.write_text("titel = 3\n" + path.read_text())
    assert f"{path}: titel = 3: allowed: no such key, only kind, " in message(
        lambda: papers.load(str(path))
    )


@pytest.mark.parametrize("kind", ["uniform", "log_uniform", "integer", "log_integer"])
def test_a_draw_between_three_ends_is_refused(kind: str) -> None:
    text = f"""\
learners = ["flow0"]
[[scenario]]
name = "one"
[scenario.inline]
duration_s = 2
dumbbell = {{ rtt_ms = 20, bottleneck = {{ rate_mbps = 4 }} }}
flow = [{{}}]
[scenario.draw]
"dumbbell.rtt_ms" = {{ {kind} = [1, 2, 3] }}
"""
    told = message(lambda: _core.Distribution.parse(text, "d.toml"))
    assert told.startswith("d.toml:")
    assert "[1, 2, 3]" in told
    assert "pair" in told


@pytest.mark.parametrize(
    "field",
    [
        "rate_schedule = [[0, 1, 2]]",
        "outages = [[0, 1, 2]]",
        "delay_schedule = [[0, 1, 2]]",
        "loss_schedule = [[0, 1, 2]]",
    ],
)
def test_a_triple_where_a_scenario_has_pairs_is_refused(field: str) -> None:
    rate = "" if field.startswith("rate") else "rate_mbps = 4, "
    link = f"{{ {rate}{field} }}"
    text = f"duration_s = 2\n[dumbbell]\nrtt_ms = 20\nbottleneck = {link}\n[[flow]]\n"
    assert "pair" in message(lambda: _core.Scenario.parse(text, "s.toml"))


def test_cards_and_policies_of_forests_refuse_an_unknown_key(tmp_path: Path) -> None:
    folder = next(p for p in sorted((ROOT / "data/policies").rglob("card.toml"))).parent
    shutil.copytree(folder, tmp_path / "own")
    card = tmp_path / "own" / cards.CARD
    card.write_text("titel = 3\n" + card.read_text())
    assert "titel = 3: allowed: no such key, only format" in message(
        lambda: cards.read(card.parent)
    )
    forest = next(p for p in (ROOT / "data/policies" / "lp_tcp").rglob("policy.toml")).parent
    shutil.copytree(forest, tmp_path / "forest")
    policy = tmp_path / "forest" / "policy.toml"
    policy.write_text("treshold = 3\n" + policy.read_text())
    assert "treshold = 3: allowed: no such key" in message(lambda: schemes.of_folder(policy.parent))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("memory = ", "memory = 5000000000 # ", "training.memory = 5000000000: allowed: a whole"),
        ("simulations = ", "simulations = 10000000 # ", "simulations = 10000000: allowed"),
        ("seed = ", f"seed = {2**63} # ", "seed = 9223372036854775808: allowed"),
        ("[quick]", "[quick]\nepsiodes = 3", "training.epsiodes: allowed: "),
        ("agents = ", "agens = ", "agens: no such key; allowed: about"),
    ],
)
def test_a_recipe_refuses_what_cannot_be(tmp_path: Path, old: str, new: str, told: str) -> None:
    pytest.importorskip("jax", reason="needs train: an extra")
    from ackademy.learn import deep_recipe

    text = lookup.find("drinc", "recipe").read_text()
    assert old in text
    path = tmp_path / "recipe.toml"
    path.write_text(text.replace(old, new, 1))
    assert told in message(lambda: deep_recipe.read(path))


def test_a_byte_order_mark_at_the_head_of_a_file_is_skipped(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    links, suite, policy = tmp_path / "links.toml", tmp_path / "suite.toml", tmp_path / "policy"
    links.write_bytes(mark + LINKS.encode())
    suite.write_bytes(mark + SUITE.encode())
    shutil.copytree(ROOT / "data/policies" / "aurora_mixed", policy)
    described = (policy / "policy.toml").read_bytes()
    (policy / "policy.toml").write_bytes(mark + described)
    assert _core.Scenario.parse(files.read_text(links), str(links)).resolved()
    assert TomlTable.read(suite)
    whole = policy_files.open_policy(ROOT / "data/policies" / "aurora_mixed")
    assert policy_files.open_policy(policy).layers == whole.layers
    assert policy_files.settings_of(policy) == policy_files.settings_of(
        ROOT / "data/policies" / "aurora_mixed"
    )
