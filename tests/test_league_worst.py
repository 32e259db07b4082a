"""The worst case of every scheme of a league is what `ackademy stress` finds for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import leagues
from ackademy.backends.runs import read_scenario
from ackademy.cli import stress
from ackademy.cli.studies import Study
from ackademy.studies.league import suite as league
from test_league import NETWORK, SUITE
from test_stress import SPACE


def test_every_scheme_of_all_networks_is_searched_and_its_worst_networks_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    monkeypatch.setattr(stress, "SPACE", space)
    text = SUITE + leagues.scheme("Here", "vegas", "x", more='networks = "short"\n')
    suite = league.load(str(leagues.write_suite(tmp_path, NETWORK, text)))
    out = tmp_path / "runs"
    found = dict(stress.of_league(Study("compare", jobs=2, work=out), suite, 32))
    # Neither the kernel's controllers nor schemes of some networks.
    assert list(found) == ["CUBIC", "RL-TCP"]
    folder = out / "league-small-worst"
    table = (folder / "worst.md").read_text()
    assert table.startswith("# worst case of 32 searched networks each")
    for name, findings in found.items():
        assert name in table
        assert 1 <= len(findings) <= stress.LEAGUE_KEPT
        values = [own.tried.value for own in findings]
        assert values == sorted(values, reverse=True)
        kept = sorted((folder / name).glob("*.toml"))
        assert len(kept) == len(findings)
        assert read_scenario(kept[0]).duration_s > 0.0
    regrets = [found[name][0].tried.value for name in found]
    first = "CUBIC" if regrets[0] <= regrets[1] else "RL-TCP"
    rows = [line for line in table.splitlines() if line.startswith(("| CUBIC", "| RL-TCP"))]
    assert rows[0].startswith(f"| {first} ")
